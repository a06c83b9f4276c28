//! The owner's verbs: put, get, patch, cancel. Each is decided here, at one point in the order of all changes.

use std::sync::Arc;

use super::Engine;
use super::dead::fail;
use super::entries::{At, Entry, Slot};
use super::filling::task_bytes;
use super::import::IDS_ASIDE;
use super::leases::Holder;
use super::lookup::Keyed;
use crate::calls::{
    Answer, Cancel, CancelError, Cancelled, Due, Get, GetError, OnLease, Patch, PatchError, Payload, Put,
    PutError, PutMode, State, Stored, TRACE_BYTES_MAX, TaskView, Terms, Unavailable,
};
use crate::figures::Event;
use crate::input::CallId;
use crate::name::{Key, QueueName, Tag};
use crate::task::{Body, Ended, Extra, Failed, LeaseNo, Moment, Outcome, Task};
use crate::time::{Now, Timestamp};

/// The instant is beyond what is allowed.
pub(super) struct TooFar;

impl Engine {
    /// A put with a key goes its way; one without gets an id first, and the id's decimal as its key.
    pub(super) fn put_called(&mut self, now: Now, call: CallId, put: Put) {
        match put.key.clone() {
            Some(key) => self.keyed(now, call, Keyed::Put { put, key, id: None }),
            None => {
                // Somebody may use decimal numbers as keys of their own: take the next one that is free in memory. One
                // that turns out to be taken in the store comes back here.
                let (id, key) = loop {
                    let id = self.take_id();
                    let key = Key::from_id(id);
                    if self.live(&put.queue, &key).is_none() {
                        break (id, key);
                    }
                };
                if !self.state.own_numbers.has(id) {
                    // Nobody can have it, so there is nothing to look up.
                    return self.run_put(now, call, put, key, id);
                }
                self.keyed(now, call, Keyed::Put { put, key, id: Some(id) });
            }
        }
    }

    /// Puts a task under a key that nobody has.
    fn run_put(&mut self, now: Now, call: CallId, put: Put, key: Key, id: u64) {
        match self.refusal_of_changes() {
            None => self.put(now, call, put, key, Some(id), None),
            Some(why) => self.answer(call, Answer::Put(Err(why.into()))),
        }
    }

    /// Puts a task whose key is in memory, or known not to be live.
    pub(super) fn put(
        &mut self,
        now: Now,
        call: CallId,
        put: Put,
        key: Key,
        id: Option<u64>,
        gone: Option<&Ended>,
    ) {
        let (live, dead) = match self.kept(&put.queue, &key) {
            Some(slot) if self.entries.get(slot).is_dead() => (None, Some(slot)),
            live => (live, None),
        };
        if id.is_some() && live.is_some() {
            // The look-up found that somebody uses this decimal number as a key of their own.
            return self.put_called(now, call, put);
        }
        let answer = match (put.mode, live.or(dead)) {
            (PutMode::Once, Some(slot)) => Ok(Stored { created: false, task: self.view(slot) }),
            (PutMode::Once, None) if self.is_done(now, &put.queue, &key, gone) => Err(PutError::Done),
            _ => self.decide_put(now, put, key, id, live, dead),
        };
        self.answer(call, Answer::Put(answer));
    }

