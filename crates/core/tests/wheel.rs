//! What the wheel promises beyond the laws of every queue: how exact its wake is, and what idle
//! time costs.

use tickwheel_core::{Handle, TimerQueue, Wheel};

/// A wheel with `count` entries in one coarse slot, the first due at 70,000, and their handles.
fn coarse(count: u64) -> (Wheel<u64>, Vec<Handle>) {
    let mut wheel = Wheel::new(0);
    let handles = (0..count).map(|entry| wheel.insert(70_000 + entry, entry).expect("it is ahead")).collect();
    (wheel, handles)
}

#[test]
fn the_wake_stays_exact_when_the_nearest_of_a_few_leaves() {
    let (mut wheel, handles) = coarse(65);
    for (entry, handle) in (70_000..).zip(&handles) {
        assert_eq!(wheel.next_wake(), Some(entry));
        wheel.cancel(*handle).unwrap();
    }
    assert_eq!(wheel.next_wake(), None);

    // Moved within the slot, where it still counts, then out of it, each time as the nearest.
    let (mut wheel, handles) = coarse(64);
    for (index, &handle) in handles.iter().enumerate().take(63) {
        let to = if index < 32 { 90_000 } else { 1 << 30 };
        wheel.reschedule(handle, to).unwrap();
        assert_eq!(wheel.next_wake(), Some(70_001 + index as u64));
    }
    wheel.reschedule(handles[63], 71_000).unwrap();
    assert_eq!(wheel.next_wake(), Some(71_000));
    wheel.reschedule(handles[63], 69_000).unwrap();
    assert_eq!(wheel.next_wake(), Some(69_000));
}

#[test]
fn when_the_nearest_of_many_leaves_one_extra_stop_makes_the_wake_exact() {
    let (mut wheel, handles) = coarse(1_000);
    for &handle in &handles[..500] {
        wheel.cancel(handle).unwrap();
    }
    let early = wheel.next_wake().unwrap();
    assert!((70_000..70_500).contains(&early), "{early}");
    assert_eq!(wheel.advance_with(early, |_, _| ()), 0);
    for entry in 500..1_000 {
        assert_eq!(wheel.next_wake(), Some(70_000 + entry));
        assert_eq!(wheel.advance_with(70_000 + entry, |_, value| assert_eq!(value, entry)), 1);
    }
}

/// An entry due soon is on the finest level, however long the wheel was idle before. A coarser
/// level would have to be made, which shows in the memory.
#[test]
fn idle_time_does_not_lift_the_next_entry_to_a_coarser_level() {
    for exponent in 9..64 {
        let mut wheel = Wheel::new(0);
        wheel.insert(1, ()).unwrap();
        assert_eq!(wheel.advance_with((1 << exponent) + 1, |_, _| ()), 1);
        let finest_only = wheel.heap_bytes();
        wheel.insert(wheel.now() + 1, ()).unwrap();
        assert_eq!(wheel.heap_bytes(), finest_only, "after 2^{exponent} ticks");
    }
}
