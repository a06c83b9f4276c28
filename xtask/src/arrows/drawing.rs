//! The drawing of who may import whom, as ARCHITECTURE.md has it.

use std::collections::{BTreeMap, BTreeSet};

/// The page that has the drawing.
pub(super) const PAGE: &str = "ARCHITECTURE.md";
/// The fence around the drawing of the packages.
pub(super) const FENCE: &str = "```arrows";

/// Who may import whom among the packages of the workspace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Drawing {
    /// The packages that each package of the product may import.
    pub(super) product: BTreeMap<String, BTreeSet<String>>,
    /// Packages that may import anything and that no package imports.
    pub(super) tools: BTreeSet<String>,
}

impl Drawing {
    /// Reads the block of a page that begins with this fence. A line is `package -> package, package`, `package -> nothing` or
    /// `package -> anything`; what stands behind `#` is prose.
    pub(super) fn read(page: &str, fence: &str) -> Result<Self, String> {
        let mut lines = page.lines().skip_while(|line| line.trim() != fence).skip(1).peekable();
        if lines.peek().is_none() {
            return Err(format!("{PAGE} has no block that begins with {fence}"));
        }
        let mut drawing = Self::default();
        for line in lines.take_while(|line| line.trim() != "```") {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let (from, to) = line.split_once("->").ok_or_else(|| {
                format!("{PAGE}: `{line}` is no arrow; write `package -> package, package`")
            })?;
            let from = from.trim().to_owned();
            let known = drawing.product.contains_key(&from) || drawing.tools.contains(&from);
            if known {
                return Err(format!("{PAGE}: {from} is drawn twice"));
            }
            match to.trim() {
                "anything" => {
                    drawing.tools.insert(from);
                }
                "nothing" => {
                    drawing.product.insert(from, BTreeSet::new());
                }
                names => {
                    let names = names.split(',').map(|name| name.trim().to_owned()).collect();
                    drawing.product.insert(from, names);
                }
            }
        }
        drawing.check()
    }

    fn check(self) -> Result<Self, String> {
        for (from, to) in &self.product {
            for name in to {
                if self.tools.contains(name) {
                    return Err(format!("{PAGE}: {from} -> {name} is drawn, but nobody imports a tool"));
                }
                if !self.product.contains_key(name) {
                    return Err(format!("{PAGE}: {from} -> {name} is drawn, but {name} itself is not"));
                }
            }
        }
        // Taking away what imports nothing that is left ends with nothing, unless the arrows run in a circle.
        let mut left = self.product.clone();
        loop {
            let before = left.len();
            let free: Vec<String> = left
                .iter()
                .filter(|(_, to)| to.iter().all(|name| !left.contains_key(name)))
                .map(|(from, _)| from.clone())
                .collect();
            free.iter().for_each(|name| drop(left.remove(name)));
            match left.len() {
                0 => return Ok(self),
                len if len == before => {
                    let circle: Vec<&str> = left.keys().map(String::as_str).collect();
                    return Err(format!("{PAGE}: arrows run in a circle among {}", circle.join(", ")));
                }
                _ => {}
            }
        }
    }
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
            ("core -> engine\n", "engine itself is not"),
            ("core -> sim\nsim -> anything\n", "nobody imports a tool"),
            ("a -> b\nb -> c\nc -> a\nd -> nothing\n", "in a circle among a, b, c"),
        ] {
            let error = Drawing::read(&page(block), FENCE).expect_err(block);
            assert!(error.contains(said), "{block:?} was refused with {error:?}");
        }
        assert!(Drawing::read("# no drawing\n", FENCE).expect_err("none").contains("no block"));
    }
}
