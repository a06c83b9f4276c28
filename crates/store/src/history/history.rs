//! What is remembered of the tasks of one queue that ended.

use std::collections::BTreeMap;

use tickwheel_engine::{Ended, Key, Seq};

/// The last tasks of one queue that ended, at most `max` of them: those with the highest `seq`.
///
/// The content depends only on the set of records that were added, never on their order or on repetitions. Recovery
/// counts on that: it may add again what a checkpoint has already.
///
/// An addition costs O(log n).
#[derive(Clone, PartialEq, Debug)]
pub(super) struct History {
    by_seq: BTreeMap<Seq, Ended>,
    /// The newest record of each key.
    by_key: BTreeMap<Key, Seq>,
    max: usize,
}

impl History {
    pub(super) fn new(max: usize) -> Self {
        Self { by_seq: BTreeMap::new(), by_key: BTreeMap::new(), max }
    }

    /// Adds a record. Returns the one that is forgotten for it, which is the new one itself if all others are newer.
    pub(super) fn add(&mut self, ended: &Ended) -> Option<Ended> {
        self.by_seq.insert(ended.seq, ended.clone());
        let newest = self.by_key.entry(ended.key.clone()).or_insert(ended.seq);
        *newest = (*newest).max(ended.seq);
        if self.by_seq.len() <= self.max {
            return None;
        }
        let (seq, forgotten) = self.by_seq.pop_first()?;
        if self.by_key.get(&forgotten.key) == Some(&seq) {
            self.by_key.remove(&forgotten.key);
        }
        Some(forgotten)
    }

    /// The last task with this key that ended.
    pub(super) fn by_key(&self, key: &Key) -> Option<&Ended> {
        self.by_seq.get(self.by_key.get(key)?)
    }

    pub(super) fn by_seq(&self, seq: Seq) -> Option<&Ended> {
        self.by_seq.get(&seq)
    }

    /// In the order of their ends, strictly after `seq`.
    pub(super) fn after(&self, seq: Seq) -> impl Iterator<Item = &Ended> {
        self.by_seq.range(seq.next()..).map(|(_, ended)| ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwheel_engine::{Outcome, QueueName, Timestamp};

    fn ended(seq: u64, key: &str) -> Ended {
        Ended {
            id: seq,
            queue: QueueName::new("q").expect("a name"),
            key: Key::new(key).expect("a key"),
            seq: Seq(seq),
            at: Timestamp::EPOCH,
            outcome: Outcome::Done,
        }
    }

    #[test]
    fn the_content_does_not_depend_on_the_order_or_on_repetition() {
        let records = [ended(1, "a"), ended(2, "b"), ended(3, "a"), ended(4, "c"), ended(5, "a")];
        let mut forward = History::new(3);
        for record in &records {
            forward.add(record);
        }
        let mut backward = History::new(3);
        for record in records.iter().rev().chain(&records) {
            backward.add(record);
        }
        assert_eq!(forward, backward);
        assert_eq!(forward.by_seq.len(), 3);
        assert_eq!(forward.by_key(&records[0].key).map(|e| e.seq), Some(Seq(5)));
        assert_eq!(forward.by_key(&records[1].key), None, "b was forgotten");
    }

    #[test]
    fn a_record_older_than_all_others_is_forgotten_at_once() {
        let mut history = History::new(1);
        assert_eq!(history.add(&ended(7, "a")), None);
        assert_eq!(history.add(&ended(6, "b")).map(|e| e.seq), Some(Seq(6)));
        assert_eq!(history.by_key(&ended(6, "b").key), None);
        assert_eq!(history.add(&ended(8, "a")).map(|e| e.seq), Some(Seq(7)));
        assert_eq!(history.by_key(&ended(8, "a").key).map(|e| e.seq), Some(Seq(8)));
    }
}
