use std::io;

use tickwheel_engine::RequestId;

use super::super::fixtures::{acquire, catalog, commit, only_job, setup, writer};
use super::*;
use crate::io::Job;

/// The parts of a store, without a disk.
struct Parts {
    setup: Setup,
    catalog: Catalog,
    writer: LogWriter,
    reader: Reader,
    jobs: Jobs,
    maintenance: Maintenance,
}

impl Parts {
    fn new() -> Self {
        let setup = setup(AckLevel::Fsync);
        let (mut writer, mut jobs) = (writer(&setup), Jobs::default());
        acquire(&mut writer, &mut jobs, &setup);
        let (catalog, reader, maintenance) = (catalog(), Reader::new(), Maintenance::new(None, 0));
        Self { setup, catalog, writer, reader, jobs, maintenance }
    }

    fn with<R>(&mut self, with: impl FnOnce(&mut Maintenance, &mut Shop<'_>) -> R) -> R {
        let mut shop = Shop {
            catalog: &mut self.catalog,
            writer: &mut self.writer,
            reader: &self.reader,
            jobs: &mut self.jobs,
            setup: &self.setup,
            free_bytes: 1 << 40,
        };
        with(&mut self.maintenance, &mut shop)
    }

    /// Begins the next step and returns its job; `None` if no step begins.
    fn step(&mut self) -> Option<Job> {
        self.with(|maintenance, shop| maintenance.start(true, shop)).expect("the store goes on");
        let mut jobs = self.jobs.take_ready().map(|(_, job)| job);
        // Before a removal, jobs of the other lanes close the file. These jobs are skipped.
        jobs.find(|job| !matches!(job.calls[..], [Call::Close(_)]))
    }

    fn end(&mut self, job: &Job, result: Result<(), DiskError>) -> Result<(), String> {
        let completion = Completion { id: job.id, result, reads: Vec::new(), free_bytes: 1 << 40 };
        self.with(|maintenance, shop| maintenance.completed(completion, shop))
    }

    /// Writes a commit that uses more than a quarter of the ready log file, so that the next file would be prepared.
    fn use_the_file(&mut self) {
        let request = commit(self.writer.ownership(), 1, vec![0; 20_000], false);
        self.writer.prepare(RequestId(2), request, &self.catalog).expect("it is the owner's");
        self.writer.write_pending(&mut self.jobs, &self.setup);
        let job = only_job(&mut self.jobs);
        self.writer.completed(job.id, Ok(()));
    }

    /// Makes a frame pending that is larger than the ready log file, so that the frame waits for a larger file.
    fn want_a_file(&mut self) {
        let request = commit(self.writer.ownership(), 2, vec![0; 100_000], false);
        self.writer.prepare(RequestId(2), request, &self.catalog).expect("it is the owner's");
    }
}

fn full(op: DiskOp) -> DiskError {
    DiskError::new(op, "log", io::Error::from(io::ErrorKind::StorageFull))
}

#[test]
fn one_step_is_under_way_at_a_time_and_none_begins_without_work() {
    let mut parts = Parts::new();
    assert_eq!(parts.step(), None, "the file that is ready is enough");
    parts.want_a_file();
    let job = parts.step().expect("a file is prepared");
    assert!(parts.maintenance.is_working());
    assert_eq!(parts.step(), None);
    parts.end(&job, Ok(())).expect("the store goes on");
    assert!(!parts.maintenance.is_working());
}

#[test]
fn a_full_disk_gives_the_file_up_and_a_later_try_makes_it() {
    let mut parts = Parts::new();
    parts.want_a_file();
    let job = parts.step().expect("a file is prepared");
    assert!(matches!(job.calls[..2], [Call::CheckLock, Call::Create(_)]), "{job:?}");
    parts.end(&job, Err(full(DiskOp::Write))).expect("a full disk breaks nothing");
    assert!(parts.maintenance.is_full());
    let removal = parts.step().expect("the part of the file is removed");
    assert!(matches!(removal.calls[0], Call::Remove(_)), "{removal:?}");
    parts.end(&removal, Ok(())).expect("the store goes on");
    let again = parts.step().expect("a waiting frame is worth a try at each idle poll");
    parts.end(&again, Ok(())).expect("the store goes on");
    assert!(!parts.maintenance.is_full(), "there was space for it");
}

#[test]
fn a_failed_sync_of_a_log_file_ends_the_store_also_on_a_full_disk() {
    let mut parts = Parts::new();
    parts.want_a_file();
    let job = parts.step().expect("a file is prepared");
    let why = parts.end(&job, Err(full(DiskOp::Sync))).expect_err("the sync is not tried again");
    assert!(why.contains("log"), "{why}");
}

#[test]
fn a_pinned_file_is_not_removed_and_goes_when_it_is_unpinned() {
    let mut parts = Parts::new();
    parts.maintenance.remove("shard-0/old".into());
    parts.maintenance.pin();
    assert_eq!(parts.step(), None);
    parts.with(|maintenance, shop| maintenance.unpin(shop.writer));
    let job = parts.step().expect("it may go");
    assert!(matches!(job.calls[..], [Call::Remove(_), Call::SyncDir(_)]), "{job:?}");
}

#[test]
fn a_store_that_is_released_begins_nothing_but_a_file_for_the_last_frame() {
    let mut parts = Parts::new();
    parts.use_the_file();
    parts.maintenance.stop();
    assert_eq!(parts.step(), None);
    parts.want_a_file();
    let job = parts.step().expect("the last frame needs a file");
    assert!(job.calls.iter().any(|call| matches!(call, Call::Zero { .. })), "{job:?}");
}
