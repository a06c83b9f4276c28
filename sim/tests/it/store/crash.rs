//! The store on a disk that crashes, fails and fills up: every acknowledged batch is there, a batch that was not
//! acknowledged is there as a whole or not at all, and damage is refused or reported.

use tickwheel_engine::{Batch, Reply, Request, ShardStore};
use tickwheel_sim::disk::{Fault, SimDisk};
use tickwheel_sim::rng::Rng;
use tickwheel_store::conformance::Setup;
use tickwheel_store::{DiskStore, HistoryLimits, InlineIo, OpenError};

use crate::store::world::{Came, Model, Store, acquire, ask, commit, contents, open, rest, try_contents};

/// A *life* is the work of one process of the store, until it ended or failed.
struct Life {
    /// The acknowledged state.
    done: Model,
    /// The state after the batch that was sent and not acknowledged.
    perhaps: Option<Model>,
    /// Whether every batch was acknowledged.
    whole: bool,
    /// Whether the shard was acquired. Before that, no client was told anything of the recovered state.
    acquired: bool,
}

impl Life {
    fn ended(done: &Model, perhaps: Option<Model>) -> Self {
        Self { done: done.clone(), perhaps, whole: false, acquired: true }
    }
}

/// Acquires the shard, commits `batches` random batches and lets the background work between them.
fn live(store: &mut Store, start: &Model, batches: usize, rng: &mut Rng) -> Life {
    let mut done = start.clone();
    let Ok(ownership) = acquire(store) else {
        return Life { acquired: false, ..Life::ended(&done, None) };
    };
    assert_eq!(ownership.last_seq.0, done.seq, "the next change would not follow the last");
    for _ in 0..batches {
        let (next, batch) = done.batch(rng);
        match commit(store, ownership, next.seq, batch.clone()) {
            Came::Reply(Reply::Done { .. }) => done = next,
            Came::Reply(Reply::Failed { .. }) => {
                // All later commits must fail too, even if the disk works again.
                let again = commit(store, ownership, next.seq, batch);
                assert!(
                    matches!(again, Came::Reply(Reply::Failed { .. })),
                    "a failed store answered {again:?}"
                );
                // If the machine died, reads fail too.
                if let Ok(table) = try_contents(store) {
                    assert_eq!(done.difference(&table), None, "reads of a failed store changed");
                }
                return Life::ended(&done, Some(next));
            }
            other => panic!("a commit was answered {other:?}"),
        }
        rest(store, rng.below(6));
    }
    assert_eq!(done.difference(&contents(store)), None);
    // If the disk was full for one call, the store has asked for the free bytes again since. An empty commit returns them.
    rest(store, 100);
    match commit(store, ownership, done.seq, Batch::default()) {
        Came::Reply(Reply::Done { room }) => assert!(room > 0, "no room on an empty disk"),
        Came::Reply(Reply::Failed { .. }) => return Life::ended(&done, None),
        other => panic!("a commit of nothing was answered {other:?}"),
    }
    Life { done, perhaps: None, whole: true, acquired: true }
}

/// Opens the disk and checks that the state is the acknowledged one, with or without the batch that was not acknowledged.
fn settle(disk: &SimDisk, life: &Life, story: &str) -> (Store, Model) {
    let mut store = open(disk)
        .unwrap_or_else(|error| panic!("{story}: failed to open the store: {error}\n{:?}", disk.files()));
    let table = contents(&mut store);
    let without = life.done.difference(&table);
    let with = life.perhaps.as_ref().map(|perhaps| perhaps.difference(&table));
    let found = match (without, with) {
        (None, _) => life.done.clone(),
        (Some(_), Some(None)) => life.perhaps.clone().expect("it was compared"),
        (Some(without), with) => panic!("{story}: {without}; or {with:?}\n{:?}", store.recovery_report()),
    };
    (store, found)
}

fn assert_two_recoveries_are_equal(disk: &SimDisk, story: &str) {
    let [first, second] = [disk.image(), disk.image()];
    let (mut a, mut b) = (open(&first).expect(story), open(&second).expect(story));
    assert_eq!(contents(&mut a), contents(&mut b), "{story}");
    assert_eq!(a.recovery_report(), b.recovery_report(), "{story}");
    drop(a);
    let mut again = open(&first).expect(story);
    assert_eq!(contents(&mut again), contents(&mut b), "{story}: opening it changed it");
}

