//! [`Ledger`]: what several nodes above one database could have answered, computed from the history of calls alone.
//!
//! For each key the ledger keeps the *worlds* that explain all answers so far: the task of the key, and the calls without an answer that may
//! still take effect. An answer removes the worlds that it contradicts. If none is left, a promise is broken. A call that was given to an
//! owner has no effect any more once a later owner has the shard. So each takeover settles the calls of earlier owners.

use std::collections::{BTreeMap, BTreeSet};

use super::rows::{INBOX, RowAct};
use crate::oracle::{Answer, Call, CallId, Delivery, Due, TokenAnswer, Verb, View, Violation};

/// The number of earlier states of a key that are kept for calls that began long ago.
const EARLIER_MAX: usize = 64;

/// A row of the inbox takes effect under any owner, so no owner settles it.
const ROW_EPOCH: u32 = u32::MAX;
const NS_PER_MS: i128 = 1_000_000;

/// A task as its owner sees it: the number of its payload, and its due time.
type Task = Option<(u64, When)>;
type Verdict = Result<(), Violation>;
/// Queue and key.
type Place = (String, String);

/// A due time, as far as the ledger knows it.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum When {
    /// At this instant (ms since the Unix epoch).
    At(i64),
    /// The server counted the delay of this call, and no answer has told the instant yet.
    Counted(CallId),
}

/// A delay that a call names.
#[derive(Copy, Clone, Debug)]
struct Delay {
    delay_ms: u64,
    /// The earliest instant from which it may count (ns).
    from_ns: i128,
}

/// The delays of all calls.
#[derive(Debug, Default)]
struct Delays(BTreeMap<CallId, Delay>);

impl Delays {
    /// Whether a task that has this due time, as far as the ledger knows, may show this one (ms).
    fn fits(&self, when: When, due_ms: i64) -> bool {
        match when {
            When::At(ms) => ms == due_ms,
            When::Counted(id) => self.0.get(&id).is_some_and(|delay| {
                i128::from(due_ms) * NS_PER_MS >= delay.from_ns + i128::from(delay.delay_ms) * NS_PER_MS
            }),
        }
    }

    /// The same for a delay that may be over at any time.
    fn fits_early(when: When, due_ms: i64) -> bool {
        matches!(when, When::Counted(_)) || when == When::At(due_ms)
    }
}

/// Judges the answers of all nodes.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    books: BTreeMap<Place, Book>,
    open: BTreeMap<CallId, Op>,
    delays: Delays,
    /// The order of events.
    stamp: u64,
    /// The newest epoch of each queue, as its owner showed it, and the newest epoch at the last loss.
    epochs: BTreeMap<String, u32>,
    lost_at: BTreeMap<String, u32>,
    /// The key of each id, the content of each version, and the payload of each token, since they were first seen.
    ids: BTreeMap<u64, Place>,
    versions: BTreeMap<(String, u64), (String, u64, i64)>,
    tokens: BTreeMap<String, (String, u64)>,
    grants: BTreeMap<(Place, u64), Vec<Grant>>,
    story: Vec<(String, String)>,
}

