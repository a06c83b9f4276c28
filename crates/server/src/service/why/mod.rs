//! The sentences that say why a task is where it is.

mod answer;
mod hand;
mod target;
mod words;

pub(crate) use answer::{done, why};
