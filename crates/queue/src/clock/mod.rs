//! The time of a queue: the clocks of the machine, or a clock that stands still until it is moved.

pub(crate) mod time;
pub mod wall;
