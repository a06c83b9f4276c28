//! The oracle: what a correct server could have answered, computed from the history of calls alone.
//!
//! The oracle imports nothing of the product and was written from the promises, not from the engine. It predicts; the
//! workload drives. For each key it keeps the *worlds* that explain every answer so far. A call without an answer may
//! split a world in two, an answer removes the worlds that it contradicts, and if no world is left a promise is broken.
//!
//! # How to drive it
//! 1. [`Oracle::new`] with the first reading of both clocks, then [`Oracle::time`] (or [`Oracle::time_ns`]) at each change
//!    of one of them, *before* the server sees the change. `wall_ms` is the believed wall clock of the server. Between two
//!    readings a clock shows no other values. The monotonic clock goes on across restarts.
//! 2. [`Oracle::called`] when a call leaves its client, [`Oracle::answered`] when the answer is back. Any number of
//!    calls may be open. An answer is judged when no call on its key is open any more, and no *wide* call on its queue
//!    (a lease, list, count, delete, or put without a key). It is judged at the latest at the next crash.
//! 3. If no answer will come: [`Oracle::lost`]. If the lost call can have no effect any more (the server's answer
//!    reached no client, or the server never got the call): [`Oracle::settled`]. Settle early: each call that stays
//!    lost may double the number of worlds.
//! 4. A crash: [`Oracle::crashed`] at its moment, then [`Oracle::recovered`] when the restarted server has read its clocks,
//!    before it does anything. A crash closes all open calls: deliver no answer from before the crash afterwards. A graceful
//!    stop: [`Oracle::stopping`] as it begins, [`Oracle::stopped`] when it is complete, [`Oracle::recovered`] later.
//! 5. The answer to `List` has the rows of all pages, read while no other call of the queue is open. `Counts` may be called
//!    at any time.
//! 6. A put that leaves the key to the server has to be a plain upsert. If its answer is lost, the oracle does not follow
//!    its task.
//! 7. At the end of the liveness phase (every task was delivered and acked, and then no call was made for some time): a
//!    `List` of each queue, then [`Oracle::finish`].
//!
//! ```
//! use tickwheel_sim::oracle::{Answer, Call, CallId, Due, Mode, Oracle, Verb, Violation};
//!
//! let mut oracle = Oracle::new(0, 1_500_000_000_000);
//! let call = |verb| Call { queue: "close".to_owned(), key: Some("order:1".to_owned()), verb };
//! let due = Some(Due::In(1_800_000));
//! oracle.called(
//!     CallId(1),
//!     call(Verb::Put { due, payload: 7, mode: Mode::Upsert, if_match: None, revoke: false }),
//! );
//! oracle.time(3, 1_500_000_000_003);
//! oracle.crashed()?; // the put took effect before the crash, or never will
//! oracle.recovered();
//! oracle.called(CallId(2), call(Verb::Get));
//! oracle.answered(CallId(2), Answer::NotFound)?; // so it took no effect, and never will:
//! oracle.called(CallId(3), call(Verb::Cancel { if_match: None, revoke: false }));
//! let violation = oracle.answered(CallId(3), Answer::Cancelled).expect_err("nothing was there");
//! assert_eq!(violation.promise, "P5");
//! # Ok::<(), Violation>(())
//! ```
//!
//! A late delivery is no violation before `finish`. Tasks of equal priority and due time are ordered by their puts, if
//! the calls of the puts did not overlap. A [`Violation`] ends the run: the oracle must not be used after it.

mod call;
mod clock;
mod forecast;
pub mod jobs;
mod key;
mod limits;
mod rate;
mod register;
#[cfg(test)]
mod rehearsal;
pub mod rota;
pub mod targets;
mod task;
#[cfg(test)]
mod tests;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

pub use self::call::{
    Act, Answer, BACKOFF_MS_MAX, Call, CallId, Delivery, Due, How, KeyAct, Limits, Mode, Pause, Rate, State,
    There, TokenAnswer, Verb, View, backoff_of, expire_after_of, group_of, max_attempts_of, priority_of,
    steps_of,
};
use self::clock::Clock;
pub use self::forecast::Buckets;
use self::key::{Excuse, Key};
use self::limits::Hold;
use self::rate::Handed;
use self::register::Register;
use self::world::{Broken, Down, Op};

