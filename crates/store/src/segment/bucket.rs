//! Decides which tasks share a segment.

use tickwheel_engine::{Task, Timestamp};

/// How much time a segment covers. Files have the number of the level, so these numbers never change. They are also the order of the
/// levels.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Level {
    /// Any time: tasks that were already due when they were written to the segment.
    Overdue = 0,
    /// An hour: tasks due within two days of the write.
    Hour = 1,
    /// A day: tasks due within sixty days of the write.
    Day = 2,
    /// Thirty days: tasks due later.
    Month = 3,
    /// Thirty days: dead tasks, by the time at which they are forgotten. They have segments of their own, so that a list of dead tasks does
    /// not have to read millions of other tasks.
    Dead = 4,
}

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
const MONTH_MS: i64 = 30 * DAY_MS;

impl Level {
    /// Returns the level that has this number in files.
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        let all = [Self::Overdue, Self::Hour, Self::Day, Self::Month, Self::Dead];
        all.into_iter().find(|level| *level as u64 == number)
    }

    /// Returns how much time (ms) a bucket of this level covers; `None`: any time.
    fn width_ms(self) -> Option<i64> {
        match self {
            Self::Overdue => None,
            Self::Hour => Some(HOUR_MS),
            Self::Day => Some(DAY_MS),
            Self::Month | Self::Dead => Some(MONTH_MS),
        }
    }
}

/// A span of time whose tasks share a segment: a slot of the wheel on disk.
///
/// Each level's buckets lie side by side from 1970 on, by UTC. So the bucket depends on the level and on the task's `due_at` only, and
/// never on a time zone. All overdue tasks have one bucket.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Bucket {
    pub(crate) level: Level,
    /// The number of the bucket within its level, from 1970 on; 0 for overdue tasks.
    pub(crate) index: u64,
}

impl Bucket {
    /// Returns the bucket of a task that is written at `now`.
    pub(crate) fn of(task: &Task, now: Timestamp) -> Self {
        if task.dead().is_some() {
            Self::at(Level::Dead, task.due_at)
        } else {
            Self::of_time(task.due_at, now)
        }
    }

    fn of_time(due_at: Timestamp, now: Timestamp) -> Self {
        let ahead = due_at.as_ms().saturating_sub(now.as_ms());
        let level = if ahead <= 0 {
            Level::Overdue
        } else if ahead <= 2 * DAY_MS {
            Level::Hour
        } else if ahead <= 60 * DAY_MS {
            Level::Day
        } else {
            Level::Month
        };
        Self::at(level, due_at)
    }

    fn at(level: Level, due_at: Timestamp) -> Self {
        Self { level, index: level.width_ms().map_or(0, |width| (due_at.as_ms() / width).unsigned_abs()) }
    }

    /// Returns the first instant of the bucket; 1970 for the bucket of the overdue tasks.
    pub(crate) fn start(self) -> Timestamp {
        let width = self.level.width_ms().unwrap_or(0).unsigned_abs();
        let ms = i64::try_from(self.index.saturating_mul(width)).unwrap_or(i64::MAX);
        Timestamp::from_ms(ms).unwrap_or(Timestamp::EPOCH)
    }

    /// Returns the last instant of the bucket; [`Timestamp::MAX`] for the bucket of the overdue tasks.
    pub(crate) fn end(self) -> Timestamp {
        match self.level.width_ms() {
            None => Timestamp::MAX,
            Some(width) => self.start().saturating_plus_ms(width.unsigned_abs() - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(ms).expect("not negative")
    }

    #[test]
    fn a_task_is_in_its_bucket_and_buckets_follow_each_other() {
        let now = at(1_700_000_123_456);
        let mut before: Option<Bucket> = None;
        for step in 0..40_000_i64 {
            let due_at = now.saturating_plus_ms((step * step * 97) as u64);
            let bucket = Bucket::of_time(due_at, now);
            if bucket.level != Level::Overdue {
                assert!(bucket.start() <= due_at && due_at <= bucket.end(), "{due_at} in {bucket:?}");
            }
            if let Some(before) = before {
                assert!(before <= bucket, "{before:?} comes before {bucket:?}");
            }
            before = Some(bucket);
        }
        assert_eq!(before.map(|bucket| bucket.level), Some(Level::Month));
        assert_eq!(Bucket::of_time(Timestamp::MAX, now).end(), Timestamp::MAX);
        assert_eq!(Bucket::of_time(now, now).level, Level::Overdue);
        assert_eq!(Bucket::of_time(Timestamp::EPOCH, now).level, Level::Overdue);
    }
}
