//! The store on a real file system.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tickwheel_engine::{
    Batch, Ended, LeaseNo, Outcome, QueueName, QueueRecord, QueueSettings, Reply, Request, Retention, Rule,
    RuleName, Seq, TaskEffect, Timestamp,
};
use tickwheel_store::conformance::{self, Maker, Owner, Setup, sample_target, sample_task};
use tickwheel_store::{
    ClockMode, DiskStore, FsDisk, HistoryLimits, InlineIo, Io, OpenError, StoreOptions, Table, ThreadIo,
};

type Threaded = DiskStore<FsDisk, ThreadIo>;

fn options(setup: &Setup) -> StoreOptions {
    let mut options = StoreOptions::new(setup.secret);
    options.history = HistoryLimits::last(setup.history_per_queue);
    options.bounds.acquired_page = setup.acquired_page;
    options.log_file_bytes = 64 << 10;
    options
}

fn contents<I: Io<FsDisk>>(store: &mut DiskStore<FsDisk, I>) -> Table {
    conformance::contents(store, Setup::default().history_per_queue).expect("it reads")
}

fn quiet() -> Box<dyn Fn() + Send + Sync> {
    Box::new(|| {})
}

/// Stores with a thread, each in a directory of its own.
struct InDirectories {
    base: tempfile::TempDir,
    made: usize,
}

impl InDirectories {
    fn path(&self) -> PathBuf {
        self.base.path().join(self.made.to_string())
    }
}

impl Maker for InDirectories {
    type Store = Threaded;

    fn create(&mut self, setup: &Setup) -> Threaded {
        self.made += 1;
        DiskStore::open_dir(self.path(), options(setup), quiet()).expect("a new directory opens")
    }

    fn reopen(&mut self, setup: &Setup, store: Threaded) -> Threaded {
        drop(store);
        let mut options = options(setup);
        options.secret = [0; 16];
        DiskStore::open_dir(self.path(), options, quiet()).expect("it opens again")
    }
}

#[test]
fn it_is_a_store() {
    let base = tempfile::tempdir().expect("a directory");
    conformance::durable(&mut InDirectories { base, made: 0 });
}

#[test]
fn a_second_process_is_refused_and_told_where() {
    let base = tempfile::tempdir().expect("a directory");
    let setup = Setup::default();
    let first = DiskStore::open_dir(base.path(), options(&setup), quiet()).expect("it opens");
    let second = DiskStore::open_dir(base.path(), options(&setup), quiet()).expect_err("it is taken");
    assert!(matches!(second, OpenError::Locked { .. }), "{second:?}");
    let text = second.to_string();
    assert!(text.contains(&*base.path().to_string_lossy()), "{text}");
    drop(first);
    DiskStore::open_dir(base.path(), options(&setup), quiet()).expect("it is free again");
}

/// Only the store itself looks at the lock here, before it makes a file.
#[test]
fn no_log_file_is_made_without_the_lock() {
    let base = tempfile::tempdir().expect("a directory");
    let store = DiskStore::open_dir(base.path(), options(&Setup::default()), quiet()).expect("it opens");
    let mut owner = Owner::acquire(store);
    std::fs::remove_file(base.path().join(FsDisk::LOCK_FILE)).expect("removed");
    // Far more than all log files that are ready.
    let failed = (1..=20_000).find_map(|id| {
        let task = Arc::new(sample_task(id, owner.next_seq(), "q", &format!("k{id}"), 3_600_000));
        match owner.commit(vec![TaskEffect::Stored { task, body_known: false }]) {
            Reply::Done { .. } => None,
            Reply::Failed { why } => Some(why),
            other => panic!("a commit was answered {other:?}"),
        }
    });
    let why = failed.expect("a new log file is needed, and is not made");
    assert!(why.contains("lock: the file is gone"), "{why}");
}

#[test]
fn a_directory_lives_by_one_clock() {
    let base = tempfile::tempdir().expect("a directory");
    let setup = Setup::default();
    let mut virtual_clock = options(&setup);
    virtual_clock.clock = ClockMode::Virtual;
    drop(DiskStore::open_dir(base.path(), virtual_clock, quiet()).expect("it opens"));
    let refused = DiskStore::open_dir(base.path(), options(&setup), quiet()).expect_err("the other clock");
    assert!(
        matches!(refused, OpenError::WrongClock { found: ClockMode::Virtual, wanted: ClockMode::Real }),
        "{refused:?}"
    );
}

