//! Commands on tasks that are not in memory wait here for the store, and later commands on the same key behind them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::Engine;
use super::entries::{Entry, Slot};
use super::heads::Fetch;
use super::import::ImportLook;
use super::leases::Holder;
use super::near::Met;
use super::schedules::ScheduleId;
use super::worker::TokenCall;
use crate::calls::{
    Answer, ById, ByKey, Cancel, Command, Get, ImportSchedule, Patch, Put, Redrive, Unavailable,
};
use crate::input::{CallId, Effect};
use crate::name::{Key, QueueName};
use crate::seam::{Found, Request, RequestId, Wanted};
use crate::task::{Ended, LeaseNo, Task};
use crate::time::{Now, Timestamp};

/// A command on one key.
#[derive(Debug)]
pub(super) enum Keyed {
    Put {
        put: Put,
        key: Key,
        /// Taken already, for a put without a key.
        id: Option<u64>,
    },
    Get(Get),
    Patch(Patch),
    Cancel(Cancel),
    ByKey(ByKey),
    Redrive {
        redrive: Redrive,
        /// The key of that task.
        key: Key,
    },
    /// A dead task that is to live again.
    ById {
        by_id: ById,
        /// Its queue and its key.
        place: (QueueName, Key),
    },
    /// A schedule is imported, and waits for the task of this key.
    ImportSchedule {
        import: ImportSchedule,
        key: Key,
    },
    /// A task is to be made of an instant. Nobody called for it.
    Occurrence {
        schedule: ScheduleId,
        key: Key,
        at: Timestamp,
    },
}

impl Keyed {
    fn place(&self) -> (QueueName, Key) {
        match self {
            Self::Put { put, key, .. } => (put.queue.clone(), key.clone()),
            Self::Get(get) => (get.queue.clone(), get.key.clone()),
            Self::Patch(patch) => (patch.queue.clone(), patch.key.clone()),
            Self::Cancel(cancel) => (cancel.queue.clone(), cancel.key.clone()),
            Self::ByKey(by_key) => (by_key.queue.clone(), by_key.key.clone()),
            Self::Redrive { redrive, key } => (redrive.queue.clone(), key.clone()),
            Self::ById { place, .. } => place.clone(),
            Self::ImportSchedule { import, key } => (import.queue.clone(), key.clone()),
            Self::Occurrence { schedule, key, .. } => (schedule.0.clone(), key.clone()),
        }
    }

    /// The answer that says only why there is no better one; `None`: nobody called.
    fn unavailable(self, why: Unavailable) -> Option<Answer> {
        let command = match self {
            Self::Put { put, .. } => Command::Put(put),
            Self::Get(get) => Command::Get(get),
            Self::Patch(patch) => Command::Patch(patch),
            Self::Cancel(cancel) => Command::Cancel(cancel),
            Self::ByKey(by_key) => Command::ByKey(by_key),
            Self::Redrive { redrive, .. } => Command::Redrive(redrive),
            Self::ById { by_id, .. } => Command::ById(by_id),
            Self::ImportSchedule { import, .. } => Command::ImportSchedule(import),
            Self::Occurrence { .. } => return None,
        };
        Some(command.unavailable(why))
    }
}

/// Why something is looked up.
#[derive(Clone, Debug)]
enum Purpose {
    Key(QueueName, Key),
    Token {
        call: CallId,
        index: usize,
        id: u64,
        no: LeaseNo,
    },
    Head(Fetch),
    /// A dead task that is to be redriven.
    Dead {
        call: CallId,
        redrive: Redrive,
    },
    /// A task that something is to be done to.
    ById {
        call: CallId,
        by_id: ById,
    },
    /// A stub's task: it expired, in this queue, or is to be forgotten.
    Overdue(u64, Option<QueueName>),
    /// A key or an id of an import.
    Import(ImportLook),
}

/// The look-ups under way and what waits for them.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    /// Commands held back, by key, in the order they came.
    held: BTreeMap<(QueueName, Key), VecDeque<(CallId, Keyed)>>,
    pub(super) token_calls: BTreeMap<CallId, TokenCall>,
    /// To be asked at the end of the turn.
    wanted: Vec<Purpose>,
    asked: BTreeMap<RequestId, Vec<Purpose>>,
    /// Tasks that time has to do with and whose records are on their way.
    overdue: usize,
}

impl Lookups {
    pub(super) fn is_empty(&self) -> bool {
        self.wanted.is_empty() && self.asked.is_empty()
    }

    pub(super) fn want_id(&mut self, call: CallId, index: usize, id: u64, no: LeaseNo) {
        self.wanted.push(Purpose::Token { call, index, id, no });
    }

    pub(super) fn want_head(&mut self, fetch: Fetch) {
        self.wanted.push(Purpose::Head(fetch));
    }

