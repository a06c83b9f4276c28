//! Promises of the wheel beyond the laws of every queue: how exact its wake is, and the cost of
//! idle time.

use tickwheel_core::{Handle, TimerQueue, Wheel};

/// A wheel with `count` entries in one coarse slot, and their handles. The first entry is due at
/// 70,000.
fn coarse(count: u64) -> (Wheel<u64>, Vec<Handle>) {
    let mut wheel = Wheel::new(0);
    let handles = (0..count).map(|entry| wheel.insert(70_000 + entry, entry).expect("it is ahead")).collect();
    (wheel, handles)
}

#[test]
fn when_the_nearest_of_a_few_leaves_one_extra_stop_makes_the_wake_exact() {
    let (mut wheel, handles) = coarse(12);
    wheel.cancel(handles[0]).unwrap();
    assert_eq!(wheel.next_wake(), Some(70_000));
    assert_eq!(wheel.advance_with(70_000, |_, _| ()), 0);
    for (entry, &handle) in (70_000..).zip(&handles).skip(1) {
        assert_eq!(wheel.next_wake(), Some(entry));
        // The nearest entry is moved away and back. After that no extra stop is needed.
        let handle = wheel.reschedule(handle, 1 << 40).unwrap();
        wheel.reschedule(handle, entry).unwrap();
        assert_eq!(wheel.next_wake(), Some(entry));
        assert_eq!(wheel.advance_with(entry, |_, _| ()), 1);
    }
    assert_eq!(wheel.next_wake(), None);
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

/// A look at one slot finds an entry that is due soon, even after a long idle time. No level is
/// made for it.
#[test]
fn idle_time_leaves_no_trace() {
    for exponent in 9..64 {
        let mut wheel = Wheel::new(0);
        wheel.insert(1, ()).unwrap();
        let fresh = wheel.heap_bytes();
        assert_eq!(wheel.advance_with((1 << exponent) + 1, |_, _| ()), 1);
        wheel.insert(wheel.now() + 1, ()).unwrap();
        // The values that fire are collected in a vector, which is kept.
        assert!(wheel.heap_bytes() <= fresh + 64, "after 2^{exponent} ticks");
        assert_eq!(wheel.next_wake(), Some(wheel.now() + 1));
    }
}
