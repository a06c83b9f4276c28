//! A store on a simulated disk, and the model of its content.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwheel_engine::{
    Batch, Body, Ended, EngineState, LeaseNo, Outcome, Ownership, Reply, Request, RequestId, Rule, RuleName,
    Seq, ShardId, ShardStore, Task, TaskEffect, Timestamp,
};
use tickwheel_sim::disk::SimDisk;
use tickwheel_sim::rng::Rng;
use tickwheel_store::conformance::{self, sample_rule, sample_task};
use tickwheel_store::{DiskStore, HistoryLimits, InlineIo, OpenError, StoreOptions, Table};

pub(crate) type Store = DiskStore<SimDisk, InlineIo<SimDisk>>;

/// The number of ended tasks that are remembered for each queue.
const HISTORY: usize = 6;

/// Options with small files and early checkpoints, so that a few commits reach every kind of work of the store.
pub(crate) fn options() -> StoreOptions {
    let mut options = StoreOptions::new(*b"the same for all");
    options.log_file_bytes = 8 << 10;
    options.checkpoint_after_bytes = 12 << 10;
    options.background_step_bytes = 4 << 10;
    options.history = HistoryLimits::last(HISTORY);
    options.segment_bytes = 16 << 10;
    options.block_bytes = 512;
    options
}

/// The whole content of the store. Records that are not in memory are read from the disk.
pub(crate) fn contents(store: &mut Store) -> Table {
    try_contents(store).expect("it reads")
}

/// The whole content of the store, or the reason why it cannot be read.
pub(crate) fn try_contents(store: &mut Store) -> Result<Table, String> {
    conformance::contents(store, HISTORY)
}

pub(crate) fn open(disk: &SimDisk) -> Result<Store, OpenError> {
    DiskStore::open(disk.clone(), InlineIo::new(), options())
}

/// The expected content of a store, computed without its code.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Model {
    live: BTreeMap<u64, Arc<Task>>,
    ended: BTreeMap<u64, Ended>,
    ids_reserved: u64,
    /// The stored rules.
    rules: BTreeMap<RuleName, Arc<Rule>>,
    pub(crate) seq: u64,
    next_id: u64,
}

const HOUR_MS: u64 = 3_600_000;

/// The wall clock at the change `seq` (ms). It advances by 4 hours with each change, so that segments become near, are
/// used up, and are no longer needed.
fn wall_ms(seq: u64) -> i64 {
    (2_000 + seq * 4 * HOUR_MS) as i64
}

const QUEUES: [&str; 2] = ["q", "other/line"];

impl Model {
    /// A random batch that an engine could make, and the model after it.
    pub(crate) fn batch(&self, rng: &mut Rng) -> (Self, Batch) {
        let mut next = self.clone();
        let mut batch = Batch::default();
        let mut touched = Vec::new();
        for _ in 0..rng.between(1, 5) {
            next.seq += 1;
            let free = |task: &&Arc<Task>| !touched.contains(&task.id);
            let candidates: Vec<Arc<Task>> = next.live.values().filter(free).cloned().collect();
            let effect = match rng.below(4) {
                1 if !candidates.is_empty() => next.patch(&candidates[rng.index(candidates.len())], rng),
                2 | 3 if !candidates.is_empty() => next.end(&candidates[rng.index(candidates.len())], rng),
                _ => next.put(rng),
            };
            touched.push(effect.id());
            batch.effects.push(effect);
        }
        if rng.chance(20) {
            next.ids_reserved = next.next_id + 10;
            batch.state = Some(EngineState::from_parts(next.ids_reserved, 0));
        }
        if rng.chance(20) {
            let effect = if rng.chance(70) {
                sample_rule(rng.pick(&QUEUES), rng.between(1, 9))
            } else {
                (sample_rule(rng.pick(&QUEUES), 1).0, None)
            };
            match effect.clone() {
                (name, Some(rule)) => drop(next.rules.insert(name, rule)),
                (name, None) => drop(next.rules.remove(&name)),
            }
            batch.rules.push(effect);
        }
        rng.shuffle(&mut batch.effects);
        (next, batch)
    }

    fn put(&mut self, rng: &mut Rng) -> TaskEffect {
        self.next_id += 1;
        let queue = rng.pick(&QUEUES);
        // The test uses few keys, so each key is used again. A key has at most one live task.
        let key = loop {
            let key = format!("k{}", rng.below(12 + self.live.len() as u64));
            if !self.live.values().any(|task| task.queue.as_str() == queue && task.key.as_str() == key) {
                break key;
            }
        };
        let mut task = sample_task(self.next_id, self.seq, queue, &key, self.instant(rng));
        task.body = body(rng);
        self.store(task, false)
    }

    /// A due instant (ms): in the past, soon, or so far ahead that each level of segments gets some tasks.
    fn instant(&self, rng: &mut Rng) -> i64 {
        let ahead = match rng.below(5) {
            0 => return rng.below(5_000) as i64,
            1 => rng.below(HOUR_MS),
            2 => rng.below(3 * 24 * HOUR_MS),
            3 => rng.below(90 * 24 * HOUR_MS),
            _ => rng.below(400 * 24 * HOUR_MS),
        };
        wall_ms(self.seq) + ahead as i64
    }

