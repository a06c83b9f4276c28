//! Bounds on the work that an engine does at once, and on what the engine keeps.

/// Bounds on the work that an engine does in one step or turn, so that other calls are served in between, and on what the engine keeps.
/// Each bound is at least 1.
///
/// Most bounds only change when the engine does some work. But [`empty_queues`](Self::empty_queues) changes which empty queues a list
/// names, and [`ids_block`](Self::ids_block) changes which ids the engine gives out after a restart. The server has no setting for a bound.
/// The simulator makes the bounds small, so that a run with a few hundred tasks reaches them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The number of whole tasks at the head of each queue's line that no eviction takes while the memory budget is not exceeded. A
    /// prefetch also fetches records up to this position of the line, if memory is not short. At least 2.
    pub head: usize,
    /// The largest number of records of one queue that one turn asks the store for, as a prefetch.
    pub fetched: usize,
    /// The largest size of the bodies of one queue that one turn asks the store for, as a prefetch (bytes, about). A larger body is asked
    /// for alone.
    pub fetched_bytes: u64,
    /// The largest size of the bodies that one lease call is answered with (bytes, about). A larger body is handed out alone.
    pub lease_bytes: u64,
    /// The largest number of entries that one turn looks at for eviction, while too many tasks are whole in memory. The bound should be
    /// above the number of entries that the inputs of one turn add.
    pub shed_visits: usize,
    /// The largest number of stubs that one turn drops because memory is short.
    pub shed_drops: usize,
    /// A write batch is sealed when it has this number of effects on tasks and rules. Otherwise a very large number of calls would make one
    /// ever larger frame, and the first of these calls would wait for all of it.
    pub batch_effects: usize,
    /// A write batch is also sealed when it has this number of bytes.
    pub batch_bytes: u64,
    /// The largest number of schedules for which one step handles an instant that has come.
    pub instants: usize,
    /// The largest number of records that the store is asked for at one time because their stubs expired or are to be forgotten. The
    /// default is 32, because 32 records of a megabyte fit into memory.
    pub overdue: usize,
    /// The largest number of empty queues that the engine remembers. Beyond this number, the engine forgets the queue that became empty
    /// first. 10,000 empty queues take about 10 MB.
    pub empty_queues: usize,
    /// The number of ids that the engine reserves at once. So most puts need not write the id counter down.
    pub ids_block: u64,
}

/// The largest size of the bodies in the answer to a lease call: 16 MiB. The answer is in memory until the worker has read it.
pub const LEASE_BYTES_MAX: u64 = 16 << 20;

impl Default for Bounds {
    fn default() -> Self {
        Self {
            head: 32,
            fetched: 256,
            fetched_bytes: 4 << 20,
            lease_bytes: LEASE_BYTES_MAX,
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
