//! From files to a table: the latest checkpoint, then the log behind it.

mod found;
#[expect(
    clippy::module_inception,
    reason = "the folder and the file are the same noun; the folder keeps its parts"
)]
mod recovery;
mod replay;

pub(crate) use recovery::{Recovered, recover};
