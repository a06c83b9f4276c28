//! Calls and answers of clients, in the oracle's own words: the driver translates the product's types into these.

/// The driver's number of one call; never used twice in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// The due instant that a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// At this wall instant, ms since the Unix epoch.
    At(i64),
    /// Milliseconds after the server took the call.
    In(u64),
}

/// The priority of a task, computed from the number that stands for its payload: a task with a smaller priority goes first.
pub fn priority_of(payload: u64) -> u32 {
    match (payload >> 1) % 8 {
        1 => 0,
        3 => 7,
        5 => u32::MAX,
        _ => 1024,
    }
}

/// The group of a task, computed from the number that stands for its payload; `None`: no group.
pub fn group_of(payload: u64) -> Option<u64> {
    let made = payload >> 1;
    made.is_multiple_of(3).then_some(made % 5)
}

/// A rate of deliveries, as a token bucket: at most `burst` at once, and `tasks` more in each `per_ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The number of deliveries in each `per_ms`.
    pub tasks: u64,
    /// The span for which `tasks` are allowed (milliseconds).
    pub per_ms: u64,
    /// The largest number of deliveries at once, after a time without deliveries.
    pub burst: u64,
}

impl Rate {
    /// The number of whole deliveries that the rate allows again after `ms`.
    pub(super) fn come_back(self, ms: u64) -> u64 {
        let tasks = u128::from(ms) * u128::from(self.tasks) / u128::from(self.per_ms);
        u64::try_from(tasks).unwrap_or(u64::MAX)
    }
}

/// Whether a queue delivers, and if not, until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Pause {
    /// The queue delivers, and takes new tasks.
    #[default]
    Off,
    /// Paused until a call ends the pause.
    On,
    /// Paused for this number of milliseconds from when the server took the call.
    For(u64),
}

/// The limits of a queue; `None`: no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Limits {
    /// The largest number of tasks in flight.
    pub in_flight: Option<usize>,
    /// The largest number of tasks in flight in each group.
    pub per_group: Option<usize>,
    /// The largest number of live tasks.
    pub max_backlog: Option<usize>,
    /// The rate of deliveries.
    pub rate: Option<Rate>,
}

/// The number of failed attempts after which a task is dead, computed from the number of its payload; `None`: no limit.
pub fn max_attempts_of(payload: u64) -> Option<u32> {
    match payload >> 40 & 3 {
        0 => None,
        max => Some(max as u32),
    }
}

/// The time after its put at which a task expires, by the number of its payload (ms); `None`: never.
pub fn expire_after_of(payload: u64) -> Option<u64> {
    match payload >> 44 & 7 {
        0 => None,
        1 => Some(1),
        2 => Some(20),
        3 => Some(300),
        4 => Some(2_000),
        5 => Some(70_000),
        _ => Some(86_400_000),
    }
}

/// The first wait after a nack without a delay (ms), and whether it doubles with each attempt, by the number of the
/// payload; `None`: no wait.
pub fn backoff_of(payload: u64) -> Option<(u64, bool)> {
    match payload >> 47 & 3 {
        0 => None,
        1 => Some((7, false)),
        2 => Some((7, true)),
        _ => Some((1_000, true)),
    }
}

/// The number of instants of a task that is due at one instant, and their distance (ms), by the number of its
/// payload; `None`: one instant.
pub fn steps_of(payload: u64) -> Option<(u64, u64)> {
    match payload >> 50 & 3 {
        0 => None,
        1 => Some((2, 5)),
        2 => Some((3, 400)),
        _ => Some((2, 3_600_000)),
    }
}

/// The longest wait of a back-off (ms).
pub const BACKOFF_MS_MAX: u64 = 5_000;

/// How a put treats a live task of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Replace the live task, or make a task if there is none.
    Upsert,
    /// Make a task; refuse if there is a live one: [`Answer::Live`].
    Create,
    /// Replace the live task; refuse if there is none: [`Answer::NotFound`].
    Replace,
    /// Keep the task, live or dead, and show it. Make one if there is none, but not if the last one was acked: [`Answer::Done`].
    Once,
    /// As upsert, but the task is due at most `max_wait_ms` after the first of the debounced puts (ms).
    Debounce {
        /// `None`: without a limit.
        max_wait_ms: Option<u64>,
    },
}

/// The rule of an import for a task that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum There {
    /// The task stays, or stays ended, and the answer is [`Answer::Skipped`].
    Skip,
    /// The imported task replaces it.
    Replace,
    /// The task stays. The answer is [`Answer::Live`] or [`Answer::Dead`].
    Refuse,
}

/// The reason of a nack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The worker gives the task back.
    Returned,
    /// The worker is gone: the task is ready at once.
    Gone,
    /// The worker gives the task up: it is dead.
    Buried,
    /// The target of the queue will never take the task: it is dead.
    Undeliverable,
}

