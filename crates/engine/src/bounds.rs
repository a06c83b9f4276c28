//! How much an engine does at once.

/// How much an engine does at once, before others have their turn. Each number is at least 1.
///
/// A bound changes when something is done, never the answer. It is no setting for users: the simulator makes the bounds small, because a
/// few hundred tasks never reach a bound that is made for millions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Tasks at the head of each queue's line that are held whole while the budget allows, even if no call asks for them. At least 2.
    pub head: usize,
    /// Records of one queue that are asked for in one turn.
    pub fetched: usize,
    /// Bodies of one queue that are asked for in one turn have about this many bytes together. A larger body is asked for alone.
    pub fetched_bytes: u64,
    /// Entries that are looked at in one turn while too much is in memory. A number above the entries that the inputs of a turn bring is
    /// enough.
    pub shed_visits: usize,
    /// Stubs that leave memory in one turn.
    pub shed_drops: usize,
    /// A batch is closed at this many effects. A flood must not grow one frame, and the time of its first waiters, without end.
    pub batch_effects: usize,
    /// A batch is also closed at this many bytes.
    pub batch_bytes: u64,
    /// Instants of schedules that are looked at in one step.
    pub instants: usize,
    /// Records of stubs that are fetched together because their tasks expired or are to be forgotten: 32 of a megabyte fit into memory.
    pub overdue: usize,
    /// Empty queues that are remembered: those that were emptied last. They take some 10 MB, even if many names are used only once.
    pub empty_queues: usize,
    /// Ids are reserved in blocks of this size, so that most puts need not write the counter down.
    pub ids_block: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            head: 32,
            fetched: 256,
            fetched_bytes: 4 << 20,
            shed_visits: 512,
            shed_drops: 4_096,
            batch_effects: 4_096,
            batch_bytes: 1 << 20,
            instants: 256,
            overdue: 32,
            empty_queues: 10_000,
            ids_block: 4_096,
        }
    }
}
