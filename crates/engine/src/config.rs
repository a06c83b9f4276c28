//! [`EngineConfig`]: the options of an engine.

use crate::bounds::Bounds;

/// The options of an engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineConfig {
    /// Tasks that are due within this time (ms) are in memory, as far as the memory budget allows. Tasks that are due later are loaded
    /// before they are due. At least 2.
    pub horizon_ms: u64,
    /// The largest number of tasks in one page of a scan. A scan reads page after page.
    pub scan_max: usize,
    /// The longest time ahead at which a task may be due (ms).
    pub farthest_ms: u64,
    /// How long the engine keeps dead tasks (ms). Buried tasks are kept without a limit.
    pub dead_ms: u64,
    /// How long the engine remembers a task that has ended (ms). The settings of a queue may set another time for its tasks.
    pub history_ms: u64,
    /// The budget for tasks in memory (bytes, about), at least 512. Once more than three quarters are in use, fewer tasks are loaded ahead,
    /// and tasks whose whole records are not needed soon leave memory or become stubs of 64 bytes each. A full budget makes no task late
    /// and refuses no task. Memory may take more than the budget for a stub for each task that is ready or due within the next two seconds,
    /// for the changes that wait for their commit, and for the tasks that workers have.
    pub near_bytes_max: u64,
    /// How much the engine does in one step or one turn. Only the simulator and tests change these bounds.
    #[doc(hidden)]
    pub bounds: Bounds,
}

impl Default for EngineConfig {
    /// Returns these options: a horizon of one hour, 1,024 tasks in a page of a scan, due times up to 100 years ahead, dead tasks kept for
    /// 30 days, ended tasks remembered for 24 hours, and a budget of 256 MiB.
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
