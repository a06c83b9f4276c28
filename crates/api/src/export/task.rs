//! A live or dead task as a line of an export.

use crate::declare::json::{self, Known};
use crate::declare::{
    Body, MEMBERS_MAX, Schema, Source, ValueCodec, body, choice, count, duration, flag, flat, has, instant,
    list, may, members_of, number, object, one_of, or_made, quiet, schema, text, unless,
};
use crate::tasks::task::{DeathBody, DeathReason, FailureBody, TaskState};
use crate::text::bad_request::BadRequest;
use crate::text::portable::INTEGER_MAX;
use crate::values::limits::PRIORITY_DEFAULT;
use crate::values::payload::{PayloadBody, exported_payload};
use crate::values::retry::RetryBody;
use crate::values::timeline::{MomentBody, timeline};
use crate::values::trace::TraceContext;
use serde_json::value::RawValue;

/// Maximum number of failures of a task on a line.
const FAILURES_MAX: usize = 100;

body! {
    /// A live task with everything that is kept of it, except its lease: a lease is valid only on the server that gave it.
    ///
    /// A dead task has `death` and no `state`.
    pub struct ExportTask: export "ExportTask" {
        /// The queue.
        queue: String = has(text(200, "close"));
        /// The key.
        key: String = has(text(256, "order:1"));
        /// The server's number for the task.
        id: u64 = unless(0, count());
        /// When the task is due.
        due_at_ms as "due_at": i64 = has(instant());
        /// When the server received the put.
        put_at_ms as "put_at": i64 = has(instant());
        /// The state of the task at the export. An import uses `due_at` only.
        state: Option<TaskState> = may(one_of(LIVE_STATES));
        /// The payload that the worker gets.
        payload: PayloadBody = or_made(PayloadBody::default, exported_payload());
        /// All instants of the task, the past ones included.
        timeline: Vec<MomentBody> = unless(Vec::new(), timeline().described(|| schema::all(schema::of("Moment"))));
        /// The index, from 0, of the instant of the timeline at which the task is due.
        step: u32 = unless(0, number(0, u32::MAX.into()).described(|| schema::integer(0, INTEGER_MAX)));
        /// Words to find the task by.
        tags: Vec<String> = unless(Vec::new(), list(text(128, "vip"), "write a list of strings"));
        /// The priority; among ready tasks, the one with the smallest number goes first. Default: 1024.
        priority: u32 = unless(PRIORITY_DEFAULT, number(0, u32::MAX.into()));
        /// The group of the task.
        group: Option<String> = may(text(256, "text"));
        /// Number of leases that ended without an ack.
        attempt: u32 = unless(0, number(0, u32::MAX.into()));
        /// The retry policy of the task.
        retry: Option<RetryBody> = may(object());
        /// When the task expires.
        expire_at_ms as "expire_at": Option<i64> = quiet(instant());
        /// The last attempts that failed, the oldest first.
        failures: Vec<FailureBody> = unless(Vec::new(), list(object(), "write a list of objects").checked(are_few));
        /// Length of its leases, chosen by the producer over the protocol of beanstalkd.
        ttr_ms as "ttr": Option<u64> = may(duration());
        /// Number of the protocol by which the task was put; 0 is HTTP or an embedding program.
        origin: u8 = unless(0, number(0, u8::MAX.into()));
        /// Counts of what happened to the task so far.
        tally: TallyBody = unless(TallyBody::default(), object());
        /// The trace context of its put.
        trace: Option<TraceContext> = may(members_of());
        /// When and why the task was given up; `None` for a live task.
        death: Option<ExportDeath> = may(members_of());
    }
    check: |task: &Self, _| task.check_step();
}

body! {
    /// The members that only a dead task has.
    #[derive(Copy)]
    pub struct ExportDeath: group {
        /// When and why the task was given up.
        death: DeathBody = flat();
        /// Whether another task has had its key since then.
        ///
        /// Such a task is found by its id only.
        keyless: bool = unless(false, flag());
    }
}

