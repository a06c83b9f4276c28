//! The operations: every path with its methods.

use std::collections::BTreeMap;

use crate::ProblemKind::{self, *};

/// One method of one path.
#[derive(Debug)]
pub struct Operation {
    /// Its name for programs that are generated: `putTask`.
    pub id: &'static str,
    /// `GET`; a `HEAD` is answered wherever a `GET` is.
    pub method: &'static str,
    /// The path, with its names in braces.
    pub path: &'static str,
    /// What it does, in a line.
    pub what: &'static str,
    /// Whom it is for, where a server has tokens.
    pub needs: Needs,
    /// The parameters that may stand behind the `?`.
    pub query: &'static [&'static str],
    /// The headers that mean something to it.
    pub headers: &'static [&'static str],
    /// What is sent.
    pub(super) body: Option<Body>,
    /// What is answered if all goes well.
    pub(super) answers: Vec<Answer>,
    /// What may go wrong with it in particular.
    pub(super) problems: &'static [ProblemKind],
    /// Whether it changes something that is kept.
    pub(super) writes: bool,
}

/// What a token has to allow.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum Needs {
    /// There need not be one.
    Nothing,
    /// Any.
    Token,
    /// This right, in the queue of the path.
    In(&'static str),
    /// This right, for some queue: of others nothing is shown.
    Somewhere(&'static str),
    /// This right, for all queues.
    Everywhere(&'static str),
}

#[derive(Debug)]
pub(super) struct Body {
    pub(super) schema: &'static str,
    pub(super) required: bool,
    /// Lines of JSON, and not one object.
    pub(super) lines: bool,
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) what: &'static str,
    pub(super) content: Content,
    pub(super) headers: &'static [&'static str],
}

#[derive(Debug)]
pub(super) enum Content {
    /// One object of this schema.
    Json(&'static str),
    /// One object of this schema, and the same as a page for browsers.
    JsonOrPage(&'static str),
    /// An object of this schema a line.
    Lines(&'static str),
    /// Text of one of these types.
    Text(&'static [&'static str]),
    /// This description itself.
    OpenApi,
}

const ANYTHING: &[&str] = &[];
const IF_MATCH: &[&str] = &["If-Match"];
const READ: Needs = Needs::In("read");
const PRODUCE: Needs = Needs::In("produce");
const CONSUME: Needs = Needs::In("consume");
const ADMIN: Needs = Needs::In("admin");

const OF_PUT: &[ProblemKind] = &[
    TooFar,
    ExpiresFirst,
    NotFound,
    Done,
    Live,
    Leased,
    Draining,
    ServerDraining,
    VersionMismatch,
    BacklogFull,
];
const OF_POST: &[ProblemKind] = &[TooFar, ExpiresFirst, Done, Draining, ServerDraining, BacklogFull];
const OF_PATCH: &[ProblemKind] =
    &[TooFar, ExpiresFirst, NotFound, Done, Dead, Leased, Timeline, VersionMismatch];
const OF_SCHEDULE: &[ProblemKind] = &[TooFar, ExpiresFirst, NoSchedule, VersionMismatch, TooMany];

impl Operation {
    fn new(
        id: &'static str,
        method: &'static str,
        path: &'static str,
        needs: Needs,
        what: &'static str,
    ) -> Self {
        let (query, headers, problems) = (ANYTHING, ANYTHING, &[] as &[_]);
        Self {
            id,
            method,
            path,
            what,
            needs,
            query,
            headers,
            body: None,
            answers: Vec::new(),
            problems,
            writes: false,
        }
    }

    fn query(self, query: &'static [&'static str]) -> Self {
        Self { query, ..self }
    }

    fn headers(self, headers: &'static [&'static str]) -> Self {
        Self { headers, ..self }
    }

    /// A body that may be left out, for its members all have defaults.
    fn body(self, schema: &'static str) -> Self {
        Self { body: Some(Body { schema, required: false, lines: false }), ..self }
    }