    fn decide_put(
        &mut self,
        now: Now,
        put: Put,
        key: Key,
        id: Option<u64>,
        live: Option<Slot>,
        dead: Option<Slot>,
    ) -> Result<Stored, PutError> {
        let current = live.map(|slot| self.entries.get(slot).task.version);
        if put.if_version.is_some() && put.if_version != current {
            return Err(PutError::VersionMismatch { current });
        }
        match (put.mode, live) {
            (PutMode::Create, Some(slot)) => {
                let task = &self.entries.get(slot).task;
                return Err(PutError::Live { id: task.id, version: task.version });
            }
            (PutMode::Replace, None) => return Err(PutError::NotFound),
            _ => {}
        }
        let limit_ms = self.config.farthest_ms;
        check_timeline(&put.body.timeline).map_err(|NotRising(index)| PutError::NotRising { index })?;
        let due = due_of(&put.body.timeline).unwrap_or(put.due);
        let mut due_at = self.instant(now, due).map_err(|TooFar| PutError::TooFar { limit_ms })?;
        if let Some(last) = put.body.timeline.last() {
            self.instant(now, Due::At(last.at)).map_err(|TooFar| PutError::TooFar { limit_ms })?;
        }
        let asked_at = put.asked_at.unwrap_or(now.wall).min(now.wall);
        let mut put_at = asked_at;
        if let (PutMode::Debounce { max_wait_ms }, Some(slot)) = (put.mode, live)
            && !crate::planted::is("row-forgotten")
        {
            put_at = self.entries.get(slot).task.put_at;
            due_at = due_at.min(put_at.saturating_plus_ms(max_wait_ms.unwrap_or(u64::MAX)));
        }
        let expire_at = put.terms.expire_after_ms.map(|ms| asked_at.saturating_plus_ms(ms));
        if let Some(expire_at) = expire_at.filter(|&at| at <= due_at.max(now.wall)) {
            return Err(PutError::ExpiresFirst { expire_at, due_at });
        }
        let revoked = match live {
            Some(slot) => self.may_change(slot, put.on_lease).map_err(|Held| PutError::Leased)?,
            None => None,
        };
        let Terms { priority, group, retry, expire_after_ms: _ } = put.terms;
        let trace = put.trace.filter(|trace| trace.len() <= TRACE_BYTES_MAX);
        let extra = Extra { group, retry, expire_at, trace, ttr_ms: put.ttr_ms, ..Extra::default() }.boxed();
        let fresh = Task::new(put.queue, key, Arc::new(put.body));
        let task = Task { id: id.unwrap_or(0), due_at, put_at, priority, revoked, extra, ..fresh };
        if live.is_none() {
            if !put.may_add {
                return Err(PutError::WouldAdd);
            }
            self.may_grow(&task.queue)?;
        }
        let buried = dead.map_or(0, |dead| task_bytes(&self.entries.get(dead).task, false));
        self.take_room(task_bytes(&task, false) + buried)?;
        let slot = match live {
            Some(slot) => self.replace(slot, task),
            None => self.add(task, dead),
        };
        self.begin(slot, now);
        Ok(Stored { created: live.is_none(), task: self.view(slot) })
    }

    /// A task that was put begins its life, where its `due_at` says.
    pub(super) fn begin(&mut self, slot: Slot, now: Now) {
        self.enter(slot);
        self.place(slot, now);
    }

    /// Counts a task that was put, and watches its expiry. One that comes dead from another store is counted there, and not here.
    pub(super) fn enter(&mut self, slot: Slot) {
        let task = Arc::clone(&self.entries.get(slot).task);
        if task.dead().is_none() {
            self.count_event(&task.queue, Event::Put);
        }
        self.watch_expiry(&task);
    }

    /// Adds a task whose key nobody has, or a dead one.
    pub(super) fn add(&mut self, task: Task, dead: Option<Slot>) -> Slot {
        let Some(dead) = dead else { return self.create(task) };
        self.together(|engine| {
            engine.take_key_from(dead);
            engine.create(task)
        })
    }

    fn create(&mut self, mut task: Task) -> Slot {
        if task.id == 0 {
            task.id = self.take_id();
            self.note_own_number(&task.key);
        }
        let queue = self.queues.open(&task.queue);
        *(if task.dead().is_some() { &mut queue.dead } else { &mut queue.live }) += 1;
        queue.begin_listing();
        queue.totals.added += 1;
        self.stats.added_total += 1;
        let slot = self.entries.insert(Entry::new(Arc::new(task), false));
        let fence = self.next_lease;
        let put_seq = self.applied.next();
        self.record(slot, |task| {
            task.put_seq = put_seq;
            task.version = put_seq;
            task.lease_fence = fence;
        });
        slot
    }

    pub(super) fn replace(&mut self, slot: Slot, new: Task) -> Slot {
        self.unplace(slot);
        let old = Arc::clone(&self.entries.get(slot).task);
        self.unwatch_expiry(&old);
        let fence = self.next_lease;
        let put_seq = self.applied.next();
        self.record(slot, |task| {
            let revoked = new.revoked.or(task.revoked);
            let acked = task.acked();
            *task = Task { id: task.id, put_seq, version: put_seq, lease_fence: fence, revoked, ..new };
            if acked.is_some() {
                task.extra_mut().acked = acked;
            }
        });
        slot
    }

