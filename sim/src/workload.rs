//! The calls of clients, drawn near the edges of time: the instants at which errors are likely.

use std::collections::{BTreeMap, VecDeque};

use crate::edges;
use crate::options::Options;
use crate::oracle::{Act, Call, Due, How, KeyAct, Limits, Mode, Pause, Rate, State, There, Verb, View};
use crate::rng::Rng;

/// The number of tasks that are remembered, so that calls can name them by their ids.
const SEEN_MAX: usize = 30;
/// The number of keys of the crowd: tasks that fall due close together.
const CROWD: u64 = 120;

/// Draws the calls of clients. The workload remembers what answers showed, because clients use that, but it predicts nothing.
#[derive(Debug)]
pub(crate) struct Workload {
    rng: Rng,
    queues: Vec<String>,
    keys: Vec<String>,
    horizon_ms: u64,
    far_percent: u64,
    big_percent: u64,
    crowd_percent: u64,
    holds_percent: u64,
    drain_percent: u64,
    delete_percent: u64,
    rate_percent: u64,
    terms_percent: u64,
    by_id_percent: u64,
    import_percent: u64,
    targets_percent: u64,
    /// The approximate due instant of the crowd (wall clock, ms).
    crowd_due_ms: i64,
    payloads: u64,
    /// Queue and token of each lease that an answer showed, the newest last.
    tokens: Vec<(String, String)>,
    versions: BTreeMap<(String, String), u64>,
    /// The due instant of the task of each key, as the last answer showed it (ms).
    due: BTreeMap<(String, String), i64>,
    /// Dead tasks that answers showed: queue, key, id.
    dead: Vec<(String, String, u64)>,
    /// The tasks that answers showed last, dead or alive: queue, key, id.
    seen: VecDeque<(String, String, u64)>,
}

impl Workload {
    /// A workload that draws from this generator, with these options.
    #[must_use]
    pub(crate) fn new(options: &Options, rng: Rng) -> Self {
        Self {
            rng,
            queues: (0..options.queues.max(1)).map(|n| format!("q{n}")).collect(),
            keys: (0..options.keys.max(1)).map(|n| format!("k{n}")).collect(),
            horizon_ms: options.horizon_ms,
            far_percent: options.far_percent,
            big_percent: options.big_percent,
            crowd_percent: options.crowd_percent,
            holds_percent: options.holds_percent,
            drain_percent: options.drain_percent,
            delete_percent: options.delete_percent,
            rate_percent: options.rate_percent,
            terms_percent: options.terms_percent,
            by_id_percent: options.by_id_percent,
            import_percent: options.import_percent,
            targets_percent: options.targets_percent,
            crowd_due_ms: 0,
            payloads: 0,
            tokens: Vec::new(),
            versions: BTreeMap::new(),
            due: BTreeMap::new(),
            dead: Vec::new(),
            seen: VecDeque::new(),
        }
    }

    /// The keys of each queue, without those of the crowd.
    pub(crate) fn keys(&self) -> &[String] {
        &self.keys
    }

    /// The queues in use.
    #[must_use]
    pub(crate) fn queues(&self) -> &[String] {
        &self.queues
    }

    /// An answer showed a task.
    pub(crate) fn saw(&mut self, queue: &str, task: &View) {
        let place = (queue.to_owned(), task.key.clone());
        self.seen.push_back((queue.to_owned(), task.key.clone(), task.id));
        if self.seen.len() > SEEN_MAX {
            self.seen.pop_front();
        }
        if task.state == State::Dead {
            self.dead.push((queue.to_owned(), task.key.clone(), task.id));
        }
        self.due.insert(place.clone(), task.due_at);
        self.versions.insert(place, task.version);
    }

    /// The distance between now and the due instant of the task that the call names (ms), if an answer has shown it.
    #[must_use]
    pub(crate) fn distance_of(&self, call: &Call, wall_ms: i64) -> Option<u64> {
        let place = (call.queue.clone(), call.key.clone()?);
        self.due.get(&place).map(|due| due.abs_diff(wall_ms))
    }

    /// An answer showed the token of a new lease.
    pub(crate) fn saw_token(&mut self, queue: &str, token: &str) {
        self.tokens.push((queue.to_owned(), token.to_owned()));
    }

