//! Time inside a process: monotonic clocks today; timers, delay queues and the purgatory later.
//!
//! This is the only crate that knows both instants and ticks. A [`Clock`] tells how long it has
//! been running, as a [`Monotonic`] reading; [`SystemClock`] asks the operating system, and
//! [`ManualClock`] moves when a test says so. A reading becomes a tick of a
//! [`TimerQueue`](tickwheel_core::TimerQueue) by rounding down, a deadline by rounding up, so that
//! nothing fires early.
//!
//! # Example
//! A test that owns its time:
//!
//! ```
//! use std::num::NonZeroU64;
//! use std::time::Duration;
//! use tickwheel::{Clock, ManualClock};
//! use tickwheel_core::{TimerQueue, Wheel};
//!
//! let milli = NonZeroU64::new(1_000_000).unwrap();
//! let clock = ManualClock::new();
//! let mut wheel = Wheel::new(clock.now().floor_ticks(milli));
//!
//! let due = clock.now().checked_add(Duration::from_micros(1_500)).unwrap();
//! wheel.insert(due.ceil_ticks(milli), "hello").unwrap();
//!
//! // After 1.5 ms the tick of the deadline, 2, has not begun.
//! clock.advance(Duration::from_micros(1_500));
//! assert_eq!(wheel.advance_with(clock.now().floor_ticks(milli), |_, _| ()), 0);
//! clock.advance(Duration::from_micros(500));
//! assert_eq!(wheel.advance_with(clock.now().floor_ticks(milli), |_, _| ()), 1);
//! ```

mod clock;
mod delay_queue;
mod executor;
mod manual;
mod missed;
mod monotonic;
mod pool;
mod purgatory;
mod sleep;
mod sync;
mod system;
mod timer;

// The snippets of the page are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/porting.md")]
struct Porting;

pub use clock::{Clock, Follower, Motion};
pub use delay_queue::{Closed, DelayHandle, DelayQueue, Next};
pub use executor::Executor;
pub use manual::ManualClock;
pub use missed::Missed;
pub use monotonic::Monotonic;
pub use pool::Pool;
pub use purgatory::{Operation, Purgatory, SubmitError, SubmitRefusal, Submitted, Waiting};
pub use sleep::{Interval, Sleep, SleepError, TimeoutError};
pub use system::SystemClock;
pub use timer::{
    BuildError, Every, Fate, FixedDelay, Job, Lateness, Metrics, OnClose, Refusal, Refused, Timeout,
    TimeoutState, Timer, TimerBuilder, Unfired, UnfiredTask,
};
