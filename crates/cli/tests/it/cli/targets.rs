//! `tickwheel target` and `tickwheel targets`: against answers that are written down, and against a real server with a receiver.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli::client::member;
use crate::cli::run::{Ran, run, run_with};
use crate::server::Server;

/// A request: its first line, its other lines in lower case, and its body.
struct Request {
    line: String,
    head: String,
    body: String,
}

impl Request {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// An answer: a status and a body.
type Answer = (u16, String);

/// A server of HTTP that answers each request as `answer` says, and passes the request on. The thread ends with the test's process.
fn receiver(answer: impl Fn(&Request) -> Answer + Send + 'static) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        for caller in listener.incoming().flatten() {
            let Some(request) = read(&caller) else { continue };
            let (status, body) = answer(&request);
            // The test may have ended, and the caller may have left.
            let _unread = sender.send(request);
            let length = body.len();
            let text = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            let _unread = (&caller).write_all(text.as_bytes());
        }
    });
    (address, requests)
}

fn read(caller: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(caller);
    let (mut line, mut head, mut length) = (String::new(), String::new(), 0);
    reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    loop {
        let mut next = String::new();
        reader.read_line(&mut next).ok().filter(|bytes| *bytes > 0)?;
        if next.trim().is_empty() {
            break;
        }
        let next = next.to_ascii_lowercase();
        if let Some(value) = next.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        head.push_str(&next);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).ok()?;
    Some(Request { line: line.trim_end().to_owned(), head, body })
}

/// A Tickwheel server that gives this answer to each request.
fn scripted(status: u16, body: &Value) -> (String, Receiver<Request>) {
    let body = body.to_string();
    let (address, requests) = receiver(move |_| (status, body.clone()));
    (format!("http://{address}"), requests)
}

fn view() -> Value {
    json!({
        "queue": "orders", "kind": "webhook", "url": "https://shop.example/hooks/{queue}", "timeout": "20s",
        "signing": [{ "secret": { "set": true, "id": "5e884898" } }],
        "version": 41, "state": "open", "next_try": "2030-01-01T00:01:00.000Z", "reason": "connection refused", "in_flight": 2,
        "attempts": { "acked": 5, "failed": 3, "dead": 1, "given_back": 7, "blocked": 0 },
    })
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in parts {
        assert!(words.contains(part), "{part} is not in:\n{text}");
    }
}

#[test]
fn the_list_has_targets_reasons_and_connections() {
    let attempts =
        |acked: u64| json!({ "acked": acked, "failed": 3, "dead": 1, "given_back": 7, "blocked": 0 });
    let lists = json!({
        "targets": [
            { "queue": "mails", "kind": "kafka", "to": "main due", "state": "closed", "in_flight": 4, "attempts": attempts(9) },
            { "queue": "orders", "kind": "webhook", "to": "https://shop.example/hooks", "state": "open", "since": "2030-01-01T00:00:00.000Z",
              "next_try": "2030-01-01T00:01:00.000Z", "reason": "connection refused", "in_flight": 0, "attempts": attempts(5) },
        ],
        "connections": [
            { "name": "main", "kind": "kafka", "state": "down", "since": "2030-01-01T00:00:00.000Z", "reason": "no broker answers" },
            { "name": "spare", "kind": "nats", "state": "unused" },
        ],
    });
    let (url, requests) = scripted(200, &lists);
    let table = run(&["targets", "-o", "table", "--server", &url]);
    assert_eq!((table.code, table.err.as_str()), (0, ""));
    assert_eq!(requests.recv().expect("a call").line, "GET /v1/targets HTTP/1.1");
    has(
        &table.out,
        &[
            "QUEUE KIND TO STATE SINCE IN FLIGHT ACKED FAILED DEAD GIVEN BACK BLOCKED",
            "mails kafka main due closed 4 9 3 1 7 0",
            "orders webhook https://shop.example/hooks open 2030-01-01T00:00:00.000Z 0 5 3 1 7 0 orders: connection refused; next try at 2030-01-01T00:01:00.000Z",
            "CONNECTION KIND STATE SINCE REASON main kafka down 2030-01-01T00:00:00.000Z no broker answers",
            "spare nats unused",
        ],
    );
    let lines = run(&["targets", "-o", "json", "--server", &url]);
    let lines: Vec<Value> =
        lines.lines().iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!((&lines[1]["reason"], &lines[2]["name"]), (&json!("connection refused"), &json!("main")));
    let (url, _requests) = scripted(200, &json!({ "targets": [], "connections": [] }));
    let nothing = run(&["targets", "--server", &url]);
    assert_eq!((nothing.code, nothing.out.as_str(), nothing.err.trim()), (0, "", "no queue has a target"));
}

