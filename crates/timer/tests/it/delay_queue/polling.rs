//! Threads that take: D2, D4.

use std::thread;

use tickwheel::{Clock, DelayQueue, SystemClock, Timer};

use super::by_hand::{ByHand, at, ms, until};

#[test]
fn d2_an_element_is_taken_from_its_deadline_on_and_not_before() {
    let by_hand = ByHand::new();
    let handle = by_hand.queue.push('a', ms(5)).expect("it is open");
    for reading in 0..5 {
        by_hand.advance_to(reading);
        assert_eq!((by_hand.queue.try_take(), by_hand.queue.poll(ms(0))), (None, None), "at {reading} ms");
        assert_eq!(by_hand.queue.peek(), Some((handle, at(5))));
    }
    by_hand.advance_to(5);
    // A poll of zero does not wait, so the clock need not move.
    assert_eq!(by_hand.queue.poll(ms(0)), Some('a'));
    assert_eq!(by_hand.queue.poll(ms(0)), None);
}

/// The thread returns the reading of the clock at which it gave up. The element is due just after
/// that.
#[test]
fn d2_a_timed_poll_waits_its_full_time_and_no_longer() {
    for empty in [true, false] {
        let by_hand = ByHand::new();
        if !empty {
            by_hand.queue.push('a', ms(11)).expect("it is open");
        }
        thread::scope(|scope| {
            let poll = scope.spawn(|| (by_hand.queue.poll(ms(10)), by_hand.clock.now()));
            until(|| by_hand.timer.pending() == 1);
            by_hand.advance_to(9);
            assert_eq!(by_hand.timer.pending(), 1, "it waits on");
            by_hand.advance_to(10);
            assert_eq!(poll.join().expect("no panic"), (None, at(10)));
        });
        assert_eq!((by_hand.timer.pending(), by_hand.queue.len()), (0, usize::from(!empty)));
    }
}

#[test]
fn d2_a_timed_poll_takes_what_falls_due_in_its_time() {
    for due in [1, 9, 10] {
        let by_hand = ByHand::new();
        thread::scope(|scope| {
            let poll = scope.spawn(|| (by_hand.queue.poll(ms(10)), by_hand.clock.now()));
            until(|| by_hand.timer.pending() == 1);
            by_hand.queue.push('a', ms(due)).expect("it is open");
            // Another thread tells the poll of the new head, so the clock may reach the deadline
            // first.
            by_hand.advance_to(due);
            assert_eq!(poll.join().expect("no panic"), (Some('a'), at(due)));
        });
    }
}

#[test]
fn d2_on_the_systems_clock_nothing_is_early() {
    let clock = SystemClock::new();
    let timer = Timer::builder().clock(clock).build().expect("a timer");
    let queue = DelayQueue::new(&timer);
    let start = clock.now();
    assert_eq!(queue.poll(ms(7)), None);
    assert!(clock.now() >= start.saturating_add(ms(7)), "it gave up early");
    let mut handles = vec![];
    for delay in [9, 3, 6] {
        handles.push(queue.push(delay, ms(delay)).expect("it is open"));
    }
    for (expected, index) in [(3, 1), (6, 2), (9, 0)] {
        let deadline = queue.deadline(handles[index]).expect("it waits");
        assert_eq!(queue.take(), Some(expected));
        assert!(clock.now() >= deadline, "it came early");
    }
    assert_eq!(timer.pending(), 0, "a thread on this clock wakes by itself");
}

#[test]
fn d4_a_waiting_taker_gets_what_another_thread_puts() {
    let by_hand = ByHand::new();
    thread::scope(|scope| {
        let taker = scope.spawn(|| by_hand.queue.take());
        until(|| by_hand.timer.pending() == 1);
        by_hand.queue.push('a', ms(0)).expect("it is open");
        assert_eq!(taker.join().expect("no panic"), Some('a'));
    });
    // A clock that moves by itself.
    let queue = DelayQueue::new(&Timer::new().expect("a timer"));
    thread::scope(|scope| {
        let taker = scope.spawn(|| (queue.take(), queue.take()));
        queue.push('b', ms(2)).expect("it is open");
        queue.push('a', ms(1)).expect("it is open");
        let (first, second) = taker.join().expect("no panic");
        let mut taken = [first, second];
        taken.sort_unstable();
        assert_eq!(taken, [Some('a'), Some('b')]);
    });
}

/// A thread gives up while its element becomes due. Either the thread has the element, or the
/// element is still in the queue.
#[test]
fn d4_a_poll_that_gives_up_takes_nothing_with_it() {
    for due in [9, 10, 11] {
        let by_hand = ByHand::new();
        by_hand.queue.push('a', ms(due)).expect("it is open");
        let taken = thread::scope(|scope| {
            let poll = scope.spawn(|| by_hand.queue.poll(ms(10)));
            until(|| by_hand.timer.pending() == 1);
            by_hand.advance_to(12);
            poll.join().expect("no panic")
        });
        let left = by_hand.queue.try_take();
        assert!(taken.is_some() != left.is_some(), "due at {due}: {taken:?} was taken and {left:?} is left");
    }
}