/// A broken promise of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// A promise of the reliability page, such as `P1`; or `order`, `counts` or `limits`, where no number fits.
    pub promise: &'static str,
    /// Queue, key, what was seen and what was possible.
    pub what: String,
    /// Calls, answers and restarts that concern the key, one line each.
    pub story: Vec<String>,
}

/// Predicts the answers of a server. The module documentation says in which order the functions are called.
#[derive(Clone, Debug)]
pub struct Oracle {
    clock: Clock,
    /// Grows when a call begins, when it ends and when it is settled. Its values give the order of the history.
    stamp: u64,
    stopping: bool,
    /// Whether the disk may be so full that the server cannot write the changes that time alone makes, such as the
    /// expiry of a task.
    lacks_room: bool,
    queues: BTreeMap<String, Queue>,
    /// Open calls. With each call: the keys that it concerns, and for each key the index of the token that belongs to
    /// it (0 for a call without tokens).
    open: BTreeMap<CallId, (Op, Vec<(usize, String)>)>,
    /// The queue and key with which each token, and each id, was first seen.
    tokens: BTreeMap<String, Place>,
    ids: BTreeMap<u64, Place>,
    /// For each call the stamps of its begin and of its answer (`u64::MAX` without an answer).
    calls: BTreeMap<CallId, (u64, u64)>,
    story: Vec<(Option<Place>, String)>,
}

/// Queue and key.
type Place = (String, String);
/// The part of an answer that concerns one key: the index of the token, the key, the answer.
type Share = (usize, String, Answer);
type Verdict = Result<(), Violation>;

#[derive(Clone, Debug, Default)]
struct Queue {
    keys: BTreeMap<String, Key>,
    /// *Wide* calls: open calls that may concern any key of the queue.
    wide: BTreeSet<CallId>,
    lost_leases: Vec<Op>,
    /// Settled calls that may concern a key that is not known yet, because its put is open.
    settled: BTreeSet<CallId>,
    /// The number of lost puts without a key. The keys that the server gave to these tasks are unknown.
    lost_keys: usize,
    touched: u64,
    listed: u64,
    /// The queue's settings.
    limits: Register<Limits>,
    paused: Register<Hold>,
    drained: Register<bool>,
    handed: Handed,
    /// The stamps at which the last two wide calls ended.
    wide_closed: [u64; 2],
}

impl Queue {
    fn key(&mut self, key: &str) -> &mut Key {
        let new = || Key::new(self.lost_leases.clone(), self.settled.clone());
        self.keys.entry(key.to_owned()).or_insert_with(new)
    }
}

impl Oracle {
    /// Begins with a server without tasks, at this reading of its clocks (ms).
    #[must_use]
    pub fn new(mono_ms: u64, wall_ms: i64) -> Self {
        Oracle {
            clock: Clock::new(mono_ms * 1_000_000, i128::from(wall_ms) * 1_000_000),
            stamp: 0,
            stopping: false,
            lacks_room: false,
            queues: BTreeMap::new(),
            open: BTreeMap::new(),
            tokens: BTreeMap::new(),
            ids: BTreeMap::new(),
            calls: BTreeMap::new(),
            story: Vec::new(),
        }
    }

    /// From now on the disk may be so full that the server cannot write the changes that time alone makes, such as the
    /// expiry of a task.
    pub fn room_is_short(&mut self) {
        self.lacks_room = true;
    }

    /// A clock moved (readings in ms). The wall clock may go back.
    ///
    /// # Panics
    /// If the monotonic clock went back, which is a fault of the driver.
    pub fn time(&mut self, mono_ms: u64, wall_ms: i64) {
        self.time_ns(mono_ms * 1_000_000, i128::from(wall_ms) * 1_000_000);
    }

    /// As [`time`](Self::time), in nanoseconds. The oracle compares instants in milliseconds. It uses the nanoseconds
    /// only to see whether both clocks advanced equally.
    ///
    /// # Panics
    /// If the monotonic clock went back, which is a fault of the driver.
    pub fn time_ns(&mut self, mono_ns: u64, wall_ns: i128) {
        let last_ms = self.clock.last().0;
        assert!(mono_ns / 1_000_000 >= last_ms, "monotonic clock went from {last_ms} ms to {mono_ns} ns");
        self.clock.read(mono_ns, wall_ns);
    }

