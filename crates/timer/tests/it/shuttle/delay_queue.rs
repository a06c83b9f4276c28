//! The delay queue. In no order of events does a waiter sleep while an element is due, or is an element handed out
//! twice. A missed wake-up is a deadlock here, which shuttle reports.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use std::{future::Future, pin::pin};

use crate::shuttle::explore;
use shuttle::future::block_on;
use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::thread;
use tickwheel::{DelayQueue, ManualClock, Timer};

const MS: Duration = Duration::from_millis(1);

struct ByHand {
    clock: ManualClock,
    timer: Timer,
    queue: DelayQueue<u32>,
}

impl ByHand {
    fn new() -> Arc<Self> {
        let clock = ManualClock::new();
        let timer = Timer::builder().clock(clock.clone()).build().expect("a timer");
        let queue = DelayQueue::new(&timer);
        Arc::new(Self { clock, timer, queue })
    }

    fn spawn<R: Send + 'static>(
        self: &Arc<Self>,
        body: impl FnOnce(&Self) -> R + Send + 'static,
    ) -> thread::JoinHandle<R> {
        let shared = Arc::clone(self);
        thread::spawn(move || body(&shared))
    }
}

#[test]
fn d4_a_taker_meets_a_push_and_a_clock_that_moves() {
    explore(|| {
        let by_hand = ByHand::new();
        let taker = by_hand.spawn(|by_hand| by_hand.queue.take());
        let clock = by_hand.spawn(|by_hand| by_hand.clock.advance(MS));
        by_hand.queue.push(1, MS).expect("it is open");
        clock.join().expect("no panic");
        // If time moves first, the element is due one step later.
        by_hand.clock.advance(MS);
        assert_eq!(taker.join().expect("no panic"), Some(1));
        assert_eq!((by_hand.queue.len(), by_hand.timer.pending()), (0, 0));
    });
}

#[test]
fn d3_a_leader_leaves_while_an_element_comes() {
    explore(|| {
        let by_hand = ByHand::new();
        let left = Arc::new(AtomicBool::new(false));
        let leaves = Arc::clone(&left);
        let leaving = by_hand.spawn(move |by_hand| {
            let taken = by_hand.queue.poll(MS);
            leaves.store(true, Ordering::SeqCst);
            taken
        });
        let staying = by_hand.spawn(|by_hand| by_hand.queue.take());
        let dropped = by_hand.spawn(|by_hand| {
            let mut given_up = pin!(by_hand.queue.wait_next());
            match given_up.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(taken) => taken,
                Poll::Pending => None,
            }
        });
        by_hand.queue.push(1, MS).expect("it is open");
        // The poll may begin at any time.
        while !left.load(Ordering::SeqCst) {
            by_hand.clock.advance(MS);
            thread::yield_now();
        }
        by_hand.clock.advance(MS);
        let gone = [leaving, dropped].map(|leaver| leaver.join().expect("no panic"));
        let taken = gone.iter().flatten().count();
        assert!(taken <= 1, "an element was handed out twice: {gone:?}");
        if taken == 1 {
            by_hand.queue.push(2, Duration::ZERO).expect("it is open");
        }
        assert_eq!(staying.join().expect("no panic"), Some(1 + taken as u32));
    });
}

#[test]
fn d3_two_takers_and_one_element() {
    explore(|| {
        let by_hand = ByHand::new();
        let thread = by_hand.spawn(|by_hand| by_hand.queue.take());
        let future = by_hand.spawn(|by_hand| block_on(by_hand.queue.wait_next()));
        by_hand.queue.push(1, MS).expect("it is open");
        by_hand.clock.advance(MS);
        let left = by_hand.queue.close();
        let mut all: Vec<u32> =
            [thread, future].into_iter().filter_map(|taker| taker.join().expect("no panic")).collect();
        all.extend(left);
        assert_eq!(all, [1]);
        assert_eq!(by_hand.timer.pending(), 0);
    });
}

#[test]
fn d3_two_takers_and_two_elements_that_come_one_before_the_other() {
    explore(|| {
        let by_hand = ByHand::new();
        let thread = by_hand.spawn(|by_hand| by_hand.queue.take());
        let future = by_hand.spawn(|by_hand| block_on(by_hand.queue.wait_next()));
        let producer = by_hand.spawn(|by_hand| by_hand.queue.push(2, 2 * MS).is_ok());
        by_hand.queue.push(1, MS).expect("it is open");
        assert!(producer.join().expect("no panic"));
        by_hand.clock.advance(2 * MS);
        let mut taken = [thread, future].map(|taker| taker.join().expect("no panic"));
        taken.sort_unstable();
        assert_eq!(taken, [Some(1), Some(2)]);
    });
}

#[test]
fn d8_an_element_is_moved_to_the_past_while_somebody_goes_to_wait_for_it() {
    explore(|| {
        let by_hand = ByHand::new();
        let handle = by_hand.queue.push(1, 5 * MS).expect("it is open");
        let taker = by_hand.spawn(|by_hand| by_hand.queue.take());
        assert!(by_hand.queue.reschedule(handle, Duration::ZERO).is_some());
        assert_eq!(taker.join().expect("no panic"), Some(1));
    });
}

#[test]
fn d10_the_last_element_leaves_while_a_stream_goes_to_wait_for_it() {
    explore(|| {
        let by_hand = ByHand::new();
        let handle = by_hand.queue.push(1, MS).expect("it is open");
        let stream = by_hand.spawn(|by_hand| block_on(by_hand.queue.next()));
        let behind = by_hand.spawn(|by_hand| block_on(by_hand.queue.next()));
        assert_eq!(by_hand.queue.remove(handle), Some(1));
        assert_eq!(stream.join().expect("no panic"), None);
        assert_eq!(behind.join().expect("no panic"), None);
    });
}

#[test]
fn a_timer_is_shut_down_while_two_go_to_wait_by_it() {
    explore(|| {
        let by_hand = ByHand::new();
        let thread = by_hand.spawn(|by_hand| by_hand.queue.take());
        let future = by_hand.spawn(|by_hand| block_on(by_hand.queue.wait_next()));
        let leaver = by_hand.spawn(|by_hand| by_hand.queue.poll(MS));
        by_hand.clock.advance(MS);
        drop(by_hand.timer.shutdown());
        for waiter in [thread, future, leaver] {
            assert_eq!(waiter.join().expect("no panic"), None);
        }
    });
}
