//! The wall clock and its guard.

use std::time::Duration;

use tickwheel_engine::Timestamp;

/// A step forward of more than this that the boot-time clock did not see is not believed at once.
pub const CLOCK_GUARD: Duration = Duration::from_secs(5 * 60);
/// It is believed after it has stood for so long.
pub const GUARD_STANDS: Duration = Duration::from_secs(60);
/// Smaller differences between the clocks are slewing and rounding, no step.
const STEP_NOTICED: Duration = Duration::from_millis(500);

/// One look at three clocks, as close together as possible. Nanoseconds; `wall_ns` since the Unix epoch.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The monotonic clock; stands still while the machine is suspended.
    pub mono_ns: u64,
    /// The boot-time clock; goes on while the machine is suspended.
    pub boot_ns: u64,
    /// What the wall clock shows.
    pub wall_ns: i128,
}

/// Decides which wall time to believe.
///
/// A wall clock that jumps ahead would make everything due at once, and nothing could undo that; so a step forward of more
/// than five minutes counts only if the boot-time clock has moved as far (then the machine slept), or after it has stood
/// for a minute. Until then believed time goes on at the pace of the monotonic clock. A step back is followed at once:
/// waiting longer harms nobody, and `due_at` is an instant of the wall clock.
///
/// ```
/// use tickwheel_queue::wall::{Reading, WallGuard};
/// let second = 1_000_000_000;
/// let mut guard = WallGuard::new(Reading { mono_ns: 0, boot_ns: 0, wall_ns: 0 });
/// let hour_ahead = Reading { mono_ns: second, boot_ns: second, wall_ns: 3_600 * 1_000_000_000 };
/// assert_eq!(guard.observe(hour_ahead), 1_000_000_000, "one second has passed, no hour");
/// assert_eq!(guard.steps(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct WallGuard {
    /// The last reading and what was believed then.
    last: Reading,
    believed_ns: i128,
    /// A step that is not believed yet: when it was first seen, on the monotonic clock.
    doubted_since_ns: Option<u64>,
    steps: u64,
}

impl WallGuard {
    /// Believes the first reading: there is nothing to hold it against.
    #[must_use]
    pub fn new(first: Reading) -> Self {
        Self { last: first, believed_ns: first.wall_ns, doubted_since_ns: None, steps: 0 }
    }

    /// The wall time to believe at this reading, nanoseconds since the Unix epoch.
    pub fn observe(&mut self, reading: Reading) -> i128 {
        let slept_ns = i128::from(reading.boot_ns.saturating_sub(self.last.boot_ns));
        let ran_ns = i128::from(reading.mono_ns.saturating_sub(self.last.mono_ns));
        let passed_ns = slept_ns.max(ran_ns);
        let shown_step_ns = reading.wall_ns - (self.last.wall_ns + passed_ns);
        if shown_step_ns.unsigned_abs() > STEP_NOTICED.as_nanos() {
            self.steps += 1;
        }
        let expected_ns = self.believed_ns + passed_ns;
        let ahead_ns = reading.wall_ns - expected_ns;
        let guard_ns = CLOCK_GUARD.as_nanos() as i128;
        self.believed_ns = if ahead_ns <= guard_ns {
            self.doubted_since_ns = None;
            reading.wall_ns
        } else {
            let stepped_again = shown_step_ns.unsigned_abs() > STEP_NOTICED.as_nanos();
            let since_ns = match self.doubted_since_ns {
                Some(since_ns) if !stepped_again => since_ns,
                _ => reading.mono_ns,
            };
            self.doubted_since_ns = Some(since_ns);
            let stood = Duration::from_nanos(reading.mono_ns.saturating_sub(since_ns)) >= GUARD_STANDS;
            if stood {
                self.doubted_since_ns = None;
                reading.wall_ns
            } else {
                expected_ns
            }
        };
        self.last = reading;
        self.believed_ns
    }

    /// How many steps of the wall clock have been noticed.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// What the wall clock shows beyond what is believed, nanoseconds; not 0 only while a step is doubted.
    #[must_use]
    pub fn offset_ns(&self) -> i128 {
        self.last.wall_ns - self.believed_ns
    }
}

