//! The page of metrics: its formats, and the values of each queue and route.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};

use tickwheel_api::TargetKind;
use tickwheel_server::{Config, ConnectionPlan, PushPlan};

use crate::raw::Reply;
use crate::served::{Served, virtual_memory};

const OPEN: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

fn page(served: &Served, accept: &str) -> Reply {
    let reply = served.call_with("GET", "/metrics", &[("Accept", accept)], "");
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply
}

/// A plan with the connection `main`, at whose address nothing listens.
pub(crate) fn closed_broker() -> PushPlan {
    let main = ConnectionPlan::new(TargetKind::Redis, vec!["127.0.0.1:1".to_owned()]);
    PushPlan { connections: [("main".to_owned(), main)].into(), ..PushPlan::default() }
}

/// Gives a queue a target at the connection `main`, and tries it, so that the connection has a state.
pub(crate) fn try_closed_broker(served: &Served) {
    served.expect(
        201,
        "PUT",
        "/v1/queues/stream/target",
        r#"{"kind":"redis","connection":"main","stream":"s"}"#,
    );
    let tested = served.expect(200, "POST", "/v1/queues/stream/target/test", "");
    assert_eq!(tested["outcome"], "given_back", "{tested}");
}

/// A server with everything that the page shows: all states of tasks, a schedule, refusals, answers of all classes,
/// and a lease that waited.
pub(crate) fn busy() -> Served {
    let served = Served::start(Config { push: closed_broker(), ..virtual_memory() }).expect("started");
    try_closed_broker(&served);
    for (key, body) in [("a", "{}"), ("b", "{}"), ("c", r#"{"delay":"1h"}"#), ("d", r#"{"delay":"1h"}"#)] {
        served.expect(201, "PUT", &format!("/v1/queues/q/tasks/{key}"), body);
    }
    served.expect(200, "DELETE", "/v1/queues/q/tasks/d", "");
    served.expect(201, "PUT", "/v1/queues/shop%2Fmail/tasks/a", "");
    // A target has figures although nothing is sent to it.
    let target = r#"{"kind":"webhook","url":"https://shop.example/","enabled":false}"#;
    served.expect(201, "PUT", "/v1/queues/shop%2Fmail/target", target);
    let tasks = served.lease("q", 2);
    served.say("q", "ack", &[&tasks[0]["token"]]);
    served.say("q", "nack", &[&tasks[1]["token"]]);
    served.call("GET", "/v1/queues/q/tasks/nobody", "");
    served.call("GET", "/nowhere/at/all", "");
    served.expect(200, "POST", "/v1/queues/q/lease", r#"{"wait":"1ms"}"#);
    served
}

/// The value of one series, with its labels written as on the page.
fn value(page: &str, series: &str) -> Option<f64> {
    let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map(|value| value.parse().expect("a number"))
}

#[track_caller]
fn assert_series(page: &str, expected: &[(&str, f64)]) {
    for (series, expected) in expected {
        assert_eq!(value(page, series), Some(*expected), "{series} in\n{page}");
    }
}

#[test]
fn the_format_is_the_one_that_the_client_prefers() {
    let served = Served::memory();
    for (accept, kind) in [
        ("*/*", OPEN),
        ("text/plain", TEXT),
        ("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", OPEN),
        ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", TEXT),
    ] {
        let reply = page(&served, accept);
        assert_eq!(
            (reply.header("content-type"), reply.header("vary")),
            (Some(kind), Some("accept")),
            "{accept}"
        );
        assert_eq!(reply.text().ends_with("\n# EOF\n"), kind == OPEN, "{accept}");
    }
    assert_eq!(served.call("GET", "/metrics", "").header("content-type"), Some(OPEN));
}

#[test]
fn both_formats_show_the_same_series() {
    let served = busy();
    let series = |accept: &str| -> BTreeSet<String> {
        let text = page(&served, accept).text();
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        samples.map(|line| line.rsplit_once(' ').expect("a value").0.to_owned()).collect()
    };
    // The first scrape makes the series of its own route, because scrapes are calls, too.
    served.call("GET", "/metrics", "");
    assert_eq!(series("application/openmetrics-text"), series("text/plain"));
}

/// Rules of OpenMetrics that readers rely on. A family is described once, before its samples. Their names are the
/// family's name with the suffix of its kind, and the name ends with the unit. No series occurs twice. Buckets rise
/// to the count. No text follows the end.
#[test]
fn the_page_is_openmetrics() {
    let text = page(&busy(), "application/openmetrics-text").text();
    let body = text.strip_suffix("# EOF\n").expect("an end");
    let mut families: BTreeMap<&str, (&str, Option<&str>)> = BTreeMap::new();
    let (mut family, mut helped) = ("", "");
    let mut series = BTreeSet::new();
    let mut within: (String, f64) = (String::new(), 0.0);
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help text");
            assert!(!help.is_empty() && !families.contains_key(name), "{line}");
            helped = name;
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a kind");
            assert_eq!(name, helped, "{line}");
            assert!(["counter", "gauge", "histogram", "info"].contains(&kind), "{line}");
            let reserved = ["_total", "_created", "_count", "_sum", "_bucket", "_info"];
            assert!(!reserved.iter().any(|suffix| name.ends_with(suffix)), "{line}");
            families.insert(name, (kind, None));
            family = name;
        } else if let Some(rest) = line.strip_prefix("# UNIT ") {
            let (name, unit) = rest.split_once(' ').expect("a unit");
            assert!(name == family && name.ends_with(&format!("_{unit}")), "{line}");
        } else {
            let (labelled, number) = line.rsplit_once(' ').expect("a value");
            let number: f64 = number.parse().unwrap_or_else(|_| panic!("no number: {line}"));
            assert!(series.insert(labelled), "twice: {line}");
            let (name, labels) = labelled.split_once('{').unwrap_or((labelled, "}"));
            let suffix = name.strip_prefix(family).unwrap_or_else(|| panic!("{line} in {family}"));
            let suffixes: &[&str] = match families[family].0 {
                "counter" => &["_total"],
                "gauge" => &[""],
                "info" => &["_info"],
                _ => &["_bucket", "_sum", "_count"],
            };
            assert!(suffixes.contains(&suffix), "{line} of a {}", families[family].0);
            if suffix == "_bucket" {
                let others: Vec<_> = labels.split(',').filter(|label| !label.starts_with("le=")).collect();
                let of = format!("{family} {others:?}");
                assert!(within.0 != of || within.1 <= number, "{line} falls");
                within = (of, number);
            } else if suffix == "_count" {
                assert_eq!(within.1, number, "{line}");
            }
        }
    }
    assert!(families.len() > 40, "{} families", families.len());
}

