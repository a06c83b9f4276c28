//! The table of the operations. The routes, the rights, `Allow`, the audit, `/openapi.json` and `docs/reference/http.md` all come
//! from it.
//!
//! ```text
//! /// The summary in the documents.
//! Id: METHOD "path", right, flags {
//!     query: the parameters of the query;
//!     headers: the request headers that have a meaning;
//!     body: the schema of the body, and whether it must be there;
//!     status content, "when it is answered", [its headers];
//!     refuses: the problems of this operation beside those of every operation;
//! }
//! ```
//!
//! The flags: `writes` marks an operation that changes stored data, and `changes_many` one that changes many tasks
//! or schedules with one call.

use super::operation::{Answer, Content, Needs, Operation, may, may_lines, must, must_lines, operations};
use crate::ProblemKind;
use crate::values::right::Right;

operations! {
    /// Puts a task under this key, or replaces the live one.
    PutTask: PUT "/v1/queues/{q}/tasks/{key}", In(Produce), writes {
        query: "mode", "revoke";
        headers: "If-Match", "traceparent", "tracestate";
        body: may("Put");
        201 Json("Stored"), "The task is new.", ["ETag", "Location"];
        200 Json("Stored"), "The live task is replaced.", ["ETag"];
        refuses: TooFar, ExpiresFirst, NotFound, Done, Live, Leased, Draining, ServerDraining, VersionMismatch, BacklogFull;
    }

    /// Returns the live or dead task with this key.
    GetTask: GET "/v1/queues/{q}/tasks/{key}", In(Read) {
        200 Json("Task"), "The task.", ["ETag"];
        refuses: NotFound, Done;
    }

    /// Returns the story of a task: what happened to it, what comes, and in a few sentences why it does not run now. It is made from what the server keeps of the task anyway. If the queue has a target, the story has its state, too, and the last attempt to send the task.
    GetStory: GET "/v1/queues/{q}/tasks/{key}/story", In(Read) {
        200 Json("Story"), "The story of the live or dead task with this key, or of one that is done.";
        refuses: NotFound;
    }

    /// Changes the live task. Members that the body leaves out keep their values.
    PatchTask: PATCH "/v1/queues/{q}/tasks/{key}", In(Produce), writes {
        query: "revoke";
        headers: "If-Match";
        body: must("Patch");
        200 Json("Stored"), "The task is changed.", ["ETag"];
        refuses: TooFar, ExpiresFirst, NotFound, Done, Dead, Leased, Timeline, VersionMismatch;
    }

    /// Cancels the task. The answer is definite: no delivery starts after it, or the problem says why the task stays.
    CancelTask: DELETE "/v1/queues/{q}/tasks/{key}", In(Produce), writes {
        query: "revoke";
        headers: "If-Match";
        200 Json("Cancelled"), "The task is not delivered any more.";
        refuses: NotFound, Done, Leased, VersionMismatch;
    }

    /// Makes a scheduled task due now. Everything else in the task stays, also the later instants of a timeline. A task that is ready already is returned as it stands.
    RunTask: POST "/v1/queues/{q}/tasks/{key}/run", In(Produce), writes {
        headers: "If-Match";
        body: may("Nothing");
        200 Json("Stored"), "The task is ready.", ["ETag"];
        refuses: NotFound, Done, Dead, Leased, VersionMismatch;
    }

    /// Takes a leased task from its worker. The task is ready at once; the attempt counts, and never makes the task dead. The token of the lease is answered `revoked` from then on.
    ReleaseTask: POST "/v1/queues/{q}/tasks/{key}/release", In(Produce), writes {
        headers: "If-Match";
        body: may("Nothing");
        200 Json("Stored"), "The task is ready, or dead if it has expired.", ["ETag"];
        refuses: NotFound, Done, NotLeased, VersionMismatch;
    }

    /// Puts a task under the key in `Idempotency-Key`, or under a key that the server chooses.
    PostTask: POST "/v1/queues/{q}/tasks", In(Produce), writes {
        headers: "Idempotency-Key", "traceparent", "tracestate";
        body: may("Post");
        201 Json("Stored"), "The task is new.", ["ETag", "Location"];
        200 Json("Stored"), "An earlier call with the same `Idempotency-Key` put the task.", ["ETag"];
        refuses: TooFar, ExpiresFirst, Done, Draining, ServerDraining, BacklogFull;
    }

    /// Lists the tasks that are not dead, or those in one state, page by page.
    ListTasks: GET "/v1/queues/{q}/tasks", In(Read) {
        query: "state", "due_from", "due_to", "tag", "group", "key", "key_contains", "limit", "cursor", "payloads";
        200 Json("TasksPage"), "The page.";
    }

    /// Finds the live or dead tasks with one key in all queues that the token may see. It looks into 10,000 queues at most, 16 at a time, and into no more after 1,000 tasks or 16 MiB of payloads.
    TasksOfKey: GET "/v1/tasks", Somewhere(Read), query_required {
        query: "key";
        200 Json("TasksOfKey"), "The tasks.";
    }

    /// Runs up to 10,000 puts, patches and cancels, each on a line of its own.
    Batch: POST "/v1/queues/{q}/batch", In(Produce), writes {
        headers: "traceparent", "tracestate";
        body: may_lines("BatchLine");
        200 Lines("BatchResult"), "A result for each line, in the same order. Each line takes effect by itself. If the batch ends early, for example at line 10,001, the last result has no key. The rest of the request is then read and dropped, so that the connection can be used again. If the request has more than 64 MiB, or arrives with less than 1 KiB/s, the connection is closed after the answer.";
    }

    /// Cancels all tasks that a filter finds, except for tasks that are put after the call began.
    CancelTasks: POST "/v1/queues/{q}/cancel", In(Produce), writes, changes_many {
        body: must("BulkCancel");
        200 Json("BulkCancelled"), "The tasks are cancelled.";
        202 Json("Job"), "There are many tasks, so a job does the work.", ["Location"];
    }

    /// Gives all tasks that a filter finds another due time, except for tasks that are put or changed after the call began. Everything else in the tasks stays.
    MoveTasks: POST "/v1/queues/{q}/move", In(Produce), writes, changes_many {
        body: must("BulkMove");
        200 Json("BulkMoved"), "The tasks are moved.";
        202 Json("Job"), "There are many tasks, so a job does the work.", ["Location"];
        refuses: TooFar;
    }

    /// Removes all tasks of a queue, live and dead, except for tasks that are put after the call began. The settings and schedules of the queue stay.
    PurgeQueue: POST "/v1/queues/{q}/purge", In(Produce), writes, changes_many {
        body: may("Purge");
        200 Json("Purged"), "The tasks are removed.";
        202 Json("Job"), "There are many tasks, so a job does the work.", ["Location"];
    }

    /// Lists the jobs under way and the last 100 that ended, the newest first.
    ListJobs: GET "/v1/jobs", Somewhere(Read) {
        200 Json("Jobs"), "The jobs.";
    }

    /// Returns the state and the counts of a job.
    GetJob: GET "/v1/jobs/{id}", Somewhere(Read) {
        200 Json("Job"), "The job.";
        refuses: NoJob;
    }

    /// Stops a job. Its changes so far stay, including those of the page of up to 1,000 tasks that it is at.
    StopJob: DELETE "/v1/jobs/{id}", Somewhere(Produce), writes, changes_many {
        200 Json("Job"), "The job.";
        refuses: NoJob;
    }

    /// Leases ready tasks. If none is ready, the call waits for one, for at most `wait`.
    Lease: POST "/v1/queues/{q}/lease", In(Consume), writes {
        body: may("Lease");
        200 Json("LeasedTasks"), "The leased tasks.";
    }

    /// Lists the leases that run: which worker has which task of the queues inside the token's scope, page by page.
    ListLeases: GET "/v1/leases", Somewhere(Read) {
        query: "queue", "worker", "limit", "cursor";
        200 Json("LeasesPage"), "The page.";
        refuses: BadName, OutOfScope;
    }

    /// Ends leases because the tasks are done.
    Ack: POST "/v1/queues/{q}/ack", In(Consume), writes {
        body: must("Ack");
        200 Json("TokenResults"), "The result for each token.";
    }

    /// Ends leases because the attempts failed. The tasks become ready again, or dead.
    Nack: POST "/v1/queues/{q}/nack", In(Consume), writes {
        body: must("Nack");
        200 Json("TokenResults"), "The result for each token.";
        refuses: TooFar;
    }

    /// Extends leases because the work takes longer.
    Extend: POST "/v1/queues/{q}/extend", In(Consume), writes {
        body: must("Extend");
        200 Json("TokenResults"), "The result for each token.";
    }

    /// Lists the dead tasks with their reasons, page by page.
    ListDead: GET "/v1/queues/{q}/dead", In(Read) {
        query: "due_from", "due_to", "tag", "group", "key", "key_contains", "reason", "failure", "group_id", "limit", "cursor", "payloads";
        200 Json("TasksPage"), "The page.";
    }

    /// Groups dead tasks by the reason for which they were given up and by the text of their last failure. In the texts, numbers, UUIDs and quoted parts are made `#`, so that one cause is one group; the status of an answer, as in `http 422`, and the number of an `os error` stay.
    DeadGroups: GET "/v1/queues/{q}/dead/groups", In(Read) {
        200 Json("DeadGroups"), "The groups of the newest 10,000 dead tasks, the largest group first.";
    }

    /// Makes dead tasks ready again. With `filter`, tasks that die after the call began stay dead, and so do those whose key a later task took.
    Redrive: POST "/v1/queues/{q}/dead/redrive", In(Admin), writes {
        body: may("Redrive");
        200 Json("RedrivenOneOrMany"), "The task if the body has `key` or `id`, the counts if it has `filter`, otherwise the result for each task.";
        202 Json("Job"), "The filter finds many tasks, so a job does the work.", ["Location"];
        refuses: NotFound, Live, Draining, BacklogFull;
    }

    /// Counts the tasks of one queue or of all queues by the bucket of time in which they fall due. Later instants of timelines are not counted. The instants of schedules are counted beside the tasks if `schedules` asks for them.
    Forecast: GET "/v1/forecast", Somewhere(Read) {
        query: "queue", "scale", "bucket", "span", "from", "schedules";
        200 Json("Forecast"), "The counts.";
        refuses: BadName, OutOfScope;
    }

    /// Lists the queues that have tasks or settings, or had some within the last hour, with their numbers of tasks by state. Without `limit` the list has all queues.
    ListQueues: GET "/v1/queues", Somewhere(Read) {
        query: "prefix", "limit", "cursor";
        200 Json("Queues"), "The queues.";
    }

    /// Returns a queue: its number of tasks by state, and its settings. A queue that was never used is empty, with `"exists": false`.
    GetQueue: GET "/v1/queues/{q}", In(Read) {
        200 Json("Queue"), "The queue.";
    }

    /// Replaces all settings of a queue.
    PutQueue: PUT "/v1/queues/{q}", In(Admin), writes {
        body: must("Settings");
        200 Json("Queue"), "The queue.";
        refuses: TooMany, OrderConflict;
    }

    /// Changes some settings of a queue, also single members of `retry` and `history`. Members that the body leaves out keep their values.
    PatchQueue: PATCH "/v1/queues/{q}", In(Admin), writes {
        body: may("Settings");
        200 Json("Queue"), "The queue.";
        refuses: TooMany, OrderConflict;
    }

    /// Deletes a queue that has no tasks and no schedules, with its settings, its pause and its drain. The queue exists again when it is used again.
    DeleteQueue: DELETE "/v1/queues/{q}", In(Admin), writes {
        200 Json("QueueDeleted"), "The queue is deleted.";
        refuses: QueueNotEmpty;
    }

    /// Pauses a queue: none of its tasks are leased.
    PauseQueue: POST "/v1/queues/{q}/pause", In(Admin), writes {
        body: may("Pause");
        200 Json("Queue"), "The queue.";
        refuses: TooMany;
    }

    /// Drains a queue: it takes no new tasks, and delivers those that it has.
    DrainQueue: POST "/v1/queues/{q}/drain", In(Admin), writes {
        body: may("Nothing");
        200 Json("Queue"), "The queue.";
        refuses: TooMany;
    }

    /// Ends the pause and the drain of a queue.
    ResumeQueue: POST "/v1/queues/{q}/resume", In(Admin), writes {
        body: may("Nothing");
        200 Json("Queue"), "The queue.";
        refuses: TooMany;
    }

    /// Gives a queue a target, or replaces the target: from then on the server sends the tasks of the queue there, and no worker has to lease them.
    PutTarget: PUT "/v1/queues/{q}/target", In(Admin), writes {
        headers: "If-Match";
        body: must("Target");
        201 Json("TargetState"), "The queue had no target before.", ["ETag"];
        200 Json("TargetState"), "The target is replaced. Messages under way to the one before are settled.", ["ETag"];
        refuses: VersionMismatch, OrderConflict, NoSecretKey, TooMany, Unsupported;
    }

    /// Returns the target of a queue and its state.
    GetTarget: GET "/v1/queues/{q}/target", In(Read) {
        200 Json("TargetState"), "The target.", ["ETag"];
        refuses: NoTarget;
    }

    /// Takes the target of a queue away. The answer comes when the messages under way are settled. The tasks of the queue stay.
    DeleteTarget: DELETE "/v1/queues/{q}/target", In(Admin), writes {
        headers: "If-Match";
        200 Json("TargetDeleted"), "The queue has no target any more.";
        refuses: NoTarget, VersionMismatch;
    }

    /// Pauses a target: nothing more is sent to it, and workers may still lease the tasks of the queue.
    PauseTarget: POST "/v1/queues/{q}/target/pause", In(Admin), writes {
        body: may("Nothing");
        200 Json("TargetState"), "The target.", ["ETag"];
        refuses: NoTarget;
    }

    /// Ends the pause of a target, and enables one that was disabled.
    ResumeTarget: POST "/v1/queues/{q}/target/resume", In(Admin), writes {
        body: may("Nothing");
        200 Json("TargetState"), "The target.", ["ETag"];
        refuses: NoTarget, NoSecretKey, Unsupported;
    }

    /// Makes a new secret that signs. The secrets of before sign, too, for the time of `overlap`.
    RotateTarget: POST "/v1/queues/{q}/target/rotate", In(Admin), writes {
        body: may("Rotate");
        200 Json("Rotated"), "The new secret. No later call shows it.", ["ETag"];
        refuses: NoTarget, NoSecretKey, TooMany;
    }

    /// Sends one message that is not a task, and returns the result. Nothing is stored.
    TestTarget: POST "/v1/queues/{q}/target/test", In(Admin) {
        body: may("Nothing");
        200 Json("TargetTest"), "The result.";
        refuses: NoTarget, NoSecretKey, Unsupported;
    }

    /// Lists the last attempts to send messages to a target, the newest first. The server keeps 1,000 of each target in memory.
    ListAttempts: GET "/v1/queues/{q}/target/attempts", In(Read) {
        query: "limit";
        200 Json("Attempts"), "The attempts.";
        refuses: NoTarget;
    }

    /// Lists the targets inside the token's scope, and the connections to brokers.
    ListTargets: GET "/v1/targets", Somewhere(Read) {
        200 Json("Targets"), "The targets.";
    }

    /// Puts a schedule, or replaces it. An equal one changes nothing.
    PutSchedule: PUT "/v1/queues/{q}/schedules/{name}", In(Produce), writes, changes_many {
        headers: "If-Match";
        body: must("Schedule");
        201 Json("ScheduleState"), "The schedule is new.", ["ETag", "Location"];
        200 Json("ScheduleState"), "The schedule existed before.", ["ETag"];
        refuses: TooFar, ExpiresFirst, NoSchedule, VersionMismatch, TooMany;
    }

    /// Returns a schedule and its progress.
    GetSchedule: GET "/v1/queues/{q}/schedules/{name}", In(Read) {
        200 Json("ScheduleState"), "The schedule.", ["ETag"];
        refuses: NoSchedule;
    }

    /// Deletes a schedule. It puts no more tasks; those that it has put stay.
    DeleteSchedule: DELETE "/v1/queues/{q}/schedules/{name}", In(Produce), writes, changes_many {
        headers: "If-Match";
        200 Json("ScheduleDeleted"), "The schedule is deleted.";
        refuses: NoSchedule, VersionMismatch;
    }

    /// Lists the schedules of a queue by name, page by page.
    ListSchedules: GET "/v1/queues/{q}/schedules", In(Read) {
        query: "limit", "cursor";
        200 Json("SchedulesPage"), "The page.";
    }

    /// Lists the schedules of all queues inside the token's scope, page by page. With `sort=next`, a cursor stays valid while schedules move: a schedule that puts a task between two pages is listed again on a later page, and one whose next instant has become earlier than the cursor may be missed. All others are listed once.
    ListAllSchedules: GET "/v1/schedules", Somewhere(Read) {
        query: "prefix", "name_contains", "sort", "limit", "cursor";
        200 Json("SchedulesPage"), "The page.";
    }

    /// Lists the next instants of a schedule, with the effects of daylight saving time.
    PreviewSchedule: GET "/v1/queues/{q}/schedules/{name}/preview", In(Read) {
        query: "count";
        200 Json("Preview"), "The instants.";
        refuses: NoSchedule;
    }

    /// Lists the instants of a schedule as if it was put now under a new name. Nothing is stored.
    PreviewUnstored: POST "/v1/schedules/preview", Somewhere(Read) {
        query: "count";
        body: must("Schedule");
        200 Json("Preview"), "The instants.";
    }

    /// Moves a virtual clock. The answer comes when all tasks that fell due are ready.
    AdvanceClock: POST "/v1/clock/advance", Everywhere(Admin), writes {
        body: must("Advance");
        200 Json("Now"), "The time.";
        refuses: NoVirtualClock;
    }

    /// Exports all tasks, dead tasks, settings and schedules inside the token's scope, as lines.
    Export: GET "/v1/export", Somewhere(Read) {
        query: "queue", "cursor";
        200 Lines("ExportLine"), "The lines, sent as fast as the client reads them. An export is complete only if it has its last line, `end`. If an export cannot go on, the server breaks the connection; a new export with `cursor` goes on from the last complete cursor line.";
        refuses: NotFound, OutOfScope, BadName;
    }

    /// Imports the lines of an export: up to 10,000 lines behind the header, and up to the first line that is refused.
    Import: POST "/v1/import", Somewhere(Admin), writes {
        query: "existing", "revoke", "other_clock", "quiet", "first_line";
        body: must_lines("ExportLine");
        200 Lines("ImportRow"), "The results of the lines that were replaced or skipped, and as the last line the end. All lines before its `next_line` are imported and durable, and no later line is. Its `problem` says what stopped the import: a line that cannot be read or is refused, a limit, or a full disk.";
        refuses: OutOfScope, OwnQueue, BadName, TooFar, Live, Dead, Leased, Exists, TooMany, Draining, BacklogFull, ServerDraining;
    }

    /// Drains the server: it takes no new tasks; leases, acks and schedules go on. The drain lasts until `POST /v1/resume` or the next start of the server.
    DrainServer: POST "/v1/drain", Everywhere(Admin) {
        200 Json("Drained"), "The server is being drained.";
    }

    /// Ends the drain of the server. Drains of single queues stay.
    ResumeServer: POST "/v1/resume", Everywhere(Admin) {
        200 Json("Drained"), "The server takes new tasks again.";
    }

    /// Begins a backup of the running server into the directory of `--backup-dir`. There is one backup at a time. It goes on without the caller; a restart of the server ends it.
    BeginBackup: POST "/v1/backups", Everywhere(Admin) {
        202 Json("Backup"), "The backup is under way.", ["Location"];
        refuses: BackupUnderWay, NoBackupDir;
    }

    /// Lists the running backup, the complete ones in the directory, and the last ones that failed or were stopped since the start of the server, the newest first.
    ListBackups: GET "/v1/backups", Everywhere(Admin) {
        200 Json("Backups"), "The backups.";
        refuses: NoBackupDir;
    }

    /// Returns the state of a backup.
    GetBackup: GET "/v1/backups/{id}", Everywhere(Admin) {
        200 Json("Backup"), "The backup.";
        refuses: NoBackup, NoBackupDir;
    }

    /// Stops a running backup and removes its files. A complete backup stays.
    StopBackup: DELETE "/v1/backups/{id}", Everywhere(Admin) {
        200 Json("Backup"), "The backup. It is still `running` if it did not end within 5 s.";
        refuses: NoBackup, NoBackupDir;
    }

    /// Returns the rights of the caller, its queues and its limits, and what a page has to know of the server.
    Whoami: GET "/v1/whoami", Token {
        200 Json("Whoami"), "The rights and the queues of the caller.";
    }

    /// Tells the state of the queues and jobs of the caller, and tells it again when it changes. Each stream begins with one event of each topic, and goes on until its client closes it, its token loses its rights, or the server stops. At most 64 streams may be open, and at most 8 of one token. A client that reads too slowly misses events and then gets the newest state.
    Events: GET "/v1/events", Somewhere(Read) {
        query: "topics", "queue", "prefix";
        200 Events(&["StatsEvent", "QueuesEvent", "JobsEvent", "WheelEvent"]), "The events.";
        refuses: BadName, OutOfScope;
    }

    /// Returns the addresses to begin with. A browser, which names `text/html` in `Accept`, is sent to the console instead, if the server has one.
    Index: GET "/", Nothing {
        200 Json("Index"), "The addresses.";
    }

    /// Answers if the process is alive.
    IsAlive: GET "/healthz", Nothing {
        200 Json("Alive"), "The process is alive.";
    }

    /// Says whether the server is ready for work.
    IsReady: GET "/readyz", Nothing {
        200 Json("Ready"), "The server is ready.";
        503 Json("Ready"), "The server is not ready; `why` says why.";
    }

    /// Returns the metrics for Prometheus.
    Metrics: GET "/metrics", Everywhere(Read) {
        200 Text(&["application/openmetrics-text; version=1.0.0; charset=utf-8", "text/plain; version=0.0.4; charset=utf-8"]), "The metrics as OpenMetrics, or in the text format 0.0.4 if `Accept` prefers that.";
    }

    /// Returns this description as OpenAPI 3.1.
    Openapi: GET "/openapi.json", Token {
        200 OpenApi, "The description.";
    }

    /// Returns the meaning of a kind of problem, and its remedy.
    Problem: GET "/problems/{kind}", Token {
        200 JsonOrPage("ProblemPage"), "The kind of problem, as a page if `Accept` names `text/html`.";
        refuses: NoEndpoint;
    }
}
