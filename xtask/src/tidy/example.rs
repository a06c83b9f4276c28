//! The example on the page about embedding is the one that the compiler sees.

use crate::finding::Finding;
use crate::root::Text;

const PAGE: &str = "docs/tutorials/embedded.md";
/// Has the example in the doc of its type, where `cargo test` runs it.
const SOURCE: &str = "crates/queue/src/queue.rs";
/// The page names a directory, the test makes one.
const ON_PAGE: &str = "Queue::open(\"./shop-tasks\")";
const IN_TEST: &str = "Queue::open(&directory)";

/// A finding if the page shows anything else than the visible lines of the tested example.
pub(super) fn check(texts: &[Text]) -> Option<Finding> {
    let text = |path: &str| texts.iter().find(|text| text.path == path).map(|text| text.text.as_str());
    let (page, source) = (text(PAGE)?, text(SOURCE)?);
    let shown = block(page.lines(), "```rust")?.join("\n").replace(ON_PAGE, IN_TEST);
    let comments = source
        .lines()
        .filter_map(|line| line.strip_prefix("///"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line));
    let mut tested = block(comments, "```")?;
    tested.retain(|line| !line.starts_with("# ") && *line != "#");
    let differs = shown.trim() != tested.join("\n").trim();
    differs.then(|| {
        Finding::new(PAGE, format!("the example is not that of {SOURCE}, which is the one that is tested"))
    })
}

/// The lines of the first block that `fence` opens.
fn block<'a>(lines: impl Iterator<Item = &'a str>, fence: &str) -> Option<Vec<&'a str>> {
    let mut lines = lines.skip_while(|line| *line != fence);
    lines.next()?;
    Some(lines.take_while(|line| *line != "```").collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(shown: &str) -> [Text; 2] {
        let source = "/// A queue.\n///\n/// ```\n/// # let directory = 1;\n/// let q = Queue::open(&directory)?;\n///\n/// q.put();\n/// # Ok(())\n/// ```\n";
        let page = format!("# T\n\n```sh\ncargo\n```\n\n```rust\n{shown}```\n");
        let text = |path: &str, text: &str| Text { path: path.to_owned(), text: text.to_owned() };
        [text(PAGE, &page), text(SOURCE, source)]
    }

    #[test]
    fn the_same_but_for_hidden_lines_is_the_same() {
        assert_eq!(check(&texts("let q = Queue::open(\"./shop-tasks\")?;\n\nq.put();\n")), None);
    }

    #[test]
    fn another_line_is_another_example() {
        assert!(check(&texts("let q = Queue::open(\"./shop-tasks\")?;\nq.push();\n")).is_some());
    }
}
