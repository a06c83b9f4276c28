//! Parts of a store for tests of the log writer, the reader or the maintenance alone. These parts use no disk and no thread.

use std::collections::VecDeque;
use std::sync::Arc;

use tickwheel_engine::{Batch, Epoch, Ownership, Request, RequestId, Seq, ShardId, TaskEffect, Timestamp};

use super::jobs::Jobs;
use super::log_writer::{LogWriter, Sent, Written};
use super::setup::Setup;
use crate::bounds::Bounds;
use crate::catalog::{Catalog, Segment};
use crate::checksum::{Seeds, Use};
use crate::history::HistoryLimits;
use crate::index::Spot;
use crate::io::Job;
use crate::kit::conformance::sample_task;
use crate::layout::HEADER_BYTES;
use crate::log::{Files, Progress, Sizes};
use crate::options::{AckLevel, StoreOptions};
use crate::recovery::Last;
use crate::segment::{Bucket, RunWriter};

pub(super) fn setup(ack_level: AckLevel) -> Setup {
    let secret = [7; 16];
    let options = StoreOptions { ack_level, log_file_bytes: 65_536, ..StoreOptions::new(secret) };
    Setup { options, secret, seeds: Seeds::new(secret) }
}

pub(super) fn catalog() -> Catalog {
    Catalog::new([7; 16], HistoryLimits::default(), &Bounds::default())
}

/// Makes a log writer for a new directory, with one log file ready for frames.
pub(super) fn writer(setup: &Setup) -> LogWriter {
    let sizes = Sizes { file_bytes: setup.options.log_file_bytes, spares_max: 4 };
    let progress = Progress { generation: 0, number: 0, synced: 0, newest: None };
    let mut files = Files::new(setup.seeds, sizes, VecDeque::new(), Vec::new(), progress);
    while files.wants_preparation(Some(100)) {
        files.preparation_step(Some(100), 4_096);
        files.step_done();
    }
    let (epoch, wall) = (Epoch(0), Timestamp::EPOCH);
    LogWriter::new(
        ShardId::ONLY,
        files,
        Last { frame: 0, seq: Seq::ZERO, epoch, wall, durable: 0, again: None },
        Seq::ZERO,
    )
}

/// Takes the only job that is ready. Panics if there is not exactly one.
pub(super) fn only_job(jobs: &mut Jobs) -> Job {
    let mut ready: Vec<Job> = jobs.take_ready().map(|(_, job)| job).collect();
    assert_eq!(ready.len(), 1, "{ready:?}");
    ready.remove(0)
}

/// Acquires the shard: makes the writer's first frame, and completes the job that writes the frame. Returns the ownership.
pub(super) fn acquire(writer: &mut LogWriter, jobs: &mut Jobs, setup: &Setup) -> Ownership {
    let request = Request::Acquire { shard: ShardId::ONLY, wall: Timestamp::EPOCH };
    writer.prepare(RequestId(1), request, &catalog()).expect("the shard is free");
    assert!(matches!(writer.write_pending(jobs, setup), Sent::Frame));
    let job = only_job(jobs);
    assert!(matches!(writer.completed(job.id, Ok(())), Written::Acquired { .. }));
    writer.ownership()
}

/// Makes the request that commits one task with this payload.
pub(super) fn commit(ownership: Ownership, seq: u64, payload: Vec<u8>, body_known: bool) -> Request {
    let mut task = sample_task(1, seq, "q", "k", 1_000);
    Arc::make_mut(&mut task.body).payload = payload;
    let effects = vec![TaskEffect::Stored { task: Arc::new(task), body_known }];
    let batch = Batch { effects, ..Batch::default() };
    Request::Commit { ownership, seq: Seq(seq), wall: Timestamp::EPOCH, batch }
}

/// Puts tasks with these ids into one run of a new segment, so that they are far. Returns the bytes of the run.
pub(super) fn add_far(catalog: &mut Catalog, setup: &Setup, ids: &[u64]) -> Vec<u8> {
    let tasks: Vec<_> = ids.iter().map(|id| sample_task(*id, *id, "q", &format!("k{id}"), 1_000)).collect();
    let bucket = Bucket::of(&tasks[0], Timestamp::EPOCH);
    let start = HEADER_BYTES as u64;
    let mut run = RunWriter::new(setup.seeds.of(Use::Segment(1)), start, setup.options.block_bytes);
    for task in &tasks {
        catalog.store(&Arc::new(task.clone()), false);
        run.push(task, catalog.key_of(task));
    }
    let (_, bytes, written) = run.finish();
    let segment = catalog.segments.add(Segment { len: written.end, ..Segment::new(1, bucket, false) });
    catalog.segments.get_mut(segment).add_run(written.run, tasks.len() as u64);
    for entry in written.entries {
        let spot = Spot { segment, offset: start + u64::from(entry.at) };
        catalog.settle(entry.id, Seq(u64::MAX), spot);
    }
    bytes
}
