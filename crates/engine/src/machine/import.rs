//! Tasks and schedules that come from another store: each is set as it stood there.
//!
//! An import looks all its keys up with one request, and is applied as a whole when the reply is here, in the order of its tasks. What other calls do
//! to the same keys meanwhile is in memory by then, for a changed task stays there while a read is under way.

use std::sync::Arc;

use super::Engine;
use super::entries::{At, Slot};
use super::filling::{schedule_bytes, task_bytes};
use super::lookup::Keyed;
use super::owner::{Held, check_timeline};
use crate::calls::{
    Answer, Due, Existing, IMPORT_TASKS_MAX, ImportError, ImportOutcome, ImportSchedule, ImportTask,
    ImportTasks, Imported, OnLease, Present, ScheduleError, Unavailable,
};
use crate::input::CallId;
use crate::schedule::{Cadence, ScheduleRecord};
use crate::seam::{Found, Wanted};
use crate::task::{Dead, Ended, Extra, Failure, Task};
use crate::time::{Now, Timestamp};

/// Where a shard keeps the ids of another store, all its own ids begin at a multiple of this. A counter that is one says that none of its own was given
/// out since, also after a restart: elsewhere a counter is none.
pub(super) const IDS_ASIDE: u64 = 1 << 20;
/// 2^52: ids of another store are laid aside below it only. The shard's own ids begin behind them, and those have to stay far below 2^53, up to which all
/// readers of JSON agree about numbers.
const IDS_ASIDE_MAX: u64 = 1 << 52;

/// An import that waits for what the store knows of its keys.
#[derive(Debug)]
pub(super) struct Importing {
    import: ImportTasks,
    /// What the store knows of each key.
    keys: Vec<Found>,
    /// What it knows of each id, if ids are kept.
    ids: Vec<Found>,
    keeps_ids: bool,
}

/// One thing that an import wants to know.
#[derive(Clone, Debug)]
pub(super) struct ImportLook {
    pub(super) call: CallId,
    pub(super) wanted: Wanted,
}

/// How one task of an import is to be brought in.
struct Bringing {
    existing: Existing,
    on_lease: OnLease,
    /// The id that it keeps.
    id: Option<u64>,
    /// The task that has its id already, though its key may not lead there.
    known: Option<u64>,
}

impl Importing {
    fn is_complete(&self) -> bool {
        let tasks = self.import.tasks.len();
        self.keys.len() == tasks && (!self.keeps_ids || self.ids.len() == tasks)
    }
}

impl Engine {
    pub(super) fn import(&mut self, call: CallId, mut import: ImportTasks) {
        import.tasks.truncate(IMPORT_TASKS_MAX);
        let keeps_ids = import.ids_below.is_some_and(|below| self.keeps_ids(below));
        if import.tasks.is_empty() {
            let nothing = Imported { outcomes: Vec::new(), refused: None };
            return self.answer(call, Answer::Import(Ok(nothing)));
        }
        let keys = import.tasks.iter().map(|task| Wanted::Key(task.queue.clone(), task.key.clone()));
        let ids = import.tasks.iter().filter(|_| keeps_ids).map(|task| Wanted::Id(task.id));
        for wanted in keys.chain(ids) {
            self.lookups.want_import(ImportLook { call, wanted });
        }
        let importing = Importing { import, keys: Vec::new(), ids: Vec::new(), keeps_ids };
        self.importing.insert(call, importing);
    }

    /// Whether ids below this one are kept. In a shard that never had a task they are laid aside now: its own begin behind them.
    fn keeps_ids(&mut self, below: u64) -> bool {
        if self.ids_aside > 0 {
            return true;
        }
        if self.state.ids_reserved > 0 {
            return false;
        }
        if below > IDS_ASIDE_MAX {
            return false;
        }
        let aside = below.max(1).next_multiple_of(IDS_ASIDE);
        (self.ids_aside, self.next_id) = (aside, self.ownership.shard.first_id(aside));
        self.state.ids_reserved = aside;
        self.filling.set_state(self.state);
        true
    }

    /// The store answered with what it knows of one key or id. The last of them sets the import going.
    pub(super) fn import_found(&mut self, now: Now, look: &ImportLook, found: Found) {
        let importing = self.importing.get_mut(&look.call).expect("an import stays until all is found");
        match look.wanted {
            Wanted::Key(..) => importing.keys.push(found),
            Wanted::Id(_) => importing.ids.push(found),
        }
        if importing.is_complete() {
            let importing = self.importing.remove(&look.call).expect("it was just looked at");
            self.carry_in(now, look.call, importing);
        }
    }

