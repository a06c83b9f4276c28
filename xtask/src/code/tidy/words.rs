//! Where the rules about words hold already.

use super::{plain, prose, retired};
use crate::finding::Finding;
use crate::root::Text;

/// Files and folders that are rewritten. A folder joins when it is clean, and none leaves.
const CLEAN: &[&str] = &[
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "crates/api",
    "crates/cli",
    "crates/client",
    "crates/core",
    "crates/engine",
    "crates/http",
    "crates/push",
    "crates/queue",
    "crates/server",
    "crates/store",
    "crates/timer",
    "docs",
    "sim",
];

/// The rules about words for one file.
pub(super) fn check(text: &Text, findings: &mut Vec<Finding>) {
    check_in(CLEAN, text, findings);
}

fn check_in(clean: &[&str], text: &Text, findings: &mut Vec<Finding>) {
    if !is_in(clean, &text.path) {
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
    fn only_clean_folders_are_held_to_the_rules() {
        let said = |path: &str| {
            let text =
                Text { path: path.to_owned(), text: "// It waits in the gate.\nstruct Desk;\n".to_owned() };
            let mut findings = Vec::new();
            check_in(&["crates/a", "b.rs"], &text, &mut findings);
            findings.len()
        };
        assert_eq!(["crates/a/src/lib.rs", "b.rs"].map(said), [3, 3]);
        assert_eq!(["crates/ab/src/lib.rs", "c/b.rs"].map(said), [0, 0]);
    }
}
