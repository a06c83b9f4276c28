//! Instants and clock values. The engine reads no clock: its callers pass in the values, and the engine only compares and adds them.

use core::fmt;

/// A wall instant: milliseconds since the Unix epoch, UTC, never negative.
///
/// Tasks are due at a `Timestamp`. Restarts and clock steps do not change the due time of a task, because the owner of the task relies on
/// it.
///
/// ```
/// use tickwheel_engine::Timestamp;
/// let midnight = Timestamp::from_ms(1_506_902_400_000).unwrap();
/// assert_eq!(midnight.plus_ms(250).unwrap().as_ms(), 1_506_902_400_250);
/// assert!(Timestamp::from_ms(-1).is_none(), "nothing is due before 1970");
/// ```
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The Unix epoch. No task is due earlier.
    pub const EPOCH: Self = Self(0);
    /// The last possible instant, about 292 million years after the Unix epoch.
    pub const MAX: Self = Self(i64::MAX);

    /// Returns the instant `ms` milliseconds after the Unix epoch; `None` if `ms` is negative.
    #[must_use]
    pub const fn from_ms(ms: i64) -> Option<Self> {
        if ms < 0 { None } else { Some(Self(ms)) }
    }

    /// Returns the milliseconds since the Unix epoch.
    #[must_use]
    pub const fn as_ms(self) -> i64 {
        self.0
    }

    /// Returns the milliseconds since the Unix epoch as a wheel tick. The conversion is exact, because a `Timestamp` is never negative.
    #[must_use]
    pub const fn as_tick(self) -> u64 {
        self.0.unsigned_abs()
    }

    /// Returns the instant `ms` milliseconds later; `None` if that is after [`Timestamp::MAX`].
    #[must_use]
    pub fn plus_ms(self, ms: u64) -> Option<Self> {
        self.0.checked_add_unsigned(ms).map(Self)
    }

    /// Returns the instant `ms` milliseconds later, at most [`Timestamp::MAX`].
    #[must_use]
    pub fn saturating_plus_ms(self, ms: u64) -> Self {
        self.plus_ms(ms).unwrap_or(Self::MAX)
    }

    /// Returns the instant as text by RFC 3339, in UTC with three decimals, such as `2030-03-12T06:30:00.250Z`. Years after 9999 have more
    /// digits than RFC 3339 allows.
    #[must_use]
    pub fn to_utc(self) -> String {
        let (days, ms) = (self.0 / 86_400_000, self.0 % 86_400_000);
        let (year, month, day) = civil(days);
        let (h, m, s) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
        format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{:03}Z", ms % 1_000)
    }

    /// Returns the milliseconds from `earlier` to `self`; 0 if `earlier` is later.
    #[must_use]
    pub fn ms_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

