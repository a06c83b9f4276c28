//! Checkpoints: what recovery starts from, so that the log does not grow for ever.

mod block;
mod reader;
mod writer;

pub(crate) use block::{Listed, Start};
pub(crate) use reader::{Damage, Loaded, load};
pub(crate) use writer::{LogEnd, Source, Writer};
