//! Calls on schedules: putting, deleting, returning and listing them.

use std::sync::Arc;

use super::unavailable::Unavailable;
use crate::name::{QueueName, ScheduleName};
use crate::schedule::{Schedule, ScheduleRecord};
use crate::time::Seq;

/// Configures a schedule. A schedule of this name is replaced, unless it is equal. If cadence and start stay the same, the instants go on
/// from where they are. Otherwise the instants begin anew.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PutSchedule {
    /// The queue that the schedule puts its tasks into.
    pub queue: QueueName,
    /// The name of the schedule.
    pub name: ScheduleName,
    /// The schedule.
    pub schedule: Arc<Schedule>,
    /// The version that the present schedule of this name must have; `None`: any version, or no schedule.
    pub if_version: Option<Seq>,
    /// The scope of the caller: names of queues, and beginnings of names that end with a slash. The schedules of these queues together
    /// have at most a quarter of the places, so that other callers find some. `None`: all queues, and all places.
    pub scope: Option<Arc<[Arc<str>]>>,
}

/// Deletes a schedule. The tasks that the schedule has made stay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteSchedule {
    /// The queue of the schedule.
    pub queue: QueueName,
    /// The name of the schedule.
    pub name: ScheduleName,
    /// The version that the schedule must have; `None`: any version.
    pub if_version: Option<Seq>,
}

/// Returns a schedule and its progress.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetSchedule {
    /// The queue of the schedule.
    pub queue: QueueName,
    /// The name of the schedule.
    pub name: ScheduleName,
}

/// Pages through the schedules of a queue in the order of their names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListSchedules {
    /// The queue.
    pub queue: QueueName,
    /// Only schedules with names behind this one; `None`: the first page.
    pub after: Option<ScheduleName>,
    /// The largest number of schedules in the answer.
    pub max: usize,
}

/// The largest number of schedules in a page over all queues.
pub const SCHEDULES_PAGE_MAX: usize = 500;

/// Pages through the schedules of all queues, in the order of the queues' names, and in each queue in the order of the schedules' names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListAllSchedules {
    /// Only schedules of queues with names that begin with this text; empty: of all queues.
    pub prefix: Arc<str>,
    /// Only schedules behind this one; `None`: the first page.
    pub after: Option<(QueueName, ScheduleName)>,
    /// The largest number of schedules in the page, 1 to [`SCHEDULES_PAGE_MAX`]. A page that has fewer is the last page.
    pub max: usize,
}

impl PutSchedule {
    /// Makes a call that configures this schedule under this name.
    #[must_use]
    pub fn new(queue: &QueueName, name: ScheduleName, schedule: Arc<Schedule>) -> Self {
        Self { queue: queue.clone(), name, schedule, if_version: None, scope: None }
    }
}

/// A schedule and its progress.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleView {
    /// The queue of the schedule.
    pub queue: QueueName,
    /// The name of the schedule.
    pub name: ScheduleName,
    /// The record of the schedule.
    pub record: Arc<ScheduleRecord>,
}

/// The result of a put of a schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredSchedule {
    /// Whether the schedule is new. If not, the schedule replaced the schedule of this name, or an equal schedule was there already.
    pub created: bool,
    /// The schedule after the put.
    pub schedule: ScheduleView,
}

/// Why a schedule was not put, imported, deleted or returned. The call changed nothing; only after [`Unavailable::Indeterminate`] the
/// outcome is unknown.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ScheduleError {
    /// No schedule of the queue has this name.
    #[error("no schedule of the queue has this name")]
    NotFound,
    /// The schedule has another version than `if_version`, or no schedule has this name.
    #[error("the version is not the one given: {}", match .current {
        Some(version) => format!("the schedule has version {version}"),
        None => "no schedule has this name".to_owned(),
    })]
    VersionMismatch {
        /// The version of the present schedule; `None`: no schedule has this name.
        current: Option<Seq>,
    },
    /// The schedule has a value that is not allowed.
    #[error("{what} cannot be")]
    Invalid {
        /// The value that is not allowed.
        what: &'static str,
    },
    /// The cron expression or its time zone cannot be used.
    #[error("{why}")]
    Cadence {
        /// Why the expression or the zone cannot be used.
        why: Arc<str>,
    },
    /// The schedule would never make a task: no instant is left, or the schedule has already made as many tasks as its `count` allows.
    #[error("the schedule has no occurrence ahead")]
    NeverFires,
    /// The rule of the import is [`Existing::Refuse`](crate::Existing::Refuse), and the queue has a different schedule of this name.
    #[error("the queue has a schedule of this name (version {version})")]
    Exists {
        /// The version of the present schedule.
        version: Seq,
    },
    /// The limit for the number of schedules, or for the bytes of all schedules, would be exceeded.
    #[error("there are {schedules} schedules with {bytes} bytes, and no more can be")]
    TooMany {
        /// The number of schedules that the shard has.
        schedules: usize,
        /// The size of their records (bytes, about).
        bytes: u64,
    },
    /// The schedules of the caller's scope would exceed a quarter of the number, or of the bytes, of all schedules.
    #[error("the scope has {schedules} schedules with {bytes} bytes, and no scope can have more")]
    ShareUsedUp {
        /// The number of schedules that the scope has in this shard.
        schedules: usize,
        /// The size of their records (bytes, about).
        bytes: u64,
    },
    /// An error that is not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
