//! [`WallGuard`]: decides which wall time is believed.

mod hold;
mod lines;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use tickwheel_engine::Timestamp;
use tickwheel_store::WallSpan;

use self::hold::{Hold, HoldEnd};
use self::lines::Lines;
use crate::notice::ClockChange;

/// A step forward of more than this is not believed at once, unless the boot-time clock moved as far, or the step is a return (see
/// [`RETURN_MAX`]).
pub const CLOCK_GUARD: Duration = Duration::from_secs(5 * 60);
/// How long the wall clock must make no further step before a doubted step is believed.
pub const GUARD_STANDS: Duration = Duration::from_secs(60);
/// If a wall clock leaves an offset at which it was believed and returns to it, the return is believed at once. The guard remembers the
/// offset for as long as the clock was believed at it, and for this duration at most.
pub const RETURN_MAX: Duration = Duration::from_secs(60 * 60);
/// The largest number of changes that are kept until they are taken. If the clock is set more often meanwhile, the oldest changes are lost.
const CHANGES_MAX: usize = 16;
/// A difference between the clocks up to this is slewing or rounding. A larger difference is a step.
const STEP_NOTICED: Duration = Duration::from_millis(500);

/// A reading of three clocks, as close together as possible (ns). `wall_ns` is counted from the Unix epoch.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The monotonic clock. It stands still while the machine is suspended.
    pub mono_ns: u64,
    /// The boot-time clock. It goes on while the machine is suspended.
    pub boot_ns: u64,
    /// The time that the wall clock shows at least.
    pub wall_ns: i128,
    /// By how much more the wall clock may show; 0: `wall_ns` is exact. It is above 0 for the clock of a database, whose answers take time.
    pub width_ns: u64,
}

/// The wall clock as an earlier process has written it down (ns since the Unix epoch).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Written {
    /// Nothing: the data is new.
    Nothing,
    /// The wall time that was believed on the boot that still runs, and the boot-time clock then.
    SameBoot {
        /// The boot-time clock (ns).
        boot_ns: u64,
        /// The wall time that was believed.
        wall_ns: i128,
        /// By how much what fell due was behind `wall_ns`, because a start held it back.
        held_ns: u64,
    },
    /// The last wall time of an earlier boot, or of another machine, by which tasks fell due. Nothing tells how long ago that was.
    OtherBoot {
        /// The wall time that was believed.
        wall_ns: i128,
    },
}

impl Reading {
    fn span(self) -> WallSpan {
        WallSpan { from_ns: self.wall_ns, to_ns: self.wall_ns + i128::from(self.width_ns) }
    }
}

/// Decides which wall time to believe.
///
/// A wall clock that jumps ahead would make everything due at once, and nothing could undo that. So a step forward of more than five
/// minutes is believed in three cases only: the boot-time clock has moved as far (then the computer slept); no further step came for a
/// minute; or the step is the return from a step back. Until then the believed wall clock goes on at the pace of the boot-time clock. A
/// step back is followed at once: tasks then wait longer, which does no harm, and `due_at` is an instant of the wall clock.
///
/// A step back may be a glitch: the clock shows an hour less for a second and returns. The return is a step forward of an hour, but
/// afterwards the clock shows the time that it would show without the glitch. If that time is right, nothing becomes due too early. So the
/// return is believed at once. The guard remembers the offset before the glitch for as long as the clock was believed at that offset, and
/// for an hour at most ([`RETURN_MAX`]). So a clock that was wrong when the computer started, and was set right after a minute, may return
/// to the wrong time for a minute and no longer.
///
/// A clock that is known as an interval only has stepped once its interval has nothing in common with the one that was expected. The guard
/// believes the lower end, which moves ahead when the interval becomes narrow. That is no step.
///
/// A start on another boot may find the clock far ahead of what was written down. Then nothing tells a wrong clock from a machine that was off.
/// The guard believes such a clock, but holds back what falls due ([`held_ns`](Self::held_ns)) until the clock has stood for a minute.
///
/// ```
/// use tickwheel_queue::wall::{Reading, WallGuard};
/// let second = 1_000_000_000;
/// let at = |s: u64, wall_s: i128| Reading { mono_ns: s * second, boot_ns: s * second, wall_ns: wall_s * 1_000_000_000, width_ns: 0 };
/// let mut guard = WallGuard::new(at(0, 7_200));
/// assert_eq!(guard.observe(at(10, 7_210 + 3_600)), 7_210 * 1_000_000_000, "ten seconds have passed, no hour");
/// assert_eq!(guard.observe(at(11, 7_211)), 7_211 * 1_000_000_000);
/// // A glitch: for a second, the clock shows an hour less.
/// assert_eq!(guard.observe(at(12, 7_212 - 3_600)), 3_612 * 1_000_000_000);
/// assert_eq!(guard.observe(at(13, 7_213)), 7_213 * 1_000_000_000);
/// assert_eq!(guard.steps(), 4, "all of them are noticed");
/// ```
#[derive(Clone, Debug)]
pub struct WallGuard {
    /// The last reading. `believed_ns` is the wall time that was believed at this reading (ns since the Unix epoch).
    last: Reading,
    believed_ns: i128,
    /// By how much the wall clock may be ahead of `believed_ns`, if no step is doubted (ns).
    width_ns: u64,
    /// The time since the first reading, by the boot-time clock (ns).
    age_ns: i128,
    /// The offsets at which the wall clock was believed before.
    lines: Lines,
    /// When a step that is not believed yet was first seen (monotonic ns); `None` if no step is doubted.
    doubted_since_ns: Option<u64>,
    /// The hold after a start that found the clock far ahead; `None`: nothing is held back.
    hold: Option<Hold>,
    /// How far the first reading was ahead of what was written down (ns).
    ahead_at_start_ns: i128,
    steps: u64,
    /// The changes of the wall clock that were not taken yet.
    changes: VecDeque<ClockChange>,
}

