//! Recurring work: a schedule has a rule for its instants, and each instant that is not left out gets a task of its own.

use std::sync::Arc;

use crate::name::{Key, QueueName, ScheduleName};
use crate::task::{Body, Terms};
use crate::time::{Now, Seq, Timestamp};

/// The id of a schedule: its queue and its name.
pub(crate) type ScheduleId = (QueueName, ScheduleName);

/// The rule for the instants of recurring work, and the content of its tasks. The task of an instant has the key `name@instant`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// The rule for the instants.
    pub cadence: Cadence,
    /// The schedule has no instant before this one.
    pub start: Option<Timestamp>,
    /// The schedule has no instant after this one.
    pub end: Option<Timestamp>,
    /// The largest number of tasks that are made in all; `None`: no limit.
    pub count: Option<u64>,
    /// The largest delay of a task after its instant (ms). The delay is a pseudo-random time from 0 to this one.
    pub jitter_ms: u64,
    /// How missed instants are treated: instants that passed more than [`MISSED_MS`] ago when the engine came to make their tasks.
    pub catch_up: CatchUp,
    /// How an instant is treated that comes while another task with the name of the schedule is live.
    pub overlap: Overlap,
    /// The payload, content type and tags that the worker gets.
    pub body: Arc<Body>,
    /// Priority, group, retries and expiry of the tasks.
    pub terms: Terms,
}

/// The rule for the instants of a schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cadence {
    /// The instants at which the local time of a zone matches an expression.
    Cron {
        /// The expression, of five or six fields.
        text: Arc<str>,
        /// The IANA name of the zone.
        zone: Arc<str>,
    },
    /// Instants at a fixed interval, whatever becomes of the tasks. The instants count from the start. Without a start, the first instant
    /// is one interval after the put.
    Every {
        /// The interval (ms).
        ms: u64,
    },
    /// One instant after another. The first instant is the start, or the put if the start has passed. Without a start, the first instant is
    /// one delay after the put. Each later instant is one delay after the last live task with the name has ended or was given up.
    FixedDelay {
        /// The delay (ms).
        ms: u64,
    },
}

/// How missed instants are treated: instants that passed more than [`MISSED_MS`] ago and have no task. A fixed delay misses no instant.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum CatchUp {
    /// The missed instants are left out.
    Skip,
    /// The last missed instant gets a task if the overlap rule allows one, and the others are left out.
    #[default]
    Once,
    /// Each missed instant gets a task if the overlap rule allows one, the oldest first.
    All,
}

/// How an instant is treated that comes while another task with the name of the schedule is live.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Overlap {
    /// The instant is left out.
    Skip,
    /// The task of the instant is made when no such task is live.
    Queue,
    /// The task of the instant is made at once.
    #[default]
    Allow,
}

/// An instant is missed if more than this time (ms), a minute, has passed since.
pub const MISSED_MS: u64 = 60_000;

impl Cadence {
    /// The shortest interval or delay (ms).
    pub const MS_MIN: u64 = 100;
    /// The longest interval, delay or jitter: 100 years (ms).
    pub const MS_MAX: u64 = 100 * 365 * 86_400_000;
    /// The largest size of an expression, and of a zone (bytes).
    pub const TEXT_BYTES_MAX: usize = 256;

    /// Returns the first instant after `after`, for a fixed interval of `ms`. `anchor` is the first instant of all. `None`: the instant
    /// would be later than [`Timestamp::MAX`].
    #[must_use]
    pub fn next_after(ms: u64, anchor: Timestamp, after: Timestamp) -> Option<Timestamp> {
        if after < anchor {
            return Some(anchor);
        }
        let turns = after.ms_since(anchor) / ms + 1;
        anchor.plus_ms(turns.checked_mul(ms)?)
    }