/// An action on a task that is named by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Read the task.
    Get,
    /// Cancel the task.
    Cancel,
    /// Make a live task due at once, or redrive a dead one.
    Run,
    /// Lease it, even if the queue is paused or at a limit, or the task is not due, or dead.
    Lease {
        /// The length of the lease (ms).
        lease_ms: u64,
    },
}

/// An action on the live task of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAct {
    /// Make it due at once.
    Run,
    /// Take it away from the worker that holds it.
    Release,
}

/// One call of a client.
#[derive(Clone, Debug)]
pub struct Call {
    /// The queue that the call concerns.
    pub queue: String,
    /// The key of put, import, get, patch, cancel, redrive and by-id calls. `None` for the other verbs, and for a put
    /// that leaves the key to the server. Each put without a key needs a payload that no other put has.
    pub key: Option<String>,
    /// The operation of the call.
    pub verb: Verb,
}

/// The operation of a call.
#[derive(Clone, Debug)]
pub enum Verb {
    /// Make a task, or replace the task of the key. Answered by `Stored`, `Live`, `Leased`, `NotFound`, `Done` or
    /// `VersionMismatch`.
    Put {
        /// `None` is now.
        due: Option<Due>,
        /// The number that stands for the payload. Priority, group, retry policy and other settings follow from it,
        /// see [`priority_of`] and [`max_attempts_of`].
        payload: u64,
        /// The treatment of a live task.
        mode: Mode,
        /// The version the client expects.
        if_match: Option<u64>,
        /// Also take the task away from a worker that holds it.
        revoke: bool,
    },
    /// Import a live task that was put in another store. Answered by `Added`, `Replaced`, `Skipped`, `Live`, `Dead` or `Leased`.
    Import {
        /// The due instant (wall clock, ms).
        due: i64,
        /// As `payload` of a put. An imported task does not expire, and has one instant.
        payload: u64,
        /// The number of leases that ended in the other store.
        attempts: u32,
        /// How to treat a task that is there already.
        there: There,
        /// Also take the present task away from a worker that holds it.
        revoke: bool,
    },
    /// Read the task. Answered by `Task` or `NotFound`.
    Get,
    /// Change the given members. Answered by `Stored` (not created), `Leased`, `NotFound`, `Done`, `Dead` or `VersionMismatch`.
    Patch {
        /// `None`: the instant does not change.
        due: Option<Due>,
        /// `None`: the payload does not change.
        payload: Option<u64>,
        /// The version the client expects.
        if_match: Option<u64>,
        /// Also take the task away from a worker that holds it.
        revoke: bool,
    },
    /// End the task. Answered by `Cancelled`, `Revoked`, `Leased`, `Done`, `NotFound` or `VersionMismatch`.
    Cancel {
        /// The version the client expects.
        if_match: Option<u64>,
        /// Also take the task away from a worker that holds it.
        revoke: bool,
    },
    /// Redrive the dead task with this id. The key of the call is the key of this task. Answered by `Stored` (not
    /// created), `NotFound` or `Live`.
    Redrive {
        /// The id of the task.
        id: u64,
    },
    /// Take ready tasks, without waiting. Answered by `Delivered`.
    Lease {
        /// The largest number of tasks.
        max: usize,
        /// The length of the lease (ms).
        lease_ms: u64,
    },
    /// Ack tasks: their work is done. Answered by `Tokens`.
    Ack {
        /// The tokens of the leases, one for each task.
        tokens: Vec<String>,
    },
    /// Nack tasks: their leases end without an ack. Answered by `Tokens`.
    Nack {
        /// The tokens of the leases, one for each task.
        tokens: Vec<String>,
        /// `None`: the retry policy of the task sets the delay; without a policy the task is ready at once, at its old
        /// position. `Some(0)`: ready at once. Otherwise the task is scheduled again, this delay from now (ms).
        delay_ms: Option<u64>,
        /// Without a delay, the task waits at least this long (ms).
        at_least_ms: Option<u64>,
        /// The reason.
        how: How,
    },
    /// Do `act` to the task with this id; the key of the call is the key of this task. Answered by `Task` to a get,
    /// by `Cancelled` to a cancel, by `Stored` (not created) or `Ready` to a run, by `Delivered` to a lease; and by
    /// `NotFound`, `Leased` or `Live`.
    ById {
        /// The id of the task.
        id: u64,
        /// The action.
        act: Act,
    },
    /// Do `act` to the live task of the key. Answered by `Stored` (not created), by `NotFound`, `Done` or `VersionMismatch`; by `Leased` or `Dead` to a
    /// run, by `NotLeased` to a release.
    ByKey {
        /// The action.
        act: KeyAct,
        /// The version the client expects.
        if_match: Option<u64>,
    },
    /// Extend leases, because the work takes longer. Answered by `Tokens`.
    Extend {
        /// The tokens of the leases, one for each task.
        tokens: Vec<String>,
        /// The new length of the lease, counted from now (ms).
        lease_ms: u64,
    },
    /// Tell the server that deliveries reached no worker. Answered by `Tokens`, all of them `Returned`.
    Return {
        /// The tokens of the leases, one for each task.
        tokens: Vec<String>,
    },
    /// Set the limits of the queue. Answered by `Laid`.
    Settle(Limits),
    /// Pause the queue; or, with [`Pause::Off`], deliver and accept new tasks again. Answered by `Laid`.
    Pause(Pause),
    /// Take no new task, until a pause ends. Answered by `Laid`.
    Drain,
    /// Delete the queue and its settings. Answered by `Laid`, or by `NotEmpty` while the queue has a task.
    Delete,
    /// List all live tasks of the queue, by reading every page. Answered by `Listed`.
    List,
    /// Count the tasks in each state. Answered by `Counted`.
    Counts,
}

