//! The answers of a queue that refuses an entry or a reschedule: [`Refused`], [`Refusal`] and [`RescheduleError`].

use core::error::Error;
use core::fmt;

/// An insertion that was refused, with the value given back.
///
/// Nothing was stored, and nothing in the queue changed.
///
/// ```
/// use tickwheel_core::{Refusal, TimerQueue, Wheel};
///
/// let mut wheel = Wheel::new(100);
/// let refused = wheel.insert(100, "too late").unwrap_err();
/// assert_eq!(refused.why, Refusal::Elapsed);
/// assert_eq!(refused.value, "too late");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Refused<T> {
    /// The value that was to be stored.
    pub value: T,
    /// The reason for the refusal.
    pub why: Refusal,
}

/// The reason why an insertion was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The deadline is not after `now`. The caller decides what to do: run the work at once, or drop it.
    Elapsed,
    /// The deadline is `u64::MAX`, which is not a valid deadline, or is beyond what this queue can hold.
    TooFar,
    /// The queue has no place left for another entry.
    Full,
}

/// The reason why an entry was not rescheduled. A refused reschedule changes nothing: a pending entry keeps its deadline, its handle and
/// its place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RescheduleError {
    /// The handle is stale: its entry has fired or was cancelled. A stale handle is reported first, whatever the deadline is.
    Stale,
    /// The new deadline is not after `now`.
    Elapsed,
    /// The new deadline is `u64::MAX`, which is not a valid deadline, or is beyond what this queue can hold.
    TooFar,
}

const ELAPSED: &str = "the deadline is not after now; the earliest one is now + 1";
const TOO_FAR: &str = "the deadline is beyond what this queue can hold; the latest one ever is u64::MAX - 1";

/// The reason why a deadline is refused, for an insertion or a reschedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Objection {
    Elapsed,
    TooFar,
}

impl Objection {
    /// Gives the value back.
    pub(crate) fn refuse<T>(self, value: T) -> Refused<T> {
        let why = match self {
            Self::Elapsed => Refusal::Elapsed,
            Self::TooFar => Refusal::TooFar,
        };
        Refused { value, why }
    }
}

impl From<Objection> for RescheduleError {
    fn from(objection: Objection) -> Self {
        match objection {
            Objection::Elapsed => Self::Elapsed,
            Objection::TooFar => Self::TooFar,
        }
    }
}

// A hand-written impl without the bound `T: Debug`, so that a refusal of any `T` can be reported and unwrapped.
impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").field("why", &self.why).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Elapsed => ELAPSED,
            Self::TooFar => TOO_FAR,
            Self::Full => "the queue has no place left; cancel or fire an entry first",
        })
    }
}

impl fmt::Display for RescheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stale => "the handle is stale: its entry has fired or was cancelled",
            Self::Elapsed => ELAPSED,
            Self::TooFar => TOO_FAR,
        })
    }
}

impl<T> Error for Refused<T> {}
impl Error for Refusal {}
impl Error for RescheduleError {}
