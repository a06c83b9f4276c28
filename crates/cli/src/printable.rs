//! Makes text from other sources safe for a terminal. Characters are escaped if they could control the terminal, change the reading
//! direction, or be invisible.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character must be escaped. A terminal obeys control characters (C0, DEL and C1). Direction marks make a text appear in another
/// order. Characters without a width are invisible.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// The text on one line. Hidden characters are written as `\u{202e}`, and a line end as `\n`.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().flat_map(|c| if is_hidden(c) { c.escape_default().collect() } else { vec![c] }).collect()
}

/// Escapes hidden characters in a text that may have several lines.
pub(crate) fn lines(text: &str) -> String {
    text.split('\n').map(one_line).collect::<Vec<_>>().join("\n")
}

/// Escapes the characters of [`is_hidden`] in JSON as `\u202e`; the meaning stays the same. Such characters occur in
/// strings only, where JSON has this form for them. Spaces and line ends between values stay.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| is_hidden(c) && !matches!(c, '\n' | '\r' | '\t');
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        if is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(escaped, "\\u{unit:04x}").expect("a text takes all");
            }
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One character of each range, and both ends of each range of direction marks.
    const HIDDEN: [char; 19] = [
        '\0',
        '\u{7}',
        '\u{1b}',
        '\u{7f}',
        '\u{80}',
        '\u{9b}',
        '\u{9f}',
        '\u{ad}',
        '\u{61c}',
        '\u{200b}',
        '\u{200e}',
        '\u{200f}',
        '\u{2028}',
        '\u{202a}',
        '\u{202e}',
        '\u{2066}',
        '\u{2069}',
        '\u{feff}',
        '\u{e0041}',
    ];

    #[test]
    fn control_and_hidden_characters_are_escaped() {
        assert_eq!(one_line("a\u{1b}[2Jb\nc\u{202e}d"), "a\\u{1b}[2Jb\\nc\\u{202e}d");
        assert_eq!(lines("a\u{9b}\nb\r\n"), "a\\u{9b}\nb\\r\n");
        for c in HIDDEN {
            let text = format!("a{c}b");
            assert!(
                !one_line(&text).contains(c) && !lines(&text).contains(c) && !json(&text).contains(c),
                "{c:?}"
            );
        }
        let plain = "zażółć 你好 مرحبا 🙂 e\u{301} \u{a0}~";
        assert_eq!((one_line(plain).as_str(), &*json(plain)), (plain, plain));
    }

    #[test]
    fn json_keeps_its_meaning() {
        let texts: Vec<String> = HIDDEN.iter().map(|c| format!("a\"\\{c}")).collect();
        let exact = serde_json::to_string_pretty(&texts).expect("JSON");
        let shown = json(&exact);
        assert_eq!(serde_json::from_str::<Vec<String>>(&shown).expect("JSON"), texts);
        assert_eq!(shown.lines().count(), texts.len() + 2, "its own lines stay");
    }
}
