//! Where the rules about words hold: everywhere but in a short list.

use super::{plain, prose, retired};
use crate::finding::Finding;
use crate::root::Text;

/// Folders that are not rewritten yet. A folder leaves when it is clean, and none joins.
const LATER: &[&str] = &["bench", "fuzz"];
/// Files that name the words which no other file may have.
const LISTS: &[&str] = &["GLOSSARY.md", "xtask/src/code/tidy/retired.rs", "xtask/src/code/tidy/words.rs"];

/// The rules about words for one file.
pub(super) fn check(text: &Text, findings: &mut Vec<Finding>) {
    check_outside(&[LATER, LISTS].concat(), text, findings);
}

fn check_outside(exempt: &[&str], text: &Text, findings: &mut Vec<Finding>) {
    if is_in(exempt, &text.path) {
        return;
    }
    for paragraph in prose::paragraphs(text) {
        plain::check(&text.path, &paragraph, findings);
        retired::check(&text.path, &paragraph, findings);
    }
    retired::check_names(text, findings);
}

/// Whether a file is one of these, or below one of them.
fn is_in(places: &[&str], path: &str) -> bool {
    let below =
        |place: &&str| path.strip_prefix(*place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    places.iter().any(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_hold_everywhere_but_in_the_list() {
        let said = |path: &str| {
            let text =
                Text { path: path.to_owned(), text: "// It waits in the gate.\nstruct Desk;\n".to_owned() };
            let mut findings = Vec::new();
            check_outside(&["crates/a", "b.rs"], &text, &mut findings);
            findings.len()
        };
        assert_eq!(["crates/a/src/lib.rs", "b.rs"].map(said), [0, 0]);
        assert_eq!(["crates/ab/src/lib.rs", "c/b.rs"].map(said), [3, 3]);
    }
}
