//! [`Recurrence`]: the schedules, and of which of their instants tasks are to be made.

mod instants;
mod put;
mod schedules;

use std::collections::VecDeque;
use std::sync::Arc;

use self::schedules::{Phase, Schedules};
use crate::acquired::Acquired;
use crate::bounds::Bounds;
use crate::calls::ScheduleError;
use crate::input::Effect;
use crate::name::QueueName;
use crate::schedule::{ScheduleId, ScheduleRecord};
use crate::time::{Seq, Timestamp};

/// The schedules. Time and owners move them on; the tasks of their instants are made by the engine, which takes them from
/// [`pop_to_make`](Self::pop_to_make).
///
/// # Invariants
/// - Of one instant of a schedule at most one task is made.
/// - The progress of a schedule is written down in the batch that has its task, or that says that the instant is left out.
#[derive(Debug)]
pub(crate) struct Recurrence {
    secret: [u8; 16],
    schedules: Schedules,
    /// Instants whose keys are to be looked up, for tasks to be made of them.
    to_make: VecDeque<(ScheduleId, Timestamp)>,
    /// The last change of a schedule.
    changed: Seq,
    /// Instants that are looked at in one step.
    instants_max: usize,
}

impl Recurrence {
    pub(crate) fn new(acquired: &Acquired, bounds: &Bounds) -> Self {
        Self {
            secret: acquired.secret,
            schedules: Schedules::default(),
            to_make: VecDeque::new(),
            changed: Seq::ZERO,
            instants_max: bounds.instants,
        }
    }

    /// Takes over what the store has.
    pub(crate) fn restore(&mut self, id: ScheduleId, record: &ScheduleRecord) {
        self.schedules.restore(id, record);
    }

    pub(crate) fn get(&self, id: &ScheduleId) -> Option<&Arc<ScheduleRecord>> {
        self.schedules.get(id)
    }

    /// How many schedules there are.
    pub(crate) fn len(&self) -> usize {
        self.schedules.len()
    }

    /// How many schedules a queue has.
    pub(crate) fn of_queue(&self, name: &QueueName) -> u64 {
        self.schedules.of_queue(name)
    }

    /// Instants that wait for their turn.
    pub(crate) fn waiting(&self) -> usize {
        self.schedules.waiting()
    }

    /// Whether there may be one more, or one of `needed` bytes in the place of one that had `had`.
    ///
    /// # Errors
    /// [`ScheduleError::TooMany`].
    pub(crate) fn has_place_for(&self, is_new: bool, had: u64, needed: u64) -> Result<(), ScheduleError> {
        self.schedules.has_place_for(is_new, had, needed)
    }

    /// An instant of which a task is to be made.
    pub(crate) fn pop_to_make(&mut self) -> Option<(ScheduleId, Timestamp)> {
        self.to_make.pop_front()
    }

    /// Whether the task of this instant is still to be made: the schedule was neither put anew nor deleted meanwhile.
    pub(crate) fn is_making(&self, id: &ScheduleId, at: Timestamp) -> bool {
        self.schedules.phase(id) == Some(Phase::Making(at))
    }

    /// The store has no room for the task of an instant: the schedule is looked at again when there is some.
    pub(crate) fn stall(&mut self, id: ScheduleId) {
        self.schedules.stall(id);
    }

    /// A commit is durable.
    pub(crate) fn settle(&mut self) {
        self.schedules.settle();
    }

    /// Hands the questions over that the step has raised.
    pub(crate) fn ask(&mut self, out: &mut Vec<Effect>) {
        out.append(&mut self.schedules.take_asks());
    }

    /// Whether the driver has told all that it was asked.
    pub(crate) fn is_idle(&self) -> bool {
        self.schedules.is_quiet()
    }
}
