//! Exports and imports of all tasks.

mod draining;

use std::fmt::Write as _;

use serde_json::{Value, json};
use tickwheel_server::{Config, Store, Tokens};

use crate::raw::{Connection, Reply};
use crate::served::{Served, on_any_port, until, virtual_memory};

/// The lines of a complete export.
fn export(served: &Served) -> Vec<Value> {
    exported(served.call("GET", "/v1/export", ""))
}

fn exported(reply: Reply) -> Vec<Value> {
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/x-ndjson")));
    let lines = reply.lines();
    assert!(lines[0].get("export").is_some(), "{}", lines[0]);
    assert!(lines.last().expect("lines")["end"].is_object(), "{lines:?}");
    lines
}

fn text(lines: &[Value]) -> String {
    let mut text = String::new();
    for line in lines {
        writeln!(text, "{line}").expect("memory");
    }
    text
}

/// Imports a text. Returns the last line of the answer, and the lines before it.
fn import(served: &Served, query: &str, text: &str) -> (Value, Vec<Value>) {
    let reply = served.call("POST", &format!("/v1/import{query}"), text);
    assert_eq!(reply.status, 200, "{}", reply.text());
    let mut rows = reply.lines();
    let end = rows.pop().expect("an end")["end"].take();
    (end, rows.into_iter().map(|mut row| row["line"].take()).collect())
}

fn kinds(lines: &[Value], kind: &str) -> Vec<Value> {
    lines.iter().filter_map(|line| line.get(kind)).cloned().collect()
}

/// The lines without those that differ from moment to moment (the header and cursors), and without the state.
fn plain(lines: &[Value]) -> Vec<Value> {
    let mut kept: Vec<Value> = lines
        .iter()
        .filter(|line| line.get("cursor").is_none() && line.get("export").is_none())
        .cloned()
        .collect();
    for line in &mut kept {
        if let Some(task) = line.get_mut("task") {
            task["state"] = Value::Null;
        }
    }
    kept.sort_by_key(ToString::to_string);
    kept
}

