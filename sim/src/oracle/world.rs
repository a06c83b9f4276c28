//! One possible state of the server for one key, and the rules by which a call changes it.

use std::collections::BTreeSet;
use std::mem::take;
use std::rc::Rc;

use super::call::{
    Act, Answer, Call, CallId, Due, How, KeyAct, Mode, State, There, TokenAnswer, Verb, View,
    expire_after_of, max_attempts_of,
};
use super::clock::{Clock, Moment};
use super::task::{Lease, Task, instant, steps_from};

/// A promise, and how it was broken.
pub(super) type Broken = (&'static str, String);

/// A call, or the part of it that concerns one key: one token, one delivery, one row of the list.
#[derive(Clone, Debug)]
pub(super) struct Op {
    /// The number of the call, and the index of the token (0 for a call without tokens).
    pub(super) id: (CallId, usize),
    pub(super) call: Rc<Call>,
    /// The call took effect at a moment in `from..=to`, if it took effect.
    pub(super) from: Moment,
    pub(super) to: Moment,
    /// The stamps of the begin and of the answer of the call; `answered` is `u64::MAX` if no answer came.
    pub(super) called: u64,
    pub(super) answered: u64,
    /// Whether the queue may have had a limit (in flight, backlog or rate) during the call.
    pub(super) limited: bool,
    /// Whether no other call of its queue began or ended while it was open.
    pub(super) alone: bool,
    /// The answer for this key. For a row of a list, this is the answer that a get would have.
    pub(super) said: Option<Answer>,
}

/// A possible state of the server for one key. Comparable, so that equal worlds merge.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct World {
    pub(super) task: Option<Task>,
    /// The dead task that a call with the key finds. It is `None` while the key has a live task.
    dead: Option<Task>,
    /// Dead tasks whose key a later task has had, so that a call with the key does not find them any more.
    buried: Vec<Task>,
    /// How the last task that was acked or cancelled ended: `Some(true)` by an ack, `Some(false)` by a cancel; `None` if there was none.
    acked: Option<bool>,
    /// Tokens whose acks ended tasks: a second ack by one of them is answered `Acked`.
    acked_by: Vec<String>,
    /// The highest version that an answer has shown; the next version must be higher.
    version_floor: u64,
    ids_ended: Vec<u64>,
    /// Token of the lease that was revoked last: a call with it is answered `revoked`.
    revoked: Option<String>,
    /// Tokens of older revoked leases, and of leases that a crash ended before their task was taken back. A call with
    /// one of them is answered `revoked` or `expired`.
    revoked_before: Vec<String>,
    /// The calls without an answer that have taken effect in this world.
    pub(super) used: BTreeSet<(CallId, usize)>,
}

/// How the server went down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Down {
    Crash,
    CrashWhileStopping,
    Stop,
}

impl World {
    /// Applies `op` to this world, and to each world that time alone may have made of it before. Returns for each of
    /// them the world after `op`, or the promise that the answer breaks. If `op` has no answer, only changed worlds are
    /// returned.
    pub(super) fn step(&self, op: &Op, clock: &Clock) -> Vec<Result<World, Broken>> {
        let after = self.in_time(op.to, clock).into_iter().map(|base| {
            let mut world = base.clone();
            match world.take(op, clock) {
                Ok(true) if op.said.is_some() => Some(Ok(world)),
                Ok(true) if world != base => {
                    world.used.insert(op.id);
                    Some(Ok(world))
                }
                Ok(true) => None,
                Ok(false) => Some(Err(base.blame(op, clock))),
                Err(broken) => Some(Err(broken)),
            }
        });
        after.flatten().collect()
    }

    /// This world, and the worlds that time alone may have made of it until `to`, because a lease ran out or the task
    /// expired.
    pub(super) fn in_time(&self, to: Moment, clock: &Clock) -> Vec<World> {
        let mut worlds = vec![self.clone()];
        worlds.extend(self.after_expiry(to, clock));
        let given_up: Vec<World> = worlds.iter().filter_map(|world| world.after_death(to, clock)).collect();
        worlds.extend(given_up);
        worlds
    }

    /// This world after its task expired and was given up, if that may have happened until `to`. A leased task does not
    /// expire.
    pub(super) fn after_death(&self, to: Moment, clock: &Clock) -> Option<World> {
        let task = self.task.as_ref().filter(|task| !task.leased)?;
        let (first, _) = task.expires?;
        (clock.walls(task.born, to).1 >= first).then(|| {
            let mut world = self.clone();
            world.dead = world.task.take();
            world
        })
    }

