//! `http`: what the HTTP rim costs beside the queue alone, and how late tasks reach workers.

mod batches;
mod burst;
mod control;
mod lateness;
mod run;
mod server;

pub(crate) use run::{HttpArguments, Part, part, run};