impl Verb {
    /// Whether the call sets a rate, or a pause that time ends.
    #[must_use]
    pub fn is_gate(&self) -> bool {
        match self {
            Self::Settle(limits) => limits.rate.is_some(),
            Self::Pause(pause) => matches!(pause, Pause::For(_)),
            _ => false,
        }
    }
}

/// The answer that a client gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A put or a patch was accepted; the task as it stands now.
    Stored {
        /// There was no live task on the key before (201, not 200).
        created: bool,
        /// The task.
        task: View,
    },
    /// The imported task is new.
    Added,
    /// The imported task took the place of a live task.
    Replaced,
    /// The imported task was left out: a task is there, or has ended.
    Skipped,
    /// The task that a get found.
    Task(View),
    /// The task has ended; no delivery of it begins any more.
    Cancelled,
    /// The task has ended, and was taken away from its worker.
    Revoked,
    /// Refused: a worker holds the task (409).
    Leased,
    /// Refused: no worker holds the task (409).
    NotLeased,
    /// There is no live task, because the last one was acked (404 `done`).
    Done,
    /// There is no such task (404).
    NotFound,
    /// `create` on a live key (409).
    Live,
    /// Refused: the task is dead (409).
    Dead,
    /// Refused: the task is ready, so there is nothing to do.
    Ready,
    /// `If-Match` failed (412).
    VersionMismatch,
    /// The tasks of a lease call, in the order of the answer.
    Delivered(Vec<Delivery>),
    /// One answer for each token, in the order of the call.
    Tokens(Vec<TokenAnswer>),
    /// The settings were stored.
    Laid,
    /// The rows of the whole list.
    Listed(Vec<View>),
    /// The number of tasks in each state.
    Counted {
        /// Scheduled: not due yet.
        scheduled: usize,
        /// Ready: due, and waiting for a worker.
        ready: usize,
        /// Leased by a worker.
        leased: usize,
        /// Dead: given up after the last allowed attempt or at the expiry.
        dead: usize,
    },
    /// A new task was refused, because the queue is drained (503).
    Draining,
    /// A new task was refused, because the backlog of the queue is at `max_backlog` (429).
    BacklogFull,
    /// The queue was not deleted, because it still has these tasks or schedules (409).
    NotEmpty {
        /// Live tasks.
        live: usize,
        /// Dead tasks.
        dead: usize,
        /// Schedules.
        schedules: usize,
    },
    /// The call was refused and changed nothing (400, 429, 507).
    Refused,
    /// The outcome is unknown (5xx). It counts as [`lost`](super::Oracle::lost).
    Unknown,
}

/// The answer to one token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenAnswer {
    /// The task is done.
    Acked,
    /// The lease ended, and the task waits again or is dead.
    Nacked,
    /// The lease goes on.
    Extended,
    /// The lease had ended before, or there never was one.
    Expired,
    /// The owner had taken the task away.
    Revoked,
    /// The lease has ended, if it was still running, and its attempt does not count.
    Returned,
}

/// A live or dead task, as an answer shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The key of the task.
    pub key: String,
    /// The id of the task.
    pub id: u64,
    /// The version: the number of the owner's last change.
    pub version: u64,
    /// The state of the task.
    pub state: State,
    /// The due instant (wall clock, ms since the Unix epoch).
    pub due_at: i64,
    /// The number that stands for the payload.
    pub payload: u64,
    /// The number of leases so far, the running one included (a lease that a crash ended does not count).
    pub attempt: u32,
    /// The instant at which the task expires (wall clock, ms).
    pub expire_at: Option<i64>,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Scheduled: not due yet.
    Scheduled,
    /// Due, and waiting for a worker.
    Ready,
    /// Leased by a worker.
    Leased,
    /// Dead: given up after the last allowed attempt or at the expiry.
    Dead,
}

/// A task in a lease answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The key of the task.
    pub key: String,
    /// The id of the task.
    pub id: u64,
    /// The due instant (wall clock, ms since the Unix epoch).
    pub due_at: i64,
    /// The number that stands for the payload.
    pub payload: u64,
    /// The number of leases that ended before, plus one.
    pub attempt: u32,
    /// The token of the lease.
    pub token: String,
    /// The end of the lease as the server tells it, unless it is extended (wall clock, ms since the Unix epoch).
    pub lease_until: i64,
}
