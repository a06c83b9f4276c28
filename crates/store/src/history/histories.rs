//! [`Histories`]: the remembered ended tasks of all queues.

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use tickwheel_engine::{Ended, Key, QueueName, Retention, Seq, Timestamp};

use super::history::{Added, History, Oldest};
use super::limits::HistoryLimits;
use crate::index::{Cell, Grid, KeyHash, Naming, hash_id, id_of};

/// The ended tasks that are remembered. An id finds the task with this id. A key of a queue finds the task that ended last with it. A list
/// has all of them, in the order of (queue, seq).
///
/// An addition of a newest task costs a few look-ups in hash tables that grow in small steps, and O(log n) for n queues. An ended task
/// takes about 200 bytes of memory.
#[derive(Clone)]
pub(crate) struct Histories {
    numbers: BTreeMap<QueueName, u32>,
    /// The history of each queue, by the number of the queue.
    queues: Vec<History>,
    names: Vec<QueueName>,
    by_id: Grid<IdCell>,
    by_key: Grid<KeyCell>,
    naming: Naming,
    limits: HistoryLimits,
    /// The limits of queues that have a limit of their own.
    own: BTreeMap<QueueName, Retention>,
    /// The queues with ended tasks, each with the instant at which its oldest task becomes too old.
    by_age: BTreeSet<(Timestamp, u32)>,
    /// The queues with ended tasks, each with the instant at which its oldest task ended.
    by_end: BTreeSet<(Timestamp, u32)>,
    /// Numbers that new queues may get, because the queues that had them have no ended tasks any more.
    free: Vec<u32>,
    len: usize,
}

/// The entry of `by_id`: the last end of the task with this id.
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