/// Splits nanoseconds since the epoch into the millisecond and the rest, as [`Now`](tickwheel_engine::Now) wants them. Time
/// before 1970 is 1970.
pub(crate) fn split(wall_ns: i128) -> (Timestamp, u32) {
    let wall_ns = wall_ns.max(0);
    let ms = i64::try_from(wall_ns / 1_000_000).unwrap_or(i64::MAX);
    let sub_ns = u32::try_from(wall_ns % 1_000_000).unwrap_or(0);
    (Timestamp::from_ms(ms).unwrap_or(Timestamp::MAX), sub_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i128 = 1_000_000_000;

    fn at(mono_s: u64, boot_s: u64, wall_s: i128) -> Reading {
        let ns = |s: u64| s * 1_000_000_000;
        Reading { mono_ns: ns(mono_s), boot_ns: ns(boot_s), wall_ns: wall_s * SECOND }
    }

    #[test]
    fn ordinary_time_is_believed() {
        let mut guard = WallGuard::new(at(0, 0, 1_000));
        for s in 1..200 {
            assert_eq!(guard.observe(at(s, s, 1_000 + i128::from(s))), (1_000 + i128::from(s)) * SECOND);
        }
        assert_eq!((guard.steps(), guard.offset_ns()), (0, 0));
    }

    #[test]
    fn a_step_back_is_followed_at_once() {
        let mut guard = WallGuard::new(at(0, 0, 10_000));
        assert_eq!(guard.observe(at(1, 1, 6_400)), 6_400 * SECOND);
        assert_eq!(guard.steps(), 1);
        // Coming back by more than the guard is a step forward and has to stand.
        assert_eq!(guard.observe(at(2, 2, 10_002)), 6_401 * SECOND);
        assert_eq!(guard.observe(at(62, 62, 10_062)), 10_062 * SECOND);
    }

    #[test]
    fn a_small_step_forward_is_believed_and_counted() {
        let mut guard = WallGuard::new(at(0, 0, 0));
        assert_eq!(guard.observe(at(1, 1, 301)), 301 * SECOND);
        assert_eq!(guard.steps(), 1);
    }

    #[test]
    fn a_great_step_forward_has_to_stand_for_a_minute() {
        let mut guard = WallGuard::new(at(0, 0, 0));
        assert_eq!(guard.observe(at(1, 1, 302)), SECOND, "5 min and 1 s ahead");
        assert_eq!(guard.offset_ns(), 301 * SECOND);
        assert_eq!(guard.observe(at(60, 60, 361)), 60 * SECOND, "59 s later");
        assert_eq!(guard.observe(at(61, 61, 362)), 362 * SECOND, "60 s later");
        assert_eq!((guard.steps(), guard.offset_ns()), (1, 0));
    }

    #[test]
    fn a_step_that_goes_on_stepping_is_not_believed() {
        let mut guard = WallGuard::new(at(0, 0, 0));
        for round in 1..=10_u64 {
            let wall = i128::from(round) * 1_000_000;
            assert_eq!(guard.observe(at(round * 30, round * 30, wall)), i128::from(round) * 30 * SECOND);
        }
    }

    #[test]
    fn a_doubted_step_that_goes_away_leaves_nothing() {
        let mut guard = WallGuard::new(at(0, 0, 0));
        guard.observe(at(1, 1, 3_601));
        assert_eq!(guard.observe(at(2, 2, 2)), 2 * SECOND);
        assert_eq!(guard.offset_ns(), 0);
    }

    #[test]
    fn a_suspend_is_no_step() {
        let mut guard = WallGuard::new(at(0, 0, 0));
        assert_eq!(guard.observe(at(1, 7_200, 7_200)), 7_200 * SECOND);
        assert_eq!(guard.steps(), 0);
    }

    #[test]
    fn splitting_never_rounds_up() {
        assert_eq!(split(1_999_999).0.as_ms(), 1);
        assert_eq!(split(1_999_999).1, 999_999);
        assert_eq!(split(-5), (Timestamp::EPOCH, 0));
    }
}