    /// The next call of a client.
    pub(crate) fn call(&mut self, wall_ms: i64) -> Call {
        if self.rng.chance(8)
            && let Some((queue, key)) = self.nearest(wall_ms)
        {
            let (if_match, revoke) = (None, self.rng.chance(30));
            let verb = match self.rng.below(4) {
                0 => Verb::Patch { due: Some(self.due(wall_ms)), payload: None, if_match, revoke },
                _ => Verb::Cancel { if_match, revoke },
            };
            return Call { queue, key: Some(key), verb };
        }
        let queue = self.queues[self.rng.index(self.queues.len())].clone();
        if self.holds_percent > 0 && self.rng.chance(self.holds_percent) {
            return self.hold(queue);
        }
        if self.by_id_percent > 0 && !self.seen.is_empty() && self.rng.chance(self.by_id_percent) {
            return self.by_id();
        }
        if self.rng.chance(self.crowd_percent) {
            return self.one_of_crowd(queue, wall_ms);
        }
        let key = Some(self.keys[self.rng.index(self.keys.len())].clone());
        if self.import_percent > 0 && self.rng.chance(self.import_percent) {
            return self.import(queue, key, wall_ms);
        }
        match self.rng.below(100) {
            0..30 => self.put(queue, key, wall_ms),
            30..42 => {
                let due = self.rng.chance(80).then(|| self.due(wall_ms));
                let payload = self.rng.chance(40).then(|| self.payload());
                let (if_match, revoke) = (self.if_match(&queue, &key), self.rng.chance(30));
                Call { queue, key, verb: Verb::Patch { due, payload, if_match, revoke } }
            }
            42..54 => {
                let (if_match, revoke) = (self.if_match(&queue, &key), self.rng.chance(30));
                Call { queue, key, verb: Verb::Cancel { if_match, revoke } }
            }
            54..57 => Call { queue, key, verb: Verb::Get },
            57..59 => self.redrive(queue, key),
            59..78 => {
                let max = self.rng.pick(&[1, 1, 2, 10]);
                let lease_ms = self.rng.pick(&[1, 5, 20, 255, 256, 1_000, 100_000]);
                Call { queue, key: None, verb: Verb::Lease { max, lease_ms } }
            }
            78..96 => self.token_call(queue, key),
            _ => Call { queue, key: None, verb: Verb::Counts },
        }
    }

    /// A call that sets limits, pauses, drains or deletes a queue. A pause does not last long.
    fn hold(&mut self, queue: String) -> Call {
        let few = |rng: &mut Rng| Some(rng.pick(&[1, 1, 2, 3, 10])).filter(|_| rng.chance(70));
        if self.delete_percent > 0 && self.rng.chance(self.delete_percent) {
            return Call { queue, key: None, verb: Verb::Delete };
        }
        if self.drain_percent > 0 && self.rng.chance(self.drain_percent) {
            let max_backlog = Some(self.rng.pick(&[1, 2, 5, 20]));
            let verb = match self.rng.chance(50) {
                true => Verb::Drain,
                false => Verb::Settle(Limits { max_backlog, ..Limits::default() }),
            };
            return Call { queue, key: None, verb };
        }
        if self.rate_percent > 0 && self.rng.chance(self.rate_percent) {
            let verb = match self.rng.below(3) {
                0 => Verb::Pause(Pause::For(self.rng.pick(&[1, 20, 300, 5_000, 3_600_000]))),
                _ => {
                    let rate = Some(Rate {
                        tasks: self.rng.pick(&[1, 2, 10]),
                        per_ms: self.rng.pick(&[1, 7, 100, 1_000, 60_000]),
                        burst: self.rng.pick(&[1, 2, 10]),
                    });
                    let in_flight = few(&mut self.rng);
                    Verb::Settle(Limits { rate, in_flight, ..Limits::default() })
                }
            };
            return Call { queue, key: None, verb };
        }
        let verb = match self.rng.below(5) {
            0 => Verb::Pause(Pause::On),
            1 | 2 => Verb::Pause(Pause::Off),
            _ => Verb::Settle(Limits {
                in_flight: few(&mut self.rng),
                per_group: few(&mut self.rng),
                ..Limits::default()
            }),
        };
        Call { queue, key: None, verb }
    }

