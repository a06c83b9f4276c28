//! The kit for teaching and tests: textbook queues, a model to compare with, and the conformance suite. No product code uses the kit; its
//! names are public at the root of the crate.

pub mod classic;
pub mod conformance;
mod model;

pub use model::Model;
