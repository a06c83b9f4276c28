//! What a caller asks of the machine.

use core::time::Duration;
use std::sync::Arc;

use crate::answer::{State, TaskView};
use crate::name::{Group, Key, QueueName, ScheduleName, Tag};
use crate::schedule::Schedule;
use crate::seam::Grid;
use crate::settings::{QueueRecord, QueueSettings};
use crate::task::{Body, Death, Moment, PRIORITY_DEFAULT, Retry};
use crate::time::{Seq, Timestamp};
use crate::token::Token;

/// When a task is due.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Due {
    /// At once.
    #[default]
    Now,
    /// So many milliseconds after the put is received.
    After {
        /// The delay, milliseconds.
        ms: u64,
    },
    /// At this instant, kept exactly. In the past: at once.
    At(Timestamp),
}

/// What a put does about a live task of the same key.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum PutMode {
    /// Replace it, or make a new one.
    #[default]
    Upsert,
    /// Refuse: there must be none.
    Create,
    /// There must be one.
    Replace,
    /// Make one unless this put, or another under this key, has made one before: the live or the dead task of the key is shown as it stands, and
    /// one that is done is not made again for as long as that is remembered. So a caller who got no answer may ask again.
    Once,
    /// Replace it, or make a new one; but it is due no later than so many milliseconds after the first put of the row, whatever comes after
    /// it: who calls again and again cannot put it off for ever. A row begins with a put that finds no live task, or with the last put
    /// of another mode.
    Debounce {
        /// The longest wait, milliseconds; `None`: for ever.
        max_wait_ms: Option<u64>,
    },
}

/// What to do about a task that is in a worker's hands.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum OnLease {
    /// Leave it there and say so.
    #[default]
    Refuse,
    /// Take it back: the token of that lease answers `revoked` from then on.
    Revoke,
}

/// On what terms a task is handed out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Terms {
    /// Of what is ready, smaller goes first. By default [`PRIORITY_DEFAULT`].
    pub priority: u32,
    /// Tasks of one group share a limit of their queue.
    pub group: Option<Group>,
    /// How often and how soon it is tried again; `None`: for ever, and at once.
    pub retry: Option<Retry>,
    /// So many milliseconds after the put it is given up, unless somebody has it then or has finished it.
    pub expire_after_ms: Option<u64>,
}

impl Default for Terms {
    fn default() -> Self {
        Self { priority: PRIORITY_DEFAULT, group: None, retry: None, expire_after_ms: None }
    }
}

/// Schedules a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Put {
    /// The queue. It appears on first use.
    pub queue: QueueName,
    /// The user's name for the task; `None`: the server's id in decimal.
    pub key: Option<Key>,
    /// When; of a body with a timeline the timeline says it.
    pub due: Due,
    /// When it was asked for, by the believed wall clock; `None`: when its turn comes. What is counted from the put is counted from here, but for a delay:
    /// who says a moment here says an instant in `due`.
    pub asked_at: Option<Timestamp>,
    /// What the worker gets.
    pub body: Body,
    /// On what terms.
    pub terms: Terms,
    /// How long a lease of it is whose worker names no length, milliseconds; `None`: as the queue's settings say.
    pub ttr_ms: Option<u64>,
    /// Whoever traces the work through several programs finds the put by this: kept as it is and given to the worker. One of more than
    /// [`TRACE_BYTES_MAX`] is left out.
    pub trace: Option<Arc<str>>,
    /// What to do about a live task of that key.
    pub mode: PutMode,
    /// Only if the live task has this version.
    pub if_version: Option<Seq>,
    /// What to do if that task is leased.
    pub on_lease: OnLease,
    /// Whether it may make a task where there is none. Whoever may not put more of them may still change those there are.
    pub may_add: bool,
}

/// Counts the tasks that fall due from now on, by when they do. Dead ones do not count, nor does what is ready or leased by now, what a schedule
/// will put, or a later instant of a timeline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forecast {
    /// Those of this queue; `None`: of all.
    pub queue: Option<QueueName>,
    /// Where the first bucket begins; `None`: now. Of what is due by now nothing is counted, wherever that is.
    pub from: Option<Timestamp>,
    /// The buckets, at most [`FORECAST_BUCKETS_MAX`]. Those of one length stand side by side from 1970 on; the first is the one that `from` is in.
    pub grid: Grid,
}

