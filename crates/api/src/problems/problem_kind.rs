//! The kinds of problems. Each is declared once: its path, its HTTP status, and its texts.

use crate::declare::{body, has, number, text};

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
        "The body, a parameter or a header is wrong for the route; `member`, `parameter` or `header` names it. The call had no effect."
        "Read `detail` and `hint`, and correct the request: the same request is refused again."
    BadName = 400 "bad-name" "the queue name or key is not allowed":
        "A queue name, a key or a schedule name is not allowed. The call had no effect."
        "Percent-encode names in paths. A queue name has 1 to 200 bytes of A-Z a-z 0-9 - + / ; . $ _ ( ), a key 1 to 256 bytes of UTF-8 without control characters."
    TooFar = 400 "too-far" "the task would be due too far in the future":
        "The task would be due later than the server or the token allows, at most 100 years from now. The time is refused and not clamped. The call had no effect."
        "Check the unit: `at_ms` is milliseconds."
    ExpiresFirst = 400 "expires-first" "the task would expire before it is due":
        "The task would expire before it is due. The call had no effect."
        "Make `expire_after` longer, or the due time earlier."
    NotFound = 404 "not-found" "there is no such task":
        "No live task has this key, or no dead task has this key or id. The task never existed, was cancelled, or ended longer ago than the queue's history reaches."
        "After a cancel there is nothing left to do. Instead of a put with `mode=replace`, use another mode."
    Done = 404 "done" "the task is done":
        "The last task of this key was acked, so its work is done. The call had no effect."
        "There is nothing left to do. A plain PUT makes a new task."
    NoTarget = 404 "no-target" "the queue has no target":
        "The queue has no target, so the server sends its tasks nowhere. The call had no effect."
        "PUT /v1/queues/{q}/target gives the queue a target."
    NoJob = 404 "no-job" "there is no such job":
        "No job has this number, or the job is not among the last 100 that ended."
        "GET /v1/jobs lists the jobs."
    NoSchedule = 404 "no-schedule" "there is no such schedule":
        "The queue has no schedule of this name."
        "GET /v1/queues/{q}/schedules lists the schedules."
    NoBackup = 404 "no-backup" "there is no such backup":
        "No backup has this number. The backup never existed, was removed, or failed before the last start of the server."
        "GET /v1/backups lists the backups."
    NoBackupDir = 404 "no-backup-dir" "the server makes no backups":
        "The server was started without a backup directory, or it keeps its tasks in memory or in PostgreSQL. The call had no effect."
        "Start the server with `--backup-dir DIR` and with a data directory. On PostgreSQL, make a backup of the database."
    NoEndpoint = 404 "no-endpoint" "there is no such endpoint":
        "The server has no such path."
        "GET /openapi.json lists all paths."
    NoVirtualClock = 404 "no-virtual-clock" "the server runs on real time":
        "The server runs on real time, and its clock cannot be moved."
        "For tests, start a server with `--virtual-clock`."
    BadMethod = 405 "bad-method" "the endpoint does not know this method":
        "The path has no such method."
        "The header `Allow` lists the methods of the path."
    Unauthorized = 401 "unauthorized" "the request needs a token":
        "The request has no header `Authorization: Bearer TOKEN`, or the server does not know the token. The call had no effect."
        "Send a token; `tickwheel token` makes one."
    Forbidden = 403 "forbidden" "the token does not have the right":
        "The server knows the token, but the token does not have the right for this call. The call had no effect."
        "Use a token with the right that `detail` names."
    OutOfScope = 404 "out-of-scope" "there is no such queue for this token":
        "The queue is outside of the token's scope; the server does not say whether it exists. The call had no effect."
        "Use a token whose scope contains the queue."
    OwnQueue = 403 "own-queue" "the queue is the server's own":
        "The name `$jobs` is reserved for the server. The call had no effect."
        "Use another name for the queue; GET /v1/jobs lists jobs and DELETE /v1/jobs/{id} stops one."
    ForeignOrigin = 403 "foreign-origin" "the request comes from another site's page":
        "The headers of the browser say that a page of another site sent this request. The call had no effect."
        "Call from a program, or from a page of this server."
    ForeignHost = 421 "foreign-host" "the request is for another host":
        "The server listens on its own machine only, and the request names another host. The call had no effect."
        "Write localhost or 127.0.0.1; for a proxy that passes another name on, start the server with `--allow-host`."
    NeedsTls = 426 "needs-tls" "the server speaks TLS only":
        "The port speaks TLS. The call had no effect."
        "Write `https` in place of `http` in the URL."
    Timeout = 408 "timeout" "the request did not arrive in time":
        "The request did not arrive in time: 5 s for its head, 30 s for its body, 10 minutes for a batch or an import. A batch or an import that sends less than 1 KiB/s for 5 s is ended if another one waits. The lines of a batch that were answered took effect."
        "Send it in one piece."
    Live = 409 "live" "a live task has this key":
        "A live task has this key already; `version` is its version. The call had no effect."
        "Put without `mode=create` to replace the live task, or leave it as it is."
    Dead = 409 "dead" "the task is dead":
        "The task is dead, and a dead task cannot be changed. The call had no effect."
        "Redrive the task, or put a new one under its key."
    Draining = 409 "draining" "the queue takes no new tasks":
        "The queue is being drained and takes no new tasks. The call had no effect."
        "POST /v1/queues/{q}/resume ends the draining."
    TooMany = 409 "too-many" "the limit on their number is reached":
        "The server keeps no more things of this kind; `detail` names the kind and the limit. The call had no effect."
        "Delete some that are no longer needed."
    OrderConflict = 409 "order-conflict" "the queue has another limit":
        "A target with the order `group` needs a queue whose `max_in_flight_per_group` is 1, and the queue has another value. The call had no effect."
        "Set `max_in_flight_per_group` to 1 or to `null`, or give the target another order."
    NoSecretKey = 409 "no-secret-key" "the server has no key for secrets":
        "The server would have to encrypt a secret, or to read one that is encrypted, and does not have the key. The call had no effect."
        "Start the server with `--secret-key-file`, or use a secret of the server's configuration: `{\"name\": \"orders\"}`."
    BackupUnderWay = 409 "backup-under-way" "a backup is under way":
        "The server makes one backup at a time, and another one is under way. With `--backup-every` a server begins its first backup right after its start. The call had no effect."
        "Repeat the call after the end of the other one: GET /v1/backups/{id} shows it, DELETE /v1/backups/{id} stops it."
    Exists = 409 "exists" "it already exists and differs":
        "The server already has the settings or the schedule of this line of the import, and they differ. The line had no effect."
        "Import with `existing=skip` to keep what the server has, or with `existing=replace` to replace it by the line of the file."
    Timeline = 409 "timeline" "the task has a timeline":
        "The task has a timeline, and one instant of it cannot be changed alone. The call had no effect."
        "Send the whole timeline."
    QueueNotEmpty = 409 "queue-not-empty" "the queue has tasks or schedules":
        "The queue has live tasks, dead tasks or schedules; `tasks`, `dead` and `schedules` say how many. The call had no effect."
        "Remove its tasks with POST /v1/queues/{q}/purge, delete its schedules, and try again."
    Leased = 409 "leased" "a worker has the task":
        "A worker has the task. The call had no effect."
        "Wait until the task is done, or take it from the worker with `revoke=true`, or with POST /v1/queues/{q}/tasks/{key}/release: later calls of the worker are answered `revoked`."
    NotLeased = 409 "not-leased" "no worker has the task":
        "No worker has the task, so there is nothing to release. The call had no effect."
        "There is nothing left to do: a ready task goes to the next worker, and POST /v1/queues/{q}/tasks/{key}/run makes a scheduled one due now."
    VersionMismatch = 412 "version-mismatch" "the version is another":
        "The version differs from the one in `If-Match`: the task, the schedule or the target was changed meanwhile. The call had no effect."
        "Get it again, and decide anew."
    BodyTooLarge = 413 "body-too-large" "the body is too large":
        "The body, a line or the number of lines is above the limit. The call had no effect, except for lines of a batch that were answered."
        "Store large data elsewhere, and put its name into the payload. Send more lines in several batches."
    UriTooLong = 414 "uri-too-long" "the URI is too long":
        "The URI is above the limit of 8 KiB. The call had no effect."
        "Shorten the URI."
    BadMediaType = 415 "bad-media-type" "the server does not read this type of body":
        "The server does not read the content type, the charset or the content encoding of the body. The call had no effect."
        "Send JSON in UTF-8 without compression."
    HeadersTooLarge = 431 "headers-too-large" "the headers are too large":
        "The headers are above the limit of 100 or 16 KiB. The call had no effect."
        "Send fewer or shorter headers."
    Busy = 429 "busy" "a limit is reached":
        "A limit on connections, bodies, batches or jobs, or a quota of the token, is reached; `detail` names it. The call had no effect."
        "Try again after `Retry-After` seconds. If the quota of tasks is used up, wait until some of them are done."
    BacklogFull = 429 "backlog-full" "the queue has all the tasks it may have":
        "The queue has as many live tasks as its `max_backlog` allows. The call had no effect."
        "Try again after `Retry-After` seconds, or raise the limit."
    Internal = 500 "internal" "the server made a mistake":
        "The server made a mistake. The call may have taken effect or not."
        "Look at the task, and report the error with the server's log."
    Unsupported = 501 "unsupported" "the program does not have this kind of target":
        "The program was built without this kind of target. The call had no effect."
        "Use a program with the feature that `detail` names, which the packages have, or another kind of target."
    Starting = 503 "starting" "the server is not ready yet":
        "The server is still reading its tasks, another server has them, or its database has not confirmed a commit for long. The call had no effect."
        "Try again after `Retry-After` seconds."
    Stopping = 503 "stopping" "the server is stopping":
        "The server is stopping and takes no more calls. The call had no effect."
        "Try again once the server has been started again."
    ServerDraining = 503 "server-draining" "the server takes no new tasks":
        "The server was told to take no new tasks (POST /v1/drain, SIGUSR1); it goes on with those that it has. The call had no effect."
        "Put the task elsewhere, or try again once the server takes new tasks: POST /v1/resume, or a new start."
    ReadOnly = 503 "read-only" "the server is read-only":
        "The store failed, and the server changes nothing more until the cause is mended. The call had no effect."
        "`tickwheel doctor --deep` says what is wrong with a data directory. Repair the disk, and start the server again. A database is tried again without a restart."
    Indeterminate = 503 "indeterminate" "the outcome is unknown":
        "The store failed, its database did not answer in time, or the server stopped while the call was under way. The call may have taken effect or not."
        "Once the server answers again, look at the task, or send the same call again: a key never has more than one live task."
    NoDescriptors = 503 "no-descriptors" "the server has no file descriptor left":
        "The store of the server gets no file descriptor for its next file. The call had no effect; acks and cancels are still taken."
        "Try again after `Retry-After` seconds. If it lasts, raise the limit of open files of the server."
    StorageFull = 507 "storage-full" "the disk is full":
        "The disk is full. The call had no effect; acks and cancels are still taken."
        "Free space on the disk, or ack and cancel tasks."
}

