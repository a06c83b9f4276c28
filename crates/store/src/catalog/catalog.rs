//! The catalog of one shard.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tickwheel_engine::{
    AcquiredCursor, AcquiredPage, Ended, EngineState, Found, Key, Outcome, Population, QueueName, RuleEffect,
    Seq, Task, TaskEffect, Timestamp, Wanted,
};

use super::memtable::Memtable;
use super::segments::Segments;
use crate::acquired;
use crate::bounds::Bounds;
use crate::history::{Histories, HistoryLimits};
use crate::index::{Ids, KeyHash, Keys, Naming, Spot, Whereabouts, id_of};
use crate::rules::Rules;
use crate::segment::Footer;

/// At most this many ended tasks are forgotten with one commit. A commit brings fewer ended tasks on average, so old ones do not pile up.
const FORGOTTEN_AT_ONCE: usize = 1_024;

/// The committed state of one shard: the tasks that have not ended and where the record of each is, the last tasks that ended, the rules,
/// and the state of the engine.
///
/// The record of a task is either in the *memtable*, in memory and in the log, or *far*, in a segment. Memory has two small indexes of the
/// tasks that have not ended: all of them by id, and by key those that are not found by their id alone. Everything else of a far task is
/// read from its record when it is needed. A record in a segment is live if and only if the index by id has this record's place. Only an
/// opening needs the tombstones of segments.
///
/// The catalog makes no disk calls. Its owner makes the calls, and tells the catalog what was done.
///
/// Costs: a change takes O(log n) time on average for n tasks in the memtable, and reads nothing from the disk. A far task takes about 23
/// bytes of memory, and 17 more if its key is not made of its id.
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    naming: Naming,
    ids: Ids,
    keys: Keys,
    pub(crate) memtable: Memtable,
    pub(crate) segments: Segments,
    queues: BTreeMap<QueueName, Population>,
    /// Ids of the tasks that were given up.
    dead: BTreeSet<u64>,
    /// Ids of the tasks with a lease in their record. A stop wrote the lease down.
    leased: BTreeSet<u64>,
    histories: Histories,
    state: EngineState,
    rules: Rules,
    /// Number of tasks that are fetched from memory together, so that their waits for memory overlap.
    ahead: usize,
}

/// The result of a look-up of a task in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Sought {
    /// Memory knows the whole answer.
    Known(Found),
    /// The task may be one of the listed far tasks: their ids, and the spots of their records. If the task is none of the listed ones, the
    /// answer is the `Found` of this variant.
    Far(Vec<(u64, Spot)>, Found),
}

impl Catalog {
    pub(crate) fn new(secret: [u8; 16], history: HistoryLimits, bounds: &Bounds) -> Self {
        Self {
            naming: Naming::new(secret),
            ids: Ids::new(),
            keys: Keys::new(),
            memtable: Memtable::new(bounds.memtable_tail),
            segments: Segments::default(),
            queues: BTreeMap::new(),
            dead: BTreeSet::new(),
            leased: BTreeSet::new(),
            histories: Histories::new(secret, history),
            state: EngineState::default(),
            rules: Rules::default(),
            ahead: bounds.tasks_ahead,
        }
    }

