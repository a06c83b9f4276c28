//! The oracle: what a correct server could have answered, computed from the history of calls alone.
//!
//! It imports nothing of the product and was written from the promises, not from the engine. It predicts; the workload
//! drives. For each key it keeps the *worlds* that explain every answer so far. A call without an answer splits them, an
//! answer strikes out those that it contradicts, and when none is left a promise is broken.
//!
//! # How to drive it
//! 1. [`Oracle::new`] with the first reading of both clocks, then [`Oracle::time`] at each change of either, *before*
//!    the server sees it. `wall_ms` is the wall clock as the server's guard believes it. Values between two readings
//!    never existed. The monotonic clock goes on across restarts.
//! 2. [`Oracle::called`] when a call leaves its client, [`Oracle::answered`] when the answer is back. Any number of calls
//!    may be open. The verdict on an answer comes when no call on its key (and no lease, list or count on its queue) is
//!    open any more, at the latest at the next crash.
//! 3. No answer will come: [`Oracle::lost`]. Once the server is known to hold nothing of the call (it has replied into
//!    the void, or never got it): [`Oracle::settled`]. Settle early: every call that stays lost doubles the worlds.
//! 4. A crash: [`Oracle::crashed`] at its moment, then [`Oracle::recovered`] when the new life has read its clocks, before
//!    it does anything. Open calls are closed by it: deliver no answer of the old life afterwards. A graceful stop:
//!    [`Oracle::stopping`] as it begins, [`Oracle::stopped`] when it is complete, [`Oracle::recovered`] later.
//! 5. `List` is the whole list taken by paging while no other call of the queue is open. `Counts` may be asked any time.
//! 6. At the end of the liveness phase (all delivered and acked, a while without a call): a `List` of each queue, then
//!    [`Oracle::finish`].
//!
//! Being late is no violation before `finish`. Tasks of one instant are ordered by their puts, where those did not
//! overlap. A [`Violation`] ends the run: the oracle is not meant to be used after one.

mod call;
mod clock;
mod key;
mod world;

use std::collections::{BTreeMap, BTreeSet};

pub use self::call::{Answer, Call, CallId, Delivery, Due, Mode, State, TokenAnswer, Verb, View};
use self::clock::Clock;
use self::key::Key;
use self::world::{Broken, Down, Op, Phase};

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// `P1` to `P8` of the reliability page; `order` and `counts` where no number fits.
    pub promise: &'static str,
    /// Queue, key, what was seen and what was possible.
    pub what: String,
    /// Calls, answers and restarts that concern the key, one line each.
    pub story: Vec<String>,
}

/// Predicts the answers of a server. See the module for the order of calls.
#[derive(Debug)]
pub struct Oracle {
    clock: Clock,
    /// Counts the ends of calls: the order of the history.
    stamp: u64,
    stopping: bool,
    queues: BTreeMap<String, Queue>,
    open: BTreeMap<CallId, Open>,
    /// Where each token, and each id, was first seen.
    tokens: BTreeMap<String, Place>,
    ids: BTreeMap<u64, Place>,
    /// Both stamps of each call.
    calls: BTreeMap<CallId, (u64, u64)>,
    story: Vec<(Option<Place>, String)>,
}

type Place = (String, String);
type Verdict = Result<(), Violation>;

#[derive(Debug)]
struct Open {
    op: Op,
    /// Its keys: the token's index, and the key.
    parts: Vec<(usize, String)>,
}

#[derive(Debug, Default)]
struct Queue {
    keys: BTreeMap<String, Key>,
    /// Open leases, lists and counts.
    wide: BTreeSet<CallId>,
    lost_leases: Vec<Op>,
    /// Leases lost before a crash; they matter to tasks whose put was lost as well.
    old_leases: Vec<Op>,
    /// Puts that leave the key to the server, while nobody has seen it.
    keyless: BTreeMap<CallId, Op>,
    lease_answered: u64,
    touched: u64,
    listed: u64,
}

impl Oracle {
    /// A server without tasks, at this reading of its clocks.
    #[must_use]
    pub fn new(mono_ms: u64, wall_ms: i64) -> Self {
        Oracle {
            clock: Clock(vec![(mono_ms, wall_ms)]),
            stamp: 0,
            stopping: false,
            queues: BTreeMap::new(),
            open: BTreeMap::new(),
            tokens: BTreeMap::new(),
            ids: BTreeMap::new(),
            calls: BTreeMap::new(),
            story: Vec::new(),
        }
    }

