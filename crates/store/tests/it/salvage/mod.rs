//! Compares what is salvaged of damaged directories with what was in them.

mod failing;
mod golden;
mod history;
mod honest;
mod lives;
mod random;
mod shared;
mod stories;