    /// Returns the number of tasks that have not ended, live and dead.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn histories(&self) -> &Histories {
        &self.histories
    }

    pub(crate) fn state(&self) -> EngineState {
        self.state
    }

    /// Adds a state of the engine to the state that the catalog has.
    pub(crate) fn join_state(&mut self, state: EngineState) {
        self.state.join(state);
    }

    /// Returns the rules that owners configured.
    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Takes in a change of a rule.
    pub(crate) fn apply_rule(&mut self, effect: RuleEffect) {
        self.rules.apply(effect, &mut self.histories);
    }

    /// Forgets ended tasks that are too old at the time `now`, a bounded number of them.
    pub(crate) fn forget_until(&mut self, now: Timestamp) {
        self.histories.forget_until(now, FORGOTTEN_AT_ONCE);
    }

    /// Returns how many tasks each queue has, in the order of the queues' names. Queues without tasks are left out.
    pub(crate) fn populations(&self) -> Vec<(QueueName, Population)> {
        self.queues.iter().map(|(name, population)| (name.clone(), *population)).collect()
    }

    /// Returns a page of what a new owner has to know, and the ids of the leased tasks of this page.
    pub(crate) fn acquired_page(
        &self,
        after: Option<&AcquiredCursor>,
        max: usize,
    ) -> (AcquiredPage, Vec<u64>) {
        acquired::page(after, max, &self.queues, |population| *population, &self.rules, &self.leased)
    }

    /// Returns an upper limit for the bytes of a checkpoint of the whole catalog.
    pub(crate) fn checkpoint_bytes(&self) -> u64 {
        // An ended task takes at most 512 bytes: names of 200 and 256 bytes, and numbers. A segment counts 256 bytes: its entry in the list
        // takes 64, and the segment may get tombstones and a tail, and be a new file.
        let (segments, tombstones) =
            self.segments.iter().fold((0, 0), |(segments, tombstones), (_, segment)| {
                (segments + 1, tombstones + segment.tombstones.len() as u64)
            });
        let ended = 512 * self.histories.len() as u64;
        // The memtable's estimate of a record's bytes includes the index entry of the record and its share of a block.
        self.memtable.bytes() + ended + self.rules.bytes() + 256 * segments + 10 * tombstones
    }

    /// Returns the hash under which the index by key has a task; [`KeyHash::MADE`] if the task is not in that index.
    pub(crate) fn key_of(&self, task: &Task) -> KeyHash {
        self.naming.of(task)
    }

    /// Loads into the processor's cache the memory that [`is_live`](Self::is_live) reads for this task.
    pub(crate) fn touch_id(&self, id: u64) {
        self.ids.touch(id);
    }

    /// Whether the record at this spot of a segment is the live record of the task.
    pub(crate) fn is_live(&self, id: u64, spot: Spot) -> bool {
        self.ids.get(id) == Some(Whereabouts::Far(spot))
    }

    /// Whether a task is in the memtable, and the log record that has its body is newer than `floor`.
    pub(crate) fn has_body_in_memtable(&self, id: u64, floor: Seq) -> bool {
        matches!(self.ids.get(id), Some(Whereabouts::Memtable(slot)) if self.memtable.body_seq(slot) > floor)
    }

    /// Returns the task with this id, if it is in the memtable.
    pub(crate) fn memtable_task(&self, id: u64) -> Option<&Arc<Task>> {
        match self.ids.get(id)? {
            Whereabouts::Memtable(slot) => Some(self.memtable.get(slot)),
            Whereabouts::Far(_) => None,
        }
    }

    /// Takes in a task's record. `body_known`: an earlier record of the task in the log has the body, and the memtable has the task. A
    /// record changes nothing if the memtable has a record of the task that is as new or newer, or if the history has an end of the task
    /// that is as new or newer.
    pub(crate) fn store(&mut self, task: &Arc<Task>, body_known: bool) {
        self.store_as(task, body_known, self.naming.of(task));
    }

    fn store_as(&mut self, task: &Arc<Task>, body_known: bool, key: KeyHash) {
        match self.ids.get(task.id) {
            Some(Whereabouts::Memtable(slot)) => {
                if self.memtable.seq(slot) >= task.seq {
                    return;
                }
                let body_seq = if body_known { self.memtable.body_seq(slot) } else { task.seq };
                self.memtable.replace(slot, Arc::clone(task), body_seq);
            }
            // The new record of a far task is newer than the record in the segment, or is the same record once more.
            Some(Whereabouts::Far(spot)) => {
                self.segments.bury(spot);
                let slot = self.memtable.insert(Arc::clone(task), task.seq);
                self.ids.set(task.id, Whereabouts::Memtable(slot));
            }
            None => {
                if self.histories.seq_of(task.id).is_some_and(|seq| seq >= task.seq) {
                    return;
                }
                self.welcome(task.id, key, &task.queue);
                let slot = self.memtable.insert(Arc::clone(task), task.seq);
                self.ids.add(task.id, Whereabouts::Memtable(slot));
            }
        }
        self.note_death(task);
        match task.lease {
            Some(_) => self.leased.insert(task.id),
            None => self.leased.remove(&task.id),
        };
    }

    /// Takes in that a task ended. A newer record of the task in the memtable stays.
    pub(crate) fn end(&mut self, ended: &Ended) {
        self.end_as(ended, self.naming.of_ended(ended));
    }

    fn end_as(&mut self, ended: &Ended, key: KeyHash) {
        match self.ids.get(ended.id) {
            Some(Whereabouts::Memtable(slot)) if self.memtable.seq(slot) >= ended.seq => return,
            Some(at) => {
                self.ids.remove(ended.id);
                self.part(ended.id, &ended.queue, key);
                match at {
                    Whereabouts::Memtable(slot) => drop(self.memtable.remove(slot)),
                    Whereabouts::Far(spot) => self.segments.bury(spot),
                }
            }
            None => {}
        }
        // The history may have the end already, from a checkpoint that still has the task as live. The end of a dead task that was
        // forgotten is not added, because it would take the place of an end for which clients still ask.
        if ended.outcome != Outcome::Forgotten {
            self.histories.add_as(ended, key);
        }
    }

    /// Applies the effects to the catalog, in their order.
    pub(crate) fn apply(&mut self, effects: &[TaskEffect]) {
        let mut keys = Vec::with_capacity(self.ahead.min(effects.len()));
        for part in effects.chunks(self.ahead) {
            keys.extend(part.iter().map(|effect| match effect {
                TaskEffect::Stored { task, .. } => self.naming.of(task),
                TaskEffect::Ended(ended) => self.naming.of_ended(ended),
            }));
            part.iter().for_each(|effect| self.ids.touch(effect.id()));
            keys.iter().for_each(|key| self.keys.touch(*key));
            for (effect, key) in part.iter().zip(keys.drain(..)) {
                match effect {
                    TaskEffect::Stored { task, body_known } => self.store_as(task, *body_known, key),
                    TaskEffect::Ended(ended) => self.end_as(ended, key),
                }
            }
        }
    }

    /// Updates the catalog after a change with which a task may have died, lost its key or come to life again: the index by key, and the
    /// counts of the task's queue.
    fn note_death(&mut self, task: &Task) {
        let is_dead = task.dead().is_some();
        let was_dead = self.dead.contains(&task.id);
        if !is_dead && !was_dead {
            return;
        }
        let key = self.naming.of_keyed(task);
        if key != KeyHash::MADE {
            self.keys.remove(key, task.id);
            if task.is_keyed() {
                self.keys.insert(key, task.id);
            }
        }
        if is_dead != was_dead {
            let population = self.queues.get_mut(&task.queue).expect("it has this task");
            if is_dead {
                population.live -= 1;
                population.dead += 1;
                self.dead.insert(task.id);
            } else {
                population.live += 1;
                population.dead -= 1;
                self.dead.remove(&task.id);
            }
        }
    }

    /// Adds a new live task to the index by key and to the count of its queue.
    fn welcome(&mut self, id: u64, key: KeyHash, queue: &QueueName) {
        if key != KeyHash::MADE {
            self.keys.insert(key, id);
        }
        // `BTreeMap::entry` is not used, because it would need a copy of the name each time.
        match self.queues.get_mut(queue) {
            Some(population) => population.live += 1,
            None => drop(self.queues.insert(queue.clone(), Population { live: 1, dead: 0 })),
        }
    }

    /// Removes a task that has ended from the index by key, from the sets of dead and leased tasks, and from the count of its queue.
    fn part(&mut self, id: u64, queue: &QueueName, key: KeyHash) {
        if key != KeyHash::MADE {
            self.keys.remove(key, id);
        }
        self.leased.remove(&id);
        let was_dead = self.dead.remove(&id);
        if let Some(population) = self.queues.get_mut(queue) {
            *(if was_dead { &mut population.dead } else { &mut population.live }) -= 1;
            if *population == Population::default() {
                self.queues.remove(queue);
            }
        }
    }

    /// Looks a task up in memory. Returns the answer, or the spots of the records that have to be read.
    pub(crate) fn seek(&self, wanted: &Wanted) -> Sought {
        match wanted {
            Wanted::Id(id) => match self.ids.get(*id) {
                Some(Whereabouts::Memtable(slot)) => {
                    Sought::Known(Found::Live(Arc::clone(self.memtable.get(slot))))
                }
                Some(Whereabouts::Far(spot)) => Sought::Far(vec![(*id, spot)], Found::Absent),
                None => Sought::Known(not_live(self.histories.by_id(*id))),
            },
            Wanted::Key(queue, key) => self.seek_key(queue, key),
        }
    }

    fn seek_key(&self, queue: &QueueName, key: &Key) -> Sought {
        let mut spots = Vec::new();
        let own = self.keys.candidates(self.naming.hash(queue, key));
        for id in own.into_iter().chain(id_of(key)) {
            match self.ids.get(id) {
                Some(Whereabouts::Memtable(slot)) => {
                    let task = self.memtable.get(slot);
                    if task.key == *key && task.queue == *queue && task.is_keyed() {
                        return Sought::Known(Found::Live(Arc::clone(task)));
                    }
                }
                Some(Whereabouts::Far(spot)) => spots.push((id, spot)),
                None => {}
            }
        }
        let ended = not_live(self.histories.by_key(queue, key));
        if spots.is_empty() { Sought::Known(ended) } else { Sought::Far(spots, ended) }
    }

    /// Takes in a run that an opening found. The records of the run are live, except the records at the offsets (bytes) in `dead`. The
    /// offsets are in rising order, and all of them are in this run. `Err` says which contradiction was found.
    pub(crate) fn load_run(
        &mut self,
        segment: u32,
        start: u64,
        footer: &Footer,
        dead: &mut impl Iterator<Item = u64>,
    ) -> Result<(), String> {
        let mut next_dead = dead.next();
        let mut found = vec![Population::default(); footer.queues.len()];
        for entry in &footer.entries {
            let spot = Spot { segment, offset: start + u64::from(entry.at) };
            if next_dead == Some(spot.offset) {
                self.segments.get_mut(segment).bury_silently(spot.offset);
                next_dead = dead.next();
                continue;
            }
            if self.ids.set(entry.id, Whereabouts::Far(spot)).is_some() {
                return Err(format!("task {} is in another run too", entry.id));
            }
            if entry.key != KeyHash::MADE {
                self.keys.insert(entry.key, entry.id);
            }
            if entry.leased {
                self.leased.insert(entry.id);
            }
            let population = &mut found[entry.queue as usize];
            if entry.dead {
                self.dead.insert(entry.id);
                population.dead += 1;
            } else {
                population.live += 1;
            }
        }
        if let Some(offset) = next_dead {
            return Err(format!("the tombstone of byte {offset} stands for no record"));
        }
        for (queue, found) in footer.queues.iter().zip(found) {
            if found != Population::default() {
                let population = self.queues.entry(queue.clone()).or_default();
                population.live += found.live;
                population.dead += found.dead;
            }
        }
        Ok(())
    }

    /// Makes space for this many tasks, which an opening is about to load.
    pub(crate) fn expect_tasks(&mut self, tasks: u64) {
        self.ids.reserve(tasks);
        self.keys.reserve(tasks);
    }

    /// Loads into the processor's cache the memory that [`settle`](Self::settle) reads for these tasks, so that their waits for memory
    /// overlap.
    pub(crate) fn touch(&self, ids: impl Iterator<Item = u64> + Clone) {
        ids.clone().for_each(|id| self.ids.touch(id));
        for id in ids {
            if let Some(Whereabouts::Memtable(slot)) = self.ids.get(id) {
                self.memtable.touch(slot);
            }
        }
    }

    /// Takes in that a durable checkpoint wrote a record of the memtable to `spot`. If the task was not changed after `cut`, the task
    /// becomes far. Otherwise the record at `spot` is dead.
    pub(crate) fn settle(&mut self, id: u64, cut: Seq, spot: Spot) {
        let Self { ids, memtable, segments, .. } = self;
        let is_far = ids.change(id, |at| match at {
            Whereabouts::Memtable(slot) if memtable.seq(slot) <= cut => {
                memtable.remove(slot);
                Some(Whereabouts::Far(spot))
            }
            Whereabouts::Memtable(_) | Whereabouts::Far(_) => None,
        });
        if !is_far {
            segments.bury(spot);
        }
    }

    /// Takes in that a record was copied from the segment `from` to the spot `to`. If the task was not changed since, the copy becomes its
    /// live record. Otherwise the copy is dead.
    pub(crate) fn move_record(&mut self, id: u64, from: u32, to: Spot) {
        match self.ids.get(id) {
            Some(Whereabouts::Far(spot)) if spot.segment == from => {
                self.ids.set(id, Whereabouts::Far(to));
                self.segments.get_mut(from).bury_silently(spot.offset);
            }
            Some(_) | None => self.segments.bury(to),
        }
    }
}

/// Returns the answer for a task that is not in the index by id: its end, if the history has it.
fn not_live(ended: Option<&Ended>) -> Found {
    ended.map_or(Found::Absent, |ended| Found::Ended(ended.clone()))
}
