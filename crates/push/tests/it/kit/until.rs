//! [`until`]: waits for what a broker or a receiver does.

use std::time::{Duration, Instant};

use tickwheel_testing::HANG_TIME;

/// Waits until a condition holds. Panics if the test hangs.
pub(crate) async fn until(what: &str, holds: impl FnMut() -> bool) {
    until_or(|| what.to_owned(), holds).await;
}

/// Waits until a condition holds. Panics with `told` if the test hangs.
pub(crate) async fn until_or(told: impl Fn() -> String, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < HANG_TIME, "{}", told());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
