//! [`Workload`]: what the clients call, and when.

use std::collections::{BTreeMap, BTreeSet};

use tickwheel_queue::{QueueName, Router};

use super::plan::Plan;
use super::rows::{RowAct, UserRow};
use crate::oracle::{Call, CallId, Delivery, Due, Mode, Verb};
use crate::rng::Rng;

/// The times from now at which tasks are due (ms).
const DUES_MS: [i64; 8] = [0, 0, 3, 50, 500, 3_000, 3_000, 25_000];
/// The lengths of leases (ms).
const LEASES_MS: [u64; 3] = [40, 1_000, 20_000];

#[derive(Debug)]
pub(super) struct Workload {
    rng: Rng,
    shards: u32,
    keys: u64,
    delay_percent: u64,
    think_ns: u64,
    /// When each client makes its next call (simulated, ns); `None`: it waits for an answer.
    clients: Vec<Option<u64>>,
    waits: BTreeMap<CallId, (usize, Option<(String, String)>)>,
    /// Keys with an open call: at most one call of a key is open.
    busy: BTreeSet<(String, String)>,
    /// Leases that clients have: the queue, the key and the token.
    tokens: Vec<(String, String, String)>,
    puts: u64,
    rows: u64,
    /// When a user writes the next row of the inbox (simulated, ns), and the longest time between two rows (ns).
    next_row_ns: u64,
    row_think_ns: Option<u64>,
    latest_due_ms: i64,
    rests: bool,
    queues: Vec<String>,
}

impl Workload {
    pub(super) fn new(plan: &Plan, mut rng: Rng) -> Self {
        Self {
            clients: (0..plan.clients).map(|_| Some(rng.below(plan.think_ns))).collect(),
            shards: plan.shards,
            keys: plan.keys,
            delay_percent: plan.delay_percent,
            think_ns: plan.think_ns,
            waits: BTreeMap::new(),
            busy: BTreeSet::new(),
            tokens: Vec::new(),
            puts: 0,
            rows: 0,
            next_row_ns: plan.row_think_ns.map_or(u64::MAX, |think_ns| rng.below(think_ns)),
            row_think_ns: plan.row_think_ns,
            queues: (0..plan.shards).map(|shard| plan.queues(shard).remove(0)).collect(),
            rng,
            latest_due_ms: 0,
            rests: false,
        }
    }

    pub(super) fn next_ns(&self) -> u64 {
        let calls = self.clients.iter().flatten().copied().min().unwrap_or(u64::MAX);
        if self.rests { u64::MAX } else { calls.min(self.next_row_ns) }
    }

    /// Returns a client that wants to make a call now.
    pub(super) fn due(&self, now_ns: u64) -> Option<usize> {
        let is_due = |next: &Option<u64>| next.is_some_and(|at_ns| at_ns <= now_ns);
        if self.rests { None } else { self.clients.iter().position(is_due) }
    }

    /// Draws the next call of a client, and returns its shard.
    pub(super) fn call(&mut self, _client: usize, wall_ms: i64) -> (u32, Call) {
        let kind = self.rng.below(12);
        if kind < 3 && !self.tokens.is_empty() {
            let index = self.rng.index(self.tokens.len());
            let (queue, key, _) = &self.tokens[index];
            if !self.busy.contains(&(queue.clone(), key.clone())) {
                let (queue, key, token) = self.tokens.swap_remove(index);
                return (
                    self.shard_of(&queue),
                    Call { queue, key: Some(key), verb: Verb::Ack { tokens: vec![token] } },
                );
            }
        }
        let shard = u32::try_from(self.rng.below(self.shards.into())).expect("few shards");
        let queue = self.queues[shard as usize].clone();
        let key = format!("k{}", self.rng.below(self.keys));
        if kind < 5 || self.busy.contains(&(queue.clone(), key.clone())) {
            let max = self.rng.pick(&[1, 3, 10]);
            let lease_ms = self.rng.pick(&LEASES_MS);
            return (shard, Call { queue, key: None, verb: Verb::Lease { max, lease_ms } });
        }
        let in_ms = self.rng.pick(&DUES_MS);
        let due_ms = wall_ms + in_ms;
        let is_delay = self.delay_percent > 0 && self.rng.chance(self.delay_percent);
        let due = Some(if is_delay { Due::In(in_ms.unsigned_abs()) } else { Due::At(due_ms) });
        let revoke = self.rng.chance(30);
        let verb = match kind {
            5..8 => {
                self.puts += 1;
                self.latest_due_ms = self.latest_due_ms.max(due_ms);
                // An even number, because an odd one has a long payload.
                let payload = 2 * self.puts;
                Verb::Put { due, payload, mode: Mode::Upsert, if_match: None, revoke: false }
            }
            8 => {
                self.latest_due_ms = self.latest_due_ms.max(due_ms);
                Verb::Patch { due, payload: None, if_match: None, revoke: false }
            }
            9 => Verb::Cancel { if_match: None, revoke },
            _ => Verb::Get,
        };
        (shard, Call { queue, key: Some(key), verb })
    }

