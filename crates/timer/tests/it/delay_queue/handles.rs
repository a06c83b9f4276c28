//! The life of a handle: D9, D12.

use std::collections::HashSet;

use super::by_hand::{ByHand, at, ms};

#[test]
fn d9_an_expired_element_can_be_removed_and_is_not_delivered() {
    for late in [0, 1, 1_000] {
        let by_hand = ByHand::new();
        let a = by_hand.queue.push('a', ms(5)).expect("it is open");
        let b = by_hand.queue.push('b', ms(5)).expect("it is open");
        by_hand.advance_to(5 + late);
        assert_eq!(by_hand.queue.remove(a), Some('a'));
        assert_eq!(by_hand.queue.remove(a), None);
        assert_eq!(by_hand.queue.try_take(), Some('b'));
        assert_eq!((by_hand.queue.remove(b), by_hand.queue.try_take()), (None, None));
    }
}

#[test]
fn d9_an_expired_element_can_be_moved_to_the_future_and_back() {
    let by_hand = ByHand::new();
    let handle = by_hand.queue.push('a', ms(5)).expect("it is open");
    by_hand.advance_to(6);
    assert_eq!(by_hand.queue.reschedule(handle, ms(4)), Some(at(10)));
    assert_eq!(by_hand.queue.try_take(), None);
    assert_eq!(by_hand.queue.reschedule_at(handle, at(1)), Some(at(1)));
    assert_eq!(by_hand.queue.deadline(handle), Some(at(1)));
    assert_eq!(by_hand.queue.try_take(), Some('a'));
    assert_eq!(by_hand.queue.reschedule(handle, ms(4)), None);
    assert!(by_hand.queue.is_empty());
}

#[test]
fn d12_compact_keeps_every_handle() {
    let by_hand = ByHand::new();
    let handles: Vec<_> =
        (0..10_000_u64).map(|id| by_hand.queue.push(id, ms(id % 97)).expect("it is open")).collect();
    let kept = |id: u64| id.is_multiple_of(7);
    for (id, &handle) in (0_u64..).zip(&handles) {
        if !kept(id) {
            assert_eq!(by_hand.queue.remove(handle), Some(id));
        } else if id.is_multiple_of(2) {
            by_hand.queue.reschedule(handle, ms(500));
        }
    }
    by_hand.queue.compact();
    assert_eq!(by_hand.queue.len(), 1_429);
    for (id, &handle) in (0_u64..).zip(&handles) {
        let deadline = if id.is_multiple_of(2) { 500 } else { id % 97 };
        assert_eq!(by_hand.queue.deadline(handle), kept(id).then(|| at(deadline)));
        assert_eq!(by_hand.queue.remove(handle), kept(id).then_some(id));
    }
    by_hand.queue.compact();
    assert!(by_hand.queue.is_empty());
}

/// The element may leave in any way, and other elements may be pushed afterwards.
#[test]
fn d12_a_handle_used_twice_is_stale_for_ever() {
    for door in 0..4 {
        let by_hand = ByHand::new();
        let stale = by_hand.queue.push('a', ms(0)).expect("it is open");
        match door {
            0 => assert_eq!(by_hand.queue.remove(stale), Some('a')),
            1 => assert_eq!(by_hand.queue.try_take(), Some('a')),
            2 => assert_eq!(by_hand.queue.drain(), ['a']),
            _ => assert_eq!(by_hand.queue.close(), ['a']),
        }
        by_hand.queue.compact();
        let open = !by_hand.queue.is_closed();
        assert_eq!(by_hand.queue.push('b', ms(0)).is_ok(), open);
        assert_eq!(by_hand.queue.remove(stale), None);
        assert_eq!(by_hand.queue.deadline(stale), None);
        assert_eq!(by_hand.queue.reschedule(stale, ms(1)), None);
        assert_eq!(by_hand.queue.len(), usize::from(open));
        assert_eq!(by_hand.queue.try_take(), open.then_some('b'));
    }
}

#[test]
fn handles_are_small_and_one_for_each_element() {
    assert_eq!(size_of::<tickwheel::DelayHandle>(), 16);
    let by_hand = ByHand::new();
    let handles: Vec<_> = (0..100).map(|id| by_hand.queue.push(id, ms(9)).expect("it is open")).collect();
    assert!(handles.is_sorted());
    by_hand.queue.reschedule(handles[0], ms(3));
    let distinct: HashSet<_> =
        handles.iter().copied().chain(by_hand.queue.peek().map(|peek| peek.0)).collect();
    assert_eq!(distinct.len(), 100);
}

/// Any value that is `Send` can be queued; it need not be `Sync`.
#[test]
fn a_queue_and_its_futures_go_from_thread_to_thread() {
    fn is_send_and_sync<T: Send + Sync>(_: &T) {}
    fn is_send_and_unpin<T: Send + Unpin>(_: &T) {}
    let by_hand = ByHand::<std::cell::Cell<u8>>::new();
    is_send_and_sync(&by_hand.queue);
    is_send_and_unpin(&by_hand.queue.next());
}
