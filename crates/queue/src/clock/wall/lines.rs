//! [`Lines`]: remembers at which offsets the wall clock was believed, so that a return to one of them can be recognized.

use tickwheel_store::WallSpan;

use super::{CLOCK_GUARD, RETURN_MAX, STEP_NOTICED, is_step};

/// The largest number of lines that are remembered. If the clock is set more often, the line that would be forgotten first is dropped.
const LINES_MAX: usize = 16;

/// A line that the wall clock left. On one line, the offset of the wall clock against the boot-time clock stays about the same.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Line {
    offset: WallSpan,
    /// How long the clock was believed on this line (ns).
    held_ns: i128,
    /// The age of the guard when the clock was last seen on this line (ns).
    left_ns: i128,
}

impl Line {
    /// Returns the age of the guard at which the guard forgets the line (ns).
    fn forgotten_ns(&self) -> i128 {
        self.left_ns.saturating_add(self.held_ns.min(RETURN_MAX.as_nanos() as i128))
    }
}

/// The lines that the wall clock left, and the line on which the wall clock is now.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    left: Vec<Line>,
    /// The offset at which the present line began (ns), or the narrowest interval for it since then. The clock may have been slewed a little
    /// meanwhile.
    here: WallSpan,
    /// The age of the guard when the clock came to the present line (ns). If the clock was on this line before, that earlier time is
    /// subtracted, so the number may be below 0.
    since_ns: i128,
}

impl Lines {
    /// Returns the lines of a new guard: the clock is believed at its first offset from the start.
    pub(super) fn new(offset: WallSpan) -> Self {
        Self { left: Vec::new(), here: offset, since_ns: 0 }
    }

    /// Whether a clock with this offset is back on a line that it left. The clock must not be ahead of the line by more than slewing and
    /// rounding ([`STEP_NOTICED`]), because an offset farther ahead was never believed. The clock may be behind the line by up to
    /// [`CLOCK_GUARD`], because a step forward of that size is always believed.
    pub(super) fn is_return(&self, offset_ns: i128, age_ns: i128) -> bool {
        let (behind_ns, ahead_ns) = (CLOCK_GUARD.as_nanos() as i128, STEP_NOTICED.as_nanos() as i128);
        let mut known = self.left.iter().filter(|line| age_ns <= line.forgotten_ns());
        known
            .any(|line| (line.offset.from_ns - behind_ns..=line.offset.to_ns + ahead_ns).contains(&offset_ns))
    }

    /// Notes that the clock is believed at this offset. If the offset is a step away from the present line, the clock leaves that line, on
    /// which it was last seen at the age `seen_ns`, and comes to another line.
    pub(super) fn go_on(&mut self, offset: WallSpan, seen_ns: i128, age_ns: i128) {
        if !is_step(offset.ahead_ns(self.here)) {
            if offset.width_ns() < self.here.width_ns() {
                self.here = offset;
            }
            return;
        }
        self.left.retain(|line| age_ns <= line.forgotten_ns());
        let there = self.left.iter().position(|line| !is_step(offset.ahead_ns(line.offset)));
        // The earlier time on this line is added. Otherwise a glitch every minute would make the guard forget the line to which the clock
        // belongs.
        let held_before_ns = there.map_or(0, |at| self.left.swap_remove(at).held_ns);
        let left = Line { offset: self.here, held_ns: seen_ns - self.since_ns, left_ns: seen_ns };
        if self.left.len() == LINES_MAX {
            let soonest = (0..LINES_MAX).min_by_key(|&at| self.left[at].forgotten_ns());
            self.left.swap_remove(soonest.expect("there are some"));
        }
        self.left.push(left);
        (self.here, self.since_ns) = (offset, age_ns - held_before_ns);
    }
}
