//! The family of every queue of this crate, for the suite and the scripts.

use tickwheel_core::classic::{HashedWheel, HeapQueue, HierarchicalWheel, SimpleWheel, SortedList};
use tickwheel_core::conformance::Family;
use tickwheel_core::{Model, Wheel};

pub(crate) struct Models;

impl Family for Models {
    type Queue<T> = Model<T>;

    fn start<T>(start: u64) -> Model<T> {
        Model::new(start)
    }
}

pub(crate) struct Wheels;

impl Family for Wheels {
    type Queue<T> = Wheel<T>;

    fn start<T>(start: u64) -> Wheel<T> {
        Wheel::new(start)
    }

    fn heap_bytes<T>(wheel: &Wheel<T>) -> Option<usize> {
        Some(wheel.heap_bytes())
    }
}

pub(crate) struct SortedLists;

impl Family for SortedLists {
    type Queue<T> = SortedList<T>;

    fn start<T>(start: u64) -> SortedList<T> {
        SortedList::new(start)
    }
}

pub(crate) struct HeapQueues;

impl Family for HeapQueues {
    type Queue<T> = HeapQueue<T>;

    fn start<T>(start: u64) -> HeapQueue<T> {
        HeapQueue::new(start)
    }
}

pub(crate) struct SimpleWheels<const SLOTS: usize>;

impl<const SLOTS: usize> Family for SimpleWheels<SLOTS> {
    type Queue<T> = SimpleWheel<T>;
    const REACH: u64 = SLOTS as u64 - 1;

    fn start<T>(start: u64) -> SimpleWheel<T> {
        SimpleWheel::new(start, SLOTS)
    }
}

pub(crate) struct HashedWheels<const TICK: u64, const SLOTS: usize>;

impl<const TICK: u64, const SLOTS: usize> Family for HashedWheels<TICK, SLOTS> {
    type Queue<T> = HashedWheel<T>;
    const TICK: u64 = TICK;

    fn start<T>(start: u64) -> HashedWheel<T> {
        HashedWheel::with_tick(start, TICK, SLOTS)
    }
}

/// Levels made on demand.
pub(crate) struct HierarchicalWheels<const TICK: u64, const SIZE: usize>;

impl<const TICK: u64, const SIZE: usize> Family for HierarchicalWheels<TICK, SIZE> {
    type Queue<T> = HierarchicalWheel<T>;
    const EXACT_WAKE: bool = false;
    const TICK: u64 = TICK;

    fn start<T>(start: u64) -> HierarchicalWheel<T> {
        HierarchicalWheel::new(start, TICK, SIZE)
    }
}

/// Seconds, minutes, hours and days.
pub(crate) struct Calendars;

impl Family for Calendars {
    type Queue<T> = HierarchicalWheel<T>;
    const EXACT_WAKE: bool = false;
    /// The day that has begun uses one of the 30 days.
    const REACH: u64 = 29 * 24 * 60 * 60;

    fn start<T>(start: u64) -> HierarchicalWheel<T> {
        HierarchicalWheel::with_levels(start, 1, &[60, 60, 24, 30])
    }
}

/// Given levels that cover all of time.
pub(crate) struct Bytes;

impl Family for Bytes {
    type Queue<T> = HierarchicalWheel<T>;
    const EXACT_WAKE: bool = false;

    fn start<T>(start: u64) -> HierarchicalWheel<T> {
        HierarchicalWheel::with_levels(start, 1, &[256; 8])
    }
}
