//! Values as they are written into URLs and headers.

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