/// Looks at a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Get {
    /// The queue.
    pub queue: QueueName,
    /// The key.
    pub key: Key,
}

/// What a worker gets, without what its owner says about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Payload {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// What they are.
    pub content_type: Arc<str>,
}

/// Changes a live task and keeps what is not named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Patch {
    /// The queue.
    pub queue: QueueName,
    /// The key.
    pub key: Key,
    /// A new instant.
    pub due: Option<Due>,
    /// A new payload.
    pub payload: Option<Payload>,
    /// Another timeline in place of the one it has, or of its instant: at least one moment.
    pub timeline: Option<Vec<Moment>>,
    /// Other tags, all of them.
    pub tags: Option<Vec<Tag>>,
    /// Another priority.
    pub priority: Option<u32>,
    /// Another group, or none.
    pub group: Option<Option<Group>>,
    /// Another retry policy, or none.
    pub retry: Option<Option<Retry>>,
    /// Given up so many milliseconds after the patch, or never.
    pub expire_after_ms: Option<Option<u64>>,
    /// Only if the task has this version.
    pub if_version: Option<Seq>,
    /// What to do if it is leased.
    pub on_lease: OnLease,
}

/// Ends a task that no worker has finished.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cancel {
    /// The queue.
    pub queue: QueueName,
    /// The key.
    pub key: Key,
    /// Only if the task has this version.
    pub if_version: Option<Seq>,
    /// What to do if it is leased.
    pub on_lease: OnLease,
}

/// Takes ready tasks to work on, in the order of priority, `due_at`, and the seq of their put.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lease {
    /// The queues: what is first in the order over all of them that hand anything out goes first.
    pub queues: Arc<[QueueName]>,
    /// At most so many. Of several queues there may be fewer, though more are ready.
    pub max: usize,
    /// For how long, milliseconds. `None`: as the task says, else as its queue's settings say, else [`LEASE_MS_DEFAULT`].
    pub lease_ms: Option<u64>,
    /// Whether to wait if nothing is ready. The driver ends the wait with `Input::EndWait`.
    pub wait: bool,
    /// The name of the worker, for those who ask who has what.
    pub worker: Option<Arc<str>>,
}

/// Ends tasks: their work is done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ack {
    /// The queue they were leased from.
    pub queue: QueueName,
    /// The leases.
    pub tokens: Vec<Token>,
}

/// Gives leases back. The attempt counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nack {
    /// The queue they were leased from.
    pub queue: QueueName,
    /// The leases.
    pub tokens: Vec<Token>,
    /// Why they come back.
    pub how: NackHow,
    /// Due again after so many milliseconds; 0: ready at once, in its old place. `None`: as the task's retry policy says; without one it is
    /// ready at once, too. It says nothing of a task whose worker went away, which is ready at once, or gave it up.
    pub delay_ms: Option<u64>,
    /// Another priority; `None`: as it was.
    pub priority: Option<u32>,
    /// What went wrong, for whoever looks at the task later.
    pub reason: Option<Arc<str>>,
}

/// Why a lease comes back.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum NackHow {
    /// Its worker gives it back.
    #[default]
    Returned,
    /// Its worker is gone, such as by a connection that closed.
    Gone,
    /// Its worker gives the task up: it is dead, until somebody redrives or cancels it.
    Buried,
}

/// Looks at a task, or does something to it, that is known by its id: in any queue, in any state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ById {
    /// The id.
    pub id: u64,
    /// What to do.
    pub act: Act,
    /// Only if the name of its queue begins with this; else there is no such task.
    pub within: Option<Arc<str>>,
    /// Only in this version; else there is no such task.
    pub if_version: Option<Seq>,
    /// The name of the worker that takes it.
    pub worker: Option<Arc<str>>,
}

/// What to do to a task that is known by its id.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Act {
    /// Look at it.
    Get,
    /// End it, unless a worker has it.
    Cancel,
    /// Make it due at once, if it is scheduled; give it another life, if it is dead.
    Run,
    /// Take it to work on, unless a worker has it: also if it is not due or was given up, and whatever its queue holds up.
    Lease {
        /// As in [`Lease`].
        lease_ms: Option<u64>,
    },
}

/// Gives a dead task another life: it is due at once, with all its attempts before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Redrive {
    /// The queue.
    pub queue: QueueName,
    /// Its id; its key may be another's by now.
    pub id: u64,
}

