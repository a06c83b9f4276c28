//! The clocks of a run: what they show, and what the server believes.

use tickwheel_engine::{Now, Timestamp};
use tickwheel_queue::wall::{Reading, WallGuard};

use crate::edges;
use crate::rng::Rng;

const MS_NS: i128 = 1_000_000;
/// The wall clock never shows less than this: a day in 1970.
const WALL_MIN_NS: i128 = 1_000_000_000 * MS_NS;
/// Nor more than this: a day in 2128, so that a hundred years from then still fit into what a task may be due at.
const WALL_MAX_NS: i128 = 5_000_000_000_000 * MS_NS;
/// A step forward of more than this is not believed at once.
const GUARD_NS: i128 = 300_000 * MS_NS;

/// Three clocks that need not agree.
#[derive(Clone, Debug)]
pub(super) struct Clocks {
    reading: Reading,
    guard: Option<WallGuard>,
    /// What the server is told.
    now: Now,
    /// So many readings from now the wall clock stands still.
    frozen: u64,
}

impl Clocks {
    pub(super) fn new(wall_ms: u64, wall_sub_ns: u64, guarded: bool) -> Self {
        let wall_ns = i128::from(wall_ms) * MS_NS + i128::from(wall_sub_ns % 1_000_000);
        let reading = Reading { mono_ns: 0, boot_ns: 0, wall_ns };
        let now = Now { mono_ns: 0, wall: Timestamp::EPOCH, wall_sub_ns: 0 };
        let guard = guarded.then(|| WallGuard::new(reading));
        let mut clocks = Self { reading, guard, now, frozen: 0 };
        clocks.believe(reading.wall_ns);
        clocks
    }

    pub(super) fn now(&self) -> Now {
        self.now
    }

    /// A new process knows no earlier reading.
    pub(super) fn restart(&mut self) {
        if let Some(guard) = &mut self.guard {
            *guard = WallGuard::new(self.reading);
            self.believe(self.reading.wall_ns);
        }
    }

    /// Whether the machine may run for so long: no clock counts the nanoseconds of 300 years and more.
    pub(super) fn may_pass(&self, ns: u64) -> bool {
        self.reading.boot_ns.saturating_add(ns) < 1 << 63
    }

    /// Time passes, for the wall clock `slew` thousandths faster or slower.
    pub(super) fn pass(&mut self, ns: u64, slew_permille: i64) {
        self.reading.mono_ns += ns;
        self.reading.boot_ns += ns;
        if self.frozen > 0 {
            self.frozen -= 1;
        } else {
            self.reading.wall_ns += i128::from(ns) + i128::from(ns) * i128::from(slew_permille) / 1_000;
        }
        self.read();
    }

    /// The machine sleeps: the monotonic clock stands still.
    pub(super) fn suspend(&mut self, ns: u64) {
        self.reading.boot_ns += ns;
        self.reading.wall_ns += i128::from(ns);
        self.read();
    }

    pub(super) fn freeze(&mut self, readings: u64) {
        self.frozen = readings;
    }

    /// The wall clock goes to another instant. `Err`: the server believes what it must not.
    pub(super) fn jump(&mut self, rng: &mut Rng) -> Result<(), String> {
        let size = i128::from(edges::any_length(rng)) * MS_NS;
        let to = if rng.chance(50) { size } else { -size };
        let before_ns = self.believed_ns();
        self.reading.wall_ns = (self.reading.wall_ns + to).clamp(WALL_MIN_NS, WALL_MAX_NS);
        self.read();
        let by_ns = self.believed_ns() - before_ns;
        if self.guard.is_some() && by_ns > GUARD_NS {
            return Err(format!("a step of the wall clock by {} ms was believed at once", by_ns / MS_NS));
        }
        Ok(())
    }

    /// All clocks agree from here on.
    pub(super) fn calm(&mut self) {
        self.frozen = 0;
    }

    /// Nanoseconds until the wall clock shows `at`, if it goes as the others do.
    pub(super) fn until_wall(&self, at: Timestamp) -> u64 {
        let left_ns = i128::from(at.as_ms()) * MS_NS - self.believed_ns();
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
        let believed_ns = match &mut self.guard {
            Some(guard) => guard.observe(self.reading),
            None => self.reading.wall_ns,
        };
        self.believe(believed_ns);
    }

    fn believe(&mut self, wall_ns: i128) {
        let ms = i64::try_from(wall_ns / MS_NS).expect("runs end long before time does");
        self.now = Now {
            mono_ns: self.reading.mono_ns,
            wall: Timestamp::from_ms(ms).expect("after 1970"),
            wall_sub_ns: u32::try_from(wall_ns % MS_NS).expect("less than a millisecond"),
        };
    }
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
            clocks.jump(&mut Rng::new(seed)).expect("a guard doubts");
            clocks.pass(100_000_000_000, 0);
        }
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