    /// As [`time_ns`](Self::time_ns), of a server that holds back what fell due after `falls_due_ns`, because its start found the wall clock far
    /// ahead of what was written down. `begins`: it has just started.
    pub fn time_held_ns(&mut self, mono_ns: u64, wall_ns: i128, falls_due_ns: i128, begins: bool) {
        self.clock.read_held(mono_ns, wall_ns, falls_due_ns, begins);
    }

    /// A client sent a call.
    ///
    /// # Panics
    /// If `id` was used before, which is a fault of the driver.
    pub fn called(&mut self, id: CallId, call: Call) {
        self.stamp += 1;
        let from = self.clock.now();
        let (to, called, answered) = (usize::MAX, self.stamp, u64::MAX);
        let op = Op {
            id: (id, 0),
            call: call.into(),
            from,
            to,
            called,
            answered,
            limited: false,
            alone: false,
            said: None,
        };
        let name = &op.call.queue;
        let queue = self.queues.entry(name.clone()).or_default();
        if let Verb::Return { tokens } = &op.call.verb {
            queue.handed.returned(tokens);
        }
        let parts: Vec<_> = match (&op.call.verb, &op.call.key) {
            (
                Verb::Ack { tokens }
                | Verb::Nack { tokens, .. }
                | Verb::Extend { tokens, .. }
                | Verb::Return { tokens },
                _,
            ) => {
                let places = tokens.iter().map(|token| self.tokens.get(token)).enumerate();
                let here = places.filter_map(|(part, place)| Some((part, place?)));
                here.filter(|(_, place)| place.0 == *name)
                    .map(|(part, place)| (part, place.1.clone()))
                    .collect()
            }
            (Verb::Settle(limits), _) => {
                queue.limits.called(id, *limits, called);
                vec![]
            }
            (Verb::Pause(pause), _) => {
                queue.paused.called(id, Hold { pause: *pause, from, to }, called);
                if *pause == Pause::Off {
                    queue.drained.called(id, false, called);
                }
                vec![]
            }
            (Verb::Drain, _) => {
                queue.drained.called(id, true, called);
                vec![]
            }
            (Verb::Delete, _) => {
                queue.limits.called(id, Limits::default(), called);
                queue.paused.called(id, Hold { pause: Pause::Off, from, to }, called);
                queue.drained.called(id, false, called);
                // A delete is a wide call: it depends on every key of the queue.
                queue.wide.insert(id);
                vec![]
            }
            (_, Some(key)) => vec![(0, key.clone())],
            (_, None) => {
                queue.wide.insert(id);
                vec![]
            }
        };
        queue.touched = called;
        for (_, key) in &parts {
            let book = queue.key(key);
            book.open += 1;
            let line = format!("{}: call {} {:?}", self.clock, id.0, op.call.verb);
            self.story.push((Some((name.clone(), key.clone())), line));
        }
        let known = self.calls.insert(id, (called, answered));
        assert!(known.is_none(), "{id:?} was used before");
        self.open.insert(id, (op, parts));
    }

    /// A client got its answer.
    ///
    /// # Errors
    /// No world explains this answer, or an earlier answer whose verdict had to wait for this call.
    ///
    /// # Panics
    /// If the call is not open, which is a fault of the driver.
    pub fn answered(&mut self, id: CallId, answer: Answer) -> Verdict {
        if answer == Answer::Unknown {
            return self.lost(id);
        }
        let (mut op, parts) = self.close(id);
        (op.to, op.answered) = (self.clock.now(), self.stamp);
        self.calls.insert(id, (op.called, op.answered));
        let name = op.call.queue.clone();
        let queue = self.queues.entry(name.clone()).or_default();
        op.limited = queue.limits.since(op.called).any(|limits| limits != Limits::default());
        for (part, key, said) in self.shares(&op, parts, answer)? {
            let place = (name.clone(), key.clone());
            let (clock, sent) = (&self.clock, self.clock.mono(op.from));
            let line = format!("{clock}: call {} of {sent} {:?}: {said:?}", id.0, op.call.verb);
            self.story.push((Some(place.clone()), line));
            let shown = match &said {
                Answer::Stored { task, .. } | Answer::Task(task) => Some((task.id, &task.key)),
                Answer::Delivered(found) => found.first().map(|one| (one.id, &one.key)),
                _ => None,
            };
            if let Some((id, shown)) = shown {
                let first = self.ids.entry(id).or_insert_with(|| place.clone());
                if *first != place || *shown != key {
                    let what = format!("id {id}, key {shown}, belongs to {first:?}");
                    return Err(self.broken(&name, Some(&key), ("P6", what)));
                }
            }
            let queue = self.queues.entry(name.clone()).or_default();
            queue.key(&key).knot.push(Op { id: (id, part), said: Some(said), ..op.clone() });
        }
        let queue = self.queues.entry(name.clone()).or_default();
        if matches!(op.call.verb, Verb::List) {
            queue.listed = self.stamp;
        }
        self.judge(&name)
    }

