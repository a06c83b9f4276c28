//! Compares the output of a program with its page. Everything is compared exactly but for instants, the random part of
//! tokens, and the version of this program.

use std::collections::BTreeMap;
use std::time::Instant as Moment;

use jiff::Timestamp;

/// An instant of a run may be apart from that of the page by this much more than another one is, and by the time that the run has taken so
/// far: a page that takes a second here takes longer on a busy computer, and a backup may wait for minutes there.
const DRIFT_MS: i64 = 60_000;
/// The length of a lease's token, and of its part that is not random.
const TOKEN_LENGTH: usize = 32;
const TOKEN_FIXED: usize = 20;

/// The relation between one run of a page and the run that the page shows.
#[derive(Debug)]
pub(crate) struct Likeness {
    begun: Moment,
    /// By how much the first instant that differs is later than on the page (ms).
    later_ms: Option<i64>,
    /// The tokens of the page, and those of the run in their place.
    tokens: BTreeMap<String, String>,
}

impl Default for Likeness {
    fn default() -> Self {
        Self { begun: Moment::now(), later_ms: None, tokens: BTreeMap::new() }
    }
}

impl Likeness {
    /// Whether these lines of a run are those of the page.
    pub(crate) fn alike(&mut self, page: &[String], run: &[&str]) -> bool {
        let tokens = |line: &str| pieces(line).into_iter().filter_map(Piece::token).collect::<Vec<_>>();
        let of_page = page.iter().flat_map(|line| tokens(line));
        self.tokens.extend(of_page.zip(run.iter().flat_map(|line| tokens(line))));
        page.len() == run.len() && page.iter().zip(run).all(|(page, run)| self.line_alike(page, run))
    }

    fn line_alike(&mut self, page: &str, run: &str) -> bool {
        let (page, run) = (pieces(page), pieces(run));
        page.len() == run.len() && page.iter().zip(&run).all(|(page, run)| self.piece_alike(page, run))
    }

    fn piece_alike(&mut self, page: &Piece<'_>, run: &Piece<'_>) -> bool {
        match (page, run) {
            (Piece::Token(page), Piece::Token(run)) => page[..TOKEN_FIXED] == run[..TOKEN_FIXED],
            (Piece::Instant(page), Piece::Instant(run)) => page == run || self.instant_alike(page, run),
            (Piece::Version(_), Piece::Version(run)) => *run == env!("CARGO_PKG_VERSION"),
            _ => page == run,
        }
    }

    /// An instant of a calendar may be on another day and in another hour. Any other one has to be as much later than
    /// on the page as the first one.
    fn instant_alike(&mut self, page: &Instant, run: &Instant) -> bool {
        if page.form != run.form {
            return false;
        }
        const MINUTE_MS: i64 = 60_000;
        const HOUR_MS: i64 = 60 * MINUTE_MS;
        let of_calendar = page.ms % MINUTE_MS == 0 && run.ms % MINUTE_MS == 0;
        if of_calendar && page.ms % HOUR_MS == run.ms % HOUR_MS {
            return true;
        }
        let later_ms = run.ms - page.ms;
        let taken_ms = i64::try_from(self.begun.elapsed().as_millis()).unwrap_or(i64::MAX);
        (later_ms - *self.later_ms.get_or_insert(later_ms)).abs() <= taken_ms.saturating_add(DRIFT_MS)
    }

    /// A command with the tokens of this run in place of those that the page shows.
    pub(crate) fn of_this_run(&self, command: &str) -> String {
        self.tokens.iter().fold(command.to_owned(), |text, (page, run)| text.replace(page, run))
    }
}

/// A part of a line.
#[derive(Debug, PartialEq)]
enum Piece<'a> {
    /// One character that has to be the same.
    Same(char),
    Token(&'a str),
    Instant(Instant),
    /// The version after the name of this program.
    Version(&'a str),
}

impl Piece<'_> {
    fn token(self) -> Option<String> {
        if let Piece::Token(token) = self { Some(token.to_owned()) } else { None }
    }
}

#[derive(Debug, PartialEq)]
struct Instant {
    ms: i64,
    /// How it is written: 0 in the place of each digit.
    form: String,
}

fn pieces(line: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut at) = (Vec::new(), 0);
    while let Some(first) = line[at..].chars().next() {
        let (rest, before) = (&line[at..], &line[..at]);
        let begins_word = !before.ends_with(|before: char| before.is_ascii_alphanumeric());
        let found = if begins_word { version(before, rest).or_else(|| word(rest)) } else { None };
        let (piece, length) = found.unwrap_or((Piece::Same(first), first.len_utf8()));
        pieces.push(piece);
        at += length;
    }
    pieces
}

/// The version at the start of a text.
fn version<'a>(before: &str, rest: &'a str) -> Option<(Piece<'a>, usize)> {
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let is_version = before.ends_with("tickwheel ") && rest[..end].split('.').count() == 3;
    is_version.then(|| (Piece::Version(&rest[..end]), end))
}