/// Keeps leases for longer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Extend {
    /// The queue they were leased from.
    pub queue: QueueName,
    /// The leases.
    pub tokens: Vec<Token>,
    /// They end so many milliseconds from now. `None`: as each task says, else as its queue's settings say, else [`LEASE_MS_DEFAULT`].
    pub lease_ms: Option<u64>,
}

/// Lays down how a queue hands its tasks out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangeQueue {
    /// The queue. It need not have tasks.
    pub queue: QueueName,
    /// What is laid down.
    pub change: QueueChange,
}

/// What is laid down about a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueueChange {
    /// These settings, all of them, in place of those before.
    Settings(QueueSettings),
    /// Nothing is leased from now on. What is in workers' hands may be finished, and puts are taken.
    Pause {
        /// For so long, milliseconds; 0: a pause ends. `None`: until it is resumed.
        ms: Option<u64>,
    },
    /// No task is added from now on: those that are there are worked off.
    Drain,
    /// Ends a pause and a drain.
    Resume,
    /// Forgets the queue: its settings, a pause and a drain are gone, and it is listed no longer. Refused while it has tasks or schedules.
    Delete,
    /// This record of another store, all of it: settings, pause and drain.
    Restore(QueueRecord),
}

/// Lays down what is to be done again and again. What is said of one of this name before is replaced, and its instants go on where they
/// are, unless the cadence or the start is another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PutSchedule {
    /// The queue that its tasks are put into.
    pub queue: QueueName,
    /// Its name.
    pub name: ScheduleName,
    /// What it is.
    pub schedule: Arc<Schedule>,
    /// Only if the one that stands has this version.
    pub if_version: Option<Seq>,
}

/// Gives a schedule up. The tasks that it has made stay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteSchedule {
    /// The queue.
    pub queue: QueueName,
    /// Its name.
    pub name: ScheduleName,
    /// Only if it has this version.
    pub if_version: Option<Seq>,
}

/// Looks at a schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetSchedule {
    /// The queue.
    pub queue: QueueName,
    /// Its name.
    pub name: ScheduleName,
}

/// A page of queues holds 500 at most: other calls are served between two pages.
pub const QUEUES_PAGE_MAX: usize = 500;

/// Which queues a list names.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum WhichQueues {
    /// Those that have tasks, settings, or a call that waits on them, and those that had a task or settings within the last hour, of which 10,000
    /// are remembered, until the next start.
    #[default]
    Listed,
    /// Those that have tasks, settings, or a call that waits on them, and those that a client of beanstalkd uses.
    InUse,
}

/// Looks at one queue. One that was never used has no tasks and no settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetQueue(
    /// Its name.
    pub QueueName,
);

/// Asks for the engine's own figures.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GetStats(
    /// The page of queues to show beside them.
    pub ListQueues,
);

/// Looks at the wheel.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct GetWheel;

/// Reads all jobs that are kept.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct ListJobs;

/// Pages through the queues in the order of their names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListQueues {
    /// Which of them.
    pub which: WhichQueues,
    /// Those whose name begins with this.
    pub prefix: Arc<str>,
    /// Those behind this one.
    pub after: Option<QueueName>,
    /// The list looks at no more queues than this, 1 to [`QUEUES_PAGE_MAX`]: a page may hold fewer, though more follow.
    pub max: usize,
}

impl Default for ListQueues {
    /// The first of all that are listed.
    fn default() -> Self {
        Self { which: WhichQueues::Listed, prefix: "".into(), after: None, max: QUEUES_PAGE_MAX }
    }
}

/// Pages through the schedules of a queue in the order of their names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListSchedules {
    /// The queue.
    pub queue: QueueName,
    /// Those behind this one.
    pub after: Option<ScheduleName>,
    /// At most so many.
    pub max: usize,
}

/// A page of the schedules of all queues has no more than this.
pub const SCHEDULES_PAGE_MAX: usize = 500;

/// Pages through the schedules of all queues, in the order of their queues and then of their names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListAllSchedules {
    /// Of queues whose names begin with this; empty: of all.
    pub prefix: Arc<str>,
    /// Those behind this one.
    pub after: Option<(QueueName, ScheduleName)>,
    /// How many the page has at most, 1 to [`SCHEDULES_PAGE_MAX`]. A page that has fewer is the last.
    pub max: usize,
}

