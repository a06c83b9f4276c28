//! [`Timer`]: many timeouts on one thread, the driver.
//!
//! ```text
//! threads ─ schedule, cancel, reschedule ─▶ shard (one for each thread) ─┐
//!                                                                        ├▶ turn: the wheel ─▶ executor ─▶ body
//! driver ─ sleeps to the next wake ─────── collects when it has to ──────┘        └─▶ wakers of futures
//! ```
//!
//! `word` decides every race; `turn` is pure; `core` connects the parts; `nap` lets the driver sleep.

mod body;
mod builder;
mod common;
mod core;
mod entry;
mod firing;
mod job;
mod lateness;
mod limit;
mod metrics;
mod nap;
mod owner;
mod periodic;
mod refused;
mod shard;
mod timeout;
mod turn;
mod unfired;
mod word;

pub(crate) use self::core::Core;
pub(crate) use body::Waiter;
pub use builder::{BuildError, TimerBuilder};
pub(crate) use entry::AnyEntry;
pub(crate) use firing::guarded;
pub(crate) use job::Errand;
pub use job::Job;
pub use lateness::Lateness;
pub use metrics::Metrics;
pub use owner::Timer;
pub(crate) use periodic::at_least_a_tick;
pub use periodic::{Every, FixedDelay};
pub use refused::{Refusal, Refused};
pub(crate) use shard::Shard;
pub use timeout::{Timeout, TimeoutState};
pub use unfired::{Fate, OnClose, Unfired, UnfiredTask};
pub(crate) use word::Phase;
