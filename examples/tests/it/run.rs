//! Runs every example.

use std::path::Path;
use std::process::{Command, Output};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the examples print UTF-8")
}

fn crash(directory: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_embedded_crash"));
    command.arg(directory).args(words).output().expect("run embedded_crash")
}

#[test]
fn embedded_crash_finds_every_acknowledged_task_after_each_crash() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for run in 0..3 {
        let output = crash(directory.path(), &[]);
        assert!(!output.status.success(), "it aborts itself: {:?}", output.status);
        let (said, complained) = (text(&output.stdout), text(&output.stderr));
        let before = run * 1_001;
        let expected = format!("{before} acknowledged before, {before} found again\ncrash\n");
        assert_eq!(said, expected, "run {run}: {complained}");
    }
    let output = crash(directory.path(), &["last"]);
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{complained}");
    assert!(said.starts_with("3003 acknowledged before, 3003 found again\n"), "{said}");
    assert!(said.ends_with("delivered and acked, 0 lost\n"), "{said}");
}

#[test]
fn http_worker_works() {
    let output = Command::new(env!("CARGO_BIN_EXE_http_worker")).output().expect("run http_worker");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let expected = "order:1 was paid in time\norder:2 is closed, with the payload {\"order\":2}\n";
    assert_eq!(text(&output.stdout), expected);
}

const HEADER: &str =
    "order_id,order_status,order_purchase_timestamp,order_approved_at,order_delivered_customer_date\n";

fn convert(csv: &str) -> Output {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("orders.csv");
    std::fs::write(&file, format!("{HEADER}{csv}")).expect("write the table");
    Command::new(env!("CARGO_BIN_EXE_orders_to_ndjson")).arg(&file).output().expect("run orders_to_ndjson")
}

/// Rows out of order, an empty approval, an empty delivery, an approval at the instant of another purchase.
#[test]
fn orders_to_ndjson_sorts_and_keeps_ties_in_the_order_of_rows() {
    let output = convert(
        "b,delivered,2018-01-01 00:30:00,2018-01-01 00:31:00,2018-01-03 00:00:00\n\
         a,delivered,2018-01-01 00:00:00,2018-01-01 00:30:00,\n\
         \n\
         c,canceled,2018-01-01 00:30:00,,\n",
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let expected = [
        r#"{"at":"2018-01-01T00:00:00.000Z","op":"put","queue":"close","key":"order:a","delay":"30m","payload":{"order":"a"}}"#,
        r#"{"at":"2018-01-01T00:30:00.000Z","op":"put","queue":"close","key":"order:b","delay":"30m","payload":{"order":"b"}}"#,
        r#"{"at":"2018-01-01T00:30:00.000Z","op":"cancel","queue":"close","key":"order:a"}"#,
        r#"{"at":"2018-01-01T00:30:00.000Z","op":"put","queue":"close","key":"order:c","delay":"30m","payload":{"order":"c"}}"#,
        r#"{"at":"2018-01-01T00:31:00.000Z","op":"cancel","queue":"close","key":"order:b"}"#,
        r#"{"at":"2018-01-03T00:00:00.000Z","op":"put","queue":"confirm","key":"order:b","delay":"15d","payload":{"order":"b"}}"#,
    ];
    assert_eq!(text(&output.stdout).lines().collect::<Vec<_>>(), expected);
}

#[test]
fn orders_to_ndjson_names_the_line_of_a_bad_row() {
    for (row, what) in [
        ("a,delivered,2018-01-01,,\n", "line 2: `2018-01-01` is not a time such as 2017-10-02 10:56:33"),
        ("a,delivered,,,\n", "line 2: the order has no time of purchase"),
        ("a,delivered,2018-01-01 00:00:00,\n", "line 2: 4 fields, not 5 as in the first line"),
        ("\"a\",delivered,2018-01-01 00:00:00,,\n", "line 2: a field is quoted"),
        (
            "a,delivered,2018-01-01 00:00:00,,\na,delivered,2018-01-01 00:00:00,,\n",
            "line 3: order a is there twice",
        ),
    ] {
        let output = convert(row);
        let complained = text(&output.stderr).replace("Caused by:\n    ", "").replace("    ", "");
        assert!(!output.status.success(), "{row} was taken");
        let flat =
            complained.lines().map(|line| line.trim().trim_start_matches("0: ").trim_start_matches("1: "));
        let flat = flat.collect::<Vec<_>>().join(": ");
        assert!(flat.contains(what), "{row}: {flat}");
    }
}
