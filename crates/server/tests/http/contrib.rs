//! `contrib/`: each figure and label that the alerts and the board name is on the page of a real server.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::metrics::{busy, promtool};

/// What Prometheus adds to each series, and what a query makes itself.
const OF_PROMETHEUS: [&str; 2] = ["instance", "job"];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The names of all series of a page, each with its labels.
fn series() -> BTreeMap<String, BTreeSet<String>> {
    let page = busy().call_with("GET", "/metrics", &[("Accept", "text/plain")], "").text();
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').expect("a value");
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let known = all.entry(name.to_owned()).or_default();
        known.extend(label_names(labels));
    }
    all
}

/// The names in `a="1",b=~"2"`, whose values may hold anything but a quote.
fn label_names(labels: &str) -> impl Iterator<Item = String> + use<'_> {
    let outside_quotes = labels.split('"').step_by(2);
    outside_quotes
        .map(|part| part.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_'))
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
}

/// The figures of ours in a query, each with the labels that it is chosen by.
fn figures(query: &str) -> Vec<(String, Vec<String>)> {
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
        found.push((name.to_owned(), labels.map_or(Vec::new(), |(labels, _)| label_names(labels).collect())));
    }
    found
}

/// The rules of the alerts file by name: their query and their other lines. It is written so that this reads it.
fn alerts() -> BTreeMap<String, (String, String)> {
    let file = text("contrib/prometheus/alerts.yml");
    let rules = file.split("\n      - alert: ").skip(1);
    rules
        .map(|rule| {
            let (name, rest) = rule.split_once('\n').expect("more than a name");
            let (_, query) = rest.split_once("expr: ").expect("a query");
            // A query of several lines is indented further than what follows it.
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

/// The queries of the board, with its variables filled in.
fn board() -> Vec<String> {
    let board: Value = serde_json::from_str(&text("contrib/grafana/tickwheel.json")).expect("JSON");
    let mut found = Vec::new();
    collect(&board, &mut found);
    let fill = |query: String| {
        query.replace("$__rate_interval", "5m").replace("$instance", ".*").replace("$queue", ".*")
    };
    found.into_iter().map(fill).collect()
}

/// Whatever is called `expr`, at any depth, and the queries of variables.
fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_str() {
                    Some(query) if name == "expr" => found.push(query.to_owned()),
                    Some(query) if name == "definition" => {
                        let (figure, _) = query
                            .strip_prefix("label_values(")
                            .and_then(|query| query.rsplit_once(','))
                            .unwrap_or_else(|| panic!("{query}"));
                        found.push(figure.to_owned());
                    }
                    _ => collect(member, found),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|one| collect(one, found)),
        _ => {}
    }
}

#[test]
fn figures_and_labels_are_found_in_a_query() {
    let query =
        "max(tickwheel_a{queue=~\"x_tickwheel_b\",instance=\"y\"}) > on (job) rate(process_c_total[5m])";
    let expected = [("tickwheel_a", vec!["queue", "instance"]), ("process_c_total", vec![])]
        .map(|(name, labels)| (name.to_owned(), labels.into_iter().map(str::to_owned).collect::<Vec<_>>()));
    assert_eq!(figures(query), expected);
}

#[test]
fn alerts_and_board_name_figures_that_are_there() {
    let known = series();
    let alerts = alerts();
    assert!(alerts.len() >= 12, "{:?}", alerts.keys());
    let board = board();
    assert!(board.len() > 40, "{} queries", board.len());
    let of_alerts = alerts.iter().map(|(name, (query, _))| (name.clone(), query.clone()));
    for (place, query) in of_alerts.chain(board.into_iter().map(|query| ("the board".to_owned(), query))) {
        let figures = figures(&query);
        assert!(
            !figures.is_empty() || query.contains("up{"),
            "{place} asks for none of our figures: {query}"
        );
        for (name, labels) in figures {
            let Some(of_figure) = known.get(&name) else { panic!("{place}: there is no {name}: {query}") };
            for label in labels {
                let is_known = of_figure.contains(&label) || OF_PROMETHEUS.contains(&label.as_str());
                assert!(is_known, "{place}: {name} has no label {label}: {query}");
            }
        }
    }
}

/// The board shows each figure there is, so that one that is new is not forgotten there.
#[test]
fn the_board_shows_all_figures() {
    let shown: BTreeSet<String> =
        board().iter().flat_map(|query| figures(query)).map(|(name, _)| family(&name).to_owned()).collect();
    // What the machine knows as a whole and by queue is shown once.
    let left_out = [];
    for name in series().keys() {
        let family = family(name);
        assert!(shown.contains(family) || left_out.contains(&family), "{family} is not on the board");
    }
}

/// A histogram by one name.
fn family(name: &str) -> &str {
    let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
    of_histogram.unwrap_or(name)
}

/// An alert that nobody sees fire may never do so, and one that is not seen to be silent may wake people for nothing.
#[test]
fn each_alert_has_a_summary_a_runbook_and_a_test_of_both_kinds() {
    let tests = text("contrib/prometheus/alerts_test.yml");
    let page = text("docs/operations.md");
    let titles = page.lines().filter_map(|line| line.strip_prefix("## "));
    let sections: BTreeSet<String> = titles.map(|title| title.to_lowercase().replace(' ', "-")).collect();
    for (name, (_, rule)) in alerts() {
        assert!(rule.contains("          summary: ") && rule.contains("severity: "), "{name}");
        let runbook = rule.split_once("          runbook: docs/operations.md#");
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
    let rules = board().into_iter().enumerate().map(|(n, query)| {
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
