//! The log of a server: its lines, the data that must not be in it, and the page about it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tickwheel_server::{events, hashed};

use crate::server::tickwheel;

/// A server whose log goes to a file. Dropping it kills it.
struct Logged {
    child: Child,
    address: String,
    log: PathBuf,
    _directory: tempfile::TempDir,
}

impl Logged {
    /// Starts a server with these options, in a directory of its own.
    fn start(options: &[&str], variables: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path().join("data");
        Self::over(directory, &data, options, variables)
    }

    fn over(directory: tempfile::TempDir, data: &Path, options: &[&str], variables: &[(&str, &str)]) -> Self {
        let log = directory.path().join("log");
        let mut child = tickwheel(&["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .args(options)
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).expect("a file"))
            .spawn()
            .expect("start a server");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("its first line");
        let address = line.trim_end().strip_prefix("listening http://").map(str::to_owned);
        let Some(address) = address else {
            panic!("the first line was {line:?}: {}", fs::read_to_string(&log).unwrap_or_default())
        };
        Self { child, address, log, _directory: directory }
    }

    /// Makes one call and returns its status.
    fn call(&self, method: &str, target: &str, token: Option<&str>, body: &str) -> u16 {
        let mut socket = TcpStream::connect(&self.address).expect("connected");
        let token = token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
        let (host, bytes) = (&self.address, body.len());
        write!(
            socket,
            "{method} {target} HTTP/1.1\r\nHost: {host}\r\n{token}Content-Length: {bytes}\r\nConnection: close\r\n\r\n{body}"
        )
        .expect("sent");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.log).expect("a log")
    }

    /// Waits until a line has all of these parts.
    fn wait_for(&self, parts: &[&str]) -> String {
        let ends = Instant::now() + tickwheel_testing::HANG_TIME;
        loop {
            let text = self.text();
            if let Some(line) = text.lines().find(|line| parts.iter().all(|part| line.contains(part))) {
                return line.to_owned();
            }
            assert!(Instant::now() < ends, "no line has {parts:?}:\n{text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops the server gracefully and returns the whole log.
    fn stop(mut self) -> String {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, Signal::TERM).expect("sent");
        assert!(self.child.wait().expect("its end").success());
        self.text()
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _status = self.child.wait();
    }
}

fn json(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn events_of(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["event"].as_str().unwrap_or_else(|| panic!("no event: {line}"))).collect()
}

#[test]
fn a_start_and_a_stop_are_told_with_what_was_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    let options = ["--log-format", "json"];
    let first = Logged::over(tempfile::tempdir().expect("a directory"), &data, &options, &[]);
    for key in ["a", "b", "c"] {
        assert_eq!(first.call("PUT", &format!("/v1/queues/q/tasks/{key}"), None, r#"{"delay":"1h"}"#), 201);
    }
    assert_eq!(first.call("PUT", "/v1/queues/q/tasks/due", None, ""), 201);
    assert_eq!(first.call("POST", "/v1/queues/q/lease", None, ""), 200);
    let lines = json(&first.stop());
    assert_eq!(
        events_of(&lines),
        ["opening", "started", "listening", "stop_told", "stopping", "stopped"],
        "{lines:?}"
    );
    assert_eq!(
        lines[0]["directory"],
        data.to_str().expect("UTF-8"),
        "a start that hangs has said what it opens"
    );
    let started = &lines[1];
    assert_eq!(
        (&started["level"], &started["made"], &started["clock"]),
        (&"INFO".into(), &true.into(), &"real".into())
    );
    assert_eq!((&started["scheduled"], &started["durability"]), (&0.into(), &"fsync".into()));
    assert_eq!(started["directory"], data.to_str().expect("UTF-8"));
    assert!(
        lines[2]["listen"].as_str().is_some_and(|listen| listen.starts_with("http://127.0.0.1:")),
        "{lines:?}"
    );
    assert_eq!(lines[3]["signal"], "SIGTERM");
    assert!(lines[5]["took_ms"].is_u64(), "{lines:?}");

    let second = Logged::over(directory, &data, &options, &[]);
    let started = json(&second.stop()).swap_remove(1);
    let counts = ["scheduled", "ready", "leased", "dead", "queues", "made"].map(|name| started[name].clone());
    assert_eq!(Value::from(counts.to_vec()), serde_json::json!([3, 0, 1, 0, 1, false]), "{started}");
    assert!(
        started["log_frames"].as_u64().is_some_and(|frames| frames > 0) && started["took_ms"].is_u64(),
        "{started}"
    );
    assert_eq!(started["version"], env!("CARGO_PKG_VERSION"));
}

/// The text form has the same names. A server that runs without trouble writes no other lines.
#[test]
fn work_writes_no_lines() {
    let server = Logged::start(&[], &[]);
    for n in 0..50 {
        assert_eq!(server.call("PUT", &format!("/v1/queues/q/tasks/{n}"), None, ""), 201);
        assert_eq!(server.call("POST", "/v1/queues/q/lease", None, ""), 200);
        assert_eq!(server.call("GET", "/v1/queues/q/tasks/none", None, ""), 404);
    }
    let text = server.stop();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 6, "{text}");
    for (line, event) in
        lines.iter().zip(["opening", "started", "listening", "stop_told", "stopping", "stopped"])
    {
        assert!(line.contains(&format!("event=\"{event}\"")), "{line}");
    }
}

const ADMIN: &str = "marker-admin-token-0123456789";
const WORKER: &str = "marker-worker-token-0123456789";

/// Starts a server with two tokens, one of them with a name.
fn with_tokens(options: &[&str]) -> Logged {
    let directory = tempfile::tempdir().expect("a directory");
    let tokens = directory.path().join("tokens");
    let text = format!("{} name=ops\n{} rights=consume scope=q rate=1/h\n", hashed(ADMIN), hashed(WORKER));
    fs::write(&tokens, text).expect("written");
    let data = directory.path().join("data");
    let options =
        [&["--token-file", tokens.to_str().expect("UTF-8"), "--log-format", "json"], options].concat();
    Logged::over(directory, &data, &options, &[("TICKWHEEL_TOKEN", "marker-variable-token-0123456789")])
}

#[test]
fn acts_of_administrators_and_refusals_are_audited_by_the_name_of_the_token() {
    let server = with_tokens(&[]);
    assert_eq!(server.call("PUT", "/v1/queues/q", Some(ADMIN), r#"{"max_in_flight":5}"#), 200);
    assert_eq!(server.call("POST", "/v1/queues/q/pause", Some("marker-variable-token-0123456789"), ""), 200);
    let schedule = r#"{"every":"1h","payload":"marker-payload"}"#;
    assert_eq!(server.call("PUT", "/v1/queues/q/schedules/hourly", Some(ADMIN), schedule), 201);
    assert_eq!(server.call("POST", "/v1/queues/q/cancel", Some(ADMIN), r#"{"filter":{}}"#), 200);
    assert_eq!(server.call("POST", "/v1/drain", Some(ADMIN), ""), 200);
    // Reading calls are not audited.
    assert_eq!(server.call("GET", "/v1/queues/q", Some(ADMIN), ""), 200);
    assert_eq!(server.call("GET", "/v1/queues", None, ""), 401);
    assert_eq!(server.call("GET", "/v1/queues", Some("marker-wrong-token-0123456789"), ""), 401);
    assert_eq!(server.call("PUT", "/v1/queues/q", Some(WORKER), "{}"), 403);
    assert_eq!(server.call("POST", "/v1/queues/other/lease", Some(WORKER), ""), 404);
    assert_eq!(server.call("POST", "/v1/queues/q/lease", Some(WORKER), ""), 200);
    assert_eq!(server.call("POST", "/v1/queues/q/lease", Some(WORKER), ""), 429);
    let text = server.stop();
    let lines = json(&text);
    let audit: Vec<&Value> = lines.iter().filter(|line| line["target"] == "audit").collect();
    let acts: Vec<[&Value; 6]> = audit
        .iter()
        .filter(|line| line["event"] == "admin_act")
        .map(|line| ["method", "route", "queue", "name", "token", "result"].map(|name| &line[name]))
        .collect();
    let shown = serde_json::to_value(&acts).expect("JSON");
    assert_eq!(
        shown,
        serde_json::json!([
            ["PUT", "/v1/queues/{q}", "q", null, "ops", "ok"],
            ["POST", "/v1/queues/{q}/pause", "q", null, "TICKWHEEL_TOKEN", "ok"],
            ["PUT", "/v1/queues/{q}/schedules/{name}", "q", "hourly", "ops", "ok"],
            ["POST", "/v1/queues/{q}/cancel", "q", null, "ops", "ok"],
            ["POST", "/v1/drain", null, null, "ops", "ok"],
        ])
    );
    let refused: Vec<[&Value; 4]> = audit
        .iter()
        .filter(|line| line["event"] == "refused")
        .map(|line| ["kind", "token", "status", "address"].map(|name| &line[name]))
        .collect();
    assert_eq!(
        serde_json::to_value(&refused).expect("JSON"),
        serde_json::json!([
            ["unauthorized", "none", 401, "127.0.0.1"],
            ["unauthorized", "unknown", 401, "127.0.0.1"],
            ["forbidden", "line:2", 403, "127.0.0.1"],
            ["out-of-scope", "line:2", 404, "127.0.0.1"],
            ["busy", "line:2", 429, "127.0.0.1"],
        ])
    );
    assert!(!text.contains("marker"), "{text}");
}

#[test]
fn a_token_file_that_changes_is_told() {
    let server = with_tokens(&[]);
    let tokens = server.log.with_file_name("tokens");
    fs::write(&tokens, "marker-admin-token-0123456789 rights=marker-right\n").expect("written");
    let failed = server.wait_for(&["\"event\":\"reload_failed\""]);
    assert!(
        failed.contains("ERROR") && failed.contains("the tokens") && failed.contains("line 1"),
        "{failed}"
    );
    assert_eq!(server.call("GET", "/v1/queues", Some(ADMIN), ""), 200, "those before stay valid");
    fs::write(&tokens, format!("{} name=next\n", hashed("another-token-0123456789"))).expect("written");
    let again = server.wait_for(&["\"event\":\"reloaded\""]);
    assert!(again.contains("\"target\":\"audit\""), "{again}");
    assert_eq!(server.call("GET", "/v1/queues", Some(ADMIN), ""), 401);
    assert!(!server.stop().contains("marker"));
}

/// Purges 12,000 tasks: a job that needs several turns. Returns its line `job_over`.
fn purge(server: &Logged) -> Value {
    for batch in 0..2 {
        let put = |n| format!("{{\"op\":\"put\",\"key\":\"{batch}:{n}\",\"delay\":\"1h\"}}\n");
        let lines: String = (0..6_000).map(put).collect();
        assert_eq!(server.call("POST", "/v1/queues/q/batch", None, &lines), 200);
    }
    assert_eq!(server.call("POST", "/v1/queues/q/purge", None, ""), 202);
    let over = server.wait_for(&["\"event\":\"job_over\""]);
    serde_json::from_str(&over).expect("JSON")
}

#[test]
fn a_job_is_told_when_it_begins_and_when_it_is_over() {
    let server = Logged::start(&["--log-format", "json"], &[]);
    let over = purge(&server);
    assert_eq!((&over["queue"], &over["done"]), (&"q".into(), &12_000.into()), "{over}");
    let lines = json(&server.stop());
    let begun = lines.iter().find(|line| line["event"] == "job_begun").expect("it began");
    assert_eq!((&begun["id"], &begun["total"]), (&over["id"], &12_000.into()), "{begun}");
}

#[test]
fn a_start_that_fails_is_an_event_too() {
    let words = ["serve", "--memory", "--log-format", "json", "--log", "off", "--listen", "0.0.0.0:0"];
    let failed = crate::cli::run::run(&words);
    assert_eq!((failed.code, failed.out.as_str()), (1, ""));
    let lines = json(&failed.err);
    assert_eq!(events_of(&lines), ["start_failed"], "{lines:?}");
    assert!(lines[0]["error"].as_str().is_some_and(|why| why.contains("--insecure")), "{lines:?}");
}

/// Refusals are counted. An act that was carried out has its own line, also if there are many acts.
#[test]
fn a_flood_of_refusals_is_counted_and_acts_are_not() {
    let server = with_tokens(&[]);
    for n in 0..300 {
        assert_eq!(server.call("GET", &format!("/v1/queues/q{n}"), None, ""), 401);
    }
    for n in 0..150 {
        let settings = format!(r#"{{"max_in_flight":{}}}"#, n + 1);
        assert_eq!(server.call("PUT", "/v1/queues/q", Some(ADMIN), &settings), 200);
    }
    let lines = json(&server.stop());
    let of = |event: &str| lines.iter().filter(|line| line["event"] == event).collect::<Vec<_>>();
    assert_eq!((of("refused").len(), of("admin_act").len()), (1, 150));
    let repeated = of("repeated");
    let told: Vec<_> =
        repeated.iter().map(|line| (line["repeated_event"].as_str(), line["times"].as_u64())).collect();
    assert_eq!(told, [(Some("refused"), Some(299))], "{repeated:?}");
    assert_eq!(repeated[0]["target"], "audit");
    let about = repeated[0]["about"].as_str().unwrap_or_default();
    assert!(about.contains("address=\"127.0.0.1\"") && about.contains("status=401"), "{about}");
}

/// Regression: a token with few rights invented names until the table of kinds was full. After that, the acts of all
/// other callers were only counted.
#[test]
fn a_flood_of_one_token_hides_no_act_of_another() {
    let directory = tempfile::tempdir().expect("a directory");
    let tokens = directory.path().join("tokens");
    let text =
        format!("{} name=ops\n{} name=shop rights=produce scope=shop/\n", hashed(ADMIN), hashed(WORKER));
    fs::write(&tokens, text).expect("written");
    let data = directory.path().join("data");
    let options = ["--token-file", tokens.to_str().expect("UTF-8"), "--log-format", "json"];
    let server = Logged::over(directory, &data, &options, &[]);
    for n in 0..120 {
        let target = format!("/v1/queues/shop%2Fq/schedules/name{n}");
        assert_eq!(server.call("PUT", &target, Some(WORKER), ""), 400);
    }
    assert_eq!(server.call("PUT", "/v1/queues/q", Some(ADMIN), "{}"), 200);
    assert_eq!(server.call("PUT", "/v1/queues/q", Some(ADMIN), r#"{"nonsense":1}"#), 400);
    assert_eq!(server.call("DELETE", "/v1/jobs/17", Some(ADMIN), ""), 404);
    let lines = json(&server.stop());
    let acts = |token: &str| -> Vec<[&Value; 4]> {
        let acts = lines.iter().filter(|line| line["event"] == "admin_act" && line["token"] == token);
        acts.map(|line| ["method", "status", "result", "name"].map(|name| &line[name])).collect()
    };
    assert_eq!(acts("shop").len(), 101, "a hundred kinds, and one line for the others");
    assert_eq!(acts("shop")[0][2], "bad-request");
    assert_eq!(
        serde_json::to_value(acts("ops")).expect("JSON"),
        serde_json::json!([
            ["PUT", 200, "ok", null],
            ["PUT", 400, "bad-request", null],
            ["DELETE", 404, "no-job", "17"],
        ])
    );
}

/// The audit line of an act names the job that it began.
#[test]
fn an_act_that_begins_a_job_names_it() {
    let server = Logged::start(&["--log-format", "json"], &[]);
    let over = purge(&server);
    assert_eq!((&over["action"], &over["state"]), (&"purge".into(), &"done".into()), "{over}");
    let lines = json(&server.stop());
    let act = lines.iter().find(|line| line["event"] == "admin_act").expect("an act");
    let id = over["id"].as_u64().expect("a number").to_string();
    assert_eq!((&act["result"], &act["name"]), (&"begun".into(), &id.into()), "{act}");
}

/// Regression: the last line said that puts are accepted again. But the server was draining, for the second time
/// within a minute.
#[test]
fn each_change_of_state_has_its_line() {
    let server =
        Logged::start(&["--log-format", "json"], &[("TICKWHEEL_LISTN", "1"), ("TICKWHEEL_DATE", "2")]);
    for call in ["drain", "resume", "drain", "resume", "drain"] {
        assert_eq!(server.call("POST", &format!("/v1/{call}"), None, ""), 200);
    }
    let text = server.stop();
    let lines = json(&text);
    let drains: Vec<_> = events_of(&lines).into_iter().filter(|event| event.starts_with("drain")).collect();
    assert_eq!(drains, ["drain_begun", "drain_over", "drain_begun", "drain_over", "drain_begun"]);
    for name in ["TICKWHEEL_LISTN", "TICKWHEEL_DATE"] {
        assert!(text.contains(name), "each variable that means nothing is named: {text}");
    }
    assert!(!events_of(&lines).contains(&"repeated"), "{text}");
}

#[test]
fn the_access_log_has_a_line_for_each_call_even_if_the_log_is_quiet() {
    let server = with_tokens(&["--access-log", "--log", "error"]);
    let put = format!("/v1/queues/q/tasks/{}", "marker-key");
    assert_eq!(server.call("PUT", &put, Some(ADMIN), r#"{"payload":"marker-payload"}"#), 201);
    assert_eq!(server.call("GET", "/v1/queues/q/tasks?tag=marker-tag", Some(ADMIN), ""), 200);
    assert_eq!(server.call("GET", "/nowhere/marker-path", None, ""), 401);
    assert_eq!(server.call("GET", "/healthz", None, ""), 200);
    let text = server.stop();
    let lines = json(&text);
    assert!(lines.iter().all(|line| line["target"] == "access" && line["event"] == "call"), "{text}");
    let shown: Vec<_> = lines
        .iter()
        .map(|line| ["method", "route", "queue", "status", "token"].map(|name| &line[name]))
        .collect();
    assert_eq!(
        serde_json::to_value(shown).expect("JSON"),
        serde_json::json!([
            ["PUT", "/v1/queues/{q}/tasks/{key}", "q", 201, "ops"],
            ["GET", "/v1/queues/{q}/tasks", "q", 200, "ops"],
            ["GET", "unmatched", null, 401, "none"],
            ["GET", "/healthz", null, 200, null],
        ])
    );
    for line in &lines {
        assert!(line["took_ms"].is_f64() && line["bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{line}");
        assert_eq!(line["address"], "127.0.0.1", "{line}");
    }
    assert!(!text.contains("marker"), "{text}");
}

/// Calls with a secret, a payload or a key in each part of the request. The calls are good and bad, and run at every
/// level of the log.
#[test]
fn no_secret_payload_or_key_is_in_the_log_at_any_level() {
    let server = with_tokens(&["--access-log", "--log", "trace", "--slow-commit", "1ms"]);
    let admin = Some(ADMIN);
    let put =
        r#"{"delay":"1h","payload":{"card":"marker-payload"},"tags":["marker-tag"],"group":"marker-group"}"#;
    assert_eq!(server.call("PUT", "/v1/queues/q/tasks/marker-key", admin, put), 201);
    assert_eq!(server.call("PUT", "/v1/queues/q/tasks/marker-key?mode=create", admin, put), 409);
    assert_eq!(
        server.call("PUT", "/v1/queues/q/tasks/marker-due", admin, r#"{"payload":"marker-payload"}"#),
        201
    );
    assert_eq!(server.call("POST", "/v1/queues/q/lease", admin, ""), 200);
    assert_eq!(server.call("POST", "/v1/queues/q/ack", admin, r#"{"tokens":["marker-lease-token"]}"#), 400);
    assert_eq!(server.call("PATCH", "/v1/queues/q/tasks/marker-key", admin, r#"{"delay":"2h"}"#), 200);
    assert_eq!(server.call("GET", "/v1/queues/q/tasks?tag=marker-tag&cursor=marker-cursor", admin, ""), 400);
    let batch = "{\"op\":\"put\",\"key\":\"marker-batch\",\"payload\":\"marker-payload\"}\n{\"op\":\"cancel\",\"key\":\"marker-gone\"}\nmarker-rubbish\n";
    assert_eq!(server.call("POST", "/v1/queues/q/batch", admin, batch), 200);
    assert_eq!(
        server.call("PUT", "/v1/queues/q/tasks/marker-key", admin, "{\"marker-field\":\"marker-payload\"}"),
        400
    );
    assert_eq!(
        server.call(
            "PUT",
            "/v1/queues/q/schedules/daily",
            admin,
            r#"{"every":"1h","payload":"marker-payload"}"#
        ),
        201
    );
    assert_eq!(server.call("DELETE", "/v1/queues/q/tasks/marker-key", admin, ""), 200);
    assert_eq!(server.call("GET", "/v1/queues", Some("marker-wrong-token"), ""), 401);
    assert_eq!(server.call("GET", "/marker-path", Some(WORKER), ""), 404);
    let mut socket = TcpStream::connect(&server.address).expect("connected");
    socket.write_all(b"GET /marker-path HTTP/1.1\r\nmarker-header\r\n\r\n").expect("sent");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    let text = server.stop();
    assert!(text.lines().count() > 30, "trace says much: {text}");
    let found: Vec<&str> = text.lines().filter(|line| line.contains("marker")).collect();
    assert!(found.is_empty(), "{found:#?}");
    for secret in [ADMIN, WORKER] {
        let hash = hashed(secret);
        assert!(!text.contains(hash.trim_start_matches("sha256:")), "hashes of tokens are nobody's business");
    }
}

/// Regression: at `trace` the HTTP client writes each request that it sends, with the credentials of the collector.
#[test]
fn the_credentials_of_a_collector_are_in_no_line() {
    let collector = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", collector.local_addr().expect("its address"));
    let (sender, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for socket in collector.incoming() {
            let Ok(mut socket) = socket else { return };
            let mut head = vec![0; 16_384];
            let read = socket.read(&mut head).unwrap_or(0);
            let answer = "HTTP/1.1 401 No\r\nContent-Length: 13\r\nConnection: close\r\n\r\nmarker-answer";
            let _gone = socket.write_all(answer.as_bytes());
            if sender.send(String::from_utf8_lossy(&head[..read]).into_owned()).is_err() {
                return;
            }
        }
    });
    let variables = [
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20marker-credentials"),
        ("OTEL_BSP_SCHEDULE_DELAY", "50"),
    ];
    let server = Logged::start(&["--otlp-endpoint", &endpoint, "--log", "trace"], &variables);
    assert_eq!(server.call("PUT", "/v1/queues/q/tasks/marker-key", None, ""), 201);
    let request = requests.recv_timeout(tickwheel_testing::HANG_TIME).expect("spans are sent");
    assert!(request.contains("marker-credentials"), "{request}");
    let text = server.stop();
    assert!(text.contains("TRACE") || text.contains("DEBUG"), "{text}");
    let found: Vec<&str> =
        text.lines().filter(|line| line.contains("marker") || line.contains("6d 61 72")).collect();
    assert!(found.is_empty(), "{found:#?}");
}

/// Over HTTP, pauses and redrives need `admin`. So they have audit lines in the beanstalkd door, too. These lines have
/// no secret, not even at `trace`.
#[test]
fn acts_of_clients_of_beanstalkd_are_audited_and_their_jobs_are_in_no_line() {
    let server = Logged::start(
        &["--log-format", "json", "--log", "trace", "--access-log", "--beanstalk", "127.0.0.1:0"],
        &[],
    );
    let line = json(&server.wait_for(&["\"door\":\"beanstalk\""])).swap_remove(0);
    let door = line["listen"].as_str().unwrap_or_else(|| panic!("no door: {line}"));
    let mut socket = TcpStream::connect(door).expect("connected");
    let mut answers = BufReader::new(socket.try_clone().expect("a second one"));
    let mut say = |command: &str| {
        socket.write_all(command.as_bytes()).expect("sent");
        let mut answer = String::new();
        answers.read_line(&mut answer).expect("an answer");
        answer.trim_end().to_owned()
    };
    let id = say("put 1 3600 60 14\r\nmarker-payload\r\n");
    let id = id.strip_prefix("INSERTED ").unwrap_or_else(|| panic!("{id}")).to_owned();
    assert_eq!(say(&format!("kick-job {id}\r\n")), "KICKED");
    assert!(say("put 1 3600 60 14\r\nmarker-payload\r\n").starts_with("INSERTED"));
    assert_eq!(say("kick 10\r\n"), "KICKED 1");
    assert_eq!(say("pause-tube default 60\r\n"), "PAUSED");
    assert_eq!(say("marker-rubbish\r\n"), "UNKNOWN_COMMAND");
    let text = server.stop();
    let lines = json(&text);
    let acts: Vec<_> = lines.iter().filter(|line| line["target"] == "audit").collect();
    let shown: Vec<_> =
        acts.iter().map(|line| ["event", "queue", "kicked", "address"].map(|name| &line[name])).collect();
    assert_eq!(
        serde_json::to_value(shown).expect("JSON"),
        serde_json::json!([
            ["job_kicked", null, null, "127.0.0.1"],
            ["tube_kicked", "default", 1, "127.0.0.1"],
            ["tube_paused", "default", null, "127.0.0.1"],
        ])
    );
    assert_eq!(acts[0]["id"].to_string(), id);
    assert!(!text.contains("marker"), "{text}");
}

/// Regression: the reader of the log stalled, and its pipe was full. Each thread that logged waited for it, and so the
/// whole server waited.
#[test]
fn a_reader_of_the_log_that_stands_still_does_not_stop_the_server() {
    const CALLS: usize = 6_000;
    let mut child =
        tickwheel(&["serve", "--listen", "127.0.0.1:0", "--memory", "--access-log", "--log-format", "json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start a server");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("its first line");
    let address = line.trim_end().strip_prefix("listening http://").expect("an address");
    let mut socket = TcpStream::connect(address).expect("connected");
    socket.set_read_timeout(Some(tickwheel_testing::HANG_TIME)).expect("set");
    let mut answers = BufReader::new(socket.try_clone().expect("a second one"));
    let mut call = |method: &str, target: &str| {
        // The request is sent in one piece. A second piece would wait until the first is confirmed.
        let request = format!("{method} {target} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\n\r\n");
        socket.write_all(request.as_bytes()).expect("sent");
        status_of(&mut answers)
    };
    // An answer comes only after its line was handed over. So a log that blocks would stop one of these calls.
    for n in 0..CALLS {
        assert_eq!(call("GET", &format!("/v1/queues/{}", "q".repeat(100))), 200, "call {n}");
    }
    assert_eq!(call("PUT", "/v1/queues/q"), 400, "an act, behind all these");
    assert_eq!(call("POST", "/v1/queues/q/pause"), 200);

    // The reader reads again.
    let mut log = BufReader::new(child.stderr.take().expect("piped"));
    let mut lines = Vec::new();
    let mut read_until = |event: &str| loop {
        let mut line = String::new();
        assert!(log.read_line(&mut line).expect("UTF-8") > 0, "no {event}");
        let line: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let is_it = line["event"] == event;
        lines.push(line);
        if is_it {
            break lines.clone();
        }
    };
    let told = read_until("lines_lost");
    let written = told.iter().filter(|line| line["event"] == "call").count() as u64;
    let lost = told.last().and_then(|line| line["lines"].as_u64()).expect("a number");
    let all = CALLS as u64 + 2;
    assert!(
        (all - 1..=all).contains(&(written + lost)),
        "each line is written or counted, but the last may be under way: {written} + {lost}"
    );
    let acts = told.iter().filter(|line| line["event"] == "admin_act").count();
    assert_eq!(acts, 2, "acts are written although calls are left out");
    assert!(!told.iter().any(|line| line["target"] == "audit" && line["event"] == "lines_lost"));

    // The reader stalls again, and the server ends all the same.
    for n in 0..CALLS {
        assert_eq!(call("GET", &format!("/v1/queues/{}", "q".repeat(100))), 200, "call {n}");
    }
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, Signal::TERM).expect("sent");
    assert!(child.wait().expect("its end").success());
}

/// The status of an answer on a connection that stays open.
fn status_of(answers: &mut impl BufRead) -> u16 {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(answers.read_line(&mut head).expect("an answer") > 0, "{head:?}");
    }
    let bytes = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; bytes.expect("a length")];
    answers.read_exact(&mut body).expect("its body");
    head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{head}"))
}

/// Regression: an operator tidied up the data directory and removed its lock.
#[test]
fn a_lock_that_is_removed_is_told_and_nothing_is_changed_any_more() {
    let server = Logged::start(&[], &[]);
    assert_eq!(server.call("PUT", "/v1/queues/q/tasks/a", None, ""), 201);
    let data = server.log.with_file_name("data");
    fs::remove_file(data.join("lock")).expect("removed");
    let line = server.wait_for(&["event=\"read_only\""]);
    assert!(line.contains("ERROR") && line.contains("/lock: the file is gone"), "{line}");
    assert_eq!(server.call("GET", "/readyz", None, ""), 503);
    assert_eq!(server.call("PUT", "/v1/queues/q/tasks/b", None, ""), 503);
    assert_eq!(server.call("GET", "/v1/queues/q/tasks/a", None, ""), 200);
    let second =
        crate::cli::run::run(&["serve", "--data", data.to_str().expect("UTF-8"), "--listen", "127.0.0.1:0"]);
    assert!(second.code == 1 && second.err.contains("is open in another process"), "{}", second.err);
}

#[test]
fn the_page_has_each_event_and_no_other() {
    let page = include_str!("../../../../../docs/reference/log.md");
    let named: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let all: BTreeSet<&str> = events::ALL.iter().copied().collect();
    assert_eq!(named, all);
    assert_eq!(all.len(), events::ALL.len(), "a name is given twice");
}

/// Each log statement at `info` and above names its event.
#[test]
fn each_line_of_the_sources_names_its_event() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders = vec![crates.join("server/src"), crates.join("cli/src")];
    let mut lines = 0;
    let mut fields: BTreeMap<String, String> = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("a source");
            // Log statements in tests are not part of the product.
            let text = text.split("#[cfg(test)]\nmod tests").next().expect("a first part");
            for level in ["info", "warn", "error"] {
                for (at, start) in text.match_indices(&format!("tracing::{level}!(")) {
                    let call: String = text[at + start.len()..].chars().take(120).collect();
                    let call = call.trim_start();
                    let call = match call.strip_prefix("target: events::") {
                        Some(rest) => rest.split_once(',').map_or("", |(_, rest)| rest).trim_start(),
                        None => call,
                    };
                    let event = call.strip_prefix("event = events::");
                    let event = event.unwrap_or_else(|| panic!("{}: {call}", path.display()));
                    let event =
                        event.split(|c: char| c != '_' && !c.is_ascii_uppercase()).next().unwrap_or("");
                    let whole = &text[at..];
                    let whole = &whole[..whole.find(");").unwrap_or(whole.len())];
                    fields.entry(event.to_ascii_lowercase()).or_default().push_str(whole);
                    lines += 1;
                }
            }
        }
    }
    assert!(lines > 40, "{lines} lines were found");
    for limited in events::LIMITED {
        let written = &fields[limited.event];
        let named = limited.about.iter().chain(&limited.share).chain(&limited.measure);
        for field in named.copied().chain(limited.unless.map(|(field, _)| field)) {
            let words = |c: char| c != '_' && !c.is_ascii_alphanumeric();
            assert!(written.split(words).any(|word| word == field), "{} has no field {field}", limited.event);
        }
    }
}

#[test]
fn a_backup_and_who_asked_for_it_are_told() {
    let place = tempfile::tempdir().expect("a directory");
    let server = with_tokens(&["--backup-dir", place.path().to_str().expect("UTF-8")]);
    assert_eq!(server.call("POST", "/v1/backups", Some(ADMIN), ""), 202);
    server.wait_for(&["\"event\":\"backup_whole\""]);
    assert_eq!(server.call("DELETE", "/v1/backups/7", Some(ADMIN), ""), 404);
    let lines = json(&server.stop());
    let of = |event: &str| {
        lines.iter().find(|line| line["event"] == event).unwrap_or_else(|| panic!("no {event}"))
    };
    let (begun, whole) = (of("backup_begun"), of("backup_whole"));
    assert_eq!((&begun["id"], &begun["name"]), (&whole["id"], &whole["name"]));
    assert!(whole["bytes"].as_u64() > Some(0) && whole["tasks"] == 0 && whole["took_ms"].is_u64(), "{whole}");
    let acts = lines.iter().filter(|line| line["event"] == "admin_act");
    let acts: Vec<_> =
        acts.map(|act| (act["method"].as_str(), act["route"].as_str(), act["token"].as_str())).collect();
    let by_ops = |method, route| (Some(method), Some(route), Some("ops"));
    assert_eq!(acts, [by_ops("POST", "/v1/backups"), by_ops("DELETE", "/v1/backups/{id}")]);
}
