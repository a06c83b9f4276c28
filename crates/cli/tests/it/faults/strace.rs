//! Writes and syncs that fail, are incomplete, are slow or kill the server. A failed write is not acknowledged, and
//! acknowledged writes stay.

use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tickwheel_testing::is_long;

use crate::faults::caller::{Caller, Silence};
use crate::faults::history::{Answer, wall_ms};
use crate::faults::injection::{Injection, from_the_start};
use crate::faults::load::{LARGE, Load};
use crate::faults::needs::{Need, has, say};
use crate::faults::report::{page, ready, wait_for};
use crate::faults::server::Starting;
use crate::faults::stage::{HOUR_MS, Stage, key};

const STRACE: [Need; 2] = [Need::Program("strace"), Need::Tracing];

/// One sync fails, and all later ones would succeed. No call is acknowledged any more, but reads are still answered.
#[test]
fn after_a_failed_sync_nothing_is_acknowledged() {
    if !has("a failing sync", &STRACE) {
        return;
    }
    read_only_after("fdatasync:error=EIO:when=9");
}

#[test]
fn after_a_failed_write_nothing_is_acknowledged() {
    if !has("a failing write", &STRACE) {
        return;
    }
    read_only_after("pwrite64:error=ENOSPC:when=7");
}

fn read_only_after(inject: &str) {
    let mut stage = Stage::new();
    let server = stage.home.start();
    let injection = Injection::into_running(server.pid(), inject, stage.path());
    let caller = Caller::new(&server.url, &stage.history);
    let before = key("before");
    caller.put(&before, wall_ms() + HOUR_MS, 1).expect("before the fault");
    stage.load(&server, Duration::from_secs(20));

    let acknowledged = stage.history.acknowledged();
    let caller = Caller::new(&server.url, &stage.history);
    for number in 0..3 {
        let put = caller.put(&key(&format!("after{number}")), wall_ms() + HOUR_MS, 1);
        assert!(matches!(put, Err(Silence::Refused(503))), "a put is answered with {put:?}");
        let cancel = caller.cancel(&before);
        assert!(matches!(cancel, Err(Silence::Refused(503))), "a cancel is answered with {cancel:?}");
    }
    assert_eq!(stage.history.acknowledged(), acknowledged);
    let (status, said) = ready(&server.url);
    assert_eq!((status, &said["ready"]), (503, &false.into()));
    assert!(said["read_only"].is_string(), "{said}");
    assert_eq!(said["status"], "read_only", "{said}");
    let told = wait_for("a line in the log", || {
        Some(stage.home.lines("read_only")).filter(|lines| !lines.is_empty())
    });
    assert!(told.len() == 1 && told[0].contains("shard-0000/log-"), "it names the file, once: {told:?}");
    assert!(matches!(caller.get(&before), Ok(Answer::Live { .. })), "GET is answered");
    match caller.list("0") {
        Ok(tasks) => assert!(tasks.iter().any(|(key, _)| *key == before)),
        // The failed write was the last change of one of these tasks, and its outcome is unknown.
        Err(silence) => {
            assert!(matches!(silence, Silence::Refused(503)), "a list is answered with {silence:?}")
        }
    }
    assert_eq!((page(&server.url, "/healthz").0, page(&server.url, "/metrics").0), (200, 200));

    let trace = injection.end();
    assert!(trace.contains("(INJECTED)"), "nothing was injected:\n{trace}");
    let put = caller.put(&key("late"), wall_ms() + HOUR_MS, 1);
    assert!(
        matches!(put, Err(Silence::Refused(503))),
        "the disk is well again, and a put is answered with {put:?}"
    );
    server.kill();
    stage.restart_and_judge(inject);
}

/// The kernel takes two bytes of a write, and the server writes the rest. (strace does not write those two bytes, so
/// the file is then damaged, and the server has to refuse it by name.)
#[test]
fn a_short_write_is_gone_on_with_and_damage_is_refused() {
    if !has("a short write", &STRACE) {
        return;
    }
    let stage = Stage::new();
    let server = stage.home.start();
    let caller = Caller::new(&server.url, &stage.history);
    let injection = Injection::into_running(server.pid(), "pwrite64:retval=2:when=2", stage.path());
    for number in 0..4 {
        let put = caller.put(&key(&format!("k{number}")), wall_ms() + HOUR_MS, 1);
        assert!(matches!(put, Ok(Answer::Created { .. })), "{put:?}");
    }
    let trace = injection.end();
    let mut lines = trace.lines().filter(|line| line.contains("pwrite64"));
    let place = |line: &str| -> Option<(u64, u64)> {
        let mut numbers = line.rsplit_once(") = ")?.0.rsplit(", ");
        let offset = numbers.next()?.parse().ok()?;
        Some((numbers.next()?.parse().ok()?, offset))
    };
    let short = lines
        .find(|line| line.contains("INJECTED"))
        .unwrap_or_else(|| panic!("nothing was injected:\n{trace}"));
    let (bytes, offset) = place(short).expect("a write");
    let rest = lines.next().and_then(place);
    assert_eq!(rest, Some((bytes - 2, offset + 2)), "the rest of the short write:\n{trace}");
    server.kill();
    let status = Starting::of(&mut stage.home.command(&[])).ready().err();
    assert_eq!(
        status.and_then(|status| status.code()),
        Some(1),
        "a damaged frame with others behind it is refused"
    );
    let words = stage.home.last_words();
    assert!(words.contains("shard-0000/log-"), "it names the file: {words}");
}

