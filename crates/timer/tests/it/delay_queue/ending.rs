//! The end of a queue, and of the timer that wakes its waiters.

use std::task::Poll;
use std::thread;

use tickwheel::{Closed, DelayQueue, Timer};

use super::by_hand::{ByHand, Hand, ms, until};

#[test]
fn a_closed_queue_returns_what_is_left_and_takes_nothing_in() {
    let by_hand = ByHand::new();
    for (delay, value) in [(9, 'c'), (0, 'a'), (5, 'b')] {
        by_hand.queue.push(value, ms(delay)).expect("it is open");
    }
    let clone = by_hand.queue.clone();
    assert!(!clone.is_closed());
    assert_eq!(by_hand.queue.close(), ['a', 'b', 'c']);
    assert!(clone.is_closed() && clone.is_empty());
    assert_eq!(clone.push('d', ms(0)), Err(Closed('d')));
    assert_eq!((clone.take(), clone.poll(ms(100)), clone.try_take()), (None, None, None));
    assert_eq!(Hand::new(clone.wait_next()).poll(), Poll::Ready(None));
    assert_eq!(clone.close(), []);
    assert_eq!(Closed('d').to_string(), "the delay queue is closed and takes nothing more");
}

#[test]
fn whoever_waits_when_the_queue_is_closed_gets_an_answer() {
    for empty in [true, false] {
        let by_hand = ByHand::new();
        if !empty {
            by_hand.queue.push('a', ms(5)).expect("it is open");
        }
        let mut futures: Vec<_> = (0..3).map(|_| Hand::waiting(by_hand.queue.wait_next())).collect();
        let real = DelayQueue::new(&Timer::new().expect("a timer"));
        thread::scope(|scope| {
            let takers = [(); 2].map(|()| {
                scope.spawn(|| {
                    real.push((), ms(u64::MAX)).expect("it is open");
                    real.take()
                })
            });
            let by_hand_taker = scope.spawn(|| by_hand.queue.take());
            until(|| real.len() == 2);
            assert_eq!(real.close().len(), 2);
            assert_eq!(by_hand.queue.close().len(), usize::from(!empty));
            assert_eq!(takers.map(|taker| taker.join().expect("no panic")), [None, None]);
            assert_eq!(by_hand_taker.join().expect("no panic"), None);
        });
        for future in &mut futures {
            assert!(future.woken());
            assert_eq!(future.poll(), Poll::Ready(None));
        }
        assert_eq!(by_hand.timer.pending(), 0);
    }
}

/// The timer would not wake the waiters any more. This concerns the leader and the others, with a head and
/// without one.
#[test]
fn whoever_waits_by_a_timer_that_is_shut_down_gets_an_answer() {
    for empty in [true, false] {
        let by_hand = ByHand::new();
        if !empty {
            by_hand.queue.push('a', ms(5)).expect("it is open");
        }
        let mut futures: Vec<_> = (0..3).map(|_| Hand::waiting(by_hand.queue.wait_next())).collect();
        thread::scope(|scope| {
            let taker = scope.spawn(|| by_hand.queue.take());
            drop(by_hand.timer.shutdown());
            for (index, future) in futures.iter_mut().enumerate() {
                assert!(future.woken(), "number {index} in line");
                assert_eq!(future.poll(), Poll::Ready(None));
            }
            assert_eq!(taker.join().expect("no panic"), None);
        });
        // A due element can still be taken.
        by_hand.queue.push('b', ms(0)).expect("it is open");
        assert_eq!(by_hand.queue.take(), Some('b'));
        assert_eq!(Hand::new(by_hand.queue.wait_next()).poll(), Poll::Ready(None));
    }
}

#[test]
fn a_leader_that_leaves_an_empty_queue_is_followed_by_one_who_hears_the_shutdown() {
    let by_hand = ByHand::<char>::new();
    let mut futures: Vec<_> = (0..3).map(|_| Hand::waiting(by_hand.queue.wait_next())).collect();
    drop(futures.remove(0));
    assert!(futures[0].woken());
    assert_eq!(futures[0].poll(), Poll::Pending);
    drop(by_hand.timer.shutdown());
    for future in &mut futures {
        assert!(future.woken());
        assert_eq!(future.poll(), Poll::Ready(None));
    }
}

/// A thread on the system's clock needs no timer.
#[test]
fn a_thread_on_the_systems_clock_outlives_its_timer() {
    let timer = Timer::new().expect("a timer");
    let queue = DelayQueue::new(&timer);
    drop(timer.shutdown());
    queue.push('a', ms(3)).expect("it is open");
    assert_eq!(queue.take(), Some('a'));
    assert_eq!(queue.poll(ms(1)), None);
}