/// The states of a live task.
const LIVE_STATES: &[(&str, TaskState)] =
    &[("scheduled", TaskState::Scheduled), ("ready", TaskState::Ready), ("leased", TaskState::Leased)];

const OF_A_DEAD_TASK: &str = "a dead task is a line with the member `dead`";

/// Members that only a dead task has.
const OF_DEAD: [&str; 3] = ["dead_at", "reason", "keyless"];

/// The members of a live task.
const LIVE: Known = Known {
    find: |name| ExportTask::find(name).filter(|_| !OF_DEAD.contains(&name)),
    elsewhere: &[("dead_at", OF_A_DEAD_TASK), ("reason", OF_A_DEAD_TASK), ("keyless", OF_A_DEAD_TASK)],
    ..ExportTask::KNOWN
};

/// The members of a dead task.
const DEAD: Known = Known {
    find: |name| ExportTask::find(name).filter(|_| name != "state"),
    elsewhere: &[("state", "a live task is a line with the member `task`")],
    ..ExportTask::KNOWN
};

/// The schema of a live task.
pub(crate) fn live_schema() -> Schema {
    ExportTask::schema().without(&OF_DEAD)
}

/// The schema of a dead task.
pub(crate) fn dead_schema() -> Schema {
    let what = "A dead task with everything that is kept of it.";
    let mut schema = ExportTask::schema().named("ExportDead", what).without(&["state"]);
    for member in &mut schema.members {
        member.required |= ["dead_at", "reason"].contains(&member.name);
    }
    schema
}

#[expect(clippy::ptr_arg, reason = "a rule is given the value as it is")]
fn are_few(path: &str, failures: &Vec<FailureBody>) -> Result<(), BadRequest> {
    if failures.len() <= FAILURES_MAX {
        return Ok(());
    }
    let what = format!("has {} failures; at most {FAILURES_MAX} are allowed", failures.len());
    Err(BadRequest::member(path, what, "keep the last ones"))
}

impl ExportTask {
    pub(super) fn of(raw: &RawValue, dead: bool, source: Source) -> Result<Self, BadRequest> {
        Self::check_object(raw)?;
        Self::of_line(raw.get().as_bytes(), dead, source)
    }

    pub(super) fn of_line(bytes: &[u8], dead: bool, source: Source) -> Result<Self, BadRequest> {
        let mut slots = [None; MEMBERS_MAX];
        json::read_members(bytes, if dead { &DEAD } else { &LIVE }, &mut slots)?;
        let task = Self::read(&slots, source)?;
        if dead && task.death.is_none() {
            return Err(choice::<DeathReason>().missing("reason"));
        }
        Ok(task)
    }

    fn check_step(&self) -> Result<(), BadRequest> {
        let (step, instants) = (self.step, self.timeline.len());
        if step == 0 || (step as usize) < instants {
            return Ok(());
        }
        let what = format!("is {step}, and the timeline has {instants} instants");
        Err(BadRequest::member("step", what, "`step` is an index into the timeline, from 0"))
    }
}

body! {
    /// Counts of what happened to a task so far. Clients of beanstalkd can ask for them.
    #[derive(Copy, Default)]
    pub struct TallyBody: export "ExportTally" {
        /// Number of leases that ended without an ack.
        leases: u32 = unless(0, number(0, u32::MAX.into()));
        /// Number of those leases that ran out.
        expiries: u32 = unless(0, number(0, u32::MAX.into()));
        /// Number of those leases that ended with a nack.
        nacks: u32 = unless(0, number(0, u32::MAX.into()));
        /// Number of those leases that ended with a bury.
        burials: u32 = unless(0, number(0, u32::MAX.into()));
        /// Number of redrives, and of calls that made the task due at once.
        redrives: u32 = unless(0, number(0, u32::MAX.into()));
        /// The last delay that the task was given after its put.
        delay_ms as "delay": Option<u64> = may(duration());
    }
}