#[derive(Debug)]
struct Book {
    worlds: BTreeSet<World>,
    /// Earlier states, each with the stamp at which it was replaced.
    earlier: Vec<(u64, BTreeSet<Task>)>,
    /// Whether a fail-over may have lost the task, so that any answer is right.
    is_unknown: bool,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct World {
    task: Task,
    /// Calls that may still take effect.
    pending: BTreeSet<CallId>,
}

#[derive(Clone, Debug)]
struct Op {
    call: Call,
    effect: Effect,
    epoch: u32,
    stamp: u64,
    at_ns: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Effect {
    None,
    Put(u64, When),
    Move(When),
    Cancel,
    Ack(u64),
}

impl Op {
    fn is_row(&self) -> bool {
        self.epoch == ROW_EPOCH
    }
}

impl Effect {
    fn on(&self, task: Task) -> Task {
        match (self, task) {
            (Self::Put(payload, due), _) => Some((*payload, *due)),
            (Self::Move(due), Some((payload, _))) => Some((payload, *due)),
            (Self::Cancel, _) => None,
            (Self::Ack(payload), Some((of, _))) if of == *payload => None,
            (Self::None | Self::Move(_) | Self::Ack(_), task) => task,
        }
    }
}

/// A lease that a client got.
#[derive(Clone, Debug)]
struct Grant {
    token: String,
    epoch: u32,
    called: u64,
    answered: u64,
    /// Until when the lease lasts at least (simulated, ns).
    until_ns: u64,
}

impl Default for Book {
    fn default() -> Self {
        let first = World { task: None, pending: BTreeSet::new() };
        Self { worlds: BTreeSet::from([first]), earlier: Vec::new(), is_unknown: false }
    }
}

impl Ledger {
    /// A call was given to an owner with this epoch. `at_ns`: the simulated time.
    pub(super) fn called(&mut self, id: CallId, call: Call, epoch: u32, at_ns: u64) {
        self.stamp += 1;
        let mut due_of = |due: &Option<Due>| match due {
            Some(Due::At(ms)) => When::At(*ms),
            Some(Due::In(delay_ms)) => {
                self.delays.0.insert(id, Delay { delay_ms: *delay_ms, from_ns: i128::MAX });
                When::Counted(id)
            }
            None => unreachable!("the workload names an instant or a delay"),
        };
        let effect = match &call.verb {
            Verb::Put { due, payload, .. } => Effect::Put(*payload, due_of(due)),
            Verb::Patch { due, .. } => Effect::Move(due_of(due)),
            Verb::Cancel { .. } => Effect::Cancel,
            Verb::Ack { tokens } => {
                Effect::Ack(self.tokens.get(&tokens[0]).map_or(0, |(_, payload)| *payload))
            }
            _ => Effect::None,
        };
        if let Some(key) = &call.key {
            self.note(&call.queue, key, format!("{id:?} to epoch {epoch}: {:?}", call.verb));
            if effect != Effect::None {
                self.books.entry((call.queue.clone(), key.clone())).or_default().add(id);
            }
        }
        self.open.insert(id, Op { call, effect, epoch, stamp: self.stamp, at_ns });
    }

    /// The delay of this call, if it names one, counts from this instant of the clock of the database (ns) or from later.
    pub(super) fn counts_from(&mut self, id: CallId, from_ns: i128) {
        if let Some(delay) = self.delays.0.get_mut(&id) {
            delay.from_ns = delay.from_ns.min(from_ns);
        }
    }

    /// No answer will come. The call may take effect until a later owner has the shard.
    pub(super) fn lost(&mut self, id: CallId) {
        if let Some(Op { call: Call { queue, key: Some(key), .. }, .. }) = self.open.get(&id) {
            let (queue, key) = (queue.clone(), key.clone());
            self.note(&queue, &key, format!("{id:?} is lost"));
        }
    }

    /// A row of the inbox was committed. It takes effect once, under any owner.
    pub(super) fn row_came(&mut self, id: CallId, place: &Place, act: RowAct) {
        self.stamp += 1;
        let effect = match act {
            RowAct::Put(payload, due_ms) => Effect::Put(payload, When::At(due_ms)),
            RowAct::Cancel => Effect::Cancel,
            RowAct::Nonsense => return,
        };
        self.note(&place.0, &place.1, format!("row {id:?} came: {act:?}"));
        self.books.entry(place.clone()).or_default().add(id);
        let call = Call { queue: place.0.clone(), key: Some(place.1.clone()), verb: Verb::Get };
        self.open.insert(id, Op { call, effect, epoch: ROW_EPOCH, stamp: self.stamp, at_ns: 0 });
    }

