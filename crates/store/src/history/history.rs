//! The ended tasks of one queue that are remembered.

use std::collections::VecDeque;

use tickwheel_engine::{Ended, Retention, Seq, Timestamp};

/// The last tasks of one queue that ended, at most `max` of them: those with the highest `seq`.
///
/// As long as no caller takes records out, the content depends only on the set of records that were added, never on their order or on
/// repetitions. The condition is that each change and each id ends one task. Recovery counts on this: it may add records again that a
/// checkpoint has already.
///
/// An addition of the newest record costs O(1), and all additions are of this kind except those of a recovery. A look-up costs O(log n).
#[derive(Clone, PartialEq, Debug)]
pub(super) struct History {
    /// In the order of their ends.
    ended: VecDeque<Ended>,
    max: usize,
    pub(super) keep_ms: u64,
}

/// The oldest ended task of a queue.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Oldest {
    pub(super) ended_at: Timestamp,
    /// The instant at which it is forgotten, unless newer ones push it out before.
    pub(super) forgotten_at: Timestamp,
}

/// The result of an addition.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Added {
    /// The record is remembered. If there were too many, this other one is forgotten for it.
    Kept(Option<Ended>),
    /// Nothing changed: the record was there already, or is older than all remembered ones.
    Nothing,
}

impl History {
    pub(super) fn new(limit: Retention) -> Self {
        let mut history = Self { ended: VecDeque::new(), max: 0, keep_ms: 0 };
        history.set_limit(limit);
        history
    }

    /// Sets the limit. The caller takes the records beyond it out with [`pop_beyond`](Self::pop_beyond).
    pub(super) fn set_limit(&mut self, limit: Retention) {
        self.max = usize::try_from(limit.keys).unwrap_or(usize::MAX);
        self.keep_ms = limit.keep_ms;
    }

    /// Takes out the oldest, if there are too many.
    pub(super) fn pop_beyond(&mut self) -> Option<Ended> {
        if self.ended.len() > self.max { self.ended.pop_front() } else { None }
    }

    /// Takes out the oldest.
    pub(super) fn pop_first(&mut self) -> Option<Ended> {
        self.ended.pop_front()
    }

    /// The end of the oldest, and the instant at which it is forgotten.
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

    /// The ended tasks in the order of their ends, strictly after `seq`.
    pub(super) fn after(&self, seq: Seq) -> impl Iterator<Item = &Ended> {
        let from = self.ended.partition_point(|ended| ended.seq <= seq);
        self.ended.range(from..)
    }
}