    /// This world after the lease of its task ran out, if that may have happened until `to`.
    pub(super) fn after_expiry(&self, to: Moment, clock: &Clock) -> Option<World> {
        let mut world = self.clone();
        let task = world.task.as_mut().filter(|task| task.leased && !task.is_as_told(to, clock))?;
        let lease = task.lease.as_ref()?;
        let by_wall = lease.written && clock.walls(task.since, to).1 >= lease.wall_until;
        (by_wall || clock.mono(to) >= lease.until).then(|| task.wait(1, Some(true)))?;
        world.give_up();
        Some(world)
    }

    /// The number of dead tasks in this world.
    pub(super) fn graves(&self) -> usize {
        self.buried.len() + usize::from(self.dead.is_some())
    }

    /// An attempt failed: makes the task dead if that was the last attempt that is allowed.
    fn give_up(&mut self) {
        let is_over =
            |task: &mut Task| max_attempts_of(task.payload).is_some_and(|max| task.leases_ended >= max);
        if let Some(task) = self.task.take_if(is_over) {
            self.dead = Some(task);
        }
    }

    /// The worlds that are possible at the next start, after the server went `down`.
    pub(super) fn restart(mut self, down: Down, clock: &Clock) -> Vec<World> {
        self.used.clear();
        let mut kept = self.clone();
        let Some(task) = &mut self.task else {
            return vec![self];
        };
        let was_leased = take(&mut task.leased);
        task.ready = Some(false);
        let cut_off = task.lease.take().filter(|lease| lease.token.is_some());
        task.lease = cut_off.map(|Lease { token, restarts, .. }| Lease {
            token,
            restarts: restarts.saturating_add(1),
            ..Lease::default()
        });
        let Some(lease) = kept.task.as_mut().and_then(|task| task.lease.as_mut()) else {
            return vec![self];
        };
        let (mono, wall) = clock.last();
        let wall_until = wall.saturating_add_unsigned(lease.until).saturating_sub_unsigned(mono);
        lease.wall_until = lease.wall_until.min(wall_until);
        let most = if lease.latest < u64::MAX { lease.latest.saturating_sub(mono) } else { u64::MAX };
        // A crash may bring back the lease as an earlier stop wrote it.
        let before = if down == Down::Stop { (u64::MAX, 0) } else { lease.left };
        lease.left = (before.0.min(lease.until.saturating_sub(mono)), before.1.max(most));
        // A crash may bring back the lease as an earlier stop wrote it. Since that stop the worker may have been told
        // another end.
        lease.told = lease.told.filter(|_| down == Down::Stop);
        match (down, std::mem::replace(&mut lease.written, true)) {
            _ if !was_leased => vec![self],
            (Down::Stop, _) => vec![kept],
            (Down::Crash, false) => vec![self],
            (Down::Crash, true) | (Down::CrashWhileStopping, _) => vec![self, kept],
        }
    }

    /// The server was started again. A waiting task is ready if its `due_at` has come. A lease that was written down
    /// goes on for the rest of its time by the wall clock, and no longer than it still ran at the stop.
    pub(super) fn recovered(&mut self, clock: &Clock) {
        let Some(task) = &mut self.task else { return };
        task.since = clock.now();
        if let Some(lease) = task.lease.as_mut().filter(|_| task.leased) {
            let (mono, wall) = clock.last();
            let until_wall = lease.wall_until.saturating_sub(wall).max(0).unsigned_abs();
            lease.until = mono.saturating_add(until_wall.min(lease.left.0));
            // The end is rounded up on each clock.
            lease.latest = mono.saturating_add(lease.left.1).saturating_add(2);
        }
    }

