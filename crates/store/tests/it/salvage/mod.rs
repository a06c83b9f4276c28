//! Compares what is salvaged of damaged directories with what was in them.

#[path = "../doctor/disk.rs"]
mod disk;

mod failing;
mod golden;
mod history;
mod honest;
mod lives;
mod random;
mod shared;
mod stories;
