//! The purgatory by its public API, on a clock that is moved by hand.

mod ends;
mod handover;
mod model;
mod panics;
mod probe;
mod races;
mod values;
mod waits;
