//! Both clocks of the server over the whole run.

use std::fmt;

/// A place in the run between two changes of a clock; both clocks stand still inside it.
pub(super) type Moment = usize;

/// Every reading (monotonic ms, wall ms), in order. Looking at a span costs its length.
#[derive(Clone, Debug)]
pub(super) struct Clock(pub(super) Vec<(u64, i64)>);

impl Clock {
    pub(super) fn now(&self) -> Moment {
        self.0.len() - 1
    }

    pub(super) fn mono(&self, at: Moment) -> u64 {
        self.0[at.min(self.now())].0
    }

    /// The lowest and the highest wall instant shown in `from..=to`; a `to` in the future means until now.
    pub(super) fn walls(&self, from: Moment, to: Moment) -> (i64, i64) {
        let span = &self.0[from..=to.min(self.now()).max(from)];
        span.iter().fold((i64::MAX, i64::MIN), |(low, high), &(_, wall)| (low.min(wall), high.max(wall)))
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mono, wall) = self.0[self.now()];
        write!(out, "{mono} ms, wall {wall}")
    }
}
