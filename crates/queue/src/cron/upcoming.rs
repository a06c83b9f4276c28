//! [`upcoming`] and [`instants`]: the future instants of a schedule.

use std::sync::Arc;

use tickwheel_engine::{Cadence, Now, Schedule, ScheduleError, ScheduleRecord, Seq, Timestamp};

use super::{ClockChange, Cron, CronError, Occurrence};

/// A future instant of a schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Upcoming {
    /// The instant.
    pub at: Timestamp,
    /// How a change of the clocks affects this instant.
    pub change: ClockChange,
    /// The wall time of this instant, with its offset. The wall time is in UTC if the cadence has no zone.
    pub local: String,
}

/// Checks a schedule that is put. Returns its cron expression, if it has one.
pub(crate) fn checked(schedule: &Schedule) -> Result<Option<Cron>, ScheduleError> {
    if let Some(what) = schedule.mistake() {
        return Err(ScheduleError::Invalid { what });
    }
    let Cadence::Cron { text, zone } = &schedule.cadence else { return Ok(None) };
    Cron::parse(text, zone)
        .map(Some)
        .map_err(|error| ScheduleError::Cadence { why: error.to_string().into() })
}

/// Returns the record that a new schedule would have if it was put now.
pub(crate) fn as_if_put(schedule: Arc<Schedule>, now: Now) -> Result<ScheduleRecord, ScheduleError> {
    let cron = checked(&schedule)?;
    let (anchor, decided) = schedule.begins(now);
    let mut record = ScheduleRecord::new(Arc::clone(&schedule), Seq::ZERO, anchor, decided);
    let next = match cron {
        Some(cron) => cron.next_after(record.beyond()).map(|found| found.at),
        None => schedule.cadence.first_counted(anchor, record.beyond()),
    };
    record.next = record.in_time(next);
    record.next.is_some().then_some(record).ok_or(ScheduleError::NeverFires)
}

/// Returns the next instants of a schedule, at most `count`, beginning with the next instant in `record`. The real instants may differ in
/// two cases that cannot be foreseen: a fixed delay begins when the last live task ends, so only the first instant is returned; and a schedule
/// may leave an instant out because another task with its name is live.
///
/// # Errors
/// [`CronError`]: the expression or the zone cannot be used any more, because the database of zones has changed since the put.
///
/// ```
/// use std::sync::Arc;
/// use tickwheel_queue::{Cadence, PutSchedule, Queue, QueueName, Schedule, ScheduleName, upcoming};
///
/// let queue = Queue::options().virtual_clock().open_memory()?;
/// let nightly = Cadence::Cron { text: "0 2 * * *".into(), zone: "Europe/Berlin".into() };
/// let put = PutSchedule::new(&QueueName::new("q")?, ScheduleName::new("s")?, Arc::new(Schedule::new(nightly)));
/// let record = queue.put_schedule(put).wait()?.schedule.record;
/// let next = upcoming(&record, 3)?;
/// assert_eq!(next.len(), 3);
/// assert!(next.iter().all(|one| one.local.contains("T02:00:00+0") || one.local.contains("T03:00:00+0")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn upcoming(record: &ScheduleRecord, count: usize) -> Result<Vec<Upcoming>, CronError> {
    let shown = |(at, of_cron): One| match of_cron {
        Some(found) => Upcoming { at, local: found.local().to_owned(), change: found.change },
        None => Upcoming { at, change: ClockChange::None, local: at.to_utc() },
    };
    Ok(all(record, Timestamp::default())?.take(count).map(shown).collect())
}

/// Returns the instants of [`upcoming`] without their details, from `from` on, one after the other until the schedule ends. Cost of each
/// instant: some microseconds for a cron expression. Instants before `from` cost nothing, unless the number of tasks of the schedule is
/// limited.
///
/// # Errors
/// The errors of [`upcoming`].
pub fn instants(
    record: &ScheduleRecord,
    from: Timestamp,
) -> Result<impl Iterator<Item = Timestamp> + use<>, CronError> {
    // Instants before `from` count towards the limit of the number of tasks. So they are computed and skipped if there is a limit.
    let skipped = if record.left().is_some() { Timestamp::default() } else { from };
    Ok(all(record, skipped)?.map(|(at, _)| at).skip_while(move |at| *at < from))
}

/// A future instant. For a cron expression, also its wall time and the change of the clocks.
type One = (Timestamp, Option<Occurrence>);

/// Returns the instants of the schedule from the next instant in `record` on, and not before `from`.
fn all(record: &ScheduleRecord, from: Timestamp) -> Result<Box<dyn Iterator<Item = One>>, CronError> {
    let schedule = &record.schedule;
    let left = usize::try_from(record.left().unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let end = schedule.end.unwrap_or(Timestamp::MAX);
    let Some(first) = record.next else {
        if let Cadence::Cron { text, zone } = &schedule.cadence {
            Cron::check_stored(text, zone)?;
        }
        return Ok(Box::new(std::iter::empty()));
    };
    Ok(match &schedule.cadence {
        Cadence::Cron { text, zone } => {
            let cron = Cron::of_store(text, zone)?;
            let before = Timestamp::from_ms(first.max(from).as_ms() - 1).unwrap_or_default();
            let found = std::iter::successors(cron.next_after(before), move |last| cron.next_after(last.at));
            Box::new(found.take_while(move |one| one.at <= end).take(left).map(|one| (one.at, Some(one))))
        }
        Cadence::Every { ms } => {
            let ms = *ms;
            let steps = from.ms_since(first).div_ceil(ms.max(1));
            let first = if from > first { first.plus_ms(steps.saturating_mul(ms)) } else { Some(first) };
            let found = std::iter::successors(first, move |last| last.plus_ms(ms));
            Box::new(found.take_while(move |at| *at <= end).take(left).map(|at| (at, None)))
        }
        Cadence::FixedDelay { .. } => Box::new(Some(first).into_iter().take(left).map(|at| (at, None))),
    })
}