/// The story: a thousand commits through small files, checkpoints on the way, and nothing is lost, nor does the log grow.
#[test]
fn the_log_goes_round_and_a_checkpoint_lets_it() {
    let base = tempfile::tempdir().expect("a directory");
    let mut options = options(&Setup::default());
    options.log_file_bytes = 16 << 10;
    options.checkpoint_after_bytes = 32 << 10;
    options.background_step_bytes = 4 << 10;
    let open = || {
        let disk = FsDisk::new(base.path()).expect("a directory");
        DiskStore::open(disk, InlineIo::new(), options.clone()).expect("it opens")
    };
    let mut owner = Owner::acquire(open());
    let mut expected = Vec::new();
    for n in 1..=1_000_u64 {
        let task = std::sync::Arc::new(sample_task(n, n, "q", &format!("k{n}"), n as i64 % 100));
        let reply = owner.commit(vec![TaskEffect::Stored { task: task.clone(), body_known: false }]);
        assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
        expected.push(task);
    }
    let mut before = owner.into_store();
    let table = contents(&mut before);
    drop(before);
    let size: u64 = std::fs::read_dir(base.path().join("shard-0000"))
        .expect("the folder")
        .map(|entry| entry.expect("an entry").metadata().expect("its length").len())
        .sum();
    assert!(size < 500 << 10, "{size} bytes for {} tasks", expected.len());
    let mut store = open();
    assert!(store.recovery_report().checkpoint.is_some(), "{:?}", store.recovery_report());
    assert_eq!(contents(&mut store), table);
    assert_eq!(table.tasks_from(0).cloned().collect::<Vec<_>>(), expected);
    for _ in 0..5 {
        let again = Owner::acquire(store);
        store = again.into_store();
        assert_eq!(contents(&mut store), table);
        drop(store);
        store = open();
    }
}

/// The story: the ends of a checkpoint were taken in before the rules were, and a queue that remembers more than others forgot at each
/// start.
#[test]
fn what_a_queue_remembers_by_its_own_rule_survives_a_checkpoint() {
    let base = tempfile::tempdir().expect("a directory");
    let mut options = options(&Setup::default());
    options.checkpoint_after_bytes = 4 << 10;
    let open = || {
        let disk = FsDisk::new(base.path()).expect("a directory");
        DiskStore::open(disk, InlineIo::new(), options.clone()).expect("it opens")
    };
    let mut owner = Owner::acquire(open());
    let history = Some(Retention { keep_ms: u64::MAX, keys: 1_000 });
    let record =
        QueueRecord { settings: QueueSettings { history, ..Default::default() }, ..Default::default() };
    let name = RuleName::Queue(QueueName::new("q").expect("a queue name"));
    // The other rule, with a target, is larger than the log between two checkpoints.
    let rules = vec![(name, Some(Arc::new(Rule::Queue(record)))), sample_target("pushed", 60_000)];
    let said = rules.clone();
    let commit = |owner: &mut Owner<DiskStore<FsDisk, InlineIo<FsDisk>>>, seq: u64, batch: Batch| {
        let wall = Timestamp::from_ms(2_000).expect("after 1970");
        let ownership = owner.acquired.ownership;
        let reply = owner.ask(Request::Commit { ownership, seq: Seq(seq), wall, batch });
        assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
    };
    commit(&mut owner, 0, Batch { rules, ..Batch::default() });
    let many = Setup::default().history_per_queue as u64 * 20;
    for id in 1..=many {
        let task = sample_task(id, 2 * id - 1, "q", &format!("k{id}"), 5);
        let (key, queue) = (task.key.clone(), task.queue.clone());
        let at = Timestamp::from_ms(1_000).expect("after 1970");
        let ended = Ended { id, queue, key, seq: Seq(2 * id), at, outcome: Outcome::Done(LeaseNo(9)) };
        let stored = TaskEffect::Stored { task: Arc::new(task), body_known: false };
        commit(&mut owner, 2 * id - 1, Batch { effects: vec![stored], ..Batch::default() });
        commit(&mut owner, 2 * id, Batch { effects: vec![TaskEffect::Ended(ended)], ..Batch::default() });
    }
    (0..200).for_each(|_| commit(&mut owner, 2 * many, Batch::default()));
    drop(owner);
    let store = open();
    assert!(store.recovery_report().checkpoint.is_some(), "there was a checkpoint");
    assert_eq!(store.ended().count() as u64, many);
    let kept: BTreeMap<_, _> = said.into_iter().filter_map(|(name, rule)| Some((name, rule?))).collect();
    assert_eq!(
        store.rules().map(|(name, rule)| (name.clone(), Arc::clone(rule))).collect::<BTreeMap<_, _>>(),
        kept
    );
}

#[test]
fn a_commit_larger_than_a_file_is_kept() {
    let base = tempfile::tempdir().expect("a directory");
    let mut options = options(&Setup::default());
    options.log_file_bytes = 8 << 10;
    let open = || DiskStore::open_dir(base.path(), options.clone(), quiet()).expect("it opens");
    let mut owner = Owner::acquire(open());
    for n in 1..=6_u64 {
        let mut task = sample_task(n, n, "q", &format!("k{n}"), 5);
        task.body = std::sync::Arc::new(tickwheel_engine::Body {
            payload: vec![n as u8; if n % 2 == 0 { 100_000 } else { 10 }],
            content_type: "application/octet-stream".into(),
            ..tickwheel_engine::Body::default()
        });
        let reply = owner.commit(vec![TaskEffect::Stored { task: task.into(), body_known: false }]);
        assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
    }
    let table = contents(&mut owner.into_store());
    let mut store = open();
    assert_eq!(contents(&mut store), table);
    // The last one was large: the next owner's first frame repeats it.
    let again = Owner::acquire(store).into_store();
    drop(again);
    assert_eq!(contents(&mut open()), table);
}