    /// A put of a task that falls due close to many others, so that a wheel needs more than its smallest form.
    fn one_of_crowd(&mut self, queue: String, wall_ms: i64) -> Call {
        if self.crowd_due_ms <= wall_ms || self.rng.chance(2) {
            let ahead = self.rng.pick(&[300, 2_000, 70_000, 1_000_000]);
            self.crowd_due_ms = wall_ms.saturating_add_unsigned(self.rng.between(1, ahead));
        }
        let spread = self.rng.pick(&[4, 256, 1_000]);
        let due = Some(Due::At(self.crowd_due_ms.saturating_add_unsigned(self.rng.below(spread))));
        let key = Some(format!("c{}", self.rng.below(CROWD)));
        let payload = self.payload();
        Call {
            queue,
            key,
            verb: Verb::Put { due, payload, mode: Mode::Upsert, if_match: None, revoke: false },
        }
    }

    /// The key whose task is due nearest to now, at most 2 s away.
    fn nearest(&self, wall_ms: i64) -> Option<(String, String)> {
        let near = self.due.iter().filter(|(_, due)| due.abs_diff(wall_ms) <= 2_000);
        near.min_by_key(|(_, due)| due.abs_diff(wall_ms)).map(|(place, _)| place.clone())
    }

    fn put(&mut self, queue: String, key: Option<String>, wall_ms: i64) -> Call {
        let due = self.rng.chance(90).then(|| self.due(wall_ms));
        let payload = self.payload();
        if self.rng.chance(5) {
            let verb = Verb::Put { due, payload, mode: Mode::Upsert, if_match: None, revoke: false };
            return Call { queue, key: None, verb };
        }
        let mode = self.rng.pick(&[
            Mode::Upsert,
            Mode::Upsert,
            Mode::Upsert,
            Mode::Create,
            Mode::Replace,
            Mode::Once,
        ]);
        let mode = match mode {
            Mode::Upsert if self.draws_terms() => {
                Mode::Debounce { max_wait_ms: self.rng.pick(&[None, Some(0), Some(50), Some(1_000)]) }
            }
            mode => mode,
        };
        if mode == Mode::Once {
            let verb = Verb::Put { due, payload, mode, if_match: None, revoke: false };
            return Call { queue, key, verb };
        }
        let (if_match, revoke) = (self.if_match(&queue, &key), self.rng.chance(25));
        Call { queue, key, verb: Verb::Put { due, payload, mode, if_match, revoke } }
    }

    fn import(&mut self, queue: String, key: Option<String>, wall_ms: i64) -> Call {
        let due = match self.due(wall_ms) {
            Due::At(at) => at,
            Due::In(ms) => wall_ms.saturating_add_unsigned(ms),
        };
        let there = self.rng.pick(&[There::Skip, There::Skip, There::Replace, There::Replace, There::Refuse]);
        let (payload, attempts, revoke) = (self.payload(), self.rng.below(2) as u32, self.rng.chance(30));
        Call { queue, key, verb: Verb::Import { due, payload, attempts, there, revoke } }
    }

    /// A call about one of the tasks that were shown last, in any state: by its id, or to run it or take it from its worker by its key.
    fn by_id(&mut self) -> Call {
        let (queue, key, id) = self.seen[self.rng.index(self.seen.len())].clone();
        let act = match self.rng.below(11) {
            8.. => {
                let act = self.rng.pick(&[KeyAct::Run, KeyAct::Release]);
                let key = Some(key);
                let if_match = self.if_match(&queue, &key);
                return Call { queue, key, verb: Verb::ByKey { act, if_match } };
            }
            0 => Act::Get,
            1 => Act::Cancel,
            2..5 => Act::Run,
            _ => Act::Lease { lease_ms: self.rng.pick(&[1, 20, 1_000, 100_000]) },
        };
        Call { queue, key: Some(key), verb: Verb::ById { id, act } }
    }

    /// A redrive of a dead task that an answer showed. The task may have been redriven since, or its key may lead to another task.
    fn redrive(&mut self, queue: String, key: Option<String>) -> Call {
        if self.dead.is_empty() {
            return Call { queue, key, verb: Verb::Get };
        }
        let (queue, key, id) = self.dead[self.rng.index(self.dead.len())].clone();
        Call { queue, key: Some(key), verb: Verb::Redrive { id } }
    }