    /// Returns the first instant of a new schedule after `after`. `None`: the cadence is a cron expression, whose instants the engine
    /// cannot compute, or there is no such instant.
    #[must_use]
    pub fn first_counted(&self, anchor: Timestamp, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron { .. } => None,
            Self::Every { ms } => Self::next_after(*ms, anchor, after),
            Self::FixedDelay { .. } => Some(anchor.max(after.saturating_plus_ms(1))),
        }
    }

    /// Returns the last instant at `until` or before, for a fixed interval of `ms`; `None`: the first instant, `anchor`, is later.
    #[must_use]
    pub fn last_until(ms: u64, anchor: Timestamp, until: Timestamp) -> Option<Timestamp> {
        if until < anchor {
            return None;
        }
        anchor.plus_ms(until.ms_since(anchor) / ms * ms)
    }
}

impl Schedule {
    /// Makes a schedule without limits and without payload. The schedule has the default rules for missed instants and for overlap.
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

    /// The largest size of payload and tags together (bytes). The reason for the limit: all schedules are in memory.
    pub const BODY_BYTES_MAX: usize = 65_536;

    /// Returns a text that names the first value that is not allowed; `None`: all values are allowed.
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

    /// Returns the anchor of a schedule that is put now, and the instant up to which all its instants are decided. The anchor is the first
    /// instant of all; a cron expression does not use the anchor.
    #[must_use]
    pub fn begins(&self, now: Now) -> (Timestamp, Timestamp) {
        // The wall clock may show this already, so an instant before it may have passed.
        let at_most = now.due_after(0).unwrap_or(now.wall);
        let anchor = match (&self.cadence, self.start) {
            (Cadence::FixedDelay { .. }, Some(start)) => start.max(now.wall),
            (_, Some(start)) => start,
            (Cadence::Cron { .. }, None) => at_most,
            (Cadence::Every { ms } | Cadence::FixedDelay { ms }, None) => {
                now.due_after(*ms).unwrap_or(Timestamp::MAX)
            }
        };
        // A start that passed at most a minute ago still gets its task. The reason: a caller that names the present as the start means
        // "now", and the put is read a little later.
        let just_started = |start: &Timestamp| *start <= at_most && at_most.ms_since(*start) <= MISSED_MS;
        let decided = match self.start.filter(just_started) {
            Some(start) => Timestamp::from_ms(start.as_ms() - 1).unwrap_or_default(),
            None => at_most,
        };
        (anchor, decided)
    }

    /// Whether the schedule makes no task while a live task has its name in the key: a task of an earlier instant, also of a schedule of
    /// this name that was deleted, and also a task that was redriven, imported or put with such a key.
    #[must_use]
    pub fn takes_turns(&self) -> bool {
        self.overlap != Overlap::Allow || matches!(self.cadence, Cadence::FixedDelay { .. })
    }

    /// Returns the size of all texts of the schedule and of its payload (bytes), about.
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
    /// The number of the change that put the schedule: the ETag. Tasks that the schedule makes do not change this number.
    pub version: Seq,
    /// The first instant of all, if the cadence counts from it.
    pub anchor: Timestamp,
    /// All instants up to this one are decided: each has got a task, waits in `waiting`, or was left out.
    pub decided: Timestamp,
    /// The first instant that is not decided; `None`: there is none, or the engine does not know it yet.
    pub next: Option<Timestamp>,
    /// The offset from UTC (s) that the zone of a cron expression had at `decided`, by the rules with which it was decided. Other rules, at the
    /// next start too, may have another one: then `decided` moves to the instant at which the clock shows the same local time. `None`: it is not
    /// known, or the cadence has no zone.
    pub offset_s: Option<i32>,
    /// The same for `next`: the offset at `decided` once `next` is decided.
    pub next_offset_s: Option<i32>,
    /// The last instant that got a task.
    pub last: Option<Timestamp>,
    /// The number of tasks made so far. For an imported schedule, the tasks that the other store made are included.
    pub made: u64,
    /// The number of instants left out. An instant is left out if it was missed, if another task with the name was live, if its key was taken, or if
    /// the queue took no task. A waiting instant is left out if a put changes the cadence, the start, the end or the count so that the
    /// instant is excluded.
    pub skipped: u64,
    /// If the schedule takes turns: the ids of the live tasks that have its name in their keys, at most
    /// [`RUNNING_MAX`](Self::RUNNING_MAX). All of them have to end or to be given up before the schedule makes another task.
    pub running: Vec<u64>,
    /// Whether there may be live tasks of the name that are not in `running`. Once `running` is empty, the engine looks for them in the
    /// store, and the schedule makes no task before the engine has found them all.
    pub may_have_more: bool,
    /// Instants that wait until the tasks of `running` have ended or were given up, in rising order.
    pub waiting: Vec<Timestamp>,
}