/// The command `promtool` with these words; `None`: it is not installed.
pub(crate) fn promtool(words: &[&str]) -> Option<Command> {
    if !tickwheel_testing::has("promtool", "apt-get install prometheus") {
        return None;
    }
    let mut command = Command::new("promtool");
    command.args(words);
    Some(command)
}

#[test]
fn promtool_accepts_the_page() {
    let Some(mut promtool) = promtool(&["check", "metrics"]) else { return };
    let text = page(&busy(), "text/plain").text();
    let mut child = promtool
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success() && said.is_empty(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn each_queue_has_its_own_metrics() {
    let served = busy();
    served.advance("2h");
    let text = page(&served, "text/plain").text();
    assert_series(
        &text,
        &[
            ("tickwheel_queue_put_total{queue=\"q\"}", 4.0),
            ("tickwheel_queue_put_total{queue=\"shop/mail\"}", 1.0),
            ("tickwheel_queue_put_total{queue=\"{other}\"}", 0.0),
            ("tickwheel_queue_delivered_total{queue=\"q\"}", 3.0),
            ("tickwheel_queue_acked_total{queue=\"q\"}", 1.0),
            ("tickwheel_queue_nacked_total{queue=\"q\"}", 1.0),
            ("tickwheel_queue_expired_total{queue=\"q\"}", 1.0),
            ("tickwheel_queue_cancelled_total{queue=\"q\"}", 1.0),
            ("tickwheel_queue_dead_lettered_total{queue=\"q\"}", 0.0),
            ("tickwheel_queue_fire_lateness_seconds_bucket{queue=\"q\",le=\"0.01\"}", 3.0),
            ("tickwheel_queue_fire_lateness_seconds_count{queue=\"q\"}", 3.0),
            ("tickwheel_queue_oldest_due_age_seconds{queue=\"shop/mail\"}", 7_200.0),
            ("tickwheel_oldest_due_age_seconds", 7_200.0),
        ],
    );
}

/// A paused queue is no trouble: an alert for late queues leaves it out.
#[test]
fn a_paused_queue_has_a_gauge() {
    let served = busy();
    served.expect(200, "POST", "/v1/queues/q/pause", "");
    let text = page(&served, "text/plain").text();
    assert_series(
        &text,
        &[("tickwheel_queue_paused{queue=\"q\"}", 1.0), ("tickwheel_queue_paused{queue=\"shop/mail\"}", 0.0)],
    );
    assert_eq!(value(&text, "tickwheel_queue_paused{queue=\"{other}\"}"), None, "there are no others");
    served.expect(200, "POST", "/v1/queues/q/resume", "");
    let text = page(&served, "text/plain").text();
    assert_series(&text, &[("tickwheel_queue_paused{queue=\"q\"}", 0.0)]);
}

/// Prometheus ignores the first value of a series in a rate.
#[test]
fn a_queue_that_appears_between_two_scrapes_begins_at_0() {
    let served = busy();
    page(&served, "text/plain");
    served.expect(201, "PUT", "/v1/queues/new/tasks/a", "");
    let text = page(&served, "text/plain").text();
    let put = |queue: &str| format!("tickwheel_queue_put_total{{queue=\"{queue}\"}}");
    assert_series(&text, &[(&put("new"), 0.0), (&put("{other}"), 1.0), (&put("q"), 4.0)]);
    served.expect(201, "PUT", "/v1/queues/new/tasks/b", "");
    let text = page(&served, "text/plain").text();
    assert_series(&text, &[(&put("new"), 1.0), (&put("{other}"), 1.0), (&put("q"), 4.0)]);
}

/// An application uses each queue once and deletes it. Its counts stay in the sum.
#[test]
fn the_counts_of_a_deleted_queue_are_with_the_others() {
    let served = Served::memory();
    served.expect(201, "PUT", "/v1/queues/once/tasks/a", "");
    served.expect(200, "DELETE", "/v1/queues/once/tasks/a", "");
    served.advance("1h");
    let text = page(&served, "text/plain").text();
    assert_series(&text, &[("tickwheel_queue_put_total{queue=\"{other}\"}", 1.0)]);
    assert!(!text.contains("queue=\"once\""), "{text}");
    assert!(!text.contains("tickwheel_tasks{queue=\"{other}\""), "there are no tasks of others:\n{text}");
}

#[test]
fn calls_are_counted_by_route_and_class() {
    let served = busy();
    let text = page(&served, "text/plain").text();
    let of = |route: &str, class: &str| {
        value(&text, &format!("tickwheel_http_request_seconds_count{{route=\"{route}\",class=\"{class}\"}}"))
    };
    assert_eq!(of("/v1/queues/{q}/tasks/{key}", "2xx"), Some(6.0), "{text}");
    assert_eq!(of("/v1/queues/{q}/tasks/{key}", "4xx"), Some(1.0), "{text}");
    assert_eq!(of("unmatched", "4xx"), Some(1.0), "{text}");
    assert_eq!(of("unmatched", "5xx"), Some(0.0), "the first one has to be in a rate:\n{text}");
    assert_eq!(of("/v1/queues/{q}/lease", "2xx"), Some(2.0), "{text}");
    assert_eq!(of("/metrics", "2xx"), None, "the page is written before its own call has ended");
    assert!(!text.contains("nowhere") && !text.contains("nobody"), "no path and no key is a label:\n{text}");
}

/// A test of `door` shows that the time of the call does not include the wait.
#[test]
fn a_lease_that_may_wait_is_counted_with_its_wait() {
    let served = Served::memory();
    served.expect(200, "POST", "/v1/queues/q/lease", r#"{"wait":"20ms"}"#);
    served.expect(200, "POST", "/v1/queues/q/lease", "");
    let text = page(&served, "text/plain").text();
    let lease = "route=\"/v1/queues/{q}/lease\",class=\"2xx\"";
    assert_series(
        &text,
        &[
            (&format!("tickwheel_http_request_seconds_count{{{lease}}}"), 2.0),
            ("tickwheel_lease_wait_seconds_count", 1.0),
            ("tickwheel_lease_wait_seconds_bucket{le=\"0.01\"}", 0.0),
        ],
    );
    let waited = value(&text, "tickwheel_lease_wait_seconds_sum").expect("it waited");
    assert!(waited >= 0.02, "{waited}");
}

#[test]
fn the_page_shows_the_version_and_the_use_of_resources() {
    let served = Served::memory();
    let text = page(&served, "text/plain").text();
    let version = format!("tickwheel_build_info{{version=\"{}\",", env!("CARGO_PKG_VERSION"));
    assert!(text.lines().any(|line| line.starts_with(&version) && line.ends_with("} 1")), "{text}");
    let zones = tickwheel_queue::zone_versions();
    let zones =
        format!("tickwheel_time_zones_info{{machine=\"{}\",bundled=\"{}\"}} 1", zones.machine, zones.bundled);
    assert!(text.lines().any(|line| line == zones), "no {zones} in\n{text}");
    if cfg!(target_os = "linux") {
        for name in [
            "process_cpu_seconds_total",
            "process_resident_memory_bytes",
            "process_virtual_memory_bytes",
            "process_threads",
            "process_start_time_seconds",
            "process_open_fds",
            "process_max_fds",
        ] {
            assert!(value(&text, name).is_some_and(|value| value >= 0.0), "no {name} in\n{text}");
        }
    }
}
