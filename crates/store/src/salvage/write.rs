//! The second pass: writes the newest record of each task into a new directory.

use std::sync::Arc;

use tickwheel_engine::{
    Batch, Cadence, Dead, Epoch, Ownership, Reply, Request, RequestId, Rule, RuleEffect, RuleName,
    ScheduleRecord, Seq, ShardStore, TaskEffect, Timestamp,
};

use super::fetch::{Fetched, fetch_with_body, gone};
use super::found::{Found, Progress};
use super::keys::Settled;
use super::report::Report;
use super::source::Source;
use crate::codec::Names;
use crate::disk::{Disk, DiskError};
use crate::disk_store::DiskStore;
use crate::error::OpenError;
use crate::history::HistoryLimits;
use crate::io::InlineIo;
use crate::layout::can_rise;
use crate::options::StoreOptions;
use crate::stamp::keep_stamp;
use crate::table::record_bytes;

/// A commit is made as soon as it has this many bytes of records, or [`COMMIT_EFFECTS`] effects.
const COMMIT_BYTES: u64 = 1 << 20;
const COMMIT_EFFECTS: usize = 4_096;

/// If records are lost, owners may have used ids and change numbers that no record shows. So the salvage skips this many ids, and this many
/// change numbers if frames of unknown number may be missing: more than the frames of the largest disk can have used. Ids and change
/// numbers go up to 2^53, because JSON counts that far.
const NUMBERS_PASSED: u64 = 1 << 32;

/// The number of epochs that the salvage skips if frames of unknown number may be missing. There are 2^32 epochs.
const EPOCHS_PASSED: u32 = 1 << 20;

/// The salvage gives up when more than this many polls for one request had no answer and found the disk full.
const FULL_POLLS_MAX: u32 = 64;

/// Why the new directory was not made. Each text completes "failed to salvage: ...".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The new directory cannot be made.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The damaged directory cannot be read any more. The cause is no damage of the disk, so another try may succeed.
    #[error(transparent)]
    Read(DiskError),
    /// The new directory cannot be written.
    #[error("{0}")]
    Failed(String),
    /// The disk has no space for the new directory.
    #[error("the disk is full; the new directory takes about as much space as the damaged one")]
    Full,
}

