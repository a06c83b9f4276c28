//! The live tasks, and the ended tasks that are remembered.

mod index;
#[expect(
    clippy::module_inception,
    reason = "the folder and the file are the same noun; the folder keeps its parts"
)]
mod table;

pub use table::Table;
pub(crate) use table::record_bytes;
