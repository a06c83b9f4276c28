//! The files of a crate, and the arrows between them: file to file, by the paths in their code.
//!
//! A path leads to the file that declares what it names. Names that a module imports or hands on, such as those of `lib.rs`, are followed to
//! where they come from. Code behind `#[cfg(test)]`, and files called `tests`, draw no arrow: tests may build whatever they need.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// How many times a name that is handed on is followed.
const STEPS_MAX: usize = 8;

/// The modules of a crate that are files, by their paths with slashes, and the names that each has from elsewhere.
pub(super) struct Crate {
    /// The path of each file below `src`, and its text without comments and tests.
    files: BTreeMap<String, (String, String)>,
    imported: BTreeMap<String, BTreeMap<String, String>>,
}

/// From which module to which, and the line of the first path that leads there. Both modules are files.
pub(super) type Arrows<'a> = BTreeMap<(&'a str, &'a str), usize>;

impl Crate {
    /// The crate whose sources are below this folder.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        Ok(Self::new(sources(folder)?))
    }

    pub(super) fn new(mut sources: Vec<(String, String)>) -> Self {
        let is_library = sources.iter().any(|(path, _)| path == "lib.rs");
        sources.retain(|(path, _)| !(is_of_tests(path) || is_library && path == "main.rs"));
        let file = |(path, text): (String, String)| {
            let text = without_tests(&text);
            (module(&path).join("/"), (path, text))
        };
        let files: BTreeMap<_, _> = sources.into_iter().map(file).collect();
        let names = |(name, (_, text)): (&String, &(String, String))| (name.clone(), imported(name, text));
        let imported = files.iter().map(names).collect();
        Self { files, imported }
    }

    /// The modules that are files, and the path of each file.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(name, (path, _))| (name.as_str(), path.as_str()))
    }

    /// The path of a module's file below `src`.
    pub(super) fn path(&self, module: &str) -> &str {
        &self.files[module].0
    }

    /// Which file imports which.
    pub(super) fn arrows(&self) -> Arrows<'_> {
        let mut arrows = Arrows::new();
        for (from, (_, text)) in &self.files {
            for (line, path) in paths(from, text, |first| self.is_name(from, first)) {
                for path in self.behind(path, text) {
                    if let Some(to) = self.file(&path, 0).filter(|to| to != from) {
                        arrows.entry((from.as_str(), to)).or_insert(line);
                    }
                }
            }
        }
        arrows
    }

    /// Whether a path in this module may begin with this name.
    fn is_name(&self, module: &str, first: &str) -> bool {
        self.imported[module].contains_key(first) || self.files.contains_key(&joined(module, first))
    }

    /// The path itself, or the names that a text uses of a module, if the path ends with `*`.
    fn behind(&self, path: String, text: &str) -> Vec<String> {
        let Some(module) = path.strip_suffix('*') else { return vec![path] };
        let module = module.trim_end_matches('/');
        let names = self.imported.get(module).into_iter().flatten();
        let used = names.filter(|(name, _)| has_word(text, name)).map(|(_, target)| target.clone());
        used.chain([module.to_owned()]).collect()
    }

    /// The file that declares what a path names.
    fn file(&self, path: &str, steps: usize) -> Option<&str> {
        let mut module = path;
        loop {
            if let Some((file, _)) = self.files.get_key_value(module) {
                let rest = path[module.len()..].trim_start_matches('/');
                let (first, behind) = rest.split_once('/').unwrap_or((rest, ""));
                return match self.imported[file].get(first).filter(|_| steps < STEPS_MAX) {
                    Some(target) => self.file(&joined(target, behind), steps + 1),
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
pub(super) fn is_around(around: &str, inner: &str) -> bool {
    around.is_empty()
        || inner.strip_prefix(around).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a file has nothing but tests.
fn is_of_tests(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "tests.rs")
}

/// The modules around the items of a file, from the root of its crate.
fn module(path: &str) -> Vec<&str> {
    let path = path.trim_end_matches(".rs");
    let mut module: Vec<&str> = path.split('/').collect();
    module.pop_if(|last| *last == "mod" || *last == "lib" || path == "main");
    module
}

fn joined(module: &str, name: &str) -> String {
    match (module, name) {
        ("", path) | (path, "") => path.to_owned(),
        (module, name) => format!("{module}/{name}"),
    }
}

/// The names that a module has by `use`, in whatever visibility, and the path of each.
fn imported(module: &str, text: &str) -> BTreeMap<String, String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("use ") {
        let before = text[..at].rsplit('\n').next().unwrap_or_default().trim();
        if before.is_empty() || before == "pub" || before.starts_with("pub(") && before.ends_with(')') {
            let rest = text[at + "use ".len()..].trim_start();
            let (first, _) = rest.split_once("::").unwrap_or((rest, ""));
            let (base, rest) = start(module, first, rest);
            take_paths(rest, &base, &mut found);
        }
    }
    found.into_iter().map(|(path, name)| (name, path)).collect()
}

/// The paths of a text that begin with `crate`, `super`, `self` or a name of its module, with slashes, and the lines that they begin in.
/// Lists in braces are taken apart.
fn paths(module: &str, text: &str, is_name: impl Fn(&str) -> bool) -> Vec<(usize, String)> {
    let (mut found, mut from) = (Vec::new(), 0);
    let (mut line, mut counted) = (1, 0);
    while let Some(colons) = text[from..].find("::").map(|at| from + at) {
        let before = &text[from..colons];
        let first = &before[before.rfind(|c: char| !is_of_name(c)).map_or(0, |at| at + 1)..];
        let at = colons - first.len();
        // Behind a quotation mark it is text, such as a line that a chore writes.
        let is_first = !first.is_empty() && !text[..at].ends_with([':', '"']);
        if is_first && (matches!(first, "crate" | "super" | "self") || is_name(first)) {
            let (base, rest) = start(module, first, &text[at..]);
            line += text[counted..at].matches('\n').count();
            counted = at;
            let mut paths = Vec::new();
            let left = take_paths(rest, &base, &mut paths);
            found.extend(paths.into_iter().map(|(path, _)| (line, path)));
            from = (text.len() - left.len()).max(colons + 2);
        } else {
            // A list in braces behind another name, such as that of a crate, has no path of ours.
            let rest = &text[colons + 2..];
            let left = if is_first { take_paths(rest, "", &mut Vec::new()) } else { rest };
            from = text.len() - left.len();
        }
    }
    found
}

/// The module that a path begins in, and the rest of the path.
fn start<'t>(module: &str, first: &str, path: &'t str) -> (String, &'t str) {
    let mut around: Vec<&str> = module.split('/').filter(|name| !name.is_empty()).collect();
    let mut rest = path;
    match first {
        "crate" => (around, rest) = (Vec::new(), &path["crate::".len()..]),
        "self" => rest = &path["self::".len()..],
        _ => {}
    }
    while let Some(after) = rest.strip_prefix("super::") {
        around.pop();
        rest = after;
    }
    (around.join("/"), rest)
}

/// Takes the paths off the front of a text, each below `base` and with the name that it gets. The rest of the text is behind them.
fn take_paths<'t>(text: &'t str, base: &str, found: &mut Vec<(String, String)>) -> &'t str {
    let text = text.trim_start();
    if let Some(mut list) = text.strip_prefix('{') {
        loop {
            list = take_paths(list, base, found).trim_start();
            match list.strip_prefix(',') {
                Some(more) if more.trim_start().starts_with('}') => list = more.trim_start(),
                Some(more) => {
                    list = more;
                    continue;
                }
                None => {}
            }
            return list.strip_prefix('}').unwrap_or(list);
        }
    }
    let (name, rest) = match text.strip_prefix('*') {
        Some(rest) => ("*", rest),
        None => text.split_at(text.find(|c| !is_of_name(c)).unwrap_or(text.len())),
    };
    let path = if name == "self" { base.to_owned() } else { joined(base, name) };
    if let Some(rest) = rest.strip_prefix("::").filter(|rest| !rest.starts_with('<')) {
        return take_paths(rest, &path, found);
    }
    // `use crate::a as b`
    if let Some(other) = rest.trim_start().strip_prefix("as ") {
        let (name, rest) = other.split_at(other.find(|c| !is_of_name(c)).unwrap_or(other.len()));
        found.push((path, name.to_owned()));
        return rest;
    }
    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
    found.push((path, name));
    rest
}

