//! A view as lines of text, for a screen of a given size.

use console::{Alignment, measure_text_width, pad_str, truncate_str};
use tickwheel_api::{QueueCounts, duration};

use super::order::{Column, Order};
use super::view::{Extent, View};
use crate::commands::backup::counted;
use crate::printable::one_line;

/// The size of a screen, in characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Size {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

/// The content of a page.
pub(crate) struct Content<'a> {
    pub(crate) server: &'a str,
    /// The time between two requests to the server (ms).
    pub(crate) every_ms: u64,
    /// Whether there is a keyboard.
    pub(crate) has_keys: bool,
    /// The text of the first line while the server does not answer.
    pub(crate) trouble: Option<&'a str>,
    pub(crate) figures: &'a [String],
    /// The queues, sorted.
    pub(crate) queues: &'a [QueueCounts],
}

const KEYS: [[&str; 2]; 9] = [
    ["q, Esc, Ctrl-C", "leave"],
    ["s, >", "sort by the next column"],
    ["<", "sort by the previous column"],
    ["r", "reverse the order"],
    ["Up, Down, k, j", "scroll by one queue"],
    ["PgUp, PgDn", "scroll by one page"],
    ["Home, End, g, G", "go to the first or the last queue"],
    ["Ctrl-L, Ctrl-Z", "draw the screen again; suspend"],
    ["?, h", "show the keys"],
];

/// Lines around the queues of a list: an empty line below the figures, the head, and the foot.
const LIST_LINES: usize = 3;

impl Content<'_> {
    /// The lines of a view, at most as many as the screen has rows. A line may be too wide or have control characters; [`picture`] and
    /// [`text`] correct both.
    pub(crate) fn lines(&self, view: &View, size: Size) -> Vec<String> {
        let mut lines = self.above(size);
        if view.explains_keys {
            lines.push(String::new());
            lines.extend(KEYS.iter().map(|[key, does]| format!("{key:<18}{does}")));
            lines.extend([String::new(), "q leaves, any other key goes back".to_owned()]);
        } else {
            let names = names_width(size.columns);
            let extent = self.extent(size);
            let first = view.first(extent);
            let shown = &self.queues[first..self.queues.len().min(first + extent.rows)];
            if lines.len() > 1 {
                lines.push(String::new());
            }
            lines.push(head(view.order, names));
            lines.extend(shown.iter().map(|counts| row(counts, names)));
            lines.extend(self.foot(first, shown.len()));
        }
        lines.truncate(size.rows);
        lines
    }

    /// The number of queues, and the number of rows for them on a screen of this size.
    pub(crate) fn extent(&self, size: Size) -> Extent {
        let above = self.above(size).len();
        let below_figures = if above > 1 { LIST_LINES } else { LIST_LINES - 1 };
        let rows = size.rows.saturating_sub(above + below_figures).max(1);
        Extent { queues: self.queues.len(), rows }
    }

    /// The lines above the list. On a screen with few rows the list is shown, and not the figures.
    fn above(&self, size: Size) -> Vec<String> {
        let first = self.trouble.map_or_else(|| self.first_line(), str::to_owned);
        let figures: Vec<String> = self.figures.iter().flat_map(|line| wrapped(line, size.columns)).collect();
        let has_room = 1 + figures.len() + LIST_LINES < size.rows;
        std::iter::once(first).chain(figures.into_iter().filter(|_| has_room)).collect()
    }

    fn first_line(&self) -> String {
        let leave = if self.has_keys { "q leaves" } else { "Ctrl-C ends it" };
        format!("tickwheel at {}, every {}, {leave}", self.server, duration::format(self.every_ms))
    }

    fn foot(&self, first: usize, shown: usize) -> Option<String> {
        let queues = self.queues.len();
        if self.has_keys {
            let from = if shown == 0 { 0 } else { first + 1 };
            let part = format!("{from}-{} of {queues}", first + shown);
            return Some(format!("{part}   q leave  s sort  r reverse  ↑ ↓ PgUp PgDn scroll  ? keys"));
        }
        (queues > shown).then(|| format!("and {}", counted((queues - shown) as u64, "more queue")))
    }
}

/// The width of a column of counts (characters): a count below a billion and a space before it.
const COUNT_WIDTH: usize = 10;
const HELD_WIDTH: usize = 10;

/// The width of the column of names on a screen with this number of columns.
fn names_width(columns: usize) -> usize {
    columns.saturating_sub((Column::ALL.len() - 1) * COUNT_WIDTH + HELD_WIDTH).clamp(12, 60)
}

fn head(order: Order, names: usize) -> String {
    let title = |column: Column| {
        let sign = if column == order.column { String::from(order.sign()) } else { String::new() };
        format!("{}{sign}", column.title())
    };
    let [name, counts @ ..] = Column::ALL;
    let counts: String = counts.iter().map(|column| format!("{:>COUNT_WIDTH$}", title(*column))).collect();
    format!("{:<names$}{counts}", title(name))
}

