//! Many threads. Each element is taken once, none is early, and none is left.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tickwheel::{Clock, DelayQueue, ManualClock, Monotonic, SystemClock, Timer};

use super::by_hand::{block_on, ms};

const PRODUCERS: u64 = 4;
const TAKERS: usize = 6;
const EACH: u64 = 500;

/// A number that looks random, computed from another number.
fn scramble(seed: u64) -> u64 {
    let mixed = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 17
}

/// Pushes its share, removes some, and moves others. Returns the removed values, which no taker may get.
fn produce(queue: &DelayQueue<(u64, u64)>, clock: &impl Clock, producer: u64, spread: u64) -> Vec<u64> {
    let mut removed = vec![];
    for number in 0..EACH {
        let id = producer * EACH + number;
        let chance = scramble(id);
        let due = clock.now().saturating_add(Duration::from_nanos(chance % spread));
        let handle = queue.push_at((id, due.as_nanos()), due).expect("it is open");
        if chance.is_multiple_of(5) {
            removed.extend(queue.remove(handle).map(|(id, _)| id));
        } else if chance.is_multiple_of(7) {
            // The new deadline is later than the one in the value, so the element is still not early.
            queue.reschedule_at(handle, due.saturating_add(Duration::from_nanos(spread / 4)));
        }
    }
    removed
}

/// Takes elements until the queue is closed. There are four kinds: by a blocking take, by a timed poll, by a future, and
/// by a future that is dropped half-way.
fn consume(queue: &DelayQueue<(u64, u64)>, clock: &impl Clock, kind: usize, count: &AtomicUsize) -> Vec<u64> {
    let mut taken = vec![];
    loop {
        let next = match kind % 4 {
            0 => queue.take(),
            1 => queue.poll(Duration::from_micros(300)),
            2 => block_on(queue.wait_next()),
            _ => {
                let mut context = std::task::Context::from_waker(std::task::Waker::noop());
                let mut given_up = std::pin::pin!(queue.wait_next());
                match given_up.as_mut().poll(&mut context) {
                    std::task::Poll::Ready(next) => next,
                    std::task::Poll::Pending => None,
                }
            }
        };
        match next {
            Some((id, due)) => {
                assert!(clock.now() >= Monotonic::from_nanos(due), "{id} came early");
                taken.push(id);
                count.fetch_add(1, Ordering::SeqCst);
            }
            None if queue.is_closed() => return taken,
            None => thread::yield_now(),
        }
    }
}

fn crowd(clock: impl Clock + Clone + 'static, spread: u64, pass_time: impl Fn()) {
    let timer = Timer::builder().clock(clock.clone()).build().expect("a timer");
    let queue = DelayQueue::new(&timer);
    let count = AtomicUsize::new(0);
    let mut ids = thread::scope(|scope| {
        let takers: Vec<_> = (0..TAKERS)
            .map(|kind| {
                let (queue, clock, count) = (&queue, &clock, &count);
                scope.spawn(move || consume(queue, clock, kind, count))
            })
            .collect();
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|producer| {
                let (queue, clock) = (&queue, &clock);
                scope.spawn(move || produce(queue, clock, producer, spread))
            })
            .collect();
        while !producers.iter().all(|producer| producer.is_finished()) {
            pass_time();
        }
        let mut ids: Vec<u64> =
            producers.into_iter().flat_map(|producer| producer.join().expect("no panic")).collect();
        let removed = ids.len();
        while count.load(Ordering::SeqCst) + removed < (PRODUCERS * EACH) as usize {
            pass_time();
        }
        assert!(queue.close().is_empty(), "all were taken");
        ids.extend(takers.into_iter().flat_map(|taker| taker.join().expect("no panic")));
        ids
    });
    ids.sort_unstable();
    assert_eq!(ids, (0..PRODUCERS * EACH).collect::<Vec<_>>());
    assert_eq!(timer.pending(), 0, "an alarm was left behind");
}

#[test]
fn d4_a_crowd_on_a_clock_moved_by_hand_gets_each_element_once() {
    let clock = ManualClock::new();
    crowd(clock.clone(), 20_000_000, || {
        clock.advance(Duration::from_micros(100));
        thread::yield_now();
    });
}

#[test]
fn d4_a_crowd_on_the_systems_clock_gets_each_element_once() {
    crowd(SystemClock::new(), 20_000_000, thread::yield_now);
}

/// There are no takers here that look again by themselves, so a missed wake-up would stay missed.
#[test]
fn d3_two_takers_and_no_wake_up_is_missed() {
    for round in 0..200_u64 {
        let by_hand = super::by_hand::ByHand::new();
        thread::scope(|scope| {
            let takers =
                [scope.spawn(|| by_hand.queue.take()), scope.spawn(|| block_on(by_hand.queue.wait_next()))];
            by_hand.queue.push(1, ms(round % 3)).expect("it is open");
            by_hand.queue.push(0, ms(round % 2)).expect("it is open");
            by_hand.advance_to(3);
            let mut taken = takers.map(|taker| taker.join().expect("no panic"));
            taken.sort_unstable();
            assert_eq!(taken, [Some(0), Some(1)]);
        });
    }
}

/// The second taker sleeps without limit until the first one has left, with an element or without one.
#[test]
fn d3_threads_on_the_systems_clock_pass_on_what_they_minded() {
    let queue = DelayQueue::new(&Timer::new().expect("a timer"));
    for round in 0..40_u64 {
        let give_up = round.is_multiple_of(2);
        thread::scope(|scope| {
            let takers = [(); 2].map(|()| scope.spawn(|| queue.take()));
            let leaver =
                scope.spawn(|| if give_up { queue.poll(Duration::from_micros(500)) } else { queue.take() });
            let due = queue.push((), ms(1)).and_then(|_| queue.push((), ms(2)));
            assert!(due.is_ok());
            // If the leaver got no element, there are two elements for two takers.
            if !give_up || leaver.join().expect("no panic").is_some() {
                queue.push((), ms(3)).expect("it is open");
            }
            assert_eq!(takers.map(|taker| taker.join().expect("no panic")), [Some(()), Some(())]);
        });
        assert!(queue.is_empty(), "round {round}");
    }
}
