//! `docs/reference/problems.md`: every kind of problem, with an answer of a real server.

use std::path::PathBuf;

use serde_json::{Value, json};
use tickwheel_api::{Problem, ProblemKind};
use tickwheel_server::{Config, Store, Tokens};

use crate::backups::with_place;
use crate::databases::is_left_out;
use crate::raw::Reply;
use crate::served::{Served, on_any_port, virtual_memory};
use crate::tls::certificate;

/// An answer of one kind, and the call that got it.
struct Example {
    /// The call, or what happened.
    cause: String,
    body: Value,
}

/// The members that each problem has. The page names the others for each kind.
const OF_ALL: [&str; 5] = ["type", "title", "status", "detail", "hint"];

const TASK: &str = "/v1/queues/close/tasks/order:1";

const HEAD: &str = "\
# Problems

This page lists every error that the HTTP API answers: what it means, whether the call had an effect, what to do, and an example. A refused call is answered with a *problem*: a JSON object by RFC 9457, with the content type
`application/problem+json`. Its `type` names the kind of the problem, and does not change from version to version: a program should look at `type` or at the status, and not at the texts.

| member | |
|---|---|
| `type` | the kind: one of the list below |
| `title` | the kind in words |
| `status` | the HTTP status |
| `detail` | the fault in this case, with the value and the limit |
| `hint` | what the caller can do in this case |

Further members depend on the kind, and each section below names them. [`Problem`](http.md#problem) has the type of each member.

The server itself has these texts, too: `GET /problems/not-found` answers the meaning and the remedy as JSON, and as a page in a browser. So the `type` of an answer is a link that works, relative to the server.

A call that was answered 408, 429 or 503 may be sent again, because it had no effect. There are three exceptions: after [indeterminate](#indeterminate) the effect is unknown; of a batch, the lines that were answered took effect; and after [read-only](#read-only) the server has to be started again first. With
`Retry-After`, wait for that number of seconds first; the member `retry_after_s` has the same number. `tickwheel --retries 5` and the Rust client do this after `busy`, `backlog-full`, `starting` and `stopping`. A call with another
problem is refused again until something changes.

This page is made from the program, and a test compares the two. [Troubleshooting](../how-to/troubleshooting.md) begins with what you see instead.

## All problems

| type | status | title |
|---|---|---|
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    for kind in ProblemKind::ALL {
        let (name, status, title) = (name(kind), kind.status(), kind.title());
        page.push_str(&format!("| [`{name}`](#{name}) | {status} | {title} |\n"));
    }
    for kind in ProblemKind::ALL {
        let Example { cause, body } = example(kind);
        assert_eq!(body["type"], kind.type_uri(), "{body}");
        assert_eq!(
            (&body["status"], &body["title"]),
            (&json!(kind.status()), &json!(kind.title())),
            "{body}"
        );
        let (meaning, remedy) = kind.explained();
        page.push_str(&format!("\n## `{}`\n\n", name(kind)));
        page.push_str(&format!("**{}: {}.** {meaning}\n\n", kind.status(), kind.title()));
        page.push_str(&format!("Remedy: {remedy}\n\n"));
        let own: Vec<String> = members(kind, &body).iter().map(|name| format!("`{name}`")).collect();
        if !own.is_empty() {
            page.push_str(&format!("Further members: {}.\n\n", own.join(", ")));
        }
        page.push_str(&format!("{cause}:\n\n```json\n{}\n```\n", pretty(kind, &body)));
    }
    page
}

fn name(kind: ProblemKind) -> &'static str {
    kind.type_uri().trim_start_matches("/problems/")
}

/// The body with a member in each line, in the order of a real answer.
fn pretty(kind: ProblemKind, body: &Value) -> String {
    let own = members(kind, body).into_iter();
    let names = OF_ALL.map(str::to_owned).into_iter().chain(own);
    let lines = names.filter_map(|name| Some(format!("  \"{name}\": {}", body.get(&name)?)));
    format!("{{\n{}\n}}", lines.collect::<Vec<_>>().join(",\n"))
}

/// The members of a kind beside those that all have.
fn members(kind: ProblemKind, body: &Value) -> Vec<String> {
    if kind == ProblemKind::BadRequest {
        // One of them is there, or none.
        return ["member", "parameter", "header"].map(str::to_owned).to_vec();
    }
    let members = body.as_object().expect("an object").keys();
    let mut members: Vec<String> = members.filter(|name| !OF_ALL.contains(&name.as_str())).cloned().collect();
    members.sort();
    members
}