    /// No answer will come. The call may still take effect while the server process runs.
    ///
    /// # Errors
    /// As [`answered`](Self::answered): the verdicts on other answers may have waited for this call.
    ///
    /// # Panics
    /// If the call is not open, which is a fault of the driver.
    pub fn lost(&mut self, id: CallId) -> Verdict {
        let (op, parts) = self.close(id);
        let queue = self.queues.entry(op.call.queue.clone()).or_default();
        match op.call.verb {
            Verb::Put { .. } => queue.lost_keys += usize::from(parts.is_empty()),
            Verb::Lease { .. } => {
                queue.keys.values_mut().for_each(|book| book.lost.push(op.clone()));
                queue.lost_leases.push(op.clone());
            }
            _ => {}
        }
        for (part, key) in parts {
            queue.key(&key).lost.push(Op { id: (id, part), ..op.clone() });
        }
        self.judge(&op.call.queue)
    }

    /// A lost call has taken effect before now, or never will.
    ///
    /// # Errors
    /// As [`answered`](Self::answered).
    pub fn settled(&mut self, id: CallId) -> Verdict {
        self.stamp += 1;
        let names: Vec<String> = self.queues.keys().cloned().collect();
        let mono_ms = self.clock.mono(self.clock.now());
        for queue in self.queues.values_mut() {
            if queue.lost_leases.iter().any(|op| op.id.0 == id) {
                queue.handed.may_be_empty(mono_ms);
            }
            queue.limits.settled(id, self.stamp);
            queue.paused.settled(id, self.stamp);
            queue.drained.settled(id, self.stamp);
            queue.settled.insert(id);
            for book in queue.keys.values_mut().filter(|book| book.lost.iter().any(|op| op.id.0 == id)) {
                book.settled.insert(id);
            }
        }
        names.iter().try_for_each(|name| self.judge(name))
    }

    /// A graceful stop begins: from now on the server may write leases down, and a restart after a crash may find them.
    pub fn stopping(&mut self) {
        self.stopping = true;
    }

    /// The graceful stop is complete. Each open call took effect before it, or never will.
    ///
    /// # Errors
    /// No world explains an answer whose verdict waited for the open calls.
    pub fn stopped(&mut self) -> Verdict {
        self.down(Down::Stop)
    }

    /// The server died. Each open call took effect before that, or never will.
    ///
    /// # Errors
    /// No world explains an answer whose verdict waited for the open calls.
    pub fn crashed(&mut self) -> Verdict {
        self.down(if self.stopping { Down::CrashWhileStopping } else { Down::Crash })
    }

    /// The server was started again and has read its clocks.
    pub fn recovered(&mut self) {
        self.stopping = false;
        self.story.push((None, format!("{}: recovered", self.clock)));
        let mono_ms = self.clock.mono(self.clock.now());
        for queue in self.queues.values_mut() {
            queue.handed.begin(mono_ms);
            for book in queue.keys.values_mut() {
                book.worlds.iter_mut().for_each(|world| world.recovered(&self.clock));
            }
        }
    }

    /// Ends the liveness phase: no due task may remain. Everything else was compared when the lists were answered.
    ///
    /// # Errors
    /// `P3`: a task is due, or its lease has run out, and no worker got the task.
    ///
    /// # Panics
    /// If calls are open, or a queue was used after its last list: both are faults of the driver.
    pub fn finish(&mut self) -> Verdict {
        assert!(self.open.is_empty(), "calls are still open: {:?}", self.open.keys());
        for (name, queue) in &self.queues {
            assert!(queue.listed >= queue.touched, "queue {name:?} was used after its last list");
            for (key, book) in &queue.keys {
                if let Some(task) = book.overdue(&self.clock) {
                    return Err(self.broken(name, Some(key), ("P3", format!("still {task:?}"))));
                }
            }
        }
        Ok(())
    }