/// Copies the found records into the directory `target`, which has to be empty. The new data directory is complete when this returns.
///
/// # Errors
/// [`WriteError`]; the new directory is not complete then.
pub fn write<D: Disk, T: Disk>(
    found: Found,
    disk: &mut D,
    target: T,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, WriteError> {
    let options = StoreOptions::new(found.meta.secret);
    write_as(found, disk, target, options, progress)
}

/// Returns history limits that keep all ended tasks of each queue without a limit of its own. The limits of the next opening apply later.
fn everything() -> HistoryLimits {
    HistoryLimits::last(usize::MAX)
}

/// Works as [`write()`], with other store options, such as smaller log files. For tests.
///
/// # Errors
/// [`WriteError`].
#[doc(hidden)]
pub fn write_as<D: Disk, T: Disk>(
    mut found: Found,
    disk: &mut D,
    target: T,
    options: StoreOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, WriteError> {
    let mut source = Source::new(disk);
    let Settled { keyless, gone: unreadable } = found.settle_keys(&mut source);
    found.report.losses.extend(unreadable);
    let rules = found.rules();
    let options = StoreOptions {
        clock: found.meta.clock,
        secret: found.meta.secret,
        shard: found.meta.shard,
        history: everything(),
        ..options
    };
    let mut again = target.another();
    let store = DiskStore::open(target, InlineIo::new(), options)?;
    let mut writer = Writer::begin(store, &found)?;
    let Found { files, index, histories, mut state, mut report, meta, .. } = found;
    if !report.is_whole() {
        // Owners may have given out ids that no record shows. Each id of a shard is as far from the next one as there are shards.
        state.pass_ids(index.id_max, NUMBERS_PASSED * u64::from(meta.shard.count()));
    }
    writer.commit(Batch { rules, state: Some(state), ..Batch::default() })?;
    for ended in histories.after(None) {
        writer.push(TaskEffect::Ended(ended.clone()), 512)?;
    }
    let places = index.into_places();
    let total = places.len() as u64;
    let mut names = Names::new();
    for (done, (spot, id, body)) in places.into_iter().enumerate() {
        let mut task = match fetch_with_body(&mut source, &files, spot, body, &mut names) {
            Fetched::Whole(task) => task,
            Fetched::Bodiless(task) => {
                report.losses.push(gone(&files, body.unwrap_or(spot), id, Some(&task)));
                continue;
            }
            Fetched::Gone => {
                report.losses.push(gone(&files, spot, id, None));
                continue;
            }
        };
        if keyless.contains(&id)
            && let Some(dead) = task.extra.as_mut().and_then(|extra| extra.dead.as_mut())
        {
            *dead = Dead { keyless: true, ..*dead };
        }
        let bytes = record_bytes(&task);
        writer.push(TaskEffect::Stored { task: Arc::new(task), body_known: false }, bytes)?;
        if done % 1_024 == 0 {
            progress(Progress::Written(done as u64, total));
        }
    }
    progress(Progress::Written(total, total));
    source.check_refusal().map_err(WriteError::Read)?;
    writer.finish(&mut report)?;
    if report.read.unreadable.is_empty() {
        report.notes.extend(source.first_failure());
    }
    report.read.join_unreadable(source.into_unreadable());
    if meta.shard.count() > 1 {
        keep_stamp(disk, &mut again).map_err(OpenError::Io)?;
    }
    report.shards = 1;
    Ok(report)
}

impl Found {
    /// Returns the report so far.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Returns the rules to write. If a schedule waits for the end of a task that is not saved, the schedule goes on without the task, and
    /// a note says that. After a loss, a task may be live again that had ended, so the next owner looks for the live tasks of each schedule
    /// that takes turns.
    fn rules(&mut self) -> Vec<RuleEffect> {
        let (wall, index, whole) = (self.wall, &self.index, self.report.is_whole());
        let mut notes = Vec::new();
        let rules = self.rules.by_name().iter().map(|(name, rule)| {
            let (RuleName::Schedule(queue, of), Rule::Schedule(record)) = (name, &**rule) else {
                return (name.clone(), Some(Arc::clone(rule)));
            };
            if whole || !record.schedule.takes_turns() {
                return (name.clone(), Some(Arc::clone(rule)));
            }
            let is_lost = |task: &u64| !index.is_live(*task);
            notes.extend(record.running.iter().copied().filter(is_lost).map(|task| {
                format!(
                    "schedule {} of queue {} waited for task {task}, which is not there; it goes on without it",
                    of.as_str(),
                    queue.as_str()
                )
            }));
            let running = record.running.iter().copied().filter(|task| !is_lost(task)).collect();
            (name.clone(), Some(Arc::new(Rule::Schedule(freed(record, running, wall)))))
        });
        let rules = rules.collect();
        self.report.notes.extend(notes);
        rules
    }
}

/// Returns the schedule as it is when only the tasks `running` are left of those that it waits for.
fn freed(record: &ScheduleRecord, running: Vec<u64>, wall: Timestamp) -> ScheduleRecord {
    let waited = !record.running.is_empty();
    let mut record = ScheduleRecord { running, may_have_more: true, ..record.clone() };
    if waited
        && record.running.is_empty()
        && let Cadence::FixedDelay { ms } = record.schedule.cadence
        && record.next.is_none()
    {
        record.next = record.in_time(Some(wall.saturating_plus_ms(ms)));
    }
    record
}

/// Writes the new directory, one commit after the other.
struct Writer<T: Disk> {
    store: DiskStore<T, InlineIo<T>>,
    ownership: Ownership,
    seq: Seq,
    wall: Timestamp,
    effects: Vec<TaskEffect>,
    bytes: u64,
    asked: u64,
}

impl<T: Disk> Writer<T> {
    fn begin(mut store: DiskStore<T, InlineIo<T>>, found: &Found) -> Result<Self, WriteError> {
        // Unless frames of unknown number may be missing, the salvage writes with the last epoch of the damaged directory. So the next
        // owner gets the next epoch, and the leases that a stop wrote down stay valid.
        let epoch = if found.log_is_torn {
            found.epoch.0.saturating_add(EPOCHS_PASSED)
        } else {
            found.epoch.0.saturating_sub(1)
        };
        let epoch = epoch.min(u32::MAX / 2);
        store.continue_from(Epoch(epoch));
        let passed = if found.log_is_torn { NUMBERS_PASSED } else { 0 };
        let seq = Seq(found.seq.max(found.index.seq_max).0.saturating_add(passed));
        if !can_rise(&[seq.0]) {
            // The number checks out, but no store can have counted that far.
            return Err(WriteError::Failed(format!(
                "a record is of change {seq}, and no store counts that far"
            )));
        }
        let shard = found.meta.shard;
        let ownership = Ownership { shard, epoch: Epoch(epoch + 1), last_seq: Seq::ZERO };
        let wall = found.wall;
        let mut writer = Self { store, ownership, seq, wall, effects: Vec::new(), bytes: 0, asked: 0 };
        match writer.ask(Request::Acquire { shard, wall })? {
            Reply::Acquired(acquired) => writer.ownership = acquired.ownership,
            other => return Err(WriteError::Failed(format!("the new directory answered {other:?}"))),
        }
        Ok(writer)
    }

    fn push(&mut self, effect: TaskEffect, bytes: u64) -> Result<(), WriteError> {
        self.effects.push(effect);
        self.bytes += bytes;
        if self.bytes >= COMMIT_BYTES || self.effects.len() >= COMMIT_EFFECTS {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        self.bytes = 0;
        let effects = std::mem::take(&mut self.effects);
        self.commit(Batch { effects, ..Batch::default() })
    }

    fn commit(&mut self, batch: Batch) -> Result<(), WriteError> {
        // The tasks keep the numbers of their changes. So each commit, also the first, has the highest number as its last change.
        let Self { ownership, seq, wall, .. } = *self;
        match self.ask(Request::Commit { ownership, seq, wall, batch })? {
            Reply::Done { .. } => Ok(()),
            Reply::Failed { why } => Err(WriteError::Failed(why)),
            other => Err(WriteError::Failed(format!("the new directory answered {other:?}"))),
        }
    }

    fn ask(&mut self, request: Request) -> Result<Reply, WriteError> {
        self.asked += 1;
        self.store.submit(RequestId(self.asked), request);
        let (mut replies, mut full) = (Vec::new(), 0);
        loop {
            self.store.poll(&mut replies);
            if let Some((_, reply)) = replies.pop() {
                return Ok(reply);
            }
            if let Some(why) = self.store.failure() {
                return Err(WriteError::Failed(why.to_owned()));
            }
            // `full` counts all polls that find the disk full, also if other polls are in between: each new try to make a file writes some
            // zeroes, and during the try the disk does not look full.
            full += u32::from(self.store.is_full());
            if full > FULL_POLLS_MAX {
                return Err(WriteError::Full);
            }
        }
    }

    /// Writes the rest and releases the ownership, as a stop does. Then counts in the report what the new directory has.
    fn finish(mut self, report: &mut Report) -> Result<(), WriteError> {
        self.flush()?;
        let mut full = 0;
        while self.store.is_checkpointing() && full <= FULL_POLLS_MAX {
            self.store.poll(&mut Vec::new());
            full += u32::from(self.store.is_full());
        }
        let ownership = self.ownership;
        match self.ask(Request::Release { ownership })? {
            Reply::Released => {}
            Reply::Failed { why } => return Err(WriteError::Failed(why)),
            other => return Err(WriteError::Failed(format!("the new directory answered {other:?}"))),
        }
        let written = &mut report.written;
        written.queues = self.store.populations().into_iter().collect();
        written.ended = self.store.ended().count() as u64;
        for (name, _) in self.store.rules() {
            match name {
                RuleName::Queue(_) => written.settings += 1,
                RuleName::Schedule(..) => written.schedules += 1,
                RuleName::Job(_) => written.jobs += 1,
            }
        }
        Ok(())
    }
}