    fn needs_body(self, schema: &'static str) -> Self {
        Self { body: Some(Body { schema, required: true, lines: false }), ..self }
    }

    fn gives(mut self, status: u16, schema: &'static str, what: &'static str) -> Self {
        self.answers.push(Answer { status, what, content: Content::Json(schema), headers: &[] });
        self
    }

    /// The last answer has these headers.
    fn with(mut self, headers: &'static [&'static str]) -> Self {
        self.answers.last_mut().expect("an answer").headers = headers;
        self
    }

    fn gives_other(mut self, what: &'static str, content: Content) -> Self {
        self.answers.push(Answer { status: 200, what, content, headers: &[] });
        self
    }

    fn refuses(self, problems: &'static [ProblemKind]) -> Self {
        Self { problems, ..self }
    }

    fn writes(self) -> Self {
        Self { writes: true, ..self }
    }

    /// The names in its path.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
    }

    /// What may go wrong, by status.
    pub(super) fn all_problems(&self) -> BTreeMap<u16, Vec<ProblemKind>> {
        let mut kinds = vec![
            BadRequest,
            ForeignHost,
            NeedsTls,
            Timeout,
            UriTooLong,
            HeadersTooLarge,
            Busy,
            Internal,
            Stopping,
        ];
        if self.method != "GET" {
            kinds.push(ForeignOrigin);
        }
        match self.needs {
            Needs::Nothing => {}
            Needs::Token => kinds.push(Unauthorized),
            Needs::In(_) if self.method == "GET" => {
                kinds.extend([Unauthorized, Forbidden, OutOfScope, BadName])
            }
            Needs::In(_) => kinds.extend([Unauthorized, Forbidden, OutOfScope, OwnQueue, BadName]),
            Needs::Somewhere(_) | Needs::Everywhere(_) => kinds.extend([Unauthorized, Forbidden]),
        }
        // A name that is empty or has a bare `/` makes another path.
        if self.names().next().is_some() {
            kinds.push(NoEndpoint);
        }
        if self.path.starts_with("/v1/") {
            kinds.extend([ReadOnly, Indeterminate]);
        }
        if self.body.is_some() {
            kinds.extend([BodyTooLarge, BadMediaType]);
        }
        if self.writes {
            kinds.push(StorageFull);
        }
        kinds.extend(self.problems);
        let mut by_status: BTreeMap<u16, Vec<ProblemKind>> = BTreeMap::new();
        for kind in ProblemKind::ALL {
            if kinds.contains(&kind) {
                by_status.entry(kind.status()).or_default().push(kind);
            }
        }
        by_status
    }
}

/// Every operation of a server, in the order of the documents.
pub fn operations() -> Vec<Operation> {
    [tasks(), work(), dead(), queues(), schedules(), server()].into_iter().flatten().collect()
}