    /// Checks a server that has nothing under way and sleeps until the wall clock shows `wall_ms` (for ever if `None`).
    ///
    /// Returns queue and key of a task that is certainly still scheduled and falls due before `wall_ms`, if there is one.
    #[must_use]
    pub fn oversleeps(&self, wall_ms: Option<i64>) -> Option<(&str, &str)> {
        for (name, queue) in self.queues.iter().filter(|(_, queue)| queue.wide.is_empty()) {
            let mut books = queue.keys.iter();
            if let Some((key, _)) = books.find(|(_, book)| book.overslept(wall_ms, &self.clock).is_some()) {
                return Some((name, key));
            }
        }
        None
    }

    /// Checks a server that has nothing under way and sleeps until the monotonic clock shows `mono_ms` (for ever if `None`). No time may have
    /// passed during a graceful stop.
    ///
    /// Returns queue and key of a task whose lease certainly runs now and has to end before `mono_ms`, if there is one.
    #[must_use]
    pub fn lets_a_lease_outlast(&self, mono_ms: Option<u64>) -> Option<(&str, &str)> {
        for (name, queue) in self.queues.iter().filter(|(_, queue)| queue.wide.is_empty()) {
            let mut books = queue.keys.iter();
            if let Some((key, _)) = books.find(|(_, book)| book.outlasts(mono_ms, &self.clock)) {
                return Some((name, key));
            }
        }
        None
    }

    /// Makes a violation of `promise` on this key. The driver has seen the violation itself.
    #[must_use]
    pub fn accuse(&self, queue: &str, key: &str, promise: &'static str, what: String) -> Violation {
        self.broken(queue, Some(key), (promise, what))
    }

    /// The number of keys that the oracle gave up, because they had too many worlds or too many calls to judge at
    /// once. A run with such keys proves less.
    #[must_use]
    pub fn given_up(&self) -> usize {
        let books = self.queues.values().flat_map(|queue| queue.keys.values());
        books.filter(|book| book.given_up).count()
    }

    fn close(&mut self, id: CallId) -> (Op, Vec<(usize, String)>) {
        self.stamp += 1;
        let mut open = self.open.remove(&id).unwrap_or_else(|| panic!("{id:?} is not open"));
        let queue = self.queues.entry(open.0.call.queue.clone()).or_default();
        if queue.wide.remove(&id) {
            queue.wide_closed = [queue.wide_closed[1], self.stamp];
        }
        open.0.alone = queue.touched == open.0.called;
        queue.touched = self.stamp;
        for (_, key) in &open.1 {
            let book = queue.key(key);
            book.open -= 1;
        }
        open
    }

    fn down(&mut self, how: Down) -> Verdict {
        self.story.push((None, format!("{}: {how:?}", self.clock)));
        // `lost` judges a key when the last call that may concern it is closed, so every key is judged.
        let open: Vec<CallId> = self.open.keys().copied().collect();
        open.into_iter().try_for_each(|id| self.lost(id))?;
        for queue in self.queues.values_mut() {
            queue.limits.down(self.stamp);
            queue.paused.down(self.stamp);
            queue.drained.down(self.stamp);
            queue.lost_leases.clear();
            queue.settled.clear();
            queue.keys.values_mut().for_each(|book| book.restart(how, &self.clock));
        }
        Ok(())
    }

    /// Judges each key on which no call is open. While a wide call is open, no key of the queue is judged.
    fn judge(&mut self, name: &str) -> Verdict {
        let queue = self.queues.entry(name.to_owned()).or_default();
        if !queue.wide.is_empty() {
            return Ok(());
        }
        let settled = take(&mut queue.settled);
        queue.lost_leases.retain(|op| !settled.contains(&op.id.0));
        let (clock, strangers, mut first) = (&self.clock, queue.lost_keys > 0, None);
        queue.keys.retain(|key, book| match first.as_ref().map_or_else(|| book.judge(clock), |_| Ok(())) {
            Ok(()) => true,
            // The key may belong to a lost put without a key, so the earlier calls on it are unknown.
            Err(_) if strangers && key.parse::<u64>().is_ok() => false,
            Err(broken) => {
                first = Some((key.clone(), broken));
                true
            }
        });
        first.map_or(Ok(()), |(key, broken)| Err(self.broken(name, Some(&key), broken)))
    }

