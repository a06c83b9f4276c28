//! The suite, for every queue of this crate.

use crate::families::{
    Bytes, Calendars, HashedWheels, HeapQueues, HierarchicalWheels, Models, SimpleWheels, SortedLists, Wheels,
};
use tickwheel_core::conformance_suite;

conformance_suite!(model, Models);
conformance_suite!(wheel, Wheels);
conformance_suite!(sorted_list, SortedLists);
conformance_suite!(heap_queue, HeapQueues);
conformance_suite!(simple_wheel_of_64, SimpleWheels<64>);
conformance_suite!(simple_wheel_of_an_odd_number, SimpleWheels<1_001>);
conformance_suite!(simple_wheel_of_100_000, SimpleWheels<100_000>);
conformance_suite!(hashed_wheel_of_1, HashedWheels<1, 1>);
conformance_suite!(hashed_wheel_of_3, HashedWheels<1, 3>);
conformance_suite!(hashed_wheel_of_512, HashedWheels<1, 512>);
conformance_suite!(hierarchical_wheel_of_2, HierarchicalWheels<1, 2>);
conformance_suite!(hierarchical_wheel_of_3, HierarchicalWheels<1, 3>);
conformance_suite!(hierarchical_wheel_of_20, HierarchicalWheels<1, 20>);
conformance_suite!(hierarchical_wheel_of_256, HierarchicalWheels<1, 256>);
conformance_suite!(hierarchical_calendar, Calendars);
conformance_suite!(hierarchical_bytes, Bytes);
