//! The bodies of answers.

use serde_json::json;

use super::requests::{schedule_members, settings_members};
use super::schema::{
    Member, Schema, all, any, boolean, count, has, integer, may, of, one_of, or_null, text, time, word,
};
use crate::{
    BackupPhase, BackupState, CancelOutcome, INTEGER_MAX, JobAction, JobState, ProblemKind, TaskState,
};

/// All of them.
pub(super) fn answers() -> Vec<Schema> {
    vec![
        Schema::answer(
            "Stored",
            "The task after a change, without its payload.",
            [place(), state(), terms(), attempt()].concat(),
        ),
        task(),
        Schema::answer(
            "TasksPage",
            "One page of a list. It may be empty and still have a next one.",
            vec![has("tasks", all(of("Task")), "In the order of `due_at`."), next_cursor()],
        ),
        Schema::answer(
            "Failure",
            "An attempt that failed.",
            vec![
                has("at", time(), "When it ended."),
                has("attempt", integer(1, u32::MAX.into()), "Which, from 1."),
                has(
                    "how",
                    one_of(&["nacked", "lease_ended", "revoked", "buried", "worker_gone"]),
                    "How it ended.",
                ),
                may("reason", text(1_024), "What its worker said."),
            ],
        ),
        leased(),
        Schema::answer(
            "LeasedTasks",
            "What is now this worker's.",
            vec![has("tasks", all(of("LeasedTask")), "Empty if none was ready in time.")],
        ),
        Schema::answer(
            "TokenResults",
            "What became of each token, in the order of the request.",
            vec![has(
                "results",
                all(one_of(&["acked", "nacked", "extended", "expired", "revoked"])),
                "`acked`: also a second ack of the token, while the history remembers the first. `expired` and `revoked`: the lease is over, and nothing changed.",
            )],
        ),
        Schema::answer(
            "Cancelled",
            "The task is not delivered any more.",
            vec![has("result", one_of(&["cancelled", "revoked"]), "`revoked`: a worker had it.")],
        ),
        Schema::answer(
            "BulkCancelled",
            "What a cancel of many found and did.",
            vec![
                has("matched", count(), "Tasks that the filter found."),
                has("cancelled", count(), "Those of them that it ended."),
            ],
        ),
        Schema::answer(
            "BulkMoved",
            "What a move of many found and did.",
            vec![
                has("matched", count(), "Tasks that the filter found."),
                has("moved", count(), "Those of them that it moved."),
                may("skipped", of("Skipped"), "Why it did not move the others."),
            ],
        ),
        Schema::answer(
            "Purged",
            "What a purge found and did.",
            vec![
                has("matched", count(), "Tasks that the queue had, live and dead."),
                has("purged", count(), "Those of them that it removed."),
                may("skipped", of("Skipped"), "Why it did not remove the others."),
            ],
        ),
        Schema::answer(
            "Skipped",
            "How many tasks were found and left as they are, by the reason. A reason without tasks is left out.",
            vec![
                may("leased", count(), "A worker has them, and the request has no `revoke`."),
                may("changed", count(), "They were changed, or ended, after they were found."),
                may("timeline", count(), "They have a timeline, which is replaced as a whole."),
                may("expires_first", count(), "They would have expired before the new time."),
                may("too_far", count(), "The new time is later than the server, or the token, allows."),
            ],
        ),
        job(),
        jobs(),
        backup(),
        backups(),
        Schema::answer(
            "Redriven",
            "What became of the dead.",
            vec![
                has("matched", count(), "Tasks that were looked at."),
                has("redriven", count(), "Those that are ready again."),
                has(
                    "results",
                    all(one_of(&["redriven", "not_found", "live", "backlog_full"])),
                    "One for each, in order.",
                ),
                has("more", boolean(), "Whether there are dead tasks that this call did not look at."),
            ],
        ),
        batch_result(),
        Schema::answer(
            "Queues",
            "The queues that the token may know of.",
            vec![has("queues", all(of("QueueCounts")), "By name."), next_cursor()],
        ),
        Schema::answer(
            "QueueDeleted",
            "The queue is gone.",
            vec![has("result", one_of(&["deleted"]), "It has no settings any more.")],
        ),
        Schema::answer("QueueCounts", "A queue and its tasks by state.", counts()),
        Schema::answer(
            "Queue",
            "A queue: its tasks by state, and its settings.",
            [
                counts(),
                vec![may("paused_until", time(), "When its pause ends by itself.")],
                settings_members(),
            ]
            .concat(),
        ),
        Schema::answer(
            "ScheduleState",
            "A schedule, and how far it has come.",
            [progress(), schedule_members()].concat(),
        ),
        Schema::answer(
            "SchedulesPage",
            "One page of schedules.",
            vec![has("schedules", all(of("ScheduleState")), "By queue and name."), next_cursor()],
        ),
        Schema::answer(
            "ScheduleDeleted",
            "It makes no more tasks.",
            vec![has("result", one_of(&["deleted"]), "Its tasks stay.")],
        ),
        Schema::answer(
            "Preview",
            "The next instants of a schedule.",
            vec![
                has("occurrences", all(of("Occurrence")), "As far as they can be known."),
                may("note", text(1_024), "Why there are no more of them."),
            ],
        ),
        Schema::answer(
            "Occurrence",
            "One instant.",
            vec![
                has("at", time(), "When."),
                has("local", text(64), "What the wall of the zone shows then, with its offset."),
                has("key", word(256), "The key of its task."),
                may("note", text(1_024), "What a change of the clocks does to it."),
            ],
        ),
        Schema::answer(
            "Forecast",
            "How many tasks fall due when.",
            vec![
                may("queue", text(200), "The queue, if it was asked for one."),
                has("bucket", text(64), "How long a bucket is."),
                has(
                    "from",
                    time(),
                    "Where the first bucket begins: now is in it, and of it only counts what is still to come.",
                ),
                has("to", time(), "Where the last one ends."),
                has("tasks", count(), "How many fall due in all of them."),
                has("buckets", all(of("Bucket")), "Those that have any, in the order of time."),
            ],
        ),
        Schema::answer(
            "Bucket",
            "One of them.",
            vec![has("at", time(), "Where it begins."), has("tasks", count(), "How many fall due in it.")],
        ),
        Schema::answer("Now", "The virtual clock.", vec![has("now", time(), "The server's time.")]),
        Schema::answer(
            "Drained",
            "Whether the server drains.",
            vec![has("draining", boolean(), "Whether no new tasks are taken while all else goes on.")],
        ),
        Schema::answer("Alive", "The process answers.", vec![has("status", one_of(&["ok"]), "`ok`.")]),
        ready(),
        Schema::answer(
            "ClockReport",
            "The wall clock beside the one that cannot step.",
            vec![
                has("steps", count(), "Steps noticed since the start."),
                has(
                    "offset_ms",
                    json!({ "type": "integer" }),
                    "How far the system's clock is from the one that the server believes.",
                ),
            ],
        ),
        problem(),
        Schema::answer(
            "ProblemPage",
            "A kind of problem.",
            vec![
                has("type", text(256), "The kind."),
                has("status", integer(400, 599), "The HTTP status."),
                has("title", text(256), "What it is, in a few words."),
                has("meaning", text(4_096), "What it means, and whether the call had an effect."),
                has("remedy", text(4_096), "What to do."),
            ],
        ),
    ]
}