    pub(super) fn get(&mut self, now: Now, call: CallId, get: &Get, gone: Option<&Ended>) {
        let known = self.entries.by_key(&get.queue, &get.key);
        let unsure = known.is_some_and(|slot| self.entries.get(slot).dirty.is_some());
        let found = self.kept(&get.queue, &get.key);
        let answer = match (&self.failed, found) {
            // What memory knows may have been written down or not.
            (Some(why), _) if unsure => {
                Err(GetError::Unavailable(Unavailable::Indeterminate { why: Arc::clone(why) }))
            }
            (_, Some(slot)) => {
                let group_in_flight = self.group_in_flight(slot);
                Ok(TaskView { group_in_flight, ..self.view(slot) })
            }
            (_, None) if self.is_done(now, &get.queue, &get.key, gone) => Err(GetError::Done),
            (_, None) => Err(GetError::NotFound),
        };
        self.answer(call, Answer::Get(answer));
    }

    pub(super) fn patch(&mut self, now: Now, call: CallId, patch: Patch, gone: Option<&Ended>) {
        let answer = self.decide_patch(now, patch, gone);
        self.answer(call, Answer::Patch(answer));
    }

    fn decide_patch(&mut self, now: Now, patch: Patch, gone: Option<&Ended>) -> Result<TaskView, PatchError> {
        let Some(slot) = self.live(&patch.queue, &patch.key) else {
            if self.dead(&patch.queue, &patch.key).is_some() {
                return Err(PatchError::Dead);
            }
            let done = self.is_done(now, &patch.queue, &patch.key, gone);
            return Err(if done { PatchError::Done } else { PatchError::NotFound });
        };
        let current = Some(self.entries.get(slot).task.version);
        if patch.if_version.is_some() && patch.if_version != current {
            return Err(PatchError::VersionMismatch { current });
        }
        let limit_ms = self.config.farthest_ms;
        let has_timeline = !self.entries.get(slot).task.body.timeline.is_empty();
        if has_timeline && patch.timeline.is_none() && (patch.due.is_some() || patch.payload.is_some()) {
            return Err(PatchError::Timeline);
        }
        let timeline = patch.timeline.as_deref().unwrap_or(&[]);
        check_timeline(timeline).map_err(|NotRising(index)| PatchError::NotRising { index })?;
        if let Some(last) = timeline.last() {
            self.instant(now, Due::At(last.at)).map_err(|TooFar| PatchError::TooFar { limit_ms })?;
        }
        let due_at = match due_of(timeline).or(patch.due) {
            Some(due) => Some(self.instant(now, due).map_err(|TooFar| PatchError::TooFar { limit_ms })?),
            None => None,
        };
        let revoked = self.may_change(slot, patch.on_lease).map_err(|Held| PatchError::Leased)?;
        let old = &self.entries.get(slot).task;
        let mut new = Task::clone(old);
        let steps_back = patch.timeline.is_some();
        new.body = patched_body(old, patch.payload, patch.tags, patch.timeline);
        new.priority = patch.priority.unwrap_or(old.priority);
        let mut extra = old.extra.as_deref().cloned().unwrap_or_default();
        if steps_back {
            extra.step = 0;
        }
        extra.group = patch.group.unwrap_or(extra.group);
        extra.retry = patch.retry.unwrap_or(extra.retry);
        if let Some(after_ms) = patch.expire_after_ms {
            extra.expire_at = after_ms.map(|ms| now.wall.saturating_plus_ms(ms));
        }
        let expires = extra.expire_at.filter(|&at| at <= due_at.unwrap_or(old.due_at).max(now.wall));
        if let Some(expire_at) = expires.filter(|_| due_at.is_some() || patch.expire_after_ms.is_some()) {
            return Err(PatchError::ExpiresFirst { expire_at, due_at: due_at.unwrap_or(old.due_at) });
        }
        let old = Arc::clone(old);
        new.extra = extra.boxed();
        let body_known = Arc::ptr_eq(&new.body, &old.body);
        let refused = self.take_room(task_bytes(&new, body_known)).err();
        if let Some(why) = &refused
            && !crate::planted::is("read-past-full")
        {
            return Err(why.clone().into());
        }

        let was_ready_since = match &self.entries.get(slot).at {
            At::Ready { since } => Some(*since),
            At::Leased(held) => Some(held.ready_since),
            _ => None,
        };
        self.unplace(slot);
        self.unwatch_expiry(&old);
        let fence = self.next_lease;
        let version = self.applied.next();
        self.record(slot, |task| {
            task.body = new.body;
            task.priority = new.priority;
            task.extra = new.extra;
            task.due_at = due_at.unwrap_or(task.due_at);
            task.version = version;
            task.lease_fence = fence;
            task.lease = None;
            if revoked.is_some() {
                fail(task, now, Failed::Revoked, None);
                task.revoked = revoked;
                task.attempts = task.attempts.saturating_add(1);
            }
        });
        self.stats.scheduled_total += 1;
        let task = Arc::clone(&self.entries.get(slot).task);
        self.watch_expiry(&task);
        match (due_at, was_ready_since) {
            // Only the body changed, and ready stays ready.
            (None, Some(since)) => self.make_ready(slot, since),
            _ => self.place(slot, now),
        }
        match refused {
            // With the bug above it is refused, and half of it has happened.
            Some(why) => Err(why.into()),
            None => Ok(self.view(slot)),
        }
    }