/// Lets each changing call of a run meet each fault: the machine dies at the call, or the call fails. Then the process
/// is started again, with or without a power cut, and goes on.
#[test]
fn a_fault_at_every_call_of_a_run() {
    for fault in [Fault::Crash, Fault::Error, Fault::LosingSync] {
        let mut nth = 1;
        loop {
            let mut whole = true;
            for variant in 0..3 {
                let story = format!("{fault:?} at call {nth}, variant {variant}");
                let disk = SimDisk::new();
                let mut rng = Rng::new(variant);
                disk.fail_at(nth, fault);
                let life = match open(&disk) {
                    Err(error) => {
                        assert!(matches!(error, OpenError::Io(_)), "{story}: {error}");
                        Life::ended(&Model::default(), None)
                    }
                    Ok(mut store) => live(&mut store, &Model::default(), 60, &mut rng),
                };
                whole &= life.whole;
                disk.forget_faults();
                let mut crash = Rng::new(nth * 7 + variant);
                // The process is started again: after a power cut if the machine died or in variant 2, else on the machine that went on.
                if disk.is_crashed() || variant == 2 {
                    disk.crash(&mut crash);
                }
                assert_two_recoveries_are_equal(&disk, &story);
                let (mut store, found) = settle(&disk, &life, &story);
                let life = live(&mut store, &found, 8, &mut rng);
                assert!(life.whole, "{story}: the next life failed");
                drop(store);
                disk.crash(&mut crash);
                settle(&disk, &life, &story);
            }
            if whole {
                break;
            }
            nth += 1;
        }
        assert!(nth > 300, "a run of {nth} calls meets too little");
    }
}

/// Processes that end in crashes. Between them, up to five recoveries in a row crash.
#[test]
fn crashes_in_lives_and_in_recoveries() {
    let mut torn = 0;
    let mut deepest = 0;
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let disk = SimDisk::new();
        let mut life = Life::ended(&Model::default(), None);
        for round in 0..6 {
            let story = format!("seed {seed}, round {round}");
            let mut depth = 0;
            // Recoveries that crash before they end.
            while rng.chance(60) && depth < 5 {
                depth += 1;
                disk.fail_at(rng.between(1, 8), Fault::Crash);
                let acquired = open(&disk).map(|mut store| acquire(&mut store));
                disk.forget_faults();
                if let Ok(Ok(_)) = acquired {
                    assert!(!disk.is_crashed(), "{story}: a dead machine answered");
                }
                disk.crash(&mut rng);
            }
            deepest = deepest.max(depth);
            let (mut store, found) = settle(&disk, &life, &story);
            torn += u32::from(store.recovery_report().torn.is_some());
            disk.fail_at(
                rng.between(1, 400),
                rng.pick(&[Fault::Crash, Fault::Crash, Fault::Error, Fault::LosingSync]),
            );
            let next = live(&mut store, &found, 60, &mut rng);
            // The last frame that was found may come from a process whose sync failed. Until it is written again, it may still be lost.
            if next.acquired {
                life = next;
            }
            if rng.chance(30) && life.whole {
                let ownership = acquire(&mut store).ok();
                if let Some(ownership) = ownership {
                    drop(ask(&mut store, Request::Release { ownership }));
                }
            }
            drop(store);
            disk.forget_faults();
            if disk.is_crashed() || rng.chance(70) {
                disk.crash(&mut rng);
            }
        }
        settle(&disk, &life, &format!("seed {seed}, at the end"));
    }
    assert!(torn > 20, "only {torn} torn frames were met");
    assert!(deepest >= 3, "recoveries died {deepest} deep only");
}

/// Flips one bit of the synced bytes. The store must refuse to open and name the place, report what it left out, or not
/// need the bit.
#[test]
fn a_flipped_bit_is_refused_or_reported_or_of_no_meaning() {
    let (mut refused, mut reported, mut meaningless) = (0, 0, 0);
    for seed in 0..50 {
        let mut rng = Rng::new(seed);
        let disk = SimDisk::new();
        let mut store = open(&disk).expect("a new disk opens");
        let life = live(&mut store, &Model::default(), 20 + seed as usize, &mut rng);
        drop(store);
        disk.crash(&mut rng);
        // The spare note has no meaning as long as it is there. The stamps have tests of their own.
        let is_left_out = |name: &str| name.ends_with("/spare-note") || name.ends_with("stamp");
        let has_meaning = |(name, len): &(String, usize)| *len > 0 && !is_left_out(name);
        let files: Vec<(String, usize)> = disk.files().into_iter().filter(has_meaning).collect();
        for _ in 0..60 {
            let damaged = disk.image();
            let (file, len) = &files[rng.index(files.len())];
            // Half of the flips hit the first 6,000 bytes, where the header and the first frame are.
            let within = if rng.chance(50) { *len } else { (*len).min(6_000) };
            let byte = rng.index(within);
            damaged.flip_bit(file, byte, rng.below(8) as u8);
            let story = format!("seed {seed}: byte {byte} of {file}");
            match open(&damaged) {
                Err(OpenError::Corrupt { file: named, .. }) => {
                    assert!(
                        damaged.files().iter().any(|(name, _)| *name == named),
                        "{story}: {named} was blamed"
                    );
                    refused += 1;
                }
                Err(error) => panic!("{story}: {error}"),
                Ok(mut store) => {
                    // The checksum of a record is checked only when the record is read.
                    let table = match try_contents(&mut store) {
                        Ok(table) => table,
                        Err(why) => {
                            assert!(why.contains(file.as_str()), "{story}: {why}");
                            refused += 1;
                            continue;
                        }
                    };
                    let report = store.recovery_report();
                    match life.done.difference(&table) {
                        None => meaningless += 1,
                        Some(_) if report.torn.is_some() => reported += 1,
                        Some(difference) => panic!("{story}: silently {difference}\n{report:?}"),
                    }
                }
            }
        }
    }
    assert!(refused > 200 && reported > 0 && meaningless > 200, "{refused} {reported} {meaningless}");
}

