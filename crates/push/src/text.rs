//! Values as they are written into URLs, headers and reasons.

/// At most this much of a text from outside stands in a reason (characters).
const REASON_CHARS: usize = 200;

/// Returns an instant (ms since 1970) as the API writes it.
pub(crate) fn rfc3339(ms: i64) -> String {
    tickwheel_api::time::format(ms)
}

/// Appends a value in the form of a URL: all bytes but the unreserved characters of RFC 3986 are percent-encoded.
pub(crate) fn percent_encoded(text: &mut String, value: &str) {
    const HEX: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    for &byte in value.as_bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            text.push(char::from(byte));
        } else {
            text.extend(['%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

/// Returns the beginning of a text from outside in one line. Characters that control a terminal are spaces.
pub(crate) fn in_one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(REASON_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_short_line() {
        assert_eq!(in_one_line("a\r\nb\u{1b}[31m\u{9b}c"), "a  b [31m c");
        assert_eq!(in_one_line(&"ü".repeat(300)), "ü".repeat(200));
    }
}