fn place() -> Vec<Member> {
    vec![
        has("queue", text(200), "The queue."),
        has("key", word(256), "The user's name for the task."),
        has("id", integer(1, INTEGER_MAX), "The server's number for it."),
        has("version", integer(1, INTEGER_MAX), "Grows with every change by the owner; the ETag."),
    ]
}

fn state() -> Vec<Member> {
    vec![
        has("state", one_of(&TaskState::ALL.map(TaskState::name)), "Where it stands."),
        has("due_at", time(), "When it is or was due."),
    ]
}

fn terms() -> Vec<Member> {
    vec![
        has("tags", all(word(128)), "Words to find it by."),
        has("priority", integer(0, u32::MAX.into()), "Smaller goes first."),
        may("group", word(256), "The group it is in."),
    ]
}

fn attempt() -> Vec<Member> {
    vec![has("attempt", integer(0, u32::MAX.into()), "Leases begun so far.")]
}

fn payload() -> Vec<Member> {
    vec![
        may("payload", any(), "The payload, if it is JSON."),
        may(
            "payload_base64",
            json!({ "type": "string", "contentEncoding": "base64" }),
            "The payload, if it is not.",
        ),
        may("content_type", text(255), "What those bytes are."),
    ]
}

fn trace() -> Vec<Member> {
    vec![
        may("traceparent", text(55), "The header of its put: the span to link the work to."),
        may("tracestate", text(512), "The header of its put."),
    ]
}

fn next_cursor() -> Member {
    has("next_cursor", or_null(text(512)), "What to send as `cursor` for the next page; `null` on the last.")
}

