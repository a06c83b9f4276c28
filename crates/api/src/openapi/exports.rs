//! The lines of exports and imports.

use super::schema::{
    Member, Schema, all, any, boolean, count, duration, has, integer, may, of, one_of, text, time,
};
use crate::{EXPORT_FORMAT, INTEGER_MAX, TaskState};

/// All of them.
pub(super) fn exports() -> Vec<Schema> {
    vec![
        line(),
        header(),
        Schema::answer(
            "ExportQueue",
            "What a queue's owner configured.",
            vec![
                has("queue", text(200), "Its name."),
                may("settings", of("Settings"), "Its settings."),
                may("paused", boolean(), "Whether nothing is leased."),
                may("paused_until", time(), "When the pause ends; not there: until it is resumed."),
                may("draining", boolean(), "Whether no task is added."),
            ],
        ),
        Schema::answer(
            "ExportTask",
            "A live task with all that is kept of it. A lease is not: it stays where it was made.",
            task(false),
        ),
        Schema::answer("ExportDead", "A dead task with all that is kept of it.", task(true)),
        schedule(),
        Schema::answer(
            "ExportEnd",
            "How many lines of each kind a whole file has.",
            vec![
                has("queues", count(), "Lines with settings."),
                has("tasks", count(), "Live tasks."),
                has("dead", count(), "Dead tasks."),
                has("schedules", count(), "Schedules."),
            ],
        ),
        tally(),
        row(),
        Schema::answer(
            "ImportLine",
            "What became of a line that was not plainly added.",
            vec![
                has("number", integer(1, INTEGER_MAX), "Its number in the file."),
                has("result", one_of(&["replaced", "skipped"]), "What became of it."),
                may(
                    "why",
                    one_of(&["live", "dead", "ended", "keyless", "exists"]),
                    "What was there already, if it was left out.",
                ),
                has("queue", text(200), "The queue."),
                may("key", text(256), "The key of the task, or the name of the schedule."),
            ],
        ),
        Schema::answer(
            "ImportEnd",
            "How an import ended: all lines before `next_line` are in and durable, and none after.",
            vec![
                has(
                    "next_line",
                    integer(1, INTEGER_MAX),
                    "The line to go on with: the one that stopped it, or the one behind the last.",
                ),
                has("added", count(), "Lines that are new."),
                has("replaced", count(), "Lines that took the place of what was there."),
                has("skipped", count(), "Lines that were left out, for what was there stayed."),
                has(
                    "new_ids",
                    count(),
                    "Of the tasks that are new, those that got another id than in the file.",
                ),
                may("problem", of("Problem"), "What stopped it."),
            ],
        ),
    ]
}

fn line() -> Schema {
    Schema::answer(
        "ExportLine",
        "One line of an export: exactly one member, which says what the line is.",
        vec![
            may("export", of("ExportHeader"), "The first line: what the file is."),
            may("queue", of("ExportQueue"), "What a queue's owner configured."),
            may("task", of("ExportTask"), "A live task."),
            may("dead", of("ExportDead"), "A dead task."),
            may("schedule", of("ExportSchedule"), "A schedule, and how far it has come."),
            may("cursor", text(256), "An export that was cut goes on from here: `?cursor=`."),
            may("end", of("ExportEnd"), "The last line. A file without it is cut."),
        ],
    )
}

fn header() -> Schema {
    Schema::answer(
        "ExportHeader",
        "What a file is.",
        vec![
            has("format", integer(EXPORT_FORMAT, EXPORT_FORMAT), "The version of the format."),
            has("at", time(), "When the export began, by the server's clock."),
            has("release", text(64), "The release that wrote it."),
            may("virtual_clock", boolean(), "Whether that clock was a virtual one."),
            may("store", text(16), "Which data directory it is of: 16 hex digits that tell it from others."),
            may(
                "scope",
                all(text(201)),
                "The namespaces or queues that it is limited to; not there: to none.",
            ),
            may("queue", text(200), "The one queue that it is limited to."),
            may("ids_below", count(), "The ids in it are below this number."),
        ],
    )
}

fn task(dead: bool) -> Vec<Member> {
    let mut members = vec![
        has("queue", text(200), "The queue."),
        has("key", text(256), "The key."),
        may("id", count(), "The server's number for it."),
        has("due_at", time(), "When it is or was due."),
        has("put_at", time(), "When its put was received."),
        may("payload", any(), "What the worker gets, if that is JSON. Default: `null`."),
        may(
            "payload_base64",
            text(2 << 20),
            "What the worker gets, if it is not JSON, or JSON with line ends.",
        ),
        may("content_type", text(4_096), "What those bytes are."),
        may("timeline", all(of("Moment")), "All its instants, those that are over included."),
        may("step", count(), "Which of them it is due at, from 0."),
        may("tags", all(text(128)), "Words to find the task by."),
        may("priority", integer(0, u32::MAX.into()), "Smaller goes first. Default: 1024."),
        may("group", text(256), "The group it is in."),
        may("attempt", integer(0, u32::MAX.into()), "Leases that ended without an ack."),
        may("retry", of("Retry"), "How often and how soon it is tried again."),
        may("expire_at", time(), "When it is given up."),
        may("failures", all(of("Failure")), "The attempts that failed last, the oldest first."),
        may("ttr", duration(), "The lease that its producer chose over the protocol of beanstalkd."),
        may("origin", integer(0, 255), "The door it came through."),
        may("tally", of("ExportTally"), "What has happened to it so far, counted."),
        may("traceparent", text(55), "What its put was traced by."),
        may("tracestate", text(512), "What goes with it."),
    ];
    if dead {
        members.extend([
            has("dead_at", time(), "When it was given up."),
            has("reason", one_of(&["max_attempts", "expired", "buried"]), "Why."),
            may("keyless", boolean(), "Whether another task has had its key since."),
        ]);
    } else {
        let states = TaskState::ALL.map(TaskState::name);
        members.push(may("state", one_of(&states[..3]), "Where it stood. An import goes by `due_at` alone."));
    }
    members
}