impl WallGuard {
    /// Returns a guard that believes the first reading, because there is nothing to compare the reading with.
    #[must_use]
    pub fn new(first: Reading) -> Self {
        Self {
            last: first,
            believed_ns: first.wall_ns,
            width_ns: first.width_ns,
            age_ns: 0,
            lines: Lines::new(first.span()),
            doubted_since_ns: None,
            hold: None,
            ahead_at_start_ns: 0,
            steps: 0,
            changes: VecDeque::new(),
        }
    }

    /// Returns a guard that goes on from what an earlier process has written down.
    #[must_use]
    pub fn going_on(first: Reading, written: Written) -> Self {
        let (expected, held_ns, is_same_boot) = match written {
            Written::Nothing => return Self::new(first),
            Written::SameBoot { boot_ns, wall_ns, held_ns } => {
                let passed_ns = i128::from(first.boot_ns) - i128::from(boot_ns);
                (wall_ns.saturating_add(passed_ns), i128::from(held_ns), true)
            }
            Written::OtherBoot { wall_ns } => (wall_ns, 0, false),
        };
        let by_ns = first.span().ahead_ns(WallSpan::exact(expected));
        let max_ns = CLOCK_GUARD.as_nanos() as i128;
        let mut guard = if is_same_boot && by_ns.abs() > max_ns {
            let mut guard = Self::new(Reading { wall_ns: expected, width_ns: 0, ..first });
            guard.observe(first);
            guard
        } else {
            Self::new(first)
        };
        if !is_same_boot && by_ns > max_ns {
            let written = Timestamp::from_ms(ms(expected)).unwrap_or_default();
            guard.note(ClockChange::AheadAtStart { ahead_ms: ms(by_ns), written });
        }
        let from_ns = expected - held_ns;
        let is_held = held_ns > 0 || !is_same_boot && by_ns > max_ns;
        guard.hold = is_held.then(|| Hold::new(from_ns, guard.believed_ns, first.mono_ns));
        guard.ahead_at_start_ns = by_ns;
        guard
    }

    /// Takes a reading of the clocks, and returns the wall time to believe now (ns since the Unix epoch). See also [`width_ns`](Self::width_ns).
    pub fn observe(&mut self, reading: Reading) -> i128 {
        let slept_ns = i128::from(reading.boot_ns.saturating_sub(self.last.boot_ns));
        let ran_ns = i128::from(reading.mono_ns.saturating_sub(self.last.mono_ns));
        let passed_ns = slept_ns.max(ran_ns);
        let seen_ns = self.age_ns;
        self.age_ns += passed_ns;
        let step_ns = reading.span().ahead_ns(self.last.span().later(passed_ns));
        let has_stepped = is_step(step_ns);
        self.steps += u64::from(has_stepped);
        self.last = reading;

        let expected_ns = self.believed_ns + passed_ns;
        let was_doubted = self.doubted_since_ns.is_some();
        let believed = WallSpan { from_ns: expected_ns, to_ns: expected_ns + i128::from(self.width_ns) };
        let ahead_ns = reading.span().ahead_ns(believed);
        let offset = reading.span().later(-self.age_ns);
        let is_near =
            ahead_ns <= CLOCK_GUARD.as_nanos() as i128 || self.lines.is_return(offset.from_ns, self.age_ns);
        let is_believed = is_near || self.has_stood(has_stepped);
        let change = match (is_near, is_believed) {
            (true, _) if was_doubted => Some(ClockChange::GoneBack { by_ms: ms(ahead_ns) }),
            (true, _) => has_stepped.then_some(ClockChange::Stepped { by_ms: ms(step_ns) }),
            (false, true) => Some(ClockChange::Believed { by_ms: ms(ahead_ns) }),
            (false, false) => has_stepped.then_some(ClockChange::Doubted { ahead_ms: ms(ahead_ns) }),
        };
        change.into_iter().for_each(|change| self.note(change));
        if is_believed {
            self.doubted_since_ns = None;
            (self.believed_ns, self.width_ns) = (reading.wall_ns, reading.width_ns);
            self.lines.go_on(offset, seen_ns, self.age_ns);
        } else {
            self.believed_ns = expected_ns;
        }
        self.go_on_holding(has_stepped);
        self.believed_ns
    }

