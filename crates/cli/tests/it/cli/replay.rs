//! `replay`: its rules, one by one.

use std::process::Stdio;

use crate::cli::run::{Ran, run, run_with};
use crate::server::tickwheel;

fn replay(lines: &[&str]) -> Ran {
    run_with(&["replay", "-"], &(lines.join("\n") + "\n"))
}

/// The deliveries in order: the key and the time of day of `fired_at`.
#[track_caller]
fn fired(ran: &Ran) -> Vec<String> {
    let part = |line: &str, name: &str| {
        let from = line.find(&format!("\"{name}\":\"")).expect("the member") + name.len() + 4;
        line[from..].split('"').next().expect("a value").to_owned()
    };
    ran.lines()
        .iter()
        .map(|line| format!("{} {}", part(line, "key"), &part(line, "fired_at")[11..23]))
        .collect()
}

fn put(at: &str, key: &str, delay: &str) -> String {
    format!(r#"{{"at":"2017-10-02T{at}Z","op":"put","queue":"q","key":"{key}","delay":"{delay}"}}"#)
}

fn cancel(at: &str, key: &str) -> String {
    format!(r#"{{"at":"2017-10-02T{at}Z","op":"cancel","queue":"q","key":"{key}"}}"#)
}

#[track_caller]
fn fired_by(lines: &[String]) -> (Vec<String>, String) {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let ran = replay(&lines);
    (fired(&ran), ran.err)
}

#[test]
fn members_stand_in_their_order_and_the_payload_is_kept() {
    let ran = replay(&[
        r#"{"at":"2017-10-02T12:56:33.5+02:00","op":"put","queue":"close","key":"order:1","delay":"30m","payload":{"a": [1.0, "ü"]}}"#,
        "",
        r#"  {"payload":null,"op":"put","key":"order:2","queue":"close","due_at":"2017-10-02T11:00:00Z","at":"2017-10-02T10:57:00Z"}  "#,
        "   \r",
    ]);
    assert_eq!(
        ran.lines(),
        [
            r#"{"queue":"close","key":"order:2","due_at":"2017-10-02T11:00:00.000Z","fired_at":"2017-10-02T11:00:00.000Z","payload":null}"#,
            r#"{"queue":"close","key":"order:1","due_at":"2017-10-02T11:26:33.500Z","fired_at":"2017-10-02T11:26:33.500Z","payload":{"a": [1.0, "ü"]}}"#,
        ]
    );
    assert!(ran.err.starts_with("2 puts, 0 cancelled, 0 too late, 2 fired in "), "{}", ran.err);
}

#[test]
fn a_cancel_at_the_due_instant_is_too_late_and_one_millisecond_before_is_not() {
    let (fired, err) = fired_by(&[
        put("10:00:00", "a", "30m"),
        put("10:00:00", "b", "30m"),
        put("10:00:00", "c", "30m"),
        cancel("10:29:59.999", "a"),
        cancel("10:30:00", "b"),
        cancel("10:30:00.001", "c"),
        cancel("10:30:00.001", "a"),
        cancel("10:30:00.001", "never"),
    ]);
    assert_eq!(fired, ["b 10:30:00.000", "c 10:30:00.000"]);
    assert!(err.starts_with("3 puts, 1 cancelled, 2 too late, 2 fired, 2 unknown in "), "{err}");
}

#[test]
fn a_put_moves_a_live_task_and_makes_a_new_one_after_it_fired() {
    let (fired, _) = fired_by(&[
        put("10:00:00", "a", "10m"),
        put("10:05:00", "a", "10m"),
        put("10:00:00", "b", "10m").replace("10:00:00", "10:06:00"),
        put("10:16:00", "b", "1m"),
    ]);
    assert_eq!(fired, ["a 10:15:00.000", "b 10:16:00.000", "b 10:17:00.000"]);
}

/// A task that is due at or before its own line fires right after that line. So a cancel in the next line is too late.
#[test]
fn a_put_that_is_due_already_fires_before_the_next_line_of_its_instant() {
    let past = r#"{"at":"2017-10-02T10:00:00Z","op":"put","queue":"q","key":"past","due_at":"2016-01-01T00:00:00Z"}"#;
    let bare = r#"{"at":"2017-10-02T10:00:00Z","op":"put","queue":"q","key":"bare"}"#;
    let (fired, err) = fired_by(&[
        put("09:00:00", "waiting", "1h"),
        put("10:00:00", "now", "0s"),
        cancel("10:00:00", "now"),
        past.to_owned(),
        put("10:00:00", "now", "0s"),
        bare.to_owned(),
        put("10:00:00", "later", "1ms"),
        cancel("10:00:00", "later"),
    ]);
    let at_ten = ["waiting", "now", "past", "now", "bare"].map(|key| format!("{key} 10:00:00.000"));
    assert_eq!(fired, at_ten, "what waited is first, then each line in turn");
    assert!(err.starts_with("6 puts, 1 cancelled, 1 too late, 5 fired in "), "{err}");
}

#[test]
fn deliveries_at_one_instant_follow_the_order_of_the_puts_across_queues() {
    let line = |at: &str, queue: &str, key: &str, due: &str| {
        format!(
            r#"{{"at":"2017-10-02T{at}Z","op":"put","queue":"{queue}","key":"{key}","due_at":"2017-10-02T{due}Z"}}"#
        )
    };
    let (fired, _) = fired_by(&[
        line("10:00:00", "z", "1", "11:00:00"),
        line("10:00:00", "a", "2", "11:00:00"),
        line("10:01:00", "m", "3", "10:59:59.999"),
        line("10:02:00", "z", "4", "11:00:00"),
        line("10:03:00", "a", "5", "11:00:00"),
    ]);
    let keys: Vec<_> = fired.iter().map(|fired| fired.split(' ').next().expect("a key")).collect();
    assert_eq!(keys, ["3", "1", "2", "4", "5"]);
}

#[test]
fn after_the_last_line_the_clock_runs_until_nothing_is_pending() {
    let (fired, err) = fired_by(&[put("10:00:00", "a", "36500d"), put("10:00:00", "b", "15d")]);
    assert_eq!(fired, ["b 10:00:00.000", "a 10:00:00.000"]);
    assert!(err.contains("2 fired"), "{err}");
}

/// A delivery long before the next line is acked at its own time, because a lease would not last until that line.
#[test]
fn lines_may_be_years_apart() {
    let (fired, err) = fired_by(&[
        put("10:00:00", "a", "1s"),
        put("10:00:00", "a", "1s").replace("2017", "2027"),
        put("10:00:00", "a", "1s").replace("2017", "2037"),
    ]);
    assert_eq!(fired, ["a 10:00:01.000"; 3]);
    assert!(err.contains("3 fired"), "{err}");
}

#[test]
fn an_empty_file_has_no_deliveries() {
    for input in ["", "\n\n  \n"] {
        let ran = run_with(&["replay", "-"], input);
        assert_eq!((ran.code, ran.out.as_str()), (0, ""));
        assert!(ran.err.starts_with("0 puts, 0 cancelled, 0 too late, 0 fired in "), "{}", ran.err);
    }
}

#[test]
fn a_bad_line_ends_it_with_its_number() {
    let good = put("10:00:00", "a", "1s");
    let far = put("10:00:00", "far", "40000d");
    let beyond = put("10:00:00", "far", "4000000d");
    let no_op = good.replace("\"op\":\"put\"", "\"op\":\"patch\"");
    let bad_queue = good.replace("\"queue\":\"q\"", "\"queue\":\"a b\"");
    let bad_key = good.replace("\"key\":\"a\"", "\"key\":\"\"");
    let bad_delay = good.replace("1s", "1");
    let bad_at = good.replace("2017-10-02T10:00:00Z", "2017-10-02");
    let no_at = r#"{"op":"cancel","queue":"q","key":"a"}"#;
    let earlier = put("09:59:59.999", "b", "1s");
    let cases: [(&str, &[&str]); 12] = [
        ("{", &["not JSON"]),
        ("7", &["object"]),
        (&no_op, &["`op`", "put"]),
        (&bad_queue, &["`queue`", "byte 1"]),
        (&bad_key, &["`key`", "1 to 256 bytes"]),
        (&bad_delay, &["`delay`", "no unit"]),
        (&bad_at, &["`at`", "RFC 3339"]),
        (no_at, &["`at`"]),
        (&earlier, &["out of order", "09:59:59.999Z", "10:00:00.000Z", "sort"]),
        (&far, &["more than"]),
        (&beyond, &["after 9999-12-30T22:00:00.999Z"]),
        ("\u{fffd}", &["not JSON"]),
    ];
    for (bad, expected) in cases {
        let ran = replay(&[&good, "", bad, &put("11:00:00", "late", "1s")]);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{bad}: {}", ran.err);
        assert!(ran.err.contains("failed to replay stdin: line 3"), "{bad}: {}", ran.err);
        for part in expected {
            assert!(ran.err.contains(part), "{bad} should say {part}: {}", ran.err);
        }
    }
    let unreadable = run(&["replay", "/no/such/file"]);
    assert!(
        unreadable.code == 1 && unreadable.err.contains("failed to open /no/such/file"),
        "{}",
        unreadable.err
    );
    let directory = run(&["replay", "/"]);
    assert!(directory.code == 1 && directory.err.contains("directory"), "{}", directory.err);
}

/// Deliveries before a bad line are written. If there are two bad lines, the error names the first, even if the second
/// is found earlier.
#[test]
fn before_a_bad_line_everything_is_as_it_should_be() {
    let ran = replay(&[
        &put("10:00:00", "a", "1s"),
        &put("10:00:02", "b", "1s"),
        &put("10:00:02", "far", "40000d"),
        "bad",
    ]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("line 3") && !ran.err.contains("line 4"), "{}", ran.err);
    assert!(ran.out.contains("\"key\":\"a\"") && !ran.out.contains("\"key\":\"b\""), "{}", ran.out);
}

/// `tickwheel replay ... | head -1`: the reader leaves, and no error is printed. A full disk is an error.
#[test]
fn stdout_that_takes_no_more_is_an_error_unless_its_reader_left() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("many.ndjson");
    let lines: String =
        (0..5_000).map(|number| put("10:00:00", &format!("k{number}"), "1s") + "\n").collect();
    std::fs::write(&file, lines).expect("write the operations");
    let words = ["replay", file.to_str().expect("UTF-8")];

    let mut command = tickwheel(&words);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("run tickwheel");
    drop(child.stdout.take());
    let left = child.wait_with_output().expect("run tickwheel");
    assert!(left.status.success(), "{left:?}");
    assert_eq!(String::from_utf8_lossy(&left.stderr), "", "quietly");

    let full = std::fs::File::options().write(true).open("/dev/full").expect("this system has /dev/full");
    let full = tickwheel(&words).stdout(full).output().expect("run tickwheel");
    assert_eq!(full.status.code(), Some(1));
    let err = String::from_utf8_lossy(&full.stderr);
    assert!(err.contains("write to stdout") && err.contains("No space left"), "{err}");
}

#[test]
fn a_put_of_exactly_the_limit_is_taken_however_far_the_clock_had_to_go() {
    let limit = "36525d";
    let (fired, _) =
        fired_by(&[put("10:00:00", "a", "1h"), put("10:30:00", "b", limit), cancel("10:30:00", "b")]);
    assert_eq!(fired, ["a 11:00:00.000"]);
}

/// A delivery is a line of JSON that any program reads, like a server's answer.
#[test]
fn a_payload_that_only_some_readers_take_is_bad_unless_it_is_asked_for() {
    for payload in ["1e999", r#"{"a":["\ud800"]}"#, r#"{"a":1,"a":2}"#] {
        let line = format!(
            r#"{{"at":"2017-10-02T10:00:00Z","op":"put","queue":"q","key":"k","payload":{payload}}}"#
        );
        let refused = run_with(&["replay", "-"], &line);
        assert_eq!((refused.code, refused.out.as_str()), (1, ""), "{payload}");
        for part in ["line 1: ", "`payload", "replay with --lax-json"] {
            assert!(refused.err.contains(part), "{payload}: {}", refused.err);
        }
        let taken = run_with(&["replay", "-", "--lax-json"], &line);
        assert!(taken.lines()[0].ends_with(&format!(r#""payload":{payload}}}"#)), "{}", taken.out);
    }
}
