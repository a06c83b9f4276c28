//! Text of the command line's help as Markdown.

/// Help text as a paragraph. Options become code, because a browser would otherwise show two dashes as one.
pub(super) fn paragraph(text: &str) -> String {
    let parts: Vec<String> = text
        .split('`')
        .enumerate()
        .map(|(number, part)| if number % 2 == 1 { format!("`{part}`") } else { words(part) })
        .collect();
    parts.concat()
}

fn words(text: &str) -> String {
    let words: Vec<String> = text.split(' ').map(word).collect();
    words.join(" ")
}

/// A word outside of code.
fn word(word: &str) -> String {
    let is_option = |word: &str| {
        let name = word.trim_start_matches('-');
        let dashes = word.len() - name.len();
        (dashes == 2 || dashes == 1 && name.len() == 1)
            && name.starts_with(|first: char| first.is_ascii_alphabetic())
    };
    let begin = word.len() - word.trim_start_matches('(').len();
    let bare = word[begin..].trim_end_matches(['.', ',', ':', ';', ')']);
    if is_option(bare) || bare.contains("_") || bare.contains('<') || bare.contains('*') {
        return format!("{}`{bare}`{}", &word[..begin], &word[begin + bare.len()..]);
    }
    word.to_owned()
}

/// The same text on one line.
pub(super) fn line(text: &str) -> String {
    paragraph(text).replace('\n', " ")
}

/// The text with a full stop at its end.
pub(super) fn sentence(text: &str) -> String {
    let ended = text.ends_with(['.', ':', '!', '?']);
    format!("{text}{}", if ended { "" } else { "." })
}

/// A row of a table. A bar in a cell would begin the next cell, so it is escaped.
pub(super) fn row(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// The text after the options of a help page: paragraphs, indented lists, and indented lines, which are code.
pub(super) fn after_help(text: &str) -> String {
    let mut page = String::new();
    let mut last = Kind::Blank;
    for line in text.lines() {
        let kind = Kind::of(line);
        if last == Kind::Code && kind != Kind::Code {
            page.push_str("```\n");
        }
        match kind {
            Kind::Blank => page.push('\n'),
            Kind::Text => {
                if matches!(last, Kind::Code | Kind::List) {
                    page.push('\n');
                }
                page.push_str(&paragraph(line));
                page.push('\n');
            }
            Kind::List => {
                if last == Kind::Text {
                    page.push('\n');
                }
                page.push_str(&format!("{}\n", paragraph(line.trim())));
            }
            Kind::Code => {
                if last != Kind::Code {
                    page.push_str(if last == Kind::Text { "\n```text\n" } else { "```text\n" });
                }
                page.push_str(&format!("{}\n", line.strip_prefix("  ").unwrap_or(line)));
            }
        }
        last = kind;
    }
    if last == Kind::Code {
        page.push_str("```\n");
    }
    page
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Blank,
    Text,
    List,
    Code,
}

impl Kind {
    fn of(line: &str) -> Self {
        match line {
            line if line.trim().is_empty() => Self::Blank,
            line if line.starts_with("  - ") => Self::List,
            line if line.starts_with("  ") => Self::Code,
            _ => Self::Text,
        }
    }
}

#[test]
fn options_and_patterns_become_code_and_code_stays() {
    assert_eq!(
        paragraph("Without --in, --at (or `--by`) and -o: see TICKWHEEL_SERVER."),
        "Without `--in`, `--at` (or `--by`) and `-o`: see `TICKWHEEL_SERVER`."
    );
    assert_eq!(paragraph("synced (fsync) - a name"), "synced (fsync) - a name");
    assert_eq!(row(&[line("`a|b`")]), "| `a\\|b` |\n");
    assert_eq!(
        after_help("Examples:\n  tickwheel ls\n  tickwheel get\nAt once:\n  - one\nThe end."),
        "Examples:\n\n```text\ntickwheel ls\ntickwheel get\n```\n\nAt once:\n\n- one\n\nThe end.\n"
    );
}
