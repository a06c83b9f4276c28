//! The kinds of problems. Each is declared once: its path, its HTTP status, and its texts.

macro_rules! problem_kinds {
    ($($Kind:ident = $status:literal $path:literal $title:literal: $meaning:literal $remedy:literal)*) => {
        /// A kind of problem. It has a type URI, an HTTP status and a title; the detail of a [`Problem`](crate::Problem)
        /// tells about one case of it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ProblemKind {
            $(#[doc = concat!($status, ": ", $title, ". ", $meaning)] $Kind,)*
        }

        impl ProblemKind {
            /// All kinds, in the order of the documents.
            pub const ALL: [Self; [$($status),*].len()] = [$(Self::$Kind),*];

            /// The relative URI that names the kind, the HTTP status and the title.
            const fn parts(self) -> (&'static str, u16, &'static str) {
                match self {
                    $(Self::$Kind => (concat!("/problems/", $path), $status, $title),)*
                }
            }

            /// The meaning, with the effect of the call, and the remedy.
            #[must_use]
            pub const fn explained(self) -> (&'static str, &'static str) {
                match self {
                    $(Self::$Kind => ($meaning, $remedy),)*
                }
            }
        }
    };
}

// Name, status, last part of the URI, title; the meaning with the effect of the call; the remedy.
problem_kinds! {
    BadRequest = 400 "bad-request" "the request cannot be understood":
        "The body, a parameter or a header is not what the route takes; `member`, `parameter` or `header` names it. The call had no effect."
        "Read `detail` and `hint`, and send something else: the same request is refused again."
    BadName = 400 "bad-name" "the queue name or key is not allowed":
        "A queue name, key or schedule name that nothing can have. The call had no effect."
        "Percent-encode names in paths. A queue name has 1 to 200 bytes of A-Z a-z 0-9 - + / ; . $ _ ( ), a key 1 to 256 bytes of UTF-8 without control characters."
    TooFar = 400 "too-far" "the task would be due too far in the future":
        "The task would be due more than 100 years from now. It is refused and not clamped. The call had no effect."
        "Check the unit: `at_ms` is milliseconds."
    ExpiresFirst = 400 "expires-first" "the task would expire before it is due":
        "The task would be given up before it is due. The call had no effect."
        "Make `expire_after` longer, or the task due earlier."
    NotFound = 404 "not-found" "there is no such task":
        "No live task has this key, or no dead one this number: there was none, it was cancelled, or it ended longer ago than the queue's history reaches."
        "For a worker or canceller there is nothing left to do. For `mode=replace`, put with another mode."
    Done = 404 "done" "the task is done":
        "The last task of this key was acked: its work is done. The call had no effect."
        "There is nothing left to do. A plain PUT makes a new task."
    NoJob = 404 "no-job" "there is no such job":
        "No job has this number, or it was over before the last 100 that were."
        "GET /v1/jobs lists those there are."
    NoSchedule = 404 "no-schedule" "there is no such schedule":
        "The queue has no schedule of this name."
        "GET /v1/queues/{q}/schedules lists those there are."
    NoBackup = 404 "no-backup" "there is no such backup":
        "No backup has this number: there was none, it failed in an earlier life of the server, or it was removed."
        "GET /v1/backups lists those there are."
    NoBackupDir = 404 "no-backup-dir" "the server makes no backups":
        "The server was started without a place for backups, or its tasks are kept in memory. The call had no effect."
        "Start it with --backup-dir DIR and with a data directory."
    NoEndpoint = 404 "no-endpoint" "there is no such endpoint":
        "The path is none of this server's."
        "GET /openapi.json has all of them."
    NoVirtualClock = 404 "no-virtual-clock" "the server runs on real time":
        "The server runs on real time, and nobody moves that."
        "For tests, start one with --virtual-clock."
    BadMethod = 405 "bad-method" "the endpoint does not know this method":
        "The path has no such method."
        "The header `Allow` says which it has."
    Unauthorized = 401 "unauthorized" "the request needs a token":
        "There is no token in `Authorization: Bearer TOKEN`, or one that the server does not know. The call had no effect."
        "Send a token; `tickwheel token` makes one."
    Forbidden = 403 "forbidden" "the token does not have the right":
        "The token is known and has not the right. The call had no effect."
        "Use a token with the right that `detail` names."
    OutOfScope = 404 "out-of-scope" "there is no such queue for this token":
        "The queue is outside of the token's scope, whether it exists or not. The call had no effect."
        "Use a token whose scope has the queue."
    OwnQueue = 403 "own-queue" "the queue is the server's own":
        "The name `$jobs` is reserved for the server: earlier releases kept their jobs in that queue. The call had no effect."
        "Use another name for the queue; GET /v1/jobs lists jobs and DELETE /v1/jobs/{id} stops one."
    ForeignOrigin = 403 "foreign-origin" "the request comes from another site's page":
        "A browser says that a page of another site sent this. The call had no effect."
        "Call from a program, or from a page of this server."
    ForeignHost = 421 "foreign-host" "the request is for another host":
        "The server listens on its own machine only, and the request names another host. The call had no effect."
        "Write localhost or 127.0.0.1; for a proxy that passes another name on, start the server with --allow-host."
    NeedsTls = 426 "needs-tls" "the server speaks TLS only":
        "The port speaks TLS. The call had no effect."
        "Write `https` in place of `http` in the URL."
    Timeout = 408 "timeout" "the request did not arrive in time":
        "The request did not arrive in time: 5 s for its head, 30 s for its body. A batch that sends less than 1 KiB/s for 5 s makes way for one that waits. Of a batch, lines that were answered took effect."
        "Send it in one piece."
    Live = 409 "live" "a live task has this key":
        "A live task has this key already; `version` is its version. The call had no effect."
        "Put without `mode=create` to replace it, or leave it."
    Dead = 409 "dead" "the task is dead":
        "The task was given up, and the dead do not change. The call had no effect."
        "Redrive it, or put a new one under its key."
    Draining = 409 "draining" "the queue takes no new tasks":
        "The queue is being drained and takes no new tasks. The call had no effect."
        "POST /v1/queues/{q}/resume ends it."
    TooMany = 409 "too-many" "there are as many as there can be":
        "There are as many of these as a server keeps. The call had no effect."
        "Delete some that nobody needs."
    BackupUnderWay = 409 "backup-under-way" "a backup is under way":
        "The server makes one backup at a time. The call had no effect."
        "Wait for its end: GET /v1/backups/{id} shows it, DELETE /v1/backups/{id} stops it."
    Exists = 409 "exists" "it already exists and differs":
        "The settings of a queue, or a schedule, that were to be imported are there already and say something else. The line had no effect."
        "Import with `existing=skip` to leave what is there, or with `existing=replace` to have what the file says."
    Timeline = 409 "timeline" "the task has a timeline":
        "The task has a timeline, and one instant of it cannot be changed alone. The call had no effect."
        "Send the whole timeline."
    QueueNotEmpty = 409 "queue-not-empty" "the queue has tasks or schedules":
        "The queue has live tasks, dead tasks or schedules; `tasks`, `dead` and `schedules` say how many. The call had no effect."
        "Remove its tasks with POST /v1/queues/{q}/purge, delete its schedules, and try again."
    Leased = 409 "leased" "a worker has the task":
        "A worker has the task. The call had no effect."
        "Wait until it is done, or take it away with `revoke=true`: its worker then hears `revoked`."
    VersionMismatch = 412 "version-mismatch" "the version is another":
        "The version is another than `If-Match` says: somebody changed it. The call had no effect."
        "Look at it again, and decide anew."
    BodyTooLarge = 413 "body-too-large" "the body is too large":
        "The body, a line or the number of lines is above the limit. The call had no effect; of a batch, lines that were answered had theirs."
        "Keep large data elsewhere, and its name in the payload; send more batches."
    UriTooLong = 414 "uri-too-long" "the URI is too long":
        "The URI is above the limit of 8 KiB. The call had no effect."
        "Shorten it."
    BadMediaType = 415 "bad-media-type" "the body has a form that is not read here":
        "The body has a type, a charset or a packing that is not read here. The call had no effect."
        "Send JSON in UTF-8, unpacked."
    HeadersTooLarge = 431 "headers-too-large" "the headers are too large":
        "The headers are above the limit of 100 or 16 KiB. The call had no effect."
        "Send fewer or shorter headers."
    Busy = 429 "busy" "too much at once":
        "A limit on connections, bodies, batches or jobs under way, or one of the token, is reached; `detail` names it. The call had no effect."
        "Try again after `Retry-After` seconds; a token that has all its tasks waits until some of them are done."
    BacklogFull = 429 "backlog-full" "the queue has all the tasks it may have":
        "The queue has as many live tasks as its `max_backlog` allows. The call had no effect."
        "Try again after `Retry-After` seconds, or raise the limit."
    Internal = 500 "internal" "the server made a mistake":
        "The server made a mistake. The call may have taken effect or not."
        "Look at the task; report it with the server's log."
    Starting = 503 "starting" "the server is not ready yet":
        "The server reads its tasks. The call had no effect."
        "Try again after `Retry-After` seconds."
    Stopping = 503 "stopping" "the server is stopping":
        "The server takes no more calls. The call had no effect."
        "Try again once it has been started again."
    ServerDraining = 503 "server-draining" "the server takes no new tasks":
        "The server was told to take no new tasks (POST /v1/drain, SIGUSR1); whatever it has goes on. The call had no effect."
        "Put it elsewhere, or try again once the server takes new tasks: POST /v1/resume, or a new start."
    ReadOnly = 503 "read-only" "the server is read-only":
        "The store failed, and nothing is changed any more until the server is started again. The call had no effect."
        "`tickwheel doctor --deep` says what is wrong; see to the disk, and start the server again."
    Indeterminate = 503 "indeterminate" "the outcome is unknown":
        "The store failed or the server stopped while the call was under way. It may have taken effect or not."
        "After a restart look at the task, or send the same call again: of one key there is never more than one live task."
    StorageFull = 507 "storage-full" "the disk is full":
        "The disk is full. The call had no effect; acks and cancels are still taken."
        "Give it room, or ack and cancel tasks."
}

impl ProblemKind {
    /// The relative URI that names the kind: `/problems/version-mismatch`.
    #[must_use]
    pub const fn type_uri(self) -> &'static str {
        self.parts().0
    }

    /// The HTTP status.
    #[must_use]
    pub const fn status(self) -> u16 {
        self.parts().1
    }

    /// The title. It is the same for each problem of the kind.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.parts().2
    }

    /// The kind with this type URI.
    #[must_use]
    pub fn of_type(uri: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.type_uri() == uri)
    }
}
