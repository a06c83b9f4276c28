//! [`KnownKeys`]: the keys that the tasks of a shard have, so that a put of a new key asks the database nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sha2::{Digest, Sha256};
use tickwheel_engine::{Key, Population, QueueName, TaskEffect};

/// A part of the SHA-256 of a queue and a key. Two keys with the same print would be taken for one: with 10 million keys in memory and as many
/// others that ended, the probability is 1 to 10^14.
type Print = [u32; 3];

/// A page has this many keys of one queue at the most. Few in tests, which have few tasks.
pub(crate) const KEYS_PAGE: usize = if cfg!(test) { 3 } else { 4_096 };
/// A page has keys of this many queues at the most.
const PAGE_QUEUES: usize = 256;

/// How many keys the shards of a process may keep in memory together. A key takes about 24 bytes.
#[derive(Debug)]
pub(crate) struct KeyRoom {
    left: AtomicUsize,
}

impl KeyRoom {
    /// Returns a room for so many keys.
    #[must_use]
    pub(crate) const fn new(keys: usize) -> Self {
        Self { left: AtomicUsize::new(keys) }
    }

    fn has(&self, keys: usize) -> bool {
        self.left.load(Ordering::Relaxed) >= keys
    }

    /// Takes the place of one key. Returns whether there was one.
    fn take(&self) -> bool {
        let less = |left: usize| left.checked_sub(1);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    fn give_back(&self, keys: usize) {
        self.left.fetch_add(keys, Ordering::Relaxed);
    }
}

/// The keys of the tasks of a shard that are in the database: the keys of all live tasks, of dead tasks, and of some tasks that are gone.
///
/// A key that is not in it has no task. For a key that is in it, the database has to be asked. The keys are read once, in pages, and later
/// batches add and remove keys. A shard whose keys have no room in memory has none of them.
#[derive(Debug)]
pub(crate) struct KnownKeys {
    room: Arc<KeyRoom>,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// No call has asked for a key that no task has.
    Unread,
    Reading(Reading),
    Complete(BTreeSet<Print>),
    /// There is no room, or a page could not be read.
    Off,
}

#[derive(Debug)]
struct Reading {
    /// The keys that were read, and those that were put meanwhile.
    prints: BTreeSet<Print>,
    /// The queues whose keys were not read, each with the last key that was.
    left: Vec<(QueueName, String)>,
    /// The page that is being read.
    page: Vec<(QueueName, String)>,
}

impl KnownKeys {
    /// Returns the keys of a shard that was just taken. None was read.
    pub(crate) const fn unread(room: Arc<KeyRoom>) -> Self {
        Self { room, phase: Phase::Unread }
    }

    /// Whether no task of the shard has this key.
    pub(crate) fn lacks(&self, queue: &QueueName, key: &Key) -> bool {
        match &self.phase {
            Phase::Complete(prints) => !prints.contains(&print(queue.as_str(), key.as_str())),
            Phase::Unread | Phase::Reading(_) | Phase::Off => false,
        }
    }

    /// A call has asked for a key that no task has. `populations`: the numbers of tasks of all queues of the shard. Returns whether the keys are to be read now, page by page.
    pub(crate) fn asked_in_vain(&mut self, populations: &BTreeMap<QueueName, Population>) -> bool {
        if !matches!(self.phase, Phase::Unread) {
            return false;
        }
        let tasks: usize = populations.values().copied().map(tasks).sum();
        // Some more than are there, so that the keys are not given up at once.
        let begins = self.room.has(tasks.saturating_add(tasks / 4));
        self.phase = if begins {
            let left = populations.keys().map(|queue| (queue.clone(), String::new())).collect();
            Phase::Reading(Reading { prints: BTreeSet::new(), left, page: Vec::new() })
        } else {
            Phase::Off
        };
        begins
    }

    /// Returns the queues of the next page, each with the key behind which it begins. `None`: no page is wanted.
    pub(crate) fn next_page(
        &mut self,
        populations: &BTreeMap<QueueName, Population>,
    ) -> Option<Vec<(QueueName, String)>> {
        let Phase::Reading(reading) = &mut self.phase else { return None };
        let mut keys = 0;
        while let Some((queue, _)) = reading.left.last()
            && reading.page.len() < PAGE_QUEUES
        {
            keys += populations.get(queue).copied().map_or(0, tasks);
            if keys > KEYS_PAGE && !reading.page.is_empty() {
                break;
            }
            reading.page.extend(reading.left.pop());
        }
        if !reading.page.is_empty() {
            return Some(reading.page.clone());
        }
        self.phase = Phase::Complete(std::mem::take(&mut reading.prints));
        None
    }

    /// Takes in a page.
    pub(crate) fn page_came(&mut self, keys: &[(String, String)]) {
        let Phase::Reading(reading) = &mut self.phase else { return };
        let mut of_queue: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
        for (queue, key) in keys {
            let (keys, last) = of_queue.entry(queue).or_default();
            (*keys, *last) = (*keys + 1, (*last).max(key));
        }
        for (queue, _) in std::mem::take(&mut reading.page) {
            if let Some((KEYS_PAGE.., last)) = of_queue.get(queue.as_str()) {
                reading.left.push((queue, (*last).to_owned()));
            }
        }
        for (queue, key) in keys {
            self.insert(queue, key);
        }
    }

