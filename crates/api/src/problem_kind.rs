//! The kinds of problems, each with a type URI, a status and a title.

/// Every kind of problem there is. Each has its own type URI, a status and a title; what it says of one case
/// is the detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The request cannot be understood. The caller changes it.
    BadRequest,
    /// A queue name or key that no task can have.
    BadName,
    /// Due later than the server allows.
    TooFar,
    /// Given up before it is due.
    ExpiresFirst,
    /// No live task has this key.
    NotFound,
    /// The last task of this key is done.
    Done,
    /// No job has this number.
    NoJob,
    /// No schedule of the queue has this name.
    NoSchedule,
    /// No backup has this number.
    NoBackup,
    /// The server has no place for backups, or nothing to copy.
    NoBackupDir,
    /// No such endpoint.
    NoEndpoint,
    /// The endpoint exists on servers with a virtual clock only.
    NoVirtualClock,
    /// The endpoint does not know this method.
    BadMethod,
    /// No token, or one that is not known.
    Unauthorized,
    /// The token does not have the right.
    Forbidden,
    /// The queue is outside of the token's scope.
    OutOfScope,
    /// 403: the queue is the server's own.
    OwnQueue,
    /// A web page of another site sent the request through a browser.
    ForeignOrigin,
    /// The request is for a host that this server is not.
    ForeignHost,
    /// The request is plain HTTP, and the server speaks TLS only.
    NeedsTls,
    /// The request did not arrive in time.
    Timeout,
    /// `mode=create`, and a live task has this key.
    Live,
    /// The task was given up.
    Dead,
    /// The queue is being drained.
    Draining,
    /// There are as many as there can be.
    TooMany,
    /// A backup is under way.
    BackupUnderWay,
    /// Settings or a schedule of an import are there already, and say something else.
    Exists,
    /// The task has a timeline, and the request would change one of its instants.
    Timeline,
    /// The queue has tasks or schedules.
    QueueNotEmpty,
    /// A worker has the task.
    Leased,
    /// The task's version is another than `If-Match` says.
    VersionMismatch,
    /// The body is above the limit.
    BodyTooLarge,
    /// The URI is above the limit.
    UriTooLong,
    /// The body has a content type or encoding that the server does not read.
    BadMediaType,
    /// The headers are above the limit.
    HeadersTooLarge,
    /// A limit on calls or connections is reached. The caller waits.
    Busy,
    /// The queue has as many live tasks as its settings allow. The caller waits.
    BacklogFull,
    /// A mistake of the server. It may have happened or not.
    Internal,
    /// The server has started and has not recovered its tasks yet.
    Starting,
    /// The server stops. The call had no effect.
    Stopping,
    /// The server takes no new tasks, and goes on with those that it has. The call had no effect.
    ServerDraining,
    /// The store failed: nothing is changed any more until the server is started again. The call had no
    /// effect.
    ReadOnly,
    /// The store failed or the server stopped while the call was under way: it may have happened or not.
    Indeterminate,
    /// The disk is full. The call had no effect; acks and cancels are still taken.
    StorageFull,
}

impl ProblemKind {
    /// Every kind.
    pub const ALL: [Self; 44] = [
        Self::BadRequest,
        Self::BadName,
        Self::TooFar,
        Self::ExpiresFirst,
        Self::NotFound,
        Self::Done,
        Self::NoJob,
        Self::NoSchedule,
        Self::NoBackup,
        Self::NoBackupDir,
        Self::NoEndpoint,
        Self::NoVirtualClock,
        Self::BadMethod,
        Self::Unauthorized,
        Self::Forbidden,
        Self::OutOfScope,
        Self::OwnQueue,
        Self::ForeignOrigin,
        Self::ForeignHost,
        Self::NeedsTls,
        Self::Timeout,
        Self::Live,
        Self::Dead,
        Self::Draining,
        Self::TooMany,
        Self::BackupUnderWay,
        Self::Exists,
        Self::Timeline,
        Self::QueueNotEmpty,
        Self::Leased,
        Self::VersionMismatch,
        Self::BodyTooLarge,
        Self::UriTooLong,
        Self::BadMediaType,
        Self::HeadersTooLarge,
        Self::Busy,
        Self::BacklogFull,
        Self::Internal,
        Self::Starting,
        Self::Stopping,
        Self::ServerDraining,
        Self::ReadOnly,
        Self::Indeterminate,
        Self::StorageFull,
    ];

