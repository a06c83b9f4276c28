//! A due histogram over a store whose bounds are small, so that a few dozen tasks take many parts.

use std::sync::Arc;

use tickwheel_engine::{
    Batch, Body, DueHistogram, Grid, QueueName, Reply, Request, Seq, TaskEffect, Timestamp,
};
use tickwheel_store::conformance::{Owner, sample_task};
use tickwheel_store::{AckLevel, Bounds, DiskStore, FsDisk, InlineIo, StoreOptions};

const START_MS: i64 = 1_700_000_000_000;
const HOUR_MS: i64 = 3_600_000;

struct Life {
    owner: Owner<DiskStore<FsDisk, InlineIo<FsDisk>>>,
    seq: u64,
    /// When each task is due, and whether it is in the queue `p`.
    due: Vec<(i64, bool)>,
}

impl Life {
    fn begin(dir: &std::path::Path, bounds: Bounds) -> Self {
        let mut options = StoreOptions::new([7; 16]);
        options.log_file_bytes = 16 << 10;
        options.checkpoint_after_bytes = 8 << 10;
        options.block_bytes = 512;
        options.ack_level = AckLevel::Memory;
        options.bounds = bounds;
        let disk = FsDisk::new(dir).expect("a directory");
        let owner = Owner::acquire(DiskStore::open(disk, InlineIo::new(), options).expect("it opens"));
        Self { seq: owner.acquired.ownership.last_seq.0, owner, due: Vec::new() }
    }

    fn commit(&mut self, effects: Vec<TaskEffect>) {
        let ownership = self.owner.acquired.ownership;
        let batch = Batch { effects, ..Batch::default() };
        let reply =
            self.owner.ask(Request::Commit { ownership, seq: Seq(self.seq), wall: at(START_MS), batch });
        assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
    }

    fn put(&mut self, due_ms: i64) {
        self.seq += 1;
        let id = self.due.len() as u64 + 1;
        let in_p = id.is_multiple_of(3);
        let queue = if in_p { "p" } else { "q" };
        let mut task = sample_task(id, self.seq, queue, &format!("k{id}"), due_ms);
        task.body = Arc::new(Body::bytes(vec![id as u8; 100]));
        self.commit(vec![TaskEffect::Stored { task: Arc::new(task), body_known: false }]);
        self.due.push((due_ms, in_p));
    }

    /// Commits of nothing, so that a checkpoint comes to its end.
    fn rest(&mut self) {
        (0..60).for_each(|_| self.commit(Vec::new()));
    }

    /// Every due histogram adds up, of all queues and of one, by any width.
    fn check(&mut self) {
        for width_ms in [1, 7, 1_000, HOUR_MS, 10_000 * HOUR_MS] {
            for after in [0, 1, 500, HOUR_MS] {
                for in_p in [false, true] {
                    self.check_one(after, width_ms, in_p);
                }
            }
        }
    }

    fn check_one(&mut self, after: i64, width_ms: i64, in_p: bool) {
        let after_ms = START_MS + after;
        let mut expected = vec![0; 300];
        let meant = self.due.iter().filter(|(due_ms, of_p)| *due_ms > after_ms && (*of_p || !in_p));
        for (due_ms, _) in meant {
            if let Some(count) = expected.get_mut(((due_ms - START_MS) / width_ms) as usize) {
                *count += 1;
            }
        }
        let histogram = DueHistogram {
            queue: in_p.then(|| QueueName::new("p").expect("a good name")),
            after: at(after_ms),
            from: at(START_MS),
            grid: Grid::Even { width_ms: width_ms as u64, buckets: 300 },
        };
        assert_eq!(self.owner.histogram(histogram.clone()), Ok(expected), "{histogram:?}");
    }
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_ms(ms).expect("after 1970")
}

/// Bounds of a due histogram, all of this size.
fn bounds(most: usize) -> Bounds {
    Bounds {
        histogram_read_bytes: 400 * most,
        histogram_bytes: 700 * most,
        histogram_blocks: most,
        histogram_memtable: 2 * most,
        ..Bounds::default()
    }
}

/// The story: sixty thousand tasks, some in the memtable and some in segments, and a forecast counted each task of the memtable about three
/// times. The tasks of the memtable were counted up to the end of the due histogram, then the part ended earlier, because it had met enough
/// blocks; the next part counted them again.
#[test]
fn each_task_counts_once_where_memtable_and_blocks_interleave() {
    for most in [1, 2, 5, 40] {
        // All bounds together, then each bound alone, so that no other bound is in the way.
        for bounds in [
            bounds(most),
            Bounds { histogram_blocks: most, ..Bounds::default() },
            Bounds { histogram_bytes: 600 * most, ..Bounds::default() },
            Bounds { histogram_memtable: most, ..Bounds::default() },
        ] {
            let dir = tempfile::tempdir().expect("a directory");
            let mut life = Life::begin(dir.path(), bounds);
            for id in 1..=120 {
                life.put(START_MS + 1 + id * 7_919 % 1_000 * 40);
            }
            life.rest();
            for id in 1..=30 {
                life.put(START_MS + 1 + id * 104_729 % 1_000 * 40);
            }
            life.check();
        }
    }
}

/// The story: more tasks were due at one instant than a part looks at, and others a millisecond later. Each part came to that
/// instant and no further, for it looked at those again that the part before had counted.
#[test]
fn a_histogram_comes_further_though_many_tasks_are_due_at_one_instant() {
    for most in [1, 2, 5] {
        let dir = tempfile::tempdir().expect("a directory");
        let mut life = Life::begin(dir.path(), bounds(most));
        for round in 0..3 {
            for id in 0..40 {
                life.put(START_MS + 500 + id % 2 + round % 2);
            }
            // The last ones stay in the memtable.
            if round < 2 {
                life.rest();
            }
        }
        life.check();
    }
}
