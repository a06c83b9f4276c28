//! The task machine: what a task is and how it moves from *put* to *done*. Pure: time, look-ups and commits come in as
//! inputs and go out as effects, so that the same code runs in a server, in a test and in a simulator that crashes it at
//! every write.

mod acquired;
mod answer;
mod bounds;
mod by_key;
mod call;
mod command;
mod cursor;
mod figures;
mod import;
mod input;
mod job;
mod leases;
mod machine;
mod name;
#[cfg(not(tickwheel_sim))]
mod planted;
#[cfg(tickwheel_sim)]
pub mod planted;
mod queue_view;
mod schedule;
mod seam;
mod settings;
mod shard;
mod state;
mod task;
mod time;
mod token;
mod wheel;

pub use acquired::{Acquired, AcquiredCursor, AcquiredPage, Population};
pub use answer::{
    Acted, ByIdError, CancelError, Cancelled, ForecastView, GetError, Leased, NackError, PatchError,
    PutError, QueueError, RedriveError, ScheduleError, ScheduleView, State, Stats, Stored, StoredSchedule,
    TaskPage, TaskView, TokenAnswer, Unavailable,
};
#[doc(hidden)]
pub use bounds::Bounds;
pub use by_key::{ByKey, ByKeyError, KeyAct};
pub use call::{Answer, Call, Command};
pub use command::{
    Ack, Act, ById, Cancel, ChangeQueue, DeleteSchedule, Due, Extend, FORECAST_BUCKETS_MAX, Forecast, Get,
    GetQueue, GetSchedule, GetStats, GetWheel, LEASE_MS_DEFAULT, Lease, List, ListAllSchedules, ListAllTasks,
    ListJobs, ListQueues, ListSchedules, Nack, NackHow, OnLease, Patch, Payload, Put, PutMode, PutSchedule,
    QUEUES_PAGE_MAX, QueueChange, Redrive, SCHEDULES_PAGE_MAX, TRACE_BYTES_MAX, TaskFilter, Terms,
    WhichQueues,
};
pub use cursor::{LeaseCursor, TaskCursor};
pub use figures::{LATENESS_BOUNDS_MS, QUEUE_LATENESS_BOUNDS_MS, QueueFigures};
pub use import::{
    Existing, IMPORT_TASKS_MAX, ImportError, ImportOutcome, ImportSchedule, ImportTask, ImportTasks,
    Imported, Present,
};
pub use input::{CallId, Effect, Input, NextWake};
pub use job::{ChangeJob, JOB_BYTES_MAX, JobError, JobValue};
pub use leases::{LEASES_PAGE_MAX, LeasePage, LeaseView, ListLeases};
pub use machine::{Engine, EngineConfig, RoomPace};
pub use name::{Group, Key, NameError, QueueName, ScheduleName, Tag};
pub use queue_view::{QueueCounts, QueuePage, QueueTotals, QueueView};
pub use schedule::{
    AskId, Cadence, CatchUp, InstantFound, InstantWanted, MISSED_MS, Overlap, Schedule, ScheduleRecord,
    Which, occurrence_key,
};
pub use seam::{
    Batch, Census, Filter, Found, Grid, Ownership, Page, Place, Reply, Request, RequestId, ShardStore,
    TaskEffect, Validity, Wanted,
};
pub use settings::{QueueRecord, QueueSettings, Rate, Retention, Rule, RuleEffect, RuleName};
pub use shard::{SHARDS_MAX, ShardId};
pub use state::{EngineState, NotAState};
pub use task::{
    Backoff, Body, Dead, Death, Ended, Extra, Failed, Failure, LeaseNo, Moment, Outcome, PRIORITY_DEFAULT,
    Retry, StoredLease, Tally, Task,
};
pub use tickwheel_core::Ring;
pub use time::{Epoch, Now, Seq, Timestamp};
pub use token::{NotAToken, Token};
pub use wheel::WheelView;
