//! Bounds on the work that an engine does at once.

/// Bounds on the work that an engine does in one step or turn, so that other calls are served in between. Each bound is at least 1.
///
/// A bound changes when the engine does some work, but not the result. Only [`empty_queues`](Self::empty_queues) also changes which empty
/// queues a list names. Users cannot set the bounds. The simulator makes them small, so that a run with a few hundred tasks reaches them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The number of tasks at the head of each queue's line that stay whole in memory while the memory budget allows, even if no call asks
    /// for them. At least 2.
    pub head: usize,
    /// The largest number of records of one queue that one turn asks the store for, as a prefetch.
    pub fetched: usize,
    /// The largest size of the bodies of one queue that one turn asks the store for (bytes, about). A larger body is asked for alone.
    pub fetched_bytes: u64,
    /// The number of entries that one turn looks at for eviction, while too many tasks are whole in memory. A number above the entries that
    /// the inputs of one turn add is enough.
    pub shed_visits: usize,
    /// The largest number of stubs that one turn takes out of memory.
    pub shed_drops: usize,
    /// A write batch is sealed when it has this number of effects. Otherwise a very large number of calls would make one ever larger frame,
    /// and the first of these calls would wait for all of it.
    pub batch_effects: usize,
    /// A write batch is also sealed when it has this number of bytes.
    pub batch_bytes: u64,
    /// The largest number of instants of schedules that one step handles.
    pub instants: usize,
    /// The largest number of records that the store is asked for at one time because their stubs expired or are to be forgotten. 32 records
    /// of a megabyte fit into memory.
    pub overdue: usize,
    /// The number of empty queues that the engine remembers: those that became empty last. 10,000 of them take about 10 MB, even if most
    /// queue names are used only once.
    pub empty_queues: usize,
    /// The number of ids that the engine reserves at once. So most puts need not write the id counter down.
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
