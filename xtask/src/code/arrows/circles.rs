//! Circles of imports within a crate: files that reach each other by the paths in their code.
//!
//! A path of a file to a module around it does not count, so that a child may use what its parent declares.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Result, anyhow};

use super::drawing::{PAGE, block};
use super::manifest::Package;
use super::sources::{Arrows, Crate, is_around};
use crate::finding::Finding;

const FENCE: &str = "```circles";

/// A circle that the page allows.
struct Allowed {
    folder: String,
    files: BTreeSet<String>,
}

/// The circles of each crate that the page does not allow, and how many files were read.
pub(super) fn check(root: &Path, page: &str, packages: &[Package]) -> Result<(usize, Vec<Finding>)> {
    let (mut files, mut found) = (0, Vec::new());
    for package in packages {
        let folder = package.sources();
        if root.join(&folder).is_dir() {
            let sources = Crate::read(&root.join(&folder))?;
            files += sources.files().count();
            found.extend(circles(&sources.arrows()).into_iter().map(|circle| (folder.clone(), circle)));
        }
    }
    Ok((files, compare(&allowed(page).map_err(|why| anyhow!(why))?, &found)))
}

/// Reads the block of allowed circles. A line is `folder: file, file   # reason`; a file is written without `.rs`.
fn allowed(page: &str) -> Result<Vec<Allowed>, String> {
    let entry = |line: &str| {
        let (entry, reason) = line.split_once('#').unwrap_or((line, ""));
        if reason.trim().is_empty() {
            return Err(format!(
                "{PAGE}: the circle `{line}` has no reason; write `folder: file, file   # reason`"
            ));
        }
        let (folder, files) = entry
            .split_once(':')
            .ok_or_else(|| format!("{PAGE}: `{line}` is no circle; write `folder: file, file   # reason`"))?;
        let files = files.split(',').map(|file| file.trim().to_owned()).collect();
        Ok(Allowed { folder: folder.trim().to_owned(), files })
    };
    block(page, FENCE)?.map(entry).collect()
}

/// The circles that are not allowed, and the allowed ones that are not there.
fn compare(allowed: &[Allowed], found: &[(String, BTreeSet<String>)]) -> Vec<Finding> {
    let covers = |entry: &Allowed, (folder, circle): &(String, BTreeSet<String>)| {
        entry.folder == *folder && circle.is_subset(&entry.files)
    };
    let mut findings = Vec::new();
    for circle in found.iter().filter(|circle| !allowed.iter().any(|entry| covers(entry, circle))) {
        let what = format!("import each other in a circle: {}", listed(&circle.1));
        findings.push(Finding::new(circle.0.clone(), what));
    }
    for entry in allowed {
        let of_folder = found.iter().filter(|(folder, _)| *folder == entry.folder).map(|(_, circle)| circle);
        let needed: BTreeSet<&String> =
            of_folder.filter(|circle| !circle.is_disjoint(&entry.files)).flatten().collect();
        let left: BTreeSet<String> =
            entry.files.iter().filter(|file| !needed.contains(file)).cloned().collect();
        if needed.is_empty() {
            let what =
                format!("allows a circle that {} has not: {}; delete the line", entry.folder, listed(&left));
            findings.push(Finding::new(PAGE, what));
        } else if !left.is_empty() {
            let what =
                format!("names files in a circle of {} that are in none: {}", entry.folder, listed(&left));
            findings.push(Finding::mild(PAGE, what));
        }
    }
    findings
}

