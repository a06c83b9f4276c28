//! Who imports whom within a crate: the `crate::` paths of its files held against a drawing of its rooms.
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
            for (line, import) in imports(&text) {
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
fn is_of_tests(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// The room of a file or of an import, both written with slashes.
fn room<'a>(drawing: &'a Drawing, path: &str) -> Option<&'a str> {
    let is_in = |room: &&String| {
        path.strip_prefix(room.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']))
    };
    drawing.product.keys().filter(is_in).max_by_key(|room| room.len()).map(String::as_str)
}

/// The `crate::` paths of a file, with slashes, and the lines that they stand in.
fn imports(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("#[cfg(test)]") && !line.starts_with(' ') && is_module(text, at) {
            break;
        }
        if line.trim_start().starts_with("//") {
            continue;
        }
        for path in line.split("crate::").skip(1) {
            let end = path.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
            let path = path[..end.unwrap_or(path.len())].trim_end_matches(':');
            found.push((at + 1, path.replace("::", "/")));
        }
    }
    found
}

/// Whether the item behind this line is a module of tests, which ends the file.
fn is_module(text: &str, at: usize) -> bool {
    text.lines()
        .skip(at + 1)
        .find(|line| !line.trim_start().starts_with('#'))
        .is_some_and(|line| line.starts_with("mod "))
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
            "doors/http/front.rs",
            "use crate::access::tokens::Tokens;\n#[cfg(test)]\nmod tests {\n    use crate::doors;\n}\n",
        );
        assert_eq!(
            checked(&[file, ("doors/mod.rs", "use crate::doors::http::front;")]),
            Vec::<String>::new()
        );
        let back = ("doors/http/front.rs", "use crate::doors::plans;\n");
        assert_eq!(checked(&[back]).len(), 1);
    }

    #[test]
    fn a_file_that_is_in_no_room_is_named() {
        assert!(checked(&[("extra.rs", "")])[0].contains("crates/server/src/extra.rs: is in no room"));
    }
}
