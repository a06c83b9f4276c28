//! The work on each of many tasks: cancel, move, purge or redrive.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use tickwheel_api::{
    BulkCancelBody, BulkMoveBody, JobAction, MoveTo, Problem, PurgeBody, RedriveBody, SkippedBody,
    TaskFilter, TaskState,
};
use tickwheel_queue::{
    Act, Acted, ById, ByIdError, Cancel, CancelError, Cancelled, Extra, Key, Patch, PatchError, Pending,
    Queue, QueueName, Seq, TaskView, Timestamp,
};

use crate::translate;

/// The requested work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    Cancel(BulkCancelBody),
    Move(Move),
    Purge(PurgeBody),
    Redrive(Redriving),
}

/// A move, and the latest instant that its sender may give to a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Move {
    /// A delay became an instant when the call was received, so it is the same for all tasks.
    pub(crate) body: BulkMoveBody,
    /// The latest instant that a task may get.
    pub(crate) latest: Option<Timestamp>,
}

/// A redrive of the dead tasks that a filter finds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Redriving {
    /// The state is not looked at.
    pub(crate) filter: TaskFilter,
    pub(crate) dry_run: bool,
    /// The begin of the work: a task that dies later stays dead.
    pub(crate) begun: Timestamp,
}

/// A task as it was found.
pub(crate) struct Found {
    key: Key,
    id: u64,
    version: Seq,
    due_at: Timestamp,
    /// The task is named by its id: a dead task whose key a later task took, and each dead task of a purge or redrive.
    by_id: bool,
}

/// The tasks of several pages, each task once.
#[derive(Default)]
pub(crate) struct FoundOnce {
    tasks: Vec<Found>,
    /// The index of each task in `tasks`, by its id.
    places: BTreeMap<u64, usize>,
}

impl FoundOnce {
    /// Adds a page. If a task was on an earlier page, and has since moved or died, the later state replaces the
    /// earlier one.
    pub(crate) fn add(&mut self, page: Vec<Found>) {
        for found in page {
            match self.places.entry(found.id) {
                Entry::Occupied(place) => self.tasks[*place.get()] = found,
                Entry::Vacant(place) => {
                    place.insert(self.tasks.len());
                    self.tasks.push(found);
                }
            }
        }
    }

    pub(crate) fn tasks(&self) -> &[Found] {
        &self.tasks
    }
}

/// A pending answer about one task.
pub(crate) enum Asked {
    Cancel(Pending<Cancelled, CancelError>),
    End(Pending<Acted, ByIdError>),
    Move(Pending<TaskView, PatchError>),
    /// The queue was not asked to change the task, because its instant would be too late.
    TooFar,
}

/// The number of tasks that were changed, and the numbers of skipped tasks by reason.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) done: u64,
    pub(crate) skipped: SkippedBody,
}

impl Found {
    /// The task, if this work can be done to it.
    pub(crate) fn of(task: TaskView, work: &Work) -> Option<Self> {
        let TaskView { key, id, version, due_at, extra: Extra { dead, .. }, .. } = task;
        let keyless = dead.is_some_and(|dead| dead.keyless);
        let by_id = match work {
            Work::Purge(_) => dead.is_some(),
            // A later task took the key of a keyless one, so what the keyless one was to do is out of date.
            Work::Redrive(Redriving { begun, .. }) => {
                return dead.filter(|dead| !dead.keyless && dead.at <= *begun).map(|_| Self {
                    key,
                    id,
                    version,
                    due_at,
                    by_id: true,
                });
            }
            Work::Cancel(_) => keyless,
            Work::Move(_) => false,
        };
        (by_id || !keyless).then_some(Self { key, id, version, due_at, by_id })
    }
}

impl Work {
    pub(crate) fn action(&self) -> JobAction {
        match self {
            Self::Cancel(_) => JobAction::Cancel,
            Self::Move(_) => JobAction::Move,
            Self::Purge(_) => JobAction::Purge,
            Self::Redrive(_) => JobAction::Redrive,
        }
    }

    pub(crate) fn dry_run(&self) -> bool {
        match self {
            Self::Cancel(body) => body.dry_run,
            Self::Move(moving) => moving.body.dry_run,
            Self::Purge(body) => body.dry_run,
            Self::Redrive(redriving) => redriving.dry_run,
        }
    }

