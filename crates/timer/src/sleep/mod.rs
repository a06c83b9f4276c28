//! Time in async code, on any runtime: [`Sleep`], [`Interval`], and a time limit for other futures.

mod future;
mod interval;
mod limit;

pub use future::{Sleep, SleepError};
pub use interval::Interval;
pub use limit::TimeoutError;
pub(crate) use limit::within;