impl ScheduleRecord {
    /// Makes the record of a schedule that has made no task yet and whose next instant is not known yet.
    #[must_use]
    pub fn new(schedule: Arc<Schedule>, version: Seq, anchor: Timestamp, decided: Timestamp) -> Self {
        Self {
            schedule,
            version,
            anchor,
            decided,
            next: None,
            offset_s: None,
            next_offset_s: None,
            last: None,
            made: 0,
            skipped: 0,
            running: Vec::new(),
            may_have_more: false,
            waiting: Vec::new(),
        }
    }

    /// The largest number of live tasks whose ids the record has.
    pub const RUNNING_MAX: usize = 100;

    /// The largest number of instants that wait for the task before; later ones are left out.
    pub const WAITING_MAX: usize = 1_000;

    /// Whether the schedule makes no task now, because a live task has to end or to be given up before, or such a task may exist.
    #[must_use]
    pub fn has_to_wait(&self) -> bool {
        self.schedule.takes_turns() && (self.may_have_more || !self.running.is_empty())
    }

    /// Whether the live tasks of the name have to be looked for in the store before the schedule can go on.
    #[must_use]
    pub fn is_uncounted(&self) -> bool {
        self.may_have_more && self.running.is_empty()
    }

    /// Returns the instant one delay after now; `None`: the cadence is no fixed delay. The instant is never before the start, and never one
    /// that is decided, even if the clock has stepped back.
    #[must_use]
    pub fn after_a_delay(&self, now: Now) -> Option<Timestamp> {
        let Cadence::FixedDelay { ms } = self.schedule.cadence else { return None };
        let next = now.due_after(ms).unwrap_or(Timestamp::MAX);
        Some(next.max(self.beyond().saturating_plus_ms(1)))
    }

    /// Returns the instant after which instants may get a task: the last decided instant, or the millisecond before the start if that is
    /// later.
    #[must_use]
    pub fn beyond(&self) -> Timestamp {
        beyond(self.decided, self.schedule.start)
    }

    /// Takes in the answer for the first instant after [`beyond`](Self::beyond): the next instant, and the offsets of the zone.
    pub(crate) fn note_next(&mut self, found: Option<FoundInstant>) {
        self.next = self.in_time(found.map(|found| found.at));
        self.next_offset_s = found.filter(|_| self.next.is_some()).and_then(|found| found.offset_s);
        // Before its start, a schedule has decided nothing by the local time of its zone. A known offset is that of the rules by which `decided`
        // was decided, and the rules of this answer may be others.
        let is_of_decided = self.beyond() == self.decided;
        if self.offset_s.is_none() && is_of_decided {
            self.offset_s = found.and_then(|found| found.asked_offset_s);
        }
    }

    /// Notes that all instants up to this one are decided.
    pub(crate) fn decide(&mut self, last: FoundInstant) {
        let of_next = self.next_offset_s.filter(|_| self.next == Some(last.at));
        (self.decided, self.offset_s) = (last.at, last.offset_s.or(of_next));
    }

    /// Whether the tasks made and the waiting instants together have reached the count.
    #[must_use]
    pub fn is_counted_out(&self) -> bool {
        self.left() == Some(0)
    }

    /// Returns how many tasks are still to be made, without those of the waiting instants; `None`: any number.
    #[must_use]
    pub fn left(&self) -> Option<u64> {
        let begun = self.made.saturating_add(self.waiting.len() as u64);
        self.schedule.count.map(|count| count.saturating_sub(begun))
    }

    /// Returns `next` if it is not after the end and the count is not reached; `None` otherwise.
    #[must_use]
    pub fn in_time(&self, next: Option<Timestamp>) -> Option<Timestamp> {
        let end = self.schedule.end.unwrap_or(Timestamp::MAX);
        next.filter(|&next| next <= end && !self.is_counted_out())
    }
}