fn listed(files: &BTreeSet<String>) -> String {
    files.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// The files that reach each other, of all that do.
fn circles(arrows: &Arrows<'_>) -> Vec<BTreeSet<String>> {
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in arrows.keys().filter(|(from, to)| !is_around(to, from)) {
        next.entry(from).or_default().insert(to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        next.keys().map(|from| (*from, all_behind(&next, from))).collect();
    let returns = |from: &str, to: &str| reached.get(to).is_some_and(|behind| behind.contains(from));
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for (from, behind) in &reached {
        let is_new = !found.iter().any(|circle| circle.contains(*from));
        if is_new && behind.contains(from) {
            found.push(behind.iter().filter(|to| returns(from, to)).map(|to| (*to).to_owned()).collect());
        }
    }
    found
}

/// All files that can be reached from this one.
fn all_behind<'a>(arrows: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &str) -> BTreeSet<&'a str> {
    let (mut found, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(next) = left.pop() {
        for to in arrows.get(next).into_iter().flatten() {
            if found.insert(*to) {
                left.push(to);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::arrows::sources::of_texts;

    fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
        circles(&of_texts(files).arrows()).iter().map(listed).collect()
    }

    #[test]
    fn files_that_reach_each_other_are_one_circle() {
        let found = circles_of(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\npub use a::A;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "use crate::c::C;"),
            ("c.rs", "fn f() { super::a::g() }"),
            ("d.rs", "use crate::a::A;"),
        ]);
        assert_eq!(found, ["a, b, c"]);
    }

    #[test]
    fn names_that_are_handed_on_lead_to_the_file_that_declares_them() {
        let calls = ("calls/mod.rs", "mod put;\nmod get;\npub use self::{get::Get, put::Put};");
        let of_get = ("calls/get.rs", "use crate::name::Name;");
        let sound = [calls, of_get, ("calls/put.rs", "use crate::calls::Get;"), ("name.rs", "")];
        assert!(circles_of(&sound).is_empty(), "put uses get, by the name that their module hands on");
        let round = [calls, of_get, ("calls/put.rs", ""), ("name.rs", "use crate::calls::Get;")];
        assert_eq!(circles_of(&round), ["calls/get, name"]);
        let two_steps =
            [("lib.rs", "pub(crate) use calls::Get;"), calls, of_get, ("name.rs", "use crate::Get;")];
        assert_eq!(circles_of(&two_steps), ["calls/get, name"]);
    }

    #[test]
    fn a_path_to_the_module_around_is_no_circle() {
        let parent = ("a.rs", "mod child;\nuse self::child::Child;");
        assert!(circles_of(&[parent, ("a/child.rs", "use super::Parent;")]).is_empty());
        let over_a_cousin = [parent, ("a/child.rs", "use crate::b::B;"), ("b.rs", "use crate::a::Parent;")];
        assert_eq!(circles_of(&over_a_cousin), ["a, a/child, b"]);
    }

    #[test]
    fn each_package_is_checked_without_a_line_of_its_own() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("crates/new/src");
        std::fs::create_dir_all(&folder).expect("made");
        std::fs::write(folder.join("a.rs"), "use crate::b::B;").expect("written");
        std::fs::write(folder.join("b.rs"), "use crate::a::A;").expect("written");
        let package = |folder: &str| Package {
            name: folder.to_owned(),
            manifest: format!("{folder}/Cargo.toml"),
            imports: Vec::new(),
        };
        let packages = [package("crates/new"), package("without_sources")];
        let (files, found) = check(root.path(), &format!("{FENCE}\n```\n"), &packages).expect("read");
        assert_eq!((files, found.len(), found[0].place.as_str()), (2, 1, "crates/new/src"));
    }

    fn compared(lines: &str, found: &[(&str, &[&str])]) -> Vec<String> {
        let page = format!("{FENCE}\n{lines}```\n");
        let found: Vec<_> = found
            .iter()
            .map(|(folder, files)| {
                ((*folder).to_owned(), files.iter().map(|file| (*file).to_owned()).collect())
            })
            .collect();
        compare(&allowed(&page).expect("a block"), &found).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_circle_is_allowed_in_its_crate_and_without_a_further_file() {
        let page = "x/src: a, b/c, d   # a registry\n";
        assert!(compared(page, &[("x/src", &["a", "b/c", "d"])]).is_empty());
        let wider = compared(page, &[("x/src", &["a", "b/c", "d", "e"])]);
        assert_eq!(wider, ["error: x/src: import each other in a circle: a, b/c, d, e"]);
        assert_eq!(compared(page, &[("y/src", &["a", "d"])]).len(), 2);
        let smaller = compared(page, &[("x/src", &["a", "d"])]);
        assert_eq!(
            smaller,
            ["note: ARCHITECTURE.md: names files in a circle of x/src that are in none: b/c"]
        );
    }

    #[test]
    fn an_entry_that_no_circle_needs_is_an_error() {
        let found = compared("x/src: a, b   # a registry\n", &[]);
        assert_eq!(
            found,
            ["error: ARCHITECTURE.md: allows a circle that x/src has not: a, b; delete the line"]
        );
    }

    #[test]
    fn an_entry_without_a_reason_is_refused() {
        for (line, said) in
            [("x/src: a, b", "has no reason"), ("x/src: a, b  #", "has no reason"), ("a # b", "is no circle")]
        {
            let error = allowed(&format!("{FENCE}\n{line}\n```\n")).err().expect(line);
            assert!(error.contains(said), "{line} was refused with {error}");
        }
    }
}
