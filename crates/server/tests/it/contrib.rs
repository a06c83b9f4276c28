//! `contrib/`: each metric, label and value that the alerts and the board name is on the page of a real server.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::backups::with_place;
use crate::databases::is_left_out;
use crate::metrics::{busy, promtool};
use crate::served::Served;

/// The labels that Prometheus or a query adds to each series.
const OF_PROMETHEUS: [&str; 2] = ["instance", "job"];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The values of each label of a metric on the page.
type Values = BTreeMap<String, BTreeSet<String>>;

/// The names of all series of a page, each with its labels.
fn series() -> BTreeMap<String, Values> {
    let page_of =
        |served: &Served| served.call_with("GET", "/metrics", &[("Accept", "text/plain")], "").text();
    let (_place, of_backups) = with_place();
    let page = page_of(&busy()) + &page_of(&of_backups);
    let mut all: BTreeMap<String, Values> = BTreeMap::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').expect("a value");
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let known = all.entry(name.to_owned()).or_default();
        for (label, value) in matchers(labels) {
            known.entry(label).or_default().insert(value);
        }
    }
    all
}

/// The names and the values in `a="1",b=~"2"`; a value may contain any character but a quote.
fn matchers(labels: &str) -> impl Iterator<Item = (String, String)> + use<'_> {
    let parts: Vec<&str> = labels.split('"').collect();
    let pairs: Vec<_> = parts.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect();
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    pairs.into_iter().map(move |(name, value)| (name.trim_matches(|c| !is_of_name(c)).to_owned(), value))
}

/// Tickwheel's metrics in a query, each with the labels that select it and their values.
fn figures(query: &str) -> Vec<(String, Vec<(String, String)>)> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let (mut found, mut rest) = (Vec::new(), query);
    while let Some(at) = rest.find(is_of_name) {
        let (before, word) = rest.split_at(at);
        let end = word.find(|c| !is_of_name(c)).unwrap_or(word.len());
        let (name, behind) = word.split_at(end);
        rest = behind;
        if before.ends_with('"') || !(name.starts_with("tickwheel_") || name.starts_with("process_")) {
            continue;
        }
        let labels = behind.strip_prefix('{').and_then(|labels| labels.split_once('}'));
        found.push((name.to_owned(), labels.map_or(Vec::new(), |(labels, _)| matchers(labels).collect())));
    }
    found
}

/// The labels in the parentheses after this word of a query, such as `by (le, queue)`.
fn in_brackets(query: &str, word: &str) -> BTreeSet<String> {
    let begins = format!(" {word} (");
    let lists = query.split(begins.as_str()).skip(1).filter_map(|rest| rest.split_once(')'));
    lists.flat_map(|(list, _)| list.split(',')).map(|label| label.trim().to_owned()).collect()
}

/// The labels that a text shows, each written as `before` and the name.
fn shown_labels(text: &str, before: &str) -> BTreeSet<String> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let names = text.split(before).skip(1).map(|rest| rest.split(|c| !is_of_name(c)).next());
    names.flatten().map(str::to_owned).collect()
}

/// Compares a query with the page. It checks its metrics, the labels and values that select them, the labels by
/// which it groups and joins, and the labels of the text beside it.
fn check(known: &BTreeMap<String, Values>, place: &str, query: &str, shown: &BTreeSet<String>) {
    let figures = figures(query);
    assert!(!figures.is_empty() || query.contains("up{"), "{place} asks for none of our figures: {query}");
    let mut labels: BTreeSet<String> = OF_PROMETHEUS.map(str::to_owned).into();
    for (name, chosen) in figures {
        let Some(of_figure) = known.get(&name) else { panic!("{place}: there is no {name}: {query}") };
        labels.extend(of_figure.keys().cloned());
        for (label, value) in chosen {
            if OF_PROMETHEUS.contains(&label.as_str()) {
                continue;
            }
            let Some(values) = of_figure.get(&label) else {
                panic!("{place}: {name} has no label {label}: {query}")
            };
            for value in value.split('|').filter(|value| *value != ".*") {
                assert!(values.contains(value), "{place}: {name} has no {label}=\"{value}\": {query}");
            }
        }
    }
    let by = in_brackets(query, "by");
    let listed = ["on", "ignoring", "without"].iter().flat_map(|word| in_brackets(query, word));
    for label in by.iter().cloned().chain(listed) {
        assert!(labels.contains(&label), "{place}: none of its figures has a label {label}: {query}");
    }
    let left = if by.is_empty() { &labels } else { &by };
    for label in shown {
        assert!(left.contains(label), "{place} shows the label {label}, which is not there: {query}");
    }
}

