//! The order of the elements: D1, D5, D11.

use std::task::Poll;
use std::time::Duration;

use tickwheel::{Clock, Monotonic};

use super::by_hand::{ByHand, Hand, at, ms};

/// Every order of six elements, two of them with equal deadlines.
#[test]
fn d1_whatever_the_order_in_the_order_out_is_by_deadline() {
    const DELAYS: [u64; 6] = [3, 1, 4, 1, 5, 9];
    let mut order = [0, 1, 2, 3, 4, 5];
    permute(&mut order, 0, &mut |order| {
        let by_hand = ByHand::new();
        for &id in order {
            by_hand.queue.push(id, ms(DELAYS[id])).expect("it is open");
        }
        by_hand.advance_to(9);
        let mut expected = *order;
        // A stable sort keeps equal elements in the order of their pushes.
        expected.sort_by_key(|&id| DELAYS[id]);
        let taken: Vec<usize> = std::iter::from_fn(|| by_hand.queue.try_take()).collect();
        assert_eq!(taken, expected, "pushed in the order {order:?}");
    });
}

fn permute(order: &mut [usize; 6], from: usize, check: &mut impl FnMut(&[usize; 6])) {
    if from == order.len() {
        return check(order);
    }
    for other in from..order.len() {
        order.swap(from, other);
        permute(order, from + 1, check);
        order.swap(from, other);
    }
}

#[test]
fn d1_equal_deadlines_come_first_in_first_out() {
    for count in [1, 2, 3, 12, 1_000] {
        let by_hand = ByHand::new();
        let handles: Vec<_> =
            (0..count).map(|id| by_hand.queue.push(id, ms(5)).expect("it is open")).collect();
        // Each element is moved away and back, and keeps its place.
        for (id, &handle) in handles.iter().enumerate().rev().step_by(3) {
            assert_eq!(by_hand.queue.reschedule(handle, ms(id as u64)), Some(at(id as u64)));
            assert_eq!(by_hand.queue.reschedule(handle, ms(5)), Some(at(5)));
        }
        by_hand.advance_to(5);
        let taken: Vec<usize> = std::iter::from_fn(|| by_hand.queue.try_take()).collect();
        assert_eq!(taken, (0..count).collect::<Vec<_>>());
    }
}

#[test]
fn d1_deadlines_are_kept_to_the_nanosecond_and_to_the_end_of_time() {
    let nano = Duration::from_nanos(1);
    let by_hand = ByHand::starting_at(Monotonic::from_nanos(u64::MAX - 10));
    by_hand.queue.push("never", Duration::MAX).expect("it is open");
    by_hand.queue.push("second", 2 * nano).expect("it is open");
    by_hand.queue.push("first", nano).expect("it is open");
    by_hand.queue.push_at("past", Monotonic::ZERO).expect("it is open");
    assert_eq!(by_hand.queue.try_take(), Some("past"));
    assert_eq!(by_hand.queue.try_take(), None);
    for expected in ["first", "second"] {
        by_hand.clock.advance(nano);
        assert_eq!(by_hand.queue.try_take(), Some(expected));
        assert_eq!(by_hand.queue.try_take(), None);
    }
    by_hand.clock.advance(7 * nano);
    assert_eq!(by_hand.queue.try_take(), None);
    // The last reading there is.
    assert_eq!(by_hand.clock.advance(nano), Monotonic::MAX);
    assert_eq!(by_hand.queue.try_take(), None, "never is never");
}

#[test]
fn d5_clear_and_drain_take_what_is_not_due_as_well() {
    let by_hand = ByHand::new();
    for round in 0..3 {
        for (delay, value) in [(7, 'd'), (0, 'a'), (5, 'c'), (0, 'b')] {
            by_hand.queue.push(value, ms(delay)).expect("it is open");
        }
        assert_eq!(by_hand.queue.len(), 4);
        match round {
            0 => by_hand.queue.clear(),
            _ => assert_eq!(by_hand.queue.drain(), ['a', 'b', 'c', 'd']),
        }
        assert!(by_hand.queue.is_empty());
        assert_eq!((by_hand.queue.peek(), by_hand.queue.try_take()), (None, None));
        by_hand.clock.advance(ms(100));
        assert_eq!(by_hand.queue.try_take(), None);
    }
    by_hand.queue.clear();
    assert!(by_hand.queue.drain().is_empty());
}

#[test]
fn d5_a_removal_takes_that_element_only() {
    for leaving in 0..5 {
        let by_hand = ByHand::new();
        let handles: Vec<_> =
            [5, 0, 5, 9, 5].map(|delay| by_hand.queue.push(delay, ms(delay)).expect("it is open")).into();
        let removed = by_hand.queue.remove(handles[leaving]);
        assert_eq!(removed, Some([5, 0, 5, 9, 5][leaving]));
        assert_eq!((by_hand.queue.remove(handles[leaving]), by_hand.queue.len()), (None, 4));
        let left = handles.iter().filter(|&&handle| by_hand.queue.deadline(handle).is_some()).count();
        assert_eq!(left, 4);
    }
}

