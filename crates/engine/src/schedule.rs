//! Recurring work: a schedule says at which instants, and each instant becomes a task of its own.

use std::sync::Arc;

use crate::name::{Key, QueueName, ScheduleName};
use crate::task::{Body, Terms};
use crate::time::{Now, Seq, Timestamp};

/// The id of a schedule: its queue and its name.
pub(crate) type ScheduleId = (QueueName, ScheduleName);

/// The instants of recurring work, and the content of its tasks. Each instant makes a task with the key `name@instant`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// At which instants.
    pub cadence: Cadence,
    /// No instant before this one.
    pub start: Option<Timestamp>,
    /// No instant after this one.
    pub end: Option<Timestamp>,
    /// The number of tasks that are made in all; after them no more.
    pub count: Option<u64>,
    /// A task is due at its instant or later, by a random time of at most this length (ms).
    pub jitter_ms: u64,
    /// How missed instants are treated: those at which the engine did not run to make their tasks.
    pub catch_up: CatchUp,
    /// How an instant is treated that comes while an earlier task of the schedule is still live.
    pub overlap: Overlap,
    /// The payload, content type and tags that the worker gets.
    pub body: Arc<Body>,
    /// Priority, group, retries and expiry of the tasks.
    pub terms: Terms,
}

/// The rule for the instants of a schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cadence {
    /// When the local time of a zone matches an expression.
    Cron {
        /// The expression, of five or six fields.
        text: Arc<str>,
        /// The IANA name of the zone.
        zone: Arc<str>,
    },
    /// At a fixed interval, whatever becomes of the tasks: first at the start, or one interval after the put.
    Every {
        /// Milliseconds.
        ms: u64,
    },
    /// First at the start, or one delay after the put; then each time one delay after the task before has ended.
    FixedDelay {
        /// Milliseconds.
        ms: u64,
    },
}

/// How missed instants are treated: no task was made of them within [`MISSED_MS`]. A fixed delay misses none.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum CatchUp {
    /// The missed instants are left out.
    Skip,
    /// The last missed instant becomes a task.
    #[default]
    Once,
    /// Each missed instant becomes a task, the oldest first.
    All,
}

/// How an instant is treated that comes while an earlier task of the schedule is still live.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Overlap {
    /// The instant is left out.
    Skip,
    /// The task of the instant is made when the earlier one has ended.
    Queue,
    /// The task of the instant is made at once.
    #[default]
    Allow,
}

/// An instant is missed if it passed more than this long ago (ms): a minute.
pub const MISSED_MS: u64 = 60_000;

impl Cadence {
    /// The shortest time from one instant to the next, milliseconds.
    pub const MS_MIN: u64 = 100;
    /// The longest such time, and the longest jitter: 100 years (ms).
    pub const MS_MAX: u64 = 100 * 365 * 86_400_000;
    /// The largest size of an expression, and of a zone (bytes).
    pub const TEXT_BYTES_MAX: usize = 256;

    /// The first instant after this one, for a cadence that the engine can count. `anchor` is the first instant of all.
    #[must_use]
    pub fn next_after(ms: u64, anchor: Timestamp, after: Timestamp) -> Option<Timestamp> {
        if after < anchor {
            return Some(anchor);
        }
        let turns = after.ms_since(anchor) / ms + 1;
        anchor.plus_ms(turns.checked_mul(ms)?)
    }

    /// The first instant of a new schedule after this one, if the engine can count the cadence.
    #[must_use]
    pub fn first_counted(&self, anchor: Timestamp, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron { .. } => None,
            Self::Every { ms } => Self::next_after(*ms, anchor, after),
            Self::FixedDelay { .. } => Some(anchor.max(after.saturating_plus_ms(1))),
        }
    }

    /// The last instant that is not after this one.
    #[must_use]
    pub fn last_until(ms: u64, anchor: Timestamp, until: Timestamp) -> Option<Timestamp> {
        if until < anchor {
            return None;
        }
        anchor.plus_ms(until.ms_since(anchor) / ms * ms)
    }
}

impl Schedule {
    /// A schedule without limits and without payload. It has the default rules for missed instants and for overlap.
    #[must_use]
    pub fn new(cadence: Cadence) -> Self {
        Self {
            cadence,
            start: None,
            end: None,
            count: None,
            jitter_ms: 0,
            catch_up: CatchUp::default(),
            overlap: Overlap::default(),
            body: Arc::default(),
            terms: Terms::default(),
        }
    }

    /// The longest payload and tags together, bytes: all schedules are in memory.
    pub const BODY_BYTES_MAX: usize = 65_536;

