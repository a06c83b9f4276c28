//! The table of the operations. The routes, the rights, `Allow`, the audit, `/openapi.json` and `docs/http.md` all come
//! from it.
//!
//! ```text
//! /// What it does: the summary in the documents.
//! Id: METHOD "path", right, flags {
//!     query: the parameters that may stand behind the `?`;
//!     headers: the request headers that have a meaning;
//!     body: the schema of the body, and whether it must be there;
//!     status content, "when it is answered", [its headers];
//!     refuses: the problems of this operation beside those of every operation;
//! }
//! ```
//!
//! The flags: `writes` is said of an operation that stores something, and `changes_many` of one that changes many tasks
//! or schedules with one call.

use super::operation::{
    Answer, Content, Needs, Operation, Right, may, may_lines, must, must_lines, operations,
};
use crate::ProblemKind;

operations! {
    /// Schedules the task of this key, or changes the one that is live.
    PutTask: PUT "/v1/queues/{q}/tasks/{key}", In(Produce), writes {
        query: "mode", "revoke";
        headers: "If-Match", "traceparent", "tracestate";
        body: may("Put");
        201 Json("Stored"), "It is new.", ["ETag", "Location"];
        200 Json("Stored"), "It replaced the live one.", ["ETag"];
        refuses: TooFar, ExpiresFirst, NotFound, Done, Live, Leased, Draining, ServerDraining, VersionMismatch, BacklogFull;
    }

    /// The live or dead task of this key.
    GetTask: GET "/v1/queues/{q}/tasks/{key}", In(Read) {
        200 Json("Task"), "The task.", ["ETag"];
        refuses: NotFound, Done;
    }

    /// Changes the live task; what is not named stays.
    PatchTask: PATCH "/v1/queues/{q}/tasks/{key}", In(Produce), writes {
        query: "revoke";
        headers: "If-Match";
        body: must("Patch");
        200 Json("Stored"), "It is changed.", ["ETag"];
        refuses: TooFar, ExpiresFirst, NotFound, Done, Dead, Leased, Timeline, VersionMismatch;
    }

    /// Cancels the task, with one definite answer.
    CancelTask: DELETE "/v1/queues/{q}/tasks/{key}", In(Produce), writes {
        query: "revoke";
        headers: "If-Match";
        200 Json("Cancelled"), "It is not delivered any more.";
        refuses: NotFound, Done, Leased, VersionMismatch;
    }

    /// Schedules a task under a key of the server's, or that of `Idempotency-Key`.
    PostTask: POST "/v1/queues/{q}/tasks", In(Produce), writes {
        headers: "Idempotency-Key", "traceparent", "tracestate";
        body: may("Post");
        201 Json("Stored"), "It is new.", ["ETag", "Location"];
        200 Json("Stored"), "The same `Idempotency-Key` made it before.", ["ETag"];
        refuses: TooFar, ExpiresFirst, Done, Draining, ServerDraining, BacklogFull;
    }

    /// One page of the tasks that are not dead, or of one state, in the order of `due_at`.
    ListTasks: GET "/v1/queues/{q}/tasks", In(Read) {
        query: "state", "due_from", "due_to", "tag", "limit", "cursor";
        200 Json("TasksPage"), "The page.";
    }

    /// Puts, patches and cancels, a line each, up to 10,000.
    Batch: POST "/v1/queues/{q}/batch", In(Produce), writes {
        headers: "traceparent", "tracestate";
        body: may_lines("BatchLine");
        200 Lines("BatchResult"), "A result for each line, in order; the lines are not atomic together. A batch that ends early, such as at its line 10,001, has a last result without a key. What the client still sends then is read and dropped, so the connection can be used again; beyond 64 MiB in all, or below 1 KiB/s, the connection is closed behind the answer.";
    }

    /// Cancels all tasks that a filter finds; what is put after it began is left alone.
    CancelTasks: POST "/v1/queues/{q}/cancel", In(Produce), writes, changes_many {
        body: must("BulkCancel");
        200 Json("BulkCancelled"), "It is done.";
        202 Json("Job"), "There are many: a job does it.", ["Location"];
    }

    /// Gives all tasks that a filter finds another time; all else of them stays. What is put or changed after it began is left alone.
    MoveTasks: POST "/v1/queues/{q}/move", In(Produce), writes, changes_many {
        body: must("BulkMove");
        200 Json("BulkMoved"), "It is done.";
        202 Json("Job"), "There are many: a job does it.", ["Location"];
        refuses: TooFar;
    }

    /// Removes all tasks of a queue, live and dead. Its settings and schedules stay, and what is put after it began is left alone.
    PurgeQueue: POST "/v1/queues/{q}/purge", In(Produce), writes, changes_many {
        body: may("Purge");
        200 Json("Purged"), "It is done.";
        202 Json("Job"), "There are many: a job does it.", ["Location"];
    }

    /// The jobs under way and the last 100 that are over, the newest first.
    ListJobs: GET "/v1/jobs", Somewhere(Read) {
        200 Json("Jobs"), "The jobs.";
    }

    /// How a job goes.
    GetJob: GET "/v1/jobs/{id}", Somewhere(Read) {
        200 Json("Job"), "The job.";
        refuses: NoJob;
    }

    /// Stops a job; what it has done stays, the up to 1,000 tasks that it is at included.
    StopJob: DELETE "/v1/jobs/{id}", Somewhere(Produce), writes, changes_many {
        200 Json("Job"), "The job.";
        refuses: NoJob;
    }

    /// Takes ready tasks to work on, and waits for one if none is ready.
    Lease: POST "/v1/queues/{q}/lease", In(Consume), writes {
        body: may("Lease");
        200 Json("LeasedTasks"), "The tasks.";
    }

    /// The work is done.
    Ack: POST "/v1/queues/{q}/ack", In(Consume), writes {
        body: must("Ack");
        200 Json("TokenResults"), "What became of each.";
    }

    /// The work failed: the tasks come again, or are dead.
    Nack: POST "/v1/queues/{q}/nack", In(Consume), writes {
        body: must("Nack");
        200 Json("TokenResults"), "What became of each.";
        refuses: TooFar;
    }

    /// The work takes longer: the leases go on.
    Extend: POST "/v1/queues/{q}/extend", In(Consume), writes {
        body: must("Extend");
        200 Json("TokenResults"), "What became of each.";
    }

    /// One page of the tasks that were given up, with their reasons.
    ListDead: GET "/v1/queues/{q}/dead", In(Read) {
        query: "due_from", "due_to", "tag", "limit", "cursor";
        200 Json("TasksPage"), "The page.";
    }

    /// Gives dead tasks another life.
    Redrive: POST "/v1/queues/{q}/dead/redrive", In(Admin), writes {
        body: may("Redrive");
        200 Json("RedrivenOneOrMany"), "For `key` and `id` the task, otherwise what became of each.";
        refuses: NotFound, Live, BacklogFull;
    }

    /// How many tasks fall due when, of a queue or of all. Those that schedules will put are not there yet, nor are later instants of timelines.
    Forecast: GET "/v1/forecast", Somewhere(Read) {
        query: "queue", "bucket", "span";
        200 Json("Forecast"), "The counts.";
        refuses: BadName, OutOfScope;
    }

    /// The queues that have tasks or settings, or had some within the last hour, with their tasks by state. Without `limit` all of them.
    ListQueues: GET "/v1/queues", Somewhere(Read) {
        query: "prefix", "limit", "cursor";
        200 Json("Queues"), "The queues.";
    }

    /// A queue: its tasks by state and its settings. One that was never used is empty.
    GetQueue: GET "/v1/queues/{q}", In(Read) {
        200 Json("Queue"), "The queue.";
    }

    /// Lays down all settings of a queue.
    PutQueue: PUT "/v1/queues/{q}", In(Admin), writes {
        body: must("Settings");
        200 Json("Queue"), "The queue.";
        refuses: TooMany;
    }

    /// Lays down some settings of a queue, and of `retry` and `history` some members; what is not named stays.
    PatchQueue: PATCH "/v1/queues/{q}", In(Admin), writes {
        body: may("Settings");
        200 Json("Queue"), "The queue.";
        refuses: TooMany;
    }

    /// Forgets a queue that has no tasks and no schedules: its settings, a pause and a drain are gone. It is there again at its next use.
    DeleteQueue: DELETE "/v1/queues/{q}", In(Admin), writes {
        200 Json("QueueDeleted"), "It is gone.";
        refuses: QueueNotEmpty;
    }

    /// Nothing is leased.
    PauseQueue: POST "/v1/queues/{q}/pause", In(Admin), writes {
        body: may("Pause");
        200 Json("Queue"), "The queue.";
        refuses: TooMany;
    }

    /// No task is added; what is there is worked off.
    DrainQueue: POST "/v1/queues/{q}/drain", In(Admin), writes {
        body: may("Nothing");
        200 Json("Queue"), "The queue.";
        refuses: TooMany;
    }

    /// The end of a pause and of a drain.
    ResumeQueue: POST "/v1/queues/{q}/resume", In(Admin), writes {
        body: may("Nothing");
        200 Json("Queue"), "The queue.";
        refuses: TooMany;
    }

    /// Lays down what is done again and again. The same again changes nothing.
    PutSchedule: PUT "/v1/queues/{q}/schedules/{name}", In(Produce), writes, changes_many {
        headers: "If-Match";
        body: must("Schedule");
        201 Json("ScheduleState"), "It is new.", ["ETag", "Location"];
        200 Json("ScheduleState"), "It stood here before.", ["ETag"];
        refuses: TooFar, ExpiresFirst, NoSchedule, VersionMismatch, TooMany;
    }

    /// A schedule, and how far it has come.
    GetSchedule: GET "/v1/queues/{q}/schedules/{name}", In(Read) {
        200 Json("ScheduleState"), "The schedule.", ["ETag"];
        refuses: NoSchedule;
    }

    /// It makes no more tasks; those that it has made stay.
    DeleteSchedule: DELETE "/v1/queues/{q}/schedules/{name}", In(Produce), writes, changes_many {
        headers: "If-Match";
        200 Json("ScheduleDeleted"), "It is gone.";
        refuses: NoSchedule, VersionMismatch;
    }

    /// One page of the schedules of a queue, by name.
    ListSchedules: GET "/v1/queues/{q}/schedules", In(Read) {
        query: "limit", "cursor";
        200 Json("SchedulesPage"), "The page.";
    }

    /// One page of the schedules of all queues that the token may know of, by queue and name.
    ListAllSchedules: GET "/v1/schedules", Somewhere(Read) {
        query: "limit", "cursor";
        200 Json("SchedulesPage"), "The page.";
    }

    /// The next instants, and what happens when the clocks change.
    PreviewSchedule: GET "/v1/queues/{q}/schedules/{name}/preview", In(Read) {
        query: "count";
        200 Json("Preview"), "The instants.";
        refuses: NoSchedule;
    }

    /// Moves a virtual clock; answers once all that fell due is ready.
    AdvanceClock: POST "/v1/clock/advance", Everywhere(Admin), writes {
        body: must("Advance");
        200 Json("Now"), "The time.";
        refuses: NoVirtualClock;
    }

    /// All tasks, dead tasks, settings and schedules that the token may know of, as lines.
    Export: GET "/v1/export", Somewhere(Read) {
        query: "queue", "cursor";
        200 Lines("ExportLine"), "The lines, as the client takes them. Only an export with its last line, `end`, is whole; where one cannot go on the connection breaks off, and `cursor` goes on from the last whole cursor line.";
        refuses: NotFound, OutOfScope, BadName;
    }

    /// Takes the lines of an export in, up to 10,000 behind the header, and up to the first that is refused.
    Import: POST "/v1/import", Somewhere(Admin), writes {
        query: "existing", "revoke", "other_clock", "quiet", "first_line";
        body: must_lines("ExportLine");
        200 Lines("ImportRow"), "What became of lines that were not plainly added, and at last the end. All lines before its `next_line` are in and durable, and none after. What stopped it is its `problem`: a line that cannot be read or is refused, a limit, a full disk.";
        refuses: OutOfScope, OwnQueue, BadName, TooFar, Live, Dead, Leased, Exists, TooMany, BacklogFull, ServerDraining;
    }

    /// The server takes no new tasks; leases, acks and schedules go on. It lasts until it is resumed or the server is started anew.
    DrainServer: POST "/v1/drain", Everywhere(Admin) {
        200 Json("Drained"), "It drains.";
    }

    /// The end of a drain of the server. Queues that were told to drain go on to drain.
    ResumeServer: POST "/v1/resume", Everywhere(Admin) {
        200 Json("Drained"), "It drains no more.";
    }

    /// Begins a backup of the server into the directory of `--backup-dir`, while it serves. One at a time; it goes on without the caller, and a restart of the server ends it.
    BeginBackup: POST "/v1/backups", Everywhere(Admin) {
        202 Json("Backup"), "It is under way.", ["Location"];
        refuses: BackupUnderWay, NoBackupDir;
    }

    /// The backup under way, the whole ones in the directory, and the last that failed or were stopped since the start; the newest first.
    ListBackups: GET "/v1/backups", Everywhere(Admin) {
        200 Json("Backups"), "The backups.";
        refuses: NoBackupDir;
    }

    /// How a backup goes.
    GetBackup: GET "/v1/backups/{id}", Everywhere(Admin) {
        200 Json("Backup"), "The backup.";
        refuses: NoBackup, NoBackupDir;
    }

    /// Stops a backup that is under way, and nothing is left of it; one that is whole stays.
    StopBackup: DELETE "/v1/backups/{id}", Everywhere(Admin) {
        200 Json("Backup"), "The backup. It is still `running` if it did not end within 5 s.";
        refuses: NoBackup, NoBackupDir;
    }

    /// Whether the process answers at all.
    IsAlive: GET "/healthz", Nothing {
        200 Json("Alive"), "It does.";
    }

    /// Whether it takes work.
    IsReady: GET "/readyz", Nothing {
        200 Json("Ready"), "It does.";
        503 Json("Ready"), "It does not, and says why.";
    }

    /// Figures for Prometheus.
    Metrics: GET "/metrics", Everywhere(Read) {
        200 Text(&["application/openmetrics-text; version=1.0.0; charset=utf-8", "text/plain; version=0.0.4; charset=utf-8"]), "The figures, as OpenMetrics, or in the text format 0.0.4 if `Accept` likes that better.";
    }

    /// This description, as OpenAPI 3.1.
    Openapi: GET "/openapi.json", Token {
        200 OpenApi, "The description.";
    }

    /// What a kind of problem means, and what to do about it.
    Problem: GET "/problems/{kind}", Token {
        200 JsonOrPage("ProblemPage"), "The kind; as a page if `Accept` names `text/html`.";
        refuses: NoEndpoint;
    }
}