    fn revoke(&self) -> bool {
        match self {
            Self::Cancel(body) => body.revoke,
            Self::Move(moving) => moving.body.revoke,
            Self::Purge(body) => body.revoke,
            Self::Redrive(_) => false,
        }
    }

    /// The lists of the work, one after the other. A purge begins with the live tasks. A task that dies meanwhile is
    /// found among the dead ones.
    pub(crate) fn filter(&self, part: usize) -> Option<TaskFilter> {
        let filter = match (self, part) {
            (Self::Cancel(body), 0) => body.filter.clone(),
            (Self::Move(moving), 0) => moving.body.filter.clone(),
            (Self::Purge(_), 0) => TaskFilter::default(),
            (Self::Purge(_), 1) => TaskFilter { state: Some(TaskState::Dead), ..TaskFilter::default() },
            (Self::Redrive(redriving), 0) => {
                TaskFilter { state: Some(TaskState::Dead), ..redriving.filter.clone() }
            }
            _ => return None,
        };
        Some(filter)
    }

    /// Whether the work may find its tasks again: a moved task stays in the list, and a redriven one may die again.
    pub(crate) fn leaves_tasks(&self) -> bool {
        matches!(self, Self::Move(_) | Self::Redrive(_))
    }

    /// The request as JSON, for [`read`](Self::read).
    pub(crate) fn to_json(&self) -> Vec<u8> {
        match self {
            Self::Cancel(body) => body.to_json(),
            Self::Move(moving) => moving.body.to_json(),
            Self::Purge(body) => body.to_json(),
            Self::Redrive(Redriving { filter, dry_run, begun: _ }) => {
                RedriveBody::Filter { filter: filter.clone(), dry_run: *dry_run }.to_json()
            }
        }
    }

    /// Reads a request of this action that [`to_json`](Self::to_json) wrote.
    pub(crate) fn read(action: JobAction, request: &[u8], latest: Option<Timestamp>) -> Option<Self> {
        let read = match action {
            JobAction::Cancel => BulkCancelBody::parse(request).map(Self::Cancel),
            JobAction::Move => BulkMoveBody::parse(request).map(|body| Self::Move(Move { body, latest })),
            JobAction::Purge => PurgeBody::parse(request).map(Self::Purge),
            JobAction::Redrive => match RedriveBody::parse(request) {
                Ok(RedriveBody::Filter { filter, dry_run }) => {
                    Ok(Self::Redrive(Redriving { filter, dry_run, begun: latest? }))
                }
                Ok(_) => return None,
                Err(refused) => Err(refused),
            },
        };
        read.ok()
    }

    /// Asks the queue to change one task.
    pub(crate) fn ask(&self, queue: &Queue, name: &QueueName, found: &Found) -> Asked {
        let on_lease = translate::on_lease(self.revoke());
        let key = || found.key.clone();
        match self {
            _ if found.by_id => {
                // A purge also removes a dead task that became ready meanwhile.
                let if_version = Some(found.version).filter(|_| !matches!(self, Self::Purge(_)));
                let act = if matches!(self, Self::Redrive(_)) { Act::Run } else { Act::Cancel };
                let by_id = ById { id: found.id, act, within: None, if_version, worker: None };
                Asked::End(queue.by_id(by_id))
            }
            Self::Cancel(_) | Self::Purge(_) | Self::Redrive(_) => {
                let cancel = Cancel::new(name, key());
                Asked::Cancel(queue.cancel(Cancel { if_version: Some(found.version), on_lease, ..cancel }))
            }
            Self::Move(moving) => match moving.instant(found.due_at, at_most(queue)) {
                None => Asked::TooFar,
                Some(to) => {
                    let patch = Patch::new(name, key()).at(to);
                    Asked::Move(queue.patch(Patch { if_version: Some(found.version), on_lease, ..patch }))
                }
            },
        }
    }
}

/// The latest instant that the clock may show now, so that no delay from it ends early.
fn at_most(queue: &Queue) -> Timestamp {
    queue.due_after(0).unwrap_or(Timestamp::MAX)
}

