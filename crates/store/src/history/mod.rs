//! The ended tasks that are remembered.

mod histories;
#[expect(
    clippy::module_inception,
    reason = "the folder and the file are the same noun; the folder keeps its parts"
)]
mod history;
mod limits;

pub(crate) use histories::Histories;
pub use limits::HistoryLimits;