    fn token_call(&mut self, queue: String, key: Option<String>) -> Call {
        if self.tokens.is_empty() {
            return Call { queue, key, verb: Verb::Get };
        }
        let last = self.tokens.len() - 1;
        let at = if self.rng.chance(75) {
            last.saturating_sub(self.rng.index(3))
        } else {
            self.rng.index(self.tokens.len())
        };
        let (home, token) = self.tokens[at].clone();
        let queue = if self.rng.chance(3) { queue } else { home.clone() };
        let mut tokens = vec![if self.rng.chance(2) { forged(&token) } else { token }];
        if self.rng.chance(20) {
            let (other_home, other) = self.tokens[self.rng.index(self.tokens.len())].clone();
            if other_home == home && !tokens.contains(&other) {
                tokens.push(other);
            }
        }
        let twice = tokens[0].clone();
        let verb = match self.rng.below(18) {
            // One call may name the same token twice. Each of the two acks then has the effect that it would have
            // alone.
            0..2 => Verb::Ack { tokens: tokens.into_iter().chain([twice]).collect() },
            2..11 => Verb::Ack { tokens },
            11..15 => {
                let delay_ms = self.rng.chance(60).then(|| self.distance()).map(|ms| ms.min(500_000_000));
                let how = match self.by_id_percent > 0 {
                    true => self.rng.pick(&[How::Returned, How::Returned, How::Gone, How::Buried]),
                    false => How::Returned,
                };
                let pushes = self.targets_percent > 0;
                let how = if pushes && self.rng.chance(10) { How::Undeliverable } else { how };
                let has_floor = pushes && self.rng.chance(40);
                let at_least_ms = has_floor.then(|| self.distance()).map(|ms| ms.min(500_000_000));
                Verb::Nack { tokens, delay_ms, at_least_ms, how }
            }
            _ => Verb::Extend { tokens, lease_ms: self.rng.pick(&[1, 20, 1_000]) },
        };
        Call { queue, key: None, verb }
    }

    fn if_match(&mut self, queue: &str, key: &Option<String>) -> Option<u64> {
        if !self.rng.chance(12) {
            return None;
        }
        let seen = key.as_ref().and_then(|key| self.versions.get(&(queue.to_owned(), key.clone())));
        // The version from an answer, or a wrong one if no answer showed a version.
        Some(seen.copied().unwrap_or(u64::MAX))
    }

    fn payload(&mut self) -> u64 {
        self.payloads += 1;
        // Some tasks are dead after one or two failed attempts.
        let max_attempts = match self.payloads % 8 {
            3 => 1,
            5 => 2,
            _ => 0,
        };
        let number = (max_attempts << 40) + 2 * self.payloads + u64::from(self.rng.chance(self.big_percent));
        match self.draws_terms() {
            true => {
                number + (self.rng.below(8) << 44) + (self.rng.below(4) << 47) + (self.rng.below(4) << 50)
            }
            false => number,
        }
    }

    /// Draws whether a put gets an expiry, a back-off or a timeline. If these are switched off, no number is drawn.
    fn draws_terms(&mut self) -> bool {
        self.terms_percent > 0 && self.rng.chance(self.terms_percent)
    }

    fn due(&mut self, wall_ms: i64) -> Due {
        if self.rng.chance(self.far_percent) {
            let distance = edges::far(&mut self.rng);
            return match self.rng.below(8) {
                0..4 => Due::In(distance),
                4 => Due::At(edges::known_instant(&mut self.rng)),
                5 => Due::At(i64::MAX - self.rng.below(3) as i64),
                6 => Due::In(u64::MAX - self.rng.below(3)),
                _ => Due::At(edges::calendar_edge(&mut self.rng, wall_ms)),
            };
        }
        let distance = self.distance();
        match self.rng.below(12) {
            0..6 => Due::In(distance),
            6..8 => Due::At(edges::slot_edge(&mut self.rng, wall_ms)),
            8..11 => Due::At(wall_ms.saturating_add_unsigned(distance)),
            _ => Due::At(wall_ms.saturating_sub_unsigned(distance).max(0)),
        }
    }

    /// A distance in time (ms), mostly short, and often near the edges of slots, levels and the horizon.
    fn distance(&mut self) -> u64 {
        let near = self.rng.below(30);
        match self.rng.below(20) {
            0..9 => near,
            9..11 => self.rng.pick(&[63, 64, 65, 255, 256, 257]),
            11..13 => self.horizon_ms.saturating_sub(1) + near % 3,
            13..15 => self.horizon_ms / 2 + near % 3,
            15 => self.rng.pick(&[65_535, 65_536, 65_537, 16_777_215, 16_777_216, 16_777_217]),
            16 => self.rng.below(100_000_000),
            _ => self.rng.below(500),
        }
    }
}

/// A token that is similar to this one and belongs to no lease.
fn forged(token: &str) -> String {
    let (first, rest) = token.split_at(1);
    format!("{}{rest}", if first == "A" { "B" } else { "A" })
}
