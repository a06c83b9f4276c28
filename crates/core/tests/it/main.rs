//! The tests of the wheels and queues, from outside of the crate. What reads the memory of its process is a program of its own,
//! `tests/memory.rs`.

mod classic;
mod classic_hashed;
mod classic_heap;
mod classic_hierarchical;
mod classic_simple;
mod conformance;
mod face;
mod families;
mod panics;
mod scripts;
mod ticks;
mod wheel;

// `panics` is a module of the wheel's own tests, too, and finds the name beside itself in both.
use tickwheel_core::conformance::script::is_on_purpose;