pub(crate) fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_of_name) && !text[at + word.len()..].starts_with(is_of_name))
}

/// The text with empty lines in the place of comments and of items behind `#[cfg(test)]`.
pub(crate) fn without_tests(text: &str) -> String {
    let (mut kept, mut skips_to) = (String::with_capacity(text.len()), None);
    for line in text.lines() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let begins = line.trim_start();
        match &skips_to {
            // The item itself: its attributes first, and then to the brace at its own indentation, if it has one.
            Some((at, false)) if !begins.starts_with("#[") => {
                skips_to = line.trim_end().ends_with('{').then(|| (String::clone(at), true));
            }
            Some((at, true)) if line == format!("{at}}}") => skips_to = None,
            Some(_) => {}
            None if begins.starts_with("#[cfg(test)]") => skips_to = Some((indent.to_owned(), false)),
            None if begins.starts_with("//") => {}
            None => kept.push_str(line),
        }
        kept.push('\n');
    }
    kept
}

/// All sources below a folder, by their paths from it.
fn sources(folder: &Path) -> Result<Vec<(String, String)>> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("read {}", next.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
                let name = path.strip_prefix(folder).expect("it is below").to_string_lossy().into_owned();
                found.push((name, text));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A crate of files that are given as texts.
#[cfg(test)]
pub(super) fn of_texts(files: &[(&str, &str)]) -> Crate {
    Crate::new(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows_of(files: &[(&str, &str)]) -> Vec<String> {
        let arrows = of_texts(files);
        arrows.arrows().iter().map(|((from, to), line)| format!("{from}:{line} {to}")).collect()
    }

    #[test]
    fn lists_in_braces_and_paths_over_super_are_followed() {
        let text = "use crate::{\n    access::{self, tokens::Tokens},\n    events as happenings, doors::{http::x, plans},\n};\nfn f() { super::super::access::g::<T>(); }\n";
        let found: Vec<String> =
            paths("doors/http", text, |_| false).into_iter().map(|(_, path)| path).collect();
        assert_eq!(
            found,
            ["access", "access/tokens/Tokens", "events", "doors/http/x", "doors/plans", "access/g"]
        );
    }

    #[test]
    fn names_are_followed_through_the_root_through_parents_and_through_other_names() {
        let files = [
            ("lib.rs", "mod a;\npub use a::{A as Letter, deep::D};"),
            ("a.rs", "use crate::b::B;\npub(crate) mod deep;"),
            ("a/deep.rs", "use super::B;"),
            ("b.rs", ""),
            ("c.rs", "use crate::Letter;"),
            ("d.rs", "fn f() -> crate::D {}"),
        ];
        let found = arrows_of(&files);
        assert_eq!(found, [":2 a", ":2 a/deep", "a:1 b", "a/deep:1 b", "c:1 a", "d:1 a/deep"]);
    }

    #[test]
    fn paths_that_begin_with_a_name_of_the_module_count() {
        let calls = ("calls.rs", "mod put;\npub use put::Put;");
        let found =
            arrows_of(&[calls, ("calls/put.rs", ""), ("a.rs", "use crate::calls;\ncalls::Put::new()")]);
        assert_eq!(found, ["a:1 calls", "a:2 calls/put", "calls:2 calls/put"]);
        let foreign = ("a.rs", "mod fmt;\nuse std::{fmt::Display, mem};\nfn f() { std::fmt::g() }");
        assert!(arrows_of(&[foreign, ("a/fmt.rs", "")]).is_empty(), "another crate's module");
    }

    #[test]
    fn paths_in_the_body_of_a_macro_count_and_text_does_not() {
        let text = "macro_rules! m {\n    () => { $crate::b::f() };\n}";
        assert_eq!(arrows_of(&[("a.rs", text), ("b.rs", "")]), ["a:2 b"]);
        assert!(arrows_of(&[("a.rs", "const LINE: &str = \"crate::b::f()\";"), ("b.rs", "")]).is_empty());
    }

    #[test]
    fn a_star_counts_for_the_names_that_are_used() {
        let root = ("lib.rs", "pub use a::A;\npub use b::B;");
        let star = ("c.rs", "use crate::*;\nfn f(_: B, _: Alpha) {}");
        assert_eq!(arrows_of(&[root, ("a.rs", ""), ("b.rs", ""), star]), [":1 a", ":2 b", "c:1 ", "c:1 b"]);
    }

    #[test]
    fn the_root_of_a_program_is_no_module_and_beside_a_library_it_is_left_out() {
        let files = [("main.rs", "mod a;\nuse a::A;"), ("a.rs", "use crate::b::B;"), ("b.rs", "")];
        assert_eq!(arrows_of(&files), [":2 a", "a:1 b"]);
        assert_eq!(arrows_of(&[&[("lib.rs", "")], &files[..]].concat()), ["a:1 b"]);
    }

    #[test]
    fn tests_draw_nothing_and_code_behind_them_is_read() {
        let text = "#[cfg(test)]\nmod early {\n    use crate::b;\n}\n\n#[cfg(test)]\n#[expect(dead_code)]\nmod more;\nuse crate::c;\n";
        let tests = [("tests.rs", "use crate::b;"), ("a/tests/x.rs", "use crate::b;")];
        let files = [&[("a.rs", text), ("b.rs", ""), ("c.rs", "// crate::b::B")], &tests[..]].concat();
        assert_eq!(arrows_of(&files), ["a:9 c"]);
    }
}
