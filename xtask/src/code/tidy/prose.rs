//! The prose of a file: the paragraphs of its comments and docstrings, or of its Markdown.

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

/// All paragraphs of a file's comments, or of a Markdown page; a file in a language without a mark for comments here has none.
pub(super) fn paragraphs(text: &Text) -> Vec<Paragraph> {
    let Some(language) = Language::of(text) else { return Vec::new() };
    let mut reader = Reader::default();
    let mut is_docstring = false;
    for (number, line) in (1..).zip(text.text.lines()) {
        let (mark, content) = if language == Language::Python && (is_docstring || opens_docstring(line)) {
            docstring(line, &mut is_docstring)
        } else {
            language.comment(line)
        };
        reader.read(number, mark, content);
    }
    reader.found
}

/// The kind of a file, by the marks of its comments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Language {
    Markdown,
    Rust,
    JavaScript,
    /// A shell, TOML or YAML.
    Shell,
    Python,
}

impl Language {
    fn of(text: &Text) -> Option<Self> {
        let name = text.path.rsplit('/').next().unwrap_or_default();
        Some(match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("md") => Self::Markdown,
            Some("rs") => Self::Rust,
            // Another project's file keeps its own words.
            Some("js" | "cjs" | "mjs" | "ts") if !text.path.contains("/vendor/") => Self::JavaScript,
            Some("py") => Self::Python,
            Some("sh" | "toml" | "yml" | "yaml") => Self::Shell,
            None => {
                let first = text.text.lines().next()?.strip_prefix("#!")?;
                if first.contains("python") { Self::Python } else { Self::Shell }
            }
            Some(_) => return None,
        })
    }

    /// The mark of a comment and what follows it; nothing where a line is code.
    fn comment(self, line: &str) -> (&'static str, &str) {
        let trimmed = line.trim_start();
        let after = |mark: &'static str| Some((mark, trimmed.strip_prefix(mark)?));
        match self {
            Self::Markdown => ("", line),
            Self::Rust => ["///", "//!", "//"].into_iter().find_map(after).unwrap_or_default(),
            Self::JavaScript => {
                let (mark, content) = ["//", "/**", "*"].into_iter().find_map(after).unwrap_or_default();
                // The first line of a block and the lines after it are one comment.
                let mark = if mark == "/**" { "*" } else { mark };
                (mark, content.trim_end().trim_end_matches("*/").trim_start_matches('/'))
            }
            Self::Shell | Self::Python if line.starts_with("#!") => ("", ""),
            Self::Shell | Self::Python => after("#").unwrap_or_default(),
        }
    }
}

const QUOTES: &str = "\"\"\"";

fn opens_docstring(line: &str) -> bool {
    line.trim_start().starts_with(QUOTES)
}

/// A line of a docstring, and whether the next line is one, too.
fn docstring<'a>(line: &'a str, goes_on: &mut bool) -> (&'static str, &'a str) {
    let content = line.trim();
    let content = if *goes_on { content } else { content.trim_start_matches('"') };
    *goes_on = !content.ends_with(QUOTES);
    (QUOTES, content.trim_end_matches('"'))
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
        assert_eq!(read("a.csv", page), []);
    }

    #[test]
    fn comments_of_other_languages_are_read() {
        let texts = |path: &str, text: &str| -> Vec<String> {
            read(path, text).into_iter().map(|(_, text)| text).collect()
        };
        let script = "/** One\n * two. */\nlet a = b;\n// Three.\n/** Four. */\n";
        assert_eq!(texts("a.js", script), ["One two.", "Three.", "Four."]);
        assert_eq!(texts("a/vendor/a.js", script), [""; 0]);
        assert_eq!(texts("a.toml", "# One\n# two.\nb = 1 # three\n#\n# Four.\n"), ["One two.", "Four."]);
        assert_eq!(texts("scripts/a", "#!/bin/sh\n# One.\nit\n"), ["One."]);
        assert_eq!(texts("scripts/a", "# One.\n"), [""; 0]);
        let python = "#!/usr/bin/env python3\n\"\"\"One\ntwo.\n\nThree.\n\"\"\"\nx = 1\ndef f():\n    \"\"\"Four.\"\"\"\n    y = 2\n    # Five.\n";
        assert_eq!(texts("scripts/a", python), ["One two.", "Three.", "Four.", "Five."]);
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