/// Returns the later one of `decided` and the millisecond before `start`.
#[must_use]
pub(crate) fn beyond(decided: Timestamp, start: Option<Timestamp>) -> Timestamp {
    let before_start = start.and_then(|start| Timestamp::from_ms(start.as_ms() - 1));
    before_start.map_or(decided, |before| before.max(decided))
}

/// A question to the driver for an instant of a cron expression, because the engine cannot compute such instants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InstantWanted {
    /// The expression.
    pub text: Arc<str>,
    /// The IANA name of the zone.
    pub zone: Arc<str>,
    /// The instant that is wanted.
    pub which: Which,
}

/// Which instant of the expression is wanted.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Which {
    /// The first instant after this one.
    FirstAfter(Timestamp),
    /// The last instant at `until` or before, and the number of instants from `from` to it.
    LastUntil {
        /// The first instant that counts.
        from: Timestamp,
        /// The latest instant that is wanted.
        until: Timestamp,
    },
    /// The instant at which the clock of the zone shows, by its present rules, what a clock with the offset `offset_s` shows at `at`. The
    /// expression does not matter.
    Moved {
        /// The instant.
        at: Timestamp,
        /// The offset from UTC that the zone had then by its rules of before (s).
        offset_s: i32,
    },
}

/// An instant that the driver found.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FoundInstant {
    /// The instant.
    pub at: Timestamp,
    /// For [`Which::LastUntil`]: the number of instants from `from` to this one, both included. Otherwise 1.
    pub count: u64,
    /// The offset from UTC that the zone has at `at` (s); `None`: it is not known, or there is no zone.
    pub offset_s: Option<i32>,
    /// For [`Which::FirstAfter`]: the same at the instant of the question. Otherwise `None`.
    pub asked_offset_s: Option<i32>,
}

impl FoundInstant {
    /// Makes an instant that stands for itself alone.
    #[must_use]
    pub fn one(at: Timestamp) -> Self {
        Self { at, count: 1, offset_s: None, asked_offset_s: None }
    }

    /// Makes the instant `last` that stands for all instants of an interval of `ms` from `first` on, both included.
    #[must_use]
    pub fn last_of_interval(ms: u64, first: Timestamp, last: Timestamp) -> Self {
        Self { count: last.ms_since(first) / ms + 1, ..Self::one(last) }
    }
}

/// The answer to a question for an instant: the instant, `None` if there is none, or the reason why the driver cannot tell.
pub type InstantFound = Result<Option<FoundInstant>, Arc<str>>;

/// The number of one question for an instant. The answer names the same number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AskId(pub u64);

/// Returns the key of the task that a schedule makes for an instant, such as `nightly@2030-03-10T07:00:00.000Z`.
#[must_use]
pub fn occurrence_key(name: &ScheduleName, at: Timestamp) -> Key {
    Key::new(&format!("{}@{}", name.as_str(), at.to_utc()))
        .expect("a schedule's name leaves room for an instant")
}

/// Returns the name of the schedule in the key of an occurrence, as [`occurrence_key`] writes it; `None`: the key has another form.
pub(crate) fn name_in_key(key: &Key) -> Option<&str> {
    let (name, instant) = key.as_str().rsplit_once('@')?;
    let is_of_form = |form: &str, text: &str| {
        let fits = |(form, byte): (u8, u8)| if form == b'0' { byte.is_ascii_digit() } else { byte == form };
        form.len() == text.len() && form.bytes().zip(text.bytes()).all(fits)
    };
    let (year, rest) = instant.split_once('-')?;
    let is_year = year.len() >= 4 && year.bytes().all(|byte| byte.is_ascii_digit());
    (is_year && is_of_form("00-00T00:00:00.000Z", rest)).then_some(name)
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
        assert_eq!(name_in_key(&key), Some("nightly"));
        let with_at = ScheduleName::new("a@b").expect("a name");
        assert_eq!(name_in_key(&occurrence_key(&with_at, Timestamp::MAX)), Some("a@b"));
        for other in ["nightly", "nightly@", "nightly@2030-03-12", "nightly@2030-03-12T06:30:00Z", "n@1-2-3"]
        {
            assert_eq!(name_in_key(&Key::new(other).expect("a key")), None, "{other}");
        }
    }
}
