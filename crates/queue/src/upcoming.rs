//! What a schedule is going to do.

use tickwheel_engine::{Cadence, ScheduleRecord, Timestamp};

use crate::cron::{ClockChange, Cron, CronError};

/// One instant of a schedule that is to come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Upcoming {
    /// When.
    pub at: Timestamp,
    /// What a change of the clocks has to do with it.
    pub change: ClockChange,
    /// What the wall shows then, with its offset; of a cadence without a zone, in UTC.
    pub local: String,
}

/// The next instants of a schedule, at most `count`, from the one that it has noted on. They are what its record says as far as that can be
/// told: how long a task takes after which a fixed delay begins cannot, and an instant that finds the task before still live may be left out.
///
/// # Errors
/// [`CronError`]: the expression or the zone cannot be used, as the database of zones is another than when it was put.
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
    let schedule = &record.schedule;
    let left = record.left().unwrap_or(u64::MAX);
    let count = usize::try_from(left).unwrap_or(usize::MAX).min(count);
    let cron = match &schedule.cadence {
        Cadence::Cron { text, zone } => Some(Cron::parse(text, zone)?),
        _ => None,
    };
    let end = schedule.end.unwrap_or(Timestamp::MAX);
    let plain = |at: Timestamp| Upcoming { at, change: ClockChange::None, local: at.to_utc() };
    let Some(first) = record.next else { return Ok(Vec::new()) };
    let all: Vec<Upcoming> = match (&schedule.cadence, &cron) {
        (_, Some(cron)) => {
            let next = |after: &Timestamp| cron.next_after(*after);
            let before = Timestamp::from_ms(first.as_ms() - 1).unwrap_or_default();
            std::iter::successors(next(&before), |last| next(&last.at))
                .map(|found| Upcoming { at: found.at, local: found.local().to_owned(), change: found.change })
                .take_while(|one| one.at <= end)
                .take(count)
                .collect()
        }
        (Cadence::Every { ms }, _) => std::iter::successors(Some(first), |last| last.plus_ms(*ms))
            .take_while(|at| *at <= end)
            .take(count)
            .map(plain)
            .collect(),
        _ => Some(first).into_iter().take(count).map(plain).collect(),
    };
    Ok(all)
}
