//! The next step of a read.

use tickwheel_engine::Reply;

use crate::io::Call;

/// How a read goes on.
#[derive(Debug)]
pub(super) enum Next {
    /// The calls that have to be made. All of them are reads.
    Calls(Vec<Call>),
    /// The read is over.
    Reply(Reply),
    /// A record that was read is damaged: file, offset, and what is wrong.
    Damaged(String),
}