/// Returns year, month and day of a day that is counted from 1970-01-01. The computation counts years from 1 March, so that a leap day
/// comes last, and in eras of 400 years, which all have the same length (Howard Hinnant, "chrono-compatible low-level date algorithms").
fn civil(days: i64) -> (i64, i64, i64) {
    const ERA_DAYS: i64 = 146_097;
    let days = days + 719_468;
    let (era, day) = (days / ERA_DAYS, days % ERA_DAYS);
    let year = (day - day / 1_460 + day / 36_524 - day / (ERA_DAYS - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// Both clocks at one moment. The caller of the engine reads the clocks. The engine only compares and adds the values.
///
/// `mono_ns` never goes back while the process runs, and leases end by this clock. `wall` is the believed wall clock. `wall` may go back,
/// and decides which tasks are due. `wall_sub_ns` is the part of a millisecond (ns) that rounding cut off from `wall`. With this part, a
/// deadline that is counted from now can be rounded up.
///
/// The wall clock may be known as an interval only, because it is the clock of a database whose answers take time. `wall` is the lower end:
/// nothing is taken for due that is not due. `wall_width_ns` is the width of the interval. What counts from now, such as a delay, counts from
/// the upper end, so that it is never over too early.
///
/// After a start that found the wall clock far ahead of what was written down, nothing tells a clock that was set wrong from a machine that was
/// off. Until the clock has stood for a while, `held_ms` is above 0, and [`falls_due`](Self::falls_due) is behind `wall`. What undoes itself
/// (a delay that counts from now, the end of a lease) goes by `wall`. What cannot be undone (a task that falls due, expires or is forgotten, a
/// schedule, the end of a pause) goes by `falls_due`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Now {
    /// Nanoseconds on the monotonic clock, from an origin that the caller chooses.
    pub mono_ns: u64,
    /// The wall instant, rounded down to the millisecond.
    pub wall: Timestamp,
    /// Nanoseconds of the wall clock beyond `wall`, below 1,000,000.
    pub wall_sub_ns: u32,
    /// By how much more the wall clock may show (ns); 0: it is known exactly.
    pub wall_width_ns: u64,
    /// By how much the instant by which tasks fall due is behind `wall` (ms); 0: it is `wall`.
    pub held_ms: u64,
}

impl Now {
    /// Returns a moment at which both clocks show this millisecond.
    #[cfg(test)]
    pub(crate) fn at_ms(ms: u64) -> Self {
        let wall = Timestamp::EPOCH.saturating_plus_ms(ms);
        Self { mono_ns: ms * 1_000_000, wall, wall_sub_ns: 0, wall_width_ns: 0, held_ms: 0 }
    }

    /// Returns the monotonic clock in milliseconds, rounded down, so that nothing is due before its millisecond has begun.
    #[must_use]
    pub const fn mono_tick(self) -> u64 {
        self.mono_ns / 1_000_000
    }

    /// Returns the instant by which tasks fall due, expire and are forgotten now: what was due by it is due in any case.
    #[must_use]
    pub fn falls_due(self) -> Timestamp {
        let by_ms = self.wall.as_ms().saturating_sub_unsigned(self.held_ms);
        Timestamp::from_ms(by_ms).unwrap_or(Timestamp::EPOCH)
    }

    /// Returns this moment as schedules see it: the wall clock shows [`falls_due`](Self::falls_due), so that no instant after it has come or was
    /// missed.
    #[must_use]
    pub(crate) fn unheld(self) -> Self {
        Self { wall: self.falls_due(), held_ms: 0, ..self }
    }

    /// Returns the latest instant that the wall clock may show now, rounded down to the millisecond.
    #[must_use]
    pub fn latest(self) -> Timestamp {
        let ahead_ns = self.wall_width_ns.saturating_add(self.wall_sub_ns.into());
        self.wall.saturating_plus_ms(ahead_ns / 1_000_000)
    }

    /// Returns the first millisecond of the wall clock that is at least `delay_ms` after this moment, whatever the wall clock shows now within
    /// its interval; `None` if that is after [`Timestamp::MAX`].
    #[must_use]
    pub fn due_after(self, delay_ms: u64) -> Option<Timestamp> {
        let ahead_ns = self.wall_width_ns.saturating_add(self.wall_sub_ns.into());
        self.wall.plus_ms(delay_ms.checked_add(ahead_ns.div_ceil(1_000_000))?)
    }

    /// Returns the first millisecond of the believed wall clock that is at least `delay_ms` after this moment; `None` if that is after
    /// [`Timestamp::MAX`]. The wall clock shows it no later than that.
    #[must_use]
    pub(crate) fn believed_after(self, delay_ms: u64) -> Option<Timestamp> {
        Self { wall_width_ns: 0, ..self }.due_after(delay_ms)
    }

    /// Returns when a lease ends that was to end at `until`, and of which no more than `left_ms` is left. If the wall clock was set back, `until` is
    /// farther away than that.
    #[must_use]
    pub(crate) fn ends_within(self, until: Timestamp, left_ms: u64) -> Timestamp {
        // The end of a lease counts from the lower end of the wall clock, see `mono_deadline`.
        self.believed_after(left_ms).map_or(until, |latest| until.min(latest))
    }

    /// Returns the first millisecond of the monotonic clock that is not before the wall clock shows `at`, if both clocks run at the same
    /// speed from this moment on, and the wall clock shows no more than its lower end. For an instant in the past, returns this moment, rounded up. The result is at most `u64::MAX`.
    ///
    /// The two clocks are at different parts of their milliseconds. If the end of a lease were rounded up on each clock by itself, the two
    /// ends could differ by up to a millisecond, in either direction. So the monotonic deadline is computed from the very wall-clock
    /// instant that the worker is told.
    #[must_use]
    pub fn mono_deadline(self, at: Timestamp) -> u64 {
        let wall_ns = i128::from(self.wall.as_ms()) * 1_000_000 + i128::from(self.wall_sub_ns);
        let left_ns = (i128::from(at.as_ms()) * 1_000_000 - wall_ns).max(0).unsigned_abs();
        let deadline_ns = u128::from(self.mono_ns) + left_ns;
        u64::try_from(deadline_ns.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

/// The number of one change of the shard. The number rises by one with each change, also across restarts. Of two records of one task the
/// one with the higher `Seq` is right.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Seq(pub u64);

impl Seq {
    /// The number before the first change.
    pub const ZERO: Self = Self(0);

    /// Returns the next number.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of one ownership of a shard. Each `Acquire` gets a higher number. A store refuses commits of an older epoch.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Epoch(pub u32);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(mono_ns: u64, wall_ms: i64, wall_sub_ns: u32) -> Now {
        Now {
            mono_ns,
            wall: Timestamp::from_ms(wall_ms).expect("not negative"),
            wall_sub_ns,
            wall_width_ns: 0,
            held_ms: 0,
        }
    }

    #[test]
    fn a_delay_counts_from_the_upper_end_of_the_wall_clock() {
        let wide = |sub_ns, wall_width_ns| Now { wall_width_ns, ..now(0, 100, sub_ns) };
        for (sub_ns, width_ns, due_ms, latest_ms) in [
            (0, 0, 130, 100),
            (0, 1, 131, 100),
            (999_999, 0, 131, 100),
            (999_999, 1, 131, 101),
            (999_999, 2, 132, 101),
            (0, 800_000_000, 930, 900),
        ] {
            let now = wide(sub_ns, width_ns);
            assert_eq!(now.due_after(30).map(Timestamp::as_ms), Some(due_ms), "{now:?}");
            assert_eq!(now.latest().as_ms(), latest_ms, "{now:?}");
            assert_eq!(now.believed_after(30).map(Timestamp::as_ms), Some(130 + i64::from(sub_ns > 0)));
        }
        assert_eq!(wide(0, u64::MAX).due_after(u64::MAX), None);
        // A lease lasts until the lower end has reached what the worker was told. So it is longer by the width.
        let begin = wide(0, 800_000_000);
        assert_eq!(begin.mono_deadline(begin.due_after(30).expect("in range")), 830);
    }

    #[test]
    fn a_delay_counts_from_the_exact_moment_and_rounds_up() {
        assert_eq!(now(0, 100, 0).due_after(30).map(Timestamp::as_ms), Some(130));
        assert_eq!(now(0, 100, 1).due_after(30).map(Timestamp::as_ms), Some(131));
        assert_eq!(now(0, 100, 999_999).due_after(0).map(Timestamp::as_ms), Some(101));
        assert_eq!(now(0, i64::MAX, 0).due_after(1), None);
        assert_eq!(now(0, 1, 1).due_after(u64::MAX), None);
    }

    #[test]
    fn instants_are_written_by_the_calendar() {
        let text = |ms| Timestamp::from_ms(ms).expect("not negative").to_utc();
        assert_eq!(text(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(text(951_782_399_999), "2000-02-28T23:59:59.999Z");
        assert_eq!(text(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(text(1_506_943_593_250), "2017-10-02T11:26:33.250Z");
        assert_eq!(text(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
        assert_eq!(text(253_402_300_799_999), "9999-12-31T23:59:59.999Z");
        assert_eq!(text(i64::MAX), "292278994-08-17T07:12:55.807Z");
    }

    #[test]
    fn a_deadline_is_not_before_the_wall_clock_shows_the_instant() {
        let at = |ms| Timestamp::from_ms(ms).expect("not negative");
        assert_eq!(now(5_000_000, 7, 0).mono_deadline(at(17)), 15);
        assert_eq!(now(5_000_001, 7, 0).mono_deadline(at(17)), 16);
        // The wall clock is already 1 ns or 2 ns into its millisecond, so less time is left.
        assert_eq!(now(5_000_001, 7, 1).mono_deadline(at(17)), 15);
        assert_eq!(now(5_000_001, 7, 2).mono_deadline(at(17)), 15);
        assert_eq!(now(5_000_002, 7, 1).mono_deadline(at(17)), 16);
        // For an instant that has passed, the deadline is the next whole millisecond.
        assert_eq!(now(5_000_001, 7, 0).mono_deadline(at(3)), 6);
        assert_eq!(
            now(u64::MAX, 0, 0).mono_deadline(Timestamp::MAX),
            (u64::MAX / 1_000_000) + 1 + i64::MAX as u64
        );
        assert_eq!(now(5_999_999, 0, 0).mono_tick(), 5);
    }

    /// Checks a bug that was mended: a lease could end before the instant that its worker was told. The end by the wall clock and the end
    /// by the monotonic clock were each rounded up separately. If the wall clock was further into its millisecond than the monotonic clock,
    /// the lease ended too early.
    #[test]
    fn what_is_kept_is_never_shorter_than_what_is_told() {
        let parts = [0, 1, 2, 460_000, 499_999, 500_000, 540_000, 999_998, 999_999];
        for mono_sub_ns in parts {
            for wall_sub_ns in parts {
                for length_ms in [0, 1, 2, 30_000] {
                    let begin = now(9_000_000 + mono_sub_ns, 40, wall_sub_ns as u32);
                    let told = begin.due_after(length_ms).expect("time goes on");
                    let kept = begin.mono_deadline(told);
                    // Both clocks run at the same speed until the lease is over. `shown_ns` is what the wall clock shows then.
                    let passed_ns = kept * 1_000_000 - begin.mono_ns;
                    let shown_ns = 40_000_000 + wall_sub_ns + passed_ns;
                    let told_ns = told.as_tick() * 1_000_000;
                    assert!(shown_ns >= told_ns, "{begin:?}: told {told_ns} ns, over at {shown_ns} ns");
                    assert!(shown_ns < told_ns + 1_000_000, "{begin:?}: no longer than it takes");
                    assert!(
                        passed_ns >= length_ms * 1_000_000,
                        "{begin:?}: never shorter than was asked for"
                    );
                }
            }
        }
    }
}