    /// A row of the inbox was taken, or moved to those that were refused.
    ///
    /// # Errors
    /// No world explains that.
    pub(super) fn row_ended(&mut self, id: CallId, place: &Place, was_refused: bool) -> Verdict {
        self.stamp += 1;
        let Some(op) = self.open.get(&id).cloned() else { return Ok(()) };
        self.note(&place.0, &place.1, format!("row {id:?} has ended, refused: {was_refused}"));
        let worlds = self.closure(place);
        self.open.remove(&id);
        let tasks: BTreeSet<Task> = worlds.iter().map(|world| world.task).collect();
        // The cancel of a leased task is taken, and has no effect.
        let has_no_effect = |world: &World| op.effect == Effect::Cancel && world.task.is_some();
        let explains = |world: &World| {
            if was_refused {
                world.pending.contains(&id)
            } else {
                !world.pending.contains(&id) || has_no_effect(world)
            }
        };
        let after: BTreeSet<World> =
            worlds.into_iter().filter(explains).map(|world| world.without(id)).collect();
        let stamp = self.stamp;
        let book = self.books.entry(place.clone()).or_default();
        if after.is_empty() && !book.is_unknown {
            let what = format!("row {id:?} {op:?} has ended, refused: {was_refused}, possible: {tasks:?}");
            return Err(self.violation(INBOX, what, place));
        }
        book.earlier.push((stamp, tasks));
        book.replace(stamp, after.into_iter());
        Ok(())
    }

    /// A fail-over lost the row. Until the next owner, the row may still take effect.
    pub(super) fn row_lost(&mut self, id: CallId) {
        let epoch = |op: &Op| self.epochs.get(&op.call.queue).copied().unwrap_or(0);
        if let Some(epoch) = self.open.get(&id).map(epoch)
            && let Some(op) = self.open.get_mut(&id)
        {
            op.epoch = epoch;
        }
    }

    /// A node has begun to own the shard of these queues. Calls that were given to earlier owners have taken effect by now, or never will.
    pub(super) fn acquired(&mut self, queues: &[String], epoch: u32) {
        self.stamp += 1;
        for queue in queues {
            let last = self.epochs.insert(queue.clone(), epoch).unwrap_or(0);
            self.epochs.insert(queue.clone(), epoch.max(last));
            if let Some(lost_at) = self.lost_at.get(queue).copied()
                && epoch > lost_at
            {
                self.lost_at.remove(queue);
            }
            let settled: BTreeSet<CallId> = self
                .open
                .iter()
                .filter(|(_, op)| op.call.queue == *queue && op.epoch < epoch)
                .map(|(id, _)| *id)
                .collect();
            let places: Vec<Place> = self.books.keys().filter(|(of, _)| of == queue).cloned().collect();
            for place in places {
                self.note(&place.0, &place.1, format!("an owner with epoch {epoch}"));
                let worlds = self.closure(&place);
                let stamp = self.stamp;
                let book = self.books.entry(place).or_default();
                book.replace(
                    stamp,
                    worlds.into_iter().map(|mut world| {
                        world.pending.retain(|id| !settled.contains(id));
                        world
                    }),
                );
            }
            self.open.retain(|id, _| !settled.contains(id));
        }
    }

    /// A fail-over may have lost commits that were acknowledged.
    pub(super) fn lossy(&mut self) {
        for book in self.books.values_mut() {
            book.is_unknown = true;
        }
        self.lost_at.clone_from(&self.epochs);
        self.grants.clear();
    }