fn row(counts: &QueueCounts, names: usize) -> String {
    let QueueCounts { queue, scheduled, ready, leased, dead, paused, draining } = counts;
    let numbers: String =
        [scheduled, ready, leased, dead].iter().map(|count| format!("{count:>COUNT_WIDTH$}")).collect();
    let held = match (paused, draining) {
        (true, _) => "  paused",
        (false, true) => "  draining",
        (false, false) => "",
    };
    let queue = one_line(queue);
    let name = truncate_str(&queue, names - 1, "~");
    format!("{}{numbers}{held}", pad_str(&name, names, Alignment::Left, None))
}

/// Breaks a line into lines that fit the screen. A line is broken only at two or more spaces.
fn wrapped(line: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in line.split("  ").map(str::trim).filter(|part| !part.is_empty()) {
        match lines.last_mut() {
            Some(last) if measure_text_width(last) + 2 + measure_text_width(part) <= columns => {
                last.push_str("  ");
                last.push_str(part);
            }
            Some(_) => lines.push(format!("  {part}")),
            None => lines.push(part.to_owned()),
        }
    }
    lines
}

/// The control text of dim letters, and of plain ones.
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// The control text that draws the lines over the previous picture. Each row is cleared separately, because clearing the whole screen
/// would flicker. A row is cleared before it is written: some terminals would otherwise clear the last character of a full row. The cursor
/// ends below the last line. If the figures are old, all lines below the first are dim.
pub(crate) fn picture(lines: &[String], size: Size, is_old: bool) -> String {
    let none = String::new();
    let rows = lines.iter().chain(std::iter::repeat(&none)).take(size.rows);
    let rows: Vec<String> = rows
        .enumerate()
        .map(|(number, line)| {
            let text = fitting(line, size.columns);
            if is_old && number > 0 { format!("\x1b[K{DIM}{text}{PLAIN}") } else { format!("\x1b[K{text}") }
        })
        .collect();
    let rest = (lines.len() + 1).min(size.rows.max(1));
    format!("\x1b[H{}\x1b[{rest};1H", rows.join("\r\n"))
}

/// The lines as text that stays on the terminal.
pub(crate) fn text(lines: &[String], columns: usize) -> String {
    lines.iter().map(|line| format!("{}\n", fitting(line, columns))).collect()
}

