//! The sentences of a page.

use crate::root::Text;

/// A sentence of a page, or a cell of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Sentence {
    /// The line in which it begins.
    pub(super) line: usize,
    /// The sentence in one line, without the marks of Markdown and the addresses of links.
    pub(super) text: String,
    /// The text that the sentence belongs to, so that a short `no` is read with its question: the first cell of a row, the head of a
    /// column, the end of the paragraph before a list.
    pub(super) leads: Vec<String>,
}

impl Sentence {
    /// The sentence behind its leads, with `|` between them.
    pub(super) fn reading(&self) -> String {
        let leads: String = self.leads.iter().map(|lead| format!("{lead} | ")).collect();
        format!("{leads}{}", self.text)
    }
}

/// All sentences of a file. A page of Markdown has paragraphs, items, rows and `text` blocks; other blocks are code. The documentation of a
/// crate is such a page, and in any other file the lines of a comment are one paragraph and each other line is one.
pub(super) fn sentences(text: &Text) -> Vec<Sentence> {
    let mut reader = Reader::default();
    let is_crate = text.path.ends_with(".rs");
    let is_page = is_crate || text.path.ends_with(".md");
    for (number, line) in (1..).zip(text.text.lines()) {
        if is_crate {
            reader.read(number, line.trim_start().strip_prefix("//!").unwrap_or_default());
        } else if is_page {
            reader.read(number, line);
        } else {
            reader.read_plain(number, line);
        }
    }
    reader.close();
    reader.found
}

/// The kind of block that a line begins: nothing, a block that is left out, or a block for the eye.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Fence {
    #[default]
    None,
    Code,
    Prose,
}

#[derive(Default)]
struct Reader<'a> {
    found: Vec<Sentence>,
    /// The lines of the paragraph or the item that is open.
    open: Vec<(usize, &'a str)>,
    is_item: bool,
    fence: Fence,
    /// Whether a comment of HTML is open.
    hidden: bool,
    /// The heads of the table that is open.
    heads: Option<Vec<String>>,
    /// The end of the paragraph before a list, if it has a colon.
    lead: Option<String>,
}

impl<'a> Reader<'a> {
    fn read(&mut self, number: usize, line: &'a str) {
        let line = line.trim().trim_start_matches("> ").trim_start();
        if let Some(info) = line.strip_prefix("```") {
            self.close();
            self.fence = match (self.fence, info) {
                (Fence::None, "text") => Fence::Prose,
                (Fence::None, _) => Fence::Code,
                _ => Fence::None,
            };
            return;
        }
        match self.fence {
            Fence::Code => return,
            Fence::Prose => return self.line(number, line),
            Fence::None => {}
        }
        let begins_hidden = line.starts_with("<!--");
        if begins_hidden || self.hidden {
            self.close();
            self.hidden = !line.contains("-->");
            return;
        }
        if !line.starts_with('|') {
            self.heads = None;
        }
        if line.is_empty() || is_definition(line) {
            self.close();
        } else if line.starts_with('|') {
            self.close();
            self.row(number, line);
        } else if let Some(heading) = line.strip_prefix('#') {
            self.close();
            self.lead = None;
            self.line(number, heading.trim_start_matches('#'));
        } else if let Some(item) = item(line) {
            self.close();
            self.is_item = true;
            self.open.push((number, item));
        } else {
            if self.open.is_empty() {
                self.lead = None;
            }
            self.open.push((number, line));
        }
    }

    fn read_plain(&mut self, number: usize, line: &'a str) {
        match line.trim().strip_prefix('#').map(str::trim) {
            Some(comment) if !comment.is_empty() => self.open.push((number, comment)),
            Some(_) => self.close(),
            None => {
                self.close();
                self.line(number, line.trim());
            }
        }
    }

    /// A line that is a paragraph of its own.
    fn line(&mut self, number: usize, line: &str) {
        self.found.extend(split(&[(number, line)]));
    }

    /// Ends the paragraph or the item that is open.
    fn close(&mut self) {
        let mut sentences = split(&self.open);
        if self.is_item {
            for sentence in &mut sentences {
                sentence.leads.extend(self.lead.clone());
            }
        } else if let Some(last) = sentences.last() {
            self.lead = last.text.ends_with([':', '：']).then(|| last.text.clone());
        }
        self.found.extend(sentences);
        self.open.clear();
        self.is_item = false;
    }

