//! The next step of a read.

use tickwheel_engine::Reply;

use crate::io::Call;

/// How a read goes on. In a `Result` with this type, the error is the text of a damage: the file, the offset, and what is wrong.
#[derive(Debug)]
pub(super) enum Next {
    /// The calls that have to be made. All of them are reads.
    Calls(Vec<Call>),
    /// The read is over.
    Reply(Reply),
}