    /// A clock moved; the wall clock may go back.
    ///
    /// # Panics
    /// If the monotonic clock went back: a fault of the driver.
    pub fn time(&mut self, mono_ms: u64, wall_ms: i64) {
        let last = self.clock.0[self.clock.now()];
        assert!(mono_ms >= last.0, "monotonic clock went from {} to {mono_ms}", last.0);
        if last != (mono_ms, wall_ms) {
            self.clock.0.push((mono_ms, wall_ms));
        }
    }

    /// A client sent a call.
    ///
    /// # Panics
    /// If `id` was used before: a fault of the driver.
    pub fn called(&mut self, id: CallId, call: Call) {
        self.stamp += 1;
        let mut parts = Vec::new();
        match (&call.verb, &call.key) {
            (Verb::Ack { tokens } | Verb::Nack { tokens, .. } | Verb::Extend { tokens, .. }, _) => {
                for (part, token) in tokens.iter().enumerate() {
                    let place = self.tokens.get(token).filter(|place| place.0 == call.queue);
                    parts.extend(place.map(|place| (part, place.1.clone())));
                }
            }
            (_, key) => parts.extend(key.iter().map(|key| (0, key.clone()))),
        }
        let (from, called) = (self.clock.now(), self.stamp);
        let op = Op {
            id,
            call: call.into(),
            part: 0,
            from,
            to: usize::MAX,
            called,
            answered: u64::MAX,
            said: None,
        };
        let queue = self.queues.entry(op.call.queue.clone()).or_default();
        match (&op.call.verb, &op.call.key) {
            (Verb::Lease { .. } | Verb::List | Verb::Counts, _) => drop(queue.wide.insert(id)),
            (Verb::Put { .. }, None) => drop(queue.keyless.insert(id, op.clone())),
            _ => {}
        }
        queue.touched = called;
        for (_, key) in &parts {
            let book = queue.key(key);
            (book.open, book.touched) = (book.open + 1, called);
            let place = Some((op.call.queue.clone(), key.clone()));
            self.story.push((place, format!("{}: call {} {:?}", self.clock, id.0, op.call.verb)));
        }
        self.calls.insert(id, (called, u64::MAX));
        assert!(self.open.insert(id, Open { op, parts }).is_none(), "{id:?} was used before");
    }

    /// A client got its answer.
    ///
    /// # Errors
    /// No world explains it, or one before it that had to wait for this.
    ///
    /// # Panics
    /// If the call is not open: a fault of the driver.
    pub fn answered(&mut self, id: CallId, answer: Answer) -> Verdict {
        if answer == Answer::Unknown {
            return self.lost(id);
        }
        let Open { mut op, parts } = self.close(id);
        let name = op.call.queue.clone();
        (op.to, op.answered) = (self.clock.now(), self.stamp);
        self.calls.insert(id, (op.called, op.answered));
        let queue = self.queues.entry(name.clone()).or_default();
        queue.keyless.remove(&id);
        let shares = match (&op.call.verb, answer) {
            (_, Answer::Refused) => vec![],
            (Verb::Lease { max, lease_ms }, Answer::Delivered(found)) => {
                self.delivered(&op, *max, *lease_ms, found)?
            }
            (Verb::List, Answer::Listed(views)) => self.listed(&op, views)?,
            (Verb::Counts, Answer::Counted { scheduled, ready, leased, dead }) => {
                self.counted(&op, scheduled, ready, leased, dead)?;
                vec![]
            }
            (
                Verb::Ack { tokens } | Verb::Nack { tokens, .. } | Verb::Extend { tokens, .. },
                Answer::Tokens(said),
            ) if said.len() == tokens.len() => {
                let known = |part| parts.iter().any(|&(known, _)| known == part);
                let odd = |&(part, said): &(usize, &_)| !known(part) && *said != TokenAnswer::Expired;
                if let Some((part, said)) = said.iter().enumerate().find(odd) {
                    let what = format!("{:?} was never issued, but is {said:?}", tokens[part]);
                    return Err(self.broken(&name, None, ("P4", what)));
                }
                parts.into_iter().map(|(part, key)| (part, key, Answer::Tokens(vec![said[part]]))).collect()
            }
            (Verb::Put { .. }, Answer::Stored { created, task }) if parts.is_empty() => {
                vec![(0, task.id.to_string(), Answer::Stored { created, task })]
            }
            (verb, said) if parts.is_empty() => {
                return Err(self.broken(&name, None, ("P6", format!("{verb:?} was answered {said:?}"))));
            }
            (_, said) => parts.into_iter().map(|(part, key)| (part, key, said.clone())).collect(),
        };
        for (part, key, said) in shares {
            let place = (name.clone(), key.clone());
            let line = format!(
                "{}: call {} of {} {:?}: {said:?}",
                self.clock,
                id.0,
                self.clock.mono(op.from),
                op.call.verb
            );
            self.story.push((Some(place.clone()), line));
            if let Answer::Stored { task: View { id, key: shown, .. }, .. }
            | Answer::Task(View { id, key: shown, .. }) = &said
                && (*shown != key || *self.ids.entry(*id).or_insert_with(|| place.clone()) != place)
            {
                let what = format!("id {id} with key {shown:?} belongs to {:?}", self.ids.get(id));
                return Err(self.broken(&name, Some(&key), ("P6", what)));
            }
            let book = self.queues.entry(name.clone()).or_default().key(&key);
            book.touched = self.stamp;
            book.knot.push(Op { part, said: Some(said), ..op.clone() });
        }
        let queue = self.queues.entry(name.clone()).or_default();
        match op.call.verb {
            Verb::Lease { .. } => queue.lease_answered = self.stamp,
            Verb::List => queue.listed = self.stamp,
            _ => {}
        }
        self.judge(&name)
    }