fn tasks() -> Vec<Operation> {
    let path = "/v1/queues/{q}/tasks/{key}";
    let all = "/v1/queues/{q}/tasks";
    // No lines are a batch, too.
    let batch = Body { schema: "BatchLine", required: false, lines: true };
    vec![
        Operation::new(
            "putTask",
            "PUT",
            path,
            PRODUCE,
            "Schedules the task of this key, or changes the one that is live",
        )
        .query(&["mode", "revoke"])
        .headers(&["If-Match", "traceparent", "tracestate"])
        .body("Put")
        .gives(201, "Stored", "It is new.")
        .with(&["ETag", "Location"])
        .gives(200, "Stored", "It replaced the live one.")
        .with(&["ETag"])
        .refuses(OF_PUT)
        .writes(),
        Operation::new("getTask", "GET", path, READ, "The live or dead task of this key")
            .gives(200, "Task", "The task.")
            .with(&["ETag"])
            .refuses(&[NotFound, Done]),
        Operation::new("patchTask", "PATCH", path, PRODUCE, "Changes the live task; what is not named stays")
            .query(&["revoke"])
            .headers(IF_MATCH)
            .needs_body("Patch")
            .gives(200, "Stored", "It is changed.")
            .with(&["ETag"])
            .refuses(OF_PATCH)
            .writes(),
        Operation::new("cancelTask", "DELETE", path, PRODUCE, "Cancels the task, with one definite answer")
            .query(&["revoke"])
            .headers(IF_MATCH)
            .gives(200, "Cancelled", "It is not delivered any more.")
            .refuses(&[NotFound, Done, Leased, VersionMismatch])
            .writes(),
        Operation::new(
            "postTask",
            "POST",
            all,
            PRODUCE,
            "Schedules a task under a key of the server's, or that of `Idempotency-Key`",
        )
        .headers(&["Idempotency-Key", "traceparent", "tracestate"])
        .body("Post")
        .gives(201, "Stored", "It is new.")
        .with(&["ETag", "Location"])
        .gives(200, "Stored", "The same `Idempotency-Key` made it before.")
        .with(&["ETag"])
        .refuses(OF_POST)
        .writes(),
        Operation::new(
            "listTasks",
            "GET",
            all,
            READ,
            "One page of the tasks that are not dead, or of one state, in the order of `due_at`",
        )
        .query(&["state", "due_from", "due_to", "tag", "limit", "cursor"])
        .gives(200, "TasksPage", "The page."),
        Operation {
            body: Some(batch),
            ..Operation::new(
                "batch",
                "POST",
                "/v1/queues/{q}/batch",
                PRODUCE,
                "Puts, patches and cancels, a line each, up to 10,000",
            )
            .headers(&["traceparent", "tracestate"])
            .gives_other(
                "A result for each line, in order; the lines are not atomic together. A batch that ends early, such as at its line 10,001, has a last result without a key. What the client still sends then is read and dropped, so the connection can be used again; beyond 64 MiB in all, or below 1 KiB/s, the connection is closed behind the answer.",
                Content::Lines("BatchResult"),
            )
            .writes()
        },
        Operation::new(
            "cancelTasks",
            "POST",
            "/v1/queues/{q}/cancel",
            PRODUCE,
            "Cancels all tasks that a filter finds; what is put after it began is left alone",
        )
        .needs_body("BulkCancel")
        .gives(200, "BulkCancelled", "It is done.")
        .gives(202, "Job", "There are many: a job does it.")
        .with(&["Location"])
        .writes(),
        Operation::new(
            "moveTasks",
            "POST",
            "/v1/queues/{q}/move",
            PRODUCE,
            "Gives all tasks that a filter finds another time; all else of them stays. What is put or changed after it began is left alone",
        )
        .needs_body("BulkMove")
        .gives(200, "BulkMoved", "It is done.")
        .gives(202, "Job", "There are many: a job does it.")
        .with(&["Location"])
        .refuses(&[TooFar])
        .writes(),
        Operation::new(
            "purgeQueue",
            "POST",
            "/v1/queues/{q}/purge",
            PRODUCE,
            "Removes all tasks of a queue, live and dead. Its settings and schedules stay, and what is put after it began is left alone",
        )
        .body("Purge")
        .gives(200, "Purged", "It is done.")
        .gives(202, "Job", "There are many: a job does it.")
        .with(&["Location"])
        .writes(),
        Operation::new(
            "listJobs",
            "GET",
            "/v1/jobs",
            Needs::Somewhere("read"),
            "The jobs under way and the last 100 that are over, the newest first",
        )
        .gives(200, "Jobs", "The jobs."),
        Operation::new("getJob", "GET", "/v1/jobs/{id}", Needs::Somewhere("read"), "How a job goes")
            .gives(200, "Job", "The job.")
            .refuses(&[NoJob]),
        Operation::new(
            "stopJob",
            "DELETE",
            "/v1/jobs/{id}",
            Needs::Somewhere("produce"),
            "Stops a job; what it has done stays, the up to 1,000 tasks that it is at included",
        )
        .gives(200, "Job", "The job.")
        .refuses(&[NoJob])
        .writes(),
    ]
}