    /// The store failed to answer a look-up: the import had no effect.
    pub(super) fn import_failed(&mut self, call: CallId, why: &Arc<str>) {
        if self.importing.remove(&call).is_some() {
            let why = Unavailable::ReadOnly { why: Arc::clone(why) };
            self.answer(call, Answer::Import(Err(why)));
        }
    }

    fn carry_in(&mut self, now: Now, call: CallId, importing: Importing) {
        let Importing { import, keys, ids, keeps_ids } = importing;
        let (mut loaded, mut ended) = (Vec::new(), Vec::new());
        for (task, found) in import.tasks.iter().zip(keys) {
            let is_known = self.entries.by_key(&task.queue, &task.key).is_some();
            ended.push(match found {
                // Memory knows it better.
                _ if is_known => None,
                Found::Live(_) if crate::planted::is("import-beside-what-is-far") => None,
                Found::Live(live) => {
                    loaded.extend(self.load(now, live));
                    None
                }
                Found::Ended(ended) => Some(ended),
                Found::Absent => None,
            });
        }
        let mut ids = ids.into_iter();
        let (mut outcomes, mut refused) = (Vec::new(), None);
        for (task, ended) in import.tasks.into_iter().zip(ended) {
            let known = ids.next().map_or(Found::Absent, |found| found);
            let id = Some(task.id).filter(|&id| {
                let is_aside =
                    keeps_ids && (1..self.ids_aside).contains(&id) && self.ownership.shard.has_id(id);
                is_aside && matches!(known, Found::Absent) && self.entries.by_id(id).is_none()
            });
            let known = if keeps_ids { self.same_by_id(&task, known) } else { None };
            let how = Bringing { existing: import.existing, on_lease: import.on_lease, id, known };
            match self.bring(now, task, &how, ended.as_ref()) {
                Ok(outcome) => outcomes.push(outcome),
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            }
        }
        self.answer(call, Answer::Import(Ok(Imported { outcomes, refused })));
        for slot in loaded {
            self.let_go(slot, now);
        }
    }

    /// The id of this very task, if it is here under the id that it had.
    fn same_by_id(&self, task: &ImportTask, found: Found) -> Option<u64> {
        let is_same =
            |here: &Task| here.queue == task.queue && here.key == task.key && here.put_at == task.put_at;
        let same = match (self.entries.by_id(task.id), found) {
            (Some(slot), _) => {
                let entry = self.entries.get(slot);
                entry.state().is_some() && is_same(&entry.task)
            }
            (None, Found::Live(here)) => is_same(&here),
            (None, _) => false,
        };
        same.then_some(task.id)
    }

    fn bring(
        &mut self,
        now: Now,
        task: ImportTask,
        how: &Bringing,
        ended: Option<&Ended>,
    ) -> Result<ImportOutcome, ImportError> {
        if let Some(why) = self.refusal_of_changes() {
            return Err(why.into());
        }
        self.check_import(now, &task)?;
        match (task.extra.dead, self.kept(&task.queue, &task.key)) {
            (Some(dead), _) if dead.keyless => self.bring_keyless(now, task, how),
            (_, None) if how.existing == Existing::Skip && self.has_ended(now, &task, ended) => {
                Ok(ImportOutcome::Skipped(Present::Ended))
            }
            (_, None) => self.bring_new(now, task, how, None),
            (dead, Some(slot)) => self.bring_onto(now, task, how, slot, dead.is_some()),
        }
    }

    /// What cannot be, wherever it comes from.
    fn check_import(&self, now: Now, task: &ImportTask) -> Result<(), ImportError> {
        let moments = &task.body.timeline;
        check_timeline(moments).map_err(|not_rising| ImportError::NotRising { index: not_rising.0 })?;
        if task.extra.step > 0 && task.extra.step as usize >= moments.len() {
            return Err(ImportError::NoStep { step: task.extra.step, instants: moments.len() });
        }
        let last = moments.last().map_or(task.due_at, |last| last.at.max(task.due_at));
        let is_far = task.extra.dead.is_none() && self.instant(now, Due::At(last)).is_err();
        let limit_ms = self.config.farthest_ms;
        if is_far { Err(ImportError::TooFar { limit_ms }) } else { Ok(()) }
    }

