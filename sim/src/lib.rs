//! The simulated world: one number makes a disk, clocks, clients and their faults; the real engine and the real store run
//! in it, and an oracle that knows neither checks every answer.

pub mod disk;
pub mod oracle;
pub mod rng;