    /// A node answered. `latest_ms`: the latest instant that it may take for the present (ms), see [`Clocks`](super::clocks::Clocks).
    ///
    /// # Errors
    /// No world explains the answer.
    pub(super) fn answered(
        &mut self,
        id: CallId,
        answer: Answer,
        (now_ns, latest_ms): (u64, i64),
    ) -> Verdict {
        self.stamp += 1;
        let Some(op) = self.open.get(&id).cloned() else { return Ok(()) };
        if answer == Answer::Unknown {
            self.lost(id);
            return Ok(());
        }
        let queue = op.call.queue.clone();
        match &answer {
            Answer::Delivered(found) => {
                self.open.remove(&id);
                for one in found {
                    self.delivered(&op, one, (now_ns, latest_ms))?;
                }
                return Ok(());
            }
            Answer::Stored { task, .. } | Answer::Task(task) => self.shown(&queue, task)?,
            _ => {}
        }
        let Some(key) = op.call.key.clone() else {
            self.open.remove(&id);
            return Ok(());
        };
        let place = (queue.clone(), key.clone());
        self.note(&queue, &key, format!("{id:?} is answered {answer:?}"));
        if answer == Answer::Tokens(vec![TokenAnswer::Acked]) {
            self.is_newest(&op, &place)?;
        }
        // While an owner from before a loss goes on, its answers may be those from before the loss.
        let is_before_loss = self.lost_at.get(&queue).is_some_and(|lost_at| op.epoch <= *lost_at);
        let before = self.closure_without(&place, Some(id));
        self.open.remove(&id);
        let stamp = self.stamp;
        let book = self.books.entry(place.clone()).or_default();
        if book.is_unknown {
            let known = if is_before_loss { None } else { after_loss(&op, &answer) };
            if let Some(task) = known {
                let pending = book.worlds.iter().flat_map(|world| world.pending.clone());
                let pending: BTreeSet<CallId> = pending.filter(|pending| *pending != id).collect();
                // The calls that may still take effect may also have done so. Of a row, the ledger will learn that it has ended.
                let rows = pending.iter().filter(|id| self.open.get(id).is_some_and(Op::is_row));
                let rows: Vec<CallId> = rows.copied().collect();
                let mut worlds = vec![World { task, pending }];
                for id in rows {
                    let had_effect: Vec<World> =
                        worlds.iter().map(|world| world.clone().without(id)).collect();
                    worlds.extend(had_effect);
                }
                book.replace(stamp, worlds.into_iter());
                book.is_unknown = false;
            } else {
                book.replace(stamp, before.into_iter());
            }
            return Ok(());
        }
        let judged = |world: &World| {
            let task = judge(&op, &answer, world.task, |when, due_ms| self.delays.fits(when, due_ms))?;
            Some(World { task, ..world.clone() })
        };
        let after: BTreeSet<World> = before.iter().filter_map(judged).collect();
        if after.is_empty() {
            let explains = |world: &World| judge(&op, &answer, world.task, Delays::fits_early).is_some();
            let shown = shown_by(&answer).filter(|_| before.iter().any(explains));
            let is_early = shown.is_some_and(|task| !book.was(0, |other| other == Some(task)));
            let tasks: BTreeSet<Task> = before.iter().map(|world| world.task).collect();
            let what = format!("{:?} of {queue}/{key} was answered {answer:?}, possible: {tasks:?}", op.call);
            return Err(self.violation(if is_early { "P2" } else { promise_of(&op) }, what, &place));
        }
        book.replace(stamp, after.into_iter());
        Ok(())
    }

    fn delivered(&mut self, op: &Op, one: &Delivery, (now_ns, latest_ms): (u64, i64)) -> Verdict {
        let place = (op.call.queue.clone(), one.key.clone());
        self.note(&place.0, &place.1, format!("delivered by epoch {}: {one:?}", op.epoch));
        if one.due_at > latest_ms {
            let what = format!("{one:?} was delivered, and the clock shows {latest_ms} at most");
            return Err(self.violation("P2", what, &place));
        }
        self.identify(one.id, &place)?;
        let seen = self.tokens.entry(one.token.clone()).or_insert((one.key.clone(), one.payload));
        if *seen != (one.key.clone(), one.payload) {
            let what = format!("the token of {one:?} was that of {seen:?}");
            return Err(self.violation("P4", what, &place));
        }
        let Verb::Lease { lease_ms, .. } = op.call.verb else { return Ok(()) };
        let grant = Grant {
            token: one.token.clone(),
            epoch: op.epoch,
            called: op.stamp,
            answered: self.stamp,
            // The clocks of the nodes differ by a part in ten thousand.
            until_ns: op.at_ns + lease_ms * 999_000,
        };
        let grants = self.grants.entry((place.clone(), one.payload)).or_default();
        let other =
            grants.iter().find(|other| other.epoch == grant.epoch && now_ns < other.until_ns).cloned();
        grants.push(grant);
        if let Some(other) = other {
            let what = format!("{one:?} was delivered while {other:?} lasted");
            return Err(self.violation("P4", what, &place));
        }
        let now: BTreeSet<Task> = self.closure(&place).into_iter().map(|world| world.task).collect();
        let book = self.books.entry(place.clone()).or_default();
        let is_it = |fits: &dyn Fn(When, i64) -> bool, task: Task| {
            task.is_some_and(|(payload, when)| payload == one.payload && fits(when, one.due_at))
        };
        let right = |task: Task| is_it(&|when, due_ms| self.delays.fits(when, due_ms), task);
        let early = |task: Task| is_it(&Delays::fits_early, task);
        let is_right = book.was(op.stamp, right) || now.iter().any(|task| right(*task));
        if !book.is_unknown && !is_right {
            let was_shown = book.was(0, right);
            let is_early = !was_shown && (book.was(op.stamp, early) || now.iter().any(|task| early(*task)));
            let what = format!("{one:?} was delivered, possible: {now:?}");
            return Err(self.violation(if is_early { "P2" } else { "P5" }, what, &place));
        }
        Ok(())
    }

