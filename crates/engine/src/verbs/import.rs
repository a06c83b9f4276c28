//! Import: adds live and dead tasks of another store.
//!
//! An import looks up all its keys with one request. Once the store has replied, the tasks are added in one step, in their order, up to the
//! first task that is refused. If other calls have changed the same keys meanwhile, memory has these changes, because a changed task stays
//! in memory while a read is under way.

use super::admit::falls_at;
use crate::calls::{
    Answer, Due, Existing, ImportError, ImportOutcome, ImportTask, ImportTasks, Imported, OnLease, Present,
};
use crate::input::CallId;
use crate::ledger::task_bytes;
use crate::residence::{At, Slot};
use crate::seam::Found;
use crate::task::{Dead, Ended, Extra, Failure, Task};
use crate::tasks::Tasks;
use crate::time::Now;

/// How one task of an import is added to this store.
struct Bringing {
    existing: Existing,
    on_lease: OnLease,
    /// The id that the task keeps; `None`: the task gets a new id.
    id: Option<u64>,
    /// The id of the task, if this store already has the same task under this id. The key may belong to another task.
    known: Option<u64>,
}

impl Tasks<'_> {
    /// Adds the tasks of an import to this store after the store has answered the look-up, and answers the call.
    ///
    /// `found`: the answers for the keys of all tasks. If tasks keep their ids, the answers for the ids follow.
    pub(crate) fn carry_in(&mut self, call: CallId, import: ImportTasks, mut found: Vec<Found>) {
        let mut ids = found.split_off(import.tasks.len()).into_iter();
        let keeps_ids = ids.len() > 0;
        let (mut loaded, mut ended) = (Vec::new(), Vec::new());
        for (task, found) in import.tasks.iter().zip(found) {
            let (live, gone) = self.take_found(&task.queue, &task.key, found);
            loaded.extend(live);
            ended.push(gone);
        }
        let (mut outcomes, mut refused) = (Vec::new(), None);
        for (task, ended) in import.tasks.into_iter().zip(ended) {
            let known = ids.next().unwrap_or(Found::Absent);
            let id = Some(task.id).filter(|&id| {
                let is_aside = keeps_ids && self.ledger.ids().is_aside(id);
                is_aside && matches!(known, Found::Absent) && self.residence.by_id(id).is_none()
            });
            let known = if keeps_ids { self.same_by_id(&task, known) } else { None };
            let how = Bringing { existing: import.existing, on_lease: import.on_lease, id, known };
            match self.bring(task, &how, ended.as_ref()) {
                Ok(outcome) => outcomes.push(outcome),
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            }
        }
        self.ledger.answer(call, Answer::Import(Ok(Imported { outcomes, refused })));
        for slot in loaded {
            self.evict(slot);
        }
    }

    /// Returns the id of an imported task, if this store has the same task under this id: with the same queue, key and time of the put.
    fn same_by_id(&self, task: &ImportTask, found: Found) -> Option<u64> {
        let is_same =
            |here: &Task| here.queue == task.queue && here.key == task.key && here.put_at == task.put_at;
        let same = match (self.residence.by_id(task.id), found) {
            (Some(slot), _) => {
                let entry = self.residence.get(slot);
                entry.state().is_some() && is_same(&entry.task)
            }
            (None, Found::Live(here)) => is_same(&here),
            (None, _) => false,
        };
        same.then_some(task.id)
    }

    fn bring(
        &mut self,
        task: ImportTask,
        how: &Bringing,
        ended: Option<&Ended>,
    ) -> Result<ImportOutcome, ImportError> {
        self.ledger.check_changes()?;
        self.check_import(&task)?;
        match (task.extra.dead, self.residence.kept(&task.queue, &task.key)) {
            (Some(dead), _) if dead.keyless => self.bring_keyless(task, how),
            (_, None) if how.existing == Existing::Skip && self.has_ended(&task, ended) => {
                Ok(ImportOutcome::Skipped(Present::Ended))
            }
            (_, None) => self.bring_new(task, how, None),
            (dead, Some(slot)) => self.bring_onto(task, how, slot, dead.is_some()),
        }
    }

    /// Refuses a task that is not valid: its timeline does not rise, its step has no instant, or the task is live and due too far ahead.
    fn check_import(&self, task: &ImportTask) -> Result<(), ImportError> {
        let moments = &task.body.timeline;
        if let Some(index) = falls_at(moments) {
            return Err(ImportError::NotRising { index });
        }
        if task.extra.step > 0 && task.extra.step as usize >= moments.len() {
            return Err(ImportError::NoStep { step: task.extra.step, instants: moments.len() });
        }
        let last = moments.last().map_or(task.due_at, |last| last.at.max(task.due_at));
        let is_far = task.extra.dead.is_none() && self.instant(Due::At(last)).is_none();
        let limit_ms = self.config.farthest_ms;
        if is_far { Err(ImportError::TooFar { limit_ms }) } else { Ok(()) }
    }

    /// Whether the last task of the same key in this store ended when the imported task was put, or later.
    fn has_ended(&self, task: &ImportTask, ended: Option<&Ended>) -> bool {
        match self.residence.by_key(&task.queue, &task.key).map(|slot| &self.residence.get(slot).at) {
            // The last task of the key has just ended, and its end is not durable yet.
            Some(At::Ended(_)) => self.now.wall >= task.put_at,
            _ => ended.is_some_and(|ended| ended.at >= task.put_at),
        }
    }

    /// Imports a dead task that has lost its key, unless this store has the task already. The task is found by its id alone.
    fn bring_keyless(&mut self, task: ImportTask, how: &Bringing) -> Result<ImportOutcome, ImportError> {
        match (how.known, how.existing) {
            (Some(id), Existing::Refuse) => Err(ImportError::Dead { id }),
            (Some(_), _) => Ok(ImportOutcome::Skipped(Present::Dead)),
            (None, Existing::Skip) if how.id.is_none() => Ok(ImportOutcome::Skipped(Present::Keyless)),
            (None, _) => self.bring_new(task, how, None),
        }
    }

    /// Imports a task whose key a live or dead task of this store has (`slot`). `is_dead`: the imported task is dead.
    fn bring_onto(
        &mut self,
        mut task: ImportTask,
        how: &Bringing,
        slot: Slot,
        is_dead: bool,
    ) -> Result<ImportOutcome, ImportError> {
        let here = self.residence.task(slot);
        let (id, version, is_older) = (here.id, here.version, here.put_at < task.put_at);
        let here_is_dead = self.residence.get(slot).is_dead();
        match (how.existing, here_is_dead) {
            // A live task may take the key of a dead task that was put earlier, as a put does. With `Replace`, a live task may take the key
            // of any dead task.
            (_, true) if !is_dead && (is_older || how.existing == Existing::Replace) => {
                self.bring_new(task, how, Some(slot))
            }
            (Existing::Skip, true) => Ok(ImportOutcome::Skipped(Present::Dead)),
            (Existing::Skip, false) => Ok(ImportOutcome::Skipped(Present::Live)),
            (Existing::Refuse, true) => Err(ImportError::Dead { id }),
            (Existing::Refuse, false) => Err(ImportError::Live { id, version }),
            // A dead task never takes the place of a live one. It is added beside the live one, without the key.
            (Existing::Replace, false) if is_dead => {
                if let Some(dead) = &mut task.extra.dead {
                    dead.keyless = true;
                }
                self.bring_keyless(task, how)
            }
            (Existing::Replace, _) => {
                let revoked = self.may_change(slot, how.on_lease, ImportError::Leased)?;
                let task = Task { revoked, ..self.imported(task, 0) };
                self.ledger.take_room(task_bytes(&task, false))?;
                let slot = self.replace(slot, task);
                self.place_imported(slot);
                Ok(ImportOutcome::Replaced)
            }
        }
    }

    fn bring_new(
        &mut self,
        task: ImportTask,
        how: &Bringing,
        dead: Option<Slot>,
    ) -> Result<ImportOutcome, ImportError> {
        if task.extra.dead.is_none() {
            self.dispatch.may_grow(&task.queue)?;
        }
        let task = self.imported(task, how.id.unwrap_or(0));
        let buried = dead.map_or(0, |dead| task_bytes(self.residence.task(dead), false));
        self.ledger.take_room(task_bytes(&task, false) + buried)?;
        self.ledger.note_owners_key(&task.key);
        let slot = self.add(task, dead);
        self.place_imported(slot);
        Ok(ImportOutcome::Added { kept_id: how.id.is_some() })
    }

    /// Makes the record of an imported task. If `id` is 0, the task gets a new id when it is added.
    fn imported(&mut self, task: ImportTask, id: u64) -> Task {
        let ImportTask { id: _, queue, key, due_at: was_due_at, put_at, priority, attempts, body, extra } =
            task;
        let mut due_at = was_due_at;
        let dead = extra.dead.map(|dead| {
            due_at = self.forgotten_at(Now { wall: dead.at, ..self.now }, dead.why);
            Dead { due_at: was_due_at, ..dead }
        });
        let Extra { mut failures, .. } = extra;
        failures.drain(..failures.len().saturating_sub(Failure::KEPT));
        let extra = Extra { dead, failures, acked: None, ..extra }.boxed();
        Task { id, due_at, put_at, priority, attempts, extra, ..Task::new(queue, key, body) }
    }

    /// Makes an imported task ready or starts its wait, as its record says. A task that was due before the import is ready, and no lateness
    /// is counted. A task that has expired meanwhile is given up.
    fn place_imported(&mut self, slot: Slot) {
        self.enter(slot);
        let task = self.residence.task(slot);
        if task.dead().is_none() && task.due_at <= self.now.falls_due() {
            self.make_ready(slot, self.now.wall);
        } else {
            self.place(slot);
        }
        self.expire_one(slot);
    }
}