#[test]
fn a_target_is_shown_to_people_and_to_programs() {
    let (url, _requests) = scripted(200, &view());
    let server = ["--server", &url];
    let table = run(&[&["target", "show", "orders", "-o", "table"][..], &server].concat());
    has(
        &table.out,
        &[
            "queue orders",
            "state open",
            "next try 2030-01-01T00:01:00.000Z",
            "reason connection refused",
            "in flight 2",
            "attempts acked 5, failed 3, dead 1, given back 7, blocked 0",
            "version 41",
            "signing set, id 5e884898",
            "timeout 20s",
        ],
    );
    let line = run(&[&["target", "show", "orders", "-o", "json"][..], &server].concat());
    assert_eq!(serde_json::from_str::<Value>(line.lines()[0]).expect("JSON"), view());
    let settings = run(&[&["target", "show", "orders", "--settings"][..], &server].concat());
    let settings: Value = serde_json::from_str(settings.lines()[0]).expect("JSON");
    assert_eq!(settings["signing"], view()["signing"]);
    assert!(settings.get("state").is_none() && settings.get("queue").is_none(), "{settings}");
    let paused = run(&[&["target", "pause", "orders", "-o", "table"][..], &server].concat());
    has(
        &paused.out,
        &["QUEUE KIND STATE IN FLIGHT VERSION REASON orders webhook open 2 41 connection refused"],
    );
}

#[test]
fn a_change_sends_the_other_settings_and_the_version_that_it_saw() {
    let (url, requests) = scripted(200, &view());
    let set = run(&["target", "set", "orders", "--concurrency", "3", "-o", "json", "--server", &url]);
    assert_eq!((set.code, set.err.as_str()), (0, ""));
    assert_eq!(requests.recv().expect("a call").line, "GET /v1/queues/orders/target HTTP/1.1");
    let put = requests.recv().expect("a second call");
    assert_eq!(put.line, "PUT /v1/queues/orders/target HTTP/1.1");
    assert!(put.head.contains("if-match: \"41\""), "{}", put.head);
    let sent = put.json();
    assert_eq!((&sent["concurrency"], &sent["timeout"]), (&json!(3), &json!("20s")));
    assert_eq!(sent["signing"], view()["signing"], "the secret is kept");
    let whole = run(&[
        "target",
        "set",
        "orders",
        "--url",
        "https://a.example",
        "--if-version",
        "7",
        "--server",
        &url,
    ]);
    assert_eq!(whole.code, 0, "{}", whole.err);
    let put = requests.recv().expect("a call");
    assert!(put.head.contains("if-match: \"7\""), "{}", put.head);
    assert_eq!(put.json(), json!({ "kind": "webhook", "url": "https://a.example" }));
}