/// The problem that a server answers to this call, after calls that must work.
fn after(served: &Served, before: &[(&str, &str, &str)], method: &str, target: &str, body: &str) -> Example {
    for (method, target, body) in before {
        let reply = served.call(method, target, body);
        assert!(reply.status < 300, "{method} {target}: {}", reply.text());
    }
    let shown = if body.is_empty() { String::new() } else { format!(" with `{body}`") };
    answer(format!("`{method} {target}`{shown}"), &served.call(method, target, body))
}

fn fresh(before: &[(&str, &str, &str)], method: &str, target: &str, body: &str) -> Example {
    after(&Served::memory(), before, method, target, body)
}

fn answer(call: String, reply: &Reply) -> Example {
    Example { cause: format!("Answer to {call}"), body: reply.json() }
}

/// A problem that needs a fault of the machine or seconds of waiting. The tests of these faults compare the kind.
fn made(cause: &str, problem: &Problem) -> Example {
    let body = serde_json::from_slice(&problem.to_json()).expect("JSON");
    Example { cause: format!("Answer {cause}"), body }
}

const BOSS: &str = "a-token-of-the-operator-1";
const WORKER: &str = "a-token-of-a-worker-00001";

/// A call with a token of a worker, whose line in the file of tokens ends in `rights`.
fn with_token(rights: &str, token: &str, calls: &[(&str, &str, &str)]) -> Example {
    let tokens = Tokens::parse(&format!("{BOSS}\n{WORKER} {rights}\n")).expect("tokens");
    let served = Served::start(Config { tokens, ..virtual_memory() }).expect("started");
    let bearer = format!("Bearer {token}");
    let mut last = None;
    for (method, target, body) in calls {
        let headers = [("Authorization", bearer.as_str())];
        let headers = if token.is_empty() { &headers[..0] } else { &headers[..] };
        last = Some((method, target, served.call_with(method, target, headers, body)));
    }
    let (method, target, reply) = last.expect("a call");
    let whose = if token.is_empty() {
        "without a token".to_owned()
    } else {
        format!("with a token that has `{rights}`")
    };
    answer(format!("`{method} {target}` {whose}"), &reply)
}

/// Replaces the instants of the run by others.
fn with_instants(mut example: Example, instants: [&str; 2]) -> Example {
    let detail = example.body["detail"].as_str().expect("a detail").to_owned();
    let mut instants = instants.into_iter();
    let words = detail
        .split(' ')
        .map(|word| if word.ends_with('Z') { instants.next().expect("as many instants") } else { word });
    example.body["detail"] = words.collect::<Vec<_>>().join(" ").into();
    example
}

