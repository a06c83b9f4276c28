//! What is remembered of the tasks of one queue that ended.

use std::collections::VecDeque;

use tickwheel_engine::{Ended, Retention, Seq, Timestamp};

/// The last tasks of one queue that ended, at most `max` of them: those with the highest `seq`.
///
/// As long as nobody takes any out, the content depends only on the set of records that were added, never on their order or on repetitions, if
/// each change and each id ends one task. Recovery counts on that: it may add again what a checkpoint has already.
///
/// An addition costs O(1) if it is the newest, as all are but those of a recovery; a look-up O(log n).
#[derive(Clone, PartialEq, Debug)]
pub(super) struct History {
    /// In the order of their ends.
    ended: VecDeque<Ended>,
    max: usize,
    pub(super) keep_ms: u64,
}

/// The oldest of a queue.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Oldest {
    pub(super) ended_at: Timestamp,
    /// If nobody else pushes it out before.
    pub(super) forgotten_at: Timestamp,
}

/// What an addition came to.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Added {
    /// It is remembered, and if there were too many, this one is forgotten for it.
    Kept(Option<Ended>),
    /// Nothing changed: it was there already, or is older than all that are remembered.
    Nothing,
}

impl History {
    pub(super) fn new(limit: Retention) -> Self {
        let mut history = Self { ended: VecDeque::new(), max: 0, keep_ms: 0 };
        history.set_limit(limit);
        history
    }

    /// What goes beyond it is to be taken out with [`pop_beyond`](Self::pop_beyond).
    pub(super) fn set_limit(&mut self, limit: Retention) {
        self.max = usize::try_from(limit.keys).unwrap_or(usize::MAX);
        self.keep_ms = limit.keep_ms;
    }

    /// The oldest, if there are too many.
    pub(super) fn pop_beyond(&mut self) -> Option<Ended> {
        if self.ended.len() > self.max { self.ended.pop_front() } else { None }
    }

    /// The oldest.
    pub(super) fn pop_first(&mut self) -> Option<Ended> {
        self.ended.pop_front()
    }

    /// What there is to say of the oldest.
    pub(super) fn oldest(&self) -> Option<Oldest> {
        let of = |ended: &Ended| Oldest {
            ended_at: ended.at,
            forgotten_at: ended.at.saturating_plus_ms(self.keep_ms),
        };
        self.ended.front().map(of)
    }

    pub(super) fn add(&mut self, ended: &Ended) -> Added {
        let place = match self.ended.back() {
            Some(newest) if newest.seq >= ended.seq => match self.find(ended.seq) {
                Ok(_) => return Added::Nothing,
                Err(place) => place,
            },
            _ => self.ended.len(),
        };
        let full = self.ended.len() >= self.max;
        if full && place == 0 {
            return Added::Nothing;
        }
        self.ended.insert(place, ended.clone());
        Added::Kept(if full { self.ended.pop_front() } else { None })
    }

    fn find(&self, seq: Seq) -> Result<usize, usize> {
        self.ended.binary_search_by_key(&seq, |ended| ended.seq)
    }

    pub(super) fn by_seq(&self, seq: Seq) -> Option<&Ended> {
        self.ended.get(self.find(seq).ok()?)
    }

    /// In the order of their ends, strictly after `seq`.
    pub(super) fn after(&self, seq: Seq) -> impl Iterator<Item = &Ended> {
        let from = self.ended.partition_point(|ended| ended.seq <= seq);
        self.ended.range(from..)
    }
}
