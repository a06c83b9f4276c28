//! [`DatabaseClock`]: the interval in which the clock of the database is.

use tickwheel_store::WallSpan;

/// The largest drift between the clocks of two machines that is allowed for: 200 parts in a million.
const DRIFT_PER_MILLION: u64 = 200;
/// The database tells its clock in whole microseconds, rounded down (ns).
const ROUNDING_NS: i128 = 1_000;

/// An answer of the database that tells its clock.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ClockAnswer {
    /// The wall clock of the database (ns since the Unix epoch). The database read it at an unknown moment between the next two.
    pub wall_ns: i128,
    /// The boot-time clock of this machine before the question was sent (ns).
    pub sent_ns: u64,
    /// The boot-time clock of this machine after the answer had arrived (ns).
    pub arrived_ns: u64,
}

/// An interval that contains the clock of the database, made of its answers and of the boot-time clock of this machine.
///
/// The database read its clock after the question was sent and before the answer arrived. So at the arrival, its clock shows at least the
/// instant of the answer, and at most that instant plus the round trip. From then on both ends move with the boot-time clock: the lower end
/// less the drift, and the upper end plus the drift. The clock of the database is in the interval of each answer since it was set last. So
/// the clock is in the intersection of these intervals. One quick answer makes the intersection narrow.
///
/// If an answer excludes what was known before, the clock of the database was set, and the interval begins anew with that answer. However
/// slow an answer is, it excludes nothing by its slowness alone.
#[derive(Clone, Debug, Default)]
pub struct DatabaseClock {
    /// The interval, and the instant at which it was right (boot-time clock, ns); `None`: there was no answer yet.
    known: Option<(WallSpan, u64)>,
}

impl DatabaseClock {
    /// Takes in an answer.
    pub fn note(&mut self, answer: ClockAnswer) {
        let told = span_of(answer);
        let known = self.span(answer.arrived_ns).and_then(|known| known.intersection(told));
        // Without an intersection, the clock was set. A clock that was set back is followed at once: tasks then wait longer, which does no
        // harm. The guard of the wall clock judges a step forward.
        self.known = Some((known.unwrap_or(told), answer.arrived_ns));
    }

    /// Begins anew with an answer of another machine, whose clock says nothing about the clock of the machine before.
    pub fn begin(&mut self, answer: ClockAnswer) {
        self.known = Some((span_of(answer), answer.arrived_ns));
    }

    /// Returns the interval at an instant of the boot-time clock (ns); `None`: there was no answer yet.
    #[must_use]
    pub fn span(&self, now_ns: u64) -> Option<WallSpan> {
        let (span, at_ns) = self.known?;
        let passed_ns = now_ns.saturating_sub(at_ns);
        let (passed, drift) = (i128::from(passed_ns), drift_ns(passed_ns));
        Some(WallSpan { from_ns: span.from_ns + passed - drift, to_ns: span.to_ns + passed + drift })
    }
}

/// Returns the interval in which the clock of the database is when the answer arrives.
fn span_of(answer: ClockAnswer) -> WallSpan {
    let ClockAnswer { wall_ns, sent_ns, arrived_ns } = answer;
    let trip_ns = arrived_ns.saturating_sub(sent_ns);
    let to_ns = wall_ns + i128::from(trip_ns) + drift_ns(trip_ns);
    WallSpan { from_ns: wall_ns, to_ns: to_ns + ROUNDING_NS }
}

/// Returns how far two clocks may drift apart in this time (ns), rounded up.
fn drift_ns(passed_ns: u64) -> i128 {
    i128::from(
        passed_ns / 1_000_000 * DRIFT_PER_MILLION
            + (passed_ns % 1_000_000 * DRIFT_PER_MILLION).div_ceil(1_000_000),
    )
}

#[cfg(test)]
mod tests;
