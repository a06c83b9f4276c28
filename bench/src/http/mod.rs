//! `http`: what the HTTP rim costs beside the queue alone, and how late tasks reach workers.

mod bare;
mod batches;
mod burst;
mod control;
mod lateness;
mod puts;
mod run;
mod server;

pub(crate) use control::sleep as control_sleep;
pub(crate) use lateness::{figures as lateness_figures, now_ms};
pub(crate) use run::{HttpArguments, Part, part, run};