fn schedule() -> Schema {
    Schema::answer(
        "ExportSchedule",
        "A schedule, and how far it has come.",
        vec![
            has("queue", text(200), "The queue that its tasks are put into."),
            has("name", text(200), "Its name."),
            has("spec", of("Schedule"), "What its owner put."),
            has("anchor", time(), "The first instant of all, from which the others are counted."),
            has("decided", time(), "All instants up to this one are decided."),
            may("next_at", time(), "When it makes its next task."),
            may("last_at", time(), "The last instant that a task was made of."),
            may("made", count(), "Tasks made so far."),
            may("skipped", count(), "Instants left out so far."),
            may("running", text(256), "The key of the task that has to end before another is made."),
            may("waiting", all(time()), "Instants whose turn comes when it has, rising."),
        ],
    )
}

fn tally() -> Schema {
    let most = || integer(0, u32::MAX.into());
    Schema::answer(
        "ExportTally",
        "What has happened to a task so far, as clients of beanstalkd are told.",
        vec![
            may("leases", most(), "Leases that ended without an ack."),
            may("expiries", most(), "Of those, ran out."),
            may("nacks", most(), "Of those, given back by their workers."),
            may("burials", most(), "Of those, ended by a worker that gave the task up."),
            may("redrives", most(), "Redrives, and calls to be due at once."),
            may("delay", duration(), "The delay that it was given last after its put."),
        ],
    )
}

fn row() -> Schema {
    Schema::answer(
        "ImportRow",
        "One line of the answer to an import.",
        vec![
            may("line", of("ImportLine"), "A line that was not plainly added. With `quiet` there are none."),
            may("end", of("ImportEnd"), "The last line of the answer: how the import ended."),
        ],
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::ExportLine;

    /// A value that its schema allows.
    fn example(member: &Member) -> Value {
        match member.name {
            "due_at" | "put_at" | "at" | "dead_at" | "expire_at" | "anchor" | "decided" | "next_at"
            | "last_at" | "paused_until" => json!("2030-01-01T00:00:00Z"),
            "format" | "id" | "ids_below" | "priority" | "attempt" | "origin" | "made" | "skipped" => {
                json!(1)
            }
            "queues" | "tasks" | "dead" | "schedules" | "step" => json!(0),
            "virtual_clock" | "paused" | "draining" | "keyless" => json!(true),
            "scope" | "tags" | "failures" | "waiting" => json!([]),
            "timeline" => json!([{ "at": "2030-01-01T00:00:00Z" }]),
            "settings" | "retry" | "tally" => json!({}),
            "spec" => json!({ "every": "1h" }),
            "ttr" => json!("1m"),
            "state" => json!("ready"),
            "reason" => json!("expired"),
            "payload_base64" => json!("AAAA"),
            "traceparent" => json!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
            _ => json!("text"),
        }
    }

    #[test]
    fn the_members_described_are_those_that_are_read() {
        for (word, name) in [
            ("export", "ExportHeader"),
            ("queue", "ExportQueue"),
            ("task", "ExportTask"),
            ("dead", "ExportDead"),
            ("schedule", "ExportSchedule"),
            ("end", "ExportEnd"),
        ] {
            let schema = exports().into_iter().find(|schema| schema.name == name).expect("it is described");
            let members = || schema.members.iter().filter(|member| member.name != "payload");
            let all: serde_json::Map<_, _> =
                members().map(|member| (member.name.to_owned(), example(member))).collect();
            let line = json!({ word: all }).to_string();
            ExportLine::parse(line.as_bytes()).expect(&line);
            for member in members() {
                let mut without = all.clone();
                without.remove(member.name);
                if ["payload_base64", "traceparent", "paused"].contains(&member.name) {
                    continue;
                }
                let line = json!({ word: without }).to_string();
                assert_eq!(
                    ExportLine::parse(line.as_bytes()).is_err(),
                    member.required,
                    "{}: {line}",
                    member.name
                );
            }
            let mut more = all.clone();
            more.insert("strange".to_owned(), json!(1));
            let refused =
                ExportLine::parse(json!({ word: more }).to_string().as_bytes()).expect_err("a stranger");
            assert_eq!(refused.to_string(), format!("`{word}.strange`: is not a member of this request"));
        }
    }
}
