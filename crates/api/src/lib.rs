//! The wire formats: requests and answers of the HTTP API, its times, durations and problems, and the protocol of beanstalkd.
//!
//! This crate is pure: it has no sockets and no clocks, does not use the engine, and decides nothing about
//! tasks. It turns bytes into typed requests, and typed answers into bytes. The bytes may be hostile: no parser
//! panics, the work of each is bounded by the length of its input, and every refusal says what is wrong, where,
//! and what to do instead ([`BadRequest`]).
//!
//! The types by their purpose:
//!
//! - requests, each with `parse(&[u8])` for the server and `to_json()` for a client: [`PutBody`],
//!   [`PatchBody`], [`LeaseBody`], [`AckBody`], [`NackBody`], [`ExtendBody`], [`BatchLine`], [`AdvanceBody`];
//! - queries and headers of requests: [`PutQuery`], [`RevokeQuery`], [`ListQuery`], [`no_query`],
//!   [`if_match`];
//! - answers: [`TaskBody`], [`PutAnswer`], [`LeasedTasks`], [`TasksPage`], [`QueuesBody`], [`TokenResults`],
//!   [`CancelAnswer`], [`BatchResult`], [`NowBody`], and [`Problem`] for every error;
//! - text that people write: [`duration`] (`30m`) and [`time`] (RFC 3339);
//! - [`openapi`]: the description of the API, for programs and for people;
//! - [`replay`]: the lines of `tickwheel replay`.
//!
//! # Example
//!
//! ```
//! use tickwheel_api::{BadRequest, Due, Problem, PutBody};
//!
//! let body = PutBody::parse(br#"{"delay": "30m", "payload": {"order": 1}}"#)?;
//! assert_eq!(body.due, Due::After(1_800_000));
//! assert_eq!(body.payload.bytes, br#"{"order": 1}"#);
//!
//! let refused = PutBody::parse(br#"{"dealy": "30m"}"#).unwrap_err();
//! let problem = Problem::bad_request(&refused);
//! assert_eq!(problem.status, 400);
//! assert_eq!(problem.detail, "`dealy`: is not a member of this request");
//! assert_eq!(problem.hint.as_deref(), Some("did you mean `delay`?"));
//! # Ok::<(), BadRequest>(())
//! ```

pub mod beanstalk;
mod declare;
mod export;
mod operations;
mod problems;
mod queues;
mod server;
mod target;
mod tasks;
mod text;
mod values;
mod workers;

pub use export::{
    EXPORT_CURSOR_BYTES_MAX, EXPORT_FORMAT, Existing, ExportDeath, ExportEnd, ExportHeader, ExportLine,
    ExportQuery, ExportQueue, ExportSchedule, ExportTask, ImportCounts, ImportEnd, ImportLine, ImportQuery,
    ImportResult, ImportRow, SkipWhy, TallyBody, replay,
};
pub use operations::document as openapi;
pub use text::{duration, path, time};

