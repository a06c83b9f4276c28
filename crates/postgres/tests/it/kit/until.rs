//! Waits for conditions of other processes, which give no event to wait for.

use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(5);

/// Waits until the condition holds, and returns the time that it took. Panics with `what` if it does not hold for long.
#[track_caller]
#[allow(clippy::disallowed_methods, reason = "a test measures real time")]
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < tickwheel_testing::HANG_TIME, "timeout: {what}");
        pause();
    }
    begun.elapsed()
}

/// Waits a moment between two looks, or between two calls that were refused.
#[allow(clippy::disallowed_methods, reason = "another process gives no event to wait for")]
pub(crate) fn pause() {
    std::thread::sleep(PAUSE);
}

/// Reports a figure, or a test that is left out.
#[expect(clippy::print_stderr, reason = "figures are for the person who runs the tests")]
pub(crate) fn report(text: &str) {
    eprintln!("{text}");
}
