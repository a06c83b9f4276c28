//! The calls that an engine takes, their answers, and the reasons to refuse a call.

mod by_id;
mod by_key;
mod call;
mod cancel;
mod forecast;
mod get;
mod import;
mod jobs;
mod lease;
mod leases;
mod list;
mod patch;
mod put;
mod queues;
mod redrive;
mod schedules;
mod stats;
mod take_row;
mod task_view;
mod tokens;
mod unavailable;

pub use by_id::{Act, Acted, ById, ByIdError};
pub use by_key::{ByKey, ByKeyError, KeyAct};
pub use call::{Answer, Call, Command};
pub use cancel::{Cancel, CancelError, Cancelled};
pub use forecast::{FORECAST_BUCKETS_MAX, Forecast, ForecastView};
pub use get::{Get, GetError};
pub use import::{
    Existing, IMPORT_TASKS_MAX, ImportError, ImportOutcome, ImportSchedule, ImportTask, ImportTasks,
    Imported, Present,
};
pub use jobs::{ChangeJob, JOB_BYTES_MAX, JobError, JobValue, ListJobs};
pub use lease::{LEASE_MS_DEFAULT, Lease, Leased};
pub use leases::{LEASES_PAGE_MAX, LeasePage, LeaseView, ListLeases};
pub use list::{List, ListAllTasks, TaskFilter, TaskPage};
pub use patch::{Patch, PatchError};
pub use put::{Due, OnLease, Payload, Put, PutError, PutMode, Stored, TRACE_BYTES_MAX};
pub use queues::{
    ChangeQueue, GetQueue, ListQueues, ListTargets, QUEUES_PAGE_MAX, QueueChange, QueueError, WhichQueues,
};
pub use redrive::{Redrive, RedriveError};
pub use schedules::{
    DeleteSchedule, GetSchedule, ListAllSchedules, ListSchedules, PutSchedule, SCHEDULES_PAGE_MAX,
    ScheduleError, ScheduleView, StoredSchedule,
};
pub use stats::{GetStats, GetWheel, Stats, WheelView};
pub use take_row::{RowAct, TakeRow, TakeRowError};
pub use task_view::{State, TaskView};
pub use tokens::{Ack, Extend, Nack, NackError, NackHow, TokenAnswer, Undeliverable};
pub use unavailable::Unavailable;
