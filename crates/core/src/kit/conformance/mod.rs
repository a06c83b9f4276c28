//! The conformance suite that every [`TimerQueue`](crate::TimerQueue) has to pass.
//!
//! Each check is a function with the name of the behaviour that it checks (`wh1` to `wh19`). It panics if the queue behaves otherwise. A
//! queue describes itself by a [`Family`]; [`conformance_suite!`](crate::conformance_suite) makes one test of each check:
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
//! A queue that does not reach the end of time states its reach, and the checks use deadlines within this reach.
//!
//! [`script`] replays any sequence of operations on a queue and on the [`Model`](crate::Model), and compares every answer, every drop and
//! every panic. A generator can make the sequences.

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
