//! The next step of a read.

use tickwheel_engine::Reply;

use crate::io::Call;

/// How a read goes on.
#[derive(Debug)]
pub(super) enum Next {
    /// These calls, all of them reads, have to be made.
    Calls(Vec<Call>),
    /// It is over.
    Reply(Reply),
    /// A record that was read is damaged: file, offset, and what is wrong.
    Damaged(String),
}