/// One line without control characters, cut at the edge of the screen.
fn fitting(line: &str, columns: usize) -> String {
    truncate_str(&one_line(line), columns, "").into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::key::Key;
    use super::*;

    const SIZE: Size = Size { rows: 24, columns: 80 };

    fn counts(queue: &str, ready: u64) -> QueueCounts {
        QueueCounts {
            queue: queue.to_owned(),
            scheduled: 1,
            ready,
            leased: 3,
            dead: 4,
            paused: false,
            draining: false,
        }
    }

    fn queues(count: u64) -> Vec<QueueCounts> {
        (0..count).map(|number| counts(&format!("queue{number}"), count - number)).collect()
    }

    fn view() -> View {
        View::new(Order { column: Column::Ready, reversed: false })
    }

    fn content<'a>(queues: &'a [QueueCounts], figures: &'a [String]) -> Content<'a> {
        Content { server: "box:8463", every_ms: 2_000, has_keys: true, trouble: None, figures, queues }
    }

    fn figures() -> Vec<String> {
        vec!["in a second: puts 1".to_owned(), "late: p50 1 ms".to_owned()]
    }

    #[test]
    fn a_page_has_the_part_of_the_list_that_the_view_says() {
        let (queues, figures) = (queues(100), figures());
        let (content, mut view) = (content(&queues, &figures), view());
        let lines = content.lines(&view, SIZE);
        assert_eq!(lines.len(), 24);
        assert_eq!(
            lines[..4],
            ["tickwheel at box:8463, every 2s, q leaves", "in a second: puts 1", "late: p50 1 ms", ""]
        );
        assert!(lines[4].starts_with("QUEUE ") && lines[4].contains(" READY▼"), "{}", lines[4]);
        assert!(lines[5].starts_with("queue0 ") && lines[22].starts_with("queue17 "), "{lines:#?}");
        assert!(
            lines[23].starts_with("1-18 of 100   q leave") && lines[23].ends_with("? keys"),
            "{}",
            lines[23]
        );
        view.press(Key::PageDown, content.extent(SIZE));
        let lines = content.lines(&view, SIZE);
        assert!(lines[5].starts_with("queue18 ") && lines[23].starts_with("19-36 of 100"), "{lines:#?}");
        view.press(Key::End, content.extent(SIZE));
        let lines = content.lines(&view, SIZE);
        assert!(lines[22].starts_with("queue99 ") && lines[23].starts_with("83-100 of 100"), "{lines:#?}");
    }

    #[test]
    fn no_page_is_higher_or_wider_than_its_screen() {
        let (queues, figures) = (queues(100), figures());
        let mut view = view();
        for explains_keys in [false, true] {
            view.explains_keys = explains_keys;
            for (rows, columns) in
                (0..30).flat_map(|rows| [0, 1, 11, 40, 80, 300].map(|columns| (rows, columns)))
            {
                let size = Size { rows, columns };
                for queues in [&queues[..], &[]] {
                    let lines = content(queues, &figures).lines(&view, size);
                    assert!(lines.len() <= rows, "{size:?}: {lines:#?}");
                    let picture = picture(&lines, size, false);
                    assert_eq!(picture.matches("\r\n").count(), rows.saturating_sub(1), "no screen moves up");
                    for row in picture.split("\r\n") {
                        let row = row.trim_start_matches("\x1b[H").trim_start_matches("\x1b[K");
                        let row = row.split('\x1b').next().expect("split gives one");
                        assert!(measure_text_width(row) <= columns, "{size:?}: {row:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_low_screen_shows_queues_rather_than_figures() {
        let (queues, figures) = (queues(100), figures());
        let lines = content(&queues, &figures).lines(&view(), Size { rows: 5, columns: 80 });
        assert_eq!(lines.len(), 5);
        assert!(lines[2].starts_with("queue0 ") && lines[4].starts_with("1-2 of 100"), "{lines:#?}");
    }

    #[test]
    fn without_a_keyboard_no_keys_are_offered() {
        let (queues, figures) = (queues(100), figures());
        let content = Content { has_keys: false, ..content(&queues, &figures) };
        let lines = content.lines(&view(), SIZE);
        assert!(lines[0].ends_with("Ctrl-C ends it"), "{}", lines[0]);
        assert_eq!(lines[23], "and 82 more queues");
        let few = Content { queues: &queues[..3], ..content };
        assert_eq!(few.lines(&view(), SIZE).len(), 8, "no foot below a list that is whole");
    }

    #[test]
    fn the_keys_are_explained_in_place_of_the_list() {
        let (queues, figures) = (queues(3), figures());
        let mut view = view();
        view.press(Key::Char('?'), content(&queues, &figures).extent(SIZE));
        let lines = content(&queues, &figures).lines(&view, SIZE).join("\n");
        assert!(!lines.contains("queue0") && lines.contains("late: p50"), "{lines}");
        for [key, does] in KEYS {
            assert!(lines.contains(key) && lines.contains(does), "{lines}");
        }
    }

    #[test]
    fn a_server_that_does_not_answer_is_named_above_what_was_seen_last() {
        let (queues, figures) = (queues(3), figures());
        let content = Content { trouble: Some("no answer for 5s: refused"), ..content(&queues, &figures) };
        let lines = content.lines(&view(), SIZE);
        assert_eq!(lines[0], "no answer for 5s: refused");
        assert!(lines[5].starts_with("queue0 "), "{lines:#?}");
        let picture = picture(&lines, SIZE, true);
        let rows: Vec<_> = picture.split("\r\n").collect();
        assert_eq!(rows[0], "\x1b[H\x1b[Kno answer for 5s: refused", "it is not dim");
        for row in &rows[1..lines.len()] {
            assert!(row.starts_with("\x1b[K\x1b[2m") && row.contains("\x1b[0m"), "{row:?}");
        }
    }

    #[test]
    fn a_name_cannot_drive_the_terminal() {
        let queues = [counts("a\u{1b}[2J\u{202e}b", 2)];
        let figures = ["no figures: \u{9b}2J".to_owned()];
        let content = Content { trouble: Some("no answer: \u{7f}\u{200b}"), ..content(&queues, &figures) };
        let lines = content.lines(&view(), SIZE);
        for shown in [picture(&lines, SIZE, false), text(&lines, 80)] {
            let own = shown.replace("\x1b[K", "").replace("\x1b[H", "").replace("\x1b[7;1H", "");
            for evil in ["a\\u{1b}[2J\\u{202e}b", "no figures: \\u{9b}2J", "no answer: \\u{7f}\\u{200b}"] {
                assert!(own.contains(evil), "{own:?}");
            }
            assert!(!own.replace(['\r', '\n'], "").contains(crate::printable::is_hidden), "{own:?}");
        }
    }

    #[test]
    fn eighty_columns_are_enough() {
        let counts =
            QueueCounts { scheduled: 999_999_999, dead: 0, draining: true, ..counts(&"q".repeat(200), 12) };
        let names = names_width(80);
        let row = row(&counts, names);
        assert!(row.chars().count() <= 80 && row.ends_with("0  draining"), "{row}");
        let head = head(Order { column: Column::Name, reversed: false }, names);
        assert_eq!(head.chars().position(|c| c == 'S'), row.find("999999999"), "one below the other");
        let foot = content(&queues(1_000), &[]).foot(990, 10).expect("a foot");
        assert!(measure_text_width(&foot) <= 80, "{foot}");
        let line = "in a second: puts 1.0  fired 20000  leased 20000   oldest due for 1 s";
        assert_eq!(
            wrapped(line, 46),
            ["in a second: puts 1.0  fired 20000", "  leased 20000  oldest due for 1 s"]
        );
        assert_eq!(wrapped(line, 1).len(), 4, "narrower than a word, each has a line");
    }

    #[test]
    fn wide_names_keep_the_columns_in_line() {
        let names = names_width(80);
        for name in ["你好", "e\u{301}", "\u{202e}", "q"] {
            assert_eq!(measure_text_width(&row(&counts(name, 2), names)), names + 4 * COUNT_WIDTH, "{name}");
        }
    }
}
