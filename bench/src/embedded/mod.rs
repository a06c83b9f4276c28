//! Callers of a queue in this process, for benchmarks of several stores.
//!
//! - `load`: the tasks. `caller`: one thread that puts them, or takes them. `span`: several threads that begin at one time.

mod caller;
mod load;
mod span;

pub(crate) use caller::Caller;
pub(crate) use load::{Load, PAYLOAD_BYTES, Task};
pub(crate) use span::together;
