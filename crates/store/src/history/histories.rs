//! The histories of all queues.

use core::fmt;
use std::collections::BTreeMap;
use std::ops::Bound;

use tickwheel_engine::{Ended, Key, QueueName, Seq};

use super::history::{Added, History};
use crate::index::{Cell, Grid, KeyHash, Naming, hash_id, id_of};

/// The last ended tasks of each queue, found by id, by key, and in the order of (queue, seq).
///
/// An addition costs O(1), and two hashed look-ups in tables that never stall to grow. One takes about 200 bytes, and a queue's name stays
/// for as long as the process lives.
#[derive(Clone)]
pub(crate) struct Histories {
    numbers: BTreeMap<QueueName, u32>,
    /// By number.
    queues: Vec<History>,
    by_id: Grid<IdCell>,
    by_key: Grid<KeyCell>,
    naming: Naming,
    per_queue: usize,
    len: usize,
}

/// The end of the task with this id.
#[derive(Copy, Clone, PartialEq, Debug)]
struct IdCell {
    id: u64,
    seq: u64,
    queue: u32,
}

impl Cell for IdCell {
    fn hash(&self) -> u64 {
        hash_id(self.id)
    }

    const EMPTY: Self = Self { id: u64::MAX, seq: u64::MAX, queue: u32::MAX };
}

/// The last end of a task with a key of its own. Two keys may have one hash: the record says which key it is.
#[derive(Copy, Clone, PartialEq, Debug)]
struct KeyCell {
    hash: u64,
    seq: u64,
}

impl Cell for KeyCell {
    fn hash(&self) -> u64 {
        self.hash
    }

    const EMPTY: Self = Self { hash: u64::MAX, seq: u64::MAX };
}

impl Histories {
    /// With the secret that keeps clients from choosing keys that collide.
    pub(crate) fn new(secret: [u8; 16], per_queue: usize) -> Self {
        Self {
            numbers: BTreeMap::new(),
            queues: Vec::new(),
            by_id: Grid::new(),
            by_key: Grid::new(),
            naming: Naming::new(secret),
            per_queue,
            len: 0,
        }
    }

    /// How many ended tasks are remembered.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn add(&mut self, ended: &Ended) {
        self.add_as(ended, self.naming.of_ended(ended));
    }

    /// The same if somebody has hashed its key already.
    pub(crate) fn add_as(&mut self, ended: &Ended, key: KeyHash) {
        let queue = self.number(&ended.queue);
        let Added::Kept(forgotten) = self.queues[queue as usize].add(ended) else { return };
        self.len += 1;
        self.point_at(ended, key, queue);
        if let Some(forgotten) = forgotten {
            self.forget(&forgotten);
        }
    }

    fn number(&mut self, queue: &QueueName) -> u32 {
        // Not `entry`: it would copy the name each time.
        if let Some(known) = self.numbers.get(queue) {
            return *known;
        }
        let number = u32::try_from(self.queues.len()).expect("fewer than 2^32 queues");
        self.queues.push(History::new(self.per_queue));
        self.numbers.insert(queue.clone(), number);
        number
    }

    fn point_at(&mut self, ended: &Ended, key: KeyHash, queue: u32) {
        let Ended { id, seq, .. } = *ended;
        match self.by_id.find_mut(hash_id(id), |cell| cell.id == id) {
            Some(cell) if cell.seq > seq.0 => {}
            Some(cell) => *cell = IdCell { id, seq: seq.0, queue },
            None => self.by_id.insert(IdCell { id, seq: seq.0, queue }),
        }
        // A key that the server made of the id is found by that.
        let KeyHash(hash) = key;
        if key == KeyHash::MADE {
            return;
        }
        let history = &self.queues[queue as usize];
        let is_its = |cell: &KeyCell| {
            cell.hash == hash && history.by_seq(Seq(cell.seq)).is_some_and(|other| other.key == ended.key)
        };
        match self.by_key.find_mut(hash, is_its) {
            Some(cell) => cell.seq = cell.seq.max(seq.0),
            None => self.by_key.insert(KeyCell { hash, seq: seq.0 }),
        }
    }

    fn forget(&mut self, forgotten: &Ended) {
        let Ended { id, seq, .. } = *forgotten;
        self.len -= 1;
        self.by_id.remove(hash_id(id), |cell| cell.id == id && cell.seq == seq.0);
        let KeyHash(hash) = self.naming.of_ended(forgotten);
        self.by_key.remove(hash, |cell| cell.hash == hash && cell.seq == seq.0);
    }

    /// The change that ended the task with this id.
    pub(crate) fn seq_of(&self, id: u64) -> Option<Seq> {
        self.cell_of(id).map(|cell| Seq(cell.seq))
    }

    pub(crate) fn by_id(&self, id: u64) -> Option<&Ended> {
        let cell = self.cell_of(id)?;
        self.queues[cell.queue as usize].by_seq(Seq(cell.seq))
    }

    fn cell_of(&self, id: u64) -> Option<&IdCell> {
        self.by_id.candidates(hash_id(id)).find(|cell| cell.id == id)
    }

    /// The last task with this key that ended.
    pub(crate) fn by_key(&self, queue: &QueueName, key: &Key) -> Option<&Ended> {
        let history = &self.queues[*self.numbers.get(queue)? as usize];
        let KeyHash(hash) = self.naming.hash(queue, key);
        let cells = self.by_key.candidates(hash).filter(|cell| cell.hash == hash);
        let own = cells.filter_map(|cell| history.by_seq(Seq(cell.seq))).find(|ended| ended.key == *key);
        let made = id_of(key).and_then(|id| self.by_id(id));
        let made = made.filter(|ended| ended.key == *key && ended.queue == *queue);
        own.into_iter().chain(made).max_by_key(|ended| ended.seq)
    }

    /// In the order of (queue, seq), strictly after `after`.
    pub(crate) fn after(&self, after: Option<&(QueueName, Seq)>) -> impl Iterator<Item = &Ended> {
        let start = match after {
            None => Bound::Unbounded,
            Some((queue, _)) => Bound::Included(queue),
        };
        let behind = move |name: &QueueName| match after {
            Some((queue, seq)) if queue == name => *seq,
            _ => Seq::ZERO,
        };
        self.numbers
            .range::<QueueName, _>((start, Bound::Unbounded))
            .flat_map(move |(name, number)| self.queues[*number as usize].after(behind(name)))
    }
}

