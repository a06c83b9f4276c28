//! [`Missed`]: what happens to runs that did not start in time.

use std::num::NonZeroU64;
use std::time::Duration;

use crate::Monotonic;

/// A run that begins up to this long after its tick counts as on time, and the grid does not change, unless the next run is due as well. The
/// value is tokio's.
const TOLERANCE: Duration = Duration::from_millis(5);

/// The policy for missed runs of a periodic task, or missed ticks of an interval. A run is missed if a body took longer than its period,
/// if no caller awaited the next tick in time, or if the process stood still.
///
/// A run is missed if it begins more than 5 ms after its tick, or when the run after it is due as well. Example: the period is 300 ms, and a stall begins with the run of 300 ms and
/// ends at 950 ms. All values in the table are in ms:
///
/// | policy | the run of 600 begins at | the next runs begin at |
/// |---|---|---|
/// | `Burst` | 950 | 900 (at once), 1200, 1500 |
/// | `Delay` | 950 | 1250, 1550, 1850 |
/// | `Skip` | 950 | 1200, 1500, 1800 |
///
/// The three policies, and their names, are tokio's.
///
/// The timer needs a separate turn for each run. With a clock that is moved by hand, a burst therefore needs one step of the clock for each
/// run, even if the step is zero; [`advance_through`](crate::ManualClock::advance_through) makes these steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Missed {
    /// All missed runs take place, one directly after the other, until the task has caught up. There may be many after a long stall. There
    /// may also be many if the task begins in the past, or if [`reschedule_at`](crate::Timeout::reschedule_at) moves it there: its grid
    /// begins at that instant, and all runs from there to now are missed and take place at once.
    Burst,
    /// One of the missed runs takes place, and a new grid begins at that run.
    Delay,
    /// One of the missed runs takes place, and the next run is at the next instant of the old grid.
    #[default]
    Skip,
}

impl Missed {
    /// The instant of the next run, after the run that was scheduled at `scheduled` and began at `started`.
    pub(crate) fn next(
        self,
        scheduled: Monotonic,
        started: Monotonic,
        period: Duration,
        tick_nanos: NonZeroU64,
    ) -> Monotonic {
        let on_grid = scheduled.saturating_add(period);
        let tick_of = |deadline: Monotonic| Monotonic::from_tick(deadline.ceil_ticks(tick_nanos), tick_nanos);
        // With a period below the tolerance, further runs may have been missed though this run is on time.
        let next_is_due = on_grid <= started && tick_of(on_grid).has_come(started);
        if !next_is_due && started.saturating_since(tick_of(scheduled)) <= TOLERANCE {
            return on_grid;
        }
        match self {
            Self::Burst => on_grid,
            Self::Delay => started.saturating_add(period),
            Self::Skip => {
                let late = started.saturating_since(scheduled).as_nanos();
                // The values fit into 64 bits: the remainder is at most `late`, which is a difference of two readings.
                let over = u64::try_from(late % period.as_nanos().max(1)).unwrap_or(0);
                started.saturating_add(period.saturating_sub(Duration::from_nanos(over)))
            }
        }
    }
}

#[cfg(all(test, not(tickwheel_shuttle)))]
mod tests {
    use super::*;

    fn next(missed: Missed, scheduled: u64, started: u64) -> u64 {
        let ms = |ms: u64| Monotonic::from_nanos(ms * 1_000_000);
        let tick = NonZeroU64::new(1_000_000).expect("not 0");
        missed.next(ms(scheduled), ms(started), Duration::from_millis(300), tick).as_nanos() / 1_000_000
    }

    #[test]
    fn pt8_up_to_5_ms_late_is_on_time() {
        for missed in [Missed::Burst, Missed::Delay, Missed::Skip] {
            for started in 600..=605 {
                assert_eq!(next(missed, 600, started), 900, "{missed:?}, begun at {started}");
            }
        }
        assert_eq!(next(Missed::Burst, 600, 606), 900);
        assert_eq!(next(Missed::Delay, 600, 606), 906);
        assert_eq!(next(Missed::Skip, 600, 606), 900);
    }

    /// The story: a probe with a period of 1 ms, and a stall of 4 ms. `Skip` made up for all of the missed runs, as `Burst` does.
    #[test]
    fn pt8_with_a_short_period_the_policy_decides_within_the_5_ms() {
        let tick = NonZeroU64::new(1_000_000).expect("not 0");
        let us = |us: u64| Monotonic::from_nanos(us * 1_000);
        let next = |missed: Missed, period, scheduled, started| {
            let period = Duration::from_micros(period);
            missed.next(us(scheduled), us(started), period, tick).as_nanos() / 1_000
        };
        // Period, scheduled, started; the next run by each policy.
        for (period, scheduled, started, burst, delay, skip) in [
            (1_000, 1_000, 1_999, 2_000, 2_000, 2_000),
            (1_000, 1_000, 2_000, 2_000, 3_000, 3_000),
            (1_000, 1_000, 5_000, 2_000, 6_000, 6_000),
            (1_000, 1_020, 2_050, 2_020, 2_020, 2_020),
            (1_000, 1_020, 3_050, 2_020, 4_050, 4_020),
            (1_500, 1_500, 2_999, 3_000, 3_000, 3_000),
            (1_500, 1_500, 3_000, 3_000, 4_500, 4_500),
            (4_000, 4_000, 7_999, 8_000, 8_000, 8_000),
            (4_000, 4_000, 8_000, 8_000, 12_000, 12_000),
        ] {
            let case = format!("{period}, {scheduled}, {started}");
            assert_eq!(next(Missed::Burst, period, scheduled, started), burst, "{case}");
            assert_eq!(next(Missed::Delay, period, scheduled, started), delay, "{case}");
            assert_eq!(next(Missed::Skip, period, scheduled, started), skip, "{case}");
        }
    }

    /// The example in the documentation of [`Missed`], and cases at the edges of the grid.
    #[test]
    fn a_stall_is_answered_by_the_policy() {
        assert_eq!(next(Missed::Burst, 600, 950), 900);
        assert_eq!(next(Missed::Delay, 600, 950), 1_250);
        for (started, expected) in [(899, 900), (900, 1_200), (901, 1_200), (950, 1_200), (1_200, 1_500)] {
            assert_eq!(next(Missed::Skip, 600, started), expected, "begun at {started}");
        }
    }

    #[test]
    fn the_end_of_time_is_not_the_past() {
        let tick = NonZeroU64::new(1_000_000).expect("not 0");
        for missed in [Missed::Burst, Missed::Delay, Missed::Skip] {
            let far = missed.next(Monotonic::ZERO, Monotonic::from_nanos(10_000_000), Duration::MAX, tick);
            assert_eq!(far, Monotonic::MAX);
        }
    }
}
