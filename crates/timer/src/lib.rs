//! Time inside a process: timeouts, sleeps, delay queues, and operations that wait.
//!
//! | | for | like |
//! |---|---|---|
//! | [`Timer`] | running something later, unless it is cancelled; again and again | Netty's `HashedWheelTimer`, the JDK's `ScheduledThreadPoolExecutor` |
//! | [`Timer::sleep`], [`timeout`](Timer::timeout), [`interval`](Timer::interval) | async code, on any runtime | `tokio::time` |
//! | [`DelayQueue`] | taking elements when their time has come, by threads and futures | the JDK's `DelayQueue` |
//! | [`Purgatory`] | operations that wait on keys for a condition, or for their time | Kafka's `DelayedOperationPurgatory` |
//!
//! No task and no waiter is early. Each can be cancelled, and the answer says definitely whether it was. No lock is held while your code
//! runs. All of this ends with the process: for tasks that must survive it there is `tickwheel-queue`.
//!
//! # Clocks
//! This crate converts between time and ticks; no other crate does. A [`Clock`] returns the time since its origin as a [`Monotonic`]
//! reading. [`SystemClock`] reads the clock of the operating system. [`ManualClock`] moves when a test moves it, and hands over all due
//! tasks before that call returns. Now is rounded down to a tick and a deadline is rounded up, so that nothing fires early.
//!
//! # Example
//! A test that controls the time:
//!
//! ```
//! use std::time::Duration;
//! use tickwheel::{Job, ManualClock, Timer, TimeoutState};
//!
//! let clock = ManualClock::new();
//! // Bodies run on the thread that moves the clock.
//! let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build()?;
//! let timeout = timer.schedule(Duration::from_secs(15 * 86_400), || println!("confirm the receipt")).unwrap();
//!
//! clock.advance(Duration::from_secs(15 * 86_400 - 1));
//! assert_eq!(timeout.state(), TimeoutState::Pending);
//! clock.advance(Duration::from_secs(1));
//! assert_eq!(timeout.state(), TimeoutState::Fired);
//! # Ok::<(), tickwheel::BuildError>(())
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

// The code examples of these pages are compiled as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/porting.md")]
struct Porting;
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tutorials/timers.md")]
struct Timers;

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
