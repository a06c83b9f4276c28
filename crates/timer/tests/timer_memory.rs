//! Ended entries leave no memory behind. The tests have a process of their own, because they read the resident memory.

#![cfg(not(tickwheel_shuttle))]

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tickwheel::{Job, ManualClock, Timeout, Timer};

/// The tests run one at a time, because they share the memory of the process.
static ALONE: Mutex<()> = Mutex::new(());

const MS: Duration = Duration::from_millis(1);

fn by_hand() -> (ManualClock, Timer) {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build().expect("a timer");
    (clock, timer)
}

/// The resident bytes of this process; `None` if the system does not say.
fn resident() -> Option<usize> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4_096)
}

/// Tasks of 64 KB that have run, a few in each turn. Their memory is freed, although the timer still has references to their
/// entries.
#[test]
fn what_has_run_is_not_kept() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (clock, timer) = by_hand();
    let run = |count: u64| {
        for number in 0..count {
            let large = [number as u8; 65_536];
            timer.schedule(MS, move || assert_eq!(std::hint::black_box(large)[0], number as u8)).unwrap();
            clock.advance(MS);
        }
    };
    run(20);
    let Some(before) = resident() else {
        tickwheel_testing::forbidden("to read how much memory is resident");
        return;
    };
    run(1_000);
    let after = resident().unwrap();
    // Half of what they took.
    assert!(after < before + 32_000_000, "{before} bytes before, {after} after 1,000 tasks");
}

/// An entry that was filed for a day ahead and is cancelled leaves the wheel at the driver's next turn, and not at its
/// deadline. A leak would show as 60 MB or more.
#[test]
fn what_is_cancelled_does_not_stay_in_the_wheel() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (clock, timer) = by_hand();
    let mut far = Duration::from_secs(86_400);
    let mut churn = |rounds: u32| {
        for _ in 0..rounds {
            // The deadline is before all deadlines in the wheel, so the next turn files the entries.
            far -= 10 * MS;
            let batch = [(); 1_000].map(|()| timer.schedule(far, || ()).unwrap());
            clock.advance(MS);
            assert!(batch.iter().all(Timeout::cancel));
        }
    };
    churn(100);
    let Some(before) = resident() else {
        tickwheel_testing::forbidden("to read how much memory is resident");
        return;
    };
    churn(600);
    let after = resident().unwrap();
    assert!(after < before + 16_000_000, "{before} bytes before, {after} after");
    assert_eq!(timer.metrics().cancelled_unfiled, 0, "the turn saw all of them");
}

/// Schedules and cancels tasks, on the system's clock and by hand, filed and unfiled. The memory does not grow. A leak of the
/// smallest entry would show as 60 MB.
#[test]
fn schedule_and_cancel_leave_nothing_behind() {
    let pairs = if tickwheel_testing::is_long() { 10_000_000 } else { 1_000_000 };
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let real = Timer::new().unwrap();
    let (clock, timer) = by_hand();
    let churn = |pairs: u32| {
        for number in 0..pairs {
            let far = real.schedule(Duration::from_secs(3_600), move || assert!(number < u32::MAX)).unwrap();
            assert!(far.cancel());
            let by_hand = timer.schedule(50 * MS, move || assert!(number < u32::MAX)).unwrap();
            if number % 64 == 0 {
                // The turn sees the entry before it is cancelled.
                clock.advance(MS);
            }
            assert!(by_hand.cancel());
        }
    };
    churn(100_000);
    let Some(before) = resident() else {
        tickwheel_testing::forbidden("to read how much memory is resident");
        return;
    };
    churn(pairs);
    let after = resident().unwrap();
    assert!(after < before + 16_000_000, "{before} bytes before, {after} after {pairs} pairs");
    assert_eq!((real.pending(), timer.pending()), (0, 0));
}