/// The entry of `by_key`: the last end of a task with a key that the server did not make. Two keys may have one hash, so the record decides
/// which key the entry is for.
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
    /// Returns empty histories. Keys are hashed with `secret`, so that clients cannot choose keys whose hashes are equal.
    pub(crate) fn new(secret: [u8; 16], limits: HistoryLimits) -> Self {
        Self {
            numbers: BTreeMap::new(),
            queues: Vec::new(),
            names: Vec::new(),
            by_id: Grid::new(),
            by_key: Grid::new(),
            naming: Naming::new(secret),
            limits,
            own: BTreeMap::new(),
            by_age: BTreeSet::new(),
            by_end: BTreeSet::new(),
            free: Vec::new(),
            len: 0,
        }
    }

    /// Returns how many ended tasks are remembered.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn add(&mut self, ended: &Ended) {
        self.add_as(ended, self.naming.of_ended(ended));
    }

    /// Adds an ended task, with the hash of its key. If the queue has too many ended tasks then, forgets the one with the lowest `seq`. If
    /// all queues together have too many, forgets the one that ended first.
    pub(crate) fn add_as(&mut self, ended: &Ended, key: KeyHash) {
        let queue = self.number(&ended.queue);
        let before = self.queues[queue as usize].oldest();
        let added = self.queues[queue as usize].add(ended);
        if let Added::Kept(forgotten) = added {
            self.len += 1;
            self.point_at(ended, key, queue);
            if let Some(forgotten) = forgotten {
                self.forget(&forgotten);
            }
        }
        self.aged(queue, before);
        if self.len > self.limits.total
            && let Some(&(_, queue)) = self.by_end.first()
        {
            self.forget_oldest(queue);
        }
    }

    /// Sets the queue's own limit; `None` sets the default limit again. Forgets the oldest tasks if there are more than the limit allows.
    pub(crate) fn limit(&mut self, name: &QueueName, limit: Option<Retention>) {
        match limit {
            Some(limit) => drop(self.own.insert(name.clone(), limit)),
            None => drop(self.own.remove(name)),
        }
        let Some(&queue) = self.numbers.get(name) else { return };
        let before = self.queues[queue as usize].oldest();
        self.queues[queue as usize].set_limit(limit.unwrap_or(self.limits.queue));
        while let Some(forgotten) = self.queues[queue as usize].pop_beyond() {
            self.forget(&forgotten);
        }
        self.aged(queue, before);
    }

    /// Forgets the tasks that are too old at `now`, at most `most` of them.
    pub(crate) fn forget_until(&mut self, now: Timestamp, most: usize) {
        for _ in 0..most {
            let Some(&(_, queue)) = self.by_age.first().filter(|(at, _)| *at <= now) else { return };
            self.forget_oldest(queue);
        }
    }

    fn forget_oldest(&mut self, queue: u32) {
        let before = self.queues[queue as usize].oldest();
        if let Some(forgotten) = self.queues[queue as usize].pop_first() {
            self.forget(&forgotten);
        }
        self.aged(queue, before);
    }

    /// Updates `by_age` and `by_end` if the times of the queue's oldest task are not `before` any more. Frees the number of a queue without
    /// ended tasks.
    fn aged(&mut self, queue: u32, before: Option<Oldest>) {
        let now = self.queues[queue as usize].oldest();
        if now != before {
            if let Some(Oldest { ended_at, forgotten_at }) = before {
                self.by_age.remove(&(forgotten_at, queue));
                self.by_end.remove(&(ended_at, queue));
            }
            if let Some(Oldest { ended_at, forgotten_at }) = now {
                self.by_age.insert((forgotten_at, queue));
                self.by_end.insert((ended_at, queue));
            }
        }
        if now.is_none() {
            let name = &self.names[queue as usize];
            self.numbers.remove(name);
            self.free.push(queue);
        }
    }

    fn number(&mut self, queue: &QueueName) -> u32 {
        // `entry` is not used, because it would copy the name on each call.
        if let Some(known) = self.numbers.get(queue) {
            return *known;
        }
        let history = History::new(self.own.get(queue).copied().unwrap_or(self.limits.queue));
        let number = match self.free.pop() {
            Some(number) => {
                self.queues[number as usize] = history;
                self.names[number as usize] = queue.clone();
                number
            }
            None => {
                self.queues.push(history);
                self.names.push(queue.clone());
                u32::try_from(self.queues.len() - 1).expect("fewer than 2^32 queues")
            }
        };
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
        // A key that the server made from the id needs no entry, because the id finds the task.
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

    /// Returns the number of the change that ended the task with this id, if the task is remembered.
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

    /// Returns the remembered task of the queue with this key. If there are several, returns the one that ended last.
    pub(crate) fn by_key(&self, queue: &QueueName, key: &Key) -> Option<&Ended> {
        let history = &self.queues[*self.numbers.get(queue)? as usize];
        let KeyHash(hash) = self.naming.hash(queue, key);
        let cells = self.by_key.candidates(hash).filter(|cell| cell.hash == hash);
        let own = cells.filter_map(|cell| history.by_seq(Seq(cell.seq))).find(|ended| ended.key == *key);
        let made = id_of(key).and_then(|id| self.by_id(id));
        let made = made.filter(|ended| ended.key == *key && ended.queue == *queue);
        own.into_iter().chain(made).max_by_key(|ended| ended.seq)
    }

    /// Returns the ended tasks in the order of (queue, seq), strictly after `after`.
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
    /// Compares the ended tasks. The order in which they were added makes no difference.
    fn eq(&self, other: &Self) -> bool {
        self.after(None).eq(other.after(None))
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
    use tickwheel_engine::{LeaseNo, Outcome, Timestamp};

    fn ended(id: u64, seq: u64, queue: &str, key: &str) -> Ended {
        let (queue, key) = (QueueName::new(queue).expect("a name"), Key::new(key).expect("a key"));
        Ended { id, queue, key, seq: Seq(seq), at: Timestamp::EPOCH, outcome: Outcome::Done(LeaseNo(9)) }
    }

    fn of(per_queue: usize, records: &[Ended]) -> Histories {
        let mut histories = Histories::new([5; 16], HistoryLimits::last(per_queue));
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
    fn a_key_that_is_a_number_is_found_whichever_task_had_it() {
        let (made, own) = (ended(17, 3, "q", "17"), ended(40, 2, "q", "17"));
        assert_eq!(last(&of(9, &[made.clone(), own.clone()]), &own), Some(3));
        let later = ended(41, 9, "q", "17");
        assert_eq!(last(&of(9, &[made.clone(), own, later]), &made), Some(9));
        assert_eq!(last(&of(9, &[ended(17, 3, "other", "17")]), &made), None);
    }

    fn aged(id: u64, queue: &str, at_ms: i64) -> Ended {
        let at = Timestamp::from_ms(at_ms).expect("after 1970");
        Ended { at, ..ended(id, id, queue, &format!("k{id}")) }
    }

    fn now(ms: i64) -> Timestamp {
        Timestamp::from_ms(ms).expect("after 1970")
    }

    #[test]
    fn what_is_too_old_is_forgotten_and_names_go_with_it() {
        let queue = Retention { keep_ms: 100, keys: 5 };
        let mut histories = Histories::new([5; 16], HistoryLimits { queue, total: 1_000 });
        let records = [aged(1, "a", 10), aged(2, "b", 20), aged(3, "a", 30), aged(4, "c", 40)];
        records.iter().for_each(|record| histories.add(record));
        histories.forget_until(now(109), 10);
        assert_eq!(histories.len(), 4);
        histories.forget_until(now(125), 1);
        assert_eq!((histories.len(), histories.by_id(1)), (3, None), "one at a time");
        histories.forget_until(now(125), 10);
        assert_eq!((histories.len(), histories.numbers.len()), (2, 2));
        assert_eq!(last(&histories, &records[1]), None);
        assert_eq!(last(&histories, &records[2]), Some(3));
        // Queue `d` gets the number of an earlier queue, and the tasks of the earlier queue are not found under this number.
        histories.add(&aged(5, "d", 130));
        assert_eq!((last(&histories, &aged(5, "d", 130)), histories.queues.len()), (Some(5), 3));
        assert_eq!(histories.by_id(2), None);
        histories.forget_until(now(1_000), 10);
        assert_eq!((histories.len(), histories.by_end.len(), histories.by_age.len()), (0, 0, 0));
        assert_eq!((histories.by_id.len(), histories.by_key.len()), (0, 0));
    }

    #[test]
    fn an_owner_may_say_how_much_is_remembered() {
        let mut histories = of(100, &[]);
        let own = |keys, keep_ms| Some(Retention { keep_ms, keys });
        histories.limit(&QueueName::new("a").expect("a name"), own(2, 50));
        (1..6).for_each(|id| histories.add(&aged(id, "a", id as i64)));
        assert_eq!((histories.len(), histories.by_id(3)), (2, None));
        histories.limit(&QueueName::new("a").expect("a name"), None);
        (6..9).for_each(|id| histories.add(&aged(id, "a", id as i64)));
        assert_eq!(histories.len(), 5);
        histories.forget_until(now(1_000_000), 10);
        assert_eq!(histories.len(), 5, "for ever, unless somebody says otherwise");
        histories.limit(&QueueName::new("a").expect("a name"), own(1, 50));
        assert_eq!((histories.len(), histories.by_id(8).is_some()), (1, true));
        histories.forget_until(now(58), 10);
        assert_eq!(histories.len(), 0);
        histories.limit(&QueueName::new("b").expect("a name"), own(0, 50));
        histories.add(&aged(10, "b", 1));
        assert_eq!((histories.len(), histories.numbers.len()), (0, 0), "nothing is remembered at all");
    }

    #[test]
    fn of_all_queues_together_the_oldest_is_forgotten_first() {
        let queue = Retention { keep_ms: 1_000, keys: 100 };
        let mut histories = Histories::new([5; 16], HistoryLimits { queue, total: 3 });
        let records =
            [aged(1, "a", 10), aged(2, "b", 5), aged(3, "c", 30), aged(4, "a", 40), aged(5, "c", 50)];
        records.iter().for_each(|record| histories.add(record));
        assert_eq!(histories.len(), 3);
        let left: Vec<u64> = (1..6).filter(|id| histories.by_id(*id).is_some()).collect();
        assert_eq!(left, [3, 4, 5]);
    }

    /// Compares the histories with a simple model: a sorted set with the same tasks.
    #[test]
    fn it_knows_what_a_sorted_set_knows() {
        let (mut histories, mut state) = (Histories::new([1; 16], HistoryLimits::last(20)), 9_u64);
        let mut model: BTreeSet<(u64, String, u64, String)> = BTreeSet::new();
        for step in 0..4_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (queue, key) = (format!("q{}", state >> 62), format!("k{}", (state >> 40) % 30));
            // Most numbers rise, as the numbers of changes do. Some are numbers of old changes.
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