    fn patch(&mut self, old: &Task, rng: &mut Rng) -> TaskEffect {
        let mut task = old.clone();
        task.seq = Seq(self.seq);
        let body_known = rng.chance(60);
        if body_known {
            task.attempts += 1;
            task.lease_fence = LeaseNo(rng.next_u64());
        } else {
            task.version = task.seq;
            task.put_seq = task.seq;
            task.body = body(rng);
        }
        task.due_at = Timestamp::from_ms(self.instant(rng)).expect("not negative");
        self.store(task, body_known)
    }

    fn store(&mut self, task: Task, body_known: bool) -> TaskEffect {
        let task = Arc::new(task);
        self.live.insert(task.id, Arc::clone(&task));
        TaskEffect::Stored { task, body_known }
    }

    fn end(&mut self, task: &Task, rng: &mut Rng) -> TaskEffect {
        self.live.remove(&task.id);
        let outcome =
            rng.pick(&[Outcome::Done(LeaseNo(9)), Outcome::Cancelled, Outcome::Revoked(LeaseNo(7))]);
        let ended = Ended {
            id: task.id,
            queue: task.queue.clone(),
            key: task.key.clone(),
            seq: Seq(self.seq),
            at: Timestamp::from_ms(9).expect("not negative"),
            outcome,
        };
        self.ended.insert(ended.id, ended.clone());
        let mut of_queue: Vec<(Seq, u64)> =
            self.ended.values().filter(|e| e.queue == ended.queue).map(|e| (e.seq, e.id)).collect();
        of_queue.sort_unstable();
        for (_, id) in of_queue.iter().rev().skip(HISTORY) {
            self.ended.remove(id);
        }
        TaskEffect::Ended(ended)
    }

    /// The first difference between this model and a table: what the table lacks or has in excess. `None`: they are equal.
    pub(crate) fn difference(&self, table: &Table) -> Option<String> {
        let live: BTreeMap<u64, Arc<Task>> =
            table.tasks_from(0).map(|task| (task.id, Arc::clone(task))).collect();
        let ended: BTreeMap<u64, Ended> = table.ended_after(None).map(|e| (e.id, e.clone())).collect();
        for id in self.live.keys().chain(live.keys()) {
            if self.live.get(id) != live.get(id) {
                let brief = |task: Option<&Arc<Task>>| task.map(|task| (task.seq, task.body.payload.len()));
                return Some(format!(
                    "task {id}: {:?} instead of {:?}",
                    brief(live.get(id)),
                    brief(self.live.get(id))
                ));
            }
        }
        for id in self.ended.keys().chain(ended.keys()) {
            if self.ended.get(id) != ended.get(id) {
                return Some(format!("ended {id}: {:?} instead of {:?}", ended.get(id), self.ended.get(id)));
            }
        }
        let rules: BTreeMap<_, _> = table.rules().into_iter().collect();
        if rules != self.rules {
            return Some(format!("rules {rules:?} instead of {:?}", self.rules));
        }
        let ids = table.state().parts().0;
        (ids != self.ids_reserved).then(|| format!("{ids} ids instead of {}", self.ids_reserved))
    }
}

fn body(rng: &mut Rng) -> Arc<Body> {
    let bytes = match rng.below(20) {
        0 => rng.between(8_000, 20_000),
        1..4 => rng.between(1_000, 3_000),
        _ => rng.below(200),
    };
    let payload = (0..bytes).map(|_| rng.next_u64() as u8).collect();
    Arc::new(Body { payload, content_type: "application/octet-stream".into(), ..Body::default() })
}

/// The result of a request.
#[derive(Clone, Debug)]
pub(crate) enum Came {
    Reply(Reply),
    /// The store gave no answer within 200 polls.
    Nothing,
}

/// Submits a request and polls the store, at most 200 times.
pub(crate) fn ask(store: &mut Store, request: Request) -> Came {
    store.submit(RequestId(1), request);
    let mut replies = Vec::new();
    for _ in 0..200 {
        store.poll(&mut replies);
        if let Some((_, reply)) = replies.pop() {
            assert!(replies.is_empty(), "two answers to one request");
            return Came::Reply(reply);
        }
    }
    Came::Nothing
}

pub(crate) fn acquire(store: &mut Store) -> Result<Ownership, String> {
    let wall = Timestamp::from_ms(1_000).expect("not negative");
    match ask(store, Request::Acquire { shard: ShardId::ONLY, wall }) {
        Came::Reply(Reply::Acquired(acquired)) => Ok(acquired.ownership),
        Came::Reply(Reply::Failed { why }) => Err(why),
        other => panic!("Acquire was answered {other:?}"),
    }
}

pub(crate) fn commit(store: &mut Store, ownership: Ownership, seq: u64, batch: Batch) -> Came {
    let wall = Timestamp::from_ms(wall_ms(seq)).expect("not negative");
    ask(store, Request::Commit { ownership, seq: Seq(seq), wall, batch })
}

/// Polls the store `polls` times, so that the background work goes on. No answer may come.
pub(crate) fn rest(store: &mut Store, polls: u64) {
    let mut replies = Vec::new();
    for _ in 0..polls {
        store.poll(&mut replies);
    }
    assert!(replies.is_empty(), "an answer to nothing: {replies:?}");
}