/// Tasks that have all of these; what is `None` does not matter. All `None`: every task that is not dead.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskFilter {
    /// In this state.
    pub state: Option<State>,
    /// Due then or later.
    pub due_from: Option<Timestamp>,
    /// Due then or earlier.
    pub due_to: Option<Timestamp>,
    /// With this tag.
    pub tag: Option<Tag>,
    /// In this group.
    pub group: Option<Group>,
    /// Dead, and given up for this.
    pub why: Option<Death>,
    /// Put with this change or before.
    pub put_until: Option<Seq>,
    /// Not changed by its owner after this change: its version is at most this.
    pub changed_until: Option<Seq>,
}

impl TaskFilter {
    /// Tasks in this state.
    #[must_use]
    pub fn in_state(state: State) -> Self {
        Self { state: Some(state), ..Self::default() }
    }

    /// Whether a task as it is shown is one of them.
    #[must_use]
    pub fn matches(&self, task: &TaskView) -> bool {
        let Self { state, due_from, due_to, tag, group, why, put_until, changed_until } = self;
        let in_state = state.map_or(task.state != State::Dead, |state| state == task.state);
        in_state
            && due_from.is_none_or(|from| from <= task.due_at)
            && due_to.is_none_or(|to| task.due_at <= to)
            && tag.as_ref().is_none_or(|tag| task.body.tags.contains(tag))
            && group.as_ref().is_none_or(|group| task.group.as_ref() == Some(group))
            && why.is_none_or(|why| task.dead.is_some_and(|dead| dead.why == why))
            && put_until.is_none_or(|until| task.put_seq <= until)
            && changed_until.is_none_or(|until| task.version <= until)
    }
}

/// Pages through the live tasks of a queue in the order of `due_at`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct List {
    /// The queue.
    pub queue: QueueName,
    /// Only these tasks.
    pub filter: TaskFilter,
    /// Looks at no more than so many tasks; a page may hold fewer, even none, and still have a next one.
    pub max: usize,
    /// Where the page before ended.
    pub after: Option<crate::cursor::TaskCursor>,
}

/// Pages through the tasks of all queues, live and dead, in the order in which time has to do with them: live ones by their `due_at`, dead ones by when they
/// are forgotten.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListAllTasks {
    /// How many the page has at most, at least 1. A page may hold fewer, even none, and still have a next one.
    pub max: usize,
    /// Where the page before ended.
    pub after: Option<crate::cursor::TaskCursor>,
}

/// A forecast has at most so many buckets: a week by the minute, and the one that has begun.
pub const FORECAST_BUCKETS_MAX: usize = 10_081;
/// A trace context has at most so many bytes: a `traceparent` and a `tracestate` of the W3C.
pub const TRACE_BYTES_MAX: usize = 640;
/// The lease that a worker gets who names no length, of a task and a queue that say nothing of it: 30 s.
pub const LEASE_MS_DEFAULT: u64 = 30_000;

impl Due {
    /// So long after the put, rounded up to the millisecond: never early.
    #[must_use]
    pub fn after(delay: Duration) -> Self {
        Self::After { ms: ms_up(delay) }
    }
}

impl Put {
    /// A put of `key`, due at once, without payload, replacing a live task of that key.
    #[must_use]
    pub fn new(queue: &QueueName, key: Key) -> Self {
        Self { key: Some(key), ..Self::without_key(queue) }
    }

    /// A put whose key the server makes: the id in decimal.
    #[must_use]
    pub fn without_key(queue: &QueueName) -> Self {
        Self {
            queue: queue.clone(),
            key: None,
            due: Due::Now,
            body: Body::default(),
            terms: Terms::default(),
            ttr_ms: None,
            trace: None,
            mode: PutMode::Upsert,
            if_version: None,
            on_lease: OnLease::Refuse,
            may_add: true,
            asked_at: None,
        }
    }

    /// Due so long after the put is received.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { due: Due::after(delay), ..self }
    }

    /// Due at this instant.
    #[must_use]
    pub fn at(self, due_at: Timestamp) -> Self {
        Self { due: Due::At(due_at), ..self }
    }

    /// With these bytes, of the type `application/octet-stream`.
    #[must_use]
    pub fn payload(self, payload: impl Into<Vec<u8>>) -> Self {
        Self { body: Body::bytes(payload), ..self }
    }
}