    /// Lets the call take effect in this world. Returns whether its answer is possible here (`true` without an answer).
    fn take(&mut self, op: &Op, clock: &Clock) -> Result<bool, Broken> {
        let leased = self.task.as_ref().is_some_and(|task| task.leased);
        let version = self.task.as_ref().and_then(|task| task.version);
        let odd = |if_match: Option<u64>| if_match.is_some() && if_match != version;
        let is = |answer| Ok(op.said.as_ref().is_none_or(|said| *said == answer));
        match &op.call.verb {
            Verb::Put { mode: Mode::Once, .. } if self.task.is_some() => self.stored(false, op, clock),
            Verb::Put { mode: Mode::Once, .. } if self.dead.is_some() => match &op.said {
                Some(Answer::Stored { created: false, task }) => self.see_dead(task),
                said => Ok(said.is_none()),
            },
            Verb::Put { mode: Mode::Once, .. } if self.acked == Some(true) => is(Answer::Done),
            Verb::Put { if_match, .. } if odd(*if_match) => is(Answer::VersionMismatch),
            Verb::Put { mode: Mode::Create, .. } if self.task.is_some() => is(Answer::Live),
            Verb::Put { mode: Mode::Replace, .. } if self.task.is_none() => is(Answer::NotFound),
            Verb::Put { revoke: false, .. } if leased => is(Answer::Leased),
            Verb::Put { due, payload, revoke, mode, .. } => {
                self.take_back(*revoke);
                let now = clock.walls(op.from, op.to);
                let after = |(low, high): (i64, i64), ms| {
                    (low.saturating_add_unsigned(ms), high.saturating_add_unsigned(ms))
                };
                let steps = match due {
                    Some(due) => steps_from(*due, *payload),
                    None => Vec::new(),
                };
                let mut due = instant(due.unwrap_or(Due::In(0)), op, clock);
                let mut put_at = now;
                if let Mode::Debounce { max_wait_ms } = mode {
                    put_at = self.task.as_ref().map_or(now, |task| task.row_begin(now));
                    if steps.is_empty() {
                        let last = after(put_at, max_wait_ms.unwrap_or(u64::MAX));
                        due = (due.0.min(last.0), due.1.min(last.1));
                    }
                }
                let created = self.task.is_none();
                self.buried.extend(self.dead.take());
                let was_due = self.task.as_ref().and_then(|task| task.taken_back(op, clock));
                self.revoked_before.extend(self.revoked.take_if(|_| created));
                let stepped = self.task.as_mut().and_then(|task| task.stepped.take());
                self.task = Some(Task {
                    stepped,
                    id: self.task.as_ref().and_then(|task| task.id),
                    due,
                    steps,
                    put_at,
                    expires: expire_after_of(*payload).map(|ms| after(now, ms)),
                    born: op.from,
                    was_due,
                    since: op.from,
                    payload: *payload,
                    put_by: op.id.0,
                    ready: Some(false),
                    ..Task::default()
                });
                self.stored(created, op, clock)
            }
            Verb::Import { .. } => self.import(op, clock),
            Verb::Get if self.dead.is_some() => match &op.said {
                Some(Answer::Task(view)) if view.state == State::Dead => self.see_dead(view),
                said => Ok(said.is_none()),
            },
            Verb::Patch { .. } if self.dead.is_some() => is(Answer::Dead),
            Verb::Cancel { if_match, .. } if self.dead.is_some() => {
                let version = self.dead.as_ref().and_then(|dead| dead.version);
                if if_match.is_some() && *if_match != version {
                    return is(Answer::VersionMismatch);
                }
                self.ids_ended.extend(self.dead.take().and_then(|dead| dead.id));
                self.revoked_before.extend(self.revoked.take());
                self.acked = Some(false);
                is(Answer::Cancelled)
            }
            Verb::Get | Verb::List => match (&op.said, &self.task) {
                (Some(Answer::Task(view)), Some(_)) => self.see(view, op, clock),
                (said, task) => Ok(task.is_none() && *said == Some(Answer::NotFound) || said.is_none()),
            },
            // A patch finds no live task. If the last task was acked, the answer may be `Done` or `NotFound`. A cancel
            // must say `Done` in this case.
            Verb::Patch { .. } if self.task.is_none() => Ok(is(Answer::NotFound)? || is(self.absent())?),
            Verb::Cancel { .. } if self.task.is_none() => is(self.absent()),
            Verb::Patch { if_match, .. } | Verb::Cancel { if_match, .. } if odd(*if_match) => {
                is(Answer::VersionMismatch)
            }
            Verb::Patch { revoke: false, .. } | Verb::Cancel { revoke: false, .. } if leased => {
                is(Answer::Leased)
            }
            Verb::Patch { due, payload, revoke, .. } => {
                self.take_back(*revoke);
                let task = self.task.as_mut().expect("an absent task was answered above");
                (task.version, task.payload) = (None, payload.unwrap_or(task.payload));
                if let Some(due) = due {
                    task.was_due = task.taken_back(op, clock);
                    task.due_again(*due, op, clock);
                }
                self.stored(false, op, clock)
            }
            Verb::Cancel { revoke, .. } => {
                self.take_back(*revoke);
                let token = self.revoked.take_if(|_| leased);
                self.end(false);
                self.revoked = token;
                is(if leased { Answer::Revoked } else { Answer::Cancelled })
            }
            Verb::ByKey { act, .. } if self.dead.is_some() => is(match act {
                KeyAct::Run => Answer::Dead,
                KeyAct::Release => Answer::NotLeased,
            }),
            Verb::ByKey { .. } if self.task.is_none() => Ok(is(Answer::NotFound)? || is(self.absent())?),
            Verb::ByKey { if_match, .. } if odd(*if_match) => is(Answer::VersionMismatch),
            Verb::ByKey { act: KeyAct::Run, .. } if leased => is(Answer::Leased),
            Verb::ByKey { act: KeyAct::Run, .. } => self.run_now(op, clock),
            Verb::ByKey { act: KeyAct::Release, .. } if !leased => is(Answer::NotLeased),
            Verb::ByKey { act: KeyAct::Release, .. } => self.release(op, clock),
            Verb::Redrive { id } => self.redrive(*id, op, clock),
            Verb::ById { id, act } => self.by_id(*id, *act, op, clock),
            Verb::Lease { lease_ms, .. } => self.lease(*lease_ms, op, clock),
            Verb::Ack { tokens }
            | Verb::Nack { tokens, .. }
            | Verb::Extend { tokens, .. }
            | Verb::Return { tokens } => {
                let may = self.token(&tokens[op.id.1], op, clock);
                Ok(match &op.said {
                    Some(Answer::Tokens(said)) => said.iter().all(|one| may.contains(one)),
                    said => said.is_none(),
                })
            }
            Verb::Counts | Verb::Settle(_) | Verb::Pause(_) | Verb::Drain | Verb::Delete => {
                unreachable!("they concern no single key")
            }
        }
    }

