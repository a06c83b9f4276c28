//! [`Summary`]: the counts of a replay.

use std::fmt::Write;
use std::time::Duration;

/// The counts of a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Summary {
    /// Lines with an operation.
    pub(super) lines: u64,
    /// Accepted puts.
    pub(super) puts: u64,
    /// Cancels that came in time.
    pub(super) cancelled: u64,
    /// Cancels of a task that had fired already.
    pub(super) too_late: u64,
    /// Cancels of an unknown task.
    pub(super) unknown: u64,
    /// Deliveries.
    pub(super) fired: u64,
}

impl Summary {
    /// The summary for people.
    pub(crate) fn to_text(self, took: Duration) -> String {
        let Self { lines, puts, cancelled, too_late, unknown, fired } = self;
        let mut text = format!("{puts} puts, {cancelled} cancelled, {too_late} too late, {fired} fired");
        if unknown > 0 {
            let _infallible = write!(text, ", {unknown} unknown");
        }
        let seconds = took.as_secs_f64();
        let rate = lines as f64 / seconds.max(1e-6);
        let _infallible = write!(text, " in {seconds:.3} s ({rate:.0} lines/s)");
        text
    }
}
