//! Who imports whom within a crate: the arrows between its files, held against a drawing of its rooms.
//!
//! A room is a file or a folder below `src`. A file belongs to the longest room that is drawn, so `doors/http` can be a room beside `doors`.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, anyhow};

use super::drawing::{Drawing, PAGE};
use super::sources::Crate;
use crate::finding::Finding;

const FENCE: &str = "```rooms ";

/// A crate with a drawing of its rooms.
struct Rooms {
    name: String,
    drawing: Drawing,
    sources: Crate,
}

/// An arrow between the files of two rooms.
struct Crossing<'a> {
    rooms: (&'a str, &'a str),
    files: (&'a str, &'a str),
    line: usize,
}

/// Everything in the drawn crates that the drawings do not allow, and how many files were read.
pub(super) fn check(root: &Path, page: &str) -> Result<(usize, Vec<Finding>)> {
    let (mut files, mut findings) = (0, Vec::new());
    for name in drawn(page) {
        let rooms = Rooms::read(root, page, name)?;
        files += rooms.sources.files().count();
        findings.extend(rooms.check());
    }
    Ok((files, findings))
}

/// The arrows of a crate that run back up, drawn or not, and how many arrows there are.
pub(super) fn back(root: &Path, page: &str, name: &str) -> Result<Vec<String>> {
    let drawn: Vec<&str> = drawn(page).collect();
    if !drawn.contains(&name) {
        return Err(anyhow!("{PAGE} draws no rooms of `{name}`; it draws those of {}", drawn.join(", ")));
    }
    Ok(Rooms::read(root, page, name)?.back())
}

/// The crates whose rooms the page draws.
fn drawn(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter_map(|line| line.trim().strip_prefix(FENCE))
}

impl Rooms {
    fn read(root: &Path, page: &str, name: &str) -> Result<Self> {
        let drawing = Drawing::read(page, &format!("{FENCE}{name}")).map_err(|why| anyhow!(why))?;
        let sources = Crate::read(&root.join(format!("crates/{name}/src")))?;
        Ok(Self { name: name.to_owned(), drawing, sources })
    }

    fn check(&self) -> Vec<Finding> {
        let (folder, mut findings) = (format!("crates/{}/src", self.name), Vec::new());
        let roomless = |(module, path): &(&str, &str)| {
            self.room(module).is_none() && !matches!(*path, "lib.rs" | "main.rs")
        };
        for (_, path) in self.sources.files().filter(roomless) {
            let what = format!("is in no room; add it to the block `rooms {}` of {PAGE}", self.name);
            findings.push(Finding::new(format!("{folder}/{path}"), what));
        }
        let (mut unused, mut back) = (self.arrows(), self.drawing.back.clone());
        for crossing in self.crossings() {
            let (from, to) = crossing.rooms;
            let is_excused = |(outer, inner): &&(String, String)| {
                is_in(crossing.files.0, outer) && is_in(crossing.files.1, inner)
            };
            if let Some(excuse) = self.drawing.back.iter().find(is_excused) {
                back.remove(excuse);
            } else if !unused.remove(&(from, to)) && !self.drawing.product[from].contains(to) {
                let place = format!("{folder}/{}:{}", self.sources.path(crossing.files.0), crossing.line);
                let what = format!("{from} -> {to} ({}) is not in the drawing ({PAGE})", crossing.files.1);
                findings.push(Finding::new(place, what));
            }
        }
        let unused = unused.into_iter().map(|(from, to)| format!("{from} -> {to}"));
        let unused =
            unused.map(|arrow| Finding::mild(&folder, format!("{arrow} is drawn in {PAGE} and not used")));
        findings.extend(unused);
        let back = back.into_iter().map(|(from, to)| format!("back {from} -> {to}"));
        findings.extend(back.map(|arrow| {
            Finding::new(&folder, format!("`{arrow}` is drawn in {PAGE} and not used; delete the line"))
        }));
        findings
    }

    fn back(&self) -> Vec<String> {
        let (mut lines, mut crossings) = (Vec::new(), 0);
        for crossing in self.crossings() {
            crossings += 1;
            let ((from, to), (file, other)) = (crossing.rooms, crossing.files);
            if self.drawing.is_back(from, to) {
                let (file, other) = (self.sources.path(file), self.sources.path(other));
                let place = format!("crates/{}/src/{file}:{}", self.name, crossing.line);
                lines.push(format!("{place} -> {other}   ({from} -> {to})"));
            }
        }
        let in_rooms = |(from, to): &&(&str, &str)| self.room(from).is_some() && self.room(to).is_some();
        let all = self.sources.arrows().keys().filter(in_rooms).count();
        let back = lines.len();
        let name = &self.name;
        lines.push(format!(
            "{name}: {all} arrows between files, {crossings} of them between rooms, {back} run back up"
        ));
        lines
    }

