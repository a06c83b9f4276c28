//! Timer queues: values that wait for a deadline.
//!
//! The crate has one trait, [`TimerQueue`]; one queue to use, [`Wheel`]; one slow queue that is easy to check, [`Model`]; five queues to
//! learn from, in [`classic`]; and one test suite, [`conformance`], that all of these pass and that every other implementation has to pass.
//!
//! This crate counts ticks. It has no clock, no thread, no lock, no I/O and no dependency, and needs only `alloc`. The caller decides how
//! long a tick is; [`ticks`] has the rules of rounding.
//!
//! # Example
//! Orders must be closed after 30 minutes unless they are paid. Ticks are milliseconds.
//!
//! ```
//! use tickwheel_core::{Refusal, RescheduleError, TimerQueue, Wheel};
//!
//! const MINUTE: u64 = 60_000;
//! let mut wheel = Wheel::new(0);
//!
//! // Schedule three entries. A handle is the claim on an entry.
//! let first = wheel.insert(30 * MINUTE, "order 1").unwrap();
//! let second = wheel.insert(30 * MINUTE, "order 2").unwrap();
//! let third = wheel.insert(30 * MINUTE, "order 3").unwrap();
//!
//! // Order 1 is paid. A handle works once.
//! assert_eq!(wheel.cancel(first), Some("order 1"));
//! assert_eq!(wheel.cancel(first), None);
//!
//! // Order 2 gets five minutes more.
//! let second = wheel.reschedule(second, 35 * MINUTE).unwrap();
//! assert_eq!(wheel.deadline(second), Some(35 * MINUTE));
//!
//! // The driver sleeps until the next wake.
//! assert_eq!(wheel.next_wake(), Some(30 * MINUTE));
//!
//! // The driver wakes a little late. The due entry fires, with its deadline.
//! let mut closed = vec![];
//! wheel.advance_with(30 * MINUTE + 4, |deadline, order| closed.push((deadline, order)));
//! assert_eq!(closed, [(30 * MINUTE, "order 3")]);
//!
//! // A call that is too late gets an error, and an insertion gives the value back.
//! assert_eq!(wheel.reschedule(third, 40 * MINUTE), Err(RescheduleError::Stale));
//! let refused = wheel.insert(30 * MINUTE, "order 4").unwrap_err();
//! assert_eq!((refused.why, refused.value), (Refusal::Elapsed, "order 4"));
//! ```
//!
//! # No standard library
//! The crate is `#![no_std]`, so no code in it can use a clock, a file or a thread. The tests link the standard library; for them
//! `clippy.toml` forbids the same things.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod handle;
mod kit;
mod queue;
mod refusal;
pub mod ticks;
mod wheel;

pub use handle::Handle;
pub use kit::{Model, classic, conformance};
pub use queue::TimerQueue;
pub use refusal::{Refusal, Refused, RescheduleError};
pub use wheel::{Ring, Wheel};