    /// Returns the field with a value that is not allowed, if there is one.
    #[must_use]
    pub fn mistake(&self) -> Option<&'static str> {
        match &self.cadence {
            Cadence::Every { ms } | Cadence::FixedDelay { ms } if *ms < Cadence::MS_MIN => {
                return Some("a time of less than 100 ms from one occurrence to the next");
            }
            Cadence::Every { ms } | Cadence::FixedDelay { ms } if *ms > Cadence::MS_MAX => {
                return Some("a time of more than 100 years from one occurrence to the next");
            }
            Cadence::Cron { text, zone } if text.len().max(zone.len()) > Cadence::TEXT_BYTES_MAX => {
                return Some("an expression or a zone of more than 256 bytes");
            }
            _ => {}
        }
        let tags: usize = self.body.tags.iter().map(|tag| tag.as_str().len()).sum();
        match self {
            Self { count: Some(0), .. } => Some("a count of 0"),
            Self { jitter_ms, .. } if *jitter_ms > Cadence::MS_MAX => Some("a jitter of more than 100 years"),
            Self { start: Some(start), end: Some(end), .. } if end < start => Some("an end before the start"),
            Self { terms, jitter_ms, .. } if terms.expire_after_ms.is_some_and(|ms| ms <= *jitter_ms) => {
                Some("a task that expires before its jitter is over")
            }
            _ if !self.body.timeline.is_empty() => Some("a timeline in a schedule"),
            _ if self.body.payload.len() + tags > Self::BODY_BYTES_MAX => {
                Some("a payload and tags of more than 65536 bytes in a schedule")
            }
            _ => None,
        }
    }

    /// For a schedule that is put now: the first instant of all, if the cadence counts from it, and the instant up to which all are
    /// decided.
    #[must_use]
    pub fn begins(&self, now: Now) -> (Timestamp, Timestamp) {
        let anchor = match (&self.cadence, self.start) {
            (Cadence::FixedDelay { .. }, Some(start)) => start.max(now.wall),
            (_, Some(start)) => start,
            (Cadence::Every { ms } | Cadence::FixedDelay { ms }, None) => {
                now.due_after(*ms).unwrap_or(Timestamp::MAX)
            }
            (Cadence::Cron { .. }, None) => now.wall,
        };
        // A caller that names the present as the start means "now", though that instant has passed when the put is read.
        let just_started = |start: &Timestamp| *start <= now.wall && now.wall.ms_since(*start) <= MISSED_MS;
        let decided = match self.start.filter(just_started) {
            Some(start) => Timestamp::from_ms(start.as_ms() - 1).unwrap_or_default(),
            None => now.wall,
        };
        (anchor, decided)
    }

    /// Whether an instant waits for the task of the instant before it.
    #[must_use]
    pub fn takes_turns(&self) -> bool {
        self.overlap != Overlap::Allow || matches!(self.cadence, Cadence::FixedDelay { .. })
    }

    /// Bytes of all texts of the schedule, about.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        let Self { cadence, body, terms, start: _, end: _, count: _, jitter_ms: _, catch_up: _, overlap: _ } =
            self;
        let cadence = match cadence {
            Cadence::Cron { text, zone } => text.len() + zone.len(),
            Cadence::Every { .. } | Cadence::FixedDelay { .. } => 0,
        };
        let tags: usize = body.tags.iter().map(|tag| tag.as_str().len() + 10).sum();
        cadence + terms.text_bytes() + body.payload_bytes() + body.content_type.len() + tags
    }
}

/// The durable record of a schedule: the schedule as its owner put it, and its progress.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleRecord {
    /// The schedule as its owner put it.
    pub schedule: Arc<Schedule>,
    /// The change that put the schedule: the ETag. Its occurrences do not change it.
    pub version: Seq,
    /// The first instant of all, if the cadence counts from it.
    pub anchor: Timestamp,
    /// All instants up to this one are decided.
    pub decided: Timestamp,
    /// The first instant that is not decided; `None`: there is none, or it is not known yet.
    pub next: Option<Timestamp>,
    /// The last instant that became a task.
    pub last: Option<Timestamp>,
    /// Tasks made so far.
    pub made: u64,
    /// Instants left out: they were missed, the task before was still live, the key was taken, or the queue took no task. Instants that
    /// wait are left out, too, when the schedule gets another cadence, or an end or a count that they are beyond. Instants of a cron
    /// expression that are left out together, after a time in which the engine did not run, count as one.
    pub skipped: u64,
    /// The id of the task that has to end before another is made.
    pub running: Option<u64>,
    /// Instants that wait for that task to end, rising.
    pub waiting: Vec<Timestamp>,
}