/// The instant or the token at the start of a text.
fn word(rest: &str) -> Option<(Piece<'_>, usize)> {
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"+-:._".contains(c)).unwrap_or(rest.len());
    let is_token = |text: &str| {
        text.len() == TOKEN_LENGTH
            && text.starts_with("AAAA")
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    if is_token(&rest[..end]) {
        return Some((Piece::Token(&rest[..end]), end));
    }
    // The lengths of the ways to write an instant: the longest first, for a shorter one may be its start.
    let lengths = ["2026-11-26T02:00:00.000-05:00", "2026-11-26T02:00:00-05:00"].into_iter().chain([
        "2026-11-26T06:46:19.243Z",
        "2026-11-26T06:46:19Z",
        "20261126T062529.962Z",
        "1795674329962",
    ]);
    lengths.map(str::len).find_map(|length| {
        let text = rest.get(..length)?;
        let ends_word = !rest[length..].starts_with(|next: char| next.is_ascii_alphanumeric());
        let ms = ms_of(text).filter(|_| ends_word)?;
        let form = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        Some((Piece::Instant(Instant { ms, form }), length))
    })
}

/// The instant that a text is, in milliseconds.
fn ms_of(text: &str) -> Option<i64> {
    if text.len() == "1795674329962".len() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // From 2026 to 2100: an id that begins with the instant of a job or a backup.
        return text.parse().ok().filter(|ms| (1_767_225_600_000..4_102_444_800_000).contains(ms));
    }
    let digits_and_marks = text.starts_with("20") && text.contains('T');
    digits_and_marks.then(|| text.parse::<Timestamp>().ok()).flatten().map(|at| at.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "AAAAAAAAAAIAAAEAAAAAAenRTyteXhWD";

    /// Whether each line of the run is like that of the page, one after the other.
    fn alike(pairs: &[(&str, &str)]) -> Vec<bool> {
        let mut likeness = Likeness::default();
        pairs.iter().map(|(page, run)| likeness.alike(&[(*page).to_owned()], &[*run])).collect()
    }

    #[test]
    fn all_instants_are_moved_by_the_same_time() {
        let at = |page, run| (page, run);
        let cases = [
            at(r#""due_at":"2026-11-26T06:46:19.243Z""#, r#""due_at":"2027-01-02T03:00:00.001Z""#),
            at("2026-11-26T06:46:19.243Z", "2027-01-02T03:00:59.001Z"),
            at("2026-11-26T07:46:19.243Z", "2027-01-02T04:00:00.001Z"),
            at("2026-11-26T07:46:19.243Z", "2027-01-02T03:00:00.001Z"),
            at("2080-01-01T00:00:00.000Z", "2080-01-01T00:00:00.000Z"),
            at("2080-01-01T00:00:00.100Z", "2081-01-01T00:00:00.100Z"),
        ];
        assert_eq!(alike(&cases), [true, true, true, false, true, false]);
    }

    #[test]
    fn ids_and_names_have_instants_too() {
        let cases = [
            ("backup-20261126T062529.962Z", "backup-20261126T072529.000Z"),
            (r#"{"id":1795674329962}"#, r#"{"id":1795677929000}"#),
            (r#"{"id":1795674329962}"#, r#"{"id":1795674329000}"#),
            ("2026-11-26T06:25:29Z", "2026-11-26T07:25:29.000Z"),
        ];
        assert_eq!(alike(&cases), [true, true, false, false]);
    }

    #[test]
    fn an_instant_of_a_calendar_keeps_its_minute() {
        let cases = [
            ("2026-11-26T06:46:19.243Z", "2027-07-04T01:00:00.001Z"),
            ("2026-11-26T07:30:00.000Z", "2027-07-05T06:30:00.000Z"),
            ("2026-11-26T02:30:00-05:00", "2027-07-05T02:30:00-04:00"),
            ("2026-11-26T07:30:00.000Z", "2027-07-05T06:00:00.000Z"),
        ];
        assert_eq!(alike(&cases), [true, true, true, false]);
    }

    #[test]
    fn a_token_is_random_at_its_end_only() {
        let other = "AAAAAAAAAAIAAAEAAAAAABCDEFGHIJKL";
        let of_another_task = TOKEN.replace("AAI", "AAJ");
        let cases =
            [(TOKEN, other), (TOKEN, &of_another_task), (TOKEN, &TOKEN[1..]), (TOKEN, "AAAA"), ("a", "b")];
        assert_eq!(alike(&cases), [true, false, false, false, false]);
    }

    #[test]
    fn a_token_of_the_page_is_replaced_in_a_command() {
        let mut likeness = Likeness::default();
        let other = TOKEN.replace("WD", "WE");
        assert!(likeness.alike(&[format!("\"{TOKEN}\"")], &[&format!("\"{other}\"")]));
        assert_eq!(likeness.of_this_run(&format!("ack {TOKEN}")), format!("ack {other}"));
    }

    #[test]
    fn the_version_is_that_of_this_program() {
        let now = concat!("tickwheel ", env!("CARGO_PKG_VERSION"));
        let cases =
            [("tickwheel 9.0.1", now), (now, "tickwheel 9.0.1"), (now, "tickwheel"), ("1.2.3", "1.2.4")];
        assert_eq!(alike(&cases), [true, false, false, false]);
    }

    #[test]
    fn everything_else_is_the_same() {
        let cases =
            [("a 1795 b", "a 1796 b"), ("a", "a "), ("ä 2026", "ä 2026"), ("123456789012", "123456789013")];
        assert_eq!(alike(&cases), [false, false, true, false]);
        assert!(!Likeness::default().alike(&["a".to_owned()], &["a", "b"]));
    }
}
