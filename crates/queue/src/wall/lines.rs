//! Where the wall clock was believed before it was set.

use super::{CLOCK_GUARD, RETURN_MAX, STEP_NOTICED, is_step};

/// How many lines are remembered. A clock that is set more often than this has no place to return to.
const LINES_MAX: usize = 16;

/// A line that the wall clock left. While it is on a line, its offset against the boot-time clock stays the same.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Line {
    offset_ns: i128,
    /// How long the clock was believed on it.
    held_ns: i128,
    /// The age of the guard when the clock was last seen on it.
    left_ns: i128,
}

impl Line {
    /// The age of the guard at which it forgets the line.
    fn forgotten_ns(&self) -> i128 {
        self.left_ns.saturating_add(self.held_ns.min(RETURN_MAX.as_nanos() as i128))
    }
}

/// The lines that the wall clock left, and the one on which it is.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    left: Vec<Line>,
    /// The offset at which the present line began. The clock may be slewed a little since then.
    here_ns: i128,
    /// The age of the guard when the clock came to the present line. It is less, also below 0, if the clock was on the line before.
    since_ns: i128,
}

impl Lines {
    /// The clock is believed at its first offset, from the start.
    pub(super) fn new(offset_ns: i128) -> Self {
        Self { left: Vec::new(), here_ns: offset_ns, since_ns: 0 }
    }

    /// Whether a clock with this offset is back on a line that it left. It may not be ahead of the line, because such an offset was never
    /// believed. It may be behind the line by the step forward that a clock may always make.
    pub(super) fn is_return(&self, offset_ns: i128, age_ns: i128) -> bool {
        let span = -(CLOCK_GUARD.as_nanos() as i128)..=STEP_NOTICED.as_nanos() as i128;
        let mut known = self.left.iter().filter(|line| age_ns <= line.forgotten_ns());
        known.any(|line| span.contains(&(offset_ns - line.offset_ns)))
    }

    /// The clock is believed at this offset. If that is a step, the clock leaves a line, on which it was last seen at the age
    /// `seen_ns`, and comes to another.
    pub(super) fn go_on(&mut self, offset_ns: i128, seen_ns: i128, age_ns: i128) {
        if !is_step(offset_ns - self.here_ns) {
            return;
        }
        self.left.retain(|line| age_ns <= line.forgotten_ns());
        let there = self.left.iter().position(|line| !is_step(offset_ns - line.offset_ns));
        // The earlier time on this line counts too. Otherwise a glitch every minute would make the guard forget where the clock belongs.
        let held_before_ns = there.map_or(0, |at| self.left.swap_remove(at).held_ns);
        let left = Line { offset_ns: self.here_ns, held_ns: seen_ns - self.since_ns, left_ns: seen_ns };
        if self.left.len() == LINES_MAX {
            let soonest = (0..LINES_MAX).min_by_key(|&at| self.left[at].forgotten_ns());
            self.left.swap_remove(soonest.expect("there are some"));
        }
        self.left.push(left);
        (self.here_ns, self.since_ns) = (offset_ns, age_ns - held_before_ns);
    }
}