    /// No answer will come; the call may still take effect while the server lives.
    ///
    /// # Errors
    /// As [`answered`](Self::answered): other calls may have waited for this one.
    ///
    /// # Panics
    /// If the call is not open: a fault of the driver.
    pub fn lost(&mut self, id: CallId) -> Verdict {
        let Open { op, parts } = self.close(id);
        let queue = self.queues.entry(op.call.queue.clone()).or_default();
        if matches!(op.call.verb, Verb::Lease { .. }) {
            queue.keys.values_mut().for_each(|book| book.lost.push(op.clone()));
            queue.lost_leases.push(op.clone());
        }
        for (part, key) in parts {
            queue.key(&key).lost.push(Op { part, ..op.clone() });
        }
        self.judge(&op.call.queue)
    }

    /// A lost call has taken effect by now, or never will.
    ///
    /// # Errors
    /// None today; the type is that of its neighbours.
    pub fn settled(&mut self, id: CallId) -> Verdict {
        self.stamp += 1;
        let names: Vec<String> = self.queues.keys().cloned().collect();
        for name in names {
            let queue = self.queues.entry(name.clone()).or_default();
            queue.old_leases.extend(queue.lost_leases.extract_if(.., |op| op.id == id));
            for book in queue.keys.values_mut().filter(|book| book.lost.iter().any(|op| op.id == id)) {
                book.settled.push(id);
                book.touched = self.stamp;
            }
            self.judge(&name)?;
        }
        Ok(())
    }

    /// A graceful stop begins: from here on a crash may find leases written down.
    pub fn stopping(&mut self) {
        self.stopping = true;
    }

    /// The graceful stop is complete. Open calls happened before it or never.
    ///
    /// # Errors
    /// Answers that had waited for the open calls cannot be explained.
    pub fn stopped(&mut self) -> Verdict {
        self.down(Down::Stop)
    }

    /// The server died. Open calls happened before it or never.
    ///
    /// # Errors
    /// Answers that had waited for the open calls cannot be explained.
    pub fn crashed(&mut self) -> Verdict {
        self.down(if self.stopping { Down::CrashWhileStopping } else { Down::Crash })
    }

    /// A new life of the server has read its clocks and begins.
    pub fn recovered(&mut self) {
        self.stopping = false;
        self.story.push((None, format!("{}: recovered", self.clock)));
        for book in self.queues.values_mut().flat_map(|queue| queue.keys.values_mut()) {
            book.worlds.iter_mut().for_each(|world| world.recovered(&self.clock));
        }
    }

