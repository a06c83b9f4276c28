//! The clocks of a run: what they show, and what the server believes of the wall clock.

use std::collections::VecDeque;

use tickwheel_engine::{Now, Timestamp};
use tickwheel_queue::wall::{Reading, WallGuard, Written};

use crate::edges;
use crate::rng::Rng;

const MS_NS: i128 = 1_000_000;
/// The wall clock never goes back below this: a day in 2001 (ns since the Unix epoch).
const WALL_MIN_NS: i128 = 1_000_000_000 * MS_NS;
/// No jump sets the wall clock above this: a day in 2128 (ns since the Unix epoch), so that an instant a hundred
/// years later is still a valid due instant.
const WALL_MAX_NS: i128 = 5_000_000_000_000 * MS_NS;
/// The guard does not believe a step forward of more than this at once (ns).
const GUARD_NS: i128 = 300_000 * MS_NS;

/// The guard believes a longer step forward after this time on the monotonic clock (ns).
const STANDS_NS: u64 = 60_000 * 1_000_000;
/// A *course* of the wall clock is a constant distance from the boot-time clock. A return to an earlier course is
/// believed at once only if it comes within this time after the clock left that course (ns).
const RETURN_NS: u64 = 3_600_000 * 1_000_000;
/// A wall clock was set if it differs by more than this from the course of the boot-time clock (ns).
const STEP_NS: i128 = 500 * MS_NS;

/// The monotonic, the boot-time and the wall clock of a run. They need not agree.
#[derive(Clone, Debug)]
pub(super) struct Clocks {
    reading: Reading,
    guard: Option<WallGuard>,
    /// The reading that the server gets.
    now: Now,
    /// The number of passes of time during which the wall clock still stands still.
    frozen: u64,
    glitch: Option<Glitch>,
    /// The instant of the boot-time clock since which the wall clock has advanced like it and was believed (ns).
    steady_since_ns: u64,
    /// The wall clock minus the boot-time clock at the last reading (ns).
    shown_ns: i128,
    /// The instant of the monotonic clock at which the wall clock was last set (ns).
    set_at_ns: u64,
    /// The believed wall clock of the last hour. An entry is an instant of the boot-time clock (ns), and the distance
    /// of the wall clock from the boot-time clock that was believed until then (ns).
    believed: VecDeque<(u64, i128)>,
    /// The hold that the start has to make; `None`: nothing is held back.
    hold: Option<Hold>,
    /// The fault of the guard, if one was found.
    broken: Option<String>,
}

/// A start on another boot found the wall clock far ahead of what was written down.
#[derive(Copy, Clone, Debug)]
struct Hold {
    /// The wall clock that was written down, minus the boot-time clock at the start (ns).
    course_ns: i128,
    /// The monotonic clock when the server started, or when the wall clock was set since (ns).
    since_ns: u64,
    /// The oracle knows of the hold.
    is_told: bool,
}

/// A glitch: the wall clock goes back, and returns to its course (see [`RETURN_NS`]) later.
#[derive(Copy, Clone, Debug)]
struct Glitch {
    less_ns: i128,
    /// The begin of the glitch, and its planned end, by the boot-time clock.
    since_ns: u64,
    until_ns: u64,
    /// If the glitch ends before this instant of the boot-time clock, the server has to believe the returned wall clock
    /// at once. It is 0 if another fault of the wall clock came in between.
    trusted_until_ns: u64,
}

impl Clocks {
    pub(super) fn new(wall_ms: u64, wall_sub_ns: u64, guarded: bool) -> Self {
        let wall_ns = i128::from(wall_ms) * MS_NS + i128::from(wall_sub_ns % 1_000_000);
        let reading = Reading { mono_ns: 0, boot_ns: 0, wall_ns, width_ns: 0 };
        let now = Now { mono_ns: 0, wall: Timestamp::EPOCH, wall_sub_ns: 0, wall_width_ns: 0, held_ms: 0 };
        let guard = guarded.then(|| WallGuard::new(reading));
        let mut clocks = Self {
            reading,
            guard,
            now,
            frozen: 0,
            glitch: None,
            steady_since_ns: 0,
            shown_ns: reading.wall_ns,
            set_at_ns: 0,
            believed: VecDeque::from([(0, reading.wall_ns)]),
            hold: None,
            broken: None,
        };
        clocks.believe(reading.wall_ns);
        clocks
    }

    pub(super) fn now(&self) -> Now {
        self.now
    }