fn task() -> Schema {
    let rest = vec![
        may("retry", of("Retry"), "Its own policy."),
        may("expire_at", time(), "When it is given up, unless a worker has it then."),
        may("failures", all(of("Failure")), "The attempts that failed last, ten at most, the oldest first."),
        may("dead_at", time(), "When it was given up."),
        may("reason", one_of(&["max_attempts", "expired", "buried"]), "Why it was given up."),
        may("timeline", all(of("Moment")), "The instants to come."),
    ];
    let rest = [rest, trace()].concat();
    Schema::answer(
        "Task",
        "A task as its owner sees it.",
        [place(), state(), payload(), terms(), attempt(), rest].concat(),
    )
}

fn leased() -> Schema {
    let own = vec![
        has("key", word(256), "The user's name for the task."),
        has("id", integer(1, INTEGER_MAX), "The server's number for it."),
    ];
    let rest = vec![
        has("due_at", time(), "When it was due."),
        has("attempt", integer(1, u32::MAX.into()), "1 at the first lease."),
        has("token", text(64), "Proves the lease to ack, nack and extend."),
        has(
            "lease_until",
            time(),
            "When the lease ends: not earlier than this, unless the server crashes or its clock is set.",
        ),
    ];
    let rest = [rest, trace()].concat();
    Schema::answer("LeasedTask", "A task in a worker's hands.", [own, payload(), terms(), rest].concat())
}

fn backups() -> Schema {
    Schema::answer(
        "Backups",
        "Backups.",
        vec![
            has("backups", all(of("Backup")), "The newest first; of those in the directory up to 100."),
            may(
                "older",
                count(),
                "How many older directories with names of backups there are that are not shown.",
            ),
        ],
    )
}

fn backup() -> Schema {
    Schema::answer(
        "Backup",
        "A backup that the server makes of itself. What is not known yet is left out.",
        vec![
            has("id", count(), "Its number. A later backup has a higher one."),
            has(
                "name",
                text(255),
                "Its directory in that of `--backup-dir`. Until it is whole it is called `NAME.unfinished` there.",
            ),
            has(
                "state",
                one_of(&BackupState::ALL.map(BackupState::name)),
                "How it goes. Of one that is `failed` or `stopped` nothing is left.",
            ),
            may(
                "phase",
                one_of(&BackupPhase::ALL.map(BackupPhase::name)),
                "While it is under way: it copies the files, or reads the copy and checks every record.",
            ),
            has(
                "begun_at",
                time(),
                "When it was begun, by the clock of the server's system, also beside a virtual clock.",
            ),
            may(
                "as_of",
                time(),
                "Everything that was acknowledged before this instant is in it; with `--ack memory` what was not written yet is missing.",
            ),
            may("ended_at", time(), "When it was over."),
            has("files", count(), "Its files; 0 until they are known."),
            has("bytes", count(), "Bytes of them; 0 until they are known."),
            has(
                "bytes_done",
                count(),
                "Bytes that the current phase has processed; equal to `bytes` once the backup is whole.",
            ),
            may("tasks", count(), "Live tasks in it."),
            may("dead", count(), "Tasks in it that were given up and are kept."),
            may("error", text(65_536), "Why it is not whole."),
        ],
    )
}

fn jobs() -> Schema {
    Schema::answer("Jobs", "Jobs.", vec![has("jobs", all(of("Job")), "The newest first.")])
}

fn job() -> Schema {
    Schema::answer(
        "Job",
        "Work that goes on after its call was answered, and after a restart of the server. Of a server that was killed the page of up to 1,000 tasks that it was at may be missing in its counts.",
        vec![
            has("id", count(), "Its number."),
            has("queue", text(200), "The queue."),
            has("action", one_of(&JobAction::ALL.map(JobAction::name)), "What it does."),
            has(
                "state",
                one_of(&JobState::ALL.map(JobState::name)),
                "How it goes. A job that waits for its turn is `running`, too.",
            ),
            has("dry_run", boolean(), "Whether it only counts."),
            has("of", count(), "Tasks that the queue had at its start."),
            has("looked_at", count(), "Those of them that it has looked at."),
            has(
                "matched",
                count(),
                "Tasks that it found. A task that is put off, or dies, while the job is at work may be found twice.",
            ),
            may("cancelled", count(), "Those of them that it ended, if it cancels."),
            may("moved", count(), "Those of them that it moved, if it moves."),
            may("purged", count(), "Those of them that it removed, if it purges."),
            may("skipped", of("Skipped"), "Why it did not do it to the others."),
            may("error", text(4_096), "Why it could not go on."),
        ],
    )
}

