//! The page that lists the behaviours, in tables.

use std::collections::BTreeMap;

use super::id::Id;
use crate::finding::Finding;

/// The page.
pub(super) const PAGE: &str = "docs/reference/behaviours.md";
/// How the sentence of a line begins that Tickwheel has no use for.
const NOT_APPLICABLE: &str = "not applicable: ";

/// A row of the page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Row {
    /// Its line on the page.
    pub(super) line: usize,
    /// Whether there is something to test.
    pub(super) applies: bool,
}

/// Reads the rows of all tables on the page. What is wrong with a row is a finding.
pub(super) fn read(page: &str, findings: &mut Vec<Finding>) -> BTreeMap<Id, Row> {
    let mut rows = BTreeMap::new();
    for (line, text) in (1..).zip(page.lines()) {
        let mut wrong = |what: String| findings.push(Finding::new(format!("{PAGE}:{line}"), what));
        let Some(inner) = text.trim().strip_prefix('|').and_then(|text| text.strip_suffix('|')) else {
            continue;
        };
        let cells: Vec<&str> = inner.split('|').map(str::trim).collect();
        let first = cells.first().copied().unwrap_or_default();
        let is_ruler = cells.iter().all(|cell| cell.bytes().all(|byte| b"-:".contains(&byte)));
        if is_ruler || first == "id" {
            continue;
        }
        let Some(id) = Id::on_page(first) else {
            wrong(format!("`{first}` is no id; a row begins with one such as T15"));
            continue;
        };
        let sentence = cells.get(1).copied().unwrap_or_default();
        if sentence.is_empty() {
            wrong(format!("{id} has no sentence"));
        }
        if let Some(before) = rows.get(&id).map(|row: &Row| row.line) {
            wrong(format!("{id} is in line {before}, too"));
            continue;
        }
        rows.insert(id, Row { line, applies: !sentence.starts_with(NOT_APPLICABLE) });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(page: &str) -> (Vec<(String, usize, bool)>, Vec<String>) {
        let mut findings = Vec::new();
        let rows = read(page, &mut findings);
        let rows = rows.into_iter().map(|(id, row)| (id.to_string(), row.line, row.applies)).collect();
        (rows, findings.iter().map(Finding::to_string).collect())
    }

    #[test]
    fn rows_are_those_of_all_tables() {
        let page = "# B\n\n| id | shown | beside |\n|---|:-:|---|\n| T2 | a | Netty: b |\n| T10 | not applicable: c | |\n\ntext | T3 | x\n\n| id | shown |\n|---|---|\n| D1 | d |\n";
        let expected = [("D1", 12, true), ("T2", 5, true), ("T10", 6, false)]
            .map(|(id, line, applies)| (id.to_owned(), line, applies));
        assert_eq!(rows(page), (expected.to_vec(), Vec::new()));
    }

    #[test]
    fn a_bad_row_is_named_with_its_line() {
        let (read, findings) = rows("| T1 | a |\n| one | b |\n| T1 | c |\n| T2 | |\n");
        assert_eq!(read.len(), 2);
        assert_eq!(
            findings,
            [
                "error: docs/reference/behaviours.md:2: `one` is no id; a row begins with one such as T15",
                "error: docs/reference/behaviours.md:3: T1 is in line 1, too",
                "error: docs/reference/behaviours.md:4: T2 has no sentence",
            ]
        );
    }
}
