//! The heap: cancels leave nothing behind, and ties are in order. C23 and C24. Tests of its
//! internals are in its own file.

use std::rc::Rc;

use tickwheel_core::TimerQueue;
use tickwheel_core::classic::HeapQueue;

fn fired<T>(heap: &mut HeapQueue<T>, now: u64) -> Vec<(u64, T)> {
    let mut list = vec![];
    let count = heap.advance(now, &mut |deadline, value| list.push((deadline, value)));
    assert_eq!(count, list.len());
    list
}

#[test]
fn c23_a_cancelled_entry_is_gone_at_once() {
    let value = Rc::new(());
    let mut heap = HeapQueue::new(0);
    let handles: Vec<_> =
        (1..=100).map(|deadline| heap.insert(deadline, Rc::clone(&value)).expect("it is ahead")).collect();
    assert_eq!(Rc::strong_count(&value), 101);
    for (index, &handle) in handles.iter().enumerate().skip(1).step_by(2) {
        drop(heap.cancel(handle).expect("it is pending"));
        assert_eq!(Rc::strong_count(&value), 100 - index / 2);
        assert_eq!(heap.cancel(handle), None);
    }
    assert_eq!(heap.len(), 50);
    // The place of the cancelled entry is the next one to be taken.
    let again = heap.insert(1_000, Rc::clone(&value)).expect("it is ahead");
    assert_eq!(again.place(), handles[99].place());
    assert_eq!(heap.next_wake(), Some(1));
}

/// Entries may be cancelled in any order. The other entries fire in their order.
#[test]
fn c23_a_cancel_anywhere_leaves_the_rest_in_order() {
    for stride in [1, 7, 37, 61, 99] {
        for count in 0..100 {
            let mut heap = HeapQueue::new(0);
            let deadline = |id: u64| 1 + id * 41 % 100;
            let handles: Vec<_> =
                (0..100).map(|id| heap.insert(deadline(id), id).expect("it is ahead")).collect();
            let mut expected: Vec<(u64, u64)> = (0..100).map(|id| (deadline(id), id)).collect();
            for step in 0..count {
                let id = step * stride % 100;
                assert_eq!(heap.cancel(handles[id as usize]), Some(id));
                expected.retain(|&(_, other)| other != id);
            }
            expected.sort_unstable();
            assert_eq!(heap.next_wake(), expected.first().map(|&(deadline, _)| deadline));
            assert_eq!(fired(&mut heap, 100), expected);
        }
    }
}

#[test]
fn c24_equal_deadlines_fire_in_order_of_insertion() {
    for count in [2, 3, 4, 7, 8, 1_000] {
        let mut heap = HeapQueue::new(0);
        for id in 0..count {
            // Other entries below and above keep the tree busy.
            heap.insert(5 + id % 3, id).expect("it is ahead");
        }
        let mut expected: Vec<(u64, u64)> = (0..count).map(|id| (5 + id % 3, id)).collect();
        expected.sort_unstable();
        assert_eq!(fired(&mut heap, 7), expected);
    }
}

/// The difference of two deadlines does not fit into an i64 here. A comparison by the difference
/// would say that the farthest is the nearest.
#[test]
fn c24_deadlines_far_apart_are_compared_rightly() {
    let deadlines = [u64::MAX - 1, 1, 1 << 63, (1 << 63) - 1, (1 << 63) + 1, 2, u64::MAX - 2];
    for rotation in 0..deadlines.len() {
        let mut order = deadlines;
        order.rotate_left(rotation);
        let mut heap = HeapQueue::new(0);
        for deadline in order {
            heap.insert(deadline, deadline).expect("it is ahead");
        }
        let mut expected = order.map(|deadline| (deadline, deadline));
        expected.sort_unstable();
        assert_eq!(fired(&mut heap, u64::MAX), expected);
    }
}
