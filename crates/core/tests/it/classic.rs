//! Tests of all five textbook queues, in addition to the suite.

use tickwheel_core::TimerQueue;
use tickwheel_core::classic::{HashedWheel, HeapQueue, HierarchicalWheel, SimpleWheel, SortedList};

fn all(start: u64) -> Vec<Box<dyn TimerQueue<u64> + Send + Sync>> {
    vec![
        Box::new(SortedList::new(start)),
        Box::new(HeapQueue::new(start)),
        Box::new(SimpleWheel::new(start, 1_000)),
        Box::new(HashedWheel::new(start, 16)),
        Box::new(HierarchicalWheel::new(start, 1, 8)),
        Box::new(HierarchicalWheel::with_levels(start, 1, &[60, 60])),
    ]
}

/// Memory follows the peak: an entry that left makes a place free for the next one, at any time.
#[test]
fn no_more_places_are_used_than_entries_were_pending_at_once() {
    for mut queue in all(0) {
        let mut handles = std::collections::VecDeque::new();
        for round in 0..10_000 {
            queue.advance(round, &mut |_, _| ());
            let handle = queue.insert(round + 1 + round * 7 % 900, round).expect("it is in reach");
            assert!(handle.place() < 1_000, "round {round} needed place {}", handle.place());
            handles.push_back(handle);
            if handles.len() > 300 {
                let _fired_or_pending = handles.pop_front().map(|handle| queue.cancel(handle));
            }
        }
    }
}

#[test]
fn an_idle_jump_of_any_length_ends() {
    for mut queue in all(3) {
        assert_eq!(queue.advance(u64::MAX / 2, &mut |_, _| ()), 0);
        queue.insert(u64::MAX / 2 + 9, 1).expect("it is in reach");
        assert_eq!(queue.advance(u64::MAX, &mut |_, _| ()), 1);
        assert_eq!((queue.now(), queue.next_wake()), (u64::MAX, None));
    }
}

#[test]
#[should_panic(expected = "level 2 has 1")]
fn a_level_of_one_slot_is_refused() {
    let _refused = HierarchicalWheel::<()>::with_levels(0, 1, &[60, 1]);
}

#[test]
#[should_panic(expected = "level 1 has 1")]
fn a_hierarchy_of_one_slot_each_is_refused() {
    let _refused = HierarchicalWheel::<()>::new(0, 1, 1);
}

#[test]
#[should_panic(expected = "at least one level")]
fn a_hierarchy_without_levels_is_refused() {
    let _refused = HierarchicalWheel::<()>::with_levels(0, 1, &[]);
}

#[test]
#[should_panic(expected = "tick of a hierarchical wheel is at least 1")]
fn a_hierarchy_with_a_tick_of_0_is_refused() {
    let _refused = HierarchicalWheel::<()>::new(0, 0, 20);
}

#[test]
fn debug_tells_the_state() {
    let mut wheel = HierarchicalWheel::new(1, 1, 3);
    wheel.insert(9, ()).unwrap();
    assert_eq!(
        format!("{wheel:?}"),
        "HierarchicalWheel { now: 1, len: 1, levels: 3, next_wake: Some(9), .. }"
    );
    assert_eq!(format!("{:?}", SortedList::<()>::new(2)), "SortedList { now: 2, len: 0, .. }");
    assert_eq!(format!("{:?}", HeapQueue::<()>::new(2)), "HeapQueue { now: 2, len: 0, .. }");
    assert_eq!(format!("{:?}", SimpleWheel::<()>::new(2, 4)), "SimpleWheel { now: 2, len: 0, slots: 4, .. }");
    let hashed = HashedWheel::<()>::with_tick(2, 10, 4);
    assert_eq!(format!("{hashed:?}"), "HashedWheel { now: 2, len: 0, tick: 10, slots: 4, .. }");
}