    /// Applies an import of a task from another store. For a later debounce, its put counts as made at wall instant 0.
    fn import(&mut self, op: &Op, clock: &Clock) -> Result<bool, Broken> {
        let Verb::Import { due, payload, attempts, there, revoke } = op.call.verb else {
            unreachable!("it was just looked at")
        };
        let is = |answer| Ok(op.said.as_ref().is_none_or(|said| *said == answer));
        let leased = self.task.as_ref().is_some_and(|task| task.leased);
        let (is_live, is_dead) = (self.task.is_some(), self.dead.is_some());
        match there {
            There::Skip if is_live || is_dead || self.acked.is_some() => return is(Answer::Skipped),
            There::Refuse if is_live => return is(Answer::Live),
            There::Refuse if is_dead => return is(Answer::Dead),
            There::Replace if leased && !revoke => return is(Answer::Leased),
            There::Skip | There::Refuse | There::Replace => {}
        }
        self.take_back(revoke);
        self.buried.extend(self.dead.take());
        let was_due = self.task.as_ref().and_then(|task| task.taken_back(op, clock));
        self.revoked_before.extend(self.revoked.take_if(|_| !is_live));
        let stepped = self.task.as_mut().and_then(|task| task.stepped.take());
        self.task = Some(Task {
            stepped,
            id: self.task.as_ref().and_then(|task| task.id),
            due: (due, due),
            born: op.from,
            was_due,
            since: op.from,
            payload,
            leases_ended: attempts,
            put_by: op.id.0,
            ready: Some(false),
            ..Task::default()
        });
        is(if is_live { Answer::Replaced } else { Answer::Added })
    }

    fn stored(&mut self, new: bool, op: &Op, clock: &Clock) -> Result<bool, Broken> {
        match &op.said {
            Some(Answer::Stored { created, task }) if *created == new => self.see(task, op, clock),
            said => Ok(said.is_none()),
        }
    }

    /// Applies a run of the live task. The answer shows a task that was ready as it stands, and one that was scheduled with a new due instant, which is
    /// earlier.
    fn run_now(&mut self, op: &Op, clock: &Clock) -> Result<bool, Broken> {
        let task = self.task.as_mut().expect("an absent task was answered before");
        let stands = match &op.said {
            Some(Answer::Stored { task: view, .. }) if view.state == State::Ready => {
                (task.due.0..=task.due.1).contains(&view.due_at)
                    && task.version.is_none_or(|version| version == view.version)
                    && task.clone().become_ready(op.to, clock).is_ok()
            }
            Some(_) => return Ok(false),
            None => task.ready == Some(true),
        };
        if !stands && task.ready == Some(true) {
            return Err(("P7", format!("made due again, but it was ready: {task:?}")));
        }
        if !stands || task.version.is_none() && task.ready != Some(true) {
            task.end_row(!stands && op.said.is_some());
        }
        if !stands {
            (task.version, task.was_due) = (None, task.taken_back(op, clock));
            (task.lease, task.leased) = (None, false);
            task.due_again(Due::In(0), op, clock);
        }
        self.stored(false, op, clock)
    }