    fn go_on_holding(&mut self, has_stepped: bool) {
        let Some(hold) = &mut self.hold else { return };
        if has_stepped {
            hold.stepped(self.last.mono_ns);
        }
        if self.doubted_since_ns.is_some() {
            return;
        }
        let Some(end) = hold.go_on(self.believed_ns, self.age_ns, self.last.mono_ns) else { return };
        let by_ms = ms(hold.behind_ns());
        self.hold = None;
        self.note(match end {
            HoldEnd::Stood => ClockChange::Believed { by_ms },
            HoldEnd::GoneBack => ClockChange::GoneBack { by_ms },
        });
    }

    /// Notes when the doubted step was first seen, and returns whether no further step has come for [`GUARD_STANDS`]. If the clock has just
    /// stepped (`has_stepped`), this duration begins now.
    fn has_stood(&mut self, has_stepped: bool) -> bool {
        let now_ns = self.last.mono_ns;
        let since_ns = self.doubted_since_ns.filter(|_| !has_stepped).unwrap_or(now_ns);
        self.doubted_since_ns = Some(since_ns);
        Duration::from_nanos(now_ns.saturating_sub(since_ns)) >= GUARD_STANDS
    }

    fn note(&mut self, change: ClockChange) {
        if self.changes.len() == CHANGES_MAX {
            self.changes.pop_front();
        }
        self.changes.push_back(change);
    }

    /// Takes out the changes of the wall clock since the last call, oldest first; at most the last 16.
    pub fn take_changes(&mut self) -> impl Iterator<Item = ClockChange> + use<> {
        std::mem::take(&mut self.changes).into_iter()
    }

    /// Returns how far the first reading was ahead of what an earlier process has written down (ns); 0 or less if it was not.
    #[must_use]
    pub fn ahead_at_start_ns(&self) -> i128 {
        self.ahead_at_start_ns
    }

    /// Returns how many steps of the wall clock were noticed.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns by how much the wall clock may be ahead of the wall time that was last believed (ns), if no step is doubted. A delay that counts
    /// from now has to count from this much later, so that it is over in any case.
    #[must_use]
    pub fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// Returns by how much the instant by which tasks fall due is behind the wall time that was last believed (ns). It is above 0 only after a
    /// start that found the clock far ahead of what was written down.
    #[must_use]
    pub fn held_ns(&self) -> u64 {
        let behind_ns = self.hold.map_or(0, |hold| hold.behind_ns());
        u64::try_from(behind_ns).unwrap_or(u64::MAX)
    }

    /// Returns [`held_ns`](Self::held_ns) for [`Now`](tickwheel_engine::Now): by how many milliseconds the one that has begun by the time by which
    /// tasks fall due is behind the one that has begun by the wall clock.
    #[must_use]
    pub fn held_ms(&self) -> u64 {
        let falls_due_ns = self.believed_ns - i128::from(self.held_ns());
        split(self.believed_ns).0.ms_since(split(falls_due_ns).0)
    }

    /// Returns the last reading of the boot-time clock, the wall time that was believed then, and [`held_ns`](Self::held_ns) (ns), to be written
    /// down for [`going_on`](Self::going_on).
    #[must_use]
    pub fn to_write(&self) -> (u64, i128, u64) {
        (self.last.boot_ns, self.believed_ns, self.held_ns())
    }

    /// Returns how far the wall clock is ahead of the time by which tasks fall due (ns). The number is 0 unless a step is doubted, or a start
    /// holds back what falls due.
    #[must_use]
    pub fn offset_ns(&self) -> i128 {
        self.last.wall_ns - self.believed_ns + i128::from(self.held_ns())
    }
}

/// Whether this difference between the wall clock and the other clocks means that the wall clock was set.
fn is_step(by_ns: i128) -> bool {
    by_ns.unsigned_abs() > STEP_NOTICED.as_nanos()
}

/// Returns a difference in whole milliseconds. A number beyond the range becomes the nearest one in the range.
fn ms(ns: i128) -> i64 {
    let ms = ns / 1_000_000;
    i64::try_from(ms).unwrap_or(if ms < 0 { i64::MIN } else { i64::MAX })
}

/// Splits nanoseconds since the Unix epoch into whole milliseconds and the remaining nanoseconds, for [`Now`](tickwheel_engine::Now). A
/// time before 1970 becomes 1970.
pub(crate) fn split(wall_ns: i128) -> (Timestamp, u32) {
    let wall_ns = wall_ns.max(0);
    let ms = i64::try_from(wall_ns / 1_000_000).unwrap_or(i64::MAX);
    let sub_ns = u32::try_from(wall_ns % 1_000_000).unwrap_or(0);
    (Timestamp::from_ms(ms).unwrap_or(Timestamp::MAX), sub_ns)
}