    /// The end of the liveness phase: nothing that is due may remain. The lists before it have compared all else.
    ///
    /// # Errors
    /// `P3`: a task is due, or its lease long over, and nobody got it.
    ///
    /// # Panics
    /// If calls are open, or a queue was changed after its last list: faults of the driver.
    pub fn finish(&mut self) -> Verdict {
        assert!(self.open.is_empty(), "calls are still open: {:?}", self.open.keys());
        for (name, queue) in &self.queues {
            assert!(queue.listed >= queue.touched, "queue {name:?} was used after its last list");
            for (key, book) in &queue.keys {
                if let Some(task) = book.overdue(&self.clock) {
                    return Err(self.broken(
                        name,
                        Some(key),
                        ("P3", format!("at {} still {task:?}", self.clock)),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Keys that were too contended to follow; a run that has any proves less.
    #[must_use]
    pub fn given_up(&self) -> usize {
        self.queues.values().flat_map(|queue| queue.keys.values()).filter(|book| book.given_up).count()
    }

    fn close(&mut self, id: CallId) -> Open {
        self.stamp += 1;
        let open = self.open.remove(&id).unwrap_or_else(|| panic!("{id:?} is not open"));
        let queue = self.queues.entry(open.op.call.queue.clone()).or_default();
        queue.wide.remove(&id);
        queue.touched = self.stamp;
        for (_, key) in &open.parts {
            let book = queue.key(key);
            (book.open, book.touched) = (book.open - 1, self.stamp);
        }
        open
    }

    fn down(&mut self, how: Down) -> Verdict {
        self.story.push((None, format!("{}: {how:?}", self.clock)));
        // All are lost before any key is judged: none of them may look as if it had never been sent.
        let open: Vec<CallId> = self.open.keys().copied().collect();
        open.into_iter().try_for_each(|id| self.lost(id))?;
        for queue in self.queues.values_mut() {
            queue.old_leases.append(&mut queue.lost_leases);
            queue.keys.values_mut().for_each(|book| book.restart(how, &self.clock));
        }
        Ok(())
    }

    fn judge(&mut self, name: &str) -> Verdict {
        let queue = self.queues.entry(name.to_owned()).or_default();
        let idle = |book: &Key| book.open == 0 && !(book.knot.is_empty() && book.settled.is_empty());
        for (key, book) in queue.keys.iter_mut().filter(|_| queue.wide.is_empty()) {
            if idle(book)
                && let Err(broken) = book.judge(&self.clock)
            {
                let key = key.clone();
                return Err(self.broken(name, Some(&key), broken));
            }
        }
        Ok(())
    }

    /// Is the key known, or can it be the one of a put without a key?
    fn known(&mut self, queue: &str, key: &str, id: u64, payload: u64) -> bool {
        let queue = self.queues.entry(queue.to_owned()).or_default();
        let made = |op: &Op| matches!(op.call.verb, Verb::Put { payload: put, .. } if put == payload);
        let put = queue.keyless.iter().find(|(_, op)| made(op) && key == id.to_string()).map(|(&id, _)| id);
        if let Some(op) = put.and_then(|put| queue.keyless.remove(&put)) {
            let old = queue.old_leases.clone();
            let book = queue.key(key);
            book.lost.extend(old);
            match self.open.get_mut(&op.id) {
                Some(open) => {
                    open.parts.push((0, key.to_owned()));
                    book.open += 1;
                }
                None => book.lost.push(op),
            }
        }
        queue.keys.contains_key(key)
    }

    /// Checks a lease answer as a whole; what is left to check is each key's share.
    fn delivered(
        &mut self,
        op: &Op,
        max: usize,
        lease_ms: u64,
        found: Vec<Delivery>,
    ) -> Result<Vec<Share>, Violation> {
        let name = &op.call.queue;
        let (low, high) = self.clock.walls(op.from, op.to);
        let until = low.saturating_add_unsigned(lease_ms)..=high.saturating_add_unsigned(lease_ms);
        let mut keys = BTreeSet::new();
        for one in &found {
            let place = (name.clone(), one.key.clone());
            let broken = match () {
                () if !keys.insert(&one.key) => ("P6", format!("twice in one answer: {found:?}")),
                () if !self.known(name, &one.key, one.id, one.payload) => {
                    ("P6", format!("nobody put it: {one:?}"))
                }
                () if *self.ids.entry(one.id).or_insert_with(|| place.clone()) != place => {
                    ("P6", format!("id {} belongs to {:?}", one.id, self.ids.get(&one.id)))
                }
                () if self.tokens.insert(one.token.clone(), place).is_some() => {
                    ("P4", format!("used token: {one:?}"))
                }
                () if !until.contains(&one.lease_until) => {
                    ("P4", format!("lease outside {until:?}: {one:?}"))
                }
                () if found.len() > max => ("P4", format!("{} tasks, {max} wanted", found.len())),
                () => continue,
            };
            return Err(self.broken(name, Some(&one.key), broken));
        }
        self.in_order(op, max, &found)?;
        Ok(found.into_iter().map(|one| (0, one.key.clone(), Answer::Delivered(vec![one]))).collect())
    }

    /// First due first, then first put first; and no task stays behind that was ready all the while.
    fn in_order(&self, op: &Op, max: usize, found: &[Delivery]) -> Verdict {
        let name = &op.call.queue;
        let queue = &self.queues[name];
        let certain = |book: &'_ Key| book.quiet(op.called).then(|| book.certain().cloned()).flatten();
        let put_by = |one: &Delivery| certain(&queue.keys[&one.key]).map(|task| task.put_by);
        let places: Vec<_> = found.iter().map(|one| (one.due_at, put_by(one))).collect();
        let before = |a: &(i64, Option<CallId>), b: &(i64, Option<CallId>)| match (a.1, b.1) {
            (Some(first), Some(then)) if a.0 == b.0 => self.calls[&first].1 < self.calls[&then].0,
            _ => a.0 < b.0,
        };
        for (at, one) in found.iter().enumerate() {
            if places[..at].iter().any(|earlier| before(&places[at], earlier)) {
                return Err(self.broken(
                    name,
                    Some(&one.key),
                    ("order", format!("not in order of due and put: {found:?}")),
                ));
            }
        }
        let alone = queue.wide.is_empty() && queue.lost_leases.is_empty() && queue.lease_answered < op.called;
        for (key, book) in
            queue.keys.iter().filter(|(key, _)| alone && found.iter().all(|one| one.key != **key))
        {
            let Some(task) = certain(book) else { continue };
            let ready = matches!(task.phase, Phase::Waiting { ready: Some(true), .. });
            if ready && found.len() < max {
                return Err(self.broken(
                    name,
                    Some(key),
                    ("P4", format!("ready, but not in {found:?}: {task:?}")),
                ));
            }
            if ready && places.iter().any(|place| before(&(task.due.1, Some(task.put_by)), place)) {
                return Err(self.broken(
                    name,
                    Some(key),
                    ("order", format!("passed over by {found:?}: {task:?}")),
                ));
            }
        }
        Ok(())
    }

    fn listed(&mut self, op: &Op, views: Vec<View>) -> Result<Vec<Share>, Violation> {
        let name = &op.call.queue;
        let mut rows = BTreeMap::new();
        for view in views {
            if !self.known(name, &view.key, view.id, view.payload) {
                return Err(self.broken(name, None, ("P6", format!("listed, but nobody put it: {view:?}"))));
            }
            if let Some(other) = rows.insert(view.key.clone(), view) {
                return Err(self.broken(name, Some(&other.key), ("P6", format!("listed twice: {other:?}"))));
            }
        }
        let row = |key: &String| rows.remove(key).map_or(Answer::NotFound, Answer::Task);
        let mut row = row;
        Ok(self.queues[name].keys.keys().map(|key| (0, key.clone(), row(key))).collect())
    }

    /// Some choice of a state for each key must give these numbers. By Hall's theorem there is one exactly if no set
    /// of states is too small for the keys that can be in no other.
    fn counted(&self, op: &Op, scheduled: usize, ready: usize, leased: usize, dead: usize) -> Verdict {
        let queue = &self.queues[&op.call.queue];
        let alone = queue.wide.is_empty() && queue.lease_answered < op.called;
        let may = |book: &Key| if alone && book.quiet(op.called) { book.states(&self.clock) } else { 15 };
        let keys: Vec<u8> = queue.keys.values().map(may).chain(queue.keyless.keys().map(|_| 15)).collect();
        let counts = [keys.len().wrapping_sub(scheduled + ready + leased), scheduled, ready, leased];
        let room =
            |set: u8| (0..4).filter(|bit| set >> bit & 1 == 1).map(|bit: usize| counts[bit]).sum::<usize>();
        let fits = |set: u8| keys.iter().filter(|&&may| may & !set == 0).count() <= room(set);
        if dead > 0 || scheduled + ready + leased > keys.len() || !(1..16).all(fits) {
            let shown = format!("{scheduled} scheduled, {ready} ready, {leased} leased, {dead} dead");
            let may: Vec<_> = queue.keys.keys().zip(&keys).collect();
            let what = format!("{shown}; possible (1 absent, 2 scheduled, 4 ready, 8 leased): {may:?}");
            return Err(self.broken(&op.call.queue, None, ("counts", what)));
        }
        Ok(())
    }

    fn broken(&self, queue: &str, key: Option<&str>, (promise, what): Broken) -> Violation {
        let about = |place: &Place| place.0 == queue && key.is_none_or(|key| place.1 == key);
        let story = self.story.iter().filter(|(place, _)| place.as_ref().is_none_or(about));
        let what = format!("queue {queue:?}, key {}: {what}", key.unwrap_or("(any)"));
        Violation { promise, what, story: story.map(|(_, line)| line.clone()).collect() }
    }
}

/// The part of an answer that concerns one key: the token's index, the key, what it was told.
type Share = (usize, String, Answer);

impl Queue {
    fn key(&mut self, key: &str) -> &mut Key {
        let lost = &self.lost_leases;
        self.keys.entry(key.to_owned()).or_insert_with(|| Key::new(lost.clone()))
    }
}

#[cfg(test)]
#[path = "oracle_tests.rs"]
mod tests;
