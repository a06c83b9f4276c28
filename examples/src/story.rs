//! [`Story`]: what an example tells, with the time at which it happened; and [`pass`]: how its time passes.

use std::time::Duration;

use tickwheel::{Clock, ManualClock};

/// Tells lines on stdout, each with the time since the clock's origin. Clones tell the same story.
#[derive(Clone, Debug)]
pub struct Story {
    clock: ManualClock,
}

impl Story {
    /// A story by this clock.
    #[must_use]
    pub fn by(clock: &ManualClock) -> Self {
        Self { clock: clock.clone() }
    }

    /// One more line.
    #[expect(clippy::print_stdout, reason = "an example for the terminal")]
    pub fn tell(&self, line: &str) {
        let milliseconds = self.clock.now().as_nanos() / 1_000_000;
        println!("{:>6}.{:03} s  {line}", milliseconds / 1_000, milliseconds % 1_000);
    }
}

/// Lets time pass a millisecond at a time: whatever comes due sees the moment at which it is due, and what it schedules counts
/// from there. One long step would show it the end of the step.
pub fn pass(clock: &ManualClock, duration: Duration) {
    const STEP: Duration = Duration::from_millis(1);
    let mut left = duration;
    while !left.is_zero() {
        clock.advance(left.min(STEP));
        left = left.saturating_sub(STEP);
    }
}
