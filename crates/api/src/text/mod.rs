//! Texts and their refusals, below the language of bodies: durations, times, paths, and JSON that every reader reads.

pub(crate) mod bad_request;
pub mod duration;
pub mod path;
pub(crate) mod portable;
pub mod time;
