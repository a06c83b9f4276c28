//! The queue as a stream: D6, D7, D8, D10.

use std::task::Poll;
use std::time::Duration;

use tickwheel::{Clock, DelayQueue, SystemClock, Timer};

use super::by_hand::{ByHand, Hand, at, block_on, ms};

#[test]
fn d6_what_is_pushed_for_now_is_ready_at_once_and_then_the_stream_ends() {
    let by_hand = ByHand::new();
    assert_eq!(Hand::new(by_hand.queue.next()).poll(), Poll::Ready(None), "an empty queue is at its end");
    for value in ['a', 'b', 'c'] {
        by_hand.queue.push(value, ms(0)).expect("it is open");
    }
    let mut stream = Hand::new(by_hand.queue.next());
    for value in ['a', 'b', 'c'] {
        assert_eq!(stream.poll(), Poll::Ready(Some(value)));
    }
    assert_eq!(stream.poll(), Poll::Ready(None));
    assert_eq!(by_hand.timer.pending(), 0);
}

/// The element is never early. It is at most one tick of the timer late, because the timer wakes the
/// future.
#[test]
fn d6_a_future_is_woken_in_the_tick_after_its_deadline() {
    let nano = Duration::from_nanos(1);
    for nanos in [1, 999_999, 1_000_000] {
        let by_hand = ByHand::new();
        by_hand.queue.push('a', nanos * nano).expect("it is open");
        let mut stream = Hand::waiting(by_hand.queue.next());
        by_hand.clock.advance((nanos - 1) * nano);
        assert_eq!(stream.poll(), Poll::Pending);
        assert!(!stream.woken());
        by_hand.advance_to(1);
        assert!(stream.woken());
        assert_eq!(stream.poll(), Poll::Ready(Some('a')));
    }
}

#[test]
fn d7_a_waiting_stream_is_woken_on_time_and_not_before() {
    let by_hand = ByHand::new();
    by_hand.queue.push('a', ms(5)).expect("it is open");
    let mut stream = Hand::waiting(by_hand.queue.next());
    for reading in 1..5 {
        by_hand.advance_to(reading);
        assert!(!stream.woken(), "at {reading} ms");
    }
    by_hand.advance_to(6);
    assert!(stream.woken());
    assert_eq!(stream.poll(), Poll::Ready(Some('a')));
    assert!(!stream.woken(), "it has the last element, and is not told that there is none left");
}

#[test]
fn d7_an_element_of_the_past_wakes_a_waiting_stream_at_once() {
    let by_hand = ByHand::starting_at(at(100));
    by_hand.queue.push('b', ms(5)).expect("it is open");
    let mut stream = Hand::waiting(by_hand.queue.next());
    by_hand.queue.push_at('a', at(99)).expect("it is open");
    assert!(stream.woken());
    assert_eq!(stream.poll(), Poll::Ready(Some('a')));
    assert_eq!(stream.poll(), Poll::Pending);
    by_hand.queue.push_at('c', at(100)).expect("it is open");
    assert!(stream.woken());
    assert_eq!(stream.poll(), Poll::Ready(Some('c')));
}

#[test]
fn d8_what_is_moved_later_comes_later() {
    let by_hand = ByHand::new();
    let handle = by_hand.queue.push('a', ms(5)).expect("it is open");
    let mut stream = Hand::waiting(by_hand.queue.next());
    assert_eq!(by_hand.queue.reschedule(handle, ms(10)), Some(at(10)));
    assert!(!stream.woken());
    for reading in [5, 8, 9] {
        by_hand.advance_to(reading);
        assert_eq!(stream.poll(), Poll::Pending, "at {reading} ms");
    }
    assert!(stream.woken(), "by its first alarm");
    by_hand.advance_to(10);
    assert!(stream.woken());
    assert_eq!(stream.poll(), Poll::Ready(Some('a')));
}