    pub(super) fn began(&mut self, client: usize, id: CallId, call: &Call) {
        self.clients[client] = None;
        let place = call.key.clone().map(|key| (call.queue.clone(), key));
        self.busy.extend(place.clone());
        self.waits.insert(id, (client, place));
    }

    /// A call was answered or lost.
    pub(super) fn ended(&mut self, id: CallId, now_ns: u64) {
        if let Some((client, place)) = self.waits.remove(&id) {
            if let Some(place) = place {
                self.busy.remove(&place);
            }
            self.clients[client] = Some(now_ns + 1 + self.rng.below(self.think_ns));
        }
    }

    /// No node took the call.
    pub(super) fn refused(&mut self, client: usize, now_ns: u64) {
        self.clients[client] = Some(now_ns + 50_000_000 + self.rng.below(self.think_ns));
    }

    pub(super) fn got(&mut self, queue: &str, one: &Delivery) {
        if !self.rests && self.rng.chance(20) {
            // The worker dies.
            return;
        }
        self.tokens.push((queue.to_owned(), one.key.clone(), one.token.clone()));
    }

    /// Makes no more calls by itself.
    pub(super) fn rest(&mut self) {
        self.rests = true;
        self.tokens.clear();
    }

    /// Returns the ack of a lease.
    pub(super) fn ack_one(&mut self) -> Option<(u32, Call)> {
        let (queue, key, token) = self.tokens.pop()?;
        Some((self.shard_of(&queue), Call { queue, key: Some(key), verb: Verb::Ack { tokens: vec![token] } }))
    }

    /// Returns the latest due time that a call has named, by the clock of the database at the call (ms). A delay may have been counted by a clock
    /// that was ahead.
    pub(super) fn latest_due_ms(&self) -> i64 {
        self.latest_due_ms
    }

    pub(super) fn is_row_due(&self, now_ns: u64) -> bool {
        !self.rests && self.next_row_ns <= now_ns
    }

    /// Draws the next row of the inbox.
    pub(super) fn row(&mut self, now_ns: u64, wall_ms: i64) -> UserRow {
        let think_ns = self.row_think_ns.unwrap_or(u64::MAX);
        self.next_row_ns = now_ns + 1 + self.rng.below(think_ns);
        let shard = u32::try_from(self.rng.below(self.shards.into())).expect("few shards");
        // A put of a key with an odd number has a trace context, and a row has none.
        let key = format!("k{}", 2 * self.rng.below(self.keys.div_ceil(2)));
        let due_ms = wall_ms + self.rng.pick(&DUES_MS);
        let act = match self.rng.below(20) {
            0 => RowAct::Nonsense,
            1..5 => RowAct::Cancel,
            _ => {
                self.rows += 1;
                self.latest_due_ms = self.latest_due_ms.max(due_ms);
                // A number with which a task has no tag, no group and no priority, because a row has none.
                RowAct::Put(2 * (24 * (1_000 + self.rows) + 2), due_ms)
            }
        };
        let longest_ns = self.rng.pick(&[1, 20, 300, 3_000]) * 1_000_000;
        UserRow {
            shard,
            queue: self.queues[shard as usize].clone(),
            key,
            act,
            lasts_ns: self.rng.below(longest_ns),
            commits: self.rng.chance(85),
        }
    }

    /// Whether a call of the key is open that began no later than `latest`.
    pub(super) fn waits_for(&self, place: &(String, String), latest: CallId) -> bool {
        self.waits.range(..=latest).any(|(_, (_, of))| of.as_ref() == Some(place))
    }

    fn shard_of(&self, queue: &str) -> u32 {
        let queue = QueueName::new(queue).expect("the workload gives good names");
        Router::new(self.shards).expect("few shards").of_queue(&queue).number()
    }
}
