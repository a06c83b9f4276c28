//! Pages: their fenced blocks, and what the hidden comments above the blocks say.

use std::path::Path;

/// Languages of programs. A block of one of these runs, is a file of the page, or has a reason why not.
const PROGRAMS: [&str; 6] = ["sh", "console", "python", "javascript", "go", "rust"];
/// Languages of data, of an output alone, and of programs for which nothing here has an interpreter.
const OTHERS: [&str; 12] =
    ["text", "json", "yaml", "toml", "ini", "nginx", "http", "java", "ruby", "lua", "sql", "promql"];

/// A page as the test uses it.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// Relative to the root of the repository.
    pub(crate) path: String,
    pub(crate) lines: Vec<String>,
    pub(crate) steps: Vec<Step>,
    /// The blocks that do not run: the number of the line, and the reason.
    pub(crate) not_run: Vec<(usize, String)>,
    /// Commands that fail where the page cannot run.
    pub(crate) needs: Vec<String>,
    /// The reader is in a clone of the repository.
    pub(crate) in_clone: bool,
    /// The page has blocks that rustdoc has to compile.
    pub(crate) has_doctests: bool,
}

/// One thing that the reader of a page does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// Types this.
    Type(Typed),
    /// Saves a block as a file.
    Save { line: usize, file: String, text: String },
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Typed {
    /// The number of its first line on the page, from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
    /// The lines that it prints, if the page shows them.
    pub(crate) output: Option<Vec<String>>,
    pub(crate) marks: Marks,
}

/// The attributes that the comment above a block gives: `<!-- instead | exit: 1 | shows: "a" | "b" -->`, `<!-- another terminal -->`, or
/// `<!-- not run: reason -->`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Marks {
    /// The block is an alternative to the block before it, and does not follow it.
    pub(crate) instead: bool,
    /// The reader types the block in another terminal, where the server then runs.
    pub(crate) another_terminal: bool,
    /// The expected exit code.
    pub(crate) exit: i32,
    /// Texts that the output must have.
    pub(crate) shows: Vec<String>,
    pub(crate) not_run: Option<String>,
}

impl Marks {
    pub(crate) fn of(line: &str) -> Self {
        let mut marks = Self::default();
        let mut said = comment(line).unwrap_or_default();
        if let Some(reason) = said.strip_prefix("not run: ") {
            marks.not_run = Some(reason.to_owned());
            return marks;
        }
        marks.another_terminal = said == "another terminal";
        if let Some(rest) = said.strip_prefix("instead") {
            (marks.instead, said) = (true, rest.trim_start_matches(" | "));
        }
        if let Some(rest) = said.strip_prefix("exit: ") {
            let (exit, rest) = rest.split_once(" | ").unwrap_or((rest, ""));
            (marks.exit, said) = (exit.parse().expect("a number"), rest);
        }
        if let Some(shows) = said.strip_prefix("shows: ") {
            marks.shows = shows.split(" | ").map(str::to_owned).collect();
        }
        marks
    }
}

/// The text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("<!-- ")?.strip_suffix(" -->")
}

/// A fenced block.
struct Block<'a> {
    /// The number of the line that opens it, from 1.
    line: usize,
    language: &'a str,
    /// The name of the file as which the reader saves it.
    file: Option<&'a str>,
    marks: Marks,
    /// The text before it, from the last empty line on.
    paragraph: String,
    lines: &'a [String],
}