#[test]
fn d8_what_is_moved_to_the_past_comes_at_once() {
    for to in [0, 3, 7] {
        let by_hand = ByHand::new();
        by_hand.queue.push('b', ms(9)).expect("it is open");
        let handle = by_hand.queue.push('a', ms(10)).expect("it is open");
        by_hand.advance_to(7);
        let mut stream = Hand::waiting(by_hand.queue.next());
        assert_eq!(by_hand.queue.reschedule_at(handle, at(to)), Some(at(to)));
        assert!(stream.woken());
        assert_eq!(stream.poll(), Poll::Ready(Some('a')));
        assert_eq!(stream.poll(), Poll::Pending);
    }
}

/// Tests every way in which the last element can leave. A waiter that waits for later pushes is not
/// woken.
#[test]
fn d10_when_the_last_element_leaves_a_waiting_stream_sees_the_end() {
    for way in 0..4 {
        let by_hand = ByHand::new();
        let handle = by_hand.queue.push('a', ms(5)).expect("it is open");
        let other = by_hand.queue.push('b', ms(5)).expect("it is open");
        let patient = Hand::waiting(by_hand.queue.wait_next());
        let mut streams = [(); 2].map(|()| Hand::waiting(by_hand.queue.next()));
        assert_eq!(by_hand.queue.remove(other), Some('b'));
        assert!(!streams.iter().any(Hand::woken), "there is one left");
        match way {
            0 => assert_eq!(by_hand.queue.remove(handle), Some('a')),
            1 => by_hand.queue.clear(),
            2 => assert_eq!(by_hand.queue.drain(), ['a']),
            _ => {
                by_hand.advance_to(5);
                assert_eq!(by_hand.queue.try_take(), Some('a'));
            }
        }
        for stream in &mut streams {
            assert!(stream.woken(), "way {way}");
            assert_eq!(stream.poll(), Poll::Ready(None));
        }
        assert_eq!(patient.woken(), way == 3, "the patient one leads, and is woken by the clock alone");
    }
}

#[test]
fn d10_an_element_that_comes_before_the_stream_looked_keeps_it_going() {
    let by_hand = ByHand::new();
    by_hand.queue.push('a', ms(5)).expect("it is open");
    let mut stream = Hand::waiting(by_hand.queue.next());
    by_hand.queue.clear();
    by_hand.queue.push('b', ms(7)).expect("it is open");
    assert!(stream.woken());
    assert_eq!(stream.poll(), Poll::Pending);
    by_hand.advance_to(7);
    assert_eq!(stream.poll(), Poll::Ready(Some('b')));
    assert_eq!(stream.poll(), Poll::Ready(None));
}

#[test]
fn a_stream_on_the_systems_clock_needs_no_runtime() {
    let clock = SystemClock::new();
    let timer = Timer::builder().clock(clock).build().expect("a timer");
    let queue = DelayQueue::new(&timer);
    let start = clock.now();
    for delay in [4, 2, 6] {
        let due = start.saturating_add(ms(delay));
        queue.push_at((delay, due), due).expect("it is open");
    }
    let mut order = vec![];
    block_on(async {
        while let Some((delay, due)) = queue.next().await {
            assert!(clock.now() >= due, "{delay} came early");
            order.push(delay);
        }
    });
    assert_eq!(order, [2, 4, 6]);
}

#[test]
fn d4_a_branch_that_is_not_chosen_loses_no_element() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
    let queue = DelayQueue::new(&Timer::new().expect("a timer"));
    let taken = runtime.block_on(async {
        let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
        let pushing = queue.clone();
        let producer = tokio::spawn(async move {
            for value in 0..200_u32 {
                pushing
                    .push(value, Duration::from_micros(u64::from(value * 37 % 2_000)))
                    .expect("it is open");
                tokio::task::yield_now().await;
            }
            drop(stop);
        });
        let mut taken = vec![];
        // Both branches are dropped half-way again and again.
        loop {
            tokio::select! {
                biased;
                _ = &mut stopped => break,
                Some(value) = queue.wait_next() => taken.push(value),
                () = tokio::task::yield_now() => {}
            }
        }
        producer.await.expect("no panic");
        while let Some(value) = queue.next().await {
            taken.push(value);
        }
        taken
    });
    let mut sorted = taken.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..200).collect::<Vec<_>>(), "taken in the order {taken:?}");
}