    fn row(&mut self, number: usize, line: &str) {
        let cells: Vec<Vec<Sentence>> =
            cells(line).iter().map(|cell| split(&[(number, cell.as_str())])).collect();
        let whole = |cell: &Vec<Sentence>| {
            let texts: Vec<&str> = cell.iter().map(|sentence| sentence.text.as_str()).collect();
            texts.join(" ")
        };
        let label = cells.first().map(whole).filter(|label| !label.is_empty());
        let is_rule = cells.iter().all(|cell| whole(cell).chars().all(|c| "-: ".contains(c)));
        if is_rule && self.heads.is_some() {
            return;
        }
        for (at, cell) in cells.iter().enumerate() {
            let head = self.heads.as_ref().and_then(|heads| heads.get(at)).filter(|head| !head.is_empty());
            let label = label.as_ref().filter(|_| at > 0 && self.heads.is_some());
            for sentence in cell {
                let leads = label.into_iter().chain(head).cloned().collect();
                self.found.push(Sentence { leads, ..sentence.clone() });
            }
        }
        if self.heads.is_none() {
            self.heads = Some(cells.iter().map(whole).collect());
        }
    }
}

/// Whether the line is the address of a reference, such as `[1]: ADDRESS`.
fn is_definition(line: &str) -> bool {
    line.starts_with('[') && line.contains("]: ")
}

/// The text of an item of a list.
fn item(line: &str) -> Option<&str> {
    let bullet = ["- ", "* ", "+ "].into_iter().find_map(|mark| line.strip_prefix(mark));
    let number = || {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.len() == line.len() { None } else { rest.strip_prefix(". ") }
    };
    bullet.or_else(number)
}

/// The cells of a row. A `|` after a backslash is text.
fn cells(line: &str) -> Vec<String> {
    let inner = line.trim_start_matches('|').trim_end();
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    let mut cells = vec![String::new()];
    let mut letters = inner.chars().peekable();
    while let Some(letter) = letters.next() {
        let cell = cells.last_mut().expect("the first cell is there");
        match letter {
            '\\' if letters.peek() == Some(&'|') => cell.extend(letters.next()),
            '|' => cells.push(String::new()),
            letter => cell.push(letter),
        }
    }
    cells
}

/// The sentences of a paragraph.
fn split(lines: &[(usize, &str)]) -> Vec<Sentence> {
    let letters = plain(lines);
    let mut found: Vec<Sentence> = Vec::new();
    let mut open = Sentence { line: 0, text: String::new(), leads: Vec::new() };
    for (at, &(line, letter)) in letters.iter().enumerate() {
        if open.text.is_empty() {
            if letter == ' ' {
                continue;
            }
            open.line = line;
        }
        if letter != ' ' || !open.text.ends_with(' ') {
            open.text.push(letter);
        }
        let next = letters.get(at + 1).map(|(_, letter)| *letter);
        let after_end = || open.text.trim_end_matches([')', '"', '”', '）', '」']).ends_with(['.', '!', '?']);
        let ends = match next {
            None => true,
            Some(' ') => after_end(),
            Some(next) => "。！？".contains(letter) && !"”）」".contains(next),
        };
        if ends {
            open.text.truncate(open.text.trim_end().len());
            let next = Sentence { line: 0, text: String::new(), leads: Vec::new() };
            found.push(std::mem::replace(&mut open, next));
        }
    }
    found.retain(|sentence| !sentence.text.is_empty());
    found
}