    /// A new server process starts with a new guard. Of three starts, one knows no earlier reading, one is on the boot of the process before, and
    /// one is on another boot.
    pub(super) fn restart(&mut self) {
        let Some(guard) = &mut self.guard else { return };
        let Reading { boot_ns, wall_ns, mono_ns, .. } = self.reading;
        let (noted_boot_ns, noted_ns, held_ns) = guard.to_write();
        let other_boot_ns = noted_ns - i128::from(held_ns);
        let written = match boot_ns / 1_000_000 % 3 {
            0 => Written::Nothing,
            1 => Written::SameBoot { boot_ns: noted_boot_ns, wall_ns: noted_ns, held_ns },
            _ => Written::OtherBoot { wall_ns: other_boot_ns },
        };
        *guard = WallGuard::going_on(self.reading, written);
        let believed_ns = guard.to_write().1;
        let is_held = match written {
            Written::Nothing => false,
            Written::SameBoot { held_ns, .. } => held_ns > 0,
            Written::OtherBoot { .. } => wall_ns - other_boot_ns > GUARD_NS,
        };
        self.hold = is_held.then(|| Hold {
            course_ns: other_boot_ns - i128::from(boot_ns),
            since_ns: mono_ns,
            is_told: false,
        });
        // The guard believes its first reading or the time that was written down, and so the course on which that is.
        self.believed = VecDeque::from([(boot_ns, believed_ns - i128::from(boot_ns))]);
        self.unsteady();
        self.believe(believed_ns);
        self.judge_hold(true);
    }

    /// The wall clock by which the server has to make tasks due (ns), and whether the server has just started; `None`: the wall clock that it
    /// believes.
    pub(super) fn hold(&mut self) -> Option<(i128, bool)> {
        let boot_ns = self.reading.boot_ns;
        let hold = self.hold.as_mut()?;
        let begins = !std::mem::replace(&mut hold.is_told, true);
        Some((hold.course_ns + i128::from(boot_ns), begins))
    }

    /// Judges whether the guard holds back what it has to. A hold may end when the wall clock has not been set for a minute, or is back within
    /// five minutes of what was written down. With a later reading than the first one, it has to end then, unless a step is doubted.
    fn judge_hold(&mut self, is_first: bool) {
        let (Some(hold), Some(guard)) = (&self.hold, &self.guard) else { return };
        let behind_ns = self.believed_ns() - (hold.course_ns + i128::from(self.reading.boot_ns));
        let may_end = self.reading.mono_ns - hold.since_ns >= STANDS_NS || behind_ns <= GUARD_NS;
        let held_ns = i128::from(guard.held_ns());
        let must_end = may_end && !is_first && self.believed_ns() == self.reading.wall_ns;
        if held_ns > 0 && must_end {
            let stood_ms = (self.reading.mono_ns - hold.since_ns) / 1_000_000;
            self.broken = Some(format!(
                "a clock that is {} ms ahead and has stood for {stood_ms} ms still holds back what is due",
                behind_ns / MS_NS
            ));
        } else if held_ns == 0 {
            if !may_end {
                self.broken =
                    Some(format!("a start believed a clock {} ms ahead at once", behind_ns / MS_NS));
            }
            self.hold = None;
        } else if (held_ns - behind_ns).abs() > MS_NS {
            self.broken = Some(format!("{} ms are held back, not {}", held_ns / MS_NS, behind_ns / MS_NS));
        }
    }

    /// Whether `ns` more may pass: the nanoseconds of the boot-time clock stay below 2^63, about 292 years.
    pub(super) fn may_pass(&self, ns: u64) -> bool {
        self.reading.boot_ns.saturating_add(ns) < 1 << 63
    }

    /// Lets `ns` pass. The wall clock advances faster or slower by `slew_permille` thousandths.
    pub(super) fn pass(&mut self, ns: u64, slew_permille: i64) {
        self.reading.mono_ns += ns;
        self.reading.boot_ns += ns;
        if self.frozen > 0 {
            self.frozen -= 1;
            self.unsteady();
        } else {
            let slewed_ns = i128::from(ns) * i128::from(slew_permille) / 1_000;
            self.reading.wall_ns += i128::from(ns) + slewed_ns;
            if slewed_ns != 0 {
                self.unsteady();
            }
        }
        self.go_on();
    }