impl PartialEq for Histories {
    /// The same ends, however they came in.
    fn eq(&self, other: &Self) -> bool {
        self.per_queue == other.per_queue && self.after(None).eq(other.after(None))
    }
}

impl fmt::Debug for Histories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.after(None)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tickwheel_engine::{Outcome, Timestamp};

    fn ended(id: u64, seq: u64, queue: &str, key: &str) -> Ended {
        let (queue, key) = (QueueName::new(queue).expect("a name"), Key::new(key).expect("a key"));
        Ended { id, queue, key, seq: Seq(seq), at: Timestamp::EPOCH, outcome: Outcome::Done }
    }

    fn of(per_queue: usize, records: &[Ended]) -> Histories {
        let mut histories = Histories::new([5; 16], per_queue);
        records.iter().for_each(|record| histories.add(record));
        histories
    }

    fn last(histories: &Histories, like: &Ended) -> Option<u64> {
        histories.by_key(&like.queue, &like.key).map(|ended| ended.seq.0)
    }

    #[test]
    fn the_content_does_not_depend_on_the_order_or_on_repetition() {
        let records = [
            ended(1, 1, "q", "a"),
            ended(2, 2, "q", "b"),
            ended(3, 3, "q", "a"),
            ended(4, 4, "q", "c"),
            ended(5, 5, "q", "a"),
        ];
        let backward: Vec<Ended> = records.iter().rev().chain(&records).cloned().collect();
        let (forward, backward) = (of(3, &records), of(3, &backward));
        assert_eq!(forward, backward);
        for histories in [forward, backward] {
            assert_eq!(histories.len(), 3);
            assert_eq!(last(&histories, &records[0]), Some(5));
            assert_eq!(last(&histories, &records[1]), None, "b was forgotten");
            assert_eq!(histories.seq_of(2), None);
            assert_eq!(histories.seq_of(4), Some(Seq(4)));
        }
    }

    #[test]
    fn a_record_older_than_all_others_is_forgotten_at_once() {
        let (new, old) = (ended(7, 7, "q", "a"), ended(6, 6, "q", "b"));
        let mut histories = of(1, &[new.clone(), old.clone()]);
        assert_eq!((last(&histories, &new), last(&histories, &old)), (Some(7), None));
        histories.add(&ended(8, 8, "q", "a"));
        assert_eq!((last(&histories, &new), histories.by_id(7), histories.len()), (Some(8), None, 1));
    }

    #[test]
    fn a_key_that_is_a_number_is_found_whoever_had_it() {
        let (made, own) = (ended(17, 3, "q", "17"), ended(40, 2, "q", "17"));
        assert_eq!(last(&of(9, &[made.clone(), own.clone()]), &own), Some(3));
        let later = ended(41, 9, "q", "17");
        assert_eq!(last(&of(9, &[made.clone(), own, later]), &made), Some(9));
        assert_eq!(last(&of(9, &[ended(17, 3, "other", "17")]), &made), None);
    }

    /// Against the plainest thing that has the same content.
    #[test]
    fn it_knows_what_a_sorted_set_knows() {
        let (mut histories, mut state) = (Histories::new([1; 16], 20), 9_u64);
        let mut model: BTreeSet<(u64, String, u64, String)> = BTreeSet::new();
        for step in 0..4_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (queue, key) = (format!("q{}", state >> 62), format!("k{}", (state >> 40) % 30));
            // Mostly rising, as changes are, and sometimes an old one.
            let seq = if step % 7 == 0 { 1 + (state >> 20) % (step + 1) } else { step + 1 };
            if model.iter().any(|known| known.0 == seq) {
                continue;
            }
            histories.add(&ended(seq, seq, &queue, &key));
            let full = model.iter().filter(|known| known.1 == queue).count() == 20;
            let oldest = model.iter().find(|known| known.1 == queue).cloned();
            match oldest {
                Some(oldest) if full && oldest.0 > seq => continue,
                Some(oldest) if full => drop(model.remove(&oldest)),
                _ => {}
            }
            model.insert((seq, queue.clone(), seq, key.clone()));
            let wanted = model.iter().rev().find(|known| known.1 == queue && known.3 == key);
            assert_eq!(last(&histories, &ended(1, 1, &queue, &key)), wanted.map(|known| known.0));
            assert_eq!(histories.len(), model.len());
        }
        for known in &model {
            assert_eq!(histories.by_id(known.2).map(|ended| ended.seq.0), Some(known.0));
        }
        assert_eq!(histories.by_key.len(), {
            let keys: BTreeSet<_> = model.iter().map(|known| (&known.1, &known.3)).collect();
            keys.len()
        });
    }
}
