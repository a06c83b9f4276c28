//! Who imports whom within a crate: the paths of its files below `crate::` and `super::`, held against a drawing of its rooms.
//!
//! A room is a file or a folder below `src`. A path belongs to the longest room that is drawn, so `doors/http` can be a room beside `doors`.
//! Code behind `#[cfg(test)]`, and files called `tests`, draw no arrow: tests may build whatever they need.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};

use super::drawing::{Drawing, PAGE};
use crate::finding::Finding;

/// The crates whose rooms are drawn: the fence of the block, and the folder.
const DRAWN: [(&str, &str); 1] = [("```rooms server", "crates/server/src")];

/// Everything in the drawn crates that the drawings do not allow, and how many files were read.
pub(super) fn check(root: &Path, page: &str) -> Result<(usize, Vec<Finding>)> {
    let (mut files, mut findings) = (0, Vec::new());
    for (fence, folder) in DRAWN {
        let drawing = Drawing::read(page, fence).map_err(|why| anyhow!(why))?;
        let mut unused = arrows(&drawing);
        for (path, text) in sources(&root.join(folder))? {
            files += 1;
            if is_of_tests(&path) {
                continue;
            }
            let Some(from) = room(&drawing, &path) else {
                if path != "lib.rs" {
                    let what = format!("is in no room; add it to the block `{}` of {PAGE}", &fence[3..]);
                    findings.push(Finding::new(format!("{folder}/{path}"), what));
                }
                continue;
            };
            for (line, import) in imports(&path, &text) {
                let Some(to) = room(&drawing, &import) else { continue };
                unused.remove(&(from, to));
                let allowed = from == to || drawing.product[from].contains(to);
                if !allowed {
                    let place = format!("{folder}/{path}:{line}");
                    findings
                        .push(Finding::new(place, format!("{from} -> {to} is not in the drawing ({PAGE})")));
                }
            }
        }
        for (from, to) in unused {
            findings.push(Finding::mild(folder, format!("{from} -> {to} is drawn in {PAGE} and not used")));
        }
    }
    Ok((files, findings))
}

fn arrows(drawing: &Drawing) -> BTreeSet<(&str, &str)> {
    drawing
        .product
        .iter()
        .flat_map(|(from, to)| to.iter().map(move |to| (from.as_str(), to.as_str())))
        .collect()
}

/// Whether a file has nothing but tests.
pub(super) fn is_of_tests(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// The room of a file or of an import, both written with slashes.
fn room<'a>(drawing: &'a Drawing, path: &str) -> Option<&'a str> {
    let is_in = |room: &&String| {
        path.strip_prefix(room.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']))
    };
    drawing.product.keys().filter(is_in).max_by_key(|room| room.len()).map(String::as_str)
}

/// The paths of a file below `crate::`, `super::` and `self::`, with slashes, and the lines that they begin in. Lists in braces are taken apart.
pub(super) fn imports(path: &str, text: &str) -> Vec<(usize, String)> {
    let (text, mut found) = (without_tests(text), Vec::new());
    let mut from = 0;
    while let Some((at, root)) = next_root(&text, from) {
        let mut rest = &text[at + root.len()..];
        let mut module = if root == "crate::" { Vec::new() } else { module(path) };
        if root == "super::" {
            module.pop();
        }
        while let Some(after) = rest.strip_prefix("super::") {
            module.pop();
            rest = after;
        }
        let line = 1 + text[..at].matches('\n').count();
        let mut paths = Vec::new();
        let left = take_paths(rest, &module.join("/"), &mut paths);
        found.extend(paths.into_iter().map(|path| (line, path)));
        from = text.len() - left.len();
    }
    found
}

/// The place of the next `crate::`, `super::` or `self::` that begins a path.
fn next_root(text: &str, from: usize) -> Option<(usize, &'static str)> {
    let next = |root: &'static str| {
        let begins =
            |at: &usize| !text[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
        let mut places = text[from..].match_indices(root).map(|(at, _)| from + at);
        places.find(begins).map(|at| (at, root))
    };
    [next("crate::"), next("super::"), next("self::")].into_iter().flatten().min()
}

/// The paths of the items that a file hands on by `pub use`, with slashes, in whatever visibility.
pub(super) fn re_exports(path: &str, text: &str) -> Vec<String> {
    let (text, mut found) = (without_tests(text), Vec::new());
    for (at, _) in text.match_indices("pub") {
        let rest = &text[at + "pub".len()..];
        let scope = rest.strip_prefix('(').and_then(|inside| inside.find(')')).map_or(0, |end| end + 2);
        let Some(mut rest) = rest[scope..].strip_prefix(" use ") else { continue };
        let mut module = module(path);
        if let Some(after) = rest.strip_prefix("crate::") {
            (module, rest) = (Vec::new(), after);
        }
        rest = rest.strip_prefix("self::").unwrap_or(rest);
        while let Some(after) = rest.strip_prefix("super::") {
            module.pop();
            rest = after;
        }
        take_paths(rest, &module.join("/"), &mut found);
    }
    found
}

