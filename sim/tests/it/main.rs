//! The tests of the simulator and of what it runs.

mod postgres;
mod push;
mod seeds;
mod store;
