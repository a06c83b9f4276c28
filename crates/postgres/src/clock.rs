//! [`DatabaseClock`]: a lower bound of the clock of the database.

/// The largest drift between the clocks of two machines that is allowed for: 200 parts in a million.
const DRIFT_PER_MILLION: i128 = 200;
/// A clock of the database that is this much behind the bound was set back (ns). A smaller difference is drift or a slow answer.
const SET_BACK_NS: i128 = 500_000_000;

/// A bound below the clock of the database, made of its answers and of the boot-time clock of this machine.
///
/// The database read its clock before its answer arrived. So its clock shows at least that instant plus the time since the arrival, less the
/// drift. Each answer gives such a bound, and the highest bound counts. The bound is never ahead of the database, so no task is early by
/// the database's clock. It is behind by the time that the answer was on its way.
#[derive(Clone, Debug, Default)]
pub struct DatabaseClock {
    /// The wall clock of the database (ns since the Unix epoch) in an answer, and the arrival of the answer (boot-time clock, ns).
    best: Option<(i128, u64)>,
}

impl DatabaseClock {
    /// Notes an answer: the clock of the database, and the boot-time clock after the answer had arrived.
    pub fn note(&mut self, wall_ns: i128, arrived_ns: u64) {
        let is_better = match self.wall_ns(arrived_ns) {
            None => true,
            // A clock that was set back is followed. Tasks then wait longer, which does no harm.
            Some(bound) => wall_ns >= bound || bound - wall_ns > SET_BACK_NS,
        };
        if is_better {
            self.best = Some((wall_ns, arrived_ns));
        }
    }

    /// Begins anew with an answer of another machine, whose clock may be behind.
    pub fn begin(&mut self, wall_ns: i128, arrived_ns: u64) {
        self.best = Some((wall_ns, arrived_ns));
    }

    /// Returns the bound at an instant of the boot-time clock (ns since the Unix epoch); `None`: there was no answer yet.
    #[must_use]
    pub fn wall_ns(&self, now_ns: u64) -> Option<i128> {
        let (wall_ns, arrived_ns) = self.best?;
        let passed = i128::from(now_ns.saturating_sub(arrived_ns));
        Some(wall_ns + passed - passed * DRIFT_PER_MILLION / 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(seconds: i128) -> i128 {
        seconds * i128::from(SECOND)
    }

    #[test]
    fn the_highest_bound_counts_and_drift_is_taken_off() {
        let mut clock = DatabaseClock::default();
        assert_eq!(clock.wall_ns(0), None);
        clock.note(at(1_000), 5 * SECOND);
        assert_eq!(clock.wall_ns(5 * SECOND), Some(at(1_000)));
        assert_eq!(clock.wall_ns(15 * SECOND), Some(at(1_010) - 2_000_000), "200 parts in a million of 10 s");
        // An answer that was on its way for 100 ms gives a lower bound, which does not count.
        clock.note(at(1_010) - 100_000_000, 15 * SECOND);
        assert_eq!(clock.wall_ns(15 * SECOND), Some(at(1_010) - 2_000_000));
        clock.note(at(1_010) - 1_000_000, 15 * SECOND);
        assert_eq!(clock.wall_ns(15 * SECOND), Some(at(1_010) - 1_000_000));
    }

    #[test]
    fn the_clock_of_another_machine_counts_although_it_is_a_little_behind() {
        let mut clock = DatabaseClock::default();
        clock.note(at(1_000), 5 * SECOND);
        clock.begin(at(1_001) - 400_000_000, 6 * SECOND);
        assert_eq!(clock.wall_ns(6 * SECOND), Some(at(1_001) - 400_000_000));
    }

    #[test]
    fn a_clock_that_was_set_back_is_followed() {
        let mut clock = DatabaseClock::default();
        clock.note(at(1_000), 5 * SECOND);
        clock.note(at(400), 6 * SECOND);
        assert_eq!(clock.wall_ns(6 * SECOND), Some(at(400)));
        clock.note(at(1_002), 7 * SECOND);
        assert_eq!(clock.wall_ns(7 * SECOND), Some(at(1_002)), "the guard of the wall clock judges the step");
    }
}
