//! Checkpoints: a recovery starts from a checkpoint, so that the log before the checkpoint can be removed.

mod block;
mod pieces;
mod reader;
mod writer;

pub(crate) use block::{Listed, Start, read_start};
pub(crate) use pieces::{ALL_BLOCKS, ENDED_TASKS, Hole, Pieces, read_pieces};
pub(crate) use reader::{Damage, Loaded, load};
pub(crate) use writer::{LogEnd, Source, Writer};