impl ScheduleRecord {
    /// The record of a schedule that has made no task yet, and that has no known next instant.
    #[must_use]
    pub fn new(schedule: Arc<Schedule>, version: Seq, anchor: Timestamp, decided: Timestamp) -> Self {
        Self {
            schedule,
            version,
            anchor,
            decided,
            next: None,
            last: None,
            made: 0,
            skipped: 0,
            running: None,
            waiting: Vec::new(),
        }
    }

    /// The largest number of instants that wait for the task before; later ones are left out.
    pub const WAITING_MAX: usize = 1_000;

    /// The next instant of a schedule with a fixed delay that begins now; `None`: another cadence. The instant is not before the start, and
    /// not one that was decided before, whatever the clock has done.
    #[must_use]
    pub fn after_a_delay(&self, now: Now) -> Option<Timestamp> {
        let Cadence::FixedDelay { ms } = self.schedule.cadence else { return None };
        let next = now.due_after(ms).unwrap_or(Timestamp::MAX);
        Some(next.max(self.beyond().saturating_plus_ms(1)))
    }

    /// Only instants after this one count: it is the last decided instant, or the last before the start, if that is later.
    #[must_use]
    pub fn beyond(&self) -> Timestamp {
        beyond(self.decided, self.schedule.start)
    }

    /// Whether the schedule has made all tasks of its count, with those that are about to be made.
    #[must_use]
    pub fn is_counted_out(&self) -> bool {
        self.left() == Some(0)
    }

    /// How many tasks are to be made beyond those that wait; `None`: any number.
    #[must_use]
    pub fn left(&self) -> Option<u64> {
        let begun = self.made.saturating_add(self.waiting.len() as u64);
        self.schedule.count.map(|count| count.saturating_sub(begun))
    }

    /// Checks the next instant of the cadence: returns it if the schedule has it.
    #[must_use]
    pub fn in_time(&self, next: Option<Timestamp>) -> Option<Timestamp> {
        let end = self.schedule.end.unwrap_or(Timestamp::MAX);
        next.filter(|&next| next <= end && !self.is_counted_out())
    }
}

/// The last instant that is too early: it is decided, or just before the start.
#[must_use]
pub(crate) fn beyond(decided: Timestamp, start: Option<Timestamp>) -> Timestamp {
    let before_start = start.and_then(|start| Timestamp::from_ms(start.as_ms() - 1));
    before_start.map_or(decided, |before| before.max(decided))
}

/// A question about instants of a cron expression that the engine cannot answer by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InstantWanted {
    /// The expression.
    pub text: Arc<str>,
    /// The zone.
    pub zone: Arc<str>,
    /// The instant that is wanted.
    pub which: Which,
}

/// An instant of the expression.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Which {
    /// The first after this one.
    FirstAfter(Timestamp),
    /// The last that is not after this one.
    LastUntil(Timestamp),
}

/// The answer to a question for an instant: the instant, or none, or why it is not known.
pub type InstantFound = Result<Option<Timestamp>, Arc<str>>;

/// Names one question for an instant until its answer.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AskId(pub u64);

/// The key of the task that a schedule makes of an instant, such as `nightly@2030-03-10T07:00:00.000Z`.
#[must_use]
pub fn occurrence_key(name: &ScheduleName, at: Timestamp) -> Key {
    Key::new(&format!("{}@{}", name.as_str(), at.to_utc()))
        .expect("a schedule's name leaves room for an instant")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(ms).expect("not negative")
    }

    #[test]
    fn instants_are_counted_from_the_anchor() {
        let next = |after| Cadence::next_after(1_000, at(5_000), at(after)).map(Timestamp::as_ms);
        assert_eq!([0, 4_999, 5_000, 5_999, 6_000].map(next), [5_000, 5_000, 6_000, 6_000, 7_000].map(Some));
        let last = |until| Cadence::last_until(1_000, at(5_000), at(until)).map(Timestamp::as_ms);
        assert_eq!([4_999, 5_000, 5_999, 6_000].map(last), [None, Some(5_000), Some(5_000), Some(6_000)]);
        assert_eq!(Cadence::next_after(u64::MAX, at(0), at(1)), None, "beyond the end of time");
    }

    #[test]
    fn a_key_names_the_schedule_and_the_instant() {
        let longest = ScheduleName::new(&"n".repeat(ScheduleName::BYTES_MAX)).expect("a name");
        assert!(occurrence_key(&longest, Timestamp::MAX).as_str().starts_with("nnn"));
        let nightly = ScheduleName::new("nightly").expect("a name");
        let key = occurrence_key(&nightly, at(1_899_527_400_250));
        assert_eq!(key.as_str(), "nightly@2030-03-12T06:30:00.250Z");
    }
}