    /// The machine is suspended for `ns`: the boot-time and the wall clock advance, the monotonic clock stands still.
    pub(super) fn suspend(&mut self, ns: u64) {
        self.reading.boot_ns += ns;
        self.reading.wall_ns += i128::from(ns);
        self.go_on();
    }

    pub(super) fn freeze(&mut self, readings: u64) {
        self.frozen = readings;
    }

    /// Sets the wall clock forward or back by a random length.
    pub(super) fn jump(&mut self, rng: &mut Rng) {
        let size = i128::from(edges::any_length(rng)) * MS_NS;
        let to = if rng.chance(50) { size } else { -size };
        self.unsteady();
        self.set_wall(within_bounds(self.reading.wall_ns + to));
    }

    /// Begins a glitch, unless one is under way, the wall clock is frozen or it is not believed now. Returns whether it did.
    pub(super) fn glitch(&mut self, rng: &mut Rng) -> bool {
        let room_ns = self.reading.wall_ns - WALL_MIN_NS;
        let less_ns = (i128::from(edges::any_length(rng)) * MS_NS).min(room_ns);
        let since_ns = self.reading.boot_ns;
        let held_ns = (since_ns - self.steady_since_ns).min(RETURN_NS);
        // Most glitches end while the guard still has to know the earlier course.
        let lasts_ns = rng.pick(&[1_000_000, 1_000_000_000, held_ns / 2, held_ns, 2 * held_ns]).max(1);
        if self.glitch.is_some() || self.frozen > 0 || self.believed_ns() != self.reading.wall_ns {
            return false;
        }
        let (until_ns, trusted_until_ns) = (since_ns.saturating_add(lasts_ns), since_ns + held_ns);
        self.glitch = Some(Glitch { less_ns, since_ns, until_ns, trusted_until_ns });
        self.set_wall(self.reading.wall_ns - less_ns);
        true
    }

    /// Ends a freeze and a glitch: from now on all clocks advance equally.
    pub(super) fn calm(&mut self) {
        self.frozen = 0;
        self.end_glitch();
    }

    /// The fault of the guard, if one was found.
    pub(super) fn verdict(&mut self) -> Result<(), String> {
        self.broken.take().map_or(Ok(()), Err)
    }

    /// Time has passed: ends a glitch whose time is over, and reads the clocks.
    fn go_on(&mut self) {
        match self.glitch {
            Some(glitch) if glitch.until_ns <= self.reading.boot_ns => self.end_glitch(),
            _ => self.read(),
        }
    }

    /// Ends the glitch: the wall clock returns to its course, and the guard has to believe it, if the return is in time.
    fn end_glitch(&mut self) {
        let Some(glitch) = self.glitch.take() else { return };
        // Decided before the guard reads the return, because that reading may change `trusted_until_ns`.
        let trusted = self.reading.boot_ns <= glitch.trusted_until_ns;
        // The time of the glitch does not count as time on this course.
        let held_ns = if trusted { glitch.since_ns - self.steady_since_ns } else { 0 };
        self.steady_since_ns = self.reading.boot_ns - held_ns;
        // A return that has to be believed must not be cut at the bound, because it would then lead to another course.
        // Time that passes may take the clock above the bound, too.
        let back_ns = self.reading.wall_ns + glitch.less_ns;
        self.set_wall(if trusted { back_ns } else { within_bounds(back_ns) });
        if self.guard.is_some() && trusted && self.believed_ns() != self.reading.wall_ns {
            let late_ms = (self.reading.wall_ns - self.believed_ns()) / MS_NS;
            self.broken =
                Some(format!("the wall clock is back where it was, and {late_ms} ms of it are doubted"));
        }
    }

    /// Sets the wall clock, and reads the clocks.
    fn set_wall(&mut self, to_ns: i128) {
        self.reading.wall_ns = to_ns;
        self.read();
    }

    /// The wall clock does not advance like the boot-time clock, is not believed, or has a new guard. So the time on
    /// its course begins anew, and the end of a glitch under way need not be believed.
    fn unsteady(&mut self) {
        self.steady_since_ns = self.reading.boot_ns;
        if let Some(glitch) = &mut self.glitch {
            glitch.trusted_until_ns = 0;
        }
    }

    /// Nanoseconds until tasks fall due that are due at `at`, if all clocks advance equally.
    pub(super) fn until_wall(&self, at: Timestamp) -> u64 {
        let held_ns = i128::from(self.now.held_ms) * MS_NS;
        let left_ns = i128::from(at.as_ms()) * MS_NS - (self.believed_ns() - held_ns);
        u64::try_from(left_ns.max(0)).unwrap_or(u64::MAX)
    }

