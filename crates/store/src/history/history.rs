//! [`History`]: the remembered ended tasks of one queue.

use std::collections::VecDeque;

use tickwheel_engine::{Ended, Retention, Seq, Timestamp};

/// The ended tasks of one queue with the highest `seq`, at most `max` of them.
///
/// If the limit stays and no caller takes records out, the content depends only on the set of records that were added. The order of the
/// additions, and repeated additions, make no difference. The condition is that records with the same `seq` are equal. Recovery relies on
/// this: it may add records that a checkpoint already has.
///
/// An addition of a newest record costs O(1). The addition of an older record, as in a recovery, may move up to half of the records. A
/// look-up costs O(log n).
#[derive(Clone, PartialEq, Debug)]
pub(super) struct History {
    /// The records, in rising order of `seq`.
    ended: VecDeque<Ended>,
    max: usize,
    pub(super) keep_ms: u64,
}

/// The times of the task with the lowest `seq` of a queue.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Oldest {
    pub(super) ended_at: Timestamp,
    /// The instant at which the task becomes too old. Newer tasks may push it out before.
    pub(super) forgotten_at: Timestamp,
}

/// The result of an addition.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Added {
    /// The record was added. `Some`: the history was full, and this oldest record was taken out.
    Kept(Option<Ended>),
    /// Nothing changed: the record is in the history already, or the history is full and the record is older than all others.
    Nothing,
}

impl History {
    pub(super) fn new(limit: Retention) -> Self {
        let mut history = Self { ended: VecDeque::new(), max: 0, keep_ms: 0 };
        history.set_limit(limit);
        history
    }

    /// Sets the limit, and takes no record out. The caller takes out the records beyond it with [`pop_beyond`](Self::pop_beyond).
    pub(super) fn set_limit(&mut self, limit: Retention) {
        self.max = usize::try_from(limit.keys).unwrap_or(usize::MAX);
        self.keep_ms = limit.keep_ms;
    }

    /// Takes the oldest record out if there are more than `max` records.
    pub(super) fn pop_beyond(&mut self) -> Option<Ended> {
        if self.ended.len() > self.max { self.ended.pop_front() } else { None }
    }

    /// Takes the oldest record out.
    pub(super) fn pop_first(&mut self) -> Option<Ended> {
        self.ended.pop_front()
    }

    /// Returns the times of the oldest record; `None` if there is no record.
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

    /// Returns the ended tasks with a `seq` above this one, in rising order of `seq`.
    pub(super) fn after(&self, seq: Seq) -> impl Iterator<Item = &Ended> {
        let from = self.ended.partition_point(|ended| ended.seq <= seq);
        self.ended.range(from..)
    }
}