/// The rules of the alerts file by name: the query and the other lines. The file is written so that this simple
/// reader works.
fn alerts() -> BTreeMap<String, (String, String)> {
    let file = text("contrib/prometheus/alerts.yml");
    let rules = file.split("\n      - alert: ").skip(1);
    rules
        .map(|rule| {
            let (name, rest) = rule.split_once('\n').expect("more than a name");
            let (_, query) = rest.split_once("expr: ").expect("a query");
            // A query of several lines is indented more than the lines after it.
            let lines = query.strip_prefix("|\n");
            let query = match lines {
                None => query.lines().next().unwrap_or_default().to_owned(),
                Some(lines) => {
                    let of_query = lines.lines().take_while(|line| line.starts_with("          "));
                    of_query.map(str::trim).collect::<Vec<_>>().join(" ")
                }
            };
            (name.to_owned(), (query, rest.to_owned()))
        })
        .collect()
}

/// One query of the board, with its variables filled in, and the labels that are shown beside it.
#[derive(Debug)]
struct Asked {
    query: String,
    shown: BTreeSet<String>,
}

/// The queries of the board.
fn board() -> Vec<Asked> {
    let board: Value = serde_json::from_str(&text("contrib/grafana/tickwheel.json")).expect("JSON");
    let mut found = Vec::new();
    collect(&board, &mut found);
    for Asked { query, .. } in &mut found {
        *query = query.replace("$__rate_interval", "5m").replace("$instance", ".*").replace("$queue", ".*");
    }
    found
}

/// Collects each `expr` at any depth, with its legend, and the queries of variables.
fn collect(value: &Value, found: &mut Vec<Asked>) {
    if let Some(query) = value["expr"].as_str() {
        let legend = [&value["legendFormat"], &value["textFormat"]].map(|text| text.as_str().unwrap_or(""));
        let shown = shown_labels(&legend.concat(), "{{");
        found.push(Asked { query: query.to_owned(), shown });
    }
    if let Some(definition) = value["definition"].as_str() {
        // Grafana uses this query; the other one is only shown in its editor.
        let query = value["query"]["query"].as_str().expect("the query of a variable");
        assert_eq!(query, definition);
        let (figure, label) = query
            .strip_prefix("label_values(")
            .and_then(|query| query.strip_suffix(')')?.rsplit_once(','))
            .unwrap_or_else(|| panic!("{query}"));
        found.push(Asked { query: figure.to_owned(), shown: [label.trim().to_owned()].into() });
    }
    match value {
        Value::Object(members) => members.values().for_each(|member| collect(member, found)),
        Value::Array(list) => list.iter().for_each(|one| collect(one, found)),
        _ => {}
    }
}

#[test]
fn figures_labels_and_values_are_found_in_a_query() {
    let query = "max by (queue, le) (tickwheel_a{queue=~\"x_tickwheel_b|c\",instance=\"y\"}) > on (job) rate(process_c_total[5m])";
    let pair = |label: &str, value: &str| (label.to_owned(), value.to_owned());
    let expected = [
        ("tickwheel_a".to_owned(), vec![pair("queue", "x_tickwheel_b|c"), pair("instance", "y")]),
        ("process_c_total".to_owned(), vec![]),
    ];
    assert_eq!(figures(query), expected);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(
        (in_brackets(query, "by"), in_brackets(query, "on")),
        (names(&["le", "queue"]), names(&["job"]))
    );
    assert_eq!(shown_labels("{{a}} of {{b_c}}", "{{"), names(&["a", "b_c"]));
    assert_eq!(shown_labels("{{ $labels.a }} of {{ $value }}", "$labels."), names(&["a"]));
}

/// A query of a name that does not exist returns nothing, and an alert of it is silent for ever.
#[test]
fn alerts_and_board_name_existing_metrics() {
    if is_left_out("the figures of backups are of a directory") {
        return;
    }
    let known = series();
    let (alerts, board) = (alerts(), board());
    assert!(alerts.len() >= 12, "{:?}", alerts.keys());
    assert!(board.len() > 40, "{} queries", board.len());
    for (name, (query, rule)) in &alerts {
        check(&known, name, query, &shown_labels(rule, "$labels."));
    }
    for Asked { query, shown } in &board {
        check(&known, "the board", query, shown);
    }
}