impl Page {
    /// Reads a page, and finds the blocks that this test cannot account for.
    pub(crate) fn parse(path: &str, text: &str) -> Result<Self, String> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut page = Self { path: path.to_owned(), ..Self::default() };
        let (mut at, mut wrong) = (0, Vec::new());
        while at < lines.len() {
            let Some(fence) = lines[at].trim_start().strip_prefix("```") else {
                page.read_comment(&lines[at]);
                at += 1;
                continue;
            };
            let Some(length) = lines[at + 1..].iter().position(|line| line.trim() == "```") else {
                return Err(format!("{path}:{}: the block has no end", at + 1));
            };
            if let Err(why) = page.take(&block(&lines, at, fence, length)) {
                wrong.push(format!("{path}:{}: {why}", at + 1));
            }
            at += length + 2;
        }
        page.lines = lines;
        if wrong.is_empty() { Ok(page) } else { Err(wrong.join("\n")) }
    }

    /// The commands that the reader types.
    pub(crate) fn typed(&self) -> impl Iterator<Item = &Typed> {
        self.steps.iter().filter_map(|step| if let Step::Type(typed) = step { Some(typed) } else { None })
    }

    fn read_comment(&mut self, line: &str) {
        match comment(line) {
            Some("in a clone of the repository") => self.in_clone = true,
            Some(said) => self.needs.extend(said.strip_prefix("needs: ").map(str::to_owned)),
            None => {}
        }
    }

    /// Adds the steps of a block.
    fn take(&mut self, block: &Block<'_>) -> Result<(), String> {
        let Block { line, language, file, marks, lines, .. } = block;
        let base = language.split(',').next().unwrap_or_default();
        if !PROGRAMS.contains(&base) && !OTHERS.contains(&base) {
            return Err(format!("`{language}` is no language of a block: {PROGRAMS:?} or {OTHERS:?}"));
        }
        if let Some(reason) = &marks.not_run {
            self.not_run.push((*line, reason.clone()));
            return Ok(());
        }
        if let Some(file) = file {
            if !block.paragraph.contains(&format!("`{file}`")) {
                return Err(format!(
                    "the text before the block does not tell the reader to save it as `{file}`"
                ));
            }
            let text = lines.iter().flat_map(|line| [line, "\n"]).collect();
            self.steps.push(Step::Save { line: *line, file: (*file).to_owned(), text });
            return Ok(());
        }
        match *language {
            "sh" => {
                let (text, marks) = (lines.join("\n"), marks.clone());
                self.steps.push(Step::Type(Typed { line: line + 1, text, output: None, marks }));
            }
            "console" => self.steps.extend(typed(line + 1, lines, marks)?.into_iter().map(Step::Type)),
            "rust" | "rust,no_run" => self.has_doctests = true,
            "text" if lines.iter().any(|line| line.starts_with("$ ")) => {
                return Err("a block with commands is `console`".to_owned());
            }
            _ if PROGRAMS.contains(&base) => {
                return Err(format!(
                    "this block of `{language}` does not run: give it a file name (`{base} file=NAME`), \
                     or the reason (`<!-- not run: ... -->`)"
                ));
            }
            _ => {}
        }
        Ok(())
    }
}

fn block<'a>(lines: &'a [String], at: usize, fence: &'a str, length: usize) -> Block<'a> {
    let (language, attribute) = fence.split_once(' ').unwrap_or((fence, ""));
    let above = at.checked_sub(1).map_or("", |before| lines[before].as_str());
    let text_above = lines[..at].iter().rev().skip_while(|line| line.is_empty() || comment(line).is_some());
    let paragraph: Vec<&str> = text_above.take_while(|line| !line.is_empty()).map(String::as_str).collect();
    Block {
        line: at + 1,
        language,
        file: attribute.strip_prefix("file="),
        marks: Marks::of(above),
        paragraph: paragraph.join("\n"),
        lines: &lines[at + 1..=at + length],
    }
}

/// The commands of a console with their output. `first` is the number of the first line.
fn typed(first: usize, lines: &[String], marks: &Marks) -> Result<Vec<Typed>, String> {
    let mut all: Vec<Typed> = Vec::new();
    let mut numbered = lines.iter().enumerate();
    while let Some((at, line)) = numbered.next() {
        if let Some(command) = line.strip_prefix("$ ") {
            let mut text = command.to_owned();
            let end = here_document(command);
            // A command goes on after a backslash, and to the end of its here-document.
            while text.ends_with('\\') || end.is_some_and(|end| !text.ends_with(&format!("\n{end}"))) {
                let (_, more) = numbered.next().ok_or("the last command has no end")?;
                text = format!("{text}\n{more}");
            }
            let line = first + at;
            all.push(Typed { line, text, output: Some(Vec::new()), marks: Marks::default() });
        } else {
            let before = all.last_mut().ok_or("the first line of a console is no command")?;
            before.output.as_mut().expect("of a console").push(line.clone());
        }
    }
    // The comment is about the last command.
    all.last_mut().ok_or("the block is empty")?.marks = marks.clone();
    Ok(all)
}

/// The line that ends the here-document of a command.
fn here_document(command: &str) -> Option<&str> {
    let (_, end) = command.split_once("<<")?;
    let end = end.split([' ', '|', '>', ';']).next()?;
    Some(end.trim_matches(['\'', '"']))
}