    /// Applies a release of the task, which a worker holds. If it expired meanwhile, it is dead at once.
    fn release(&mut self, op: &Op, clock: &Clock) -> Result<bool, Broken> {
        self.take_back(true);
        let task = self.task.as_mut().expect("an absent task was answered before");
        (task.version, task.ready) = (None, Some(true));
        match &op.said {
            Some(Answer::Stored { created: false, task: view }) if view.state == State::Dead => {
                let after = self.after_death(op.to, clock);
                let Some(after) = after else {
                    return Err(("P4", format!("shown dead, but it has not expired: {:?}", self.task)));
                };
                *self = after;
                self.see_dead(view)
            }
            _ => self.stored(false, op, clock),
        }
    }

    /// Whether `task` may be the task with this id.
    fn may_be(&self, task: &Task, id: u64) -> bool {
        let is_it = |task: &Task| task.id == Some(id);
        // The id of a task is unknown until an answer shows it. It is none of the known ids of other tasks of this key.
        let known = self.had(id) || self.task.iter().chain(&self.dead).any(is_it);
        is_it(task) || !known && task.id.is_none()
    }

    /// The index in `buried` of the dead task with this id; `None` if a call with the key finds that task, or if there
    /// is none.
    fn keyless(&self, id: u64) -> Option<usize> {
        let keyed = self.dead.as_ref().is_some_and(|dead| self.may_be(dead, id));
        self.buried.iter().position(|task| self.may_be(task, id)).filter(|_| !keyed)
    }

    /// Applies a redrive: the dead task with this id becomes live again, unless there is none or a live task has the key.
    fn redrive(&mut self, id: u64, op: &Op, clock: &Clock) -> Result<bool, Broken> {
        let is = |answer| Ok(op.said.as_ref().is_none_or(|said| *said == answer));
        if !self.revives(id) {
            return is(Answer::NotFound);
        }
        if self.task.is_some() {
            return is(Answer::Live);
        }
        self.revive(id, op, clock);
        self.task.as_mut().expect("it lives again").end_row(true);
        self.stored(false, op, clock)
    }

    /// Whether there is a dead task with this id.
    fn revives(&self, id: u64) -> bool {
        self.dead.as_ref().is_some_and(|dead| self.may_be(dead, id)) || self.keyless(id).is_some()
    }

    /// Makes the dead task with this id live again.
    fn revive(&mut self, id: u64, op: &Op, clock: &Clock) {
        let mut task = match self.keyless(id) {
            // The revoked lease was one of the task that had the key until now.
            Some(at) => {
                self.revoked_before.extend(self.revoked.take());
                self.buried.remove(at)
            }
            None => self.dead.take().expect("it has the key"),
        };
        self.buried.extend(self.dead.take());
        (task.id, task.version, task.leases_ended) = (Some(id), None, 0);
        (task.lease, task.leased, task.was_due, task.expires) = (None, false, None, None);
        task.due_again(Due::In(0), op, clock);
        self.task = Some(task);
    }