fn work() -> Vec<Operation> {
    let verb = |id, path, what| Operation::new(id, "POST", path, CONSUME, what);
    vec![
        verb(
            "lease",
            "/v1/queues/{q}/lease",
            "Takes ready tasks to work on, and waits for one if none is ready",
        )
        .body("Lease")
        .gives(200, "LeasedTasks", "The tasks.")
        .writes(),
        verb("ack", "/v1/queues/{q}/ack", "The work is done")
            .needs_body("Ack")
            .gives(200, "TokenResults", "What became of each.")
            .writes(),
        verb("nack", "/v1/queues/{q}/nack", "The work failed: the tasks come again, or are dead")
            .needs_body("Nack")
            .gives(200, "TokenResults", "What became of each.")
            .refuses(&[TooFar])
            .writes(),
        verb("extend", "/v1/queues/{q}/extend", "The work takes longer: the leases go on")
            .needs_body("Extend")
            .gives(200, "TokenResults", "What became of each.")
            .writes(),
    ]
}

fn dead() -> Vec<Operation> {
    vec![
        Operation::new(
            "listDead",
            "GET",
            "/v1/queues/{q}/dead",
            READ,
            "One page of the tasks that were given up, with their reasons",
        )
        .query(&["due_from", "due_to", "tag", "limit", "cursor"])
        .gives(200, "TasksPage", "The page."),
        Operation::new(
            "redrive",
            "POST",
            "/v1/queues/{q}/dead/redrive",
            ADMIN,
            "Gives dead tasks another life",
        )
        .body("Redrive")
        .gives(200, "RedrivenOneOrMany", "For `key` and `id` the task, otherwise what became of each.")
        .refuses(&[NotFound, Live, BacklogFull])
        .writes(),
    ]
}

fn queues() -> Vec<Operation> {
    let path = "/v1/queues/{q}";
    let hold = |id, path, what| Operation::new(id, "POST", path, ADMIN, what);
    vec![
        Operation::new(
            "forecast",
            "GET",
            "/v1/forecast",
            Needs::Somewhere("read"),
            "How many tasks fall due when, of a queue or of all. Those that schedules will put are not there yet, nor are later instants of timelines",
        )
        .query(&["queue", "bucket", "span"])
        .gives(200, "Forecast", "The counts.")
        .refuses(&[BadName, OutOfScope]),
        Operation::new(
            "listQueues",
            "GET",
            "/v1/queues",
            Needs::Somewhere("read"),
            "The queues that have tasks or settings, or had some within the last hour, with their tasks by state. Without `limit` all of them",
        )
        .query(&["prefix", "limit", "cursor"])
        .gives(200, "Queues", "The queues."),
        Operation::new(
            "getQueue",
            "GET",
            path,
            READ,
            "A queue: its tasks by state and its settings. One that was never used is empty",
        )
        .gives(200, "Queue", "The queue."),
        Operation::new("putQueue", "PUT", path, ADMIN, "Lays down all settings of a queue")
            .needs_body("Settings")
            .gives(200, "Queue", "The queue.")
            .refuses(&[TooMany])
            .writes(),
        Operation::new(
            "patchQueue",
            "PATCH",
            path,
            ADMIN,
            "Lays down some settings of a queue, and of `retry` and `history` some members; what is not named stays",
        )
        .body("Settings")
        .gives(200, "Queue", "The queue.")
        .refuses(&[TooMany])
        .writes(),
        Operation::new(
            "deleteQueue",
            "DELETE",
            path,
            ADMIN,
            "Forgets a queue that has no tasks and no schedules: its settings, a pause and a drain are gone. It is there again at its next use",
        )
        .gives(200, "QueueDeleted", "It is gone.")
        .refuses(&[QueueNotEmpty])
        .writes(),
        hold("pauseQueue", "/v1/queues/{q}/pause", "Nothing is leased")
            .body("Pause")
            .gives(200, "Queue", "The queue.")
            .refuses(&[TooMany])
            .writes(),
        hold("drainQueue", "/v1/queues/{q}/drain", "No task is added; what is there is worked off")
            .body("Nothing")
            .gives(200, "Queue", "The queue.")
            .refuses(&[TooMany])
            .writes(),
        hold("resumeQueue", "/v1/queues/{q}/resume", "The end of a pause and of a drain")
            .body("Nothing")
            .gives(200, "Queue", "The queue.")
            .refuses(&[TooMany])
            .writes(),
    ]
}

