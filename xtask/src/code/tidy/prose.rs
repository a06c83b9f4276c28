//! The prose of a file: the paragraphs of its comments, or of its Markdown.

use crate::root::Text;

/// A paragraph, a list item, a heading or a row of a table, without code.
#[derive(Debug)]
pub(super) struct Paragraph {
    pub(super) kind: Kind,
    /// Each line with its number.
    lines: Vec<(usize, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Body,
    Heading,
    Row,
}

impl Paragraph {
    /// Where it begins.
    pub(super) fn line(&self) -> usize {
        self.lines.first().map_or(0, |(number, _)| *number)
    }

    /// The text in one line, so that two words are found together although a line ends between them.
    pub(super) fn text(&self) -> String {
        let lines: Vec<&str> = self.lines.iter().map(|(_, line)| line.trim()).collect();
        lines.join(" ")
    }

    /// The number of the line in which the byte `at` of [`Self::text`] stands.
    pub(super) fn line_of(&self, at: usize) -> usize {
        let mut end = 0;
        let found = self.lines.iter().find(|(_, line)| {
            end += line.trim().len() + 1;
            at < end
        });
        found.map_or_else(|| self.line(), |(number, _)| *number)
    }
}

/// All paragraphs of a Rust file's comments or of a Markdown page; no other file has prose that is checked.
pub(super) fn paragraphs(text: &Text) -> Vec<Paragraph> {
    let is_rust = text.path.ends_with(".rs");
    if !is_rust && !text.path.ends_with(".md") {
        return Vec::new();
    }
    let mut reader = Reader::default();
    for (number, line) in (1..).zip(text.text.lines()) {
        let (mark, content) = if is_rust { comment(line) } else { ("", line) };
        reader.read(number, mark, content);
    }
    reader.found
}

/// The mark of a comment and what follows it; nothing where a line is code.
fn comment(line: &str) -> (&str, &str) {
    let line = line.trim_start();
    let marks = ["///", "//!", "//"];
    marks.into_iter().find_map(|mark| Some((mark, line.strip_prefix(mark)?))).unwrap_or_default()
}

#[derive(Default)]
struct Reader<'a> {
    found: Vec<Paragraph>,
    /// Whether the next line may go on with the last paragraph.
    open: bool,
    mark: &'a str,
    fenced: bool,
}

impl<'a> Reader<'a> {
    fn read(&mut self, number: usize, mark: &'a str, content: &str) {
        if mark != self.mark {
            (self.mark, self.open, self.fenced) = (mark, false, false);
        }
        let content = content.trim();
        let is_fence = content.starts_with("```");
        self.fenced ^= is_fence;
        if is_fence || self.fenced || content.is_empty() {
            self.open = false;
            return;
        }
        let (kind, begins, content) = classify(content);
        let line = (number, without_code(content));
        match self.found.last_mut() {
            Some(last) if self.open && !begins => last.lines.push(line),
            _ => self.found.push(Paragraph { kind, lines: vec![line] }),
        }
        self.open = kind == Kind::Body;
    }
}

/// The kind of a line, whether it begins a paragraph in any case, and its text without the marks of Markdown.
fn classify(line: &str) -> (Kind, bool, &str) {
    if line.starts_with('|') {
        return (Kind::Row, true, line);
    }
    if line.starts_with('#') {
        return (Kind::Heading, true, line.trim_start_matches(['#', ' ']));
    }
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = if digits.len() < line.len() { digits.strip_prefix(". ") } else { None };
    let marked = ["- ", "* ", "> "].iter().find_map(|mark| line.strip_prefix(mark));
    numbered.or(marked).map_or((Kind::Body, false, line), |item| (Kind::Body, true, item))
}

/// The line with the same length but blanks for what stands in backticks.
fn without_code(line: &str) -> String {
    let mut code = false;
    let keep = |c: char| {
        code ^= c == '`';
        if code && c != '`' { "_".repeat(c.len_utf8()) } else { c.to_string() }
    };
    line.chars().map(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str, text: &str) -> Vec<(usize, String)> {
        let text = Text { path: path.to_owned(), text: text.to_owned() };
        paragraphs(&text).iter().map(|one| (one.line(), one.text())).collect()
    }

    #[test]
    fn comments_are_read_and_code_is_not() {
        let source = "//! One\n//! two.\n//!\n//! Three `code`.\nfn f() {}\n/// ```\n/// it();\n/// ```\n/// Four.\n    // Five.\n";
        let found = read("a.rs", source);
        let expected = [(1, "One two."), (4, "Three `____`."), (9, "Four."), (10, "Five.")];
        assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn pages_have_paragraphs_items_headings_and_rows() {
        let page = "# Head\nOne\ntwo\n- three\n  four\n2. five\n| six |\n```sh\nseven\n```\neight\n";
        let lines: Vec<usize> = read("a.md", page).iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 2, 4, 6, 7, 11]);
        assert_eq!(read("a.toml", page), []);
    }

    #[test]
    fn a_place_in_the_text_has_its_line() {
        let text = Text { path: "a.md".to_owned(), text: "one\n  two\nthree\n".to_owned() };
        let found = paragraphs(&text);
        let lines =
            ["one", "two", "three"].map(|word| found[0].line_of(found[0].text().find(word).expect(word)));
        assert_eq!(lines, [1, 2, 3]);
    }
}