    /// Nanoseconds until the monotonic clock shows `at_ms`.
    pub(super) fn until_mono(&self, at_ms: u64) -> u64 {
        at_ms.saturating_mul(1_000_000).saturating_sub(self.reading.mono_ns)
    }

    pub(super) fn believed_ns(&self) -> i128 {
        i128::from(self.now.wall.as_ms()) * MS_NS + i128::from(self.now.wall_sub_ns)
    }

    fn read(&mut self) {
        let Some(guard) = &mut self.guard else { return self.believe(self.reading.wall_ns) };
        let shown_before_ns = self.shown_ns;
        let was_doubted = guard.offset_ns() != 0;
        let believed_ns = guard.observe(self.reading);
        let boot_ns = self.reading.boot_ns;
        let (shown_ns, ahead_ns) =
            (self.reading.wall_ns - i128::from(boot_ns), believed_ns - i128::from(boot_ns));
        if (shown_ns - shown_before_ns).abs() > STEP_NS {
            self.set_at_ns = self.reading.mono_ns;
            if let Some(hold) = &mut self.hold {
                hold.since_ns = self.reading.mono_ns;
            }
        }
        self.shown_ns = shown_ns;
        if was_doubted || believed_ns != self.reading.wall_ns {
            self.unsteady();
        }
        self.judge(ahead_ns);
        self.believe(believed_ns);
        self.judge_hold(false);
    }

    /// Judges the guard. A step forward may be believed in three cases: it is small, the clock was set long enough ago,
    /// or the clock was believed there within the last hour.
    fn judge(&mut self, ahead_ns: i128) {
        let boot_ns = self.reading.boot_ns;
        self.believed.retain(|(until_ns, _)| until_ns + RETURN_NS >= boot_ns);
        let step_ns = self.believed.back().map_or(0, |&(_, before_ns)| ahead_ns - before_ns);
        let stood = self.reading.mono_ns - self.set_at_ns >= STANDS_NS;
        let mut returns = self.believed.iter().map(|&(_, before_ns)| ahead_ns - before_ns <= 2 * STEP_NS);
        if step_ns > GUARD_NS && !stood && !returns.any(|is_one| is_one) {
            self.broken =
                Some(format!("a step of the wall clock by {} ms was believed at once", step_ns / MS_NS));
        }
        match self.believed.back_mut() {
            Some((until_ns, before_ns)) if *before_ns == ahead_ns => *until_ns = boot_ns,
            _ => self.believed.push_back((boot_ns, ahead_ns)),
        }
    }

    fn believe(&mut self, wall_ns: i128) {
        let ms = i64::try_from(wall_ns / MS_NS).expect("runs end long before time does");
        self.now = Now {
            mono_ns: self.reading.mono_ns,
            wall: Timestamp::from_ms(ms).expect("after 1970"),
            wall_sub_ns: u32::try_from(wall_ns % MS_NS).expect("less than a millisecond"),
            wall_width_ns: 0,
            held_ms: self.guard.as_ref().map_or(0, WallGuard::held_ms),
        };
    }
}

