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

/// How many ended tasks are forgotten with one commit: more than a commit brings on average.
const FORGOTTEN_AT_ONCE: usize = 1_024;

/// The committed state of one shard: which tasks are live and where the record of each is, the last ones that ended, the state of the
/// engine.
///
/// A live task's record is either in the *memtable*, in memory and in the log, or *far*, in a segment. Memory has two small indexes of all live
/// tasks, by id and by key; everything else of a far task is read when it is wanted. A record in a segment is live if and only if the index
/// by id says that the task is there: the tombstones of segments matter to an opening only.
///
/// The catalog makes no call to a disk. Its owner reads for it and tells it what was done.
///
/// Costs: a change O(log n) of the tasks of the memtable on average, and no reading; a far task some 23 bytes, and 17 more if its key is not made of
/// its id.
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    naming: Naming,
    ids: Ids,
    keys: Keys,
    pub(crate) memtable: Memtable,
    pub(crate) segments: Segments,
    queues: BTreeMap<QueueName, Population>,
    /// Tasks that were given up.
    dead: BTreeSet<u64>,
    /// Tasks with a lease in their record: a stop wrote the lease down.
    leased: BTreeSet<u64>,
    histories: Histories,
    state: EngineState,
    rules: Rules,
    /// How many tasks are fetched from memory together.
    ahead: usize,
}

/// The knowledge in memory of a task that is looked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Sought {
    /// Memory knows the whole answer.
    Known(Found),
    /// The task is one of these, with the spots of their records. If it is none of them, the answer is this `Found`.
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

    /// How many tasks are live.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn histories(&self) -> &Histories {
        &self.histories
    }

    pub(crate) fn state(&self) -> EngineState {
        self.state
    }

    /// Takes a state of the engine in.
    pub(crate) fn join_state(&mut self, state: EngineState) {
        self.state.join(state);
    }

    /// The rules that owners configured.
    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Takes in a change of a rule.
    pub(crate) fn apply_rule(&mut self, effect: RuleEffect) {
        self.rules.apply(effect, &mut self.histories);
    }

    /// Takes in that the time is `now`: ended tasks that are too old are forgotten, some at a time.
    pub(crate) fn forget_until(&mut self, now: Timestamp) {
        self.histories.forget_until(now, FORGOTTEN_AT_ONCE);
    }

    /// How many tasks each queue has that has any, in the order of the queues' names.
    pub(crate) fn populations(&self) -> Vec<(QueueName, Population)> {
        self.queues.iter().map(|(name, population)| (name.clone(), *population)).collect()
    }

    /// A page of what a new owner has to know, and the ids of its leased tasks.
    pub(crate) fn acquired_page(
        &self,
        after: Option<&AcquiredCursor>,
        max: usize,
    ) -> (AcquiredPage, Vec<u64>) {
        acquired::page(after, max, &self.queues, |population| *population, &self.rules, &self.leased)
    }

    /// A checkpoint of all there is has no more bytes than this.
    pub(crate) fn checkpoint_bytes(&self) -> u64 {
        // An ended task takes at most 512 bytes: names of 200 and 256 bytes, and numbers. A segment is listed in 64, may get tombstones and
        // a tail, and be a new file.
        let (segments, tombstones) =
            self.segments.iter().fold((0, 0), |(segments, tombstones), (_, segment)| {
                (segments + 1, tombstones + segment.tombstones.len() as u64)
            });
        let ended = 512 * self.histories.len() as u64;
        // The estimate of a record has its entry and its share of a block.
        self.memtable.bytes() + ended + self.rules.bytes() + 256 * segments + 10 * tombstones
    }

    /// The hash under which a task stands in the index by key.
    pub(crate) fn key_of(&self, task: &Task) -> KeyHash {
        self.naming.of(task)
    }

    /// Fetches the memory that tells whether a record of this task is live.
    pub(crate) fn touch_id(&self, id: u64) {
        self.ids.touch(id);
    }

    /// Whether this record of a segment is live.
    pub(crate) fn is_live(&self, id: u64, spot: Spot) -> bool {
        self.ids.get(id) == Some(Whereabouts::Far(spot))
    }

    /// Whether the log has the body of a task in a record that is younger than `floor`.
    pub(crate) fn has_body_in_memtable(&self, id: u64, floor: Seq) -> bool {
        matches!(self.ids.get(id), Some(Whereabouts::Memtable(slot)) if self.memtable.body_seq(slot) > floor)
    }

    /// The task with this id, if it is in the memtable.
    pub(crate) fn memtable_task(&self, id: u64) -> Option<&Arc<Task>> {
        match self.ids.get(id)? {
            Whereabouts::Memtable(slot) => Some(self.memtable.get(slot)),
            Whereabouts::Far(_) => None,
        }
    }

    /// Takes in a task's record. `body_known`: the log has its body in an earlier record, of the task in the memtable. A record that is not newer than
    /// the known record of its task changes nothing.
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
            // A change comes after the record that a checkpoint wrote, or is that very record once more.
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

    /// Takes in that a task ended.
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
        // A checkpoint may have the end already, though the task was still live in it. A task that was dead until it was forgotten must not
        // push out of the history the ended tasks that clients still ask for.
        if ended.outcome != Outcome::Forgotten {
            self.histories.add_as(ended, key);
        }
    }

    /// Takes effects in, in their order.
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

    /// Takes in that a task may have become dead, or is dead no more. With that, its key may lead to it or not.
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

    /// Takes in that a task is live that was not.
    fn welcome(&mut self, id: u64, key: KeyHash, queue: &QueueName) {
        if key != KeyHash::MADE {
            self.keys.insert(key, id);
        }
        // Not `entry`: it would copy the name each time.
        match self.queues.get_mut(queue) {
            Some(population) => population.live += 1,
            None => drop(self.queues.insert(queue.clone(), Population { live: 1, dead: 0 })),
        }
    }

    /// Takes in that a task is live no more.
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

    /// The knowledge in memory of a task that is looked for.
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

    /// Takes in a run that an opening found. Its tasks are live and far, except the records at the offsets in `dead`. The offsets are in
    /// rising order, and all of them are in this run. `Err` says which contradiction was found.
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

    /// Makes space for this many tasks, which an opening is about to bring.
    pub(crate) fn expect_tasks(&mut self, tasks: u64) {
        self.ids.reserve(tasks);
        self.keys.reserve(tasks);
    }

    /// Fetches the memory that settling these tasks will read. Several tasks wait for memory together.
    pub(crate) fn touch(&self, ids: impl Iterator<Item = u64> + Clone) {
        ids.clone().for_each(|id| self.ids.touch(id));
        for id in ids {
            if let Some(Whereabouts::Memtable(slot)) = self.ids.get(id) {
                self.memtable.touch(slot);
            }
        }
    }

    /// Takes in that a durable checkpoint wrote a record of the memtable to a segment. If the task was not changed since, it is far from now on.
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

    /// Takes in that a record was copied from one segment to another. If the task was not changed since, its record is there from now on.
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

/// The answer for a task that is not live.
fn not_live(ended: Option<&Ended>) -> Found {
    ended.map_or(Found::Absent, |ended| Found::Ended(ended.clone()))
}
