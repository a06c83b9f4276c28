//! The wheels of `tickwheel-core`, to turn in a page: the page calls `exports`, and draws the [`state`](model::Model::state) that it gets.
//!
//! Nothing here computes where an entry goes or when it fires: core does, and this crate asks it and writes the answer as JSON.

#[cfg(target_arch = "wasm32")]
mod exports;
pub mod model;
mod structure;

pub use structure::Kind;