fn batch_result() -> Schema {
    Schema::answer(
        "BatchResult",
        "The result of one line, in the order of the request.",
        vec![
            may("key", json!({ "type": "string" }), "The key of the line, if it had one, as it stood there."),
            has("status", integer(200, 599), "The status that the operation alone would have answered."),
            may("version", integer(1, INTEGER_MAX), "The task's version after a put or patch."),
            may("due_at", time(), "When it is due after a put or patch."),
            may("result", one_of(&CancelOutcome::ALL.map(CancelOutcome::name)), "What a cancel found."),
            may("problem", of("Problem"), "What went wrong."),
        ],
    )
}

fn counts() -> Vec<Member> {
    vec![
        has("queue", text(200), "Its name."),
        has("scheduled", count(), "Tasks that are not due yet."),
        has("ready", count(), "Tasks that are due and in nobody's hands."),
        has("leased", count(), "Tasks in workers' hands."),
        has("dead", count(), "Tasks that were given up."),
        has("paused", boolean(), "Whether nothing is leased."),
        may("draining", boolean(), "Whether no task is added."),
    ]
}

fn progress() -> Vec<Member> {
    vec![
        has("queue", text(200), "The queue that its tasks are put into."),
        has("name", text(200), "Its name."),
        has("version", integer(1, INTEGER_MAX), "The number of the owner's last change: the ETag."),
        has(
            "next_at",
            or_null(time()),
            "When it makes its next task; `null`: never again, or after the task that runs has ended.",
        ),
        has("last_at", or_null(time()), "The last instant that a task was made of."),
        has("made", count(), "Tasks made so far."),
        has(
            "skipped",
            count(),
            "Instants left out. Of a cron expression those left out together count as one.",
        ),
        has("running", boolean(), "Whether a task has to end before another is made."),
        has("waiting", count(), "Instants whose turn comes when it has."),
    ]
}

fn ready() -> Schema {
    let why = || or_null(text(4_096));
    Schema::answer(
        "Ready",
        "Whether the server takes work.",
        vec![
            has("ready", boolean(), "Whether leases and acks are taken, and puts unless it drains."),
            has(
                "status",
                one_of(&["ok", "draining", "degraded", "read_only", "not_ready"]),
                "The same in a word. `degraded`: leases and acks go on, but puts are refused for want of space, or the wall clock is doubted.",
            ),
            has("why", why(), "Why it is not ready, or degraded; `null` if all is well."),
            has(
                "reasons",
                all(text(4_096)),
                "Each reason by itself, the gravest first; empty if all is well.",
            ),
            has(
                "draining",
                boolean(),
                "Whether no new tasks are taken (`POST /v1/drain`, SIGUSR1) while all else goes on.",
            ),
            has(
                "durability",
                one_of(&["fsync", "os", "memory"]),
                "What an acknowledged call survives: a power loss, a crash of the process, nothing.",
            ),
            has("virtual_clock", boolean(), "Whether time stands still until it is advanced."),
            has("read_only", why(), "Why nothing is changed any more; `null` if all is well."),
            has("clock", of("ClockReport"), "What was noticed of the wall clock."),
            has(
                "recovery",
                why(),
                "What an operator should know of the last recovery; `null` if all was in order.",
            ),
        ],
    )
}

fn problem() -> Schema {
    let kinds = ProblemKind::ALL.map(ProblemKind::type_uri);
    Schema::answer(
        "Problem",
        "What went wrong, by RFC 9457.",
        vec![
            has("type", one_of(&kinds), "The kind; the path of a page about it."),
            has("title", text(256), "What this kind is, in a few words."),
            has("status", integer(400, 599), "The HTTP status."),
            has("detail", text(65_536), "What is wrong in this case, with the value and the limit."),
            may("instance", text(8_192), "The path of the request."),
            may("hint", text(65_536), "What to do."),
            may("member", text(65_536), "The member of the body that is at fault."),
            may("parameter", text(65_536), "The parameter that is at fault."),
            may("header", text(256), "The header that is at fault."),
            may(
                "result",
                one_of(&CancelOutcome::ALL.map(CancelOutcome::name)),
                "What a cancel found, or why a task could not be had.",
            ),
            may("version", integer(1, INTEGER_MAX), "The live task's version."),
            may("tasks", count(), "Live tasks of a queue that is not empty."),
            may("dead", count(), "Its dead tasks."),
            may("schedules", count(), "Its schedules."),
            may(
                "retry_after_s",
                integer(0, u32::MAX.into()),
                "After how many seconds to try again, as `Retry-After`.",
            ),
        ],
    )
}