/// A server with an example of each thing: settings, a pause, tasks in all states, failures, a timeline, schedules.
fn full() -> Served {
    let served = Served::memory();
    served.expect(
        200,
        "PUT",
        "/v1/queues/shop%2Fclose",
        r#"{"max_in_flight":3,"rate":"5/s","retry":{"max_attempts":2,"backoff":"fixed","base":"0s"}}"#,
    );
    served.expect(200, "POST", "/v1/queues/held/pause", "");
    served.expect(200, "POST", "/v1/queues/held/drain", "");
    for (key, body) in [
        ("later", r#"{"delay":"1h","payload":{"a": 1.0},"tags":["vip"],"group":"g","priority":7}"#),
        ("bytes", r#"{"delay":"2h","payload_base64":"AAEC","content_type":"image/png","expire_after":"9h"}"#),
        ("lines", "{\"delay\":\"2h\",\"payload\":{\"a\":\n1}}"),
        ("planned", r#"{"timeline":[{"at_ms":5,"payload":1},{"at":"2090-01-01T00:00:00Z","payload":2}]}"#),
    ] {
        served.expect(201, "PUT", &format!("/v1/queues/shop%2Fclose/tasks/{key}"), body);
    }
    for (queue, body) in [("wrap", "{}"), ("dying", r#"{"retry":{"max_attempts":1}}"#)] {
        for _ in 0..2 {
            served.expect(201, "POST", &format!("/v1/queues/{queue}/tasks"), body);
        }
    }
    let dying = served.lease("dying", 1);
    served.say("dying", "nack", &[&dying[0]["token"]]);
    served.expect(
        201,
        "PUT",
        "/v1/queues/shop%2Fclose/schedules/hourly",
        r#"{"every":"1h","payload":{"x":1}}"#,
    );
    served.expect(
        201,
        "PUT",
        "/v1/queues/wrap/schedules/night",
        r#"{"cron":"0 2 * * *","tz":"Europe/Berlin"}"#,
    );
    served.expect(201, "PUT", "/v1/queues/slow/schedules/pause", r#"{"fixed_delay":"30m"}"#);
    served.advance("90m");
    assert_eq!(served.lease("wrap", 1).len(), 1, "one is in a worker's hands");
    served
}

#[test]
fn an_imported_export_is_exported_with_equal_lines() {
    let source = full();
    let lines = export(&source);
    let end = &lines.last().expect("lines")["end"];
    assert_eq!((&end["queues"], &end["dead"], &end["schedules"]), (&json!(3), &json!(1), &json!(3)));
    let head = &lines[0]["export"];
    assert_eq!((&head["format"], &head["virtual_clock"]), (&json!(1), &json!(true)));
    let running =
        kinds(&lines, "schedule").into_iter().find(|one| one["name"] == "pause").expect("it is there");
    assert!(running["running"].as_str().is_some_and(|key| key.starts_with("pause@")), "{running}");

    let target = Served::memory();
    target.advance("90m");
    let (done, rows) = import(&target, "", &text(&lines));
    assert_eq!(
        (&done["problem"], &done["skipped"], &done["new_ids"]),
        (&Value::Null, &json!(0), &json!(0)),
        "{done}"
    );
    assert_eq!(rows, [] as [Value; 0]);
    assert_eq!(done["next_line"], json!(lines.len() + 1));
    let again = export(&target);
    assert_eq!(plain(&again), plain(&lines));
    // Dead tasks stay dead with their failures, a paused queue stays paused, and attempts go on.
    let dead = kinds(&again, "dead");
    assert_eq!(
        (&dead[0]["failures"][0]["how"], &dead[0]["reason"]),
        (&json!("nacked"), &json!("max_attempts"))
    );
    assert_eq!(target.expect(200, "GET", "/v1/queues/held", "")["paused"], true);
    // The next import goes into the same server, and `skip` changes nothing.
    let (done, rows) = import(&target, "?existing=skip", &text(&lines));
    assert_eq!((&done["added"], &done["problem"]), (&json!(0), &Value::Null));
    assert_eq!(done["skipped"], json!(rows.len()));
    assert_eq!(plain(&export(&target)), plain(&lines));
    let (done, rows) = import(&target, "?existing=skip&quiet=true", &text(&lines));
    assert_eq!((rows.len(), done["added"].as_u64()), (0, Some(0)));
}

/// A moved schedule goes on as it would have gone on in the old server.
#[test]
fn a_moved_schedule_makes_equal_tasks() {
    let (source, target) = (full(), Served::memory());
    target.advance("90m");
    import(&target, "", &text(&export(&source)));
    for served in [&source, &target] {
        served.advance("3h");
    }
    let keys = |served: &Served| -> Vec<String> {
        let mut keys: Vec<String> =
            kinds(&export(served), "task").iter().map(|task| task["key"].to_string()).collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(&target), keys(&source));
    assert!(
        keys(&target).iter().filter(|key| key.starts_with("\"hourly@")).count() >= 4,
        "{:?}",
        keys(&target)
    );
}

#[test]
fn each_choice_for_existing_data() {
    let lines = export(&full());
    let served = Served::memory();
    served.expect(201, "PUT", "/v1/queues/shop%2Fclose/tasks/lines", r#"{"delay":"5h"}"#);
    served.expect(200, "PUT", "/v1/queues/shop%2Fclose", r#"{"max_in_flight":99}"#);
    served.expect(201, "PUT", "/v1/queues/shop%2Fclose/schedules/hourly", r#"{"every":"2h"}"#);
    let number = |wanted: &str| {
        1 + lines.iter().position(|line| line.to_string().contains(wanted)).expect("a line") as u64
    };
    let (settings, task, schedule) =
        (number("max_in_flight"), number("\"key\":\"lines\""), number("\"hourly\""));

    // `refuse` stops at the settings.
    let (done, _) = import(&served, "", &text(&lines));
    assert_eq!(
        (&done["next_line"], &done["problem"]["type"]),
        (&json!(settings), &json!("/problems/exists"))
    );
    assert!(
        done["problem"]["detail"]
            .as_str()
            .expect("text")
            .starts_with(&format!("line {settings}: queue `shop/close` already has other settings")),
        "{done}"
    );
    let settings_now =
        |served: &Served| served.expect(200, "GET", "/v1/queues/shop%2Fclose", "")["max_in_flight"].clone();
    assert_eq!(settings_now(&served), 99);

    // `skip` leaves the three as they are, and says so.
    let (done, rows) = import(&served, "?existing=skip", &text(&lines));
    assert_eq!(done["problem"], Value::Null);
    let numbers: Vec<u64> = rows.iter().map(|row| row["number"].as_u64().expect("a number")).collect();
    for wanted in [settings, task, schedule] {
        assert!(numbers.contains(&wanted), "{wanted} of {rows:?}");
    }
    assert!(rows.iter().all(|row| row["result"] == "skipped"), "{rows:?}");
    assert_eq!(settings_now(&served), 99);

    // `replace` takes the contents of the file.
    let (done, rows) = import(&served, "?existing=replace", &text(&lines));
    assert_eq!((&done["problem"], &done["added"]), (&Value::Null, &json!(0)), "{done}");
    assert!(rows.iter().any(|row| row["number"] == task && row["result"] == "replaced"), "{rows:?}");
    assert_eq!(settings_now(&served), 3);
    let hourly = served.expect(200, "GET", "/v1/queues/shop%2Fclose/schedules/hourly", "");
    assert_eq!(hourly["every"], "1h");
    let due = served.expect(200, "GET", "/v1/queues/shop%2Fclose/tasks/lines", "")["due_at"].clone();
    assert_eq!(
        due,
        kinds(&lines, "task").into_iter().find(|task| task["key"] == "lines").expect("it is there")["due_at"]
    );

    // Equal data is not changed, even if a pause of the file is over by now.
    for choice in ["refuse", "skip", "replace"] {
        let paused = r#"{"queue":{"queue":"shop/close","settings":{"max_in_flight":3,"rate":"5/s","retry":{"max_attempts":2,"backoff":"fixed","base":"0s"}},"paused":true,"paused_until":"2017-10-02T10:59:54Z","draining":false}}"#;
        let (done, _) = import(&served, &format!("?existing={choice}"), &format!("{HEAD}{paused}\n"));
        assert_eq!((&done["problem"], &done["skipped"]), (&Value::Null, &json!(1)), "{choice}: {done}");
    }

    // A worker has leased a task that is to be replaced.
    served.expect(200, "POST", "/v1/queues/wrap/resume", "");
    served.expect(201, "PUT", "/v1/queues/w/tasks/k", "{}");
    let of_w = text(&exported(served.call("GET", "/v1/export?queue=w", "")));
    assert_eq!(served.lease("w", 1).len(), 1);
    let (done, _) = import(&served, "?existing=replace", &of_w);
    assert_eq!(done["problem"]["type"], "/problems/leased", "{done}");
    let (done, _) = import(&served, "?existing=replace&revoke=true", &of_w);
    assert_eq!((&done["problem"], &done["replaced"]), (&Value::Null, &json!(1)));
}

#[test]
fn a_bad_line_ends_the_import_and_no_later_line_is_stored() {
    let source = Served::memory();
    for n in 0..700 {
        source.expect(201, "PUT", &format!("/v1/queues/q/tasks/k{n:04}"), r#"{"delay":"1h"}"#);
    }
    let mut lines = export(&source);
    let at = lines.iter().position(|line| line["task"]["key"] == "k0600").expect("a line");
    for (bad, detail) in [
        (
            json!({ "task": { "queue": "q", "key": "x", "due_at": "never", "put_at": "2030-01-01T00:00:00Z" } }),
            "`task.due_at`: `never`",
        ),
        (json!({ "tusk": 1 }), "`tusk`: is not a member of this request"),
        (
            json!({ "task": { "queue": "no spaces", "key": "x", "due_at": "2030-01-01T00:00:00Z", "put_at": "2030-01-01T00:00:00Z" } }),
            "the queue name has ' '",
        ),
        (
            json!({ "task": { "queue": "$jobs", "key": "x", "due_at": "2030-01-01T00:00:00Z", "put_at": "2030-01-01T00:00:00Z" } }),
            "the name `$jobs` is reserved for the server",
        ),
        (
            json!({ "task": { "queue": "q", "key": "k0001", "due_at": "2030-01-01T00:00:00Z", "put_at": "2030-01-01T00:00:00Z" } }),
            "queue `q` has a live task",
        ),
    ] {
        lines.insert(at, bad);
        let number = at as u64 + 1;
        let target = Served::memory();
        let (done, _) = import(&target, "", &text(&lines));
        lines.remove(at);
        assert_eq!((&done["next_line"], &done["added"]), (&json!(number), &json!(600)), "{done}");
        let told = done["problem"]["detail"].as_str().expect("text");
        assert!(told.starts_with(&format!("line {number}: {detail}")), "{told}");
        assert_eq!(target.counts("q"), [600, 0, 0]);
        // Without the bad line the import continues at that line. The header comes first again, and line numbers are
        // those of the file.
        let rest = text(&[&lines[..1], &lines[at..]].concat());
        let (done, _) = import(&target, &format!("?first_line={number}"), &rest);
        assert_eq!(
            (&done["problem"], &done["added"], &done["next_line"]),
            (&Value::Null, &json!(100), &json!(lines.len() + 1))
        );
        assert_eq!(plain(&export(&target)), plain(&lines));
    }
}

#[test]
fn an_export_goes_on_from_each_of_its_cursor_lines() {
    let served = Served::memory();
    for page in 0..3 {
        let lines: String = (0..900)
            .map(|n| format!("{{\"op\":\"put\",\"key\":\"k{page}-{n}\",\"delay\":\"1h\"}}\n"))
            .collect();
        assert_eq!(served.call("POST", "/v1/queues/q/batch", &lines).lines().len(), 900);
    }
    served.expect(201, "PUT", "/v1/queues/q/schedules/s", r#"{"every":"1h"}"#);
    let whole = export(&served);
    let cursors: Vec<usize> = (0..whole.len()).filter(|at| whole[*at].get("cursor").is_some()).collect();
    assert!(cursors.len() >= 3, "pages, and not everything at once");
    for at in cursors {
        let cursor = whole[at]["cursor"].as_str().expect("text");
        let rest = served.call("GET", &format!("/v1/export?cursor={cursor}"), "").lines();
        assert_eq!(rest, whole[at + 1..], "behind line {at}");
        served.call("GET", &format!("/v1/export?cursor={cursor}&queue=q"), "").assert_problem(
            400,
            "bad-request",
            "is not a cursor of this export",
        );
    }
    for at in whole.windows(2).map(|pair| pair[0].to_string().len()) {
        assert!(at < 4_096, "no line is long");
    }
}

/// Two halves of two stores are not an export, although the counts in the last line would match.
#[test]
fn a_cursor_of_another_server_is_refused_by_name() {
    let (one, other) = (full(), full());
    let lines = export(&one);
    assert_ne!(lines[0]["export"]["store"], export(&other)[0]["export"]["store"]);
    let cursor = kinds(&lines, "cursor").pop().expect("a cursor");
    let target = format!("/v1/export?cursor={}", cursor.as_str().expect("text"));
    other.call("GET", &target, "").assert_problem(400, "bad-request", "another server or data directory");
    assert_eq!(one.call("GET", &target, "").status, 200);
}

#[test]
fn an_export_of_one_queue_has_only_that_queue() {
    let lines = exported(full().call("GET", "/v1/export?queue=shop%2Fclose", ""));
    assert_eq!(lines[0]["export"]["queue"], "shop/close");
    for line in &lines {
        let queue = ["queue", "task", "dead", "schedule"].iter().find_map(|kind| line.get(*kind));
        assert!(queue.is_none_or(|one| one["queue"] == "shop/close"), "{line}");
    }
    assert_eq!(lines.last().expect("lines")["end"]["queues"], 1);
    let served = Served::memory();
    served.call("GET", "/v1/export?queue=no%20spaces", "").assert_problem(
        400,
        "bad-name",
        "the queue name has ' '",
    );
    served.call("GET", "/v1/export?queue=nosuch", "").assert_problem(
        404,
        "not-found",
        "there is no queue `nosuch`",
    );
    // A queue with only a schedule, or only settings, exists.
    served.expect(201, "PUT", "/v1/queues/timed/schedules/s", r#"{"every":"1h"}"#);
    served.expect(200, "PUT", "/v1/queues/set", r#"{"max_in_flight":9}"#);
    for queue in ["timed", "set"] {
        exported(served.call("GET", &format!("/v1/export?queue={queue}"), ""));
    }
    served.call("GET", "/v1/export?strange=1", "").assert_problem(400, "bad-request", "`strange`");
}

const ADMIN: &str = "a-canary-of-the-administrator";
const SHOP: &str = "a-canary-of-shop";
const READER: &str = "a-canary-of-a-reader";

#[test]
fn a_token_exports_and_imports_within_its_scope() {
    let text_of = format!("{ADMIN}\n{SHOP} rights=read,admin scope=shop/\n{READER} rights=read\n");
    let tokens = Tokens::parse(&text_of).expect("tokens");
    let served = Served::start(Config { tokens, ..virtual_memory() }).expect("started");
    let call = |token: &str, method: &str, target: &str, body: &str| {
        let bearer = format!("Bearer {token}");
        served.call_with(method, target, &[("authorization", &bearer)], body)
    };
    let all = export(&full());
    assert_eq!(
        call(ADMIN, "POST", "/v1/import", &text(&all)).lines().last().expect("an end")["end"]["problem"],
        Value::Null
    );
    let lines = exported(call(SHOP, "GET", "/v1/export", ""));
    assert_eq!(lines[0]["export"]["scope"], json!(["shop/"]));
    let found = kinds(&lines, "task");
    assert!(!found.is_empty() && found.iter().all(|task| task["queue"] == "shop/close"), "{found:?}");
    call(SHOP, "GET", "/v1/export?queue=wrap", "").assert_problem(404, "out-of-scope", "`wrap`");
    call(READER, "POST", "/v1/import", &text(&all)).assert_problem(403, "forbidden", "admin");
    let rows = call(SHOP, "POST", "/v1/import?existing=skip", &text(&all)).lines();
    let end = &rows.last().expect("an end")["end"];
    assert_eq!(end["problem"]["type"], "/problems/out-of-scope", "{end}");
    let first_other = all.iter().position(|line| line["queue"]["queue"] == "held").expect("a line") + 1;
    assert_eq!(end["next_line"], json!(first_other));
    let rows = call(SHOP, "POST", "/v1/import?existing=skip", &text(&lines)).lines();
    assert_eq!(rows.last().expect("an end")["end"]["problem"], Value::Null);
}

/// Without this, test tasks of the year 2090 could come into a production server, or a test's overdue tasks would all
/// be due at once.
#[test]
fn a_file_of_another_clock_is_taken_only_on_request() {
    let real = Served::start(on_any_port(Store::Memory)).expect("started");
    let virtual_lines = format!("{HEAD}{}", line("q", "a"));
    let real_lines = virtual_lines.replace("\"virtual_clock\":true", "\"virtual_clock\":false");
    for (served, own, other) in
        [(&real, &real_lines, &virtual_lines), (&Served::memory(), &virtual_lines, &real_lines)]
    {
        let (end, _) = import(served, "", other);
        let told = end["problem"]["detail"].as_str().expect("text");
        assert!(told.starts_with("line 1: the body: is the header of a file of"), "{told}");
        assert!(end["problem"]["hint"].as_str().expect("text").contains("other_clock=true"), "{end}");
        assert_eq!((&end["added"], &end["next_line"]), (&json!(0), &json!(2)), "{end}");
        let (end, _) = import(served, "?other_clock=true", other);
        assert_eq!((&end["added"], &end["problem"]), (&json!(1), &Value::Null), "{end}");
        let (end, _) = import(served, "?existing=skip", own);
        assert_eq!((&end["skipped"], &end["problem"]), (&json!(1), &Value::Null), "{end}");
    }
    real.call("POST", "/v1/import?revoke=true", &real_lines).assert_problem(
        400,
        "bad-request",
        "is for `existing=replace` alone",
    );
}

#[test]
fn refused_imports() {
    let served = Served::memory();
    let head = "{\"export\":{\"format\":1,\"at\":\"2030-01-01T00:00:00Z\",\"release\":\"0\",\"virtual_clock\":true}}\n";
    for (body, line, detail) in [
        (String::new(), 2, "line 1: the body: is no header"),
        ("{\"cursor\":\"a\"}\n".to_owned(), 2, "line 1: the body: is no header"),
        (head.replace("\"format\":1", "\"format\":2"), 2, "line 1: `export.format`: is 2"),
        (format!("{head}{head}"), 2, "line 2: the body: is a second header"),
        (format!("{head}\n\n{{\"task\":1}}"), 4, "line 4: `task`: expected an object"),
    ] {
        let (end, _) = import(&served, "", &body);
        assert_eq!(end["next_line"], json!(line), "{body}");
        assert!(end["problem"]["detail"].as_str().expect("text").starts_with(detail), "{end}");
    }
    let (end, _) = import(&served, "", head);
    assert_eq!((&end["next_line"], &end["problem"]), (&json!(2), &Value::Null));
    served.call("POST", "/v1/import?existing=perhaps", head).assert_problem(
        400,
        "bad-request",
        "`perhaps` is not known",
    );
    served.call("POST", "/v1/import?first_line=1", head).assert_problem(
        400,
        "bad-request",
        "is not a number from 2",
    );
    let task =
        r#"{"task":{"queue":"q","key":"k","due_at":"2030-01-01T00:00:00Z","put_at":"2030-01-01T00:00:00Z"}}"#;
    let many = format!("{head}{}", format!("{task}\n").repeat(10_001));
    let (end, _) = import(&served, "?existing=skip&quiet=true", &many);
    assert_eq!(
        (&end["next_line"], &end["added"], &end["skipped"]),
        (&json!(10_002), &json!(1), &json!(9_999))
    );
    assert_eq!(end["problem"]["status"], 413);
    served.expect(200, "POST", "/v1/drain", "");
    served.call("POST", "/v1/import", head).assert_problem(503, "server-draining", "no new tasks");
}

/// From one directory to another, all ids are kept. A new task of the server gets a higher id.
#[test]
fn ids_are_kept_on_a_server_that_never_had_a_task() {
    let lines = export(&full());
    let folder = tempfile::tempdir().expect("a folder");
    let config = || Config { virtual_clock: true, ..on_any_port(Store::Dir(folder.path().join("data"))) };
    let target = Served::start(config()).expect("started");
    target.advance("90m");
    import(&target, "", &text(&lines));
    target.stop();
    let target = Served::start(config()).expect("started");
    assert_eq!(plain(&export(&target)), plain(&lines), "after a restart");
    let id = target.expect(201, "POST", "/v1/queues/q/tasks", "{}")["id"].as_u64().expect("an id");
    assert!(kinds(&lines, "task").iter().all(|task| task["id"].as_u64().expect("an id") < id));
    let (done, _) = import(&target, "?existing=replace&revoke=true", &text(&lines));
    assert_eq!(done["problem"], Value::Null);
    let other = Served::memory();
    // Each shard has had a task.
    for n in 0..10 {
        other.expect(201, "PUT", &format!("/v1/queues/other-{n}/tasks/k"), "{}");
    }
    let (done, _) = import(&other, "", &text(&lines));
    assert_eq!(
        (&done["problem"], &done["new_ids"]),
        (&Value::Null, &json!(kinds(&lines, "task").len() + kinds(&lines, "dead").len()))
    );
}

/// Puts tasks that are due in nine hours, in one batch.
fn fill(served: &Served, queue: &str, tasks: usize) {
    let lines: String =
        (0..tasks).map(|n| format!("{{\"op\":\"put\",\"key\":\"k{n:05}\",\"delay\":\"9h\"}}\n")).collect();
    let batch = format!("/v1/queues/{}/batch", queue.replace('/', "%2F"));
    assert_eq!(served.call("POST", &batch, &lines).lines().len(), tasks);
}

/// A position in the store tells when a task of another user is due, and how many tasks there are.
#[test]
fn a_cursor_reveals_nothing_about_tasks_outside_of_the_scope() {
    let tokens = Tokens::parse(&format!("{ADMIN}\n{SHOP} rights=read scope=shop/\n")).expect("tokens");
    let served = Served::start(Config { tokens, ..virtual_memory() }).expect("started");
    let call = |token: &str, target: &str, body: &str| {
        let bearer = format!("Bearer {token}");
        let method = if body.is_empty() { "GET" } else { "POST" };
        served.call_with(method, target, &[("authorization", &bearer)], body)
    };
    let put = |queue: &str, from: usize, to: usize| {
        let line =
            |n| format!("{{\"op\":\"put\",\"key\":\"k{n}\",\"at_ms\":{}}}\n", 4_000_000_000_000 + n as u64);
        let lines: String = (from..to).map(line).collect();
        assert_eq!(call(ADMIN, &format!("/v1/queues/{queue}/batch"), &lines).status, 200);
    };
    let cursors = || {
        let lines = exported(call(SHOP, "/v1/export", ""));
        let count = lines.iter().filter(|line| line.get("cursor").is_some()).count();
        (lines, count)
    };
    put("shop%2Fa", 0, 1_500);
    let (alone, before) = cursors();
    // Pages of other users' tasks come before, between and after them.
    put("other", 0, 5_000);
    let (lines, after) = cursors();
    assert_eq!(plain(&lines), plain(&alone));
    assert!(after <= before + 2, "{after} cursor lines, and {before} without the tasks of others");
    let found = kinds(&lines, "task");
    assert_eq!(found.len(), 1_500);
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.get("cursor").is_some()) {
        let text = line["cursor"].as_str().expect("text");
        let parts: Vec<&str> = text.split('-').collect();
        let due_ms = u64::from_str_radix(parts[4], 16).expect("a number");
        let before = lines[..at].iter().rev().find_map(|line| line.get("task"));
        let shown = before.map_or(0, |task| {
            let key = task["key"].as_str().expect("a key");
            4_000_000_000_000 + key[1..].parse::<u64>().expect("a number")
        });
        assert_eq!(due_ms, shown, "line {at} leads behind the task before it");
        let rest = call(SHOP, &format!("/v1/export?cursor={text}"), "").lines();
        assert_eq!(plain(&rest), plain(&lines[at + 1..]), "behind line {at}");
    }
}

/// A schedule makes a task between an export that broke off and its continuation. The task is due before the export's
/// position, so no page has it. So the line of the schedule must not say that this instant is decided.
#[test]
fn an_export_that_goes_on_loses_no_instant_of_a_schedule() {
    for spec in [
        r#"{"every":"1h","payload":1}"#,
        r#"{"cron":"0 * * * *","payload":1}"#,
        r#"{"fixed_delay":"1h","payload":1}"#,
    ] {
        let source = Served::memory();
        fill(&source, "far", 1_500);
        // The export has passed the tasks that are due within nine hours, and continues two hours later.
        source.expect(201, "PUT", "/v1/queues/s/schedules/hourly", spec);
        source.advance("90s");
        let first = export(&source);
        let at = (0..first.len()).rfind(|at| first[*at].get("cursor").is_some()).expect("pages");
        source.advance("58m");
        source.advance("1h");
        let cursor = first[at]["cursor"].as_str().expect("text");
        let rest = source.call("GET", &format!("/v1/export?cursor={cursor}"), "").lines();
        let lines = [&first[..=at], &rest[..]].concat();
        let made: Vec<String> = kinds(&export(&source), "task")
            .iter()
            .filter(|task| task["queue"] == "s")
            .map(|task| task["key"].to_string())
            .collect();
        assert!(!made.is_empty(), "{spec}");

        let target = Served::memory();
        target.advance("90s");
        target.advance("58m");
        target.advance("1h");
        let (done, _) = import(&target, "?existing=skip", &text(&lines));
        assert_eq!(done["problem"], Value::Null, "{done}");
        target.advance("1s");
        let there: Vec<String> = kinds(&export(&target), "task")
            .iter()
            .filter(|task| task["queue"] == "s")
            .map(|task| task["key"].to_string())
            .collect();
        // The last of the missed instants is made up. The other tasks come from the pages.
        let last = made.iter().max().expect("one");
        assert!(there.contains(last), "{spec}: {there:?} without {last}");
    }
}

/// A request whose lines are sent one by one.
fn begin(served: &Served, query: &str) -> Connection {
    let mut connection = served.connect();
    let head = format!(
        "POST /v1/import{query} HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n",
        served.addr
    );
    connection.send(head.as_bytes());
    assert_eq!(connection.head().status, 200);
    connection
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn line(queue: &str, key: &str) -> String {
    let at = "\"due_at\":\"2090-01-01T00:00:00Z\",\"put_at\":\"2017-01-01T00:00:00Z\"";
    format!("{{\"task\":{{\"queue\":\"{queue}\",\"key\":\"{key}\",{at}}}}}\n")
}

const HEAD: &str =
    "{\"export\":{\"format\":1,\"at\":\"2030-01-01T00:00:00Z\",\"release\":\"0\",\"virtual_clock\":true}}\n";

/// The last line of an answer whose head was read already.
fn end_of(connection: &mut Connection) -> Value {
    let mut body = Vec::new();
    while connection.chunk(&mut body) {}
    let text = String::from_utf8(body).expect("UTF-8");
    let last = text.lines().last().expect("an end");
    serde_json::from_str::<Value>(last).expect("JSON")["end"].take()
}

/// Settings are stored with their line. So when a test sees them, the lines before them are stored.
const SETTINGS: &str = "{\"queue\":{\"queue\":\"mark\",\"draining\":true}}\n";

/// The lines of a client that leaves stay stored, except a line that it had not sent completely.
#[test]
fn a_client_that_leaves_in_the_middle_leaves_whole_lines() {
    let served = Served::memory();
    let mut connection = begin(&served, "");
    let half = line("q", "c");
    let sent = format!("{HEAD}{}{SETTINGS}{}{}", line("q", "a"), line("q", "b"), &half[..half.len() - 9]);
    connection.send(chunk(&sent).as_bytes());
    until("the first lines are in", || served.expect(200, "GET", "/v1/queues/mark", "")["draining"] == true);
    drop(connection);
    // The permit of the request is free again, and the file is imported from the beginning.
    let whole = format!("{HEAD}{}{SETTINGS}{}{}", line("q", "a"), line("q", "b"), half);
    let (done, _) = import(&served, "?existing=skip", &whole);
    assert_eq!(done["problem"], Value::Null, "{done}");
    assert_eq!(served.counts("q"), [3, 0, 0]);
}

/// After a body that breaks off, complete lines are stored, and the answer says from where to continue.
#[test]
fn a_body_that_breaks_off_takes_in_no_half_line() {
    for broken in ["zz\r\n", "40\r\n"] {
        let served = Served::memory();
        let mut connection = begin(&served, "");
        let half = line("q", "b");
        let sent = format!("{HEAD}{}{}", line("q", "a"), &half[..half.len() - 9]);
        connection.send(format!("{}{broken}", chunk(&sent)).as_bytes());
        connection.finish();
        let end = end_of(&mut connection);
        assert_eq!((&end["next_line"], &end["added"]), (&json!(3), &json!(1)), "{broken:?}: {end}");
        assert_eq!(end["problem"]["status"], 400, "{broken:?}: {end}");
        assert_eq!(served.counts("q"), [1, 0, 0], "{broken:?}");
    }
}

/// Two clients import one file at the same time: each line is stored once.
#[test]
fn two_imports_at_once_have_one_task_for_each_key() {
    let source = Served::memory();
    fill(&source, "q", 2_000);
    let lines = export(&source);
    let target = Served::memory();
    let text = text(&lines);
    let ends: Vec<Value> = std::thread::scope(|scope| {
        let both = [(); 2].map(|()| scope.spawn(|| import(&target, "?existing=skip", &text).0));
        both.map(|one| one.join().expect("it ends")).into()
    });
    assert!(ends.iter().all(|end| end["problem"].is_null()), "{ends:?}");
    let sum = |name: &str| -> u64 { ends.iter().map(|end| end[name].as_u64().expect("a number")).sum() };
    assert_eq!((sum("added"), sum("skipped"), sum("new_ids")), (2_000, 2_000, 0), "{ends:?}");
    assert_eq!(plain(&export(&target)), plain(&lines));
}

#[test]
fn lines_may_have_other_line_ends_and_no_duplicate_members() {
    let served = Served::memory();
    let (a, b) = (line("q", "a"), line("q", "b"));
    let crlf = format!("{HEAD}\n{a}\n{b}").replace('\n', "\r\n");
    let (end, _) = import(&served, "", &crlf);
    assert_eq!((&end["problem"], &end["added"], &end["next_line"]), (&Value::Null, &json!(2), &json!(6)));
    let at = "\"due_at\":\"2090-01-01T00:00:00Z\",\"put_at\":\"2017-01-01T00:00:00Z\"";
    for (bad, detail) in [
        (
            format!("{{\"task\":{{\"queue\":\"q\",\"queue\":\"q\",\"key\":\"c\",{at}}}}}"),
            "`task.queue`: is given twice",
        ),
        (
            format!("{{\"task\":{{\"queue\":\"q\",\"key\":\"c\",\"color\":1,{at}}}}}"),
            "`task.color`: is not a member",
        ),
        (
            format!("{{\"task\":{{\"queue\":\"q\",\"key\":\"c\",{at}}},\"cursor\":\"a\"}}"),
            "the body: has 2 members",
        ),
        (
            format!("{{\"task\":{{\"queue\":\"q\",\"key\":\"c\",\"attempt\":4294967296,{at}}}}}"),
            "`task.attempt`",
        ),
    ] {
        let (end, _) = import(&served, "", &format!("{HEAD}{bad}\n"));
        let told = end["problem"]["detail"].as_str().expect("text");
        assert!(told.starts_with(&format!("line 2: {detail}")), "{told}");
    }
    let mut not_utf8 = format!("{HEAD}{{\"task\":{{\"queue\":\"q\",\"key\":\"").into_bytes();
    not_utf8.extend_from_slice(&[0xff, b'"', b'}', b'}', b'\n']);
    let mut connection = served.connect();
    connection.request("POST", "/v1/import", &[], &not_utf8);
    let rows = connection.reply().lines();
    let told = rows[0]["end"]["problem"]["detail"].as_str().expect("text");
    assert!(told.starts_with("line 2: the body: is not"), "{told}");
    let long = format!("{HEAD}{a}{{\"cursor\":\"{}\"}}\n{b}", "x".repeat(2 << 20));
    let (end, _) = import(&served, "?existing=skip", &long);
    assert_eq!((&end["next_line"], &end["problem"]["status"]), (&json!(3), &json!(413)), "{end}");
}

/// A running lease is not exported as an ended attempt. The server's own queue is not exported.
#[test]
fn leases_and_jobs_in_an_export() {
    let served = Served::memory();
    served.expect(201, "PUT", "/v1/queues/q/tasks/k", "{}");
    assert_eq!(served.lease("q", 1)[0]["attempt"], 1);
    let task = kinds(&export(&served), "task").remove(0);
    assert_eq!((&task["state"], task.get("attempt")), (&json!("leased"), None));
    for half in ["m", "n"] {
        let line = |n| format!("{{\"op\":\"put\",\"key\":\"{half}{n}\",\"delay\":\"1h\"}}\n");
        let many: String = (0..9_000).map(line).collect();
        assert_eq!(served.call("POST", "/v1/queues/m/batch", &many).status, 200);
    }
    let job = served.call("POST", "/v1/queues/m/cancel", r#"{"filter":{}}"#).json();
    assert!(job["id"].is_u64(), "it is long enough for a job: {job}");
    let lines = export(&served);
    assert!(!text(&lines).contains("$jobs"), "a job is no task of a user");
}

/// Settings are stored only after the tasks of the lines before them.
#[test]
fn settings_wait_for_the_lines_before_them() {
    let served = Served::memory();
    served.expect(201, "PUT", "/v1/queues/q/tasks/b", "{}");
    let lines = format!("{HEAD}{}{}{SETTINGS}", line("q", "a"), line("q", "b"));
    let (end, _) = import(&served, "", &lines);
    assert_eq!((&end["next_line"], &end["problem"]["type"]), (&json!(3), &json!("/problems/live")), "{end}");
    assert_ne!(served.expect(200, "GET", "/v1/queues/mark", "")["draining"], true);
}

#[test]
fn a_token_imports_no_more_tasks_than_it_may_have() {
    let tokens = Tokens::parse(&format!("{SHOP} rights=read,admin scope=shop/ tasks=2\n")).expect("tokens");
    let served = Served::start(Config { tokens, ..virtual_memory() }).expect("started");
    let bearer = format!("Bearer {SHOP}");
    let call = |lines: &str| {
        let reply =
            served.call_with("POST", "/v1/import?existing=skip", &[("authorization", &bearer)], lines);
        reply.lines().pop().expect("an end")["end"].take()
    };
    let lines = |keys: &[&str]| -> String {
        std::iter::once(HEAD.to_owned()).chain(keys.iter().map(|key| line("shop/q", key))).collect()
    };
    assert_eq!(call(&lines(&["a", "b"]))["added"], 2);
    // The tasks are counted again when the last count is old.
    let mut end = Value::Null;
    until("the tasks are counted", || {
        end = call(&lines(&["c"]));
        !end["problem"].is_null() || end["added"] == 0
    });
    assert_eq!(end["problem"]["type"], "/problems/busy", "{end}");
}
