//! Calls and answers of clients, in the oracle's own words: the driver translates the product's types into these.

/// The driver's number of one call; never used twice in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// When a task is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// At this wall instant, ms since the Unix epoch.
    At(i64),
    /// Milliseconds after the server took the call.
    In(u64),
}

/// The priority that a task has by the number of its payload: smaller goes first.
pub fn priority_of(payload: u64) -> u32 {
    match (payload >> 1) % 8 {
        1 => 0,
        3 => 7,
        5 => u32::MAX,
        _ => 1024,
    }
}

/// The group that a task is in by the number of its payload, if it is in one.
pub fn group_of(payload: u64) -> Option<u64> {
    let made = payload >> 1;
    made.is_multiple_of(3).then_some(made % 5)
}

/// Deliveries that may begin: `burst` at once after a quiet while, and `tasks` more in each `per_ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Deliveries.
    pub tasks: u64,
    /// The span for which `tasks` are allowed (milliseconds).
    pub per_ms: u64,
    /// At once.
    pub burst: u64,
}

impl Rate {
    /// How many whole deliveries become free again in `ms`.
    pub(super) fn come_back(self, ms: u64) -> u64 {
        let tasks = u128::from(ms) * u128::from(self.tasks) / u128::from(self.per_ms);
        u64::try_from(tasks).unwrap_or(u64::MAX)
    }
}

/// Whether a queue hands out, and if not, until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Pause {
    /// The queue delivers, and takes new tasks.
    #[default]
    Off,
    /// Not until a call ends it.
    On,
    /// Paused for this number of milliseconds from when the server took the call.
    For(u64),
}

/// The limits of a queue: tasks in flight, and live tasks; `None`: any number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Limits {
    /// The limit of all tasks together.
    pub in_flight: Option<usize>,
    /// The limit of one group.
    pub per_group: Option<usize>,
    /// How many live tasks the queue may have.
    pub max_backlog: Option<usize>,
    /// The rate of deliveries.
    pub rate: Option<Rate>,
}

/// The failed attempts after which a task is dead, by the number of its payload; `None`: without limit.
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
    /// Replace it, or make one.
    Upsert,
    /// Refuse: [`Answer::Live`].
    Create,
    /// Replace it; refuse if there is none: [`Answer::NotFound`].
    Replace,
    /// Keep it, live or dead, and show it; make one if there is none, but not if the last was acked:
    /// [`Answer::Done`].
    Once,
    /// As upsert, but due at the latest this long after the first put of the row (milliseconds).
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
    /// The imported task takes its place.
    Replace,
    /// The task stays, and the answer is [`Answer::Live`] or [`Answer::Dead`].
    Refuse,
}

/// Why a lease comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Its worker gives it back.
    Returned,
    /// Its worker is gone: ready at once.
    Gone,
    /// Its worker gives the task up.
    Buried,
}

/// An action on a task that is named by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Look at it.
    Get,
    /// End it.
    Cancel,
    /// The task is due at once, or live again.
    Run,
    /// Take it, even if its queue is held up, or it is not due, or dead.
    Lease {
        /// How long the lease lasts.
        lease_ms: u64,
    },
}

/// One call of a client.
#[derive(Clone, Debug)]
pub struct Call {
    /// The queue it goes to.
    pub queue: String,
    /// The key of put, get, patch and cancel. `None` for the other verbs, and for a put that leaves the key to the
    /// server; such a put needs a payload that no other has, because that is how its task is recognised.
    pub key: Option<String>,
    /// The operation of the call.
    pub verb: Verb,
}