    /// Takes in the changes of a batch that was answered.
    pub(crate) fn committed(&mut self, effects: &[TaskEffect]) {
        // The ends come first: a key may go from a task that ended to another one in the same batch.
        for effect in effects {
            // A dead task that had lost its key ends with its id in the place of the key, and another task may have that key. So these keys stay:
            // a look-up too many, and some bytes until the keys are read again.
            if let TaskEffect::Ended(ended) = effect
                && ended.key.as_str() != ended.id.to_string()
            {
                self.remove(ended.queue.as_str(), ended.key.as_str());
            }
        }
        for effect in effects {
            // A dead task loses its key to another task, so its key stays.
            if let TaskEffect::Stored { task, .. } = effect
                && task.is_keyed()
            {
                self.insert(task.queue.as_str(), task.key.as_str());
            }
        }
    }

    /// Forgets the keys. They are read again after [`retry`](Self::retry).
    pub(crate) fn give_up(&mut self) {
        if let Some(prints) = self.prints() {
            let keys = prints.len();
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

    fn prints(&mut self) -> Option<&mut BTreeSet<Print>> {
        match &mut self.phase {
            Phase::Reading(Reading { prints, .. }) | Phase::Complete(prints) => Some(prints),
            Phase::Unread | Phase::Off => None,
        }
    }

    /// Adds a key, if keys are kept. If there is no room, all keys are given up.
    fn insert(&mut self, queue: &str, key: &str) {
        let print = print(queue, key);
        if let Some(prints) = self.prints()
            && prints.insert(print)
            && !self.room.take()
        {
            // It has no place that can be given back.
            self.prints().map(|prints| prints.remove(&print));
            self.give_up();
        }
    }

    fn remove(&mut self, queue: &str, key: &str) {
        let print = print(queue, key);
        if self.prints().is_some_and(|prints| prints.remove(&print)) {
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

fn print(queue: &str, key: &str) -> Print {
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
        AskInVain,
        Read,
        Come,
        Retry,
    }

    fn step() -> impl Strategy<Value = Step> {
        let at = || (0_u8..2, 0_u8..8);
        prop_oneof![
            6 => at().prop_map(|(queue, key)| Step::Put(queue, key)),
            4 => at().prop_map(|(queue, key)| Step::End(queue, key)),
            3 => any::<bool>().prop_map(Step::Keyless),
            4 => Just(Step::Commit),
            4 => Just(Step::Answer),
            2 => Just(Step::AskInVain),
            3 => Just(Step::Read),
            3 => Just(Step::Come),
            1 => Just(Step::Retry),
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
        page: Option<Vec<(QueueName, String)>>,
        read: Option<Vec<(String, String)>>,
        next_id: u64,
    }

    impl Shard {
        fn new(room: usize) -> Self {
            Self {
                keys: KnownKeys::unread(Arc::new(KeyRoom::new(room))),
                memory: Rows::new(),
                effects: BTreeMap::new(),
                database: Rows::new(),
                unanswered: None,
                answered: Rows::new(),
                page: None,
                read: None,
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
            let own = Key::new(&id.to_string()).expect("a key");
            let key = if task.is_keyed() { task.key } else { own };
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
                    }
                }
                Step::AskInVain => {
                    if self.keys.asked_in_vain(&self.populations()) {
                        self.page = self.keys.next_page(&self.populations());
                    }
                }
                Step::Read => {
                    let Some(page) = self.page.take() else { return };
                    let first = |(queue, after): (QueueName, String)| {
                        let of = self.database.values().filter(|task| task.is_keyed() && task.queue == queue);
                        let mut keys: Vec<_> = of.map(|task| task.key.as_str().to_owned()).collect();
                        keys.retain(|key| *key > after);
                        keys.sort_unstable();
                        keys.truncate(KEYS_PAGE);
                        keys.into_iter().map(move |key| (queue.as_str().to_owned(), key))
                    };
                    self.read = Some(page.into_iter().flat_map(first).collect());
                }
                Step::Come => {
                    if let Some(keys) = self.read.take() {
                        self.keys.page_came(&keys);
                        self.page = self.keys.next_page(&self.populations());
                    }
                }
                Step::Retry if self.page.is_none() && self.read.is_none() => self.keys.retry(),
                Step::Commit | Step::Retry => {}
            }
        }

        fn populations(&self) -> BTreeMap<QueueName, Population> {
            let mut populations: BTreeMap<QueueName, Population> = BTreeMap::new();
            for task in self.answered.values() {
                populations.entry(task.queue.clone()).or_default().live += 1;
            }
            populations
        }

        fn check(&self) {
            for task in self.answered.values().filter(|task| task.is_keyed()) {
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
        shard.run(Step::AskInVain);
        // More pages than one.
        let mut pages = 0;
        while shard.page.is_some() {
            [Step::Read, Step::Come].into_iter().for_each(|step| shard.run(step));
            pages += 1;
        }
        assert!(pages > 16 / KEYS_PAGE, "{pages}");
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
    }
}
