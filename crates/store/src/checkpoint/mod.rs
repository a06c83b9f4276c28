//! Checkpoints: what recovery starts from, so that the log does not grow for ever.

mod block;
mod reader;
mod writer;

pub(crate) use block::Start;
pub(crate) use reader::{Damage, load};
pub(crate) use writer::{LogEnd, Writer};