#[test]
fn a_new_secret_is_sent_and_printed_once() {
    let (url, requests) = scripted(201, &view());
    let words = ["target", "set", "orders", "--url", "https://a.example", "--new-secret", "--server", &url];
    let line = run(&[&words[..], &["-o", "json"]].concat());
    let secret = member(line.lines()[0], "secret").to_owned();
    assert!(line.err.contains("not shown again") && !line.err.contains(&secret), "{}", line.err);
    assert_eq!(requests.recv().expect("a call").json()["signing"], json!([{ "secret": secret }]));
    let table = run(&[&words[..], &["-o", "table"]].concat());
    let sent = requests.recv().expect("a call").json();
    let other = sent["signing"][0]["secret"].as_str().expect("a text");
    assert_ne!(secret, other, "each secret is new");
    assert_eq!(table.lines().last(), Some(&format!("secret: {other}").as_str()));
    // `whsec_` and the base64 of 32 bytes.
    assert!(other.starts_with("whsec_") && other.len() == 6 + 44, "{other}");
}

#[test]
fn a_rotation_says_what_to_do_next() {
    let answer = json!({ "secret": "whsec_AAAA", "id": "5e884898", "until": "2030-01-02T00:00:00.000Z" });
    let (url, requests) = scripted(200, &answer);
    let ran = run(&["target", "rotate", "orders", "--overlap", "2d", "-o", "table", "--server", &url]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    has(&ran.out, &["whsec_AAAA 5e884898 2030-01-02T00:00:00.000Z"]);
    assert!(
        ran.err.contains("give the secret to the receiver before 2030-01-02") && !ran.err.contains("whsec_"),
        "{}",
        ran.err
    );
    assert_eq!(requests.recv().expect("a call").json(), json!({ "overlap": "2d" }));
}

#[test]
fn a_test_that_is_not_delivered_fails_the_command() {
    let failed = json!({ "outcome": "failed", "took": "3ms", "status": 500, "reason": "http 500: oops", "answer": "oops" });
    let (url, _requests) = scripted(200, &failed);
    let ran = run(&["target", "test", "orders", "-o", "table", "--server", &url]);
    assert_eq!(ran.code, 1);
    has(&ran.out, &["OUTCOME STATUS TOOK REASON failed 500 3ms http 500: oops"]);
    assert!(ran.err.contains("the answer begins: oops"), "{}", ran.err);
    let (url, _requests) = scripted(200, &json!({ "outcome": "acked", "took": "3ms", "status": 204 }));
    let ran = run(&["target", "test", "orders", "-o", "table", "--server", &url]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

#[test]
fn a_queue_without_a_target_gets_a_hint_for_the_command_line() {
    let problem = json!({
        "type": "/problems/no-target", "title": "the queue has no target", "status": 404, "detail": "queue `orders` has no target",
        "hint": "PUT /v1/queues/{q}/target gives it one",
    });
    let (url, _requests) = scripted(404, &problem);
    for words in [&["show"][..], &["test"], &["set", "--timeout", "9s"]] {
        let ran = run(&[&["target", words[0], "orders"][..], &words[1..], &["--server", &url]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{words:?}");
        assert!(
            ran.err.contains("tickwheel target set QUEUE --url URL") && !ran.err.contains("PUT"),
            "{}",
            ran.err
        );
    }
}

/// A real server, and a receiver whose status the test sets.
struct Shop {
    server: Server,
    address: String,
    status: Arc<Mutex<u16>>,
    requests: Receiver<Request>,
}

impl Shop {
    fn new(options: &[&str]) -> Self {
        let status = Arc::new(Mutex::new(204));
        let says = Arc::clone(&status);
        let (address, requests) = receiver(move |_| (*says.lock().expect("no panic"), String::new()));
        let usual = ["--memory", "--listen", "127.0.0.1:0", "--push-allow", &address];
        Self { server: Server::start(&[&usual, options].concat()), address, status, requests }
    }

    fn answers(&self, status: u16) {
        *self.status.lock().expect("no panic") = status;
    }

    fn run(&self, words: &[&str]) -> Ran {
        run(&[words, &["--server", &self.server.url]].concat())
    }

    fn url(&self) -> String {
        format!("http://{}/hooks/{{queue}}", self.address)
    }

    fn received(&self) -> Request {
        self.requests.recv_timeout(tickwheel_testing::HANG_TIME).expect("the receiver is called")
    }

    /// Asks until the answer has this text.
    #[track_caller]
    fn until(&self, words: &[&str], text: &str) -> Ran {
        let begin = Instant::now();
        loop {
            let ran = self.run(words);
            if ran.out.contains(text) {
                return ran;
            }
            assert!(
                begin.elapsed() < tickwheel_testing::HANG_TIME,
                "{text} does not come: {} {}",
                ran.out,
                ran.err
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn a_webhook_gets_the_tasks_of_its_queue() {
    let shop = Shop::new(&[]);
    let set =
        shop.run(&["target", "set", "orders", "--url", &shop.url(), "--header", "x-shop=eu", "-o", "table"]);
    assert_eq!(set.code, 0, "{}", set.err);
    has(&set.out, &["orders webhook closed 0"]);
    assert_eq!(shop.run(&["put", "orders", "order:1", "--payload", "{\"order\":1}"]).code, 0);
    let got = shop.received();
    assert_eq!((got.line.as_str(), got.body.as_str()), ("POST /hooks/orders HTTP/1.1", "{\"order\":1}"));
    assert!(got.head.contains("x-shop: eu") && got.head.contains("tickwheel-key: order%3a1"), "{}", got.head);
    let attempts = shop.until(&["target", "attempts", "orders", "-o", "table"], "acked");
    has(&attempts.out, &["AT KEY ATTEMPT OUTCOME STATUS TOOK REASON", "order:1 1 acked 204"]);
    has(&shop.run(&["targets", "-o", "table"]).out, &["orders webhook http://127.0.0.1", "Z 0 1 0 0 0 0"]);

    has(&shop.run(&["target", "pause", "orders", "-o", "table"]).out, &["orders webhook paused"]);
    assert_eq!(shop.run(&["put", "orders", "order:2"]).code, 0);
    let leased = shop.run(&["lease", "orders", "--wait", "10s"]);
    assert!(leased.out.contains("order:2"), "a paused target leaves the tasks to workers: {}", leased.err);
    has(&shop.run(&["target", "resume", "orders", "-o", "table"]).out, &["orders webhook closed"]);

    let tested = shop.run(&["target", "test", "orders"]);
    assert_eq!((tested.code, member(&tested.out, "outcome")), (0, "acked"), "{}", tested.err);
    shop.received();
    shop.answers(500);
    let tested = shop.run(&["target", "test", "orders"]);
    assert_eq!((tested.code, member(&tested.out, "outcome")), (1, "failed"), "{}", tested.err);

    let version = shop.run(&["target", "show", "orders"]).out;
    let version = serde_json::from_str::<Value>(&version).expect("JSON")["version"].to_string();
    let other = shop.run(&["target", "delete", "orders", "--if-version", "999"]);
    assert!(other.code == 1 && other.err.contains("999"), "{}", other.err);
    let gone = shop.run(&["target", "delete", "orders", "--if-version", &version]);
    assert_eq!((gone.code, member(&gone.out, "result")), (0, "deleted"), "{}", gone.err);
    let gone = shop.run(&["target", "show", "orders"]);
    assert!(gone.code == 1 && gone.err.contains("tickwheel target set"), "{}", gone.err);
}

#[test]
fn a_task_says_why_its_target_has_not_got_it() {
    let shop = Shop::new(&[]);
    shop.answers(410);
    let set = shop.run(&["target", "set", "orders", "--url", &shop.url()]);
    assert_eq!(set.code, 0, "{}", set.err);
    assert_eq!(shop.run(&["put", "orders", "order:1"]).code, 0);
    let why = shop.until(&["why", "orders", "order:1"], "is `disabled`, at least since 2");
    let (reason, named) = (
        ": `http 410`. Nothing is sent until `tickwheel target resume orders`.",
        format!("The target of its queue, `webhook {}`, is `disabled`", shop.url()),
    );
    assert!(
        why.out.contains(reason) && why.out.contains(&named) && !why.out.contains("worker"),
        "{}",
        why.out
    );
    assert_eq!((why.code, why.out.lines().count()), (0, 1), "{}", why.out);
    let json = shop.run(&["why", "orders", "order:1", "-o", "json"]);
    let json: Value = serde_json::from_str(&json.out).expect("JSON");
    let told = json["why"].as_str().expect("a text");
    assert!(told.contains(reason) && told.contains(&named), "{told}");
    assert_eq!((&json["queue"], &json["target"]["state"]), (&json!("orders"), &json!("disabled")));
    assert_eq!((&json["last_attempt"]["status"], &json["key"]), (&json!(410), &json!("order:1")));
    shop.answers(500);
    // The line is a command that can be typed as it is.
    assert_eq!(shop.run(&["target", "resume", "orders"]).code, 0);
    shop.until(&["why", "orders", "order:1"], "Attempt 1 failed with the reason `http 500");
    let story = shop.run(&["story", "orders", "order:1"]);
    let story: Value = serde_json::from_str(&story.out).expect("JSON");
    assert_eq!(
        (&story["target"]["state"], &story["last_attempt"]["status"]),
        (&json!("closed"), &json!(500))
    );
}

#[test]
fn the_settings_go_out_and_come_back() {
    let shop = Shop::new(&[]);
    let json =
        json!({ "kind": "webhook", "url": shop.url(), "dead_on": [422], "concurrency": 3 }).to_string();
    let words = ["target", "set", "orders", "--file", "-", "--server", &shop.server.url];
    let set = run_with(&words, &json);
    assert_eq!(set.code, 0, "{}", set.err);
    let settings = shop.run(&["target", "show", "orders", "--settings"]).out;
    let again = run_with(&words, &settings);
    assert_eq!(again.code, 0, "{}", again.err);
    assert_eq!(shop.run(&["target", "show", "orders", "--settings"]).out, settings);
    let refused = run_with(&words, &json.replace("concurrency", "concurency"));
    assert!(
        refused.code == 1 && refused.err.contains("stdin") && refused.err.contains("concurency"),
        "{}",
        refused.err
    );
    let refused = shop.run(&["target", "set", "orders", "--url", "https://127.0.0.1/x"]);
    assert_eq!((refused.code, refused.out.as_str()), (1, ""), "an address that is denied: {}", refused.err);
    let unknown = shop.run(&["target", "set", "orders", "--connection", "none", "--topic", "due"]);
    assert!(unknown.code == 1 && unknown.err.contains("--connection: "), "{}", unknown.err);
    assert!(unknown.err.contains("`none`"), "{}", unknown.err);
    let unknown = shop.run(&["target", "set", "orders", "--url", &shop.url(), "--sign-with", "none"]);
    let told = "--sign-with: the configuration of the server has no secret `none`";
    assert!(unknown.code == 1 && unknown.err.contains(told), "{}", unknown.err);
}

#[test]
fn a_new_secret_signs_and_the_old_one_goes_on_for_a_while() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keys");
    std::fs::write(&file, format!("{}=\n", "A".repeat(43))).expect("written");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("its own");
    let shop = Shop::new(&["--secret-key-file", file.to_str().expect("UTF-8")]);
    let set = shop.run(&["target", "set", "orders", "--url", &shop.url(), "--new-secret"]);
    assert_eq!(set.code, 0, "{}", set.err);
    let first = member(&set.out, "secret");
    let signatures = || {
        assert_eq!(shop.run(&["target", "test", "orders"]).code, 0);
        let head = shop.received().head;
        let line = head.lines().find_map(|line| line.strip_prefix("webhook-signature: ").map(str::to_owned));
        line.expect("it is signed").split(' ').count()
    };
    assert_eq!(signatures(), 1);
    let rotated = shop.run(&["target", "rotate", "orders", "--overlap", "1h"]);
    assert_eq!(rotated.code, 0, "{}", rotated.err);
    let second = member(&rotated.out, "secret");
    assert!(second.starts_with("whsec_") && second != first, "{second}");
    assert_eq!(signatures(), 2);
    let shown = shop.run(&["target", "show", "orders", "-o", "table"]).out;
    let ids: Vec<_> = shown.lines().filter(|line| line.starts_with("signing")).collect();
    assert!(
        ids.len() == 2 && ids[0].contains(member(&rotated.out, "id")) && ids[1].contains(", until "),
        "{shown}"
    );
    let shown = shown + &shop.run(&["target", "show", "orders"]).out;
    assert!(!shown.contains("whsec_"), "{shown}");

    let poor = Shop::new(&[]);
    let refused = poor.run(&["target", "set", "orders", "--url", &poor.url(), "--new-secret"]);
    assert_eq!((refused.code, refused.out.as_str()), (1, ""), "a secret that was not stored is not shown");
    assert!(refused.err.contains("--secret-key-file"), "{}", refused.err);
}

/// The broker is another Tickwheel, by its door for clients of beanstalkd.
#[test]
fn a_broker_that_is_down_is_named_and_gets_the_tasks_when_it_is_back() {
    let door = format!("127.0.0.1:{}", tickwheel_testing::free_port());
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tickwheel.toml");
    let table = format!("[push.connections.b1]\nkind = \"beanstalk\"\naddresses = [\"{door}\"]\n");
    std::fs::write(&file, table).expect("written");
    let shop = Shop::new(&["--config", file.to_str().expect("UTF-8")]);
    let unused = shop.run(&["targets", "-o", "table"]);
    has(&unused.out, &["CONNECTION KIND STATE SINCE REASON b1 beanstalk unused"]);
    for (words, told) in [
        (
            &["--tube", "due"][..],
            "--tube is a setting of a target in a broker, and the queue `orders` has no target; add --connection NAME",
        ),
        (
            &["--connection", "b1", "--topic", "due"],
            "the connection `b1` is of the kind `beanstalk`, which takes --tube; the options are those of the kind `kafka` (--topic)",
        ),
    ] {
        let refused = shop.run(&[&["target", "set", "orders"][..], words].concat());
        assert!(refused.code == 1 && refused.err.contains(told), "{}", refused.err);
    }
    let set = shop.run(&["target", "set", "orders", "--connection", "b1", "--tube", "due"]);
    assert_eq!(set.code, 0, "{}", set.err);
    assert_eq!(shop.run(&["put", "orders", "order:1", "--payload", "{\"order\":1}"]).code, 0);
    let down = shop.until(&["targets", "-o", "table"], "down");
    has(&down.out, &["orders beanstalk b1: due", "b1 beanstalk down 20"]);
    let other = shop.run(&["target", "set", "orders", "--stream", "due"]);
    let told = "--stream is for `nats` and `redis`; the queue has a target of the kind `beanstalk`, which takes --tube";
    assert!(other.code == 1 && other.err.contains(told), "{}", other.err);
    let tested = shop.run(&["target", "test", "orders"]);
    assert_eq!((tested.code, member(&tested.out, "outcome")), (1, "given_back"), "{}", tested.err);
    assert!(shop.run(&["queues", "show", "orders"]).out.contains("\"ready\":1"), "the task waits");

    let broker = Server::start(&["--memory", "--listen", "127.0.0.1:0", "--beanstalk", &door]);
    let up = shop.until(&["targets", "-o", "table"], " up ");
    has(&up.out, &["b1 beanstalk up 20"]);
    let words = ["lease", "due", "--wait", "20s", "--server", &broker.url];
    let got = run(&words);
    assert_eq!(got.lines().len(), 1, "{}", got.err);
    shop.until(&["target", "attempts", "orders", "-o", "table"], "acked");
}