/// A server that is killed in the middle of its syncs loses nothing.
#[test]
fn a_death_at_a_sync_loses_nothing() {
    if !has("a death at a sync", &STRACE) {
        return;
    }
    let mut stage = Stage::new();
    for when in if is_long() { (1..200).step_by(7) } else { (3..20).step_by(8) } {
        let server = stage.home.start();
        let inject = format!("fdatasync:signal=KILL:when={when}");
        let _injection = Injection::into_running(server.pid(), &inject, stage.path());
        stage.load(&server, Duration::from_secs(20));
        assert_eq!(server.ended().signal(), Some(9), "{inject}");
        stage.restart_and_judge(&inject);
    }
}

/// No answer comes before its sync. So if each sync takes 300 ms, each put takes as long. Calls that were under way
/// at a kill took effect or did not.
#[test]
fn answers_wait_for_a_slow_sync() {
    if !has("a slow sync", &STRACE) {
        return;
    }
    let mut stage = Stage::new();
    let server = stage.home.start_as(stage.home.command(&[]).args(["--slow-commit", "200ms"]));
    let caller = Caller::new(&server.url, &stage.history);
    let _injection = Injection::into_running(server.pid(), "fdatasync:delay_enter=300000", stage.path());
    for number in 0..2 {
        let one = key(&format!("slow{number}"));
        let begun = Instant::now();
        caller.put(&one, wall_ms() + HOUR_MS, 1).expect("it is slow, not broken");
        assert!(begun.elapsed() >= Duration::from_millis(300), "put answered after {:?}", begun.elapsed());
        let begun = Instant::now();
        caller.cancel(&one).expect("it is slow, not broken");
        assert!(begun.elapsed() >= Duration::from_millis(300), "cancel answered after {:?}", begun.elapsed());
    }
    let told = wait_for("a line in the log", || {
        Some(stage.home.lines("commit_slow")).filter(|lines| !lines.is_empty())
    });
    let took_ms = |line: &str| -> Option<u64> {
        let (_, rest) = line.split_once("took_ms=")?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    assert_eq!(told.len(), 1, "four were slow, and the first is told: {told:?}");
    assert!(took_ms(&told[0]).is_some_and(|took| took >= 300), "{told:?}");
    let load =
        Load { seed: 1, round: 1, large: LARGE, live: &[], stop: &AtomicBool::new(false), kept: &stage.kept };
    load.run(&caller, |_| {
        wait_for("a call that waits for a sync", || (stage.history.in_flight() > 0).then_some(()));
        server.kill();
    });
    stage.restart_and_judge("a kill amid slow syncs");
}

/// A disk that does not answer cannot keep a server from ending, because the second signal does not wait for the
/// disk.
#[test]
fn a_second_signal_ends_a_stop_that_waits_for_the_disk() {
    if !has("a disk that does not answer", &STRACE) {
        return;
    }
    let stage = Stage::new();
    let server = stage.home.start();
    let caller = Caller::new(&server.url, &stage.history);
    caller.put(&key("held"), wall_ms(), 1).expect("all is well");
    wait_for("a lease", || caller.lease("0", 1, 1_000).ok().filter(|leased| !leased.is_empty()));
    let injection = Injection::into_running(server.pid(), "fdatasync:delay_enter=12000000", stage.path());
    server.signal(Signal::TERM);
    // The lease is being written to the disk, so the two signals do not count as one stop.
    injection.wait_for_call("pwrite64");
    // strace keeps the syncing thread, and so the process, until its delay is over.
    wait_for("the server to give up", || {
        server.signal(Signal::TERM);
        stage.home.last_words().contains("stopped at once").then_some(())
    });
    assert_eq!(server.ended().code(), Some(1), "whoever watches it should know");
    drop(injection);
    // The outcome of the lease is unknown; the task is there.
    let server = stage.home.start();
    let caller = Caller::new(&server.url, &stage.history);
    assert!(matches!(caller.get(&key("held")), Ok(Answer::Live { .. })));
}

/// The N-th call of each kind fails, beginning with the start of the server. The server may refuse to start or to go
/// on. The next server has everything.
#[test]
fn whichever_call_fails_nothing_is_lost() {
    if !has("each call's failing", &STRACE) {
        return;
    }
    let faults = [
        "fdatasync:error=EIO",
        "fdatasync:error=ENOSPC",
        "pwrite64:error=EIO",
        "pwrite64:error=ENOSPC",
        "fsync:error=EIO",
        "rename:error=EIO",
        "ftruncate:error=EIO",
    ];
    let (nths, life_ms): (&[u32], u64) =
        if is_long() { (&[1, 2, 3, 4, 5, 6, 8, 10, 13, 20, 30, 50, 80, 130], 600) } else { (&[2, 12], 300) };
    let mut stage = Stage::new();
    let (mut runs, mut met, mut refused) = (0, 0, 0);
    for fault in faults {
        for nth in nths {
            let inject = format!("inject={fault}:when={nth}");
            let trace = stage.path().join("trace").display().to_string();
            runs += 1;
            match Starting::of(&mut stage.home.command(&from_the_start(&inject, &trace))).ready() {
                Ok(server) => {
                    stage.load(&server, Duration::from_millis(life_ms));
                    server.kill();
                }
                Err(status) => {
                    assert!(!status.success());
                    refused += 1;
                }
            }
            let seen = std::fs::read_to_string(&trace).expect("read the trace");
            met += u32::from(seen.contains("INJECTED"));
            stage.restart_and_judge(&inject);
        }
    }
    say(&format!("strace: {runs} runs, the fault was met in {met}, {refused} starts refused; 0 losses"));
    assert!(met * 3 > runs, "the fault was met in {met} of {runs} runs only");
}
