//! Checkpoints: a recovery starts from one, so that the log does not grow for ever.

mod block;
mod pieces;
mod reader;
mod writer;

pub(crate) use block::{Listed, Start, read_start};
pub(crate) use pieces::{ALL_BLOCKS, ENDED_TASKS, Hole, Pieces, read_pieces};
pub(crate) use reader::{Damage, Loaded, load};
pub(crate) use writer::{LogEnd, Source, Writer};
