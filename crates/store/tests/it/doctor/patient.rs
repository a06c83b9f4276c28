//! A small directory that has some of everything.

use std::path::Path;
use std::sync::Arc;

use tickwheel_engine::{
    Batch, Body, Ended, Epoch, LeaseNo, Outcome, Reply, Request, Seq, StoredLease, Task, TaskEffect,
    Timestamp,
};
use tickwheel_store::conformance::{Owner, sample_task};
use tickwheel_store::{Disk, DiskStore, FsDisk, InlineIo, StoreOptions};

use crate::disk::Image;

pub(crate) const START_MS: i64 = 1_700_000_000_000;
const HOUR_MS: i64 = 3_600_000;

pub(crate) fn options() -> StoreOptions {
    let mut options = StoreOptions::new([5; 16]);
    options.log_file_bytes = 8 << 10;
    options.checkpoint_after_bytes = 7 << 10;
    options.segment_bytes = 2 << 10;
    options.block_bytes = 256;
    options
}

pub(crate) fn open<D: Disk>(disk: D) -> Result<DiskStore<D, InlineIo<D>>, tickwheel_store::OpenError> {
    DiskStore::open(disk, InlineIo::new(), options())
}

/// Who makes the directory what it is.
pub(crate) struct Life {
    owner: Owner<DiskStore<FsDisk, InlineIo<FsDisk>>>,
    seq: u64,
    wall_ms: i64,
}

impl Life {
    pub(crate) fn begin(dir: &Path) -> Self {
        let owner = Owner::acquire(open(FsDisk::new(dir).expect("a directory")).expect("it opens"));
        let seq = owner.acquired.ownership.last_seq.0;
        Self { owner, seq, wall_ms: START_MS }
    }

    fn commit(&mut self, effects: Vec<TaskEffect>) {
        self.wall_ms += 1_000;
        let wall = Timestamp::from_ms(self.wall_ms).expect("after 1970");
        let (ownership, seq) = (self.owner.acquired.ownership, Seq(self.seq));
        let batch = Batch { effects, ..Batch::default() };
        let reply = self.owner.ask(Request::Commit { ownership, seq, wall, batch });
        assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
    }

    pub(crate) fn put(&mut self, id: u64, queue: &str, ahead_ms: i64) -> Task {
        self.seq += 1;
        let mut task = sample_task(id, self.seq, queue, &format!("k{id}"), START_MS + ahead_ms);
        task.body = Arc::new(Body::bytes(vec![id as u8; 40]));
        if id.is_multiple_of(7) {
            let until = Timestamp::from_ms(START_MS + ahead_ms).expect("after 1970");
            task.lease = Some(StoredLease { no: LeaseNo(id), until, left_ms: id, written_in: Epoch(1) });
        }
        self.commit(vec![TaskEffect::Stored { task: task.clone().into(), body_known: false }]);
        task
    }

    pub(crate) fn end(&mut self, task: &Task) {
        self.seq += 1;
        let Task { id, queue, key, .. } = task.clone();
        let (seq, at) = (Seq(self.seq), task.due_at);
        self.commit(vec![TaskEffect::Ended(Ended {
            id,
            queue,
            key,
            seq,
            at,
            outcome: Outcome::Done(LeaseNo(9)),
        })]);
    }

    /// Commits of nothing, so that the background gets somewhere.
    pub(crate) fn rest(&mut self, commits: usize) {
        for _ in 0..commits {
            self.commit(Vec::new());
        }
    }

    /// As a kill would.
    pub(crate) fn stop(self) {
        drop(self.owner);
    }
}

/// Segments of all levels with several runs and tombstones, a checkpoint, and a log behind it with more of each.
pub(crate) fn fill(dir: &Path) {
    let mut life = Life::begin(dir);
    let mut id = 0;
    for round in 0..8 {
        let mut put = Vec::new();
        for ahead in [-HOUR_MS, HOUR_MS / 2, HOUR_MS / 2 + 60_000, 90 * HOUR_MS, 2_000 * HOUR_MS] {
            for queue in ["close", "shop/mail"] {
                id += 1;
                put.push(life.put(id, queue, ahead + id as i64));
            }
        }
        if round > 0 {
            life.end(&put[1]);
            life.end(&put[6]);
        }
        life.rest(30);
    }
    let last = [life.put(1_001, "close", HOUR_MS), life.put(1_002, "close", HOUR_MS)];
    life.end(&last[0]);
    life.stop();
}

pub(crate) fn filled() -> Image {
    let dir = tempfile::tempdir().expect("a directory");
    fill(dir.path());
    Image::of(dir.path())
}
