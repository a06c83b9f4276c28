//! The refusal of a request that cannot be understood. It says what is wrong, where, and what to do.

use std::fmt;

use thiserror::Error;

/// The part of a request that has the fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// The body as a whole, for instance because it is not JSON.
    Body,
    /// A member of the body, by path: `at_ms`, `tokens[3]`.
    Member(String),
    /// A parameter of the query string.
    Parameter(String),
    /// A header, by its usual spelling.
    Header(&'static str),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Body => f.write_str("the body"),
            Self::Member(path) => write!(f, "`{path}`"),
            Self::Parameter(name) => write!(f, "parameter `{name}`"),
            Self::Header(name) => write!(f, "header `{name}`"),
        }
    }
}

/// Why a request was refused before the server looked for a task. The fault is always the caller's, and the answer is 400.
///
/// `Display` joins location and fault: ``` `delay`: `30` has no unit ```. The texts quote what was sent, cut to
/// 48 characters and with control characters escaped, so they can be logged and shown in a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRequest {
    /// The part of the request that has the fault.
    pub location: Location,
    /// The fault, with the value and the limit.
    pub what: String,
    /// The hint: what to send instead.
    pub hint: String,
}

impl fmt::Display for BadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.what)
    }
}

impl std::error::Error for BadRequest {}

impl BadRequest {
    /// A fault of the body as a whole.
    pub fn body(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { location: Location::Body, what: what.into(), hint: hint.into() }
    }

    /// A fault of the member with this path.
    pub fn member(path: impl Into<String>, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { location: Location::Member(path.into()), what: what.into(), hint: hint.into() }
    }

    /// A fault of the query parameter with this name.
    pub fn parameter(name: impl Into<String>, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { location: Location::Parameter(name.into()), what: what.into(), hint: hint.into() }
    }

    /// A fault of the header with this name.
    pub fn header(name: &'static str, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { location: Location::Header(name), what: what.into(), hint: hint.into() }
    }
}

/// Why a text is not what it should be: a duration, an instant, a rate, a list of delay levels.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct TextError {
    what: String,
    hint: String,
}

impl TextError {
    pub(crate) fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into() }
    }

    /// The hint: what to write instead.
    pub fn hint(&self) -> &str {
        &self.hint
    }

    /// The error and its hint in one line, for places that show one text only.
    pub fn in_full(&self) -> String {
        format!("{}; {}", self.what, self.hint)
    }

    /// The refusal of the member with this path. The text is its value.
    pub(crate) fn of_member(self, path: &str) -> BadRequest {
        BadRequest::member(path, self.what, self.hint)
    }

    /// The refusal of the query parameter with this name. The text is its value.
    pub(crate) fn of_parameter(self, name: &str) -> BadRequest {
        BadRequest::parameter(name, self.what, self.hint)
    }
}

/// 48 characters of what a caller sent are enough to find the position, and too few to fill a log.
const SHOWN_CHARS_MAX: usize = 48;

/// `text` as an error may quote it: cut to 48 characters, and with control characters escaped.
pub fn shown(text: &str) -> String {
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == SHOWN_CHARS_MAX {
            out.push('…');
            break;
        }
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

/// `bytes` as an error may quote them: as [`shown`], with U+FFFD for bytes that are not UTF-8.
pub fn shown_bytes(bytes: &[u8]) -> String {
    // A character has at most 4 bytes, so bytes beyond this prefix are never shown.
    let prefix = &bytes[..bytes.len().min(SHOWN_CHARS_MAX * 4 + 4)];
    shown(&String::from_utf8_lossy(prefix))
}

/// The name in `names` that is closest to `name`, if they differ only by a typing error.
pub fn nearest<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    // A text that is longer than every name by more than the allowed distance matches none. This bounds the cost.
    let longest = names.iter().map(|known| known.len()).max()?;
    if name.len() > longest + 2 {
        return None;
    }
    let (distance, known) = names.iter().map(|known| (distance(name, known), *known)).min()?;
    // A long name may have two typing errors, a short one only one: `at` is not a misspelt `by`.
    let slips = if known.len() >= 5 { 2 } else { 1 };
    (distance <= slips).then_some(known)
}

/// The edit distance, where swapping two neighbours counts as one change. Costs O(a * b); both are short.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    rows[0] = (0..=b.len()).collect();
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

/// Turns the refusal of a member of the object at `path` into one that names the whole path.
pub(crate) fn inside(path: &str, refused: BadRequest) -> BadRequest {
    let location = match refused.location {
        Location::Member(member) => Location::Member(format!("{path}.{member}")),
        Location::Body => Location::Member(path.to_owned()),
        other => other,
    };
    BadRequest { location, ..refused }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_cuts_and_escapes() {
        assert_eq!(shown("a\nb\u{1b}[31m"), "a\\nb\\u{1b}[31m");
        assert_eq!(shown(&"x".repeat(100)).chars().count(), SHOWN_CHARS_MAX + 1);
        assert_eq!(shown_bytes(b"\xff\xfe"), "\u{fffd}\u{fffd}");
        assert_eq!(shown_bytes("é".repeat(500).as_bytes()), format!("{}…", "é".repeat(SHOWN_CHARS_MAX)));
    }

    #[test]
    fn nearest_names() {
        let names = &["delay", "at", "at_ms", "payload"];
        assert_eq!(nearest("dealy", names), Some("delay"));
        assert_eq!(nearest("delya", names), Some("delay"));
        assert_eq!(nearest("at_m", names), Some("at_ms"));
        assert_eq!(nearest("Payload", names), Some("payload"));
        assert_eq!(nearest("by", names), None);
        assert_eq!(nearest("", names), None);
        assert_eq!(nearest(&"d".repeat(1 << 20), names), None);
        assert_eq!(nearest("x", &[]), None);
    }

    #[test]
    fn display_says_where_first() {
        assert_eq!(BadRequest::member("tokens[3]", "is empty", "x").to_string(), "`tokens[3]`: is empty");
        assert_eq!(BadRequest::header("If-Match", "is weak", "x").to_string(), "header `If-Match`: is weak");
    }
}
