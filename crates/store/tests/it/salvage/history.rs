//! Directories that a random life has made, and numbers for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use tickwheel_engine::{
    Batch, Body, Dead, Death, Ended, EngineState, Epoch, Key, LeaseNo, Outcome, QueueName, QueueRecord,
    Reply, Request, Rule, RuleName, Seq, StoredLease, Task, TaskEffect, Timestamp,
};
use tickwheel_store::conformance::{Owner, sample_task};
use tickwheel_store::{Disk, DiskStore, HistoryLimits, InlineIo, StoreOptions};

use crate::disk::Image;
use crate::salvage::shared::Shared;

pub(crate) const START_MS: i64 = 1_700_000_000_000;
const HOUR_MS: i64 = 3_600_000;

/// Effects of one commit at most: what one frame has.
pub(crate) const EFFECTS_MAX: usize = 4;

/// Ended tasks that are remembered of each queue: all.
pub(crate) const HISTORY: usize = 100_000;

type Store = DiskStore<Shared, InlineIo<Shared>>;

pub(crate) fn options() -> StoreOptions {
    let mut options = StoreOptions::new([5; 16]);
    options.log_file_bytes = 8 << 10;
    options.checkpoint_after_bytes = 12 << 10;
    options.segment_bytes = 2 << 10;
    options.block_bytes = 256;
    options.history = HistoryLimits::last(HISTORY);
    options
}

pub(crate) fn open<D: Disk>(disk: D) -> DiskStore<D, InlineIo<D>> {
    DiskStore::open(disk, InlineIo::new(), options()).expect("it opens")
}

/// SplitMix64: the same numbers for the same seed.
#[derive(Clone, Debug)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// The writer that makes the directory.
struct Life {
    disk: Shared,
    owner: Owner<Store>,
    rng: Rng,
    seq: u64,
    id: u64,
    wall_ms: i64,
    live: Vec<Arc<Task>>,
}

/// The directory that this seed makes: logs, segments at all levels, dead tasks, settings, a checkpoint, restarts.
pub(crate) fn directory(seed: u64) -> Image {
    let disk = Shared::default();
    let owner = Owner::acquire(open(disk.clone()));
    let mut life = Life {
        disk: disk.clone(),
        owner,
        rng: Rng(seed),
        seq: 0,
        id: 0,
        wall_ms: START_MS,
        live: Vec::new(),
    };
    for _ in 0..5 {
        (0..60).for_each(|_| life.step());
        (0..60).for_each(|_| life.commit(Batch::default()));
        life = life.again();
    }
    (0..30 + life.rng.below(30)).for_each(|_| life.step());
    if life.rng.below(2) == 0 {
        life.release();
    }
    drop(life);
    disk.image()
}

impl Life {
    fn at(&self, ahead_ms: i64) -> Timestamp {
        Timestamp::from_ms(self.wall_ms + ahead_ms).expect("after 1970")
    }

    fn commit(&mut self, batch: Batch) {
        self.wall_ms += 60_000;
        let (ownership, seq, wall) = (self.owner.acquired.ownership, Seq(self.seq), self.at(0));
        let reply = self.owner.ask(Request::Commit { ownership, seq, wall, batch });
        assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
    }

    fn release(&mut self) {
        let reply = self.owner.ask(Request::Release { ownership: self.owner.acquired.ownership });
        assert!(matches!(reply, Reply::Released), "{reply:?}");
    }

    /// Stopped or killed, and started.
    fn again(mut self) -> Self {
        if self.rng.below(2) == 0 {
            self.release();
        }
        drop(self.owner);
        let owner = Owner::acquire(open(self.disk.clone()));
        Self { owner, ..self }
    }

    /// A commit of some random effects, each of a task of its own.
    fn step(&mut self) {
        let mut batch = Batch::default();
        let mut touched = BTreeSet::new();
        for _ in 0..=self.rng.below(EFFECTS_MAX) {
            // A task may take the key of another one, and that is an effect more.
            if batch.effects.len() + batch.rules.len() + 2 > EFFECTS_MAX {
                break;
            }
            self.seq += 1;
            let some = (!self.live.is_empty()).then(|| self.rng.below(self.live.len()));
            let some = some.filter(|at| !touched.contains(&self.live[*at].id));
            let mut stored: Vec<(Arc<Task>, bool)> = Vec::new();
            match (self.rng.below(14), some) {
                (0..=2, Some(at)) => {
                    let task = self.live.remove(at);
                    touched.insert(task.id);
                    batch.effects.push(TaskEffect::Ended(self.end_of(&task)));
                }
                (3..=5, Some(at)) => stored.push((self.changed(at), true)),
                (6, Some(at)) if self.live[at].dead().is_none() => stored.push((self.put_again(at), false)),
                (7, _) if batch.rules.is_empty() => {
                    let queue = QueueName::new(["close", "mail"][self.rng.below(2)]).expect("a name");
                    let record = QueueRecord { draining: self.rng.below(2) == 0, ..QueueRecord::default() };
                    let rule = (self.rng.below(4) > 0).then(|| Arc::new(Rule::Queue(record)));
                    batch.rules.push((RuleName::Queue(queue), rule));
                }
                (8..=10, Some(at)) if self.live[at].dead().is_some() => {
                    if let Ok(other) = self.free_key(&self.live[at].clone(), &touched) {
                        stored.push((self.redriven(at), true));
                        other.into_iter().for_each(|at| stored.push((self.keyless(at), true)));
                    }
                }
                _ => {
                    let (task, other) = self.put(&touched);
                    stored.push((task, false));
                    other.into_iter().for_each(|at| stored.push((self.keyless(at), true)));
                }
            }
            for (task, body_known) in stored {
                touched.insert(task.id);
                batch.effects.push(TaskEffect::Stored { task, body_known });
            }
        }
        batch.state = Some(EngineState::from_parts((self.id / 64 + 1) * 64, 0));
        self.commit(batch);
    }

