//! The sleep of a future. The task that polled it last is woken. A missed wake-up is a deadlock here, which shuttle
//! reports.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use shuttle::future::block_on;
use shuttle::thread;
use tickwheel::{ManualClock, Refusal, Timer};

use crate::shuttle::explore;

const MS: Duration = Duration::from_millis(1);

/// A sleep is polled by another waiter while `end` ends it. The new waiter must be woken.
fn changes_hands(end: fn(&Timer, &ManualClock), told: Result<(), Refusal>) {
    explore(move || {
        let clock = ManualClock::new();
        let timer = Timer::builder().clock(clock.clone()).build().expect("a timer");
        let mut sleep = pin!(timer.sleep(MS));
        // This waker is replaced by the next poll.
        assert_eq!(sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending);
        let same = timer.clone();
        let ends = thread::spawn(move || end(&same, &clock));
        assert_eq!(block_on(sleep).map_err(|error| error.why), told);
        ends.join().expect("no panic");
        assert_eq!(timer.pending(), 0);
    });
}

#[test]
fn t7_a_sleep_that_changes_hands_at_its_deadline_is_not_missed() {
    let end = |_: &Timer, clock: &ManualClock| {
        clock.advance(MS);
    };
    changes_hands(end, Ok(()));
}

#[test]
fn t29_a_sleep_that_changes_hands_at_the_end_is_told() {
    changes_hands(|timer, _| assert!(timer.shutdown().is_empty()), Err(Refusal::ShutDown));
}
