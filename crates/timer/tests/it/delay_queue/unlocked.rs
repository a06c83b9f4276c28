//! User code runs without the lock. Each of these tests would deadlock if it ran under the lock.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use tickwheel::DelayQueue;

use super::by_hand::{ByHand, Hand, ms};

/// A value that calls its queue when it is dropped.
struct Nosy {
    queue: DelayQueue<Nosy>,
    dropped: Arc<AtomicUsize>,
}

impl Drop for Nosy {
    fn drop(&mut self) {
        let _ = self.queue.len();
        self.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_value_is_dropped_without_the_lock_and_once() {
    let by_hand = ByHand::<Nosy>::new();
    let dropped = Arc::new(AtomicUsize::new(0));
    let nosy = || Nosy { queue: by_hand.queue.clone(), dropped: Arc::clone(&dropped) };
    let push = || by_hand.queue.push(nosy(), ms(0)).expect("it is open");
    push();
    push();
    by_hand.queue.clear();
    assert_eq!(dropped.load(Ordering::SeqCst), 2);
    let handle = push();
    drop(by_hand.queue.remove(handle));
    push();
    drop(by_hand.queue.take());
    push();
    drop(by_hand.queue.close());
    assert_eq!(dropped.load(Ordering::SeqCst), 5);
    drop(by_hand.queue.push(nosy(), ms(0)));
    assert_eq!(dropped.load(Ordering::SeqCst), 6);
}

/// A waker that calls the queue when it is woken, and when it is dropped.
struct Prying(DelayQueue<char>);

impl Wake for Prying {
    fn wake(self: Arc<Self>) {
        let _ = self.0.len();
    }
}

impl Drop for Prying {
    fn drop(&mut self) {
        let _ = self.0.len();
    }
}

#[test]
fn a_waker_is_woken_and_dropped_without_the_lock() {
    let by_hand = ByHand::new();
    let waker = || Waker::from(Arc::new(Prying(by_hand.queue.clone())));
    let mut futures = [(); 3].map(|()| by_hand.queue.wait_next());
    for _ in 0..2 {
        // In the second round the wakers of the first round are replaced.
        for future in &mut futures {
            let polled = Pin::new(future).poll(&mut Context::from_waker(&waker()));
            assert!(polled.is_pending());
        }
    }
    by_hand.queue.push('a', ms(1)).expect("it is open");
    by_hand.queue.push('b', ms(0)).expect("it is open");
    by_hand.queue.clear();
    drop(futures);
    let mut streams = [(); 2].map(|()| by_hand.queue.next());
    by_hand.queue.push('a', ms(1)).expect("it is open");
    for stream in &mut streams {
        assert!(Pin::new(stream).poll(&mut Context::from_waker(&waker())).is_pending());
    }
    assert_eq!(by_hand.queue.close(), ['a']);
}

/// A waker that panics when it is woken.
struct Panicking;

impl Wake for Panicking {
    fn wake(self: Arc<Self>) {
        panic!("a waker that panics on purpose");
    }
}

/// The caller that takes the last element wakes this waker, and must not lose the element. The later waiters must
/// still be woken.
#[test]
fn d4_a_waker_that_panics_costs_nobody_an_element_or_a_call() {
    let by_hand = ByHand::new();
    by_hand.queue.push('a', ms(0)).expect("it is open");
    let handle = by_hand.queue.push('b', ms(5)).expect("it is open");
    let mut first = by_hand.queue.next();
    assert_eq!(by_hand.queue.try_take(), Some('a'));
    let waker = Waker::from(Arc::new(Panicking));
    assert!(Pin::new(&mut first).poll(&mut Context::from_waker(&waker)).is_pending());
    let mut behind = Hand::waiting(by_hand.queue.next());
    assert_eq!(by_hand.queue.remove(handle), Some('b'));
    assert!(behind.woken());
    assert_eq!(behind.poll(), Poll::Ready(None));
}