/// The modules around the items of a file, from the root of its crate.
pub(super) fn module(path: &str) -> Vec<&str> {
    let path = path.trim_end_matches(".rs");
    let mut module: Vec<&str> = path.split('/').collect();
    module.pop_if(|last| *last == "mod" || *last == "lib");
    module
}

/// Takes the paths off the front of a text, each below `base`. The rest of the text is behind them.
fn take_paths<'t>(text: &'t str, base: &str, found: &mut Vec<String>) -> &'t str {
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
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let path = match (base, name) {
        (_, "self" | "") => base.to_owned(),
        ("", name) => name.to_owned(),
        (base, name) => format!("{base}/{name}"),
    };
    if let Some(rest) = rest.strip_prefix("::").filter(|rest| !rest.starts_with('<')) {
        return take_paths(rest, &path, found);
    }
    found.push(path);
    // `use crate::a as b`
    let other_name = rest.trim_start().strip_prefix("as ").map(|rest| rest.trim_start());
    other_name.map_or(rest, |rest| rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_'))
}

/// The text with empty lines in the place of comments and of items behind `#[cfg(test)]`.
fn without_tests(text: &str) -> String {
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
pub(super) fn sources(folder: &Path) -> Result<Vec<(String, String)>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: &str = "```rooms server\nevents -> nothing\naccess -> events\ndoors -> access, doors/http\ndoors/http -> access\n```\n";

    fn checked(files: &[(&str, &str)]) -> Vec<String> {
        let root = std::env::temp_dir().join(format!(
            "rooms-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let folder = root.join("crates/server/src");
        for (path, text) in files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        let found = check(&root, BLOCK).expect("read").1;
        fs::remove_dir_all(root).expect("removed");
        found.iter().filter(|finding| !finding.mild).map(Finding::to_string).collect()
    }

    #[test]
    fn an_arrow_that_is_not_drawn_is_named_with_its_line() {
        let text = "//! See crate::doors.\nuse crate::events;\n\nfn f() { crate::doors::http::g(); }\n";
        assert_eq!(
            checked(&[("access/tokens.rs", text), ("lib.rs", "mod access;")]),
            [
                "error: crates/server/src/access/tokens.rs:4: access -> doors/http is not in the drawing (ARCHITECTURE.md)"
            ]
        );
    }

    #[test]
    fn a_folder_within_a_folder_is_a_room_of_its_own_and_tests_draw_nothing() {
        let file = (
            "doors/http/door.rs",
            "use crate::access::tokens::Tokens;\n#[cfg(test)]\nmod tests {\n    use crate::doors;\n}\n",
        );
        assert_eq!(checked(&[file, ("doors/mod.rs", "use crate::doors::http::door;")]), Vec::<String>::new());
        let back = ("doors/http/door.rs", "use crate::doors::plans;\n");
        assert_eq!(checked(&[back]).len(), 1);
    }

    #[test]
    fn lists_in_braces_and_paths_over_super_are_followed() {
        let text = "use crate::{\n    access::{self, tokens::Tokens},\n    events as happenings, doors::{http::x, plans},\n};\nfn f() { super::super::access::g::<T>(); }\n";
        let found: Vec<String> =
            imports("doors/http/mod.rs", text).into_iter().map(|(_, path)| path).collect();
        assert_eq!(
            found,
            ["access", "access/tokens/Tokens", "events", "doors/http/x", "doors/plans", "access/g"]
        );
        let back = ("access/tokens.rs", "use crate::{events, doors::plans};\n");
        assert_eq!(checked(&[back]).len(), 1);
        let up = ("doors/http/door.rs", "use super::super::plans;\n");
        assert_eq!(checked(&[up]).len(), 1);
        assert!(checked(&[("doors/http/door.rs", "use super::door;\n")]).is_empty());
    }

    #[test]
    fn code_behind_a_module_of_tests_is_read() {
        let text = "#[cfg(test)]\nmod early {\n    use crate::doors;\n}\n\n#[cfg(test)]\n#[expect(dead_code)]\nmod more;\nuse crate::doors;\n";
        assert_eq!(checked(&[("access/tokens.rs", text)]).len(), 1);
    }

    #[test]
    fn a_file_that_is_in_no_room_is_named() {
        assert!(checked(&[("extra.rs", "")])[0].contains("crates/server/src/extra.rs: is in no room"));
    }
}
