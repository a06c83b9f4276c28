//! [`KnownKeys`]: the keys that the tasks of a shard have, so that a put of a new key asks the database nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tickwheel_engine::{Key, Population, QueueName, TaskEffect};

use crate::database::KeyRow;
use crate::process::key_room::KeyRoom;

/// A part of the SHA-256 of a queue and a key. Two keys with the same fingerprint would be taken for one: with 10 million keys in memory and as many
/// others that ended, the probability is 1 to 10^14.
type Fingerprint = [u32; 3];

/// A page has keys of this many queues at the most.
const PAGE_QUEUES: usize = 256;

/// The keys of the tasks of a shard, live and dead, as they are in the database, and of some tasks that are gone.
///
/// A key that is not in it has no task. For a key that is in it, the database has to be asked. The keys are read once, in pages, and later
/// batches add and remove keys. A shard whose keys have no room in memory has none of them.
///
/// A key that is the decimal form of the task's own id is never in it: each task without a key of its owner has such a key, and a dead task that
/// has lost its key ends under that name. So the set says nothing about a key that is the decimal form of an id of the shard.
#[derive(Debug)]
pub(crate) struct KnownKeys {
    room: Arc<KeyRoom>,
    /// The largest number of keys of one queue in a page.
    page: usize,
    /// The number of the present reading, or of the last one.
    readings: u64,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// The keys were not read. The first look-up of a key that no task has begins the reading.
    Unread,
    Reading(Reading),
    Complete(BTreeSet<Fingerprint>),
    /// There is no room, or a page could not be read.
    Off,
}

#[derive(Debug)]
struct Reading {
    /// The keys that were read, and those that were put meanwhile.
    fingerprints: BTreeSet<Fingerprint>,
    /// The queues whose keys were not read, each with the last key that was.
    left: Vec<(QueueName, String)>,
    /// The page that is being read.
    page: Vec<(QueueName, String)>,
}

/// A page of keys that is wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KeyPage {
    /// The number of the reading.
    pub(crate) reading: u64,
    /// The queues, each with the key behind which the page begins.
    pub(crate) of: Vec<(QueueName, String)>,
    /// The largest number of keys of one queue.
    pub(crate) max: usize,
}

impl KnownKeys {
    /// Returns the keys of a shard that was just taken. None was read. `page`: the largest number of keys of one queue in a page.
    pub(crate) const fn unread(room: Arc<KeyRoom>, page: usize) -> Self {
        Self { room, page, readings: 0, phase: Phase::Unread }
    }

    /// Whether no task of the shard has this key, unless the key is the decimal form of the id of a task.
    pub(crate) fn lacks(&self, queue: &QueueName, key: &Key) -> bool {
        match &self.phase {
            Phase::Complete(fingerprints) => {
                !fingerprints.contains(&fingerprint(queue.as_str(), key.as_str()))
            }
            Phase::Unread | Phase::Reading(_) | Phase::Off => false,
        }
    }

    /// Begins to read the keys after a look-up that found nothing, unless they were read already, or have no room. `populations` has the number
    /// of tasks of each queue of the shard. Returns true if the caller has to ask for the first page.
    pub(crate) fn begin(&mut self, populations: &BTreeMap<QueueName, Population>) -> bool {
        if !matches!(self.phase, Phase::Unread) {
            return false;
        }
        let tasks: usize = populations.values().copied().map(tasks).sum();
        // Some more than are there, so that the keys are not given up at once.
        let has_room = self.room.has(tasks.saturating_add(tasks / 4));
        self.phase = if has_room {
            self.readings += 1;
            let left = populations.keys().map(|queue| (queue.clone(), String::new())).collect();
            Phase::Reading(Reading { fingerprints: BTreeSet::new(), left, page: Vec::new() })
        } else {
            Phase::Off
        };
        has_room
    }

