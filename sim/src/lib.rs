//! The simulator. From one number, the seed, follow a disk, clocks, clients and their faults. The real engine and the
//! real store run in this world. An oracle, which knows neither engine nor store, checks every answer.

mod bounds;
pub mod bugs;
pub mod campaign;
pub mod cluster;
mod coverage;
pub mod database;
pub mod disk;
mod dump;
mod edges;
pub mod exhaustive;
pub mod fibers;
mod io;
pub mod nth;
mod options;
pub mod oracle;
mod play;
pub mod report;
pub mod rng;
mod run;
mod seat;
pub mod shrink;
pub mod totals;
mod trace;
mod words;
mod workload;

pub use coverage::Coverage;
pub use io::{SimIo, Slips, Switch};
pub use options::Options;
pub use run::{Outcome, PANIC, Watch, run};
