//! The kit for tests: the suite that every store passes. No product code uses the kit.

pub mod conformance;
mod samples;