pub use declare::body::Answer;
pub use declare::json::JSON_DEPTH_MAX;
pub use declare::query::no_query;
pub use problems::cancel_outcome::CancelOutcome;
pub use problems::problem::{PROBLEM_CONTENT_TYPE, Problem, WITH_ALL_BROKERS};
pub use problems::problem_kind::{ProblemKind, ProblemPage};
pub use queues::queries::{PreviewQuery, QueuesQuery, ScheduleSort, SchedulesQuery};
pub use queues::queue::{DeleteQueueAnswer, QueueBody, QueueCounts, QueueGone, QueuesBody};
pub use queues::schedule::{
    CadenceBody, CatchUp, DeleteScheduleAnswer, OccurrenceBody, Overlap, PREVIEW_MAX, PreviewBody,
    ScheduleBody, ScheduleGone, ScheduleSpec, SchedulesPage,
};
pub use queues::settings::{
    HISTORY_KEEP_MS_MAX, HISTORY_KEYS_MAX, HistoryBody, PAUSE_MS_MAX, PauseBody, SettingsBody, no_body,
};
pub use server::backup::{BackupBody, BackupPhase, BackupState, BackupsBody};
pub use server::events::{
    EVENT_QUEUES_MAX, EVENTS_CONTENT_TYPE, EventCounters, EventTopic, EventsQuery, HistogramBucket,
    JobsEvent, QueueRow, QueuesEvent, StateTotals, StatsEvent, WheelEvent, WheelLevel,
};
pub use server::health::{Alive, AliveBody, ClockReport, Durability, Readiness, ReadyBody};
pub use server::job::{JobAction, JobBody, JobState, JobsBody};
pub use server::whoami::{ConsoleMode, TokenLimits, WhoamiBody};
pub use server::{AdvanceBody, DrainBody, IndexBody, NowBody};
pub use target::{
    AttemptBody, AttemptOutcome, AttemptsBody, AttemptsQuery, AuthBody, BasicBody, BreakerBody,
    ConnectionRow, ConnectionState, ContentForm, DeleteTargetAnswer, HttpMethod, ListEnd, PushCounts,
    RotateBody, RotatedBody, SIGNING_MAX, SecretBody, SigningBody, TARGET_CONCURRENCY_MAX,
    TARGET_HEADERS_MAX, TARGET_TIMEOUT_MS_MAX, TARGET_TIMEOUT_MS_MIN, TargetBody, TargetGone, TargetKind,
    TargetOrder, TargetRow, TargetState, TargetTestBody, TargetTlsBody, TargetView, TargetsBody, TlsVersion,
};
pub use tasks::batch::{BATCH_CONTENT_TYPE, BadBatchLine, BatchLine, BatchOp, BatchResult};
pub use tasks::bulk::{
    BULK_MAX, BulkCancelAnswer, BulkCancelBody, BulkMoveAnswer, BulkMoveBody, BulkRedriveAnswer, MoveTo,
    PurgeAnswer, PurgeBody, SkippedBody,
};
pub use tasks::cancel::CancelAnswer;
pub use tasks::dead::{REDRIVE_MAX, RedriveAnswer, RedriveBody, RedriveOutcome};
pub use tasks::dead_groups::{
    DEAD_GROUP_EXAMPLES_MAX, DeadExampleBody, DeadGroupBody, DeadGroupsBody, DeadWindow,
};
pub use tasks::envelope::EnvelopeBody;
pub use tasks::filter::{GROUP_ID_DIGITS, TaskFilter};
pub use tasks::forecast::{
    BucketBody, FORECAST_BUCKETS_MAX, ForecastBody, ForecastQuery, ForecastScale, LOG_ENDS_MS,
};
pub use tasks::put::{PatchBody, PutBody};
pub use tasks::queries::{ListQuery, PutMode, PutQuery, RevokeQuery, TasksQuery};
pub use tasks::story::{StoryBody, StoryEvent, StoryWord};
pub use tasks::task::{
    DeathBody, DeathReason, FailureBody, FailureKind, LeasedTask, LeasedTasks, PutAnswer, TaskBody,
    TaskState, TasksOfKey, TasksPage,
};
pub use tasks::terms::{TAGS_MAX, Terms, TermsPatch};
pub use text::bad_request::{BadRequest, Location, TextError, nearest, shown, shown_bytes};
pub use text::portable::INTEGER_MAX;
pub use values::due::Due;
pub use values::failure_text::failure_shape;
pub use values::if_match::{etag, if_match};
pub use values::levels::Levels;
pub use values::limits::{
    CADENCE_MS_MAX, CADENCE_MS_MIN, CURSOR_BYTES_MAX, FAILURE_BYTES_MAX, GROUP_BYTES_MAX, LEASE_MS_MAX,
    LEASE_MS_MIN, LIMIT_MAX, LIST_LIMIT_MAX, PRIORITY_DEFAULT, SCHEDULE_NAME_BYTES_MAX, TAG_BYTES_MAX,
    WORKER_BYTES_MAX,
};
pub use values::payload::{
    CONTENT_TYPE_BYTES_MAX, CONTENT_TYPE_JSON, CONTENT_TYPE_OCTETS, PayloadBody, check_payload,
};
pub use values::rate::{RATE_PER_MS_MAX, RATE_TASKS_MAX, RateBody};
pub use values::retry::{ATTEMPTS_MAX, RetryBody};
pub use values::timeline::{MOMENTS_MAX, MomentBody};
pub use values::trace::TraceContext;
pub use workers::lease::{LEASE_TASKS_MAX, LeaseBody, WAIT_MS_MAX};
pub use workers::leases::{HeldLease, LeasesPage, LeasesQuery};
pub use workers::tokens::{
    AckBody, ExtendBody, NackBody, TOKEN_CHARS, TOKENS_MAX, TokenResult, TokenResults,
};