fn example(kind: ProblemKind) -> Example {
    let put = |body: &'static str| ("PUT", TASK, body);
    match kind {
        ProblemKind::BadRequest => fresh(&[], "PUT", TASK, r#"{"delay":"30min"}"#),
        ProblemKind::BadName => fresh(&[], "PUT", "/v1/queues/-close/tasks/order:1", "{}"),
        ProblemKind::TooFar => fresh(&[], "PUT", TASK, r#"{"delay":"40000d"}"#),
        ProblemKind::ExpiresFirst => with_instants(
            fresh(&[], "PUT", TASK, r#"{"delay":"1h","expire_after":"1m"}"#),
            ["2030-01-01T08:01:00.000Z", "2030-01-01T09:00:00.000Z"],
        ),
        ProblemKind::NotFound => fresh(&[], "GET", TASK, ""),
        ProblemKind::Done => {
            let served = Served::memory();
            served.expect(201, "PUT", TASK, "{}");
            let leased = served.lease("close", 1);
            served.say("close", "ack", &[&leased[0]["token"]]);
            after(&served, &[], "DELETE", TASK, "")
        }
        ProblemKind::NoTarget => fresh(&[], "GET", "/v1/queues/close/target", ""),
        ProblemKind::OrderConflict => fresh(
            &[("PUT", "/v1/queues/close", r#"{"max_in_flight_per_group":2}"#)],
            "PUT",
            "/v1/queues/close/target",
            r#"{"kind":"webhook","url":"https://shop.example/","order":"group"}"#,
        ),
        ProblemKind::NoSecretKey => fresh(
            &[],
            "PUT",
            "/v1/queues/close/target",
            r#"{"kind":"webhook","url":"https://shop.example/","auth":{"bearer":"a-token"}}"#,
        ),
        ProblemKind::Unsupported => made(
            "to a target at a broker from a program that was built without its feature",
            &Problem::unsupported("kafka"),
        ),
        ProblemKind::NoJob => fresh(&[], "GET", "/v1/jobs/7", ""),
        ProblemKind::NoSchedule => fresh(&[], "GET", "/v1/queues/reports/schedules/nightly", ""),
        ProblemKind::NoBackup => {
            let (_place, served) = with_place();
            after(&served, &[], "GET", "/v1/backups/7", "")
        }
        ProblemKind::NoBackupDir => fresh(&[], "POST", "/v1/backups", ""),
        ProblemKind::NoEndpoint => fresh(&[], "GET", "/v1/queue", ""),
        ProblemKind::NoVirtualClock => {
            let served = Served::start(on_any_port(Store::Memory)).expect("started");
            after(&served, &[], "POST", "/v1/clock/advance", r#"{"by":"15d"}"#)
        }
        ProblemKind::BadMethod => fresh(&[], "POST", "/v1/queues", ""),
        ProblemKind::Unauthorized => with_token("rights=consume", "", &[("GET", "/v1/queues", "")]),
        ProblemKind::Forbidden => with_token("rights=consume", WORKER, &[("PUT", TASK, "{}")]),
        ProblemKind::OutOfScope => with_token("scope=shop/", WORKER, &[("PUT", TASK, "{}")]),
        ProblemKind::OwnQueue => fresh(&[], "PUT", "/v1/queues/$jobs/tasks/a", "{}"),
        ProblemKind::ForeignOrigin => {
            let headers = [("Origin", "http://evil.example")];
            let reply = Served::memory().call_with("PUT", TASK, &headers, "{}");
            answer(format!("`PUT {TASK}` with `Origin: http://evil.example`"), &reply)
        }
        ProblemKind::ForeignHost => {
            let served = Served::memory();
            let mut connection = served.connect();
            connection.send(b"GET /v1/queues HTTP/1.1\r\nHost: tasks.example\r\n\r\n");
            answer("`GET /v1/queues` with `Host: tasks.example`".to_owned(), &connection.reply())
        }
        ProblemKind::NeedsTls => {
            let directory = tempfile::tempdir().expect("a directory");
            let (files, _) = certificate(directory.path());
            let served = Served::start(Config { tls: Some(files), ..virtual_memory() }).expect("started");
            answer("`GET http://localhost:8463/v1/queues`".to_owned(), &served.call("GET", "/v1/queues", ""))
        }
        ProblemKind::Timeout => made("to a call whose body comes too slowly", &Problem::timeout(30_000)),
        ProblemKind::Live => fresh(
            &[put(r#"{"delay":"30m"}"#)],
            "PUT",
            "/v1/queues/close/tasks/order:1?mode=create",
            r#"{"delay":"30m"}"#,
        ),
        ProblemKind::Dead => {
            let served = Served::memory();
            served.expect(201, "PUT", TASK, r#"{"retry":{"max_attempts":1}}"#);
            let leased = served.lease("close", 1);
            served.say("close", "nack", &[&leased[0]["token"]]);
            after(&served, &[], "PATCH", TASK, r#"{"delay":"1h"}"#)
        }
        ProblemKind::Draining => fresh(
            &[put("{}"), ("POST", "/v1/queues/close/drain", "")],
            "PUT",
            "/v1/queues/close/tasks/order:2",
            "{}",
        ),
        ProblemKind::TooMany => made(
            "to settings for one more queue, with a pause or a drain",
            &Problem::too_many("queues with settings, a pause or a drain", 10_000),
        ),
        ProblemKind::BackupUnderWay => {
            let (_place, served) = with_place();
            let begun = served.expect(202, "POST", "/v1/backups", "");
            let mut example = after(&served, &[], "POST", "/v1/backups", "");
            for member in ["detail", "hint"] {
                let text = example.body[member].as_str().expect("a text");
                let text = text.replace(&begun["id"].to_string(), "7");
                example.body[member] = text.into();
            }
            example
        }
        ProblemKind::Exists => {
            let served = Served::memory();
            served.expect(200, "PUT", "/v1/queues/close", r#"{"max_in_flight":3}"#);
            let lines = served.call("GET", "/v1/export", "").text();
            served.expect(200, "PUT", "/v1/queues/close", r#"{"max_in_flight":4}"#);
            let end = served.call("POST", "/v1/import", &lines).lines().pop().expect("a last line");
            let cause = "In the last line of the answer to `POST /v1/import`".to_owned();
            Example { cause, body: end["end"]["problem"].clone() }
        }
        ProblemKind::Timeline => fresh(
            &[put(r#"{"timeline":[{"at":"2090-01-01T00:00:00Z"},{"at":"2091-01-01T00:00:00Z"}]}"#)],
            "PATCH",
            TASK,
            r#"{"delay":"3h"}"#,
        ),
        ProblemKind::QueueNotEmpty => fresh(&[put("{}")], "DELETE", "/v1/queues/close", ""),
        ProblemKind::Leased => {
            fresh(&[put("{}"), ("POST", "/v1/queues/close/lease", "{}")], "DELETE", TASK, "")
        }
        ProblemKind::NotLeased => fresh(&[put("{}")], "POST", &format!("{TASK}/release"), ""),
        ProblemKind::VersionMismatch => {
            let served = Served::memory();
            served.expect(201, "PUT", TASK, "{}");
            let reply = served.call_with("DELETE", TASK, &[("If-Match", "\"41\"")], "");
            answer(format!("`DELETE {TASK}` with `If-Match: \"41\"`"), &reply)
        }
        ProblemKind::BodyTooLarge => {
            let reply = Served::memory().call("PUT", TASK, &" ".repeat((1 << 20) + 1));
            answer(format!("`PUT {TASK}` with a body of more than 1 MiB"), &reply)
        }
        ProblemKind::UriTooLong => {
            let reply = Served::memory().call("GET", &format!("/{}", "a".repeat(8 << 10)), "");
            answer("`GET` with a URI of more than 8 KiB".to_owned(), &reply)
        }
        ProblemKind::BadMediaType => {
            let reply =
                Served::memory().call_with("PUT", TASK, &[("Content-Type", "application/xml")], "<a/>");
            answer(format!("`PUT {TASK}` with `Content-Type: application/xml`"), &reply)
        }
        ProblemKind::HeadersTooLarge => {
            let long = "y".repeat(16 << 10);
            let reply = Served::memory().call_with("GET", "/v1/queues", &[("X", &long)], "");
            answer("`GET /v1/queues` with headers of more than 16 KiB".to_owned(), &reply)
        }
        ProblemKind::Busy => with_token(
            "tasks=1",
            WORKER,
            &[("PUT", TASK, "{}"), ("PUT", "/v1/queues/close/tasks/order:2", "{}")],
        ),
        ProblemKind::BacklogFull => fresh(
            &[("PUT", "/v1/queues/close", r#"{"max_backlog":1}"#), put("{}")],
            "PUT",
            "/v1/queues/close/tasks/order:2",
            "{}",
        ),
        ProblemKind::Internal => {
            made("after a fault of the program", &Problem::internal("a part of the server failed"))
        }
        ProblemKind::Starting => made("to a call during the start", &Problem::starting()),
        ProblemKind::Stopping => made("to a call after SIGTERM", &Problem::stopping()),
        ProblemKind::ServerDraining => fresh(&[("POST", "/v1/drain", "")], "PUT", TASK, "{}"),
        ProblemKind::ReadOnly => made(
            "to a put after a write to the disk failed",
            &Problem::read_only("cannot sync the log: Input/output error"),
        ),
        ProblemKind::Indeterminate => made(
            "to the put whose write to the disk failed",
            &Problem::indeterminate("cannot sync the log: Input/output error"),
        ),
        ProblemKind::NoDescriptors => made("to a put without a descriptor", &Problem::no_descriptors()),
        ProblemKind::StorageFull => made("to a put on a full disk", &Problem::storage_full(4_096, 0)),
        other => panic!("{other:?} needs an example"),
    }
}

fn path() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "docs", "reference", "problems.md"].iter().collect()
}

#[test]
fn the_page_of_problems_is_that_of_this_version() {
    if is_left_out("the page shows problems with a directory") {
        return;
    }
    let (made, written) = (page(), std::fs::read_to_string(path()).unwrap_or_default());
    let differs = made.lines().zip(written.lines()).position(|(made, written)| made != written);
    assert!(
        written == made,
        "docs/reference/problems.md is not the page of this version from line {} on; this command rewrites it: \
         cargo test -p tickwheel-server --test it write_the_page_of_problems -- --ignored",
        differs.map_or_else(|| made.lines().count().min(written.lines().count()) + 1, |line| line + 1)
    );
}

#[test]
#[ignore = "it writes docs/reference/problems.md"]
fn write_the_page_of_problems() {
    std::fs::write(path(), page()).expect("written");
}