    /// Whether another task may take this one's key: no live task has it. `Ok(Some)`: it is taken from this dead one.
    fn free_key(&self, task: &Task, touched: &BTreeSet<u64>) -> Result<Option<usize>, ()> {
        let has_it = |other: &Task| {
            other.id != task.id && other.is_keyed() && other.queue == task.queue && other.key == task.key
        };
        match self.live.iter().position(|other| has_it(other)) {
            None => Ok(None),
            Some(at) if self.live[at].dead().is_some() && !touched.contains(&self.live[at].id) => {
                Ok(Some(at))
            }
            Some(_) => Err(()),
        }
    }

    /// A new task, and the dead one whose key it takes. Some keys are used again and again.
    fn put(&mut self, touched: &BTreeSet<u64>) -> (Arc<Task>, Option<usize>) {
        self.id += 1;
        let (id, rng) = (self.id, &mut self.rng);
        let shared = rng.below(4) > 0;
        let queue = if shared { "q" } else { ["close", "shop/mail", "q"][rng.below(3)] };
        let ahead = [-HOUR_MS, HOUR_MS / 2, 90 * HOUR_MS, 2_000 * HOUR_MS, 9_000 * HOUR_MS][rng.below(5)];
        let own = if rng.below(4) == 0 { id.to_string() } else { format!("order {id}") };
        let key = if shared { format!("again {}", rng.below(10)) } else { own.clone() };
        let mut task = sample_task(id, self.seq, queue, &key, self.wall_ms + ahead);
        let body = vec![id as u8; 20 + rng.below(60)];
        task.body = Arc::new(Body::bytes(body));
        if rng.below(9) == 0 {
            let until = self.at(HOUR_MS);
            task.lease = Some(StoredLease { no: LeaseNo(id), until, left_ms: id, written_in: Epoch(1) });
        }
        let other = self.free_key(&task, touched).unwrap_or_else(|()| {
            task.key = Key::new(&own).expect("a key");
            None
        });
        let task = Arc::new(task);
        self.live.push(Arc::clone(&task));
        (task, other)
    }

    /// A dead task whose key leads to another one from now on.
    fn keyless(&mut self, at: usize) -> Arc<Task> {
        self.seq += 1;
        let mut task = Task { seq: Seq(self.seq), ..(*self.live[at]).clone() };
        let dead = task.extra_mut().dead.as_mut().expect("it is dead");
        dead.keyless = true;
        self.live[at] = Arc::new(task);
        Arc::clone(&self.live[at])
    }

    /// The owner gave the task another life. It has the highest version now of all tasks that had its key.
    fn redriven(&mut self, at: usize) -> Arc<Task> {
        let seq = Seq(self.seq);
        let mut task = Task { seq, version: seq, attempts: 0, ..(*self.live[at]).clone() };
        task.extra_mut().dead = None;
        task.due_at = self.at(0);
        self.live[at] = Arc::new(task);
        Arc::clone(&self.live[at])
    }

    /// A worker had it, or it was given up: its body stays.
    fn changed(&mut self, at: usize) -> Arc<Task> {
        let mut task = Task { seq: Seq(self.seq), attempts: 1, lease: None, ..(*self.live[at]).clone() };
        if self.rng.below(3) > 0 && task.dead().is_none() {
            let (at, due_at) = (self.at(0), task.due_at);
            task.extra_mut().dead = Some(Dead { at, due_at, why: Death::MaxAttempts, keyless: false });
            task.due_at = self.at(30 * 24 * HOUR_MS);
        } else if self.rng.below(2) == 0 && task.dead().is_none() {
            // The owner moved the task.
            task.version = task.seq;
            task.due_at = task.due_at.saturating_plus_ms(HOUR_MS as u64);
        }
        self.live[at] = Arc::new(task);
        Arc::clone(&self.live[at])
    }

    /// The owner put the task anew.
    fn put_again(&mut self, at: usize) -> Arc<Task> {
        let seq = Seq(self.seq);
        let body = Arc::new(Body::bytes(vec![self.seq as u8; 30]));
        let task = Task { seq, put_seq: seq, version: seq, body, ..(*self.live[at]).clone() };
        self.live[at] = Arc::new(task);
        Arc::clone(&self.live[at])
    }

    fn end_of(&self, task: &Task) -> Ended {
        let Task { id, queue, key, .. } = task.clone();
        // Nothing is remembered of a task that was dead for too long.
        let outcome = [Outcome::Cancelled, Outcome::Done(LeaseNo(id)), Outcome::Forgotten][id as usize % 3];
        Ended { id, queue, key, seq: Seq(self.seq), at: self.at(0), outcome }
    }
}