    /// The relative URI that names the kind, the HTTP status and the title.
    const fn parts(self) -> (&'static str, u16, &'static str) {
        match self {
            Self::BadRequest => ("/problems/bad-request", 400, "the request cannot be understood"),
            Self::BadName => ("/problems/bad-name", 400, "the queue name or key is not allowed"),
            Self::TooFar => ("/problems/too-far", 400, "the task would be due too far in the future"),
            Self::ExpiresFirst => ("/problems/expires-first", 400, "the task would expire before it is due"),
            Self::NotFound => ("/problems/not-found", 404, "there is no such task"),
            Self::Done => ("/problems/done", 404, "the task is done"),
            Self::NoBackup => ("/problems/no-backup", 404, "there is no such backup"),
            Self::NoBackupDir => ("/problems/no-backup-dir", 404, "the server makes no backups"),
            Self::NoJob => ("/problems/no-job", 404, "there is no such job"),
            Self::NoSchedule => ("/problems/no-schedule", 404, "there is no such schedule"),
            Self::NoEndpoint => ("/problems/no-endpoint", 404, "there is no such endpoint"),
            Self::NoVirtualClock => ("/problems/no-virtual-clock", 404, "the server runs on real time"),
            Self::BadMethod => ("/problems/bad-method", 405, "the endpoint does not know this method"),
            Self::Unauthorized => ("/problems/unauthorized", 401, "the request needs a token"),
            Self::Forbidden => ("/problems/forbidden", 403, "the token does not have the right"),
            Self::OutOfScope => ("/problems/out-of-scope", 404, "there is no such queue for this token"),
            Self::OwnQueue => ("/problems/own-queue", 403, "the queue is the server's own"),
            Self::ForeignOrigin => {
                ("/problems/foreign-origin", 403, "the request comes from another site's page")
            }
            Self::ForeignHost => ("/problems/foreign-host", 421, "the request is for another host"),
            Self::NeedsTls => ("/problems/needs-tls", 426, "the server speaks TLS only"),
            Self::Timeout => ("/problems/timeout", 408, "the request did not arrive in time"),
            Self::Live => ("/problems/live", 409, "a live task has this key"),
            Self::Dead => ("/problems/dead", 409, "the task is dead"),
            Self::Draining => ("/problems/draining", 409, "the queue takes no new tasks"),
            Self::BackupUnderWay => ("/problems/backup-under-way", 409, "a backup is under way"),
            Self::TooMany => ("/problems/too-many", 409, "there are as many as there can be"),
            Self::Exists => ("/problems/exists", 409, "it already exists and differs"),
            Self::Timeline => ("/problems/timeline", 409, "the task has a timeline"),
            Self::QueueNotEmpty => ("/problems/queue-not-empty", 409, "the queue has tasks or schedules"),
            Self::Leased => ("/problems/leased", 409, "a worker has the task"),
            Self::VersionMismatch => ("/problems/version-mismatch", 412, "the version is another"),
            Self::BodyTooLarge => ("/problems/body-too-large", 413, "the body is too large"),
            Self::UriTooLong => ("/problems/uri-too-long", 414, "the URI is too long"),
            Self::BadMediaType => {
                ("/problems/bad-media-type", 415, "the body has a form that is not read here")
            }
            Self::HeadersTooLarge => ("/problems/headers-too-large", 431, "the headers are too large"),
            Self::Busy => ("/problems/busy", 429, "too much at once"),
            Self::BacklogFull => ("/problems/backlog-full", 429, "the queue has all the tasks it may have"),
            Self::Internal => ("/problems/internal", 500, "the server made a mistake"),
            Self::Starting => ("/problems/starting", 503, "the server is not ready yet"),
            Self::ServerDraining => ("/problems/server-draining", 503, "the server takes no new tasks"),
            Self::Stopping => ("/problems/stopping", 503, "the server is stopping"),
            Self::ReadOnly => ("/problems/read-only", 503, "the server is read-only"),
            Self::Indeterminate => ("/problems/indeterminate", 503, "the outcome is unknown"),
            Self::StorageFull => ("/problems/storage-full", 507, "the disk is full"),
        }
    }

