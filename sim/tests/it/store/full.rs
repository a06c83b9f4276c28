//! The store on a disk that fills up. The free bytes that it reports (`room`) end the growth before any call fails.
//! Ends of tasks are always taken, and growth goes on when there is space again.

use std::sync::Arc;

use tickwheel_engine::{Batch, Ended, LeaseNo, Outcome, Ownership, Reply, Seq, Task, TaskEffect, Timestamp};
use tickwheel_sim::disk::{Fault, SimDisk};
use tickwheel_store::DiskOp;
use tickwheel_store::conformance::sample_task;
use tickwheel_store::salvage::{Report, WriteError, read, write_as};

use crate::store::world::{Came, Store, acquire, commit, contents, open, options, rest};

struct Owner {
    store: Store,
    ownership: Ownership,
    seq: u64,
    live: Vec<Arc<Task>>,
    room: u64,
    lacks_descriptor: bool,
}

/// The bytes that an engine counts for a task of this test, its names and numbers included.
const GROWTH: u64 = 700;

impl Owner {
    fn new(disk: &SimDisk) -> Self {
        let mut store = open(disk).expect("it opens");
        let ownership = acquire(&mut store).expect("it can be had");
        let mut owner = Self {
            store,
            ownership,
            seq: ownership.last_seq.0,
            live: Vec::new(),
            room: 0,
            lacks_descriptor: false,
        };
        owner.look();
        owner
    }

    fn commit(&mut self, effects: Vec<TaskEffect>) {
        let came = commit(&mut self.store, self.ownership, self.seq, Batch { effects, ..Batch::default() });
        self.lacks_descriptor = matches!(came, Came::Reply(Reply::DoneWithoutDescriptor));
        match came {
            Came::Reply(Reply::Done { room }) => self.room = room,
            Came::Reply(Reply::DoneWithoutDescriptor) => self.room = 0,
            other => panic!("a commit with {} live tasks was answered {other:?}", self.live.len()),
        }
        rest(&mut self.store, 3);
    }

    /// Lets the background work, and gets the free bytes by an empty commit.
    fn look(&mut self) {
        rest(&mut self.store, 30);
        self.commit(Vec::new());
    }

    fn put(&mut self) {
        self.seq += 1;
        let mut task = sample_task(self.seq, self.seq, "q", &format!("k{}", self.seq), 5);
        task.body = Arc::new(tickwheel_engine::Body {
            payload: vec![b'x'; 400],
            content_type: "text/plain".into(),
            ..tickwheel_engine::Body::default()
        });
        let task = Arc::new(task);
        self.live.push(Arc::clone(&task));
        self.commit(vec![TaskEffect::Stored { task, body_known: false }]);
    }

    fn put_while_there_is_room(&mut self) -> usize {
        let before = self.live.len();
        while self.room >= GROWTH && self.live.len() < before + 10_000 {
            self.put();
        }
        self.live.len() - before
    }

    fn end(&mut self) {
        self.end_at_once(1);
    }

    /// Ends `count` tasks in one commit.
    fn end_at_once(&mut self, count: usize) {
        let ended: Vec<Arc<Task>> = self.live.drain(..count).collect();
        let effects = ended.into_iter().map(|task| {
            self.seq += 1;
            TaskEffect::Ended(Ended {
                id: task.id,
                queue: task.queue.clone(),
                key: task.key.clone(),
                seq: Seq(self.seq),
                at: Timestamp::EPOCH,
                outcome: Outcome::Done(LeaseNo(9)),
            })
        });
        let effects = effects.collect();
        self.commit(effects);
    }