    fn by_id(&mut self, id: u64, act: Act, op: &Op, clock: &Clock) -> Result<bool, Broken> {
        let is = |answer| Ok(op.said.as_ref().is_none_or(|said| *said == answer));
        let lives = self.task.as_ref().is_some_and(|task| self.may_be(task, id));
        if !lives && !self.revives(id) {
            return is(Answer::NotFound);
        }
        let leased = lives && self.task.as_ref().is_some_and(|task| task.leased);
        match act {
            Act::Get if lives => match &op.said {
                Some(Answer::Task(view)) => self.see(view, op, clock),
                said => Ok(said.is_none()),
            },
            Act::Get => match &op.said {
                Some(Answer::Task(view)) if view.state == State::Dead => self.see_any_dead(id, view),
                said => Ok(said.is_none()),
            },
            _ if leased => is(Answer::Leased),
            Act::Cancel if lives => {
                self.end(false);
                is(Answer::Cancelled)
            }
            Act::Cancel => {
                let gone = match self.keyless(id) {
                    Some(at) => Some(self.buried.remove(at)),
                    None => {
                        self.revoked_before.extend(self.revoked.take());
                        self.acked = Some(false);
                        self.dead.take()
                    }
                };
                self.ids_ended.extend(gone.and_then(|gone| gone.id));
                is(Answer::Cancelled)
            }
            Act::Run if lives => {
                let task = self.task.as_mut().expect("it lives");
                match &op.said {
                    Some(Answer::Ready) => task.become_ready(op.to, clock).map(|()| true),
                    Some(Answer::Stored { .. }) | None if task.ready != Some(true) => {
                        task.end_row(op.said.is_some());
                        (task.version, task.was_due) = (None, task.taken_back(op, clock));
                        (task.lease, task.leased) = (None, false);
                        task.due_again(Due::In(0), op, clock);
                        self.stored(false, op, clock)
                    }
                    said => Ok(said.is_none()),
                }
            }
            Act::Run => self.redrive(id, op, clock),
            Act::Lease { .. } if !lives && self.task.is_some() => is(Answer::Live),
            Act::Lease { lease_ms } => self.lease_this(id, lives, lease_ms, op, clock),
        }
    }

    fn lease_this(
        &mut self,
        id: u64,
        lives: bool,
        lease_ms: u64,
        op: &Op,
        clock: &Clock,
    ) -> Result<bool, Broken> {
        let found = match &op.said {
            Some(Answer::Delivered(found)) if found.len() == 1 => found.first(),
            None => None,
            Some(_) => return Ok(false),
        };
        if !lives {
            self.revive(id, op, clock);
        }
        let task = self.task.as_mut().expect("it lives");
        let before = task.due;
        let now = instant(Due::In(0), op, clock);
        let was_ready = task.clone().become_ready(op.to, clock).is_ok();
        let stood = found.is_some_and(|one| (before.0..=before.1).contains(&one.due_at)) && was_ready;
        if task.ready != Some(true) && !stood {
            task.was_due = task.taken_back(op, clock);
            task.due_again(Due::In(0), op, clock);
            if found.is_none() && was_ready {
                // Both are possible: the task was due before the call and keeps its instant, or the call made it due.
                task.due = (before.0.min(now.0), before.1.max(now.1));
            }
        }
        task.ready = Some(true);
        if let Some(found) = found {
            self.learn(found.id, None, found.due_at, found.payload, "P5")?;
        }
        let task = self.task.as_mut().expect("it was there");
        task.grant_found(found, lease_ms, op, clock);
        task.lease.as_mut().expect("it was just granted").by_id = true;
        task.attempt(found.map(|found| found.attempt))
    }

    /// Compares a view of a dead task, whether or not a call with the key finds this task.
    fn see_any_dead(&mut self, id: u64, view: &View) -> Result<bool, Broken> {
        let Some(at) = self.keyless(id) else { return self.see_dead(view) };
        let keyless = self.buried.remove(at);
        let keyed = self.dead.replace(keyless);
        // The floor does not apply. No answer may have shown the version of this task, and the present task of the key
        // has a higher one.
        let floor = std::mem::take(&mut self.version_floor);
        let seen = self.see_dead(view);
        self.version_floor = floor;
        let keyless = std::mem::replace(&mut self.dead, keyed).expect("it was put there");
        self.buried.insert(at, keyless);
        seen
    }

    fn lease(&mut self, lease_ms: u64, op: &Op, clock: &Clock) -> Result<bool, Broken> {
        let found = match &op.said {
            Some(Answer::Delivered(found)) => found.first(),
            _ => None,
        };
        if self.task.as_ref().is_none_or(|task| task.leased) {
            return Ok(false);
        }
        if let Some(found) = found {
            self.learn(found.id, None, found.due_at, found.payload, "P5")?;
        }
        let task = self.task.as_mut().expect("it was there");
        task.become_ready(op.to, clock)?;
        task.grant_found(found, lease_ms, op, clock);
        task.attempt(found.map(|found| found.attempt))
    }