    /// Splits an answer into one part for each key. Before that it makes the checks that need several keys.
    fn shares(
        &mut self,
        op: &Op,
        parts: Vec<(usize, String)>,
        answer: Answer,
    ) -> Result<Vec<Share>, Violation> {
        let (name, verb) = (&op.call.queue, &op.call.verb);
        if let (Verb::Put { .. }, Answer::Stored { created: true, task }) = (verb, &answer) {
            self.may_be_added(op, &task.key)?;
        }
        if let (Verb::Import { .. }, Answer::Added, Some(key)) = (verb, &answer, &op.call.key) {
            self.may_be_added(op, key)?;
        }
        if let (Verb::Redrive { .. }, Answer::Stored { task, .. }) = (verb, &answer) {
            self.may_be_live(op, &task.key)?;
        }
        Ok(match (verb, answer) {
            (
                _,
                said @ (Answer::Refused | Answer::Draining | Answer::BacklogFull | Answer::NotEmpty { .. }),
            ) => {
                self.refused_by_right(op, &said)?;
                let queue = self.queues.entry(name.clone()).or_default();
                queue.limits.refused(op.id.0);
                queue.paused.refused(op.id.0);
                queue.drained.refused(op.id.0);
                for (part, key) in parts {
                    let op = Op { id: (op.id.0, part), said: None, ..op.clone() };
                    queue.key(&key).refuse(op);
                }
                vec![]
            }
            (Verb::Settle(_) | Verb::Pause(_) | Verb::Drain | Verb::Delete, Answer::Laid) => {
                if matches!(verb, Verb::Delete) {
                    self.counted(op, [0; 4])?;
                }
                let queue = self.queues.entry(name.clone()).or_default();
                queue.limits.answered(op.id.0, op.answered);
                queue.paused.amend(op.id.0, |hold| hold.to = op.to);
                queue.paused.answered(op.id.0, op.answered);
                queue.drained.answered(op.id.0, op.answered);
                if matches!(verb, Verb::Settle(_) | Verb::Delete) {
                    queue.handed.begin(self.clock.mono(op.to));
                }
                vec![]
            }
            (Verb::Lease { max, lease_ms }, Answer::Delivered(found)) => {
                if !found.is_empty() {
                    let tokens = found.iter().map(|one| one.token.clone()).collect();
                    let queue = self.queues.entry(name.clone()).or_default();
                    queue.handed.granted(op, tokens, &self.clock);
                }
                self.within_limits(op, &found)?;
                self.in_its_time(op, &found)?;
                self.delivered(op, *max, *lease_ms, &found)?;
                self.in_order(op, *max, &found)?;
                if !found.is_empty() {
                    let mono_ms = self.clock.mono(op.to);
                    self.queues.entry(name.clone()).or_default().handed.may_be_empty(mono_ms);
                }
                found.into_iter().map(|one| (0, one.key.clone(), Answer::Delivered(vec![one]))).collect()
            }
            (Verb::ById { act: Act::Lease { lease_ms }, .. }, Answer::Delivered(found)) => {
                self.delivered(op, 1, *lease_ms, &found)?;
                parts.into_iter().map(|(part, key)| (part, key, Answer::Delivered(found.clone()))).collect()
            }
            (Verb::List, Answer::Listed(views)) => {
                let mut rows = BTreeMap::new();
                for view in views {
                    self.queues.entry(name.clone()).or_default().key(&view.key);
                    if let Some(other) = rows.insert(view.key.clone(), view) {
                        return Err(self.broken(
                            name,
                            Some(&other.key),
                            ("P6", format!("listed twice: {other:?}")),
                        ));
                    }
                }
                let mut row = |key: &String| rows.remove(key).map_or(Answer::NotFound, Answer::Task);
                self.queues[name].keys.keys().map(|key| (0, key.clone(), row(key))).collect()
            }
            (Verb::Counts, Answer::Counted { scheduled, ready, leased, dead }) => {
                self.counted(op, [scheduled, ready, leased, dead])?;
                vec![]
            }
            (
                Verb::Ack { tokens }
                | Verb::Nack { tokens, .. }
                | Verb::Extend { tokens, .. }
                | Verb::Return { tokens },
                Answer::Tokens(said),
            ) if said.len() == tokens.len() => {
                let odd = |&part: &usize| {
                    !matches!(said[part], TokenAnswer::Expired | TokenAnswer::Returned)
                        && parts.iter().all(|(known, _)| *known != part)
                };
                if let Some(part) = (0..said.len()).find(odd) {
                    let what = format!("{:?} was never issued, yet is {:?}", tokens[part], said[part]);
                    return Err(self.broken(name, None, ("P4", what)));
                }
                parts.into_iter().map(|(part, key)| (part, key, Answer::Tokens(vec![said[part]]))).collect()
            }
            (Verb::Put { .. }, Answer::Stored { created, task }) if parts.is_empty() => {
                vec![(0, task.id.to_string(), Answer::Stored { created, task })]
            }
            (_, said) if parts.is_empty() => {
                return Err(self.broken(name, None, ("P6", format!("{verb:?} was answered {said:?}"))));
            }
            (_, said) => parts.into_iter().map(|(part, key)| (part, key, said.clone())).collect(),
        })
    }