#[test]
fn d11_peek_names_what_comes_next_expired_ones_first() {
    let by_hand = ByHand::new();
    let later = by_hand.queue.push("+10", ms(10)).expect("it is open");
    let soon = by_hand.queue.push("+5", ms(5)).expect("it is open");
    let now = by_hand.queue.push("now", ms(0)).expect("it is open");
    assert_eq!(by_hand.queue.peek(), Some((now, at(0))));
    assert_eq!(by_hand.queue.peek(), Some((now, at(0))), "a look changes nothing");
    assert_eq!(by_hand.queue.try_take(), Some("now"));
    assert_eq!(by_hand.queue.peek(), Some((soon, at(5))));
    assert_eq!(by_hand.queue.try_take(), None);
    // An element that is due and not taken is still the next one. So is another element that was due
    // before it.
    by_hand.advance_to(7);
    assert_eq!(by_hand.queue.peek(), Some((soon, at(5))));
    let before = by_hand.queue.push_at("+4", at(4)).expect("it is open");
    assert_eq!(by_hand.queue.peek(), Some((before, at(4))));
    assert_eq!((by_hand.queue.try_take(), by_hand.queue.try_take()), (Some("+4"), Some("+5")));
    assert_eq!(by_hand.queue.peek(), Some((later, at(10))));
    assert_eq!(by_hand.queue.remove(later), Some("+10"));
    assert_eq!(by_hand.queue.peek(), None);
    assert_eq!(by_hand.clock.now(), at(7));
}

#[test]
fn d11_peek_knows_a_moved_element_by_its_handle() {
    let by_hand = ByHand::new();
    let a = by_hand.queue.push('a', ms(5)).expect("it is open");
    let b = by_hand.queue.push('b', ms(6)).expect("it is open");
    by_hand.queue.reschedule(a, ms(7));
    assert_eq!(by_hand.queue.peek(), Some((b, at(6))));
    by_hand.queue.reschedule(b, ms(8));
    let (named, deadline) = by_hand.queue.peek().expect("two elements wait");
    assert_eq!((named, deadline), (a, at(7)));
    assert_eq!(by_hand.queue.remove(named), Some('a'));
    assert_eq!(by_hand.queue.remove(a), None);
}

#[test]
fn d13_what_is_due_comes_at_once_in_order_and_no_more_than_wanted() {
    let by_hand = ByHand::new();
    for (id, due) in [3, 1, 4, 1, 5, 9].into_iter().enumerate() {
        by_hand.queue.push(id, ms(due)).expect("it is open");
    }
    assert!(by_hand.queue.drain_due(usize::MAX).is_empty(), "nothing is due");
    by_hand.advance_to(5);
    assert!(by_hand.queue.drain_due(0).is_empty());
    assert_eq!(by_hand.queue.drain_due(3), [1, 3, 0], "equal ones by their push");
    assert_eq!(by_hand.queue.drain_due(usize::MAX), [2, 4]);
    assert_eq!((by_hand.queue.len(), by_hand.queue.try_take()), (1, None));
    // The stream ends when another caller takes its last element.
    let mut hand = Hand::new(by_hand.queue.next());
    assert!(hand.poll().is_pending());
    by_hand.clock.advance(ms(4));
    assert_eq!(by_hand.queue.drain_due(usize::MAX), [5]);
    assert!(hand.woken());
    assert_eq!(hand.poll(), Poll::Ready(None));
}

#[test]
fn d14_the_end_of_the_clock_is_never() {
    let by_hand = ByHand::starting_at(Monotonic::from_nanos(u64::MAX - 20));
    let never = by_hand.queue.push_at("never", Monotonic::MAX).expect("it is open");
    by_hand.queue.push("nor this", Duration::MAX).expect("it is open");
    by_hand.queue.push_at("soon", Monotonic::from_nanos(u64::MAX - 10)).expect("it is open");
    assert_eq!(by_hand.clock.advance(Duration::MAX), Monotonic::MAX);
    assert_eq!(by_hand.queue.drain_due(usize::MAX), ["soon"]);
    assert_eq!((by_hand.queue.try_take(), by_hand.queue.poll(Duration::ZERO)), (None, None));
    let mut hand = Hand::new(by_hand.queue.wait_next());
    assert!(hand.poll().is_pending(), "the queue is not closed");
    by_hand.clock.advance(ms(1));
    assert!(hand.poll().is_pending());
    assert_eq!(by_hand.queue.peek(), Some((never, Monotonic::MAX)));
    assert_eq!(by_hand.queue.reschedule_at(never, at(1)), Some(at(1)));
    assert_eq!(hand.poll(), Poll::Ready(Some("never")));
    assert_eq!(by_hand.queue.close(), ["nor this"]);
}
