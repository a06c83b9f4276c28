//! The drawing of who may import whom, as ARCHITECTURE.md has it.

use std::collections::{BTreeMap, BTreeSet};

/// The page that has the drawing.
pub(super) const PAGE: &str = "ARCHITECTURE.md";
/// The fence around the drawing of the packages.
pub(super) const FENCE: &str = "```arrows";

/// Who may import whom, of packages or of the rooms of a crate. Ground first: an arrow leads to a line above its own.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Drawing {
    /// The packages or rooms that each package or room of the product may import.
    pub(super) product: BTreeMap<String, BTreeSet<String>>,
    /// Packages that may import anything and that no package imports.
    pub(super) tools: BTreeSet<String>,
    /// The names of the product in the order of their lines.
    pub(super) order: Vec<String>,
    /// Arrows between files or rooms that are allowed although they run back up.
    pub(super) back: BTreeSet<(String, String)>,
}

impl Drawing {
    /// Reads the block of a page that begins with this fence. A line is `package -> package, package`, `package -> nothing` or
    /// `package -> anything`; what stands behind `#` is prose. In a drawing of rooms, `back file -> file   # reason` allows an arrow back up.
    pub(super) fn read(page: &str, fence: &str) -> Result<Self, String> {
        let mut drawing = Self::default();
        for line in block(page, fence)? {
            let (arrow, reason) = line.split_once('#').unwrap_or((line, ""));
            let (from, to) = arrow.split_once("->").ok_or_else(|| {
                format!("{PAGE}: `{line}` is no arrow; write `package -> package, package`")
            })?;
            let (from, to) = (from.trim(), to.trim());
            match from.strip_prefix("back ") {
                Some(_) if fence == FENCE => {
                    return Err(format!("{PAGE}: `{line}`: no package has an arrow back up"));
                }
                Some(_) if reason.trim().is_empty() => {
                    return Err(format!("{PAGE}: `{line}` has no reason; write it behind `#`"));
                }
                Some(from) => drop(drawing.back.insert((from.trim().to_owned(), to.to_owned()))),
                None => drawing.add(from, to)?,
            }
        }
        Ok(drawing)
    }

    fn add(&mut self, from: &str, to: &str) -> Result<(), String> {
        if self.product.contains_key(from) || self.tools.contains(from) {
            return Err(format!("{PAGE}: {from} is drawn twice"));
        }
        if to == "anything" {
            self.tools.insert(from.to_owned());
            return Ok(());
        }
        let names = to.split(',').map(str::trim).filter(|name| *name != "nothing");
        let names: BTreeSet<String> = names.map(str::to_owned).collect();
        if let Some(name) = names.iter().find(|name| !self.product.contains_key(*name)) {
            return Err(format!("{PAGE}: {from} -> {name} is drawn, but {name} is not drawn above {from}"));
        }
        self.order.push(from.to_owned());
        self.product.insert(from.to_owned(), names);
        Ok(())
    }

    /// Whether an arrow between two rooms runs back up, to a line below its own.
    pub(super) fn is_back(&self, from: &str, to: &str) -> bool {
        let line = |name: &str| self.order.iter().position(|room| room == name);
        line(from) < line(to)
    }
}

/// The lines of the block of a page that begins with this fence, without empty ones.
pub(super) fn block<'a>(page: &'a str, fence: &str) -> Result<impl Iterator<Item = &'a str>, String> {
    let mut lines = page.lines().map(str::trim);
    if !lines.any(|line| line == fence) {
        return Err(format!("{PAGE} has no block that begins with {fence}"));
    }
    Ok(lines.take_while(|line| *line != "```").filter(|line| !line.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(block: &str) -> String {
        format!("# Map\n\n```text\na -> z\n```\n\n{FENCE}\n{block}```\nafter -> all\n")
    }

    #[test]
    fn the_block_is_read_and_nothing_around_it() {
        let drawing =
            Drawing::read(&page("core -> nothing   # pure\n\nengine -> core\nsim -> anything\n"), FENCE);
        let drawing = drawing.expect("a drawing");
        assert_eq!(drawing.product.keys().collect::<Vec<_>>(), ["core", "engine"]);
        assert_eq!(drawing.product["engine"], BTreeSet::from(["core".to_owned()]));
        assert_eq!(drawing.tools, BTreeSet::from(["sim".to_owned()]));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_names() {
        for (block, said) in [
            ("core\n", "`core` is no arrow"),
            ("core -> nothing\ncore -> nothing\n", "core is drawn twice"),
            ("core -> engine\n", "engine is not drawn above core"),
            ("sim -> anything\ncore -> sim\n", "sim is not drawn above core"),
            ("a -> b\nb -> nothing\n", "b is not drawn above a"),
            ("a -> a\n", "a is not drawn above a"),
            ("a -> nothing\nb -> nothing\nback a -> b   # a reason\n", "no package has an arrow back up"),
        ] {
            let error = Drawing::read(&page(block), FENCE).expect_err(block);
            assert!(error.contains(said), "{block:?} was refused with {error:?}");
        }
        assert!(Drawing::read("# no drawing\n", FENCE).expect_err("none").contains("no block"));
    }

    #[test]
    fn an_arrow_back_up_between_rooms_needs_a_reason() {
        let fence = "```rooms api";
        let read =
            |back: &str| Drawing::read(&format!("{fence}\na -> nothing\nb -> a\n{back}\n```\n"), fence);
        let drawing = read("back a/x -> b   # a registry").expect("a drawing");
        assert_eq!(drawing.back, BTreeSet::from([("a/x".to_owned(), "b".to_owned())]));
        assert!(drawing.is_back("a", "b") && !drawing.is_back("b", "a") && !drawing.is_back("a", "a"));
        assert!(read("back a -> b").expect_err("none").contains("has no reason"));
    }
}
