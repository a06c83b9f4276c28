//! The suite that every [`TimerQueue`](crate::TimerQueue) passes.
//!
//! Each check is a function, named after the behaviour it holds (`wh1` to `wh19`), that panics if
//! the queue behaves otherwise. A queue describes itself by a [`Family`];
//! [`conformance_suite!`](crate::conformance_suite) turns that into one test for each check:
//!
//! ```no_run
//! use tickwheel_core::Model;
//! use tickwheel_core::conformance::Family;
//!
//! struct Models;
//! impl Family for Models {
//!     type Queue<T> = Model<T>;
//!     fn start<T>(start: u64) -> Model<T> {
//!         Model::new(start)
//!     }
//! }
//!
//! tickwheel_core::conformance_suite!(model, Models);
//! # fn main() {}
//! ```
//!
//! A queue that does not reach the end of time says how far it reaches, and runs every check within
//! that.
//!
//! [`script`] goes further: it replays any sequence of operations on a queue and on the
//! [`Model`](crate::Model) and compares every answer, every drop and every panic; feed it from a
//! generator.

mod book;
mod family;
mod firing;
mod handles;
mod memory;
pub(crate) mod random;
pub mod script;
mod suite;
mod wake;

pub use family::{Catch, Family};
pub use firing::*;
pub use handles::*;
pub use memory::*;
pub use wake::*;
