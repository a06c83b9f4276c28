//! How a source file looks.

use crate::finding::Finding;
use crate::root::Text;

/// Beyond this a second noun hides in a file.
const LINES_NORMAL: usize = 500;
/// A longer file is too long to be read.
const LINES_MAX: usize = 800;
/// How logic begins at the left margin.
const LOGIC: [&str; 6] = ["fn ", "pub fn ", "pub(crate) fn ", "const fn ", "impl ", "impl<"];

/// The rules for one file of Rust.
pub(super) fn check(text: &Text, findings: &mut Vec<Finding>) {
    if !text.path.ends_with(".rs") {
        return;
    }
    let lines = text.text.lines().count();
    if lines > LINES_MAX {
        let what = format!("{lines} lines; {LINES_MAX} is the most, split it at its second noun");
        findings.push(Finding::new(&text.path, what));
    } else if lines > LINES_NORMAL {
        findings.push(Finding::mild(
            &text.path,
            format!("{lines} lines; more than {LINES_NORMAL} wants a reason"),
        ));
    }
    // A module that several test programs share can only be a mod.rs.
    let lists = text.path.ends_with("/mod.rs") || text.path.ends_with("/lib.rs");
    let lists = lists && !text.path.contains("/tests/");
    let mut begins_statement = true;
    for (number, line) in (1..).zip(text.text.lines()) {
        let place = || format!("{}:{number}", text.path);
        if lists && LOGIC.iter().any(|start| line.starts_with(start)) {
            findings
                .push(Finding::new(place(), "logic in a file that only lists; give it a file with a name"));
        }
        let line = line.trim();
        if begins_statement && line.starts_with("matches!(") && line.ends_with(");") {
            let what = "a bare matches! asserts nothing; write assert!(matches!(..))";
            findings.push(Finding::new(place(), what));
        }
        begins_statement = line.is_empty() || line.ends_with([';', '{', '}']) || line.starts_with("//");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(path: &str, text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        check(&Text { path: path.to_owned(), text: text.to_owned() }, &mut findings);
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn long_files_are_named_and_very_long_ones_refused() {
        assert_eq!(said("a.rs", &"x\n".repeat(500)), Vec::<String>::new());
        assert_eq!(said("a.rs", &"x\n".repeat(501)), ["note: a.rs: 501 lines; more than 500 wants a reason"]);
        assert!(said("a.rs", &"x\n".repeat(801))[0].starts_with("error: a.rs: 801 lines"));
        assert_eq!(said("a.md", &"x\n".repeat(2_000)), Vec::<String>::new());
    }

    #[test]
    fn files_that_list_hold_no_logic() {
        assert!(said("a/src/lib.rs", "mod b;\nfn f() {}\n")[0].starts_with("error: a/src/lib.rs:2: logic"));
        assert_eq!(said("a/src/lib.rs", "//! ```\n//! fn f() {}\n//! ```\nmod b;\n"), Vec::<String>::new());
        assert_eq!(said("a/src/b.rs", "fn f() {}\n"), Vec::<String>::new());
        assert_eq!(said("a/tests/b/mod.rs", "fn f() {}\n"), Vec::<String>::new());
    }

    #[test]
    fn a_bare_matches_is_refused() {
        assert_eq!(said("a.rs", "    matches!(a, B);\n").len(), 1);
        assert_eq!(said("a.rs", "    matches!(a, B)\n    assert!(matches!(a, B));\n"), Vec::<String>::new());
        assert_eq!(said("a.rs", "    let is =\n        matches!(a, B);\n"), Vec::<String>::new());
    }
}
