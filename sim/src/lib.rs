//! The simulated world: one number makes a disk, clocks, clients and their faults; the real engine and the real store run
//! in it, and an oracle that knows neither checks every answer.

mod coverage;
pub mod disk;
mod io;
mod options;
pub mod oracle;
pub mod rng;
mod run;
mod trace;
mod words;
mod workload;

pub use coverage::Coverage;
pub use io::{Gate, SimIo};
pub use options::Options;
pub use run::{Outcome, PANIC, Watch, run};