/// The nearest instant to which a jump may set the wall clock.
fn within_bounds(wall_ns: i128) -> i128 {
    wall_ns.clamp(WALL_MIN_NS, WALL_MAX_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspend_is_believed_and_a_jump_is_not() {
        let mut clocks = Clocks::new(1_500_000_000_000, 0, true);
        clocks.suspend(3_600_000_000_000);
        assert_eq!(clocks.now().wall.as_ms(), 1_500_003_600_000);
        for seed in 0..200 {
            clocks.jump(&mut Rng::new(seed));
            clocks.pass(100_000_000_000, 0);
            clocks.verdict().expect("a guard doubts");
        }
    }

    #[test]
    fn a_glitch_ends_where_it_began() {
        let mut glitches = 0;
        for seed in 0..200 {
            let mut clocks = Clocks::new(1_500_000_000_000, 0, true);
            clocks.pass(7_000_000_000, 0);
            glitches += u64::from(clocks.glitch(&mut Rng::new(seed)));
            for _ in 0..20 {
                clocks.pass(1_000_000_000, 0);
            }
            clocks.calm();
            clocks.pass(70_000_000_000, 0);
            clocks.verdict().expect("a guard remembers");
            assert_eq!(clocks.now().wall.as_ms(), 1_500_000_097_000);
        }
        assert_eq!(glitches, 200);
    }

    #[test]
    fn a_glitch_beyond_the_bound_of_the_clock_ends_where_it_began() {
        for seed in 0..200 {
            let mut clocks = Clocks::new(4_999_999_999_000, 0, true);
            clocks.pass(7_000_000_000, 0);
            assert!(clocks.glitch(&mut Rng::new(seed)));
            clocks.pass(1_000_000, 0);
            clocks.calm();
            clocks.verdict().expect("a return to the same place");
            assert_eq!(clocks.now().wall.as_ms(), 5_000_000_006_001);
        }
    }

    /// Tests the checks of this file: they find a guard that believes a step at once, and a guard that does not believe a return.
    #[test]
    fn a_guard_that_believes_too_much_or_too_little_is_found() {
        let mut clocks = Clocks::new(1_500_000_000_000, 0, true);
        clocks.pass(1_000_000_000, 0);
        clocks.judge(clocks.shown_ns + 3_600_000 * MS_NS);
        assert!(clocks.verdict().expect_err("an hour ahead").contains("believed at once"));

        let mut clocks = Clocks::new(1_500_000_000_000, 0, true);
        clocks.pass(10_000_000_000, 0);
        let glitch = Glitch { less_ns: 0, since_ns: 9_000_000_000, until_ns: 0, trusted_until_ns: u64::MAX };
        clocks.believe(clocks.reading.wall_ns - 60_000 * MS_NS);
        clocks.glitch = Some(Glitch { less_ns: 3_600_000 * MS_NS, ..glitch });
        clocks.end_glitch();
        assert!(clocks.verdict().expect_err("it was never there").contains("3600000 ms"));
    }

    /// A start on another boot, which finds the clock an hour ahead of what was written down.
    fn held() -> Clocks {
        let mut clocks = Clocks::new(1_500_000_000_000, 0, true);
        // The time since the boot (ms) by 3 says what was written down: after 2 ms it is the note of another boot.
        clocks.pass(2_000_000, 0);
        clocks.set_wall(clocks.reading.wall_ns + 3_600_000 * MS_NS);
        clocks.restart();
        assert_eq!(clocks.now().held_ms, 3_600_000);
        clocks
    }

    /// Tests the checks of this file: they find a guard that holds back too short or too long.
    #[test]
    fn a_hold_ends_when_the_clock_has_stood_for_a_minute_and_not_before() {
        let mut clocks = held();
        clocks.pass(59_000_000_000, 0);
        assert_eq!(clocks.now().held_ms, 3_600_000);
        clocks.pass(1_000_000_000, 0);
        assert_eq!(clocks.now().held_ms, 0);
        clocks.verdict().expect("a guard holds back for a minute");

        let mut clocks = held();
        clocks.hold.as_mut().expect("it holds").since_ns = 0;
        clocks.pass(59_998_000_000, 0);
        assert!(clocks.verdict().expect_err("a minute is over").contains("still holds back"));

        let mut clocks = held();
        clocks.pass(30_000_000_000, 0);
        clocks.hold.as_mut().expect("it holds").since_ns = clocks.reading.mono_ns;
        clocks.pass(30_000_000_000, 0);
        assert!(clocks.verdict().expect_err("half a minute").contains("at once"));
    }

    #[test]
    fn a_return_to_the_first_reading_is_believed() {
        let mut clocks = Clocks::new(1_500_000_000_000, 0, true);
        clocks.pass(1_000_000_000, 0);
        clocks.restart();
        for wall_ms in [1_499_900_000_000, 1_500_000_001_000] {
            clocks.reading.wall_ns = i128::from(wall_ms) * MS_NS;
            clocks.read();
            assert_eq!(clocks.now().wall.as_ms(), wall_ms);
        }
        clocks.verdict().expect("the clock was there when the guard began");
    }

    #[test]
    fn a_clock_that_is_frozen_or_slewed_is_not_where_the_others_are() {
        let mut clocks = Clocks::new(1_500_000_000_000, 0, false);
        clocks.freeze(1);
        clocks.pass(5_000_000, 0);
        assert_eq!((clocks.now().wall.as_ms(), clocks.now().mono_tick()), (1_500_000_000_000, 5));
        clocks.pass(1_000_500_000, -20);
        assert_eq!(clocks.now().wall.as_ms(), 1_500_000_000_980);
        assert_eq!(clocks.now().wall_sub_ns, 490_000);
    }
}
