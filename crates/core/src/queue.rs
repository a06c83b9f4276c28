//! [`TimerQueue`]: the trait that every wheel and the model implement.

use crate::{Handle, Refused, RescheduleError};

/// Entries that wait for a deadline.
///
/// Time is a count of ticks that the caller passes in; the caller decides how long a tick is. A queue reads no clock.
///
/// # Families
/// - *Queries*: [`now`](Self::now), [`len`](Self::len), [`deadline`](Self::deadline),
///   [`next_wake`](Self::next_wake).
/// - *Changes*: [`insert`](Self::insert), [`cancel`](Self::cancel),
///   [`reschedule`](Self::reschedule).
/// - *Time*: [`advance`](Self::advance). A driver reads `next_wake`, sleeps until that tick, and advances to the tick that its clock then
///   shows, which may be later.
///
/// # Laws
/// The laws hold for every implementation; [`conformance`](crate::conformance) checks them.
/// 1. No entry fires before its deadline, and after `advance(n)` no entry with a deadline at or before `n` is pending.
/// 2. Entries fire by deadline, then by order of insertion. A rescheduled entry keeps its place in
///    the order of insertion.
/// 3. One jump of N ticks has the same result as N jumps of one tick.
/// 4. Time never runs backwards and never wraps.
/// 5. A handle finds its own entry or nothing.
/// 6. A panic in `fire` loses only the value that was being fired.
#[expect(
    clippy::len_without_is_empty,
    reason = "the trait is kept to what a wheel must bring; `len` is O(1)"
)]
pub trait TimerQueue<T> {
    /// The tick up to which time has passed. Every pending deadline is after this tick.
    fn now(&self) -> u64;

    /// The number of pending entries.
    fn len(&self) -> usize;

    /// Stores `value` until `deadline`, a tick after `now`.
    ///
    /// # Errors
    /// Gives the value back: [`TooFar`](crate::Refusal::TooFar) if the deadline is `u64::MAX` or beyond what this queue can hold,
    /// [`Elapsed`](crate::Refusal::Elapsed) if the deadline is not after `now`, [`Full`](crate::Refusal::Full) if there is no free place.
    fn insert(&mut self, deadline: u64, value: T) -> Result<Handle, Refused<T>>;

    /// Takes a pending entry out and returns its value. `None` if the handle is stale.
    fn cancel(&mut self, handle: Handle) -> Option<T>;

    /// Moves a pending entry to another deadline and returns the handle to use from now on.
    ///
    /// The entry keeps its place in the order of insertion: among equal deadlines it fires before entries that were inserted after it, even
    /// if one of them was rescheduled.
    ///
    /// # Errors
    /// [`Stale`](RescheduleError::Stale) is checked first, then [`TooFar`](RescheduleError::TooFar) and
    /// [`Elapsed`](RescheduleError::Elapsed) as for [`insert`](Self::insert). A refused reschedule changes nothing.
    fn reschedule(&mut self, handle: Handle, deadline: u64) -> Result<Handle, RescheduleError>;

    /// The deadline of a pending entry. `None` if the handle is stale.
    fn deadline(&self, handle: Handle) -> Option<u64>;

    /// The next tick at which [`advance`](Self::advance) has to be called: after `now`, and never after the nearest deadline. `None` if
    /// nothing is pending. The documentation of each implementation says how exact it is.
    fn next_wake(&self) -> Option<u64>;

    /// Advances the time to `now`, fires every entry that is due by then, and returns how many fired.
    ///
    /// `fire` gets the deadline and the value of each entry, ordered by deadline and then by order of insertion. When `fire` is called, the
    /// entry is removed already, and its handle is stale. `fire` cannot use the queue; collect the values to insert and insert them
    /// afterwards.
    ///
    /// A `now` that is not after the queue's own time changes nothing and returns 0.
    ///
    /// # Panics
    /// If `fire` panics at deadline `d`, the panic passes through to the caller. All entries that were not handed out are still pending,
    /// `now()` is `d - 1`, and the next `advance` continues from there.
    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(u64, T)) -> usize;
}
