//! Put: adds a task, or replaces a live one.

use std::sync::Arc;

use super::admit::{admit_expiry, admit_version};
use crate::calls::{Answer, Put, PutError, PutMode, Stored, TRACE_BYTES_MAX};
use crate::input::CallId;
use crate::ledger::task_bytes;
use crate::name::{Key, QueueName};
use crate::reads::{Keyed, NamedPut};
use crate::residence::Slot;
use crate::task::{Ended, Extra, Task};
use crate::tasks::Tasks;

impl Tasks<'_> {
    /// Gives the task of a put its key. Without a key in the put, the task gets an id, and the decimal form of the id as its key. Also
    /// returns whether no look-up is needed, because no owner can have used this decimal form as a key.
    pub(crate) fn name_put(&mut self, put: Put) -> (Keyed, bool) {
        if let Some(key) = put.key.clone() {
            return (Keyed::Put(NamedPut { put, key, id: None, is_owed: false }), false);
        }
        // A client may use decimal numbers as keys of its own. So the loop takes the first new id whose decimal form is not the key of a
        // live task in memory. If the store has a live task on this key, `put` returns the put, and the put gets another key.
        let (id, key) = loop {
            let id = self.ledger.take_id();
            let key = Key::from_id(id);
            if self.residence.live(&put.queue, &key).is_none() {
                break (id, key);
            }
        };
        let is_free = !self.ledger.ids().may_be_key(id);
        (Keyed::Put(NamedPut { put, key, id: Some(id), is_owed: false }), is_free)
    }

    /// Puts a task and answers the call. The caller has looked the key up: the live or dead task of the key is in memory, or there is none.
    /// Returns the put without an answer if the put has to get another key.
    pub(crate) fn put(&mut self, call: CallId, named: NamedPut, gone: Option<&Ended>) -> Option<Put> {
        let NamedPut { put, key, id, is_owed: _ } = &named;
        if let Err(why) = self.ledger.check_changes() {
            self.ledger.answer(call, Answer::Put(Err(why.into())));
            return None;
        }
        let (live, dead) = self.live_or_dead(&put.queue, key);
        if id.is_some() && live.is_some() {
            // The look-up found that a client uses this decimal number as a key of its own.
            return Some(named.put);
        }
        let answer = match (put.mode, live.or(dead)) {
            (PutMode::Once, Some(slot)) => Ok(Stored { created: false, task: self.view(slot) }),
            (PutMode::Once, None) if self.is_done(&put.queue, key, gone) => Err(PutError::Done),
            _ => self.decide_put(named, live, dead),
        };
        self.ledger.answer(call, Answer::Put(answer));
        None
    }

    /// Returns the slots of the live task of a key, or of its dead task.
    pub(super) fn live_or_dead(&self, queue: &QueueName, key: &Key) -> (Option<Slot>, Option<Slot>) {
        match self.residence.kept(queue, key) {
            Some(slot) if self.residence.get(slot).is_dead() => (None, Some(slot)),
            live => (live, None),
        }
    }

    /// Puts a task, or refuses the put. `live`, `dead`: the task of the key.
    pub(super) fn decide_put(
        &mut self,
        named: NamedPut,
        live: Option<Slot>,
        dead: Option<Slot>,
    ) -> Result<Stored, PutError> {
        let NamedPut { put, key, id, is_owed } = named;
        let current = live.map(|slot| self.residence.task(slot).version);
        admit_version(put.if_version, current)?;
        match (put.mode, live) {
            (PutMode::Create, Some(slot)) => {
                let task = self.residence.task(slot);
                return Err(PutError::Live { id: task.id, version: task.version });
            }
            (PutMode::Replace, None) => return Err(PutError::NotFound),
            _ => {}
        }
        let due_at = self.admit(&put.body.timeline, Some(put.due))?;
        let mut due_at = due_at.expect("a put says when its task is due");
        let latest = self.now.latest();
        let asked_at = put.asked_at.unwrap_or(latest).min(latest);
        let mut put_at = asked_at.min(self.now.wall);
        if let PutMode::Debounce { max_wait_ms } = put.mode {
            put_at = live.and_then(|slot| self.residence.task(slot).row_begin()).unwrap_or(put_at);
            // An instant of a timeline is kept exactly.
            if put.body.timeline.is_empty() {
                due_at = due_at.min(self.end_of_wait(put_at, max_wait_ms.unwrap_or(u64::MAX)));
            }
        }
        let priority = put.terms.priority;
        let trace = put.trace.filter(|trace| trace.len() <= TRACE_BYTES_MAX);
        let extra = Extra { trace, ttr_ms: put.ttr_ms, ..put.terms.kept(asked_at) };
        admit_expiry(self.now, extra.expire_at, due_at)?;
        let revoked = match live {
            Some(slot) => self.may_change(slot, put.on_lease, PutError::Leased)?,
            None => None,
        };
        let fresh = Task::new(put.queue, key, Arc::new(put.body));
        let task =
            Task { id: id.unwrap_or(0), due_at, put_at, priority, revoked, extra: extra.boxed(), ..fresh };
        if live.is_none() {
            if !put.may_add {
                return Err(PutError::WouldAdd);
            }
            if !is_owed {
                self.dispatch.may_grow(&task.queue)?;
            }
        }
        let buried = dead.map_or(0, |dead| task_bytes(self.residence.task(dead), false));
        let growth = task_bytes(&task, false) + buried;
        if is_owed {
            self.ledger.take_room_owed(growth);
        } else {
            self.ledger.take_room(growth)?;
        }
        let slot = match live {
            Some(slot) => self.replace(slot, task),
            None => self.add(task, dead),
        };
        self.begin(slot);
        Ok(Stored { created: live.is_none(), task: self.view(slot) })
    }
}
