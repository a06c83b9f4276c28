//! The body of `/readyz`.

use serde::Serialize;

/// The body of `/readyz`.
#[derive(Debug, Serialize)]
pub(crate) struct Ready {
    /// Whether leases and acks are taken, and also puts unless the server drains.
    pub(crate) ready: bool,
    /// The state in a word. It is `degraded` if the server refuses or delays some calls and answers the others.
    pub(crate) status: Status,
    /// Why the server is not ready, or degraded; `null` if all is well.
    pub(crate) why: Option<String>,
    /// The reasons one by one, the most serious first.
    pub(crate) reasons: Vec<String>,
    /// Whether the server takes no new tasks, while all else goes on.
    pub(crate) draining: bool,
    /// The durability of an acknowledged call: `fsync` survives a power loss, `os` a crash of the process, `memory`
    /// nothing.
    pub(crate) durability: &'static str,
    /// Whether the clock stands still until it is advanced.
    pub(crate) virtual_clock: bool,
    /// Why the server is read-only; `null` if all is well.
    pub(crate) read_only: Option<String>,
    /// The state of the wall clock.
    pub(crate) clock: ClockReport,
    /// The report of the last recovery, if an operator should know it; `null` if all was in order.
    pub(crate) recovery: Option<String>,
}

/// The state of a server.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// All is well.
    Ok,
    /// The server drains on request: puts are refused.
    Draining,
    /// Leases and acks go on, but puts are refused or due tasks wait.
    Degraded,
    /// The server changes nothing.
    ReadOnly,
    /// The server does not answer, or it stops.
    NotReady,
}

/// The wall clock, compared with the monotonic clock.
#[derive(Debug, Serialize)]
pub(crate) struct ClockReport {
    /// Steps that were noticed since the start.
    pub(crate) steps: u64,
    /// The difference between the system's wall clock and the believed one (ms).
    pub(crate) offset_ms: i64,
}

/// The text for a caller without a token, instead of a text that may contain file names.
pub(crate) const HIDDEN: &str = "the reason is shown to callers with a token that has `read`";

impl Ready {
    /// Hides the reasons and keeps the states.
    pub(crate) fn hide(&mut self) {
        for text in [&mut self.why, &mut self.read_only, &mut self.recovery] {
            if text.is_some() {
                *text = Some(HIDDEN.to_owned());
            }
        }
        self.reasons.fill(HIDDEN.to_owned());
    }
}