impl Move {
    /// The new due time of a task that is due at `due_at`; `None`: it would be later than allowed.
    fn instant(&self, due_at: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let to = match self.body.to {
            MoveTo::At(ms) => Timestamp::from_ms(ms).unwrap_or_default(),
            MoveTo::After(ms) => now.saturating_plus_ms(ms),
            // An instant before now becomes now.
            MoveTo::By(ms) => {
                Timestamp::from_ms(due_at.as_ms().saturating_add(ms)).unwrap_or_default().max(now)
            }
        };
        let is_put_off_too_far = self.latest.is_some_and(|latest| to > latest && to > due_at);
        (!is_put_off_too_far).then_some(to)
    }
}

impl Asked {
    /// Waits for the answer about the task, and counts it.
    ///
    /// # Errors
    /// The reason does not depend on the task, so the next task would fail, too.
    pub(crate) async fn count(self, tally: &mut Tally) -> Result<(), Problem> {
        let Tally { done, skipped } = tally;
        let reason = match self {
            Self::TooFar => &mut skipped.too_far,
            Self::Cancel(pending) => match pending.await {
                Ok(Cancelled::Cancelled | Cancelled::Revoked) => done,
                Err(CancelError::Unavailable(why)) => return Err(translate::unavailable(&why)),
                Err(CancelError::Leased) => &mut skipped.leased,
                Err(_) => &mut skipped.changed,
            },
            Self::End(pending) => match pending.await {
                Ok(_) => done,
                Err(ByIdError::Unavailable(why)) => return Err(translate::unavailable(&why)),
                Err(ByIdError::Leased) => &mut skipped.leased,
                Err(ByIdError::Live { .. }) => &mut skipped.live,
                Err(ByIdError::Draining) => &mut skipped.draining,
                Err(ByIdError::BacklogFull { .. }) => &mut skipped.backlog_full,
                Err(_) => &mut skipped.changed,
            },
            Self::Move(pending) => match pending.await {
                Ok(_) => done,
                Err(PatchError::Unavailable(why)) => return Err(translate::unavailable(&why)),
                Err(PatchError::Leased) => &mut skipped.leased,
                Err(PatchError::Timeline) => &mut skipped.timeline,
                Err(PatchError::ExpiresFirst { .. }) => &mut skipped.expires_first,
                Err(PatchError::TooFar { .. }) => &mut skipped.too_far,
                Err(_) => &mut skipped.changed,
            },
        };
        *reason += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(ms).expect("not negative")
    }

    /// A bug that was found: a task died between the two lists of a purge, was in both, and was counted twice.
    #[test]
    fn a_task_that_is_found_twice_counts_once_as_it_was_found_last() {
        let found = |id, version, by_id| Found {
            key: Key::from_id(id),
            id,
            version: Seq(version),
            due_at: at(0),
            by_id,
        };
        let mut once = FoundOnce::default();
        once.add(vec![found(1, 1, false), found(2, 2, false)]);
        once.add(vec![found(3, 3, true), found(2, 9, true)]);
        let seen: Vec<_> = once.tasks().iter().map(|task| (task.id, task.version.0, task.by_id)).collect();
        assert_eq!(seen, [(1, 1, false), (2, 9, true), (3, 3, true)]);
    }

    #[test]
    fn a_shift_counts_from_each_tasks_due_time_and_never_before_now() {
        let moving = |to, latest| {
            let body = BulkMoveBody { filter: TaskFilter::default(), to, dry_run: false, revoke: false };
            move |due_at| {
                Move { body: body.clone(), latest }.instant(at(due_at), at(1_000)).map(Timestamp::as_ms)
            }
        };
        let later = moving(MoveTo::By(500), None);
        assert_eq!([later(2_000), later(900), later(100)], [Some(2_500), Some(1_400), Some(1_000)]);
        let earlier = moving(MoveTo::By(-500), None);
        assert_eq!([earlier(2_000), earlier(1_200), earlier(0)], [Some(1_500), Some(1_000), Some(1_000)]);
        assert_eq!(moving(MoveTo::By(i64::MAX), None)(5), Some(i64::MAX), "the queue refuses it");
        assert_eq!(moving(MoveTo::At(700), None)(2_000), Some(700));
        let bounded = moving(MoveTo::By(500), Some(at(2_400)));
        assert_eq!([bounded(1_900), bounded(1_901)], [Some(2_400), None]);
        let nearer = moving(MoveTo::By(-500), Some(at(2_400)));
        assert_eq!(nearer(9_000), Some(8_500), "what is brought forward is not put off");
    }
}