    fn delivered(&mut self, op: &Op, max: usize, lease_ms: u64, found: &[Delivery]) -> Verdict {
        let name = &op.call.queue;
        let (low, high) = self.clock.walls(op.from, op.to);
        // The server rounds the end of a lease up to the millisecond.
        let last = high.saturating_add_unsigned(lease_ms).saturating_add(1);
        let until = low.saturating_add_unsigned(lease_ms)..=last;
        let mut keys = BTreeSet::new();
        for one in found {
            let place = (name.clone(), one.key.clone());
            let broken = match () {
                () if !keys.insert(&one.key) => ("P6", format!("twice in one answer: {found:?}")),
                () if self.tokens.insert(one.token.clone(), place).is_some() => {
                    ("P4", format!("a token again: {one:?}"))
                }
                () if !until.contains(&one.lease_until) => {
                    ("P4", format!("lease outside {until:?}: {one:?}"))
                }
                () if found.len() > max => ("P4", format!("{} tasks, {max} wanted", found.len())),
                () => continue,
            };
            return Err(self.broken(name, Some(&one.key), broken));
        }
        Ok(())
    }

    /// Checks that the tasks were delivered by priority, then due time, then put; and that no task was left out that
    /// was certainly ready during the whole call.
    fn in_order(&self, op: &Op, max: usize, found: &[Delivery]) -> Verdict {
        let (name, queue) = (&op.call.queue, &self.queues[&op.call.queue]);
        let put_by = |one: &Delivery| Some(queue.keys.get(&one.key)?.certain(&self.clock)?.put_by);
        type Line = ((u32, i64), Option<CallId>);
        let before = |a: Line, b: Line| match (a.1, b.1) {
            (Some(first), Some(then)) if a.0 == b.0 => self.calls[&first].1 < self.calls[&then].0,
            _ => a.0 < b.0,
        };
        let place = |payload, due| (priority_of(payload), due);
        let places: Vec<_> = found.iter().map(|one| (place(one.payload, one.due_at), put_by(one))).collect();
        for (at, one) in found.iter().enumerate() {
            if places[..at].iter().any(|&earlier| before(places[at], earlier)) {
                return Err(self.broken(
                    name,
                    Some(&one.key),
                    ("order", format!("not by priority, due and put: {found:?}")),
                ));
            }
        }
        let Some(room) = self.room_for_more(op, found) else { return Ok(()) };
        // While a wide call is open, it may have taken a task of this queue: then no key is checked.
        for (key, book) in queue.keys.iter().filter(|_| queue.wide.is_empty()) {
            let here = found.iter().any(|one| one.key == *key);
            let task = book.certain(&self.clock).filter(|task| !here && task.ready == Some(true));
            let Some(task) = task else { continue };
            let what = format!("ready, but not in {found:?}: {task:?}");
            if found.len() < max && room {
                return Err(self.broken(name, Some(key), ("P4", what)));
            }
            let its = (place(task.payload, task.due.1), Some(task.put_by));
            if places.iter().any(|&one| before(its, one)) {
                return Err(self.broken(name, Some(key), ("order", what)));
            }
        }
        Ok(())
    }