    pub(super) fn cancel(&mut self, now: Now, call: CallId, cancel: &Cancel, gone: Option<&Ended>) {
        let answer = self.decide_cancel(now, cancel, gone);
        self.answer(call, Answer::Cancel(answer));
    }

    fn decide_cancel(
        &mut self,
        now: Now,
        cancel: &Cancel,
        gone: Option<&Ended>,
    ) -> Result<Cancelled, CancelError> {
        let Some(slot) = self.kept(&cancel.queue, &cancel.key) else {
            let done = self.is_done(now, &cancel.queue, &cancel.key, gone);
            return Err(if done { CancelError::Done } else { CancelError::NotFound });
        };
        let current = Some(self.entries.get(slot).task.version);
        if cancel.if_version.is_some() && cancel.if_version != current {
            return Err(CancelError::VersionMismatch { current });
        }
        let revoked = match self.may_change(slot, cancel.on_lease) {
            Err(Held) if crate::planted::is("cancel-after-grant") => None,
            allowed => allowed.map_err(|Held| CancelError::Leased)?,
        };
        match revoked {
            None => {
                self.end(now, slot, Outcome::Cancelled);
                Ok(Cancelled::Cancelled)
            }
            Some(lease) => {
                self.end(now, slot, Outcome::Revoked(lease));
                Ok(Cancelled::Revoked)
            }
        }
    }

    /// Whether the owner may change the task now; if that takes it from a worker, the lease that is revoked.
    pub(super) fn may_change(&self, slot: Slot, on_lease: OnLease) -> Result<Option<LeaseNo>, Held> {
        match (&self.entries.get(slot).at, on_lease) {
            (At::Leased(_), OnLease::Refuse) => Err(Held),
            (At::Leased(held), OnLease::Revoke) => Ok(Some(held.no)),
            _ => Ok(None),
        }
    }

    /// The task of this key, live or dead, if it is in memory.
    pub(super) fn kept(&self, queue: &QueueName, key: &Key) -> Option<Slot> {
        self.entries.by_key(queue, key).filter(|&slot| {
            let entry = self.entries.get(slot);
            entry.state().is_some() && entry.task.is_keyed()
        })
    }

    /// The dead task of this key, if it is in memory.
    pub(super) fn dead(&self, queue: &QueueName, key: &Key) -> Option<Slot> {
        self.kept(queue, key).filter(|&slot| self.entries.get(slot).is_dead())
    }

    /// The live task of this key, if it is in memory.
    pub(super) fn live(&self, queue: &QueueName, key: &Key) -> Option<Slot> {
        self.entries.by_key(queue, key).filter(|&slot| self.entries.get(slot).is_live())
    }

    /// Whether the last task of a key that is not live was acked: memory knows it best, then what the store found.
    pub(super) fn is_done(&self, now: Now, queue: &QueueName, key: &Key, gone: Option<&Ended>) -> bool {
        match self.entries.by_key(queue, key).map(|slot| &self.entries.get(slot).at) {
            Some(At::Ended(outcome)) => matches!(outcome, Outcome::Done(_)),
            _ => gone
                .is_some_and(|ended| matches!(ended.outcome, Outcome::Done(_)) && self.is_kept(now, ended)),
        }
    }