    pub(super) fn want_dead(&mut self, call: CallId, redrive: Redrive) {
        self.wanted.push(Purpose::Dead { call, redrive });
    }

    pub(super) fn want_by_id(&mut self, call: CallId, by_id: ById) {
        self.wanted.push(Purpose::ById { call, by_id });
    }

    pub(super) fn want_overdue(&mut self, id: u64, expired: Option<QueueName>) {
        self.overdue += 1;
        self.wanted.push(Purpose::Overdue(id, expired));
    }

    /// All that one import wants has to come in one turn: it is asked with one request.
    pub(super) fn want_import(&mut self, look: ImportLook) {
        self.wanted.push(Purpose::Import(look));
    }

    /// How many records of stubs are on their way that time has to do with.
    pub(super) fn overdue(&self) -> usize {
        self.overdue
    }

    pub(super) fn has_asked(&self, request: RequestId) -> bool {
        self.asked.contains_key(&request)
    }

    /// The oldest look-up that has no reply yet.
    pub(super) fn oldest(&self) -> Option<RequestId> {
        self.asked.first_key_value().map(|(&id, _)| id)
    }
}

impl Engine {
    /// Runs a command on one key: at once if memory knows the key, else after a look-up.
    pub(super) fn keyed(&mut self, now: Now, call: CallId, command: Keyed) {
        let place = command.place();
        if let Some(held) = self.lookups.held.get_mut(&place) {
            held.push_back((call, command));
        } else if self.entries.by_key(&place.0, &place.1).is_some() {
            self.run(now, call, command, None);
        } else {
            self.lookups.wanted.push(Purpose::Key(place.0.clone(), place.1.clone()));
            self.lookups.held.insert(place, VecDeque::from([(call, command)]));
        }
    }

    /// Runs a command whose key is in memory, or of which `gone` says what the store knows.
    fn run(&mut self, now: Now, call: CallId, command: Keyed, gone: Option<&Ended>) {
        match command {
            Keyed::Put { put, key, id } => match self.refusal_of_changes() {
                None => self.put(now, call, put, key, id, gone),
                Some(why) => self.answer(call, crate::Answer::Put(Err(why.into()))),
            },
            Keyed::Get(get) => self.get(now, call, &get, gone),
            Keyed::Patch(patch) => match self.refusal_of_changes() {
                None => self.patch(now, call, patch, gone),
                Some(why) => self.answer(call, crate::Answer::Patch(Err(why.into()))),
            },
            Keyed::Cancel(cancel) => match self.refusal_of_changes() {
                None => self.cancel(now, call, &cancel, gone),
                Some(why) => self.answer(call, crate::Answer::Cancel(Err(why.into()))),
            },
            Keyed::ByKey(by_key) => self.by_key(now, call, &by_key, gone),
            Keyed::Redrive { redrive, .. } => self.redrive_keyed(now, call, redrive),
            Keyed::ById { by_id, .. } => self.by_id_keyed(now, call, by_id),
            Keyed::ImportSchedule { import, .. } => self.import_schedule_known(now, call, &import),
            Keyed::Occurrence { schedule, at, .. } => self.occurrence(now, &schedule, at),
        }
    }

    /// Sends out the look-ups that the turn has collected.
    pub(super) fn look_up(&mut self, out: &mut Vec<Effect>) {
        self.fetch_heads();
        self.fetch_overdue();
        if self.lookups.wanted.is_empty() {
            return;
        }
        let purposes = core::mem::take(&mut self.lookups.wanted);
        let wanted = purposes
            .iter()
            .map(|purpose| match purpose {
                Purpose::Key(queue, key) => Wanted::Key(queue.clone(), key.clone()),
                Purpose::Token { id, .. }
                | Purpose::Head(Fetch { id, .. })
                | Purpose::Dead { redrive: Redrive { id, .. }, .. }
                | Purpose::ById { by_id: ById { id, .. }, .. }
                | Purpose::Overdue(id, _) => Wanted::Id(*id),
                Purpose::Import(look) => look.wanted.clone(),
            })
            .collect();
        let id = self.request(Request::GetMany(wanted), out);
        self.lookups.asked.insert(id, purposes);
    }

    /// Whether `request` was a look-up; then `found` is dealt out.
    pub(super) fn looked_up(&mut self, now: Now, request: RequestId, found: Vec<Found>) {
        let Some(purposes) = self.lookups.asked.get_mut(&request).map(core::mem::take) else {
            unreachable!("{request:?} was answered with look-ups but asked for none")
        };
        // The look-up stays under way until all of it is dealt out: an entry that knows a task better than the last find must not go
        // because of the first.
        assert_eq!(purposes.len(), found.len(), "one find for each look-up");
        for (purpose, found) in purposes.into_iter().zip(found) {
            match purpose {
                Purpose::Key(queue, key) => self.key_found(now, &(queue, key), found),
                Purpose::Token { call, index, id, no } => self.token_found(now, call, index, id, no, found),
                Purpose::Head(fetch) => self.head_found(now, fetch, found),
                Purpose::Dead { call, redrive } => self.dead_found(now, call, redrive, found),
                Purpose::ById { call, by_id } => self.by_id_found(now, call, by_id, found),
                Purpose::Overdue(id, expired) => {
                    self.lookups.overdue -= 1;
                    self.overdue_found(now, id, expired.as_ref(), found);
                }
                Purpose::Import(look) => self.import_found(now, &look, found),
            }
        }
        self.lookups.asked.remove(&request);
        self.retire(now);
    }

