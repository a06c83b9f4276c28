//! SIGKILL under load, repeatedly, and also while the server recovers.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use tickwheel_testing::is_long;

use crate::faults::caller::Caller;
use crate::faults::history::{Answer, History, Key};
use crate::faults::judge::Ledger;
use crate::faults::load::{LARGE, Load};
use crate::faults::mount::run;
use crate::faults::needs::{number, say};
use crate::faults::readback::{QUEUES, read_back};
use crate::faults::server::{Home, kill_start};
use crate::kit::Random;

/// The range of the time from the start of the load to the kill (ms): from the first calls to many commits.
const LIFE_MS: (u64, u64) = (20, 330);
const DEPTH: u64 = 3;
/// In one of this number of rounds, a copy of the directory is recovered, too.
const TWIN_EVERY: u64 = 10;

#[derive(Debug, Default)]
struct Totals {
    rounds: u64,
    kills: u64,
    with_calls: u64,
    in_recovery: u64,
    deepest: u64,
    acknowledged: usize,
    close_cancels: usize,
    checkpoints: u64,
    twins: u64,
    losses: usize,
}

/// The number of rounds is `TICKWHEEL_KILLS` (20 by default); `TICKWHEEL_FAULT_SEED` chooses the workload (1 by
/// default).
#[test]
fn nothing_acknowledged_is_lost_by_kills() {
    let rounds = number("TICKWHEEL_KILLS", 20);
    let seed = number("TICKWHEEL_FAULT_SEED", 1);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let twin = tempfile::tempdir().expect("a temporary directory");
    let home = Home::below(directory.path());
    let history = History::default();
    let mut ledger = Ledger::default();
    let mut random = Random::new(seed);
    let kept = Mutex::new(Vec::new());
    let mut totals = Totals::default();
    let mut checkpoint = None;
    let begun = Instant::now();

    for round in 0..=rounds {
        let twin = (round % TWIN_EVERY == 1)
            .then(|| Home::below(twin.path()))
            .map(|twin| state_of_copy(&home, &twin));
        let server = home.start();
        let caller = Caller::new(&server.url, &history);
        if let Some(twin) = twin {
            totals.twins += 1;
            assert_eq!(
                twin,
                state(&caller),
                "seed {seed}, round {round}: two recoveries of one directory differ"
            );
        }
        let found = read_back(&caller, &mut ledger, history.take(), &mut kept.lock().expect("no panic"));
        let newest = home.newest_checkpoint();
        totals.checkpoints += u64::from(newest != checkpoint);
        checkpoint = newest;
        totals.losses += found.broken.len();
        assert!(
            found.broken.is_empty(),
            "seed {seed}, round {round} of {rounds}:\n{}\n{totals}",
            found.broken.join("\n")
        );
        if round == rounds {
            break;
        }

        let load =
            Load { seed, round, large: LARGE, live: &found.live, stop: &AtomicBool::new(false), kept: &kept };
        let life = Duration::from_millis(LIFE_MS.0 + random.below(LIFE_MS.1));
        load.run(&caller, |_| {
            // A kill may come at any moment, so this is the test's only wait for a time.
            thread::sleep(life);
            totals.with_calls += u64::from(history.in_flight() > 0);
            totals.kills += 1;
            server.kill();
        });
        recover(&home, &mut random, &mut totals);
        totals.rounds += 1;
        totals.acknowledged = history.acknowledged();
        totals.close_cancels = history.close_cancels();
        if totals.rounds % 100 == 0 {
            say(&format!("{:>6} s: {totals}", begun.elapsed().as_secs()));
        }
    }

    say(&format!("kill: seed {seed}, {:?}: {totals}", begun.elapsed()));
    let loaded = totals.rounds;
    // How often a kill meets something is a matter of chance in a short run.
    assert!(
        !is_long() || totals.with_calls * 10 >= loaded * 3,
        "too few kills met calls in flight: no test of anything"
    );
    assert!(
        !is_long() || totals.in_recovery * 20 >= totals.kills,
        "too few kills met a recovery: no test of it"
    );
    assert!(!is_long() || totals.close_cancels as u64 * 10 >= loaded, "too few cancels met their due time");
}

/// Kills the server up to three times while it starts.
fn recover(home: &Home, random: &mut Random, totals: &mut Totals) {
    let mut depth = 0;
    for _ in 0..random.below(DEPTH + 1) {
        totals.kills += 1;
        if kill_start(random, &mut home.command(&[])) {
            totals.in_recovery += 1;
            depth += 1;
        }
    }
    totals.deepest = totals.deepest.max(depth);
}

/// The state that a recovery of a copy of `home` finds. The copy is made in `twin` and removed.
fn state_of_copy(home: &Home, twin: &Home) -> Vec<(Key, Answer)> {
    run(&["cp", "-r", home.data.to_str().expect("UTF-8"), twin.data.to_str().expect("UTF-8")]);
    let server = twin.start();
    let history = History::default();
    let found = state(&Caller::new(&server.url, &history));
    server.kill();
    std::fs::remove_dir_all(&twin.data).expect("remove the copy");
    found
}

/// All live tasks, by key.
fn state(caller: &Caller<'_>) -> Vec<(Key, Answer)> {
    let lists = QUEUES.iter().flat_map(|queue| caller.list(queue).expect("a healthy server lists"));
    let mut tasks: Vec<_> = lists.collect();
    tasks.sort_by(|a, b| a.0.cmp(&b.0));
    tasks
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} rounds, {} acknowledged operations, {} kills: {} of {} under load met calls in flight, {} met a recovery \
             (up to {} in a row); {} cancels within 5 ms of due, {} new checkpoints, {} recovered twice; {} losses",
            self.rounds,
            self.acknowledged,
            self.kills,
            self.with_calls,
            self.rounds,
            self.in_recovery,
            self.deepest,
            self.close_cancels,
            self.checkpoints,
            self.twins,
            self.losses
        )
    }
}
