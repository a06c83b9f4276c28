//! A page of Markdown as its prose and its blocks, and the line that names the original of a translation.

use std::fmt::Write as _;

const BEGIN: &str = "<!-- translates ";
const MIDDLE: &str = ", state ";
const END: &str = " -->";

/// The first line of a translation: it names the original, and the state of it that was translated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stamp<'a> {
    pub(super) original: &'a str,
    pub(super) state: u64,
}

impl<'a> Stamp<'a> {
    pub(super) fn read(page: &'a str) -> Option<Self> {
        let line = page.lines().next()?.strip_prefix(BEGIN)?.strip_suffix(END)?;
        let (original, state) = line.split_once(MIDDLE)?;
        Some(Self { original, state: u64::from_str_radix(state, 16).ok()? })
    }

    /// The page with this stamp in its first line.
    pub(super) fn put(self, page: &str) -> String {
        let rest =
            if page.starts_with(BEGIN) { page.split_once('\n').map_or("", |(_, rest)| rest) } else { page };
        let Self { original, state } = self;
        format!("{BEGIN}{original}{MIDDLE}{state:016x}{END}\n{rest}")
    }
}

/// A page in pieces.
#[derive(Debug)]
pub(super) struct Page<'a> {
    /// The text before, between and after the blocks.
    prose: Vec<&'a str>,
    /// The blocks of code with their fences.
    pub(super) blocks: Vec<&'a str>,
}

impl<'a> Page<'a> {
    /// Blocks of `text` are prose: they are drawings and forms for the eye, which no test executes.
    pub(super) fn read(text: &'a str) -> Self {
        let mut page = Self { prose: Vec::new(), blocks: Vec::new() };
        let (mut begin, mut at, mut fence) = (0, 0, None);
        for line in text.split_inclusive('\n') {
            let end = at + line.len();
            if let Some(info) = line.trim().strip_prefix("```") {
                match fence.take() {
                    None => fence = Some((at, info == "text")),
                    Some((_, true)) => {}
                    Some((from, false)) => {
                        page.prose.push(&text[begin..from]);
                        page.blocks.push(&text[from..end]);
                        begin = end;
                    }
                }
            }
            at = end;
        }
        page.prose.push(&text[begin..]);
        page
    }

    /// A number that changes with the words of the prose, but not with its line breaks, with comments or with blocks.
    pub(super) fn state(&self) -> u64 {
        let lines = self.prose.iter().flat_map(|piece| piece.lines());
        let words = lines.filter(|line| !is_comment(line)).flat_map(str::split_whitespace);
        // FNV-1a: an accident has to change the number, and no attack is expected.
        let bytes = words.flat_map(|word| word.bytes().chain([b' ']));
        bytes
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }

    /// The page with these blocks in the place of its own; nothing if their numbers differ.
    pub(super) fn with_blocks(&self, blocks: &[&str]) -> Option<String> {
        if blocks.len() != self.blocks.len() {
            return None;
        }
        let mut text = String::new();
        for (prose, block) in self.prose.iter().zip(blocks.iter().chain([&""])) {
            let _ = write!(text, "{prose}{block}");
        }
        Some(text)
    }
}

fn is_comment(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("<!--") && line.ends_with("-->")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        "# One\ntwo\n```sh\nls\n```\n- three\n  ```json\n  {}\n  ```\n```text\nfour\n```\nfive\n";

    #[test]
    fn a_page_has_prose_and_blocks() {
        let page = Page::read(PAGE);
        assert_eq!(page.blocks, ["```sh\nls\n```\n", "  ```json\n  {}\n  ```\n"]);
        assert_eq!(page.prose, ["# One\ntwo\n", "- three\n", "```text\nfour\n```\nfive\n"]);
        assert_eq!(page.with_blocks(&page.blocks).expect("the same number"), PAGE);
        assert_eq!(page.with_blocks(&[]), None);
        let open = Page::read("a\n```sh\nb");
        assert_eq!((open.blocks.len(), open.prose), (0, vec!["a\n```sh\nb"]));
    }

    #[test]
    fn the_state_is_that_of_the_words() {
        let state = |text: &str| Page::read(text).state();
        let same = ["# One  two\n```sh\nps\n```\n- three\n```text\nfour\n```\n<!-- shows: x -->\nfive", PAGE];
        assert_eq!(state(same[0]), state(same[1]));
        for other in ["# One\ntwo\n- three\nfive\n", "# One\n2\n- three\n```text\nfour\n```\nfive\n"] {
            assert_ne!(state(other), state(PAGE), "{other}");
        }
    }

    #[test]
    fn a_stamp_is_read_as_it_is_put() {
        let stamp = Stamp { original: "docs/a.md", state: 0xab };
        let first = stamp.put("# A\n");
        assert_eq!(first, "<!-- translates docs/a.md, state 00000000000000ab -->\n# A\n");
        assert_eq!(Stamp::read(&first), Some(stamp));
        let second = Stamp { state: 7, ..stamp };
        assert_eq!(second.put(&first), second.put("# A\n"));
        for none in
            ["", "# A\n", "<!-- translates docs/a.md -->\n", "<!-- translates docs/a.md, state x -->\n"]
        {
            assert_eq!(Stamp::read(none), None, "{none}");
        }
    }
}
