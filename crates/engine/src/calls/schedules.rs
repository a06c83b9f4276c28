//! Schedules: putting, deleting, looking, listing.

use std::sync::Arc;

use super::unavailable::Unavailable;
use crate::name::{QueueName, ScheduleName};
use crate::schedule::{Schedule, ScheduleRecord};
use crate::time::Seq;

/// Configures a schedule. A schedule of this name is replaced, and its instants go on where they are, unless the cadence or the start is
/// another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PutSchedule {
    /// The queue that its tasks are put into.
    pub queue: QueueName,
    /// The name of the schedule.
    pub name: ScheduleName,
    /// The schedule.
    pub schedule: Arc<Schedule>,
    /// Only if the one that stands has this version.
    pub if_version: Option<Seq>,
}

/// Gives a schedule up. The tasks that it has made stay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteSchedule {
    /// The queue.
    pub queue: QueueName,
    /// The name of the schedule.
    pub name: ScheduleName,
    /// Only if it has this version.
    pub if_version: Option<Seq>,
}

/// Looks at a schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetSchedule {
    /// The queue.
    pub queue: QueueName,
    /// The name of the schedule.
    pub name: ScheduleName,
}

/// Pages through the schedules of a queue in the order of their names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListSchedules {
    /// The queue.
    pub queue: QueueName,
    /// Only schedules behind this one.
    pub after: Option<ScheduleName>,
    /// The largest number of schedules in the answer.
    pub max: usize,
}

/// A page of the schedules of all queues has no more than this.
pub const SCHEDULES_PAGE_MAX: usize = 500;

/// Pages through the schedules of all queues, in the order of their queues and then of their names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListAllSchedules {
    /// Only schedules of queues with names that begin with this; empty: of all queues.
    pub prefix: Arc<str>,
    /// Only schedules behind this one.
    pub after: Option<(QueueName, ScheduleName)>,
    /// How many the page has at most, 1 to [`SCHEDULES_PAGE_MAX`]. A page that has fewer is the last.
    pub max: usize,
}

impl PutSchedule {
    /// Lays this schedule down under this name.
    #[must_use]
    pub fn new(queue: &QueueName, name: ScheduleName, schedule: Arc<Schedule>) -> Self {
        Self { queue: queue.clone(), name, schedule, if_version: None }
    }
}

/// A schedule, and how far it has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleView {
    /// The queue.
    pub queue: QueueName,
    /// The name of the schedule.
    pub name: ScheduleName,
    /// The schedule's record.
    pub record: Arc<ScheduleRecord>,
}

/// A schedule was taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredSchedule {
    /// Whether it is new; else it replaced, or is, the one of that name.
    pub created: bool,
    /// The schedule.
    pub schedule: ScheduleView,
}

/// Why a schedule was not put, given up or found. A refusal leaves no trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ScheduleError {
    /// No schedule has this name.
    #[error("no schedule of the queue has this name")]
    NotFound,
    /// The version is another, or there is none.
    #[error("the version is not the one given: {}", match .current {
        Some(version) => format!("the schedule has version {version}"),
        None => "no schedule has this name".to_owned(),
    })]
    VersionMismatch {
        /// The version of the one that stands.
        current: Option<Seq>,
    },
    /// The schedule has a value that is not allowed.
    #[error("{what} cannot be")]
    Invalid {
        /// The value.
        what: &'static str,
    },
    /// The expression or the zone cannot be used.
    #[error("{why}")]
    Cadence {
        /// The reason.
        why: Arc<str>,
    },
    /// No instant is left between its start and its end, or it has made as many tasks as it counts.
    #[error("the schedule has no occurrence ahead")]
    NeverFires,
    /// An import found one of this name that says something else.
    #[error("the queue has a schedule of this name (version {version})")]
    Exists {
        /// The version of the one that stands.
        version: Seq,
    },
    /// The limit of schedules, or of their bytes, is reached.
    #[error("there are {schedules} schedules with {bytes} bytes, and no more can be")]
    TooMany {
        /// How many there are.
        schedules: usize,
        /// Bytes of what they say.
        bytes: u64,
    },
    /// Not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
