//! [`EngineConfig`]: the options of an engine.

use crate::bounds::Bounds;

/// The options of an engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineConfig {
    /// Tasks due so far ahead are kept in memory, milliseconds; later ones are loaded in time. At least 2.
    pub horizon_ms: u64,
    /// Tasks loaded with one scan.
    pub scan_max: usize,
    /// A task may be due so far ahead, milliseconds.
    pub farthest_ms: u64,
    /// Dead tasks are kept for so long, milliseconds.
    pub dead_ms: u64,
    /// So long it is remembered that a task is done, milliseconds, unless its queue's settings say otherwise.
    pub history_ms: u64,
    /// The budget of near memory (bytes, about), at least 512. When it is used up, the horizon shrinks, and a ready task behind the
    /// head of its line is replaced by a stub of 64 bytes. Nothing is late or refused for that. Beside it there may be a stub for
    /// each task that is ready or due within the next two seconds, what waits for its commit, and what workers have.
    pub near_bytes_max: u64,
    /// How much is done at once. Only the simulator and tests change it.
    #[doc(hidden)]
    pub bounds: Bounds,
}

impl Default for EngineConfig {
    /// An hour in memory, 1,024 tasks a scan, 100 years ahead, 30 days for the dead, 24 hours for the done, 256 MiB.
    fn default() -> Self {
        Self {
            horizon_ms: 3_600_000,
            scan_max: 1_024,
            farthest_ms: 100 * 365 * 86_400_000 + 25 * 86_400_000,
            dead_ms: 30 * 86_400_000,
            history_ms: 86_400_000,
            near_bytes_max: 256 << 20,
            bounds: Bounds::default(),
        }
    }
}