    /// Whether a task that ended is still to be remembered. The store may know it for longer.
    pub(super) fn is_kept(&self, now: Now, ended: &Ended) -> bool {
        let keep_ms =
            || self.queues.get(&ended.queue)?.record.settings.history.map(|history| history.keep_ms);
        ended.at.saturating_plus_ms(keep_ms().unwrap_or(self.config.history_ms)) > now.wall
    }

    pub(super) fn view(&self, slot: Slot) -> TaskView {
        let entry = self.entries.get(slot);
        let view = TaskView::new(&entry.task, entry.state().unwrap_or(State::Scheduled));
        let At::Leased(held) = &entry.at else { return view };
        let Holder { since: leased_since, worker: leased_by } = self.holder(held.no);
        TaskView { leased_until: Some(held.until), leased_since, leased_by, ..view }
    }

    /// The instant that `due` means now.
    pub(super) fn instant(&self, now: Now, due: Due) -> Result<Timestamp, TooFar> {
        let due_at = match due {
            Due::Now => now.wall,
            Due::After { ms } => now.due_after(ms).ok_or(TooFar)?,
            Due::At(instant) => instant,
        };
        let farthest = now.wall.saturating_plus_ms(self.config.farthest_ms);
        // A delay of exactly the limit is allowed, though rounding it up may add a millisecond.
        if due_at > farthest.saturating_plus_ms(1) { Err(TooFar) } else { Ok(due_at) }
    }

    pub(super) fn nack_instant(&self, now: Now, delay_ms: u64) -> Option<Timestamp> {
        self.instant(now, Due::After { ms: delay_ms }).ok()
    }

    pub(super) fn take_room(&mut self, needed: u64) -> Result<(), Unavailable> {
        let room = self.room_left();
        if needed > room {
            // Space may have come back since the last commit said how much there is.
            self.ask_room = true;
            self.shortage.refused(needed);
            return Err(Unavailable::Full { needed, room });
        }
        self.filling.grow(needed);
        Ok(())
    }

    /// An owner has chosen this key: if it is the decimal of an id that is still to be given out, no task that comes without a key may be given it
    /// unseen.
    pub(super) fn note_own_number(&mut self, key: &Key) {
        let Ok(number) = key.as_str().parse() else { return };
        let is_to_come = number >= self.next_id && Key::from_id(number) == *key;
        if is_to_come && !self.state.own_numbers.has(number) {
            self.state.own_numbers.insert(number);
            self.filling.set_state(self.state);
        }
    }

    fn take_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id = self.ownership.shard.id_after(id);
        if self.next_id > self.state.ids_reserved {
            let block = self.config.bounds.ids_block * u64::from(self.ownership.shard.count());
            let reserved = self.next_id + block;
            // A multiple would say that none of these was given out.
            self.state.ids_reserved = reserved + u64::from(reserved.is_multiple_of(IDS_ASIDE));
            self.filling.set_state(self.state);
        }
        id
    }
}

/// A worker has the task.
pub(super) struct Held;

/// An instant of a timeline that is not after the one before.
pub(super) struct NotRising(pub(super) usize);

pub(super) fn check_timeline(timeline: &[Moment]) -> Result<(), NotRising> {
    let falls = timeline.windows(2).position(|pair| pair[1].at <= pair[0].at);
    falls.map_or(Ok(()), |index| Err(NotRising(index + 1)))
}

/// When a task with this timeline is due first.
fn due_of(timeline: &[Moment]) -> Option<Due> {
    timeline.first().map(|moment| Due::At(moment.at))
}

/// The body with another payload, other tags, another timeline, or several of them; the same one if none is given.
fn patched_body(
    old: &Task,
    payload: Option<Payload>,
    tags: Option<Vec<Tag>>,
    timeline: Option<Vec<Moment>>,
) -> Arc<Body> {
    if payload.is_none() && tags.is_none() && timeline.is_none() {
        return Arc::clone(&old.body);
    }
    let body = Body::clone(&old.body);
    let payload = payload.unwrap_or(Payload { bytes: body.payload, content_type: body.content_type });
    Arc::new(Body {
        payload: payload.bytes,
        content_type: payload.content_type,
        tags: tags.unwrap_or(body.tags),
        timeline: timeline.unwrap_or(body.timeline),
    })
}