impl Get {
    /// Looks at the task of this key.
    #[must_use]
    pub fn new(queue: &QueueName, key: Key) -> Self {
        Self { queue: queue.clone(), key }
    }
}

impl Payload {
    /// Plain bytes, of the type `application/octet-stream`.
    #[must_use]
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), content_type: "application/octet-stream".into() }
    }
}

impl Patch {
    /// A patch that changes nothing yet.
    #[must_use]
    pub fn new(queue: &QueueName, key: Key) -> Self {
        Self {
            queue: queue.clone(),
            key,
            due: None,
            payload: None,
            timeline: None,
            tags: None,
            priority: None,
            group: None,
            retry: None,
            expire_after_ms: None,
            if_version: None,
            on_lease: OnLease::Refuse,
        }
    }

    /// Due so long after the patch is received.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { due: Some(Due::after(delay)), ..self }
    }

    /// Due at this instant.
    #[must_use]
    pub fn at(self, due_at: Timestamp) -> Self {
        Self { due: Some(Due::At(due_at)), ..self }
    }

    /// With these bytes from now on, of the type `application/octet-stream`.
    #[must_use]
    pub fn payload(self, payload: impl Into<Vec<u8>>) -> Self {
        Self { payload: Some(Payload::bytes(payload)), ..self }
    }
}

impl Cancel {
    /// Cancels the task of this key unless a worker has it.
    #[must_use]
    pub fn new(queue: &QueueName, key: Key) -> Self {
        Self { queue: queue.clone(), key, if_version: None, on_lease: OnLease::Refuse }
    }

    /// Takes it back from the worker that may have it.
    #[must_use]
    pub fn revoke(self) -> Self {
        Self { on_lease: OnLease::Revoke, ..self }
    }
}

impl Lease {
    /// One task, for as long as it or the queue's settings say.
    #[must_use]
    pub fn new(queue: &QueueName) -> Self {
        Self::of([queue.clone()])
    }

    /// One task of whichever of these queues has the first, for as long as it or its queue's settings say.
    #[must_use]
    pub fn of(queues: impl Into<Arc<[QueueName]>>) -> Self {
        Self { queues: queues.into(), max: 1, lease_ms: None, wait: false, worker: None }
    }

    /// At most so many tasks.
    #[must_use]
    pub fn max(self, max: usize) -> Self {
        Self { max, ..self }
    }

    /// For so long, rounded up to the millisecond.
    #[must_use]
    pub fn lasting(self, lease: Duration) -> Self {
        Self { lease_ms: Some(ms_up(lease)), ..self }
    }
}

impl Ack {
    /// Acks these leases.
    #[must_use]
    pub fn new(queue: &QueueName, tokens: impl IntoIterator<Item = Token>) -> Self {
        Self { queue: queue.clone(), tokens: tokens.into_iter().collect() }
    }
}

impl Nack {
    /// Gives these leases back, ready at once.
    #[must_use]
    pub fn new(queue: &QueueName, tokens: impl IntoIterator<Item = Token>) -> Self {
        Self {
            queue: queue.clone(),
            tokens: tokens.into_iter().collect(),
            how: NackHow::Returned,
            delay_ms: None,
            priority: None,
            reason: None,
        }
    }

    /// Gives the tasks up.
    #[must_use]
    pub fn buried(self) -> Self {
        Self { how: NackHow::Buried, ..self }
    }

    /// Ready again after so long, rounded up to the millisecond.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { delay_ms: Some(ms_up(delay)), ..self }
    }
}

impl Extend {
    /// Keeps these leases for so long from now, rounded up to the millisecond.
    #[must_use]
    pub fn new(queue: &QueueName, tokens: impl IntoIterator<Item = Token>, lease: Duration) -> Self {
        Self { queue: queue.clone(), tokens: tokens.into_iter().collect(), lease_ms: Some(ms_up(lease)) }
    }
}

impl PutSchedule {
    /// Lays this schedule down under this name.
    #[must_use]
    pub fn new(queue: &QueueName, name: ScheduleName, schedule: Arc<Schedule>) -> Self {
        Self { queue: queue.clone(), name, schedule, if_version: None }
    }
}

impl List {
    /// The first page, all states, 100 tasks looked at.
    #[must_use]
    pub fn new(queue: &QueueName) -> Self {
        Self { queue: queue.clone(), filter: TaskFilter::default(), max: 100, after: None }
    }
}

fn ms_up(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
