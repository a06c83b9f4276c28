//! The rules of clocks, seen from a timer.
use std::pin::pin;
use std::sync::mpsc::{TryRecvError, channel};
use std::task::{Context, Waker};
use std::time::Duration;

use tickwheel::{Clock, Job, ManualClock, Monotonic, SystemClock, TimeoutState, Timer};

/// A little more than five years, so that no reading of this clock is one of the system's clock.
const AHEAD: Duration = Duration::from_secs(5 * 365 * 86_400 + 7);

/// A clock that runs by itself, from another origin than the system's clock, and slower by a factor.
#[derive(Clone)]
struct Other {
    system: SystemClock,
    slower: u64,
}

impl Clock for Other {
    fn now(&self) -> Monotonic {
        Monotonic::from_nanos(self.system.now().as_nanos() / self.slower).saturating_add(AHEAD)
    }
}

/// A driver that mixed this clock with one of its own would fire at once, or in five years. A driver that did not read
/// the clock again after a wait would fire early on the slow clock.
#[test]
fn k2_a_wait_is_by_the_clock_that_was_given_and_is_taken_anew() {
    for slower in [1, 3] {
        let clock = Other { system: SystemClock::new(), slower };
        let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build().expect("a thread");
        let deadline = timer.now().saturating_add(Duration::from_millis(7));
        let (ran, began) = channel();
        timer
            .schedule_at(deadline, move || ran.send(clock.now()).expect("the test listens"))
            .expect("no limit is set");
        let began = began.recv_timeout(tickwheel_testing::HANG_TIME).expect("it fires in 21 ms");
        assert!(began >= deadline, "{began:?} is before {deadline:?} on a clock {slower} times as slow");
    }
}

#[test]
fn k6_a_step_is_exact_and_a_sleep_beyond_it_waits() {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).build().expect("it needs no thread");
    let mut sleep = pin!(timer.sleep(Duration::from_secs(60)));
    let mut context = Context::from_waker(Waker::noop());
    let mut expected = 0;
    for step in [51_592_000, 1_000, 1, 59_948_406_998] {
        assert!(sleep.as_mut().poll(&mut context).is_pending(), "at {expected} ns");
        expected += step;
        clock.advance(Duration::from_nanos(step));
        assert_eq!(timer.now(), Monotonic::from_nanos(expected));
    }
    assert!(sleep.as_mut().poll(&mut context).is_pending(), "it is a nanosecond short of a minute");
    clock.advance(Duration::from_nanos(1));
    assert!(sleep.as_mut().poll(&mut context).is_ready());
}

/// Thirty days in milliseconds need more than 31 bits. The other delays are longer than the range of the clock.
#[test]
fn k8_a_long_delay_is_later_or_never_and_not_the_past() {
    let month = Duration::from_secs(30 * 86_400);
    // A clock that is past its origin. On such a clock, a deadline that wraps would be early.
    let clock = ManualClock::starting_at(Monotonic::from_nanos(5_000_000_000));
    let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build().expect("no thread");
    let (ran, runs) = channel();
    let in_a_month = timer.schedule(month, move || ran.send(()).expect("the test listens")).expect("room");
    let never = [Duration::MAX, Duration::from_secs(u64::MAX / 1_000), Duration::from_nanos(u64::MAX)];
    let never = never.map(|delay| timer.schedule(delay, || panic!("never is now")).expect("room"));

    clock.advance(month - Duration::from_millis(1));
    assert_eq!(runs.try_recv(), Err(TryRecvError::Empty));
    clock.advance(Duration::from_millis(1));
    assert_eq!(runs.try_recv(), Ok(()));
    assert_eq!(in_a_month.state(), TimeoutState::Fired);

    clock.advance(Duration::from_secs(500 * 365 * 86_400));
    for timeout in never {
        assert_eq!(timeout.state(), TimeoutState::Pending);
        assert!(timeout.cancel());
    }
}