fn schedules() -> Vec<Operation> {
    let path = "/v1/queues/{q}/schedules/{name}";
    vec![
        Operation::new(
            "putSchedule",
            "PUT",
            path,
            PRODUCE,
            "Lays down what is done again and again. The same again changes nothing",
        )
        .headers(IF_MATCH)
        .needs_body("Schedule")
        .gives(201, "ScheduleState", "It is new.")
        .with(&["ETag", "Location"])
        .gives(200, "ScheduleState", "It stood here before.")
        .with(&["ETag"])
        .refuses(OF_SCHEDULE)
        .writes(),
        Operation::new("getSchedule", "GET", path, READ, "A schedule, and how far it has come")
            .gives(200, "ScheduleState", "The schedule.")
            .with(&["ETag"])
            .refuses(&[NoSchedule]),
        Operation::new(
            "deleteSchedule",
            "DELETE",
            path,
            PRODUCE,
            "It makes no more tasks; those that it has made stay",
        )
        .headers(IF_MATCH)
        .gives(200, "ScheduleDeleted", "It is gone.")
        .refuses(&[NoSchedule, VersionMismatch])
        .writes(),
        Operation::new(
            "listSchedules",
            "GET",
            "/v1/queues/{q}/schedules",
            READ,
            "One page of the schedules of a queue, by name",
        )
        .query(&["limit", "cursor"])
        .gives(200, "SchedulesPage", "The page."),
        Operation::new(
            "listAllSchedules",
            "GET",
            "/v1/schedules",
            Needs::Somewhere("read"),
            "One page of the schedules of all queues that the token may know of, by queue and name",
        )
        .query(&["limit", "cursor"])
        .gives(200, "SchedulesPage", "The page."),
        Operation::new(
            "previewSchedule",
            "GET",
            "/v1/queues/{q}/schedules/{name}/preview",
            READ,
            "The next instants, and what happens when the clocks change",
        )
        .query(&["count"])
        .gives(200, "Preview", "The instants.")
        .refuses(&[NoSchedule]),
    ]
}

