//! [`TimerQueue`]: the one trait that every wheel, and the model, implements.

use crate::{Handle, Refused, RescheduleError};

/// Entries that wait for a deadline.
///
/// Time is a count of ticks that the caller passes in; what a tick means is the caller's choice.
/// A queue reads no clock.
///
/// # Families
/// - *Ask*: [`now`](Self::now), [`len`](Self::len), [`deadline`](Self::deadline),
///   [`next_wake`](Self::next_wake).
/// - *Tell*: [`insert`](Self::insert), [`cancel`](Self::cancel),
///   [`reschedule`](Self::reschedule).
/// - *Let time pass*: [`advance`](Self::advance). A driver asks `next_wake`, waits until then, and
///   advances to the time it finds, which may be later.
///
/// # Laws
/// The laws hold for every implementation; [`conformance`](crate::conformance) checks them.
/// 1. Nothing fires before its deadline, and `advance(n)` leaves nothing with a deadline at or
///    before `n`.
/// 2. Entries fire by deadline, then by order of insertion. A rescheduled entry keeps its place in
///    the order of insertion.
/// 3. One jump of N ticks equals N jumps of one tick.
/// 4. Time never runs backwards and never wraps.
/// 5. A handle finds its own entry or nothing.
/// 6. A panic in `fire` takes with it only the value that was being fired.
#[expect(
    clippy::len_without_is_empty,
    reason = "the trait is kept to what a wheel must bring; `len` is O(1)"
)]
pub trait TimerQueue<T> {
    /// The tick up to which time has passed. Every pending deadline is after it.
    fn now(&self) -> u64;

    /// How many entries are pending.
    fn len(&self) -> usize;

    /// Stores `value` until `deadline`, a tick after `now`.
    ///
    /// # Errors
    /// Gives the value back: [`TooFar`](crate::Refusal::TooFar) if the deadline is `u64::MAX` or
    /// beyond what this queue can hold, [`Elapsed`](crate::Refusal::Elapsed) if it is not after
    /// `now`, [`Full`](crate::Refusal::Full) if there is no place left.
    fn insert(&mut self, deadline: u64, value: T) -> Result<Handle, Refused<T>>;

    /// Takes a pending entry out and returns its value. `None` if the handle is stale.
    fn cancel(&mut self, handle: Handle) -> Option<T>;

    /// Moves a pending entry to another deadline and returns the handle to use from now on.
    ///
    /// The entry keeps its place in the order of insertion: among equal deadlines it fires before
    /// those that were inserted after it, no matter how often either was rescheduled.
    ///
    /// # Errors
    /// [`Stale`](RescheduleError::Stale) before everything else, then
    /// [`TooFar`](RescheduleError::TooFar) and [`Elapsed`](RescheduleError::Elapsed) as for
    /// [`insert`](Self::insert). An error changes nothing.
    fn reschedule(&mut self, handle: Handle, deadline: u64) -> Result<Handle, RescheduleError>;

    /// The deadline of a pending entry. `None` if the handle is stale.
    fn deadline(&self, handle: Handle) -> Option<u64>;

    /// The next tick that needs an [`advance`](Self::advance): after `now`, and never after the
    /// nearest deadline. `None` if nothing is pending. The implementing type says how exact it is.
    fn next_wake(&self) -> Option<u64>;

    /// Lets time pass until `now`, fires everything due by then, and returns how many fired.
    ///
    /// `fire` gets the deadline and the value, by deadline and then by order of insertion. The
    /// entry is gone by then, and its handle is stale. `fire` cannot reach the queue; collect what
    /// should be inserted and insert it afterwards.
    ///
    /// A `now` that is not after the queue's own changes nothing and returns 0.
    ///
    /// # Panics
    /// If `fire` panics, at deadline `d`, the panic passes through. Everything that had not been
    /// handed out is still pending, `now()` is `d - 1`, and the next `advance` goes on from there.
    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(u64, T)) -> usize;
}
