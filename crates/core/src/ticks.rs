//! The rules of rounding: a deadline is rounded up to a tick, *now* is rounded down to a tick.
//!
//! A tick has `t` nanoseconds. A deadline of `d` nanoseconds becomes tick ⌈d / t⌉, and a clock reading of `n` nanoseconds becomes tick
//! ⌊n / t⌋. An entry fires at the first reading with ⌊n / t⌋ >= ⌈d / t⌉. From this follows n >= d, so no entry fires early. If the driver
//! wakes at [`nanos_of_tick`] of the deadline's tick, the entry fires less than one tick after its deadline.
//!
//! | nanoseconds, t = 10 | as a deadline ([`ticks_up`]) | as now ([`ticks_down`]) |
//! |---|---|---|
//! | 0 | 0 | 0 |
//! | 1 | 1 | 0 |
//! | 9 | 1 | 0 |
//! | 10 | 1 | 1 |
//! | 11 | 2 | 1 |
//!
//! No function here wraps. A result that does not fit becomes `u64::MAX`. This is not a valid deadline, so every queue refuses it with
//! [`TooFar`](crate::Refusal::TooFar) instead of firing the entry too early.

use core::num::NonZeroU64;

/// The tick of a deadline: `nanos` in ticks of `tick_nanos`, rounded up.
///
/// ```
/// use core::num::NonZeroU64;
/// use tickwheel_core::ticks::ticks_up;
///
/// let milli = NonZeroU64::new(1_000_000).unwrap();
/// assert_eq!(ticks_up(2_000_000, milli), 2);
/// assert_eq!(ticks_up(2_000_001, milli), 3);
/// ```
#[must_use]
pub const fn ticks_up(nanos: u64, tick_nanos: NonZeroU64) -> u64 {
    nanos.div_ceil(tick_nanos.get())
}

/// The tick that has been reached at `nanos`: `nanos` in ticks of `tick_nanos`, rounded down.
///
/// ```
/// use core::num::NonZeroU64;
/// use tickwheel_core::ticks::ticks_down;
///
/// let milli = NonZeroU64::new(1_000_000).unwrap();
/// assert_eq!(ticks_down(1_999_999, milli), 1);
/// assert_eq!(ticks_down(2_000_000, milli), 2);
/// ```
#[must_use]
pub const fn ticks_down(nanos: u64, tick_nanos: NonZeroU64) -> u64 {
    nanos / tick_nanos.get()
}

/// The tick of a deadline that is `delay_nanos` after `now_nanos`. The sum is rounded up; `now_nanos` itself is not rounded.
///
/// The result is `u64::MAX`, which every queue refuses, if the sum does not fit into 64 bits of nanoseconds (584 years). A saturated sum
/// would be an earlier deadline than the requested one.
///
/// ```
/// use core::num::NonZeroU64;
/// use tickwheel_core::ticks::deadline_ticks;
///
/// let milli = NonZeroU64::new(1_000_000).unwrap();
/// // Half a millisecond plus half a millisecond is the end of the first tick, not of the second.
/// assert_eq!(deadline_ticks(500_000, 500_000, milli), 1);
/// assert_eq!(deadline_ticks(500_000, 500_001, milli), 2);
/// assert_eq!(deadline_ticks(500_000, u64::MAX, milli), u64::MAX);
/// ```
#[must_use]
pub const fn deadline_ticks(now_nanos: u64, delay_nanos: u64, tick_nanos: NonZeroU64) -> u64 {
    match now_nanos.checked_add(delay_nanos) {
        Some(nanos) => ticks_up(nanos, tick_nanos),
        None => u64::MAX,
    }
}

/// The first nanosecond of `tick`, at which a driver has to wake for it; `u64::MAX` if the result does not fit.
///
/// ```
/// use core::num::NonZeroU64;
/// use tickwheel_core::ticks::nanos_of_tick;
///
/// let milli = NonZeroU64::new(1_000_000).unwrap();
/// assert_eq!(nanos_of_tick(3, milli), 3_000_000);
/// assert_eq!(nanos_of_tick(u64::MAX - 1, milli), u64::MAX);
/// ```
#[must_use]
pub const fn nanos_of_tick(tick: u64, tick_nanos: NonZeroU64) -> u64 {
    tick.saturating_mul(tick_nanos.get())
}