    /// Whether the task of this key has ended here after the imported one was put.
    fn has_ended(&self, now: Now, task: &ImportTask, ended: Option<&Ended>) -> bool {
        if crate::planted::is("import-of-what-ended") {
            return false;
        }
        match self.entries.by_key(&task.queue, &task.key).map(|slot| &self.entries.get(slot).at) {
            // It has just ended, and is not durable yet.
            Some(At::Ended(_)) => now.wall >= task.put_at,
            _ => ended.is_some_and(|ended| ended.at >= task.put_at),
        }
    }

    /// A dead task that has lost its key is known by its id alone.
    fn bring_keyless(
        &mut self,
        now: Now,
        task: ImportTask,
        how: &Bringing,
    ) -> Result<ImportOutcome, ImportError> {
        match (how.known, how.existing) {
            (Some(id), Existing::Refuse) => Err(ImportError::Dead { id }),
            (Some(_), _) => Ok(ImportOutcome::Skipped(Present::Dead)),
            (None, Existing::Skip) if how.id.is_none() => Ok(ImportOutcome::Skipped(Present::Keyless)),
            (None, _) => self.bring_new(now, task, how, None),
        }
    }

    /// A live or dead task has the key already.
    fn bring_onto(
        &mut self,
        now: Now,
        mut task: ImportTask,
        how: &Bringing,
        slot: Slot,
        is_dead: bool,
    ) -> Result<ImportOutcome, ImportError> {
        let here = &self.entries.get(slot).task;
        let (id, version, is_older) = (here.id, here.version, here.put_at < task.put_at);
        let here_is_dead = self.entries.get(slot).is_dead();
        match (how.existing, here_is_dead) {
            // A live task may take the key of one that was given up before it was put, as a put does.
            (_, true) if !is_dead && (is_older || how.existing == Existing::Replace) => {
                self.bring_new(now, task, how, Some(slot))
            }
            (Existing::Skip, true) => Ok(ImportOutcome::Skipped(Present::Dead)),
            (Existing::Skip, false) => Ok(ImportOutcome::Skipped(Present::Live)),
            (Existing::Refuse, true) => Err(ImportError::Dead { id }),
            (Existing::Refuse, false) => Err(ImportError::Live { id, version }),
            // A dead task never takes the place of a live one. It stands beside it, without the key.
            (Existing::Replace, false) if is_dead => {
                if let Some(dead) = &mut task.extra.dead {
                    dead.keyless = true;
                }
                self.bring_keyless(now, task, how)
            }
            (Existing::Replace, _) => self.bring_over(now, task, how, slot),
        }
    }

    fn bring_over(
        &mut self,
        now: Now,
        task: ImportTask,
        how: &Bringing,
        slot: Slot,
    ) -> Result<ImportOutcome, ImportError> {
        let revoked = self.may_change(slot, how.on_lease).map_err(|Held| ImportError::Leased)?;
        let task = Task { revoked, ..self.imported(now, task, 0) };
        self.take_room(task_bytes(&task, false))?;
        let slot = self.replace(slot, task);
        self.settle_in(slot, now);
        Ok(ImportOutcome::Replaced)
    }

    fn bring_new(
        &mut self,
        now: Now,
        task: ImportTask,
        how: &Bringing,
        dead: Option<Slot>,
    ) -> Result<ImportOutcome, ImportError> {
        if task.extra.dead.is_none()
            && let Some(limit) = self.backlog_limit(&task.queue)
        {
            return Err(ImportError::BacklogFull { limit });
        }
        let task = self.imported(now, task, how.id.unwrap_or(0));
        let buried = dead.map_or(0, |dead| task_bytes(&self.entries.get(dead).task, false));
        self.take_room(task_bytes(&task, false) + buried)?;
        self.note_own_number(&task.key);
        let slot = self.add(task, dead);
        self.settle_in(slot, now);
        Ok(ImportOutcome::Added { kept_id: how.id.is_some() })
    }

    /// The record of an imported task. `id` 0: it gets one.
    fn imported(&mut self, now: Now, task: ImportTask, id: u64) -> Task {
        let ImportTask { id: _, queue, key, due_at: was_due_at, put_at, priority, attempts, body, extra } =
            task;
        let mut due_at = was_due_at;
        let dead = extra.dead.map(|dead| {
            due_at = self.forgotten_at(Now { wall: dead.at, ..now }, dead.why);
            Dead { due_at: was_due_at, ..dead }
        });
        let Extra { mut failures, .. } = extra;
        failures.drain(..failures.len().saturating_sub(Failure::KEPT));
        let extra = Extra { dead, failures, acked: None, ..extra }.boxed();
        Task { id, due_at, put_at, priority, attempts, extra, ..Task::new(queue, key, body) }
    }

