//! [`Terms`]: priority, group, retries and expiry, as an owner asks for them in a put or in a schedule. [`Extra`]: the members of a task
//! that most tasks do not have.
//!
//! To give tasks a new member, start in this file. The compiler then reports the other places: the codec of the store (`codec/extra.rs`)
//! and the view of a task.

use std::sync::Arc;

use super::LeaseNo;
use crate::name::Group;
use crate::time::Timestamp;

/// The priority of a task whose owner gave none. Ready tasks with a smaller priority number are leased first.
pub const PRIORITY_DEFAULT: u32 = 1024;

/// Priority, group, retries and expiry of a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Terms {
    /// Ready tasks with a smaller number are leased first. The default is [`PRIORITY_DEFAULT`].
    pub priority: u32,
    /// The group of the task. The tasks of one group in one queue share the queue's in-flight limit for a group.
    pub group: Option<Group>,
    /// How often and how soon the task is tried again; `None`: as the settings of the queue say, or else the default [`Retry`].
    pub retry: Option<Retry>,
    /// How long after the put the task is given up (ms), unless a worker has the task then or has finished it; `None`: never.
    pub expire_after_ms: Option<u64>,
}

impl Default for Terms {
    fn default() -> Self {
        Self { priority: PRIORITY_DEFAULT, group: None, retry: None, expire_after_ms: None }
    }
}

impl Terms {
    /// Returns the terms other than the priority as the extra members of a task that is put at `put_at` at the latest.
    pub(crate) fn kept(self, put_at: Timestamp) -> Extra {
        let Self { priority: _, group, retry, expire_after_ms } = self;
        let expire_at = expire_after_ms.map(|ms| put_at.saturating_plus_ms(ms));
        Extra { group, retry, expire_at, ..Extra::default() }
    }

    /// Returns how many bytes all texts in the terms take.
    pub(crate) fn text_bytes(&self) -> usize {
        let Self { priority: _, group, retry: _, expire_after_ms: _ } = self;
        group.as_ref().map_or(0, |group| group.as_str().len())
    }
}

/// Members of a task that most tasks do not have.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Extra {
    /// The group of the task. The tasks of one group in one queue share the queue's in-flight limit for a group.
    pub group: Option<Group>,
    /// The lease duration that the producer chose (ms).
    pub ttr_ms: Option<u64>,
    /// Kept for the number of the door through which the task was put. A put sets 0. An import keeps the number of the imported task.
    pub origin: u8,
    /// When the task is given up, unless a worker has the task then or has finished it; `None`: never.
    pub expire_at: Option<Timestamp>,
    /// W3C trace context of the put.
    pub trace: Option<Arc<str>>,
    /// How often and how soon the task is tried again; `None`: as the settings of the queue say, or else the default [`Retry`].
    pub retry: Option<Retry>,
    /// The last attempts that failed, the oldest first, at most [`Failure::KEPT`].
    pub failures: Vec<Failure>,
    /// When and why the task was given up.
    pub dead: Option<Dead>,
    /// The index of the instant of the timeline at which the task is due, from 0.
    pub step: u32,
    /// The lease under which a worker last acked an instant of the timeline. A second ack of this lease gets the same answer as the first
    /// ack.
    pub acked: Option<LeaseNo>,
    /// Counts of the task's events so far.
    pub tally: Tally,
}

impl Extra {
    /// Returns about how many bytes all texts and failures take together.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        let Self {
            group,
            trace,
            failures,
            ttr_ms: _,
            origin: _,
            expire_at: _,
            retry: _,
            dead: _,
            step: _,
            acked: _,
            tally: _,
        } = self;
        let failures = failures.iter().map(|failure| 32 + failure.reason.as_deref().map_or(0, str::len));
        let texts =
            group.as_ref().map_or(0, |group| group.as_str().len()) + trace.as_deref().map_or(0, str::len);
        texts + failures.sum::<usize>()
    }

    /// Returns the members in a box, or `None` if all have their defaults.
    #[must_use]
    pub fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

/// Counts of the events of a task so far. A running lease is not counted before it ends. A redrive does not reset the counts, but a put
/// that replaces the task does.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Number of leases that ended without an ack. A delivery that reached no worker is not counted.
    pub leases: u32,
    /// Number of `leases` that ran out.
    pub expiries: u32,
    /// Number of `leases` that ended because the worker gave the task back.
    pub nacks: u32,
    /// Number of `leases` that ended because the worker gave up the task.
    pub burials: u32,
    /// Number of redrives and runs with which owners made the task live again or due at once.
    pub redrives: u32,
    /// The delay of the last nack (ms), or else the delay of the put if a call made the task due at once. `None`: there was neither a nack
    /// nor such a call.
    pub delay_ms: Option<u64>,
}

/// Why a scheduled task is made due before its time, or a dead task is made live again.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Redriven {
    /// The owner wants the task to run.
    ByOwner,
    /// A worker leases exactly this task by its id.
    ForLease,
}

impl Tally {
    /// Counts that an owner made the task due before its time, or made the dead task live again. Counts nothing if a worker did so.
    pub(crate) fn count_redrive(&mut self, by: Redriven) {
        self.redrives = self.redrives.saturating_add(u32::from(by == Redriven::ByOwner));
    }

