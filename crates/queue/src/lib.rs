//! A durable delay queue inside your process: put tasks under keys, keep them through crashes, lease them when they are due, ack them.
//!
//! [`Queue`] is the entry point. A queue has one [`Shard`] or more, which threads of its own drive. A shard is the engine of `tickwheel-engine` over a store of
//! `tickwheel-store`. With this crate alone, a program can do everything with tasks that the Tickwheel server can do.
//!
//! A program that is its own driver, such as a simulator, uses [`Shard`] directly, and supplies the time and the inputs.

pub mod backup;
mod clock;
pub mod cron;
mod handle;
mod notice;
mod opening;
mod panics;
mod queue;
mod router;
mod shard;
mod spanning;
mod thread;

// Runs the code examples of the tutorial as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tutorials/embedded.md")]
struct Embedded;

pub use backup::{BackupError, BackupReport};
pub use clock::wall;
pub use cron::upcoming::{Upcoming, instants, upcoming};
pub use cron::zone_versions::{ZoneVersions, zone_versions};
pub use notice::{ClockChange, Notice};
pub use opening::options::{OpenError, Opened, Options, SLOW_COMMIT_DEFAULT};
pub use queue::Queue;
pub use router::Router;
pub use shard::health::Health;
pub use shard::inbox::InboxCalls;
pub use shard::{COMMIT_BOUNDS_US, CommitSeconds, Shard};
pub use thread::advance::{AdvanceError, Advancing, VIRTUAL_END_MS};
pub use thread::in_use::InUse;
pub use thread::pending::Pending;
pub use thread::shard_thread::SHARD_THREAD;

pub use tickwheel_engine::{
    Ack, Act, Acted, Answer, Backoff, Body, ById, ByIdError, ByKey, ByKeyError, Cadence, Call, CallId,
    Cancel, CancelError, Cancelled, CatchUp, ChangeJob, ChangeQueue, Command, Dead, Death, DeleteSchedule,
    Due, Existing, Extend, Extra, FORECAST_BUCKETS_MAX, Failed, Failure, Forecast, ForecastView, Get,
    GetError, GetQueue, GetSchedule, GetStats, GetWheel, Grid, Group, IMPORT_TASKS_MAX, ImportError,
    ImportOutcome, ImportSchedule, ImportTask, ImportTasks, Imported, JOB_BYTES_MAX, JobError, JobValue, Key,
    KeyAct, LATENESS_BOUNDS_MS, LEASE_MS_DEFAULT, LEASES_PAGE_MAX, Lease, LeaseCursor, LeaseNo, LeasePage,
    LeaseView, Leased, List, ListAllSchedules, ListAllTasks, ListJobs, ListLeases, ListQueues, ListSchedules,
    ListTargets, Moment, Nack, NackError, NackHow, NameError, NotAToken, OnLease, Overlap, PRIORITY_DEFAULT,
    Patch, PatchError, Payload, Present, Put, PutError, PutMode, PutSchedule, QUEUE_LATENESS_BOUNDS_MS,
    QUEUES_PAGE_MAX, QueueChange, QueueCounts, QueueError, QueueFigures, QueueName, QueuePage, QueueRecord,
    QueueSettings, QueueTotals, QueueView, Rate, Redrive, RedriveError, Retention, Retry, Ring,
    SCHEDULES_PAGE_MAX, SHARDS_MAX, Schedule, ScheduleError, ScheduleName, ScheduleRecord, ScheduleView, Seq,
    ShardId, State, Stats, Stored, StoredSchedule, TARGET_BYTES_MAX, TARGETS_MAX, TRACE_BYTES_MAX, Tag,
    Tally, TargetRecord, TaskCursor, TaskFilter, TaskPage, TaskView, Terms, Timestamp, Token, TokenAnswer,
    Unavailable, Undeliverable, WheelView, WhichQueues, occurrence_key,
};
pub use tickwheel_store::doctor;
pub use tickwheel_store::{
    AckLevel, Durability, FORMAT, LOG_FILE_BYTES_DEFAULT, OpenError as StoreError, OpenStore, OpenedStore,
    QueueStore, RecoveryReport, Torn, descriptors_kept, is_lack_of_descriptors, shards_of, warning_of_others,
    writable_by_others,
};