    /// Returns the next page; `None`: none is wanted.
    pub(crate) fn next_page(&mut self, populations: &BTreeMap<QueueName, Population>) -> Option<KeyPage> {
        let Phase::Reading(reading) = &mut self.phase else { return None };
        let mut keys = 0;
        while let Some((queue, _)) = reading.left.last()
            && reading.page.len() < PAGE_QUEUES
        {
            keys += populations.get(queue).copied().map_or(0, tasks);
            if keys > self.page && !reading.page.is_empty() {
                break;
            }
            reading.page.extend(reading.left.pop());
        }
        if !reading.page.is_empty() {
            return Some(KeyPage { reading: self.readings, of: reading.page.clone(), max: self.page });
        }
        self.phase = Phase::Complete(std::mem::take(&mut reading.fingerprints));
        None
    }

    /// Whether the reading with this number goes on. A page of another one is of no use.
    pub(crate) const fn is_reading(&self, number: u64) -> bool {
        matches!(self.phase, Phase::Reading(_)) && number == self.readings
    }

    /// Takes in the page that is being read.
    pub(crate) fn page_came(&mut self, keys: &[KeyRow]) {
        let Phase::Reading(reading) = &mut self.phase else { return };
        let mut of_queue: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
        for row in keys {
            let (keys, last) = of_queue.entry(&row.queue).or_default();
            (*keys, *last) = (*keys + 1, (*last).max(&row.key));
        }
        for (queue, _) in std::mem::take(&mut reading.page) {
            if let Some((keys, last)) = of_queue.get(queue.as_str())
                && *keys >= self.page
            {
                reading.left.push((queue, (*last).to_owned()));
            }
        }
        for KeyRow { queue, key, id } in keys {
            if *key != id.to_string() {
                self.insert(queue, key);
            }
        }
    }

    /// Takes in the changes of a batch that was answered.
    pub(crate) fn committed(&mut self, effects: &[TaskEffect]) {
        if matches!(self.phase, Phase::Unread | Phase::Off) {
            return;
        }
        // The ends come first: a key may go from a task that ended to another one in the same batch.
        for effect in effects {
            if let TaskEffect::Ended(ended) = effect
                && ended.key != Key::from_id(ended.id)
            {
                self.remove(ended.queue.as_str(), ended.key.as_str());
            }
        }
        for effect in effects {
            // A dead task loses its key to another task, so its key stays.
            if let TaskEffect::Stored { task, .. } = effect
                && task.is_keyed()
                && task.key != Key::from_id(task.id)
            {
                self.insert(task.queue.as_str(), task.key.as_str());
            }
        }
    }

    /// Forgets the keys. They are read again after [`retry`](Self::retry).
    pub(crate) fn give_up(&mut self) {
        if let Some(fingerprints) = self.fingerprints() {
            let keys = fingerprints.len();
            self.room.give_back(keys);
        }
        self.phase = Phase::Off;
    }

    /// If the keys were given up, they may be read again.
    pub(crate) fn retry(&mut self) {
        if matches!(self.phase, Phase::Off) {
            self.phase = Phase::Unread;
        }
    }

    fn fingerprints(&mut self) -> Option<&mut BTreeSet<Fingerprint>> {
        match &mut self.phase {
            Phase::Reading(Reading { fingerprints, .. }) | Phase::Complete(fingerprints) => {
                Some(fingerprints)
            }
            Phase::Unread | Phase::Off => None,
        }
    }

    /// Adds a key, if keys are kept. If there is no room, all keys are given up.
    fn insert(&mut self, queue: &str, key: &str) {
        let fingerprint = fingerprint(queue, key);
        if let Some(fingerprints) = self.fingerprints()
            && fingerprints.insert(fingerprint)
            && !self.room.take()
        {
            // The room has not counted this one.
            self.fingerprints().map(|fingerprints| fingerprints.remove(&fingerprint));
            self.give_up();
        }
    }