    fn assert_reopens(self, disk: &SimDisk) {
        let expected: Vec<Arc<Task>> = self.live;
        drop(self.store);
        let mut store = open(disk).expect("it opens again");
        assert_eq!(contents(&mut store).tasks_from(0).cloned().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn its_own_growth_stops_in_time_and_ends_make_room_again() {
    let disk = SimDisk::new();
    disk.set_space(Some(200_000));
    let mut owner = Owner::new(&disk);
    let first = owner.put_while_there_is_room();
    assert!(first > 60, "{first} tasks of 400 bytes in 200,000 bytes");
    // Every task can end, with one commit for each task, and growth goes on after that. The test does this five
    // times.
    for _ in 0..5 {
        while !owner.live.is_empty() {
            owner.end();
        }
        owner.look();
        let again = owner.put_while_there_is_room();
        assert!(again > first / 2, "{again} tasks fit after all {first} had ended");
    }
    owner.assert_reopens(&disk);
}

/// The story: a restart on a disk without a free byte was refused for a note of 64 bytes, so nothing that was due went out.
#[test]
fn an_opening_on_a_full_disk_has_space_for_its_note() {
    let disk = SimDisk::new();
    disk.set_space(Some(200_000));
    let mut owner = Owner::new(&disk);
    owner.put_while_there_is_room();
    // The ends of tasks let checkpoints free log files, which are spares then.
    while !owner.live.is_empty() {
        owner.end();
    }
    owner.look();
    drop(owner.store);
    let bytes = disk.files().iter().map(|(_, len)| *len as u64).sum();
    disk.set_space(Some(bytes));
    // Each opening takes a spare log file.
    for time in 0..2 {
        let mut store = open(&disk).unwrap_or_else(|why| panic!("{time}: {why:?} {:?}", disk.files()));
        assert!(acquire(&mut store).is_ok(), "and is taken");
        rest(&mut store, 30);
    }
}

/// A purge ends all tasks in a commit that is small compared with their records. So the size of the log gives no
/// reason for a checkpoint, and the space is in segments without a live task and in spare log files.
#[test]
fn a_purge_gives_the_space_back() {
    let disk = SimDisk::new();
    disk.set_space(Some(300_000));
    let mut owner = Owner::new(&disk);
    let first = owner.put_while_there_is_room();
    assert!(first > 60, "{first} tasks of 400 bytes in 300,000 bytes");
    for _ in 0..5 {
        owner.end_at_once(owner.live.len());
        for _ in 0..10 {
            owner.look();
        }
        let again = owner.put_while_there_is_room();
        assert!(again > first * 3 / 4, "{again} tasks fit after all {first} had ended at once");
    }
    owner.assert_reopens(&disk);
}

fn live(report: &Report) -> u64 {
    report.written.queues.values().map(|population| population.live).sum()
}

/// A salvage ends on a disk of any size. Either it saves everything, or it says that the disk is full.
#[test]
fn a_salvage_into_a_disk_that_fills_ends() {
    let mut source = SimDisk::new();
    let mut owner = Owner::new(&source);
    for _ in 0..300 {
        owner.put();
    }
    drop(owner.store);
    let mut refused = 0;
    for space in (0..500_000).step_by(3_000) {
        let found = read(&mut source, &mut |_| {}).expect("it can be read");
        let target = SimDisk::new();
        target.set_space(Some(space));
        match write_as(found, &mut source, target.clone(), options(), &mut |_| {}) {
            Ok(report) => assert_eq!(live(&report), 300, "{space} bytes"),
            Err(WriteError::Full | WriteError::Open(_)) => refused += 1,
            Err(other) => panic!("{space} bytes: {other}"),
        }
    }
    assert!((20..150).contains(&refused), "{refused} disks of 167 were too small");
}

#[test]
fn others_take_the_space_and_give_it_back() {
    for taken_after in 1..60 {
        let disk = SimDisk::new();
        let mut owner = Owner::new(&disk);
        for _ in 0..taken_after {
            owner.put();
        }
        disk.set_space(Some(0));
        owner.look();
        let taken = owner.put_while_there_is_room();
        assert!(taken < 40, "{taken} tasks were taken on a full disk");
        // These ends use the reserve, which is a quarter of a log file.
        for _ in 0..owner.live.len().min(15) {
            owner.end();
        }
        disk.set_space(None);
        owner.look();
        assert!(
            owner.room > 1 << 40,
            "{} bytes of room on an empty disk, taken after {taken_after}",
            owner.room
        );
        for _ in 0..50 {
            owner.put();
        }
        owner.assert_reopens(&disk);
    }
}

/// The story: the descriptors of a process were used up when the log needed a new file, and the store failed for good.
#[test]
fn without_a_descriptor_growth_is_refused_and_ends_go_on_until_there_is_one() {
    let disk = SimDisk::new();
    let mut owner = Owner::new(&disk);
    for nth in 1..=5_000 {
        disk.fail_nth(DiskOp::Create, nth, Fault::NoDescriptor);
    }
    while !owner.lacks_descriptor {
        owner.put();
    }
    // The next file is wanted when a quarter of the first one is used.
    for _ in 0..owner.live.len() {
        owner.end();
        assert!(owner.lacks_descriptor);
    }
    disk.forget_faults();
    owner.look();
    assert!(!owner.lacks_descriptor && owner.room >= GROWTH);
    owner.put();
    owner.assert_reopens(&disk);
}
