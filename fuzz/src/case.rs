//! [`Case`]: a queue and a script, chosen by bytes.

use core::fmt;
use std::any::type_name;

use tickwheel_core::conformance::Family;
use tickwheel_core::conformance::script::replay;

use crate::families::{
    Bytes, Calendars, HashedWheels, HeapQueues, HierarchicalWheels, Models, SimpleWheels, SortedLists, Wheels,
};
use crate::panics::catch;
use crate::script::Script;

/// The textbook's queues, each with the sizes that are special for it.
const CLASSICS: [fn(&[u8]) -> Case; 13] = [
    Case::of::<SortedLists>,
    Case::of::<HeapQueues>,
    Case::of::<SimpleWheels<64>>,
    Case::of::<SimpleWheels<1_001>>,
    Case::of::<HashedWheels<1, 1>>,
    Case::of::<HashedWheels<1, 512>>,
    Case::of::<HashedWheels<10, 7>>,
    Case::of::<HierarchicalWheels<1, 2>>,
    Case::of::<HierarchicalWheels<1, 256>>,
    Case::of::<HierarchicalWheels<7, 64>>,
    Case::of::<Calendars>,
    Case::of::<Bytes>,
    Case::of::<Models>,
];

/// A queue, and what to do with it.
pub struct Case {
    /// The type of the queue's family.
    pub queue: &'static str,
    /// What to do.
    pub script: Script,
    replay: fn(&Script),
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.queue, self.script)
    }
}

impl Case {
    /// The wheel; the bytes are the script.
    #[must_use]
    pub fn of_wheel(bytes: &[u8]) -> Self {
        Self::of::<Wheels>(bytes)
    }

    /// One of the textbook's queues: the first byte says which, the others are the script.
    #[must_use]
    pub fn of_classics(bytes: &[u8]) -> Self {
        let (&which, script) = bytes.split_first().unwrap_or((&0, &[]));
        CLASSICS[usize::from(which) % CLASSICS.len()](script)
    }

    /// Replays the script on the queue and on the model.
    ///
    /// # Panics
    /// If they differ.
    pub fn replay(&self) {
        (self.replay)(&self.script);
    }

    fn of<F: Family>(bytes: &[u8]) -> Self {
        Self {
            queue: type_name::<F>(),
            script: Script::read(bytes),
            replay: |script| replay::<F>(script.start, &script.steps, catch),
        }
    }
}