    fn remove(&mut self, queue: &str, key: &str) {
        let fingerprint = fingerprint(queue, key);
        if self.fingerprints().is_some_and(|fingerprints| fingerprints.remove(&fingerprint)) {
            self.room.give_back(1);
        }
    }
}

impl Drop for KnownKeys {
    fn drop(&mut self) {
        self.give_up();
    }
}

fn tasks(of: Population) -> usize {
    usize::try_from(of.live.saturating_add(of.dead)).unwrap_or(usize::MAX)
}

fn fingerprint(queue: &str, key: &str) -> Fingerprint {
    // No name of a queue has a zero byte, so the two parts are apart.
    let hash = Sha256::new().chain_update(queue).chain_update([0]).chain_update(key).finalize();
    let part = |at: usize| u32::from_le_bytes([hash[at], hash[at + 1], hash[at + 2], hash[at + 3]]);
    [part(0), part(4), part(8)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tickwheel_engine::{Dead, Death, Ended, Extra, Outcome, Seq, Task, Timestamp};
    use tickwheel_store::conformance::sample_task;

    use super::*;

    type Rows = BTreeMap<u64, Task>;

    const PAGE: usize = 3;

    fn queue(number: u8) -> QueueName {
        QueueName::new(if number == 0 { "a" } else { "b" }).expect("a name")
    }

    /// The first keys are ids of tasks, too.
    fn key(number: u8) -> Key {
        Key::new(&if number < 4 { number.to_string() } else { format!("key-{number}") }).expect("a key")
    }

    fn dead(mut task: Task, keyless: bool) -> Task {
        let (at, why) = (Timestamp::EPOCH, Death::Buried);
        let dead = Dead { at, due_at: at, why, keyless };
        task.extra = Some(Box::new(Extra { dead: Some(dead), ..Extra::default() }));
        task
    }

    #[derive(Copy, Clone, Debug)]
    enum Step {
        /// A new task gets the key. A live task of the key ends, and a dead one loses it.
        Put(u8, u8),
        /// The task dies, or ends if it is dead.
        End(u8, u8),
        /// The oldest dead task without a key ends, or gets its key again if no task has it.
        Keyless(bool),
        Commit,
        Answer,
        LookUp,
        Read,
        Come,
        Retry,
        GiveUp,
    }

    fn step() -> impl Strategy<Value = Step> {
        let at = || (0_u8..2, 0_u8..8);
        prop_oneof![
            6 => at().prop_map(|(queue, key)| Step::Put(queue, key)),
            4 => at().prop_map(|(queue, key)| Step::End(queue, key)),
            3 => any::<bool>().prop_map(Step::Keyless),
            4 => Just(Step::Commit),
            4 => Just(Step::Answer),
            2 => Just(Step::LookUp),
            3 => Just(Step::Read),
            3 => Just(Step::Come),
            2 => Just(Step::Retry),
            1 => Just(Step::GiveUp),
        ]
    }

    /// A database with its owner, whose batches are answered later than they are committed.
    struct Shard {
        keys: KnownKeys,
        /// The tasks in the memory of the engine.
        memory: Rows,
        effects: BTreeMap<u64, TaskEffect>,
        database: Rows,
        /// The batch that is committed and not answered, and the tasks after it.
        unanswered: Option<(Vec<TaskEffect>, Rows)>,
        answered: Rows,
        /// Pages that were asked for, and pages that were read, with the number of batches in them.
        asked: Vec<KeyPage>,
        read: Vec<(KeyPage, Vec<KeyRow>, bool)>,
        next_id: u64,
    }

    impl Shard {
        fn new(room: usize) -> Self {
            Self {
                keys: KnownKeys::unread(Arc::new(KeyRoom::new(room)), PAGE),
                memory: Rows::new(),
                effects: BTreeMap::new(),
                database: Rows::new(),
                unanswered: None,
                answered: Rows::new(),
                asked: Vec::new(),
                read: Vec::new(),
                next_id: 0,
            }
        }

        fn store(&mut self, task: Task) {
            self.memory.insert(task.id, task.clone());
            let effect = TaskEffect::Stored { task: Arc::new(task), body_known: false };
            self.effects.insert(effect.id(), effect);
        }

        fn end(&mut self, id: u64) {
            let task = self.memory.remove(&id).expect("it is there");
            let key = if task.is_keyed() { task.key } else { Key::from_id(id) };
            let (queue, outcome) = (task.queue, Outcome::Cancelled);
            let ended = Ended { id, queue, key, seq: Seq(1), at: Timestamp::EPOCH, outcome };
            self.effects.insert(id, TaskEffect::Ended(ended));
        }

        fn of_key(&self, queue: &QueueName, key: &Key) -> Option<Task> {
            let has = |task: &&Task| task.is_keyed() && task.queue == *queue && task.key == *key;
            self.memory.values().find(has).cloned()
        }

        fn run(&mut self, step: Step) {
            match step {
                Step::Put(q, k) => {
                    let (queue, key) = (queue(q), key(k));
                    match self.of_key(&queue, &key) {
                        Some(old) if old.dead().is_some() => self.store(dead(old, true)),
                        Some(old) => self.end(old.id),
                        None => {}
                    }
                    self.next_id += 1;
                    self.store(sample_task(self.next_id, 1, queue.as_str(), key.as_str(), 1));
                }
                Step::End(q, k) => match self.of_key(&queue(q), &key(k)) {
                    Some(old) if old.dead().is_some() => self.end(old.id),
                    Some(old) => self.store(dead(old, false)),
                    None => {}
                },
                Step::Keyless(redrives) => {
                    let Some(old) = self.memory.values().find(|task| !task.is_keyed()).cloned() else {
                        return;
                    };
                    if !redrives {
                        self.end(old.id);
                    } else if self.of_key(&old.queue, &old.key).is_none() {
                        self.store(Task { extra: None, ..old });
                    }
                }
                Step::Commit if self.unanswered.is_none() => {
                    self.database = self.memory.clone();
                    let effects = std::mem::take(&mut self.effects).into_values().collect();
                    self.unanswered = Some((effects, self.database.clone()));
                }
                Step::Answer => {
                    if let Some((effects, rows)) = self.unanswered.take() {
                        self.keys.committed(&effects);
                        self.answered = rows;
                        self.read.iter_mut().for_each(|(_, _, is_early)| *is_early = false);
                    }
                }
                Step::LookUp => {
                    if self.keys.begin(&self.populations()) {
                        self.ask();
                    }
                }
                Step::Read if !self.asked.is_empty() => {
                    let page = self.asked.remove(0);
                    let first = |(queue, after): (QueueName, String)| {
                        let of = self.database.values().filter(|task| task.is_keyed() && task.queue == queue);
                        let row = |task: &Task| KeyRow {
                            queue: queue.as_str().to_owned(),
                            key: task.key.as_str().to_owned(),
                            id: task.id.cast_signed(),
                        };
                        let mut keys: Vec<_> = of.map(row).filter(|row| row.key > after).collect();
                        keys.sort_unstable_by(|a, b| a.key.cmp(&b.key));
                        keys.truncate(PAGE);
                        keys
                    };
                    let rows = page.of.iter().cloned().flat_map(first).collect();
                    self.read.push((page, rows, self.unanswered.is_some()));
                }
                // The store keeps a page back while its snapshot has a batch that was not answered.
                Step::Come if self.read.first().is_some_and(|(_, _, is_early)| !is_early) => {
                    let (page, rows, _) = self.read.remove(0);
                    if self.keys.is_reading(page.reading) {
                        self.keys.page_came(&rows);
                        self.ask();
                    }
                }
                Step::Retry => self.keys.retry(),
                Step::GiveUp => self.keys.give_up(),
                Step::Commit | Step::Read | Step::Come => {}
            }
        }

        fn ask(&mut self) {
            let page = self.keys.next_page(&self.populations());
            self.asked.extend(page);
        }

        fn populations(&self) -> BTreeMap<QueueName, Population> {
            let mut populations: BTreeMap<QueueName, Population> = BTreeMap::new();
            for task in self.answered.values() {
                populations.entry(task.queue.clone()).or_default().live += 1;
            }
            populations
        }

        fn check(&self) {
            let is_own = |task: &Task| task.key == Key::from_id(task.id);
            for task in self.answered.values().filter(|task| task.is_keyed() && !is_own(task)) {
                assert!(!self.keys.lacks(&task.queue, &task.key), "{} has {}", task.id, task.key.as_str());
            }
        }
    }

    proptest! {
        #[test]
        fn no_key_of_a_task_is_lacking(room in 0_usize..20, steps in prop::collection::vec(step(), 0..200)) {
            let mut shard = Shard::new(room);
            let all = Arc::clone(&shard.keys.room);
            for step in steps {
                shard.run(step);
                shard.check();
            }
            drop(shard);
            prop_assert!(all.has(room) && !all.has(room + 1), "all room is given back: {all:?}");
        }
    }

    #[test]
    fn a_key_whose_task_ended_is_lacking() {
        let mut shard = Shard::new(100);
        let put = |shard: &mut Shard, keys: std::ops::Range<u8>| {
            keys.for_each(|key| shard.run(Step::Put(0, key)));
            [Step::Commit, Step::Answer].into_iter().for_each(|step| shard.run(step));
        };
        put(&mut shard, 4..20);
        assert!(!shard.keys.lacks(&queue(0), &key(30)), "nothing was read");
        shard.run(Step::LookUp);
        let mut pages = 0;
        while !shard.asked.is_empty() {
            [Step::Read, Step::Come].into_iter().for_each(|step| shard.run(step));
            pages += 1;
        }
        assert!(pages > 16 / PAGE, "{pages}");
        assert!(shard.keys.lacks(&queue(0), &key(30)) && shard.keys.lacks(&queue(1), &key(4)));
        put(&mut shard, 30..31);
        assert!(!shard.keys.lacks(&queue(0), &key(30)));
        // Dead, and then ended.
        for step in [Step::End(0, 30), Step::End(0, 30), Step::Commit] {
            shard.run(step);
            assert!(!shard.keys.lacks(&queue(0), &key(30)), "the end was not answered");
        }
        shard.run(Step::Answer);
        assert!(shard.keys.lacks(&queue(0), &key(30)));
        // Tasks without a key of their owner take no room.
        let kept = shard.keys.fingerprints().expect("they were read").len();
        let task = sample_task(900, 1, "a", "900", 1);
        shard.store(task);
        [Step::Commit, Step::Answer].into_iter().for_each(|step| shard.run(step));
        assert_eq!(shard.keys.fingerprints().expect("they are still there").len(), kept);
    }

    #[test]
    fn a_page_of_an_earlier_reading_is_of_no_use() {
        let mut shard = Shard::new(100);
        let run = |shard: &mut Shard, steps: &[Step]| steps.iter().for_each(|step| shard.run(*step));
        run(&mut shard, &[Step::Put(0, 4), Step::Commit, Step::Answer, Step::LookUp, Step::Read]);
        // The page is late. Meanwhile the keys are given up, another one is put, and a new reading begins.
        run(
            &mut shard,
            &[Step::GiveUp, Step::Put(0, 5), Step::Commit, Step::Answer, Step::Retry, Step::LookUp],
        );
        run(&mut shard, &[Step::Come]);
        assert!(!shard.keys.lacks(&queue(0), &key(5)) && !shard.keys.lacks(&queue(0), &key(6)));
        run(&mut shard, &[Step::Read, Step::Come]);
        assert!(!shard.keys.lacks(&queue(0), &key(5)) && shard.keys.lacks(&queue(0), &key(6)));
    }
}