impl Typed {
    /// The number of lines that the command has on the page, without its output.
    pub(crate) fn height(&self) -> usize {
        self.text.lines().count()
    }
}

/// Reads a page of the repository.
pub(crate) fn read(root: &Path, path: &str) -> Result<Page, String> {
    let text = std::fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))?;
    Page::parse(path, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str) -> Vec<Step> {
        Page::parse("p.md", text).expect("a page").steps
    }

    fn refused(text: &str) -> String {
        Page::parse("p.md", text).expect_err("no page")
    }

    fn command(line: usize, text: &str, output: &[&str]) -> Step {
        let output = Some(output.iter().map(|line| (*line).to_owned()).collect());
        Step::Type(Typed { line, text: text.to_owned(), output, marks: Marks::default() })
    }

    #[test]
    fn a_console_has_commands_and_their_output() {
        let text = "# T\n\n```console\n$ a\n1\n\n2\n$ b \\\n  c\n$ d <<'END' | e\nf\nEND\n3\n```\n";
        assert_eq!(
            steps(text),
            [
                command(4, "a", &["1", "", "2"]),
                command(8, "b \\\n  c", &[]),
                command(10, "d <<'END' | e\nf\nEND", &["3"]),
            ]
        );
    }

    #[test]
    fn the_comment_above_a_block_is_about_its_last_command() {
        let text = "<!-- exit: 1 | shows: \"a\":1 | b -->\n```console\n$ a\n$ b\n```\n";
        let [Step::Type(a), Step::Type(b)] = &steps(text)[..] else { panic!("two commands") };
        assert_eq!(a.marks, Marks::default());
        let shows = vec!["\"a\":1".to_owned(), "b".to_owned()];
        assert_eq!(b.marks, Marks { exit: 1, shows, ..Marks::default() });
        let marks = Marks::of("<!-- instead | shows: a -->");
        assert_eq!((marks.instead, marks.exit, marks.shows), (true, 0, vec!["a".to_owned()]));
        assert!(Marks::of("<!-- instead -->").instead);
        assert!(Marks::of("<!-- another terminal -->").another_terminal);
    }

    #[test]
    fn a_block_of_shell_is_one_step_without_output() {
        let Step::Type(typed) = &steps("a\n```sh\nb\nc\n```\n")[0] else { panic!("a command") };
        assert_eq!((typed.line, typed.text.as_str(), &typed.output), (3, "b\nc", &None));
    }

    #[test]
    fn a_file_is_saved_if_the_text_names_it() {
        let text = "Save this\nas `w.py`:\n\n```python file=w.py\na\n\nb\n```\n";
        let file = "w.py".to_owned();
        assert_eq!(steps(text), [Step::Save { line: 4, file, text: "a\n\nb\n".to_owned() }]);
        assert!(refused(&text.replace("as `w.py`", "as it is")).contains("p.md:4: the text before"));
    }

    #[test]
    fn no_block_is_left_out_silently() {
        for language in ["python", "go", "javascript", "rust,ignore"] {
            let wrong = refused(&format!("```{language}\na\n```\n"));
            assert!(wrong.contains("p.md:1: this block of"), "{language}: {wrong}");
        }
        for language in ["", "bash", "py", "shell"] {
            let wrong = refused(&format!("a\n```{language}\na\n```\n"));
            assert!(wrong.contains("is no language of a block"), "{language}: {wrong}");
        }
        assert!(refused("```text\n$ a\n```\n").contains("is `console`"));
        assert!(refused("```console\na\n```\n").contains("is no command"));
        assert!(refused("```console\n$ a <<END\n```\n").contains("has no end"));
        assert!(refused("```sh\na\n").contains("has no end"));
    }

    #[test]
    fn a_reason_is_kept() {
        let page =
            Page::parse("p.md", "a\n\n<!-- not run: needs systemd -->\n```sh\na\n```\n").expect("a page");
        assert_eq!((page.steps.len(), page.not_run), (0, vec![(4, "needs systemd".to_owned())]));
    }

    #[test]
    fn a_page_says_what_it_needs() {
        let text =
            "<!-- needs: python3 -c 'import a' -->\n<!-- in a clone of the repository -->\n```rust\n```\n";
        let page = Page::parse("p.md", text).expect("a page");
        assert_eq!(page.needs, ["python3 -c 'import a'"]);
        assert!(page.in_clone && page.has_doctests);
    }
}