/// The operation of a call.
#[derive(Clone, Debug)]
pub enum Verb {
    /// Make or replace the key's task. Answered by `Stored`, `Live`, `Leased`, `NotFound`, `Done` or `VersionMismatch`.
    Put {
        /// `None` is now.
        due: Option<Due>,
        /// Hash of the payload, and of priority, group, tags and retry policy, see [`priority_of`] and [`max_attempts_of`].
        payload: u64,
        /// The treatment of a live task.
        mode: Mode,
        /// The version the client expects.
        if_match: Option<u64>,
        /// Also take the task away from a worker that holds it.
        revoke: bool,
    },
    /// Bring a live task that was put in another store, before anything happened here. Answered by `Added`,
    /// `Replaced`, `Skipped`, `Live`, `Dead` or `Leased`.
    Import {
        /// When it is due.
        due: i64,
        /// As of a put. It does not expire, and has one instant.
        payload: u64,
        /// Leases that ended elsewhere.
        attempts: u32,
        /// The treatment of a task that is there.
        there: There,
        /// Also take the present task away from a worker that holds it.
        revoke: bool,
    },
    /// Read the task. Answered by `Task` or `NotFound`.
    Get,
    /// Change the given members. Answered by `Stored` (not created), `Leased`, `NotFound`, `Done` or
    /// `VersionMismatch`.
    Patch {
        /// `None` keeps the instant.
        due: Option<Due>,
        /// `None` keeps the payload.
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
    /// Redrive the dead task with this id; the key of the call is its key. Answered by `Stored` (not created),
    /// `NotFound` or `Live`.
    Redrive {
        /// Its id.
        id: u64,
    },
    /// Take ready tasks, without waiting. Answered by `Delivered`.
    Lease {
        /// The largest number of tasks.
        max: usize,
        /// How long the lease lasts.
        lease_ms: u64,
    },
    /// The work is done. Answered by `Tokens`.
    Ack {
        /// One task each.
        tokens: Vec<String>,
    },
    /// The work is given back. Answered by `Tokens`.
    Nack {
        /// One task each.
        tokens: Vec<String>,
        /// `None`: ready at once, at its old place, unless its policy wants it to wait. `Some(0)`: ready at once. Else scheduled again, from now
        /// on.
        delay_ms: Option<u64>,
        /// Why.
        how: How,
    },
    /// Look at the task with this id, or do something to it; the key of the call is its key. Answered by `Task` to a get, by `Cancelled` to a
    /// cancel, by `Stored` (not created) or `Ready` to a run, by `Delivered` to a lease; and by `NotFound`, `Leased` or `Live`.
    ById {
        /// Its id.
        id: u64,
        /// The action.
        act: Act,
    },
    /// The work takes longer. Answered by `Tokens`.
    Extend {
        /// One task each.
        tokens: Vec<String>,
        /// The lease's new length, counted from now.
        lease_ms: u64,
    },
    /// The delivery reached no worker, as the server knows. Answered by `Tokens`, all of them `Returned`.
    Return {
        /// One task each.
        tokens: Vec<String>,
    },
    /// Set how many tasks may be in flight. Answered by `Laid`.
    Settle(Limits),
    /// Deliver nothing from now on, or deliver and accept new tasks again. Answered by `Laid`.
    Pause(Pause),
    /// Take no new task, until a pause ends. Answered by `Laid`.
    Drain,
    /// Forget the queue and its settings. Answered by `Laid`, or by `NotEmpty` while it has a task.
    Delete,
    /// All live tasks of the queue, every page of it. Answered by `Listed`.
    List,
    /// How many tasks are in each state. Answered by `Counted`.
    Counts,
}

impl Verb {
    /// Whether it sets something that time ends by itself.
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
    /// Ended; no delivery starts any more.
    Cancelled,
    /// Ended, and taken away from its worker.
    Revoked,
    /// Refused: a worker holds it (409).
    Leased,
    /// Absent, because its last task was acked (404 `done`).
    Done,
    /// Absent (404).
    NotFound,
    /// `create` on a live key (409).
    Live,
    /// Refused: the task was given up (409).
    Dead,
    /// Refused: it is ready, so there is nothing to do.
    Ready,
    /// `If-Match` failed (412).
    VersionMismatch,
    /// The tasks of a lease call, in the order of the answer.
    Delivered(Vec<Delivery>),
    /// One for each token, in their order.
    Tokens(Vec<TokenAnswer>),
    /// The settings were stored.
    Laid,
    /// The whole list.
    Listed(Vec<View>),
    /// Tasks by state.
    Counted {
        /// Not due yet.
        scheduled: usize,
        /// Waiting for a worker.
        ready: usize,
        /// In a worker's hands.
        leased: usize,
        /// Given up.
        dead: usize,
    },
    /// A new task was refused, because the queue is drained (503).
    Draining,
    /// A new task was refused, because the queue has its `max_backlog` (429).
    BacklogFull,
    /// The queue was not forgotten, because it has these (409).
    NotEmpty {
        /// Live tasks.
        live: usize,
        /// Dead tasks.
        dead: usize,
        /// Schedules.
        schedules: usize,
    },
    /// A definite refusal without a trace (400, 429, 507).
    Refused,
    /// The outcome is unknown (5xx). The same as [`lost`](super::Oracle::lost).
    Unknown,
}

/// The answer to one token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenAnswer {
    /// The task is done.
    Acked,
    /// The task went back.
    Nacked,
    /// The lease goes on.
    Extended,
    /// The lease had ended, or there never was one.
    Expired,
    /// The owner had taken the task away.
    Revoked,
    /// If the lease was still there, it is as if it had not begun.
    Returned,
}

/// A live task, as get, put, patch and list show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Its key.
    pub key: String,
    /// The server's number of it.
    pub id: u64,
    /// Number of the owner's last change.
    pub version: u64,
    /// Where it stands.
    pub state: State,
    /// Wall instant, ms.
    pub due_at: i64,
    /// Hash of its payload.
    pub payload: u64,
    /// Leases begun so far (one that a crash cut off does not count).
    pub attempt: u32,
    /// When it is given up, wall instant, ms.
    pub expire_at: Option<i64>,
}

/// The state of a live task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not due yet.
    Scheduled,
    /// Due; any worker may have it.
    Ready,
    /// In a worker's hands.
    Leased,
    /// Given up.
    Dead,
}

/// A task in a lease answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its key.
    pub key: String,
    /// The server's number of it.
    pub id: u64,
    /// Wall instant, ms.
    pub due_at: i64,
    /// Hash of its payload.
    pub payload: u64,
    /// Leases that ended before, plus one.
    pub attempt: u32,
    /// Proves the lease.
    pub token: String,
    /// Wall instant, ms, at which the lease ends unless it is extended.
    pub lease_until: i64,
}
