//! [`Workload`]: what the clients call, and when.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::Plan;
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
    think_ns: u64,
    /// When each client makes its next call (simulated, ns); `None`: it waits for an answer.
    clients: Vec<Option<u64>>,
    waits: BTreeMap<CallId, (usize, Option<(String, String)>)>,
    /// Keys with an open call: at most one call of a key is open.
    busy: BTreeSet<(String, String)>,
    /// Leases that clients have: the queue, the key and the token.
    tokens: Vec<(String, String, String)>,
    puts: u64,
    latest_due_ms: i64,
    rests: bool,
}

impl Workload {
    pub(super) fn new(plan: &Plan, mut rng: Rng) -> Self {
        Self {
            clients: (0..plan.clients).map(|_| Some(rng.below(plan.think_ns))).collect(),
            rng,
            shards: plan.shards,
            keys: plan.keys,
            think_ns: plan.think_ns,
            waits: BTreeMap::new(),
            busy: BTreeSet::new(),
            tokens: Vec::new(),
            puts: 0,
            latest_due_ms: 0,
            rests: false,
        }
    }

    pub(super) fn next_ns(&self) -> u64 {
        if self.rests { u64::MAX } else { self.clients.iter().flatten().copied().min().unwrap_or(u64::MAX) }
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
                    shard_of(&queue),
                    Call { queue, key: Some(key), verb: Verb::Ack { tokens: vec![token] } },
                );
            }
        }
        let shard = u32::try_from(self.rng.below(self.shards.into())).expect("few shards");
        let queue = format!("q{shard}");
        let key = format!("k{}", self.rng.below(self.keys));
        if kind < 5 || self.busy.contains(&(queue.clone(), key.clone())) {
            let max = self.rng.pick(&[1, 3, 10]);
            let lease_ms = self.rng.pick(&LEASES_MS);
            return (shard, Call { queue, key: None, verb: Verb::Lease { max, lease_ms } });
        }
        let due_ms = wall_ms + self.rng.pick(&DUES_MS);
        let due = Some(Due::At(due_ms));
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
        Some((shard_of(&queue), Call { queue, key: Some(key), verb: Verb::Ack { tokens: vec![token] } }))
    }

    /// Returns the time until all tasks are due (ms), by a clock that shows `wall_ns` now.
    pub(super) fn farthest_ms(&self, wall_ns: i128) -> u64 {
        let wall_ms = i64::try_from(wall_ns / 1_000_000).expect("runs are short");
        u64::try_from(self.latest_due_ms - wall_ms).unwrap_or(0)
    }
}

fn shard_of(queue: &str) -> u32 {
    queue.strip_prefix('q').and_then(|number| number.parse().ok()).expect("the workload gives good names")
}