    /// A lease ends when a later one begins, so its token must not be accepted any more.
    fn is_newest(&self, op: &Op, place: &Place) -> Verdict {
        let Verb::Ack { tokens } = &op.call.verb else { return Ok(()) };
        let Effect::Ack(payload) = op.effect else { return Ok(()) };
        let grants = self.grants.get(&(place.clone(), payload));
        let grants = grants.map(Vec::as_slice).unwrap_or_default();
        let Some(mine) = grants.iter().find(|grant| grant.token == tokens[0]) else { return Ok(()) };
        let later = |grant: &&Grant| grant.called > mine.answered && grant.answered < op.stamp;
        match grants.iter().find(later) {
            None => Ok(()),
            Some(later) => {
                let what = format!("the token of {mine:?} was accepted, and {later:?} came later");
                Err(self.violation("P4", what, place))
            }
        }
    }

    fn shown(&mut self, queue: &str, view: &View) -> Verdict {
        let place = (queue.to_owned(), view.key.clone());
        self.identify(view.id, &place)?;
        let content = (view.key.clone(), view.payload, view.due_at);
        let first = self.versions.entry((queue.to_owned(), view.version)).or_insert_with(|| content.clone());
        if *first != content {
            let what = format!("version {} is {content:?}, and was {first:?}", view.version);
            return Err(self.violation("P6", what, &place));
        }
        Ok(())
    }

    fn identify(&mut self, id: u64, place: &Place) -> Verdict {
        let first = self.ids.entry(id).or_insert_with(|| place.clone());
        if first == place {
            return Ok(());
        }
        let what = format!("id {id} belongs to {first:?} and to {place:?}");
        Err(self.violation("P6", what, place))
    }

    fn closure(&self, place: &Place) -> BTreeSet<World> {
        self.closure_without(place, None)
    }

    /// All worlds in which any of the calls without an answer have taken effect. The call `without` is not among them.
    fn closure_without(&self, place: &Place, without: Option<CallId>) -> BTreeSet<World> {
        let first = self.books.get(place).map(|book| book.worlds.clone());
        let mut left: Vec<World> = first.unwrap_or_else(|| Book::default().worlds).into_iter().collect();
        let mut all = BTreeSet::new();
        while let Some(mut world) = left.pop() {
            if let Some(without) = without {
                world.pending.remove(&without);
            }
            if !all.insert(world.clone()) {
                continue;
            }
            for id in &world.pending {
                let Some(op) = self.open.get(id) else { continue };
                let mut next = world.clone();
                next.task = op.effect.on(world.task);
                next.pending.remove(id);
                left.push(next);
            }
        }
        all
    }

    fn note(&mut self, queue: &str, key: &str, line: String) {
        self.story.push((format!("{queue}/{key}"), line));
    }