/// The letters of a paragraph with their lines, without the marks of Markdown and the addresses of links. The words of code stay, because
/// a sentence may be about them.
fn plain(lines: &[(usize, &str)]) -> Vec<(usize, char)> {
    let letters: Vec<(usize, char)> = lines
        .iter()
        .flat_map(|&(number, line)| line.trim().chars().chain([' ']).map(move |letter| (number, letter)))
        .collect();
    let mut found = Vec::with_capacity(letters.len());
    let (mut at, mut in_code) = (0, false);
    while let Some(&(line, letter)) = letters.get(at) {
        at += 1;
        let next = letters.get(at).map(|(_, letter)| *letter);
        match letter {
            '`' => in_code = !in_code,
            _ if in_code => found.push((line, letter)),
            '\\' if next.is_some_and(|next| next.is_ascii_punctuation()) => {
                found.extend(letters.get(at));
                at += 1;
            }
            '*' | '[' => {}
            '!' if next == Some('[') => {}
            ']' => {
                let end = match next {
                    Some('(') => Some(')'),
                    Some('[') => Some(']'),
                    _ => None,
                };
                let skipped = end.and_then(|end| letters[at..].iter().position(|(_, letter)| *letter == end));
                at += skipped.map_or(0, |length| length + 1);
            }
            _ => found.push((line, letter)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str, text: &str) -> Vec<(usize, String)> {
        let found = sentences(&Text { path: path.to_owned(), text: text.to_owned() });
        found.iter().map(|sentence| (sentence.line, sentence.reading())).collect()
    }

    fn page(text: &str) -> Vec<(usize, String)> {
        read("a.md", text)
    }

    fn expected(sentences: &[(usize, &str)]) -> Vec<(usize, String)> {
        sentences.iter().map(|&(line, text)| (line, text.to_owned())).collect()
    }

    #[test]
    fn a_sentence_goes_over_lines_and_ends_within_one() {
        let found =
            page("# One. Two\nThree `a. b` [four\nfive](six.md#x) is **7.5.** Eight (e.md).\nNine!\n\nTen\n");
        let wanted = [
            (1, "One."),
            (1, "Two"),
            (2, "Three a."),
            (2, "b four five is 7.5."),
            (3, "Eight (e.md)."),
            (4, "Nine!"),
            (6, "Ten"),
        ];
        assert_eq!(found, expected(&wanted));
    }

    #[test]
    fn chinese_sentences_end_without_a_space() {
        let found = page("一台[服务器](a.md)。两台（没有。）！三\n台？四\n");
        let wanted = [(1, "一台服务器。"), (1, "两台（没有。）！"), (1, "三 台？"), (2, "四")];
        assert_eq!(found, expected(&wanted));
    }

    #[test]
    fn blocks_of_code_are_left_out_and_text_is_read() {
        let found =
            page("a\n```sh\n# not replicated\n```\nb\n```text\nc. d\ne\n```\n<!-- f -->\n<!-- g\nh -->\ni\n");
        let wanted = [(1, "a"), (5, "b"), (7, "c."), (7, "d"), (8, "e"), (13, "i")];
        assert_eq!(found, expected(&wanted));
    }

    #[test]
    fn a_cell_has_its_row_and_its_column() {
        let found = page("| | A | no |\n|---|:-:|---|\n| **what** | b. c | \\[1\\] d \\| e |\n\n| f |\n");
        let wanted = [
            (1, "A"),
            (1, "no"),
            (3, "what"),
            (3, "what | A | b."),
            (3, "what | A | c"),
            (3, "what | no | [1] d | e"),
            (5, "f"),
        ];
        assert_eq!(found, expected(&wanted));
    }

    #[test]
    fn an_item_has_the_end_of_the_paragraph_before_its_list() {
        let found = page("One. Two:\n\n- a\n  b\n- c. d\n1. e\n\nThree\n- f\n# Four:\n- g\n");
        let wanted = [
            (1, "One."),
            (1, "Two:"),
            (3, "Two: | a b"),
            (5, "Two: | c."),
            (5, "Two: | d"),
            (6, "Two: | e"),
            (8, "Three"),
            (9, "f"),
            (10, "Four:"),
            (11, "g"),
        ];
        assert_eq!(found, expected(&wanted));
    }

    #[test]
    fn references_are_links_and_their_addresses_no_text() {
        let found = page("yes [\\[36\\]][36] ![a picture](b.png)\n\n[36]: https://docs.rs/no\n");
        assert_eq!(found, expected(&[(1, "yes [36] a picture")]));
    }

    #[test]
    fn other_files_have_comments_and_lines() {
        let found = read("a.toml", "# One\n# two. Three\n#\n# four\nkey = \"five\"\n");
        let wanted = [(1, "One two."), (2, "Three"), (4, "four"), (5, "key = \"five\"")];
        assert_eq!(found, expected(&wanted));
        let found = read("lib.rs", "//! One\n//! two.\n\nfn no() {}\n");
        assert_eq!(found, expected(&[(1, "One two.")]));
    }
}
