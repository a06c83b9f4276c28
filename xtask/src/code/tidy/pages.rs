//! The pages: what must stand in them, and that what they name is there.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::root::{Text, from_root};

/// The commands that the first page promises to work as they are in a fresh clone.
const COMMANDS: [&str; 2] = ["cargo run --release -- demo", "cargo test --workspace"];
/// Pages that must be there.
const PAGES: [&str; 11] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "GLOSSARY.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "docs/reference/behaviours.md",
    "docs/explanation/format.md",
    "docs/how-to/porting.md",
    "docs/reference/state-machine.md",
    "docs/adr/README.md",
];

/// The rules about pages, for all texts together.
pub(super) fn check(texts: &[Text]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let there: BTreeSet<&str> = texts.iter().map(|text| text.path.as_str()).collect();
    for page in PAGES.iter().filter(|page| !there.contains(*page)) {
        findings.push(Finding::new(*page, "is missing"));
    }
    for text in texts {
        if text.path == "README.md" {
            for command in COMMANDS.iter().filter(|command| !has_line(&text.text, command)) {
                findings.push(Finding::new(&text.path, format!("has no line `{command}`")));
            }
        }
        if text.path.ends_with(".md") {
            dead_links(text, &there, &mut findings);
        }
        strange_pages(text, &there, &mut findings);
        strange_scripts(text, &there, &mut findings);
    }
    findings
}

fn has_line(text: &str, wanted: &str) -> bool {
    text.lines().any(|line| line.trim() == wanted)
}

/// Links of a page that lead to no file of ours.
fn dead_links(text: &Text, there: &BTreeSet<&str>, findings: &mut Vec<Finding>) {
    for (number, line) in (1..).zip(text.text.lines()) {
        for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = link.split('#').next().unwrap_or_default();
            if path.is_empty() || path.contains("://") {
                continue;
            }
            let path = from_root(&text.path, path);
            if !is_there(&path, there) {
                findings.push(Finding::new(
                    format!("{}:{number}", text.path),
                    format!("links to {path}, which is not there"),
                ));
            }
        }
    }
}

/// Whether the path is one of our files, or a folder of them.
fn is_there(path: &str, there: &BTreeSet<&str>) -> bool {
    let folder = format!("{path}/");
    there.contains(path) || there.iter().any(|file| file.starts_with(&folder))
}

/// Names of pages, in prose or comments, that are no page of ours: a reader who follows them finds nothing.
fn strange_pages(text: &Text, there: &BTreeSet<&str>, findings: &mut Vec<Finding>) {
    if text.path.starts_with("xtask/") {
        return;
    }
    let names: BTreeSet<&str> = there.iter().filter_map(|path| path.rsplit('/').next()).collect();
    for (number, line) in (1..).zip(text.text.lines()) {
        let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c)));
        for word in words.map(|word| word.trim_end_matches('.')) {
            let capitals = word.strip_suffix(".md").is_some_and(|name| {
                !name.is_empty()
                    && name.bytes().all(|byte| byte.is_ascii_uppercase() || b"_-".contains(&byte))
            });
            if capitals && !names.contains(word) {
                findings.push(Finding::new(
                    format!("{}:{number}", text.path),
                    format!("speaks of {word}, which is not here"),
                ));
            }
        }
    }
}

/// Names of scripts that are not there. The changelog may speak of a script that was there once.
fn strange_scripts(text: &Text, there: &BTreeSet<&str>, findings: &mut Vec<Finding>) {
    if text.path.starts_with("xtask/") || text.path == "CHANGELOG.md" {
        return;
    }
    let is_path = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    for (number, line) in (1..).zip(text.text.lines()) {
        let words = line.split(|c: char| !is_path(c)).map(|word| word.trim_end_matches(['.', '/']));
        for script in words.filter(|word| word.starts_with("scripts/") && !is_there(word, there)) {
            findings.push(Finding::new(
                format!("{}:{number}", text.path),
                format!("speaks of {script}, which is not here"),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(texts: &[(&str, &str)]) -> Vec<String> {
        let mut texts: Vec<Text> =
            texts.iter().map(|&(path, text)| Text { path: path.to_owned(), text: text.to_owned() }).collect();
        for page in PAGES {
            if !texts.iter().any(|text| text.path == page) {
                texts.push(Text { path: page.to_owned(), text: COMMANDS.join("\n") });
            }
        }
        check(&texts).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn the_first_page_has_both_commands_as_they_are() {
        assert_eq!(said(&[]), Vec::<String>::new());
        let found =
            said(&[("README.md", "    cargo run --release -- demo --fast\ncargo test --workspace\n")]);
        assert_eq!(found, ["error: README.md: has no line `cargo run --release -- demo`"]);
    }

    #[test]
    fn a_page_that_must_be_there_is_missed() {
        let texts = [Text { path: "README.md".to_owned(), text: COMMANDS.join("\n") }];
        assert_eq!(check(&texts).len(), PAGES.len() - 1);
    }

    #[test]
    fn links_lead_to_files_or_folders() {
        let good =
            "[a](../explanation/format.md#frames) [b](0001-x.md) [c](https://docs.rs) [d](#here) [e](../)";
        assert_eq!(said(&[("docs/adr/a.md", good), ("docs/adr/0001-x.md", "")]), Vec::<String>::new());
        let found = said(&[("docs/adr/a.md", "x\nsee [a](../nothing.md)")]);
        assert_eq!(found, ["error: docs/adr/a.md:2: links to docs/nothing.md, which is not there"]);
    }

    #[test]
    fn pages_that_are_not_here_are_not_spoken_of() {
        assert_eq!(said(&[("a.rs", "// see ARCHITECTURE.md.\n// and notes.md")]), Vec::<String>::new());
        let found = said(&[("a.rs", "// see PLAN.md.")]);
        assert_eq!(found, ["error: a.rs:1: speaks of PLAN.md, which is not here"]);
    }

    #[test]
    fn scripts_that_are_not_here_are_not_spoken_of() {
        let good =
            "Run `scripts/sim 7`, or scripts/sim. The folders scripts/ and `scripts/measure/` are there.";
        assert_eq!(
            said(&[("a.md", good), ("scripts/sim", ""), ("scripts/measure/memory", "")]),
            Vec::<String>::new()
        );
        let found = said(&[("a.rs", "x\n// See `scripts/measure/gone`.")]);
        assert_eq!(found, ["error: a.rs:2: speaks of scripts/measure/gone, which is not here"]);
    }
}