/// Shows that each part of the check above can fail.
#[test]
fn a_query_of_a_missing_name_is_found() {
    let known = series();
    let refuses = |query: &str, shown: &[&str]| {
        let shown = shown.iter().map(|label| (*label).to_owned()).collect();
        std::panic::catch_unwind(|| check(&known, "a test", query, &shown)).is_err()
    };
    assert!(!refuses("sum by (result) (tickwheel_delivered_total{result=~\"acked|nacked\"})", &["result"]));
    for (query, shown) in [
        ("tickwheel_nothing", &[][..]),
        ("up == 0", &[]),
        ("tickwheel_delivered_total{how=\"acked\"}", &[]),
        ("tickwheel_delivered_total{result=\"failed\"}", &[]),
        ("tickwheel_delivered_total{result=~\"acked|failed\"}", &[]),
        ("tickwheel_queue_fire_lateness_seconds_bucket{le=\"2.0\"}", &[]),
        ("sum by (queue) (tickwheel_delivered_total)", &[]),
        ("tickwheel_tasks > on (route) tickwheel_tasks", &[]),
        ("sum by (instance) (tickwheel_tasks)", &["queue"]),
    ] {
        assert!(refuses(query, shown), "{query} {shown:?}");
    }
}

/// The board shows each metric. This test finds a new metric that was forgotten there.
#[test]
fn the_board_shows_all_metrics() {
    let shown: BTreeSet<String> =
        board().iter().flat_map(|of| figures(&of.query)).map(|(name, _)| family(&name).to_owned()).collect();
    for name in series().keys() {
        let family = family(name);
        assert!(shown.contains(family), "{family} is not on the board");
    }
}

/// The name of the metric; a histogram's series have one name.
fn family(name: &str) -> &str {
    let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
    of_histogram.unwrap_or(name)
}

/// Each alert is tested twice. An alert that never fired in a test may be unable to fire. An alert that was never
/// silent in a test may wake people without need.
#[test]
fn each_alert_has_a_summary_a_runbook_and_a_test_of_both_kinds() {
    let tests = text("contrib/prometheus/alerts_test.yml");
    let page = text("docs/how-to/operations.md");
    let titles = page.lines().filter_map(|line| line.strip_prefix("## "));
    let sections: BTreeSet<String> = titles.map(|title| title.to_lowercase().replace(' ', "-")).collect();
    for (name, (_, rule)) in alerts() {
        assert!(rule.contains("          summary: ") && rule.contains("severity: "), "{name}");
        let runbook = rule.split_once("          runbook: docs/how-to/operations.md#");
        let (_, anchor) = runbook.unwrap_or_else(|| panic!("{name} has no runbook"));
        let anchor = anchor.lines().next().unwrap_or_default();
        assert!(sections.contains(anchor), "{name}: the page has no section {anchor}: {sections:?}");
        assert!(tests.contains(&format!("alertname: {name}, exp_alerts: []")), "{name} is never silent");
        assert!(tests.contains(&format!("alertname: {name}\n        exp_alerts:\n")), "{name} never fires");
    }
}

#[test]
fn promtool_takes_the_alerts_and_their_tests_pass() {
    let folder = path("contrib/prometheus");
    for words in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]] {
        let Some(mut promtool) = promtool(&words) else { return };
        let output = promtool.current_dir(&folder).output().expect("promtool runs");
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&said));
    }
}

#[test]
fn promtool_understands_the_queries_of_the_board() {
    let Some(mut promtool) = promtool(&["check", "rules"]) else { return };
    let rules = board().into_iter().enumerate().map(|(n, Asked { query, .. })| {
        let query = serde_json::to_string(&query).expect("text");
        format!("      - {{record: \"board:query:{n}\", expr: {query}}}\n")
    });
    let file = format!("groups:\n  - name: board\n    rules:\n{}", rules.collect::<String>());
    let place = tempfile::tempdir().expect("a temporary directory");
    let rules = place.path().join("rules.yml");
    std::fs::write(&rules, &file).expect("written");
    let output = promtool.arg(&rules).output().expect("promtool runs");
    assert!(output.status.success(), "{}\n{file}", String::from_utf8_lossy(&output.stderr));
}