    /// Counts a lease that ended without an ack.
    pub(crate) fn count(&mut self, how: Failed) {
        self.leases = self.leases.saturating_add(1);
        let of_them = match how {
            Failed::Nacked => &mut self.nacks,
            Failed::LeaseEnded => &mut self.expiries,
            Failed::Buried => &mut self.burials,
            // A task that its target will never take gets no count of its own: `Dead` says why the task died, and `burials` counts what
            // clients of beanstalkd buried.
            Failed::Revoked | Failed::Gone | Failed::Undeliverable => return,
        };
        *of_them = of_them.saturating_add(1);
    }
}

/// How often a task is tried, and how long it waits after a nack that names no delay.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Retry {
    /// The task is dead after this many attempts that failed, at least 1; `None`: the task is tried for ever.
    pub max_attempts: Option<u32>,
    /// The wait after a nack that names no delay; `None`: the task is ready again at once.
    pub backoff: Option<Backoff>,
}

/// How long a task waits before its next attempt.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Backoff {
    /// Whether the wait doubles with each attempt.
    pub doubles: bool,
    /// The first wait (ms), before the limit and the jitter.
    pub base_ms: u64,
    /// The longest wait (ms).
    pub max_ms: u64,
    /// The largest share of a wait that is left out at random (percent, at most 100). So tasks that failed together do not come back
    /// together.
    pub jitter_percent: u8,
}

impl Backoff {
    /// Returns how long a task waits after its attempt `attempts` (from 1) failed (ms). The jitter is computed from `chance`, which is any
    /// number. The same attempt with the same `chance` gives the same wait.
    ///
    /// ```
    /// use tickwheel_engine::Backoff;
    /// let backoff = Backoff { doubles: true, base_ms: 1_000, max_ms: 10_000, jitter_percent: 0 };
    /// let waits = [1, 2, 3, 4, 5].map(|attempts| backoff.wait_ms(attempts, 7));
    /// assert_eq!(waits, [1_000, 2_000, 4_000, 8_000, 10_000]);
    /// ```
    #[must_use]
    pub fn wait_ms(&self, attempts: u32, chance: u64) -> u64 {
        let Self { doubles, base_ms, max_ms, jitter_percent } = *self;
        let doublings = if doubles { attempts.saturating_sub(1) } else { 0 };
        let factor = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
        let whole = base_ms.saturating_mul(factor).min(max_ms);
        let left_out_max = u128::from(whole) * u128::from(jitter_percent.min(100)) / 100;
        let left_out = u128::from(chance) % (left_out_max + 1);
        whole - u64::try_from(left_out).expect("a part of what fits")
    }
}

/// An attempt that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// When the attempt ended.
    pub at: Timestamp,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// How the attempt failed.
    pub how: Failed,
    /// The reason that its worker gave.
    pub reason: Option<Arc<str>>,
}

impl Failure {
    /// How many failures of one task are kept. The oldest ones are dropped first.
    pub const KEPT: usize = 10;
}

/// How an attempt failed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Failed {
    /// The worker gave the task back.
    Nacked,
    /// The lease ran out.
    LeaseEnded,
    /// The owner took the task back from the worker.
    Revoked,
    /// The worker gave the task up.
    Buried,
    /// The worker went away, for example because its connection closed.
    Gone,
    /// The target of the queue will never take the task. The death of the task says why.
    Undeliverable,
}

/// When and why a task was given up.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Dead {
    /// When the task was given up.
    pub at: Timestamp,
    /// When the task had been due.
    pub due_at: Timestamp,
    /// Why the task was given up.
    pub why: Death,
    /// Whether the task has lost its key to another task. Then the task is found by its id alone.
    pub keyless: bool,
}

/// Why a task was given up.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Death {
    /// The number of failed attempts reached the limit of the retry policy.
    MaxAttempts,
    /// The task's `expire_at` passed before a worker finished the task.
    Expired,
    /// A worker gave the task up. The task is kept until a caller redrives or cancels it, without a limit of time.
    Buried,
    /// The target of the queue refused the task for good.
    Refused,
    /// The template of the queue's target could not be filled with the values of the task.
    Template,
    /// The payload was larger than the queue's target takes.
    TooLarge,
}

/// The first instant that stands for "never forgotten", a thousand years after the Unix epoch. Tasks that workers gave up get instants
/// behind this one, in the order in which they were given up.
pub(crate) const BURIED_FROM: Timestamp = match Timestamp::from_ms(1_000 * 365_250 * 86_400) {
    Some(instant) => instant,
    None => unreachable!(),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_never_exceeds_its_limit_and_jitter_only_shortens_it() {
        let fixed = Backoff { doubles: false, base_ms: 700, max_ms: 1_000, jitter_percent: 0 };
        let longest = Backoff { doubles: true, base_ms: 1_000, max_ms: u64::MAX, jitter_percent: 0 };
        assert_eq!((fixed.wait_ms(1, 9), fixed.wait_ms(99, 9)), (700, 700));
        assert_eq!(longest.wait_ms(u32::MAX, 3), u64::MAX);
        assert_eq!(longest.wait_ms(0, 3), 1_000);
        for chance in [0, 1, 499, 500, 501, u64::MAX] {
            let wait = Backoff { jitter_percent: 50, ..longest }.wait_ms(1, chance);
            assert!((500..=1_000).contains(&wait), "{wait} by {chance}");
        }
        let all = Backoff { jitter_percent: 100, ..longest };
        assert_eq!((all.wait_ms(1, 1_000), all.wait_ms(1, 1_001)), (0, 1_000));
    }
}
