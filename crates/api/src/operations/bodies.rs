//! The schemas of all bodies, in the order of the documents.

use crate::declare::{Body, Schema};
use crate::export::{HeaderMembers, dead_schema, live_schema};
use crate::tasks::filter::{dead_filter, move_filter};
use crate::tasks::put::post;
use crate::*;

/// The schemas of these bodies. A body with a colon has a schema of its own, because no type declares it.
macro_rules! schemas {
    ($($Body:ident $(: $schema:expr)?),* $(,)?) => {
        /// The schemas of requests, answers and exports.
        pub(super) fn schemas() -> Vec<Schema> {
            vec![$(schemas!(one $Body $(, $schema)?)),*]
        }
    };
    (one $Body:ident) => { $Body::schema() };
    (one $Body:ident, $schema:expr) => { $schema };
}

schemas! {
    // Requests.
    PutBody, Post: post(), PatchBody, BatchLine, LeaseBody, AckBody, NackBody, ExtendBody, RedriveBody,
    BulkCancelBody, BulkMoveBody, PurgeBody, TaskFilter, MoveFilter: move_filter(),
    DeadFilter: dead_filter(), SettingsBody, HistoryBody, RetryBody, TargetBody, SigningBody, AuthBody,
    BasicBody, TargetTlsBody, BreakerBody, RotateBody, PauseBody,
    Nothing: Schema::request("Nothing", "An object without members: the path says everything.", vec![]),
    ScheduleSpec, MomentBody, AdvanceBody,
    // Answers.
    PutAnswer, TaskBody, TasksOfKey, DeadGroupsBody, DeadGroupBody, DeadExampleBody, BulkRedriveAnswer,
    TasksPage, FailureBody, LeasedTask, LeasedTasks, TokenResults, CancelAnswer, BulkCancelAnswer,
    BulkMoveAnswer, PurgeAnswer, SkippedBody, JobBody, JobsBody, BackupBody, BackupsBody, RedriveAnswer,
    BatchResult, QueuesBody, DeleteQueueAnswer, QueueCounts, QueueBody, TargetView, PushCounts, TargetsBody,
    TargetRow, ConnectionRow, DeleteTargetAnswer, RotatedBody, TargetTestBody, AttemptsBody, AttemptBody,
    ScheduleBody, StoryBody, StoryEvent, LeasesPage, HeldLease, SchedulesPage, DeleteScheduleAnswer,
    PreviewBody, OccurrenceBody, ForecastBody, BucketBody, NowBody, DrainBody, AliveBody, ReadyBody,
    WhoamiBody, TokenLimits, IndexBody, StatsEvent, StateTotals, EventCounters, HistogramBucket,
    QueuesEvent, QueueRow, JobsEvent, WheelEvent, WheelLevel, ClockReport, Problem, ProblemPage,
    // Exports.
    ExportLine, HeaderMembers, ExportQueue, ExportTask: live_schema(), ExportDead: dead_schema(),
    ExportSchedule, ExportEnd, TallyBody, ImportRow, ImportLine, ImportEnd,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::declare::schema::Member;

    /// Whether a body follows the rules of its schema: `allOf` of `oneOf`, `dependentRequired`, `minProperties`.
    fn follows_the_rules(schema: &Value, body: &Value) -> bool {
        let has = |name: &Value| body.get(name.as_str().expect("a name")).is_some();
        let fits = |case: &Value| {
            let forbidden = case["properties"].as_object().expect("those of the other cases");
            let required = case["required"].as_array().into_iter().flatten().all(has);
            required && !forbidden.keys().any(|name| body.get(name).is_some())
        };
        let one = |choice: &Value| {
            choice["oneOf"].as_array().expect("cases").iter().filter(|case| fits(case)).count() == 1
        };
        let members = body.as_object().expect("an object").len() as u64;
        let mut pairs = schema["dependentRequired"].as_object().into_iter().flatten();
        schema["allOf"].as_array().into_iter().flatten().all(one)
            && pairs.all(|(name, others)| {
                body.get(name).is_none() || others[0].as_str().is_some_and(|o| body.get(o).is_some())
            })
            && members >= schema["minProperties"].as_u64().unwrap_or(0)
    }

    /// Tries all pairs of members of each schema that has rules: forbidden pairs are refused, and allowed ones are accepted.
    #[test]
    fn what_goes_with_what_is_what_is_taken() {
        let moment = json!({ "at": "2030-01-01T00:00:00Z" });
        let known = [
            ("delay", json!("1s")),
            ("at", json!("2030-01-01T00:00:00Z")),
            ("at_ms", json!(5.0)),
            ("level", json!(1)),
            ("by", json!("-1h")),
            ("timeline", json!([moment])),
            ("payload", json!(7)),
            ("payload_base64", json!("AAAA")),
            ("content_type", json!("a/b")),
            ("cron", json!("@daily")),
            ("tz", json!("Europe/Berlin")),
            ("every", json!("1h")),
            ("fixed_delay", json!("1h")),
            ("key", json!("a")),
            ("id", json!(1)),
            ("keys", json!(["a"])),
            ("ids", json!([1])),
        ];
        type Reader = fn(&[u8]) -> bool;
        let readers: [(&str, Reader); 5] = [
            ("Put", |bytes| PutBody::parse(bytes).is_ok()),
            ("Patch", |bytes| PatchBody::parse(bytes).is_ok()),
            ("Redrive", |bytes| RedriveBody::parse(bytes).is_ok()),
            ("BulkMove", |bytes| BulkMoveBody::parse(bytes).is_ok()),
            ("Schedule", |bytes| ScheduleSpec::parse(bytes).is_ok()),
        ];
        for (name, is_taken) in readers {
            let schema = schemas().into_iter().find(|schema| schema.name == name).expect("it is described");
            let mine: Vec<_> = known
                .iter()
                .filter(|(name, _)| schema.members.iter().any(|member| member.name == *name))
                .collect();
            let (described, mut pairs) = (schema.value(), 0);
            for (first, value) in &mine {
                for (second, other) in &mine {
                    let mut body = json!({ (*first): value, (*second): other });
                    if name == "BulkMove" {
                        body["filter"] = json!({});
                    }
                    let allowed = follows_the_rules(&described, &body);
                    assert_eq!(is_taken(body.to_string().as_bytes()), allowed, "{name} {body}");
                    pairs += 1;
                }
            }
            assert!(pairs >= 16, "{name} has {pairs} pairs only");
            let empty = if name == "BulkMove" { json!({ "filter": {} }) } else { json!({}) };
            assert_eq!(
                is_taken(empty.to_string().as_bytes()),
                follows_the_rules(&described, &empty),
                "{name}"
            );
        }
    }

    /// The names of members for readers that have no list of their own.
    #[test]
    fn the_other_members_are_read_too() {
        for name in ["Ack", "Nack", "Extend", "Pause"] {
            let schemas = schemas();
            let schema = schemas.iter().find(|schema| schema.name == name).expect("it is described");
            let example = |member: &Member| match member.name {
                "tokens" => json!(["a".repeat(TOKEN_CHARS)]),
                "reason" => json!("b"),
                _ => json!("5s"),
            };
            let body: serde_json::Map<_, _> =
                schema.members.iter().map(|member| (member.name.to_owned(), example(member))).collect();
            let bytes = Value::Object(body).to_string().into_bytes();
            let is_read = match name {
                "Ack" => AckBody::parse(&bytes).is_ok(),
                "Nack" => NackBody::parse(&bytes).is_ok(),
                "Extend" => ExtendBody::parse(&bytes).is_ok(),
                _ => PauseBody::parse(&bytes).is_ok(),
            };
            assert!(is_read, "{name}");
        }
        assert!(
            BatchLine::parse(br#"{"op":"put","key":"a","mode":"create","if_match":1,"revoke":true}"#).is_ok()
        );
    }

    /// An example value that the schema allows.
    fn example_of(member: &Member) -> Value {
        match member.name {
            "due_at" | "put_at" | "at" | "dead_at" | "expire_at" | "anchor" | "decided" | "next_at"
            | "last_at" | "paused_until" => json!("2030-01-01T00:00:00Z"),
            "format" | "id" | "ids_below" | "priority" | "attempt" | "origin" | "made" | "skipped" => {
                json!(1)
            }
            "queues" | "tasks" | "dead" | "schedules" | "step" => json!(0),
            "virtual_clock" | "paused" | "draining" | "keyless" | "payload_invalid" => json!(true),
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
    fn the_members_of_exports_are_those_that_are_read() {
        for (word, name) in [
            ("export", "ExportHeader"),
            ("queue", "ExportQueue"),
            ("task", "ExportTask"),
            ("dead", "ExportDead"),
            ("schedule", "ExportSchedule"),
            ("end", "ExportEnd"),
        ] {
            let schema = schemas().into_iter().find(|schema| schema.name == name).expect("it is described");
            let members = || schema.members.iter().filter(|member| member.name != "payload");
            let all: serde_json::Map<_, _> =
                members().map(|member| (member.name.to_owned(), example_of(member))).collect();
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