    /// An imported task stands where its record says. What was due elsewhere already is ready, and not late here. What has expired on the way is given up.
    fn settle_in(&mut self, slot: Slot, now: Now) {
        self.enter(slot);
        let task = &self.entries.get(slot).task;
        if task.dead().is_none() && task.due_at <= now.wall {
            self.make_ready(slot, now.wall);
        } else {
            self.place(slot, now);
        }
        self.expire_one(slot, now);
    }

    /// Looks for the task that has to end before the schedule makes another, if there is one.
    pub(super) fn import_schedule(&mut self, now: Now, call: CallId, import: ImportSchedule) {
        match import.running.clone() {
            Some(key) => self.keyed(now, call, Keyed::ImportSchedule { import, key }),
            None => self.import_schedule_known(now, call, &import),
        }
    }

    /// Brings a schedule whose running task is in memory, or known not to be live.
    pub(super) fn import_schedule_known(&mut self, now: Now, call: CallId, import: &ImportSchedule) {
        let answer = match self.refusal_of_changes() {
            Some(why) => Err(why.into()),
            None => self.bring_schedule(now, import),
        };
        self.answer(call, Answer::ImportSchedule(answer));
    }

    fn bring_schedule(&mut self, now: Now, import: &ImportSchedule) -> Result<ImportOutcome, ScheduleError> {
        if let Some(what) = import.schedule.mistake() {
            return Err(ScheduleError::Invalid { what });
        }
        let id = (import.queue.clone(), import.name.clone());
        let before = self.schedules.get(&id).cloned();
        if let Some(before) = &before {
            match import.existing {
                Existing::Skip => return Ok(ImportOutcome::Skipped(Present::Schedule)),
                Existing::Refuse if before.schedule == import.schedule => {
                    return Ok(ImportOutcome::Skipped(Present::Schedule));
                }
                Existing::Refuse => return Err(ScheduleError::Exists { version: before.version }),
                Existing::Replace => {}
            }
        }
        let record = self.imported_schedule(now, import, before.as_deref());
        let had = before.as_ref().map_or(0, |before| schedule_bytes(&id, before));
        let needed = schedule_bytes(&id, &record);
        self.schedules.has_place_for(before.is_none(), had, needed)?;
        self.take_room(needed)?;
        // What was made elsewhere was not made here.
        let (made, skipped) = (self.stats.made_total, self.stats.skipped_total);
        self.step_schedule(&id, record);
        (self.stats.made_total, self.stats.skipped_total) = (made, skipped);
        Ok(if before.is_some() { ImportOutcome::Replaced } else { ImportOutcome::Added { kept_id: true } })
    }

    fn imported_schedule(
        &self,
        now: Now,
        import: &ImportSchedule,
        before: Option<&ScheduleRecord>,
    ) -> ScheduleRecord {
        let takes_turns = import.schedule.takes_turns();
        let running = import.running.as_ref().filter(|_| takes_turns);
        let running = running.and_then(|key| self.live(&import.queue, key));
        let mut waiting = import.waiting.clone();
        // Of no instant two tasks are made, however often the same file is imported: up to the last instant that has a task here, all are over.
        let made_here = before.and_then(|before| before.last);
        waiting.retain(|at| takes_turns && made_here.is_none_or(|last| *at > last));
        waiting.truncate(ScheduleRecord::WAITING_MAX);
        let decided = made_here.unwrap_or_default().max(import.decided);
        let mut record = ScheduleRecord {
            last: import.last.max(made_here),
            made: import.made,
            skipped: import.skipped,
            running: running.map(|slot| self.entries.get(slot).task.id),
            waiting,
            ..ScheduleRecord::new(Arc::clone(&import.schedule), self.applied.next(), import.anchor, decided)
        };
        if matches!(import.schedule.cadence, Cadence::FixedDelay { .. }) && record.running.is_none() {
            let earliest = |next: Timestamp| next.max(record.beyond().saturating_plus_ms(1));
            record.next = import.next.map(earliest).or_else(|| record.after_a_delay(now));
        }
        record
    }
}