    /// The store failed to answer this look-up, and the machine with it: what waited for it had no effect, but that other
    /// tokens of a call may have been decided.
    pub(super) fn look_up_failed(&mut self, now: Now, request: RequestId, why: &Arc<str>) {
        for purpose in self.lookups.asked.remove(&request).unwrap_or_default() {
            match purpose {
                Purpose::Key(queue, key) => {
                    for (call, command) in self.lookups.held.remove(&(queue, key)).unwrap_or_default() {
                        let why = Unavailable::ReadOnly { why: Arc::clone(why) };
                        if let Some(answer) = command.unavailable(why) {
                            self.answer(call, answer);
                        }
                    }
                }
                Purpose::Token { call, index, .. } => self.token_failed(call, index),
                Purpose::Head(fetch) => {
                    self.queues.fetched(fetch);
                }
                Purpose::Dead { call, redrive } => {
                    let why = Unavailable::ReadOnly { why: Arc::clone(why) };
                    self.answer(call, Command::Redrive(redrive).unavailable(why));
                }
                Purpose::ById { call, by_id } => {
                    let why = Unavailable::ReadOnly { why: Arc::clone(why) };
                    self.answer(call, Command::ById(by_id).unavailable(why));
                }
                Purpose::Overdue(..) => self.lookups.overdue -= 1,
                Purpose::Import(look) => self.import_failed(look.call, why),
            }
        }
        self.retire(now);
    }

    fn key_found(&mut self, now: Now, place: &(QueueName, Key), found: Found) {
        let mut gone = None;
        let mut loaded = None;
        match found {
            // Memory may have got to know the key meanwhile, from a scan or a token; then it knows it better.
            _ if self.entries.by_key(&place.0, &place.1).is_some() => {}
            Found::Live(_) if crate::planted::is("two-tasks-after-retry") && self.is_create_held(place) => {}
            Found::Live(task) => loaded = self.load(now, task),
            Found::Ended(ended) => gone = Some(ended),
            Found::Absent => {}
        }
        for (call, command) in self.lookups.held.remove(place).unwrap_or_default() {
            self.run(now, call, command, gone.as_ref());
        }
        if let Some(slot) = loaded {
            self.let_go(slot, now);
        }
    }

    /// Whether the first command that waits for this key makes a task of it.
    fn is_create_held(&self, place: &(QueueName, Key)) -> bool {
        let held = self.lookups.held.get(place).and_then(VecDeque::front);
        matches!(held, Some((_, Keyed::Put { put, .. })) if put.mode == crate::PutMode::Create)
    }

    /// Takes a live task of the store into memory, whole: in the place of its stub if it has one, else with what a stop wrote
    /// down of its lease. `None` if memory has it whole already.
    pub(super) fn load(&mut self, now: Now, task: Arc<Task>) -> Option<Slot> {
        if self.entries.by_id(task.id).is_some() {
            return None;
        }
        if task.is_keyed()
            && let Some(slot) = self.entries.by_key(&task.queue, &task.key)
            && self.entries.get(slot).is_live()
        {
            unreachable!(
                "the store has task {} on a key that task {} holds",
                task.id,
                self.entries.get(slot).task.id
            )
        }
        let met = self.take_stub(&task);
        let stored = task.lease.filter(|_| self.goes_on(&task));
        self.watch_expiry(&task);
        if task.expire_at().is_some() {
            self.queues.open(&task.queue).expired.remove(task.id);
        }
        let slot = self.entries.insert(Entry::new(task, true));
        match (met, stored) {
            (Some(Met::Ready { since }), _) => self.make_ready(slot, since),
            (Some(Met::Waiting), _) | (None, None) => self.place_stored(slot, now),
            (None, Some(lease)) => {
                self.hold(slot, lease.no, now.wall, lease.until, Holder::default(), now);
            }
        }
        self.expire_one(slot, now);
        Some(slot)
    }

    /// Whether a stop of the life just before this one wrote a lease of the task down.
    pub(super) fn goes_on(&self, task: &Task) -> bool {
        task.lease.is_some_and(|lease| lease.written_in.0 + 1 == self.ownership.epoch.0)
    }
}