    /// The relative URI that names the kind: `/problems/version-mismatch`.
    pub const fn type_uri(self) -> &'static str {
        self.parts().0
    }

    /// The HTTP status.
    pub const fn status(self) -> u16 {
        self.parts().1
    }

    /// The title, the same for every problem of the kind.
    pub const fn title(self) -> &'static str {
        self.parts().2
    }

    /// The kind with this type URI.
    pub fn of_type(uri: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.type_uri() == uri)
    }

    /// What it means and whether the call had an effect, and what to do.
    pub const fn explained(self) -> (&'static str, &'static str) {
        match self {
            Self::BadRequest => (
                "The body, a parameter or a header is not what the route takes; `member`, `parameter` or `header` names it. The call had no effect.",
                "Read `detail` and `hint`, and send something else: the same request is refused again.",
            ),
            Self::BadName => (
                "A queue name, key or schedule name that nothing can have. The call had no effect.",
                "Percent-encode names in paths. A queue name has 1 to 200 bytes of A-Z a-z 0-9 - + / ; . $ _ ( ), a key 1 to 256 bytes of UTF-8 without control characters.",
            ),
            Self::TooFar => (
                "The task would be due more than 100 years from now. It is refused and not clamped. The call had no effect.",
                "Check the unit: `at_ms` is milliseconds.",
            ),
            Self::ExpiresFirst => (
                "The task would be given up before it is due. The call had no effect.",
                "Make `expire_after` longer, or the task due earlier.",
            ),
            Self::NotFound => (
                "No live task has this key, or no dead one this number: there was none, it was cancelled, or it ended longer ago than the queue's history reaches.",
                "For a worker or canceller there is nothing left to do. For `mode=replace`, put with another mode.",
            ),
            Self::Done => (
                "The last task of this key was acked: its work is done. The call had no effect.",
                "There is nothing left to do. A plain PUT makes a new task.",
            ),
            Self::NoBackup => (
                "No backup has this number: there was none, it failed in an earlier life of the server, or it was removed.",
                "GET /v1/backups lists those there are.",
            ),
            Self::NoBackupDir => (
                "The server was started without a place for backups, or its tasks are kept in memory. The call had no effect.",
                "Start it with --backup-dir DIR and with a data directory.",
            ),
            Self::BackupUnderWay => (
                "The server makes one backup at a time. The call had no effect.",
                "Wait for its end: GET /v1/backups/{id} shows it, DELETE /v1/backups/{id} stops it.",
            ),
            Self::NoJob => (
                "No job has this number, or it was over before the last 100 that were.",
                "GET /v1/jobs lists those there are.",
            ),
            Self::NoSchedule => (
                "The queue has no schedule of this name.",
                "GET /v1/queues/{q}/schedules lists those there are.",
            ),
            Self::NoEndpoint => ("The path is none of this server's.", "GET /openapi.json has all of them."),
            Self::NoVirtualClock => (
                "The server runs on real time, and nobody moves that.",
                "For tests, start one with --virtual-clock.",
            ),
            Self::BadMethod => ("The path has no such method.", "The header `Allow` says which it has."),
            Self::Unauthorized => (
                "There is no token in `Authorization: Bearer TOKEN`, or one that the server does not know. The call had no effect.",
                "Send a token; `tickwheel token` makes one.",
            ),
            Self::Forbidden => (
                "The token is known and has not the right. The call had no effect.",
                "Use a token with the right that `detail` names.",
            ),
            Self::OwnQueue => (
                "The name `$jobs` is reserved for the server: earlier releases kept their jobs in that queue. The call had no effect.",
                "Use another name for the queue; GET /v1/jobs lists jobs and DELETE /v1/jobs/{id} stops one.",
            ),
            Self::OutOfScope => (
                "The queue is outside of the token's scope, whether it exists or not. The call had no effect.",
                "Use a token whose scope has the queue.",
            ),
            Self::ForeignOrigin => (
                "A browser says that a page of another site sent this. The call had no effect.",
                "Call from a program, or from a page of this server.",
            ),
            Self::ForeignHost => (
                "The server listens on its own machine only, and the request names another host. The call had no effect.",
                "Write localhost or 127.0.0.1; for a proxy that passes another name on, start the server with --allow-host.",
            ),
            Self::NeedsTls => (
                "The port speaks TLS. The call had no effect.",
                "Write `https` in place of `http` in the URL.",
            ),
            Self::Timeout => (
                "The request did not arrive in time: 5 s for its head, 30 s for its body. A batch that sends less than 1 KiB/s for 5 s makes way for one that waits. Of a batch, lines that were answered took effect.",
                "Send it in one piece.",
            ),
            Self::Live => (
                "A live task has this key already; `version` is its version. The call had no effect.",
                "Put without `mode=create` to replace it, or leave it.",
            ),
            Self::Dead => (
                "The task was given up, and the dead do not change. The call had no effect.",
                "Redrive it, or put a new one under its key.",
            ),
            Self::Draining => (
                "The queue is being drained and takes no new tasks. The call had no effect.",
                "POST /v1/queues/{q}/resume ends it.",
            ),
            Self::TooMany => (
                "There are as many of these as a server keeps. The call had no effect.",
                "Delete some that nobody needs.",
            ),
            Self::Exists => (
                "The settings of a queue, or a schedule, that were to be imported are there already and say something else. The line had no effect.",
                "Import with `existing=skip` to leave what is there, or with `existing=replace` to have what the file says.",
            ),
            Self::Timeline => (
                "The task has a timeline, and one instant of it cannot be changed alone. The call had no effect.",
                "Send the whole timeline.",
            ),
            Self::QueueNotEmpty => (
                "The queue has live tasks, dead tasks or schedules; `tasks`, `dead` and `schedules` say how many. The call had no effect.",
                "Remove its tasks with POST /v1/queues/{q}/purge, delete its schedules, and try again.",
            ),
            Self::Leased => (
                "A worker has the task. The call had no effect.",
                "Wait until it is done, or take it away with `revoke=true`: its worker then hears `revoked`.",
            ),
            Self::VersionMismatch => (
                "The version is another than `If-Match` says: somebody changed it. The call had no effect.",
                "Look at it again, and decide anew.",
            ),
            Self::BodyTooLarge => (
                "The body, a line or the number of lines is above the limit. The call had no effect; of a batch, lines that were answered had theirs.",
                "Keep large data elsewhere, and its name in the payload; send more batches.",
            ),
            Self::UriTooLong => {
                ("The URI is above the limit of 8 KiB. The call had no effect.", "Shorten it.")
            }
            Self::BadMediaType => (
                "The body has a type, a charset or a packing that is not read here. The call had no effect.",
                "Send JSON in UTF-8, unpacked.",
            ),
            Self::HeadersTooLarge => (
                "The headers are above the limit of 100 or 16 KiB. The call had no effect.",
                "Send fewer or shorter headers.",
            ),
            Self::Busy => (
                "A limit on connections, bodies, batches or jobs under way, or one of the token, is reached; `detail` names it. The call had no effect.",
                "Try again after `Retry-After` seconds; a token that has all its tasks waits until some of them are done.",
            ),
            Self::BacklogFull => (
                "The queue has as many live tasks as its `max_backlog` allows. The call had no effect.",
                "Try again after `Retry-After` seconds, or raise the limit.",
            ),
            Self::Internal => (
                "The server made a mistake. The call may have taken effect or not.",
                "Look at the task; report it with the server's log.",
            ),
            Self::Starting => (
                "The server reads its tasks. The call had no effect.",
                "Try again after `Retry-After` seconds.",
            ),
            Self::ServerDraining => (
                "The server was told to take no new tasks (POST /v1/drain, SIGUSR1); whatever it has goes on. The call had no effect.",
                "Put it elsewhere, or try again once the server takes new tasks: POST /v1/resume, or a new start.",
            ),
            Self::Stopping => (
                "The server takes no more calls. The call had no effect.",
                "Try again once it has been started again.",
            ),
            Self::ReadOnly => (
                "The store failed, and nothing is changed any more until the server is started again. The call had no effect.",
                "`tickwheel doctor --deep` says what is wrong; see to the disk, and start the server again.",
            ),
            Self::Indeterminate => (
                "The store failed or the server stopped while the call was under way. It may have taken effect or not.",
                "After a restart look at the task, or send the same call again: of one key there is never more than one live task.",
            ),
            Self::StorageFull => (
                "The disk is full. The call had no effect; acks and cancels are still taken.",
                "Give it room, or ack and cancel tasks.",
            ),
        }
    }
}
