//! [`EngineConfig`]: the options of an engine.

use crate::bounds::Bounds;

/// The options of an engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineConfig {
    /// Tasks that are due within this time are kept in memory (ms); later ones are loaded before they are due. At least 2.
    pub horizon_ms: u64,
    /// Tasks loaded with one scan.
    pub scan_max: usize,
    /// The longest time ahead at which a task may be due (ms).
    pub farthest_ms: u64,
    /// How long dead tasks are kept (ms).
    pub dead_ms: u64,
    /// How long the engine remembers that a task is done (ms), unless the settings of its queue say otherwise.
    pub history_ms: u64,
    /// The budget of near memory (bytes, about), at least 512. When it is used up, the horizon shrinks, and a ready task behind the head of
    /// its line is replaced by a stub of 64 bytes. This makes no task late and refuses none. Not in the budget: a stub for each task that
    /// is ready or due within the next two seconds, the changes that wait for their commit, and the tasks that workers have.
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