    /// Checks the counts: there must be a choice of one possible state for each key that gives these numbers. By Hall's
    /// theorem such a choice exists exactly if, for each set of states, the sum of its numbers is at least the number
    /// of keys that can be in no other state.
    fn counted(&self, op: &Op, [scheduled, ready, leased, dead]: [usize; 4]) -> Verdict {
        let queue = &self.queues[&op.call.queue];
        let alone = queue.wide.is_empty();
        let may = |book: &Key, excuse| {
            if alone && book.quiet() { book.states(&self.clock, excuse) } else { 15 }
        };
        let sum = scheduled + ready + leased;
        let keys = |excuse| -> Vec<u8> {
            let unknown = std::iter::repeat_n(15, queue.lost_keys + queue.wide.len());
            queue.keys.values().map(|book| may(book, excuse)).chain(unknown).collect()
        };
        let fits = |excuse| {
            let keys = keys(excuse);
            let counts = [keys.len().saturating_sub(sum), scheduled, ready, leased];
            let has_room = |set: u8| {
                let room: usize =
                    (0..4).filter(|bit| set >> bit & 1 == 1).map(|bit: usize| counts[bit]).sum();
                keys.iter().filter(|&&may| may & !set == 0).count() <= room
            };
            sum <= keys.len() && (1..16).all(has_room)
        };
        self.counted_dead(op, dead)?;
        if !fits(Excuse::None) {
            let promise = match () {
                () if fits(Excuse::LeaseByWall) => "P7",
                () if fits(Excuse::OldInstant) => "P5",
                () if fits(Excuse::Early) => "P2",
                () => "counts",
            };
            let may: Vec<_> = queue.keys.keys().zip(keys(Excuse::None)).collect();
            let shown = format!("{scheduled} scheduled, {ready} ready, {leased} leased, {dead} dead");
            let what = format!("{shown}; may be (1 absent, 2 scheduled, 4 ready, 8 leased): {may:?}");
            return Err(self.broken(&op.call.queue, None, (promise, what)));
        }
        Ok(())
    }

    fn counted_dead(&self, op: &Op, dead: usize) -> Verdict {
        let queue = &self.queues[&op.call.queue];
        let all_known = queue.wide.is_empty() && queue.lost_keys == 0 && queue.keys.values().all(Key::quiet);
        let graves =
            |most: bool| -> usize { queue.keys.values().map(|book| book.graves(&self.clock, most)).sum() };
        if all_known && !(graves(false)..=graves(true)).contains(&dead) {
            let what = format!("{dead} dead, not {} to {}", graves(false), graves(true));
            return Err(self.broken(&op.call.queue, None, ("counts", what)));
        }
        Ok(())
    }

    /// Checks the refusal to delete a queue because it has `live` live tasks, `dead` dead tasks and `schedules`
    /// schedules. The oracle follows no queue with a schedule, so `schedules` must be 0.
    fn not_empty(&self, op: &Op, live: usize, dead: usize, schedules: usize) -> Verdict {
        let queue = &self.queues[&op.call.queue];
        let alone = queue.wide.is_empty();
        let states = queue.keys.values().map(|book| match alone && book.quiet() {
            true => book.states(&self.clock, Excuse::None),
            false => 15,
        });
        let (mut least, mut most) = (0, queue.lost_keys + queue.wide.len());
        for states in states {
            least += usize::from(states & 1 == 0);
            most += usize::from(states != 1);
        }
        if live + dead == 0 || schedules > 0 || !(least..=most).contains(&live) {
            let said = format!("{live} live, {dead} dead, {schedules} schedules");
            let what =
                format!("not forgotten for {said}; {least} to {most} are live, and it has no schedule");
            return Err(self.broken(&op.call.queue, None, ("counts", what)));
        }
        self.counted_dead(op, dead)
    }

    fn broken(&self, queue: &str, key: Option<&str>, (promise, what): Broken) -> Violation {
        let about = |place: &Place| place.0 == queue && key.is_none_or(|key| place.1 == key);
        let story = self.story.iter().filter(|(place, _)| place.as_ref().is_none_or(about));
        let what = format!("queue {queue}, key {}: {what}", key.unwrap_or("(any)"));
        Violation { promise, what, story: story.map(|(_, line)| line.clone()).collect() }
    }
}