fn server() -> Vec<Operation> {
    let get = |id, path, needs, what| Operation::new(id, "GET", path, needs, what);
    vec![
        Operation::new(
            "advanceClock",
            "POST",
            "/v1/clock/advance",
            Needs::Everywhere("admin"),
            "Moves a virtual clock; answers once all that fell due is ready",
        )
        .needs_body("Advance")
        .gives(200, "Now", "The time.")
        .refuses(&[NoVirtualClock])
        .writes(),
        get(
            "export",
            "/v1/export",
            Needs::Somewhere("read"),
            "All tasks, dead tasks, settings and schedules that the token may know of, as lines",
        )
        .query(&["queue", "cursor"])
        .gives_other(
            "The lines, as the client takes them. Only an export with its last line, `end`, is whole; where one cannot go on the connection breaks off, and `cursor` goes on from the last whole cursor line.",
            Content::Lines("ExportLine"),
        )
        .refuses(&[NotFound, OutOfScope, BadName]),
        Operation {
            body: Some(Body { schema: "ExportLine", required: true, lines: true }),
            ..Operation::new(
                "import",
                "POST",
                "/v1/import",
                Needs::Somewhere("admin"),
                "Takes the lines of an export in, up to 10,000 behind the header, and up to the first that is refused",
            )
            .query(&["existing", "revoke", "other_clock", "quiet", "first_line"])
            .gives_other(
                "What became of lines that were not plainly added, and at last the end. All lines before its `next_line` are in and durable, and none after. What stopped it is its `problem`: a line that cannot be read or is refused, a limit, a full disk.",
                Content::Lines("ImportRow"),
            )
            .refuses(&[OutOfScope, OwnQueue, BadName, TooFar, Live, Dead, Leased, Exists, TooMany, BacklogFull, ServerDraining])
            .writes()
        },
        Operation::new(
            "drainServer",
            "POST",
            "/v1/drain",
            Needs::Everywhere("admin"),
            "The server takes no new tasks; leases, acks and schedules go on. It lasts until it is resumed or the server is started anew",
        )
        .gives(200, "Drained", "It drains."),
        Operation::new(
            "resumeServer",
            "POST",
            "/v1/resume",
            Needs::Everywhere("admin"),
            "The end of a drain of the server. Queues that were told to drain go on to drain",
        )
        .gives(200, "Drained", "It drains no more."),
        Operation::new(
            "beginBackup",
            "POST",
            "/v1/backups",
            Needs::Everywhere("admin"),
            "Begins a backup of the server into the directory of `--backup-dir`, while it serves. One at a time; it goes on without the caller, and a restart of the server ends it",
        )
        .gives(202, "Backup", "It is under way.")
        .with(&["Location"])
        .refuses(&[BackupUnderWay, NoBackupDir]),
        Operation::new(
            "listBackups",
            "GET",
            "/v1/backups",
            Needs::Everywhere("admin"),
            "The backup under way, the whole ones in the directory, and the last that failed or were stopped since the start; the newest first",
        )
        .gives(200, "Backups", "The backups.")
        .refuses(&[NoBackupDir]),
        Operation::new("getBackup", "GET", "/v1/backups/{id}", Needs::Everywhere("admin"), "How a backup goes")
            .gives(200, "Backup", "The backup.")
            .refuses(&[NoBackup, NoBackupDir]),
        Operation::new(
            "stopBackup",
            "DELETE",
            "/v1/backups/{id}",
            Needs::Everywhere("admin"),
            "Stops a backup that is under way, and nothing is left of it; one that is whole stays",
        )
        .gives(200, "Backup", "The backup. It is still `running` if it did not end within 5 s.")
        .refuses(&[NoBackup, NoBackupDir]),
        get("isAlive", "/healthz", Needs::Nothing, "Whether the process answers at all")
            .gives(200, "Alive", "It does."),
        get("isReady", "/readyz", Needs::Nothing, "Whether it takes work")
            .gives(200, "Ready", "It does.")
            .gives(503, "Ready", "It does not, and says why."),
        get("metrics", "/metrics", Needs::Everywhere("read"), "Figures for Prometheus").gives_other(
            "The figures, as OpenMetrics, or in the text format 0.0.4 if `Accept` likes that better.",
            Content::Text(&[
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
                "text/plain; version=0.0.4; charset=utf-8",
            ]),
        ),
        get("openapi", "/openapi.json", Needs::Token, "This description, as OpenAPI 3.1")
            .gives_other("The description.", Content::OpenApi),
        get(
            "problem",
            "/problems/{kind}",
            Needs::Token,
            "What a kind of problem means, and what to do about it",
        )
        .gives_other("The kind; as a page if `Accept` names `text/html`.", Content::JsonOrPage("ProblemPage"))
        .refuses(&[NoEndpoint]),
    ]
}