impl ProblemKind {
    /// The relative URI that names the kind: `/problems/version-mismatch`.
    #[must_use]
    pub const fn type_uri(self) -> &'static str {
        self.parts().0
    }

    /// The last part of the URI: `version-mismatch`.
    pub(crate) fn path(self) -> &'static str {
        self.type_uri().trim_start_matches("/problems/")
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

    /// The page about the kind.
    pub fn page(self) -> ProblemPage {
        let (type_uri, status, title) = self.parts();
        let (meaning, remedy) = self.explained();
        let [type_uri, title, meaning, remedy] = [type_uri, title, meaning, remedy].map(str::to_owned);
        ProblemPage { type_uri, status, title, meaning, remedy }
    }

    /// The kind with this type URI.
    #[must_use]
    pub fn of_type(uri: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.type_uri() == uri)
    }
}

body! {
    /// A kind of problem.
    ///
    /// The answer to `GET /problems/{kind}`.
    pub struct ProblemPage: answer "ProblemPage" {
        /// The kind.
        type_uri as "type": String = has(text(256, ""));
        /// The HTTP status of the kind.
        status: u16 = has(number(400, 599));
        /// The title of the kind.
        title: String = has(text(256, ""));
        /// The meaning of the problem, and whether the call had an effect.
        meaning: String = has(text(4_096, ""));
        /// The remedy: what to do.
        remedy: String = has(text(4_096, ""));
    }
}