    fn crossings(&self) -> impl Iterator<Item = Crossing<'_>> {
        self.sources.arrows().into_iter().filter_map(|(files, line)| {
            let rooms = (self.room(files.0)?, self.room(files.1)?);
            (rooms.0 != rooms.1).then_some(Crossing { rooms, files, line })
        })
    }

    fn arrows(&self) -> BTreeSet<(&str, &str)> {
        let product = self.drawing.product.iter();
        product.flat_map(|(from, to)| to.iter().map(move |to| (from.as_str(), to.as_str()))).collect()
    }

    /// The room of a module.
    fn room(&self, module: &str) -> Option<&str> {
        let rooms = self.drawing.order.iter().filter(|room| is_in(module, room));
        rooms.max_by_key(|room| room.len()).map(String::as_str)
    }
}

/// Whether a module is this file, or in this folder.
fn is_in(module: &str, room: &str) -> bool {
    module.strip_prefix(room).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::arrows::sources::of_texts;

    const BLOCK: &str =
        "events -> nothing\naccess -> events\ndoors/http -> access\ndoors -> access, doors/http\n";

    /// The rooms of a crate with these files, beside others without a line.
    fn rooms(block: &str, files: &[(&str, &str)]) -> Rooms {
        let empty = ["events.rs", "access.rs", "doors/mod.rs", "doors/plans.rs", "doors/http/mod.rs"];
        let empty = empty.into_iter().map(|path| (path, ""));
        let files: Vec<(&str, &str)> = empty.chain(files.iter().copied()).collect();
        let drawing = Drawing::read(&format!("{FENCE}server\n{block}```\n"), "```rooms server");
        Rooms { name: "server".to_owned(), drawing: drawing.expect("a drawing"), sources: of_texts(&files) }
    }

    fn checked(files: &[(&str, &str)]) -> Vec<String> {
        let found = rooms(BLOCK, files).check();
        found.iter().filter(|finding| !finding.mild).map(Finding::to_string).collect()
    }

    #[test]
    fn an_arrow_that_is_not_drawn_is_named_with_its_line() {
        let text = "//! See crate::doors.\nuse crate::events;\n\nfn f() { crate::doors::http::g(); }\n";
        assert_eq!(
            checked(&[("access/tokens.rs", text), ("lib.rs", "mod access;")]),
            [
                "error: crates/server/src/access/tokens.rs:4: access -> doors/http (doors/http) is not in the drawing (ARCHITECTURE.md)"
            ]
        );
    }

    #[test]
    fn a_name_of_the_root_or_of_a_parent_counts_for_the_room_that_declares_it() {
        let root = ("lib.rs", "pub use doors::plans::Plan;");
        let over_the_root = checked(&[root, ("access/tokens.rs", "use crate::Plan;")]);
        assert!(over_the_root[0].contains("access -> doors (doors/plans)"), "{over_the_root:?}");
        let parent = ("access/mod.rs", "use crate::events::Event;");
        assert!(checked(&[parent, ("access/tokens.rs", "use super::Event;")]).is_empty());
        let parent = ("events/mod.rs", "use crate::doors::plans::Plan;");
        assert_eq!(checked(&[parent, ("events/one.rs", "use super::Plan;")]).len(), 2);
    }

    #[test]
    fn a_folder_within_a_folder_is_a_room_of_its_own() {
        let file = ("doors/http/door.rs", "use crate::access::tokens::Tokens;\nuse super::door;\n");
        assert!(checked(&[file, ("doors/all.rs", "use crate::doors::http::door;")]).is_empty());
        for back in [
            "use crate::doors::plans;\n",
            "use super::super::plans;\n",
            "use crate::{events, doors::plans};\n",
        ] {
            assert!(!checked(&[("doors/http/door.rs", back)]).is_empty(), "{back}");
        }
    }

    #[test]
    fn a_file_that_is_in_no_room_is_named() {
        assert!(checked(&[("extra.rs", "")])[0].contains("crates/server/src/extra.rs: is in no room"));
    }

    #[test]
    fn arrows_back_up_are_counted_and_a_line_allows_those_of_its_files() {
        let files =
            [("access/a.rs", "use crate::doors::plans;"), ("access/b.rs", "\nuse crate::doors::plans;")];
        let block = format!("{BLOCK}back access/a -> doors   # a registry\n");
        let rooms_of_both = rooms(&block, &files);
        assert_eq!(
            rooms_of_both.back(),
            [
                "crates/server/src/access/a.rs:1 -> doors/plans.rs   (access -> doors)",
                "crates/server/src/access/b.rs:2 -> doors/plans.rs   (access -> doors)",
                "server: 2 arrows between files, 2 of them between rooms, 2 run back up",
            ]
        );
        let errors =
            |rooms: &Rooms| rooms.check().into_iter().filter(|finding| !finding.mild).collect::<Vec<_>>();
        let found = errors(&rooms_of_both);
        assert_eq!((found.len(), found[0].place.as_str()), (1, "crates/server/src/access/b.rs:2"));
        let found = errors(&rooms(&block, &[]));
        assert!(found.len() == 1 && found[0].what.contains("`back access/a -> doors` is drawn"), "{found:?}");
    }

    #[test]
    fn each_block_of_rooms_is_found() {
        assert!(drawn("```rooms api\n```\n\n```rooms server\n```\n").eq(["api", "server"]));
    }
}
