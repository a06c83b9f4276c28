//! The task engine: the parts of a task, and all its steps from *put* to *done*. The engine is pure: calls, time and the replies of the
//! store come in as inputs; answers and requests to the store go out as effects. So the same code runs in a server, in a test, and in a
//! simulator that may crash it at any write.

mod acquired;
mod bounds;
mod calls;
mod config;
mod cursor;
mod dispatch;
mod engine;
mod figures;
mod input;
mod jobs;
mod ledger;
mod name;
mod queue_view;
mod reads;
mod recurrence;
mod residence;
mod runs;
mod schedule;
mod seam;
mod settings;
mod shard;
mod state;
mod target;
mod task;
mod tasks;
mod time;
mod token;
mod verbs;

pub use acquired::{Acquired, AcquiredCursor, AcquiredPage, Ownership, Population};
#[doc(hidden)]
pub use bounds::{Bounds, LEASE_BYTES_MAX};
pub use calls::{
    Ack, Act, Acted, Answer, ById, ByIdError, ByKey, ByKeyError, Call, Cancel, CancelError, Cancelled,
    ChangeJob, ChangeQueue, Command, DeleteSchedule, Due, Existing, Extend, FORECAST_BUCKETS_MAX, Forecast,
    ForecastView, Get, GetError, GetQueue, GetSchedule, GetStats, GetWheel, IMPORT_TASKS_MAX, ImportError,
    ImportOutcome, ImportSchedule, ImportTask, ImportTasks, Imported, JOB_BYTES_MAX, JobError, JobValue,
    KeyAct, LEASE_MS_DEFAULT, LEASES_PAGE_MAX, Lease, LeasePage, LeaseView, Leased, List, ListAllSchedules,
    ListAllTasks, ListJobs, ListLeases, ListQueues, ListSchedules, ListTargets, Nack, NackError, NackHow,
    OnLease, Patch, PatchError, Payload, Present, Put, PutError, PutMode, PutSchedule, QUEUES_PAGE_MAX,
    QueueChange, QueueError, Redrive, RedriveError, RowAct, SCHEDULES_PAGE_MAX, ScheduleError, ScheduleView,
    State, Stats, Stored, StoredSchedule, TRACE_BYTES_MAX, TakeRow, TakeRowError, TaskFilter, TaskPage,
    TaskView, TokenAnswer, Unavailable, Undeliverable, WheelView, WhichQueues,
};
pub use config::EngineConfig;
pub use cursor::{LeaseCursor, TaskCursor};
pub use dispatch::instance_of;
pub use engine::Engine;
pub use figures::{LATENESS_BOUNDS_MS, QUEUE_LATENESS_BOUNDS_MS, QueueFigures};
pub use input::{CallId, Effect, Input, NextWake};
pub use ledger::RoomPace;
pub use name::{Group, Key, NameError, QueueName, ScheduleName, Tag};
pub use queue_view::{QueueCounts, QueuePage, QueueTotals, QueueView};
pub use schedule::{
    AskId, Cadence, CatchUp, FoundInstant, InstantFound, InstantWanted, MISSED_MS, Overlap, Schedule,
    ScheduleRecord, Which, occurrence_key,
};
pub use seam::{
    Batch, Before, DueHistogram, DueKey, Filter, Found, Grid, Growth, Page, Reply, Request, RequestId,
    ShardStore, TaskEffect, Validity, Wanted,
};
pub use settings::{QueueRecord, QueueSettings, Rate, Retention, Rule, RuleEffect, RuleName};
pub use shard::{SHARDS_MAX, ShardId};
pub use state::{EngineState, NotAState};
pub use target::{TARGET_BYTES_MAX, TARGETS_MAX, TargetRecord};
pub use task::{
    Backoff, Body, Dead, Death, Ended, Extra, Failed, Failure, LeaseNo, Moment, Outcome, PRIORITY_DEFAULT,
    Retry, StoredLease, Tally, Task, Terms,
};
pub use tickwheel_core::Ring;
pub use time::{Epoch, Now, Seq, Timestamp};
pub use token::{NotAToken, Token};