/// If the disk is full at a call of the background work, the store goes on; if it is full at a call of a commit, the store fails.
#[test]
fn a_full_disk_at_every_call_of_a_run() {
    let (mut went_on, mut stopped) = (0, 0);
    let mut nth = 1;
    loop {
        let story = format!("full at call {nth}");
        let disk = SimDisk::new();
        let mut rng = Rng::new(nth);
        disk.fail_at(nth, Fault::Full);
        let life = match open(&disk) {
            Err(error) => {
                assert!(matches!(error, OpenError::Io(_)), "{story}: {error}");
                Life::ended(&Model::default(), None)
            }
            Ok(mut store) => {
                let life = live(&mut store, &Model::default(), 60, &mut rng);
                if let Some(why) = store.failure() {
                    let at_commit =
                        why.contains("write shard-0000/log") || why.contains("sync shard-0000/log");
                    // In the other case the sync of a directory failed, so it is unknown whether the name of a
                    // checkpoint is durable.
                    let at_name = why.contains("sync directory shard-0000");
                    assert!(at_commit || at_name, "{story}: the store stopped: {why}");
                    stopped += u32::from(at_commit);
                }
                life
            }
        };
        let met = disk.changes() >= nth;
        went_on += u32::from(life.whole && met);
        disk.forget_faults();
        disk.crash(&mut rng);
        let (mut store, found) = settle(&disk, &life, &story);
        assert!(live(&mut store, &found, 4, &mut rng).whole, "{story}: the next life failed");
        if !met {
            break;
        }
        nth += 1;
    }
    assert!(went_on > 30, "the store went on after {went_on} of {nth} full disks");
    // The calls of commits are a write and a sync for each of 62 frames, and the syncs of the log files that were
    // prepared for them.
    assert!(stopped <= 2 * 62 + 62, "the store stopped at {stopped} of {nth} full disks");
}

/// A release is tried at every position of the log in its file, and in every state of the background work.
#[test]
fn a_release_always_comes_to_its_end() {
    for seed in 0..600 {
        let disk = SimDisk::new();
        let mut rng = Rng::new(seed);
        let commits = rng.below(20);
        let mut store = open(&disk).expect("a new disk opens");
        let ownership = acquire(&mut store).expect("it can be had");
        let mut model = Model::default();
        for _ in 0..commits {
            let (next, batch) = model.batch(&mut rng);
            let reply = commit(&mut store, ownership, next.seq, batch);
            assert!(matches!(reply, Came::Reply(Reply::Done { .. })), "after {commits} commits: {reply:?}");
            model = next;
        }
        let reply = ask(&mut store, Request::Release { ownership });
        assert!(matches!(reply, Came::Reply(Reply::Released)), "after {commits} commits: {reply:?}");
        drop(store);
        disk.crash(&mut rng);
        settle(&disk, &Life { done: model, perhaps: None, whole: true, acquired: true }, "after a release");
    }
}

/// Makes stores on simulated disks.
struct Simulated(SimDisk);

impl tickwheel_store::conformance::Maker for Simulated {
    type Store = Store;

    fn create(&mut self, setup: &Setup) -> Store {
        self.0 = SimDisk::new();
        self.reopen_with(setup)
    }

    fn reopen(&mut self, setup: &Setup, store: Store) -> Store {
        drop(store);
        self.0.crash(&mut Rng::new(5));
        self.reopen_with(setup)
    }
}

impl Simulated {
    fn reopen_with(&mut self, setup: &Setup) -> Store {
        let mut options = crate::store::world::options();
        options.secret = setup.secret;
        options.history = HistoryLimits::last(setup.history_per_queue);
        options.bounds.acquired_page = setup.acquired_page;
        DiskStore::open(self.0.clone(), InlineIo::new(), options).expect("it opens")
    }
}

#[test]
fn it_is_a_store_on_a_disk_that_loses_power() {
    tickwheel_store::conformance::durable(&mut Simulated(SimDisk::new()));
}
