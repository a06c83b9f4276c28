//! The body of `/readyz`.

use serde::Serialize;

/// The body of `/readyz`.
#[derive(Debug, Serialize)]
pub(crate) struct Ready {
    /// Whether leases and acks are taken, and puts unless it drains.
    pub(crate) ready: bool,
    /// The same in a word, and `degraded` where something is refused or held up and the rest goes on.
    pub(crate) status: Status,
    /// Why it is not ready, or degraded; `null` if all is well.
    pub(crate) why: Option<String>,
    /// Each reason by itself, the gravest first.
    pub(crate) reasons: Vec<String>,
    /// Whether no new tasks are taken while all else goes on.
    pub(crate) draining: bool,
    /// What an acknowledged call survives: `fsync` a power loss, `os` a crash of the process, `memory` nothing.
    pub(crate) durability: &'static str,
    /// Whether time stands still until it is advanced.
    pub(crate) virtual_clock: bool,
    /// Why nothing is changed any more; `null` if all is well.
    pub(crate) read_only: Option<String>,
    /// What was noticed of the wall clock.
    pub(crate) clock: ClockReport,
    /// What an operator should know of the last recovery; `null` if all was in order.
    pub(crate) recovery: Option<String>,
}

/// How a server is.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// All goes on.
    Ok,
    /// It drains: puts are refused, because it was told so.
    Draining,
    /// Leases and acks go on; puts are refused, or due tasks wait.
    Degraded,
    /// Nothing is changed any more.
    ReadOnly,
    /// It does not answer, or it stops.
    NotReady,
}

/// The wall clock, beside the one that cannot step.
#[derive(Debug, Serialize)]
pub(crate) struct ClockReport {
    /// Steps noticed since the start.
    pub(crate) steps: u64,
    /// How far the system's wall clock is from the one that the server believes, milliseconds.
    pub(crate) offset_ms: i64,
}

/// What a caller without a token sees in the place of a sentence that may hold names of files.
pub(crate) const HIDDEN: &str = "the reason is shown to callers with a token that has `read`";

impl Ready {
    /// Leaves whether, and not why.
    pub(crate) fn hide(&mut self) {
        for text in [&mut self.why, &mut self.read_only, &mut self.recovery] {
            if text.is_some() {
                *text = Some(HIDDEN.to_owned());
            }
        }
        self.reasons.fill(HIDDEN.to_owned());
    }
}
