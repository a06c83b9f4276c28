//! Circles of imports within a crate: files that reach each other by the paths in their code.
//!
//! A path leads to the file that declares what it names: names that a module only hands on are followed to where they come from. A look of a
//! file at a module around it does not count, so that a child may use what its parent declares.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;

use super::rooms::{imports, is_of_tests, module, re_exports, sources};
use crate::finding::Finding;

/// The crates that have no circle.
const CHECKED: [&str; 5] =
    ["bench/src", "crates/core/src", "crates/engine/src", "crates/queue/src", "crates/store/src"];

/// The files of each circle, and how many files were read.
pub(super) fn check(root: &Path) -> Result<(usize, Vec<Finding>)> {
    let (mut files, mut findings) = (0, Vec::new());
    for folder in CHECKED {
        let sources = sources(&root.join(folder))?;
        files += sources.len();
        for circle in circles(&Crate::new(&sources).arrows()) {
            let what = format!("import each other in a circle: {}", circle.join(", "));
            findings.push(Finding::new(folder.to_owned(), what));
        }
    }
    Ok((files, findings))
}

/// The modules of a crate that are files, by their paths with slashes, and the names that each hands on.
struct Crate<'a> {
    texts: BTreeMap<String, (&'a str, &'a str)>,
    handed_on: BTreeMap<(String, String), String>,
}

impl<'a> Crate<'a> {
    fn new(sources: &'a [(String, String)]) -> Self {
        let product = sources.iter().filter(|(path, _)| !is_of_tests(path));
        let texts: BTreeMap<_, _> =
            product.map(|(path, text)| (module(path).join("/"), (path.as_str(), text.as_str()))).collect();
        let mut handed_on = BTreeMap::new();
        for (name, (path, text)) in &texts {
            for target in re_exports(path, text) {
                let last = target.rsplit('/').next().unwrap_or(&target).to_owned();
                handed_on.insert((name.clone(), last), target);
            }
        }
        Self { texts, handed_on }
    }

    /// Which files each file imports, those around it left out.
    fn arrows(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let arrows_of = |name: &String, path: &str, text: &str| {
            let found = imports(path, text).into_iter().filter_map(|(_, import)| self.file(&import, 0));
            found.filter(|to| !is_around(to, name)).collect::<BTreeSet<_>>()
        };
        self.texts.iter().map(|(name, (path, text))| (name.as_str(), arrows_of(name, path, text))).collect()
    }

    /// The file that declares what a path names.
    fn file(&self, path: &str, depth: usize) -> Option<&str> {
        let mut module = path;
        loop {
            if let Some((file, _)) = self.texts.get_key_value(module) {
                let rest = path[module.len()..].trim_start_matches('/');
                let (first, behind) = rest.split_once('/').unwrap_or((rest, ""));
                let handed_on = self.handed_on.get(&(module.to_owned(), first.to_owned()));
                return match handed_on.filter(|_| depth < 8 && !first.is_empty()) {
                    Some(target) if behind.is_empty() => self.file(target, depth + 1),
                    Some(target) => self.file(&format!("{target}/{behind}"), depth + 1),
                    None => Some(file),
                };
            }
            if module.is_empty() {
                return None;
            }
            module = module.rsplit_once('/').map_or("", |(around, _)| around);
        }
    }
}

/// Whether module `around` is `inner`, or one of the modules around it.
fn is_around(around: &str, inner: &str) -> bool {
    around.is_empty()
        || inner.strip_prefix(around).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The files that reach each other, of all that do.
fn circles<'a>(arrows: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<Vec<&'a str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        arrows.keys().map(|from| (*from, all_behind(arrows, from))).collect();
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for (from, behind) in &reached {
        let circle: Vec<&str> = behind.iter().copied().filter(|to| reached[to].contains(from)).collect();
        if behind.contains(from) && circle.iter().all(|file| seen.insert(*file)) {
            found.push(circle);
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

    fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let sources: Vec<_> =
            files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let names = |circle: Vec<&str>| circle.into_iter().map(str::to_owned).collect();
        circles(&Crate::new(&sources).arrows()).into_iter().map(names).collect()
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
        assert_eq!(found, [["a", "b", "c"]]);
    }

    #[test]
    fn names_that_are_handed_on_lead_to_the_file_that_declares_them() {
        let calls = ("calls/mod.rs", "mod put;\nmod get;\npub use self::{get::Get, put::Put};");
        let of_get = ("calls/get.rs", "use crate::name::Name;");
        let sound = [calls, of_get, ("calls/put.rs", "use crate::calls::Get;"), ("name.rs", "")];
        assert!(circles_of(&sound).is_empty(), "put uses get, by the name that their module hands on");
        let round = [calls, of_get, ("calls/put.rs", ""), ("name.rs", "use crate::calls::Get;")];
        assert_eq!(circles_of(&round), [["calls/get", "name"]]);
        let two_steps =
            [("lib.rs", "pub(crate) use calls::Get;"), calls, of_get, ("name.rs", "use crate::Get;")];
        assert_eq!(circles_of(&two_steps), [["calls/get", "name"]]);
    }

    #[test]
    fn a_look_at_the_module_around_is_no_circle_and_tests_are_passed_over() {
        let parent = ("a.rs", "mod child;\nuse self::child::Child;");
        assert!(circles_of(&[parent, ("a/child.rs", "use super::Parent;")]).is_empty());
        assert!(
            circles_of(&[
                ("a.rs", "use crate::b;"),
                ("b.rs", "#[cfg(test)]\nmod tests {\n    use crate::a;\n}")
            ])
            .is_empty()
        );
        let over_a_cousin = [parent, ("a/child.rs", "use crate::b::B;"), ("b.rs", "use crate::a::Parent;")];
        assert_eq!(circles_of(&over_a_cousin), [["a", "a/child", "b"]]);
    }
}
