use std::io;

use super::super::fixtures::{acquire, catalog, commit, only_job, setup, writer};
use super::*;
use crate::disk::DiskOp;
use crate::io::Job;
use crate::kit::conformance::sample_task;

fn sync_error() -> DiskError {
    DiskError::new(DiskOp::Sync, "log", io::Error::other("the disk is gone"))
}

fn syncs(calls: &[Call]) -> bool {
    calls.iter().any(|call| matches!(call, Call::Sync(_)))
}

/// Makes the frame of the commit and gives out the job that writes the frame. Returns the result of `write_pending`, and the job.
fn send(writer: &mut LogWriter, jobs: &mut Jobs, setup: &Setup, id: u64, commit: Request) -> (Sent, Job) {
    writer.prepare(RequestId(id), commit, &catalog()).expect("it is the owner's");
    let sent = writer.write_pending(jobs, setup);
    (sent, only_job(jobs))
}

#[test]
fn a_commit_of_another_owner_is_fenced_and_makes_no_frame() {
    let (setup, mut jobs) = (setup(AckLevel::Fsync), Jobs::default());
    let mut writer = writer(&setup);
    let ownership = acquire(&mut writer, &mut jobs, &setup);
    for other in [
        Ownership { epoch: Epoch(ownership.epoch.0 + 1), ..ownership },
        Ownership { shard: ShardId::new(1, 2).expect("a shard"), ..ownership },
    ] {
        let refused = writer.prepare(RequestId(2), commit(other, 1, Vec::new(), false), &catalog());
        assert!(matches!(refused.expect_err("another owner").as_ref(), Reply::Fenced));
    }
    assert_eq!(writer.pending_bytes(), None);
}

#[test]
fn a_commit_counts_when_its_job_with_the_sync_is_over() {
    let (setup, mut jobs) = (setup(AckLevel::Fsync), Jobs::default());
    let mut writer = writer(&setup);
    let ownership = acquire(&mut writer, &mut jobs, &setup);
    let commit = commit(ownership, 1, vec![1], false);
    let (sent, job) = send(&mut writer, &mut jobs, &setup, 2, commit);
    assert!(matches!(sent, Sent::Frame));
    assert!(matches!(job.calls[..], [Call::Write { .. }, Call::Sync(_)]), "{job:?}");
    assert!(writer.has(job.id) && writer.is_writing());
    assert!(matches!(
        writer.completed(job.id, Ok(())),
        Written::Committed(Committed { id: RequestId(2), .. })
    ));
    assert_eq!((writer.ownership().last_seq, writer.synced_end().frame), (Seq(1), 2));
}

#[test]
fn a_commit_that_counts_when_it_is_written_is_synced_by_the_next_job() {
    let (setup, mut jobs) = (setup(AckLevel::Os), Jobs::default());
    let mut writer = writer(&setup);
    let ownership = acquire(&mut writer, &mut jobs, &setup);
    let commit = commit(ownership, 1, vec![1], false);
    let (_, job) = send(&mut writer, &mut jobs, &setup, 2, commit);
    assert!(!syncs(&job.calls), "{job:?}");
    assert!(matches!(writer.completed(job.id, Ok(())), Written::Committed(_)));
    assert_eq!(writer.synced_end().frame, 1, "the frame of the commit is not synced yet");
    writer.sync(&mut jobs);
    writer.sync(&mut jobs);
    let job = only_job(&mut jobs);
    assert!(syncs(&job.calls) && matches!(writer.completed(job.id, Ok(())), Written::Nothing));
    assert_eq!(writer.synced_end().frame, 2);
}

#[test]
fn a_commit_that_counts_at_once_is_not_answered_a_second_time() {
    let (setup, mut jobs) = (setup(AckLevel::Memory), Jobs::default());
    let mut writer = writer(&setup);
    let ownership = acquire(&mut writer, &mut jobs, &setup);
    for (seq, result) in [(1, Ok(())), (2, Err(sync_error()))] {
        let commit = commit(ownership, seq, vec![1], false);
        let (early, job) = send(&mut writer, &mut jobs, &setup, seq, commit);
        assert!(matches!(early, Sent::Early(Committed { id, .. }) if id == RequestId(seq)), "{early:?}");
        match writer.completed(job.id, result) {
            Written::Nothing => assert_eq!(seq, 1),
            Written::Failed { id: None, .. } => assert_eq!(seq, 2),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_write_that_failed_is_told_to_the_request_that_has_no_answer() {
    let (setup, mut jobs) = (setup(AckLevel::Fsync), Jobs::default());
    let mut writer = writer(&setup);
    let ownership = acquire(&mut writer, &mut jobs, &setup);
    let commit = commit(ownership, 1, vec![1], false);
    let (_, job) = send(&mut writer, &mut jobs, &setup, 2, commit);
    let failed = writer.completed(job.id, Err(sync_error()));
    assert!(matches!(failed, Written::Failed { id: Some(RequestId(2)), .. }), "{failed:?}");
    assert_eq!(writer.ownership().last_seq, Seq::ZERO, "the change is not in the log");
}

#[test]
fn a_frame_waits_for_a_file_and_a_checkpoint_gives_it_its_body_back() {
    let (setup, mut jobs) = (setup(AckLevel::Fsync), Jobs::default());
    let mut writer = writer(&setup);
    let ownership = acquire(&mut writer, &mut jobs, &setup);
    let mut catalog = catalog();
    catalog.store(&Arc::new(sample_task(1, 1, "q", "k", 1_000)), false);
    writer.end.seq = Seq(1);
    writer
        .prepare(RequestId(2), commit(ownership, 2, vec![0; 100_000], true), &catalog)
        .expect("the owner's");
    let without_body = writer.pending_bytes().expect("a frame");
    assert!(without_body < 1_000, "the log has the body: {without_body} bytes");
    let start = writer.begin_checkpoint(&catalog);
    assert_eq!((start.seq, start.frame), (Seq(1), 1));
    assert!(
        writer.pending_bytes().is_some_and(|bytes| bytes > 100_000),
        "the checkpoint lets go of the body"
    );
    assert!(matches!(writer.write_pending(&mut jobs, &setup), Sent::NeedsFile));
    assert!(writer.files().wants_preparation(writer.pending_bytes()));
    writer.push(RequestId(3), Request::Release { ownership });
    assert_eq!(writer.take_unwritten().collect::<Vec<_>>(), [RequestId(2), RequestId(3)]);
}