    /// Applies an ack, nack, extend or return by one token. Returns the answers that are possible.
    fn token(&mut self, token: &String, op: &Op, clock: &Clock) -> &'static [TokenAnswer] {
        use TokenAnswer::{Acked, Expired, Extended, Nacked, Returned, Revoked};
        let told_expired = op.said == Some(Answer::Tokens(vec![Expired]));
        // An extend of a lease that a crash ended counts against the in-flight limits again, so a limit may refuse it.
        let extends = matches!(op.call.verb, Verb::Extend { .. });
        let no_place =
            told_expired && extends && op.limited && self.task.as_ref().is_some_and(|task| !task.leased);
        let works = |lease: &Lease| {
            lease.token.as_ref() == Some(token) && (lease.restarts < 2 || !told_expired) && !no_place
        };
        if matches!(op.call.verb, Verb::Ack { .. }) && self.was_acked_by(token) {
            return &[Acked];
        }
        let task = self.task.as_mut().filter(|task| task.lease.as_ref().is_some_and(works));
        match (task, &op.call.verb) {
            (Some(task), Verb::Return { .. }) => {
                // If a crash has ended the lease, the task waits already and a return changes nothing.
                if task.leased {
                    task.wait(0, Some(true));
                }
                &[Returned]
            }
            (None, Verb::Return { .. }) => &[Returned],
            (None, _) if self.revoked.as_ref() == Some(token) => &[Revoked],
            (None, _) if self.revoked_before.contains(token) => &[Revoked, Expired],
            (None, _) => &[Expired],
            (Some(task), Verb::Nack { how: How::Buried | How::Undeliverable, .. }) => {
                task.wait(1, Some(true));
                self.dead = self.task.take();
                &[Nacked]
            }
            (Some(task), Verb::Nack { delay_ms, at_least_ms, how, .. }) => {
                task.wait(1, Some(true));
                self.give_up();
                if let Some(task) = &mut self.task
                    && *how == How::Returned
                    && let Some(ms) = delay_ms.or_else(|| task.backoff_ms().max(*at_least_ms))
                    && ms > 0
                {
                    let before = task.due;
                    task.due_again(Due::In(ms), op, clock);
                    task.was_due_before = task.expires.map(|_| before);
                    // A delay does not go beyond the instant at which the task expires.
                    let last = task.expires.unwrap_or((i64::MAX, i64::MAX));
                    task.due = (task.due.0.min(last.0), task.due.1.min(last.1));
                }
                &[Nacked]
            }
            (Some(task), Verb::Extend { lease_ms, .. }) => {
                task.grant(Some(token.clone()), *lease_ms, op, clock);
                &[Extended]
            }
            (Some(task), _) => {
                if task.steps.is_empty() {
                    self.end(true);
                    self.acked_by.push(token.clone());
                } else {
                    // The ack ends one instant of the timeline. The next instant begins with its attempts counted from zero.
                    let next = task.steps.remove(0);
                    task.wait(0, Some(false));
                    task.stepped = Some(token.clone());
                    task.leases_ended = 0;
                    task.due_again(Due::At(next), op, clock);
                }
                &[Acked]
            }
        }
    }

    /// Whether an ack by this token ended a task, or ended the previous instant of a timeline that is not over.
    fn was_acked_by(&self, token: &String) -> bool {
        let mut tasks = self.task.iter().chain(&self.dead).chain(&self.buried);
        self.acked_by.contains(token) || tasks.any(|task| task.stepped.as_ref() == Some(token))
    }

    /// The owner takes the task back. A running lease ends, and its token is answered `revoked` from then on.
    fn take_back(&mut self, revoke: bool) {
        let Some(task) = &mut self.task else { return };
        let token = task.lease.take().and_then(|lease| lease.token);
        if task.leased {
            self.revoked_before.extend(std::mem::replace(&mut self.revoked, token));
            task.wait(1, None);
        } else {
            self.revoked_before.extend(token.filter(|_| revoke));
        }
    }

    fn end(&mut self, acked: bool) {
        self.ids_ended.extend(self.task.take().and_then(|task| task.id));
        self.revoked_before.extend(self.revoked.take());
        self.acked = Some(acked);
    }

    fn absent(&self) -> Answer {
        if self.acked == Some(true) { Answer::Done } else { Answer::NotFound }
    }

    /// Compares a view of the live task with what is known, and learns what was unknown.
    fn see(&mut self, view: &View, op: &Op, clock: &Clock) -> Result<bool, Broken> {
        self.learn(view.id, Some(view.version), view.due_at, view.payload, "P1")?;
        self.task.as_mut().expect("it was compared").expires_at(view.expire_at)?;
        let task = self.task.as_mut().expect("a view is compared with a live task only");
        match (view.state, task.leased) {
            (State::Ready, false) => task.become_ready(op.to, clock)?,
            (State::Scheduled, false) if task.ready != Some(true) => task.ready = Some(false),
            (State::Scheduled, false) => return Err(("P7", format!("scheduled again: {task:?}"))),
            (State::Leased, true) => {}
            (State::Dead, _) => return Err(("P4", format!("shown dead, but {task:?}"))),
            (state, _) => {
                let promise = if task.ended_by_wall(op.to, clock) { "P7" } else { "P4" };
                return Err((promise, format!("shown {state:?}, but {task:?}")));
            }
        }
        task.attempt(Some(view.attempt))
    }

    /// Compares a view of the dead task with what is known, and learns what was unknown.
    fn see_dead(&mut self, view: &View) -> Result<bool, Broken> {
        let mut dead = self.dead.take().expect("it is dead");
        let as_before = |(first, last): &(i64, i64)| (*first..=*last).contains(&view.due_at);
        dead.due = dead.was_due_before.filter(as_before).unwrap_or(dead.due);
        let live = self.task.replace(dead);
        let learnt = self.learn(view.id, Some(view.version), view.due_at, view.payload, "P4");
        self.dead = std::mem::replace(&mut self.task, live);
        learnt?;
        let dead = self.dead.as_ref().expect("it was put back");
        dead.attempt(Some(view.attempt))
    }

    /// Compares these members with the live task, and learns what was unknown. A wrong due instant breaks the promise `wrong_due`.
    fn learn(
        &mut self,
        id: u64,
        version: Option<u64>,
        due: i64,
        payload: u64,
        wrong_due: &'static str,
    ) -> Result<(), Broken> {
        let (floor, had) = (self.version_floor, self.had(id));
        let task = self.task.as_mut().expect("only a live task is compared");
        let old = |version| task.version.map_or(version <= floor, |known| known != version);
        let what = match () {
            () if task.id.map_or(had, |known| known != id) => {
                ("P6", format!("id {id} is another task (ended: {:?})", self.ids_ended))
            }
            () if due < task.due.0 || due > task.due.1 => (wrong_due, format!("due_at {due}")),
            () if payload != task.payload => ("P1", format!("payload {payload}")),
            () if version.is_some_and(old) => ("P6", format!("version {version:?} after {floor}")),
            () => {
                (task.id, task.due) = (Some(id), (due, due));
                task.version = version.or(task.version);
                self.version_floor = version.unwrap_or(floor);
                return Ok(());
            }
        };
        Err((what.0, format!("{}, but {task:?}", what.1)))
    }

    /// Whether this id belongs to an ended or dead task that had this key and that a call with the key does not find
    /// any more.
    fn had(&self, id: u64) -> bool {
        self.ids_ended.contains(&id) || self.buried.iter().any(|task| task.id == Some(id))
    }

    /// The promise that an impossible answer breaks in this world.
    fn blame(&self, op: &Op, clock: &Clock) -> Broken {
        let said = op.said.as_ref();
        let tokens = match &op.call.verb {
            Verb::Ack { tokens }
            | Verb::Nack { tokens, .. }
            | Verb::Extend { tokens, .. }
            | Verb::Return { tokens } => tokens,
            _ => &vec![],
        };
        let by_wall = self.task.as_ref().is_some_and(|task| task.ended_by_wall(op.to, clock));
        let revoked = self.revoked.as_ref().is_some_and(|token| tokens.contains(token))
            || said == Some(&Answer::Tokens(vec![TokenAnswer::Revoked]));
        let promise = match (&op.call.verb, said) {
            (Verb::Put { mode: Mode::Create, .. }, _) if self.task.is_some() => "P6",
            (_, Some(Answer::NotFound | Answer::Done | Answer::Stored { created: true, .. }))
                if self.task.is_some() =>
            {
                "P1"
            }
            (Verb::Cancel { .. }, _) => "P5",
            _ if revoked => "P5",
            (Verb::Lease { .. }, _) if by_wall => "P7",
            _ if by_wall && !tokens.is_empty() => "P7",
            _ if !tokens.is_empty() => "P4",
            (Verb::Lease { .. }, _) if self.task.is_some() => "P4",
            _ if self.task.is_none() && self.acked == Some(false) => "P5",
            _ if self.task.is_none() && self.acked == Some(true) => "P4",
            _ => "P6",
        };
        (promise, format!("answered {said:?}, but it has {:?} (acked {:?})", self.task, self.acked))
    }
}
