//! What is over leaves nothing behind.

use std::time::Duration;

use tickwheel::{Timeout, Timer};

use super::stage::{Stage, ms};

/// Resident bytes of this process; `None` where the system does not tell.
fn resident() -> Option<usize> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4_096)
}

/// What was filed for a day ahead and is cancelled leaves the wheel when the driver comes by, not when it would have been due. A
/// leak would show as 60 MB or more.
#[test]
fn what_is_cancelled_does_not_stay_in_the_wheel() {
    let stage = Stage::new();
    let far = std::cell::Cell::new(86_400_000);
    let churn = |rounds: u32| {
        for _ in 0..rounds {
            // Before all that is in the wheel, so that the next turn files it.
            far.set(far.get() - 10);
            let batch = [(); 1_000].map(|()| stage.timer.schedule(ms(far.get()), || ()).unwrap());
            stage.advance(1);
            assert!(batch.iter().all(Timeout::cancel));
        }
    };
    churn(100);
    let Some(before) = resident() else {
        eprintln!("SKIPPED: this system does not tell how much memory is resident");
        return;
    };
    churn(600);
    let after = resident().unwrap();
    assert!(after < before + 16_000_000, "{before} bytes before, {after} after");
    assert_eq!(stage.timer.metrics().cancelled_unfiled, 0, "the turn saw all of them");
}

/// Schedules and cancels at once, on the system's clock and by hand, filed and unfiled: memory stays where it is. A leak of the
/// smallest entry would show as 60 MB.
#[test]
fn schedule_and_cancel_leave_nothing_behind() {
    let pairs = if std::env::var_os("TICKWHEEL_LONG").is_some() { 10_000_000 } else { 1_000_000 };
    let real = Timer::new().unwrap();
    let stage = Stage::new();
    let churn = |pairs: u32| {
        for number in 0..pairs {
            let far = real.schedule(Duration::from_secs(3_600), move || assert!(number < u32::MAX)).unwrap();
            assert!(far.cancel());
            let by_hand = stage.timer.schedule(ms(50), move || assert!(number < u32::MAX)).unwrap();
            if number % 64 == 0 {
                // The turn sees it before it is cancelled.
                stage.advance(1);
            }
            assert!(by_hand.cancel());
        }
    };
    churn(100_000);
    let Some(before) = resident() else {
        eprintln!("SKIPPED: this system does not tell how much memory is resident");
        return;
    };
    churn(pairs);
    let after = resident().unwrap();
    assert!(after < before + 16_000_000, "{before} bytes before, {after} after {pairs} pairs");
    assert_eq!((real.pending(), stage.timer.pending()), (0, 0));
}