    fn violation(&self, promise: &'static str, what: String, place: &Place) -> Violation {
        let name = format!("{}/{}", place.0, place.1);
        let story = self.story.iter().filter(|(of, _)| *of == name).map(|(_, line)| line.clone()).collect();
        Violation { promise, what, story }
    }
}

impl World {
    fn without(mut self, id: CallId) -> Self {
        self.pending.remove(&id);
        self
    }
}

impl Book {
    /// From now on, the call may take effect.
    fn add(&mut self, id: CallId) {
        let worlds = std::mem::take(&mut self.worlds).into_iter();
        let with = |mut world: World| {
            world.pending.insert(id);
            world
        };
        self.worlds = worlds.map(with).collect();
    }

    /// Whether `is_it` was true of the task at some moment, in some world, at this stamp or later.
    fn was(&self, since: u64, is_it: impl Fn(Task) -> bool) -> bool {
        let earlier = self.earlier.iter().filter(|(until, _)| *until >= since);
        earlier.flat_map(|(_, tasks)| tasks).any(|task| is_it(*task))
    }

    fn replace(&mut self, stamp: u64, worlds: impl Iterator<Item = World>) {
        let tasks = self.worlds.iter().map(|world| world.task).collect();
        self.earlier.push((stamp, tasks));
        if self.earlier.len() > EARLIER_MAX {
            self.earlier.remove(0);
        }
        self.worlds = worlds.collect();
    }
}

fn promise_of(op: &Op) -> &'static str {
    match op.effect {
        Effect::Ack(_) => "P4",
        Effect::Cancel => "P5",
        Effect::None | Effect::Put(..) | Effect::Move(_) => "P1",
    }
}

/// Returns the task that an answer shows.
fn shown_by(answer: &Answer) -> Option<(u64, When)> {
    match answer {
        Answer::Stored { task, .. } | Answer::Task(task) => Some((task.payload, When::At(task.due_at))),
        _ => None,
    }
}

/// Returns the task after the call, if the answer is possible with the task before it. `fits`: whether a task whose due time is known so far may
/// show this one (ms).
fn judge(op: &Op, answer: &Answer, task: Task, fits: impl Fn(When, i64) -> bool) -> Option<Task> {
    let shows = |view: &View, task: Task| {
        let is_shown = |(payload, when)| payload == view.payload && fits(when, view.due_at);
        task.is_some_and(is_shown).then_some(Some((view.payload, When::At(view.due_at))))
    };
    let after = op.effect.on(task);
    match (&op.effect, answer) {
        (_, Answer::Refused) => Some(task),
        (Effect::Put(..), Answer::Stored { task: view, .. }) => shows(view, after),
        (Effect::Move(_), Answer::Stored { task: view, .. }) => task.and_then(|_| shows(view, after)),
        (Effect::Cancel, Answer::Cancelled | Answer::Revoked) => task.is_some().then_some(after),
        (Effect::Put(..) | Effect::Move(_) | Effect::Cancel, Answer::Leased) => {
            task.is_some().then_some(task)
        }
        (Effect::Move(_) | Effect::Cancel | Effect::None, Answer::NotFound | Answer::Done) => {
            task.is_none().then_some(task)
        }
        (Effect::None, Answer::Task(view)) => shows(view, task),
        (Effect::Ack(payload), Answer::Tokens(answers)) => {
            if answers[..] == [TokenAnswer::Acked] {
                task.is_some_and(|(of, _)| of == *payload).then_some(after)
            } else {
                Some(task)
            }
        }
        _ => None,
    }
}

/// Returns the task after a call whose task before is unknown; `None`: it is still unknown.
fn after_loss(op: &Op, answer: &Answer) -> Option<Task> {
    match (&op.effect, answer) {
        (Effect::Put(..) | Effect::Move(_), Answer::Stored { .. }) | (_, Answer::Task(_)) => {
            shown_by(answer).map(Some)
        }
        (Effect::Cancel, Answer::Cancelled | Answer::Revoked) => Some(None),
        (Effect::None | Effect::Move(_) | Effect::Cancel, Answer::NotFound | Answer::Done) => Some(None),
        (Effect::Ack(_), Answer::Tokens(answers)) if answers[..] == [TokenAnswer::Acked] => Some(None),
        _ => None,
    }
}
