//! [`Hold`]: holds back what falls due after a start whose wall clock is far ahead of what was written down.

use super::{CLOCK_GUARD, GUARD_STANDS};

/// Nothing tells a clock that was set wrong from a machine that was off. So the wall clock is believed for what undoes itself, and what falls
/// due goes on from the time that was written down, until the clock has stood for [`GUARD_STANDS`] or went back.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Hold {
    /// The time that was written down (ns since the Unix epoch).
    from_ns: i128,
    /// When the clock stepped last, or the hold began (monotonic ns).
    since_ns: u64,
    /// By how much what falls due is behind the believed wall clock (ns).
    behind_ns: i128,
}

/// How a hold ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum HoldEnd {
    /// The clock has stood, and is believed.
    Stood,
    /// The clock went back to about the time that was written down.
    GoneBack,
}

impl Hold {
    /// Begins a hold at the first reading, at `mono_ns`.
    pub(super) fn new(from_ns: i128, believed_ns: i128, mono_ns: u64) -> Self {
        Self { from_ns, since_ns: mono_ns, behind_ns: (believed_ns - from_ns).max(0) }
    }

    /// Takes a reading in, in which no step is doubted. `age_ns` is the time since the first reading. Returns how the hold has ended; `None`:
    /// it goes on.
    pub(super) fn go_on(&mut self, believed_ns: i128, age_ns: i128, mono_ns: u64) -> Option<HoldEnd> {
        self.behind_ns = (believed_ns - (self.from_ns + age_ns)).max(0);
        if self.behind_ns <= CLOCK_GUARD.as_nanos() as i128 {
            return Some(HoldEnd::GoneBack);
        }
        let stood_ns = mono_ns.saturating_sub(self.since_ns);
        (u128::from(stood_ns) >= GUARD_STANDS.as_nanos()).then_some(HoldEnd::Stood)
    }

    /// Notes that the clock has stepped.
    pub(super) fn stepped(&mut self, mono_ns: u64) {
        self.since_ns = mono_ns;
    }

    /// Returns by how much what falls due is behind the believed wall clock (ns).
    pub(super) fn behind_ns(&self) -> i128 {
        self.behind_ns
    }
}
