//! The line: which waiter is woken by which event. D3, D4.

use std::task::Poll;

use super::by_hand::{ByHand, Hand, ms};

#[test]
fn d3_one_waiter_minds_the_head_and_the_others_sleep() {
    let by_hand = ByHand::new();
    by_hand.queue.push('a', ms(10)).expect("it is open");
    let mut waiters: Vec<_> = (0..3).map(|_| Hand::waiting(by_hand.queue.wait_next())).collect();
    assert_eq!(by_hand.timer.pending(), 1, "the leader alone has an alarm");
    by_hand.advance_to(9);
    assert!(!waiters.iter().any(Hand::woken));
    by_hand.advance_to(10);
    assert_eq!([0, 1, 2].map(|waiter| waiters[waiter].woken()), [true, false, false]);
    assert_eq!(waiters[0].poll(), Poll::Ready(Some('a')));
}

#[test]
fn d3_a_new_head_wakes_one_and_what_comes_behind_it_nobody() {
    let by_hand = ByHand::new();
    let mut waiters: Vec<_> = (0..3).map(|_| Hand::waiting(by_hand.queue.wait_next())).collect();
    let woken = |waiters: &[Hand<'_, char>]| -> Vec<bool> { waiters.iter().map(Hand::woken).collect() };
    for (delay, called) in [(10, true), (11, false), (10, false), (5, true), (7, false), (4, true)] {
        by_hand.queue.push('x', ms(delay)).expect("it is open");
        assert_eq!(woken(&waiters), [called, false, false], "a push to {delay}");
        assert_eq!(waiters[0].poll(), Poll::Pending);
        assert_eq!(by_hand.timer.pending(), 1);
    }
    // Two elements are pushed before the leader has looked. It is woken once.
    by_hand.queue.push('x', ms(3)).expect("it is open");
    assert_eq!(woken(&waiters), [true, false, false]);
    by_hand.queue.push('x', ms(2)).expect("it is open");
    assert_eq!(woken(&waiters), [false, false, false]);
    assert_eq!(waiters[0].poll(), Poll::Pending);
    by_hand.advance_to(2);
    assert_eq!(woken(&waiters), [true, false, false]);
}

#[test]
fn d3_whoever_leaves_passes_on_what_it_minded() {
    let by_hand = ByHand::new();
    for value in 0..3 {
        by_hand.queue.push(value, ms(10)).expect("it is open");
    }
    let mut waiters: Vec<_> = (0..5).map(|_| Hand::waiting(by_hand.queue.wait_next())).collect();
    // By dropping the future: while it sleeps, and just after it was woken.
    drop(waiters.remove(0));
    assert_eq!([0, 1, 2, 3].map(|waiter| waiters[waiter].woken()), [true, false, false, false]);
    assert_eq!(waiters[0].poll(), Poll::Pending);
    by_hand.advance_to(10);
    assert!(waiters[0].woken());
    drop(waiters.remove(0));
    // By taking an element while another one is left.
    for value in 0..3 {
        assert!(waiters[0].woken(), "nobody minds element {value}");
        assert_eq!(waiters[0].poll(), Poll::Ready(Some(value)));
        drop(waiters.remove(0));
    }
    assert!(waiters.is_empty() && by_hand.queue.is_empty());
}

#[test]
fn d3_one_who_leaves_from_the_middle_wakes_nobody() {
    let by_hand = ByHand::new();
    by_hand.queue.push('a', ms(10)).expect("it is open");
    let mut waiters: Vec<_> = (0..3).map(|_| Hand::waiting(by_hand.queue.wait_next())).collect();
    drop(waiters.remove(1));
    assert!(!waiters.iter().any(Hand::woken));
    by_hand.advance_to(10);
    assert_eq!([0, 1].map(|waiter| waiters[waiter].woken()), [true, false]);
}

#[test]
fn d3_when_somebody_else_takes_the_head_the_leader_minds_the_next_one() {
    let by_hand = ByHand::new();
    by_hand.queue.push('a', ms(5)).expect("it is open");
    by_hand.queue.push('b', ms(8)).expect("it is open");
    let mut leader = Hand::waiting(by_hand.queue.wait_next());
    by_hand.advance_to(5);
    assert_eq!(by_hand.queue.try_take(), Some('a'));
    assert!(leader.woken());
    assert_eq!(leader.poll(), Poll::Pending);
    by_hand.advance_to(8);
    assert!(leader.woken());
    assert_eq!(leader.poll(), Poll::Ready(Some('b')));
}

/// A future moved to another task. The waker of its last poll has to be woken, by the clock and by a push.
#[test]
fn d3_the_waker_of_the_last_poll_is_woken() {
    for pushed in [false, true] {
        let by_hand = ByHand::new();
        by_hand.queue.push('a', ms(5)).expect("it is open");
        let (mut moved, left) = Hand::waiting(by_hand.queue.wait_next()).moved();
        assert_eq!(moved.poll(), Poll::Pending);
        if pushed {
            by_hand.queue.push('a', ms(0)).expect("it is open");
        } else {
            by_hand.advance_to(5);
        }
        assert!(moved.woken() && !left.woken());
        assert_eq!(moved.poll(), Poll::Ready(Some('a')));
    }
}

/// The future is dropped while it sleeps, at the instant of the deadline, and later.
#[test]
fn d4_a_dropped_future_loses_no_element() {
    for dropped_at in [3, 5, 6] {
        let by_hand = ByHand::new();
        by_hand.queue.push('a', ms(5)).expect("it is open");
        let waiting = Hand::waiting(by_hand.queue.wait_next());
        by_hand.advance_to(dropped_at);
        drop(waiting);
        assert_eq!((by_hand.queue.len(), by_hand.timer.pending()), (1, 0));
        by_hand.advance_to(6);
        assert_eq!(by_hand.queue.try_take(), Some('a'));
    }
}

#[test]
fn a_future_that_was_ready_waits_for_the_next_element() {
    let by_hand = ByHand::new();
    let mut waiter = Hand::waiting(by_hand.queue.wait_next());
    for value in 0..3 {
        by_hand.queue.push(value, ms(1)).expect("it is open");
        assert!(waiter.woken());
        assert_eq!(waiter.poll(), Poll::Pending);
        by_hand.clock.advance(ms(1));
        assert!(waiter.woken());
        assert_eq!(waiter.poll(), Poll::Ready(Some(value)));
        assert_eq!(waiter.poll(), Poll::Pending);
    }
}

/// The limit is for callers that can be refused. A refused waiter would never be woken.
#[test]
fn a_full_timer_has_room_for_those_who_wait() {
    let by_hand = ByHand::of(|builder| builder.max_pending(1));
    let filling = by_hand.timer.schedule(ms(100), || ()).expect("there is room for one");
    by_hand.queue.push('a', ms(5)).expect("it is open");
    let mut leader = Hand::waiting(by_hand.queue.wait_next());
    assert_eq!(by_hand.timer.pending(), 2);
    by_hand.advance_to(5);
    assert!(leader.woken());
    assert_eq!(leader.poll(), Poll::Ready(Some('a')));
    // The alarm's place under the limit is free again. It was not the place of the other entry.
    assert!(by_hand.timer.schedule(ms(100), || ()).is_err());
    assert!(filling.cancel());
    assert!(by_hand.timer.schedule(ms(100), || ()).is_ok());
}
