//! Readiness, lists of queues, and metrics.

use serde_json::{Value, json};

use crate::backups::with_place_and;
use crate::databases::{durability, is_left_out};
use crate::metrics::{closed_broker, try_closed_broker};
use crate::served::Served;

#[test]
fn a_ready_server_says_so_and_tells_its_durability() {
    let served = Served::memory();
    assert_eq!(served.expect(200, "GET", "/healthz", ""), json!({"status": "ok"}));
    let ready = served.expect(200, "GET", "/readyz", "");
    assert_eq!((&ready["ready"], &ready["durability"]), (&json!(true), &json!(durability())));
    assert_eq!((&ready["virtual_clock"], &ready["read_only"]), (&json!(true), &Value::Null));
    assert_eq!(ready["why"], Value::Null);
    let reply = served.call("GET", "/readyz", "");
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(served.call("HEAD", "/readyz", "").status, 200);
}

#[test]
fn queues_are_counted_by_state_and_listed_by_name() {
    let served = Served::memory();
    assert_eq!(served.expect(200, "GET", "/v1/queues", ""), json!({"queues": [], "next_cursor": null}));
    served.expect(201, "PUT", "/v1/queues/b/tasks/1", r#"{"delay":"1h"}"#);
    served.expect(201, "PUT", "/v1/queues/a/tasks/1", "");
    served.expect(201, "PUT", "/v1/queues/a/tasks/2", "");
    served.lease("a", 1);
    let counts = |queue: &str, [scheduled, ready, leased]: [u64; 3]| json!({"queue": queue, "scheduled": scheduled, "ready": ready, "leased": leased, "dead": 0, "paused": false});
    let (a, b) = (counts("a", [0, 1, 1]), counts("b", [1, 0, 0]));
    assert_eq!(served.expect(200, "GET", "/v1/queues", ""), json!({"queues": [a, b], "next_cursor": null}));
    assert_eq!(served.expect(200, "GET", "/v1/queues/a", ""), a);
    let mut none = counts("never-used", [0, 0, 0]);
    none["exists"] = json!(false);
    assert_eq!(served.expect(200, "GET", "/v1/queues/never-used", ""), none);
}

fn queue_names(page: &Value) -> Vec<&str> {
    page["queues"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["queue"].as_str().expect("a name"))
        .collect()
}

#[test]
fn queues_come_in_pages_and_by_prefix() {
    let served = Served::memory();
    for queue in ["a", "shop%2F1", "shop%2F2", "shop%2F3", "shopping"] {
        served.expect(201, "PUT", &format!("/v1/queues/{queue}/tasks/1"), "");
    }
    let all = served.expect(200, "GET", "/v1/queues?prefix=", "");
    assert_eq!(queue_names(&all), ["a", "shop/1", "shop/2", "shop/3", "shopping"]);
    let first = served.expect(200, "GET", "/v1/queues?prefix=shop%2F&limit=2", "");
    assert_eq!(queue_names(&first), ["shop/1", "shop/2"]);
    let cursor = first["next_cursor"].as_str().expect("there is one more");
    let second = served.expect(200, "GET", &format!("/v1/queues?prefix=shop%2F&limit=2&cursor={cursor}"), "");
    assert_eq!((queue_names(&second), &second["next_cursor"]), (vec!["shop/3"], &Value::Null));
    let exact = served.expect(200, "GET", "/v1/queues?limit=5", "");
    assert_eq!((queue_names(&exact).len(), &exact["next_cursor"]), (5, &Value::Null), "nothing follows");
    let rest = served.expect(200, "GET", &format!("/v1/queues?cursor={cursor}"), "");
    assert_eq!(queue_names(&rest), ["shop/3", "shopping"]);
    for (query, name) in [
        ("prefix=no%20name", "prefix"),
        ("prefix=-a", "prefix"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("cursor=zz", "cursor"),
        ("state=ready", "state"),
    ] {
        let refused = served.expect(400, "GET", &format!("/v1/queues?{query}"), "");
        assert!(refused["detail"].as_str().is_some_and(|detail| detail.contains(name)), "{query}: {refused}");
    }
}

/// The number of queues is larger than a page of the engine.
#[test]
fn a_list_of_many_queues_is_whole() {
    let served = Served::memory();
    let mut connection = served.connect();
    for n in 0..1_501 {
        connection.request("PUT", &format!("/v1/queues/q{n:04}/tasks/k"), &[], b"");
        assert_eq!(connection.reply().status, 201);
    }
    let all = served.expect(200, "GET", "/v1/queues", "");
    assert_eq!((queue_names(&all).len(), queue_names(&all)[1_500]), (1_501, "q1500"));
    let page = served.expect(200, "GET", "/v1/queues?limit=1000", "");
    assert_eq!((queue_names(&page).len(), queue_names(&page)[999]), (1_000, "q0999"));
    let others = served.call("GET", "/metrics", "").text();
    assert!(others.contains("tickwheel_tasks{queue=\"{other}\",state=\"ready\"} 501\n"), "{others}");
}

#[test]
fn an_emptied_queue_stays_in_the_list_and_in_the_metrics_for_an_hour() {
    let served = Served::memory();
    served.expect(201, "PUT", "/v1/queues/q/tasks/1", "");
    served.expect(200, "DELETE", "/v1/queues/q/tasks/1", "");
    let all = served.expect(200, "GET", "/v1/queues", "");
    assert_eq!((queue_names(&all), &all["queues"][0]["ready"]), (vec!["q"], &json!(0)));
    let series = "tickwheel_tasks{queue=\"q\",state=\"ready\"} 0\n";
    assert!(served.call("GET", "/metrics", "").text().contains(series));
    served.advance("1h");
    assert_eq!(served.expect(200, "GET", "/v1/queues", "")["queues"], json!([]));
    assert!(!served.call("GET", "/metrics", "").text().contains("queue=\"q\""));
}

#[test]
fn metrics_follow_what_happened() {
    let served = Served::memory();
    for (key, body) in [("a", "{}"), ("b", "{}"), ("c", r#"{"delay":"1h"}"#), ("d", r#"{"delay":"1h"}"#)] {
        served.expect(201, "PUT", &format!("/v1/queues/q/tasks/{key}"), body);
    }
    served.expect(200, "DELETE", "/v1/queues/q/tasks/d", "");
    let tasks = served.lease("q", 2);
    served.say("q", "ack", &[&tasks[0]["token"]]);
    served.say("q", "nack", &[&tasks[1]["token"]]);
    served.advance("2h");
    served.call("GET", "/v1/queues/q/tasks/nobody", "");
    served.call("POST", "/v1/queues/q/batch", "{}\n{\"op\":\"cancel\",\"key\":\"nobody\"}\n");
    served.call("POST", "/v1/queues/q/lease", "{");
    let page = served.call("GET", "/metrics", "");
    let format = page.header("content-type").expect("a type");
    assert!(format.starts_with("application/openmetrics-text"), "{format}");
    let text = page.text();
    for line in [
        "tickwheel_tasks{queue=\"q\",state=\"scheduled\"} 0",
        "tickwheel_tasks{queue=\"q\",state=\"ready\"} 2",
        "tickwheel_scheduled_total 4",
        "tickwheel_cancelled_total 1",
        "tickwheel_leased_total 2",
        "tickwheel_delivered_total{result=\"acked\"} 1",
        "tickwheel_delivered_total{result=\"nacked\"} 1",
        "tickwheel_delivered_total{result=\"expired\"} 0",
        "tickwheel_fire_lateness_seconds_bucket{le=\"0.0\"} 3",
        "tickwheel_oldest_due_age_seconds 7200.0",
        "tickwheel_clock_offset_seconds 0.0",
        "tickwheel_clock_width_seconds 0.0",
        "tickwheel_refused_total{problem=\"not-found\"} 2",
        "tickwheel_refused_total{problem=\"bad-request\"} 2",
        "tickwheel_refused_total{problem=\"busy\"} 0",
        "tickwheel_read_only 0",
        &format!("tickwheel_mode{{durability=\"{}\",clock=\"virtual\"}} 1", durability()),
        "# TYPE tickwheel_commit_seconds histogram",
        "# EOF",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("nobody"), "no key is ever a label");
}

/// `docs/reference/metrics.md` names each metric of the page with its kind and its labels, and no other metric.
#[test]
fn the_metrics_are_the_described_ones() {
    if is_left_out("the figures of backups are of a directory") {
        return;
    }
    let (_place, served) = with_place_and(closed_broker());
    try_closed_broker(&served);
    served.expect(201, "PUT", "/v1/queues/q/tasks/a", "{}");
    let page = served.call("GET", "/metrics", "").text();
    let kinds = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let mut served: Vec<String> = kinds
        .map(|(name, kind)| {
            let suffix = match kind {
                "counter" => "_total",
                "info" => "_info",
                _ => "",
            };
            let shown = format!("{name}{suffix}");
            let first = if kind == "histogram" { format!("{name}_bucket") } else { shown.clone() };
            let sample = page.lines().find_map(|line| line.strip_prefix(&first)?.strip_prefix('{'));
            let of_figure = |label: &&str| !label.is_empty() && !label.starts_with("le=");
            // The value of a label may contain a brace, as the pattern of a route does.
            let labels = sample.and_then(|rest| rest.rsplit_once("} ")).map_or("", |(labels, _)| labels);
            let names: Vec<&str> =
                labels.split(',').filter(of_figure).filter_map(|one| one.split('=').next()).collect();
            let names = if names.is_empty() { String::new() } else { format!("{{{}}}", names.join(",")) };
            format!("{shown}{names} {kind}")
        })
        .collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
    let text = std::fs::read_to_string(path).expect("the page of figures");
    let (_, table) = text.split_once("## All of them").expect("a table");
    let mut described: Vec<String> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .map(|(name, rest)| format!("{name} {}", rest.split(' ').next().expect("a kind")))
        .collect();
    served.sort_unstable();
    described.sort_unstable();
    assert_eq!(described, served);
}
