//! The chore `behaviours`.

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use super::page::{self, PAGE};
use super::tested::{Test, tests};
use crate::finding::{Finding, report};
use crate::root::{root, texts};

/// Holds the page against the tests.
pub(crate) fn run() -> Result<()> {
    let texts = texts(&root())?;
    let page = texts.iter().find(|text| text.path == PAGE).with_context(|| format!("{PAGE} is missing"))?;
    let found: Vec<Test> = texts.iter().flat_map(tests).collect();
    let (rows, findings) = compare(&page.text, &found);
    report("behaviours", &format!("{rows} rows and {} tests", found.len()), findings)
}

/// How many rows the page has, and what is wrong.
fn compare(page: &str, found: &[Test]) -> (usize, Vec<Finding>) {
    let mut findings = Vec::new();
    let rows = page::read(page, &mut findings);
    let shown: BTreeSet<_> = found.iter().filter(|test| test.runs).map(|test| &test.id).collect();
    for (id, row) in &rows {
        if row.applies && !shown.contains(id) {
            let name = id.to_string().to_ascii_lowercase();
            let what = format!("{id} has no test that `cargo test` runs; write `fn {name}_...`");
            findings.push(Finding::new(format!("{PAGE}:{}", row.line), what));
        }
    }
    // Other words that end in a digit, such as utf8, are no ids.
    let families: BTreeSet<&str> = rows.keys().map(|id| id.family.as_str()).collect();
    for test in found.iter().filter(|test| families.contains(test.id.family.as_str())) {
        let what = match rows.get(&test.id) {
            Some(row) if row.applies => continue,
            Some(row) => format!("tests {}, which line {} of {PAGE} says does not apply", test.id, row.line),
            None => format!("tests {}, which {PAGE} does not know", test.id),
        };
        findings.push(Finding::new(&test.place, what));
    }
    (rows.len(), findings)
}

#[cfg(test)]
mod unit_tests {
    use super::*;
    use crate::root::Text;

    const ROWS: &str = "| T1 | a |\n| T2 | not applicable: b |\n| D1 | c |\n";

    fn said(sources: &str) -> Vec<String> {
        let source = Text { path: "crates/timer/tests/a.rs".to_owned(), text: sources.to_owned() };
        compare(ROWS, &tests(&source)).1.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_test_for_each_row_is_in_order() {
        let sources = "#[test]\nfn t1_a() {}\n#[test]\nfn d1_c() {}\n#[test]\nfn utf8_text() {}\n";
        assert_eq!(said(sources), Vec::<String>::new());
    }

    #[test]
    fn a_row_without_a_test_is_named() {
        let sources = "#[test]\nfn t1_a() {}\n#[test]\n#[ignore]\nfn d1_c() {}\n";
        let what = "D1 has no test that `cargo test` runs; write `fn d1_...`";
        assert_eq!(said(sources), [format!("error: docs/reference/behaviours.md:3: {what}")]);
    }

    #[test]
    fn a_test_without_a_row_is_named() {
        let sources =
            "#[test]\nfn t1_a() {}\n#[test]\nfn d1_c() {}\n#[test]\nfn t2_b() {}\n#[test]\nfn t3_x() {}\n";
        assert_eq!(
            said(sources),
            [
                "error: crates/timer/tests/a.rs:6: tests T2, which line 2 of docs/reference/behaviours.md says does not apply",
                "error: crates/timer/tests/a.rs:8: tests T3, which docs/reference/behaviours.md does not know",
            ]
        );
    }
}
