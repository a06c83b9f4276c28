//! The parts of sentences for people: instants, lengths, and texts of others.

use tickwheel_api::{duration, time};
use tickwheel_queue::Timestamp;

/// A text of others is cut to this number of characters, so that a sentence stays one.
const QUOTED_CHARS_MAX: usize = 300;

pub(super) fn at(instant: Timestamp) -> String {
    time::format(instant.as_ms())
}

/// A length for people: of a long one, the small units are left out.
pub(super) fn length(ms: u64) -> String {
    let unit = match ms {
        0..1_000 => 1,
        1_000..600_000 => 1_000,
        600_000..86_400_000 => 60_000,
        _ => 3_600_000,
    };
    duration::format(ms / unit * unit)
}

/// A text of others between backticks. A backtick in it becomes an apostrophe, so that a reader finds the end of the quotation; control
/// characters are escaped.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("`");
    for (count, c) in text.chars().enumerate() {
        match c {
            _ if count == QUOTED_CHARS_MAX => {
                out.push('…');
                break;
            }
            '`' => out.push('\''),
            _ if c.is_control() => out.extend(c.escape_default()),
            _ => out.push(c),
        }
    }
    out.push('`');
    out
}

/// The name of a queue as a shell takes it. Such a name may have `$`, `;` and parentheses, and no quotation mark.
pub(super) fn argument(queue: &str) -> String {
    let is_special = queue.contains(['$', ';', '(', ')']);
    if is_special { format!("'{queue}'") } else { queue.to_owned() }
}

/// The part of a clause that names the reason of a failure; nothing if there is none.
pub(super) fn with_reason(reason: Option<&str>) -> String {
    reason.map(|reason| format!(" with the reason {}", quoted(reason))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotation_has_one_end_and_is_not_long() {
        assert_eq!(quoted("http 500: no `paper`\n"), r"`http 500: no 'paper'\n`");
        assert_eq!(quoted(&"x".repeat(1_000)).chars().count(), QUOTED_CHARS_MAX + 3);
    }

    #[test]
    fn a_reason_is_quoted_and_need_not_be_there() {
        assert_eq!(with_reason(Some("no `paper`")), " with the reason `no 'paper'`");
        assert_eq!(with_reason(None), "");
    }
}
