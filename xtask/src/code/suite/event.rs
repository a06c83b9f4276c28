//! [`Event`]: a line of the test harness, which `--format json` writes.

use serde::Deserialize;

/// How a test ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Passed,
    Failed,
}

/// A line about a test.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Event {
    Started(String),
    Ignored(String),
    Ended { test: String, outcome: Outcome, seconds: f64, output: String },
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    event: String,
    name: Option<String>,
    exec_time: Option<f64>,
    stdout: Option<String>,
    message: Option<String>,
}

/// Reads a line; `None`: it is about no test, or it is not of the harness, as what a child of a test writes.
pub(super) fn read(line: &str) -> Option<Event> {
    // A test may have written text before the line of the harness, without an end of line.
    let begin = line.find(r#"{ "type": "test""#).or_else(|| line.find(r#"{"type":"test""#))?;
    let line: Line = serde_json::from_str(&line[begin..]).ok()?;
    let test = line.name.filter(|_| line.kind == "test")?;
    let ended = |outcome| {
        let output = [line.stdout, line.message].into_iter().flatten().collect();
        Some(Event::Ended { test: test.clone(), outcome, seconds: line.exec_time.unwrap_or(0.0), output })
    };
    match line.event.as_str() {
        "started" => Some(Event::Started(test)),
        "ignored" => Some(Event::Ignored(test)),
        "ok" => ended(Outcome::Passed),
        "failed" => ended(Outcome::Failed),
        _ => None,
    }
}

/// Reads a line of the harness's plain format, which `said` has all lines of. It tells of a test when it has ended.
pub(super) fn read_plain(line: &str, said: &str) -> Option<Event> {
    let (test, end) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    // An example that is only compiled, or that has to fail, says so behind its name.
    let modes = [" - compile", " - compile fail", " - should panic"];
    let test = modes.iter().find_map(|mode| test.strip_suffix(mode)).unwrap_or(test).to_owned();
    let ended = |outcome, output| Some(Event::Ended { test: test.clone(), outcome, seconds: 0.0, output });
    match end {
        "ok" => ended(Outcome::Passed, String::new()),
        "FAILED" => ended(Outcome::Failed, said.to_owned()),
        _ => end.starts_with("ignored").then_some(Event::Ignored(test)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_begins_passes_or_fails_is_read() {
        assert_eq!(
            read(r#"{ "type": "test", "event": "started", "name": "a::b" }"#),
            Some(Event::Started("a::b".to_owned()))
        );
        let passed = r#"noise{ "type": "test", "name": "a::b", "event": "ok", "exec_time": 0.25 }"#;
        let expected = Event::Ended {
            test: "a::b".to_owned(),
            outcome: Outcome::Passed,
            seconds: 0.25,
            output: String::new(),
        };
        assert_eq!(read(passed), Some(expected));
        let failed =
            r#"{ "type": "test", "name": "c", "event": "failed", "exec_time": 1.5, "stdout": "why\n" }"#;
        let expected = Event::Ended {
            test: "c".to_owned(),
            outcome: Outcome::Failed,
            seconds: 1.5,
            output: "why\n".to_owned(),
        };
        assert_eq!(read(failed), Some(expected));
    }

    #[test]
    fn an_example_is_read_in_the_plain_format() {
        let ended = |test: &str, outcome, output: &str| {
            let (test, output) = (test.to_owned(), output.to_owned());
            Some(Event::Ended { test, outcome, seconds: 0.0, output })
        };
        assert_eq!(
            read_plain("test src/a.rs - A (line 3) ... ok", "all"),
            ended("src/a.rs - A (line 3)", Outcome::Passed, "")
        );
        assert_eq!(
            read_plain("test src/a.rs - A (line 9) - compile fail ... FAILED", "all"),
            ended("src/a.rs - A (line 9)", Outcome::Failed, "all")
        );
        let ignored = Some(Event::Ignored("src/b.rs - B (line 1)".to_owned()));
        assert_eq!(read_plain("test src/b.rs - B (line 1) ... ignored", "all"), ignored);
        for line in ["test result: ok. 36 passed; 0 failed", "running 36 tests", "test a ... between"] {
            assert_eq!(read_plain(line, "all"), None, "{line}");
        }
    }

    #[test]
    fn an_ignored_test_is_told_apart() {
        let line = r#"{ "type": "test", "name": "a", "event": "ignored" }"#;
        assert_eq!(read(line), Some(Event::Ignored("a".to_owned())));
    }

    #[test]
    fn other_lines_are_left_out() {
        for line in [
            "",
            "running 3 tests",
            r#"{ "type": "suite", "event": "started", "test_count": 3 }"#,
            r#"{ "type": "test", "name": "a", "event": "timeout" }"#,
            r#"{ "type": "test", "name": "#,
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
