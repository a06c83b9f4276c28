//! The live tasks, and the ended tasks that are remembered.

mod index;
mod records;
#[expect(
    clippy::module_inception,
    reason = "the folder and the file are the same noun; the folder keeps its parts"
)]
mod table;

pub(crate) use records::record_bytes;
pub use table::Table;
