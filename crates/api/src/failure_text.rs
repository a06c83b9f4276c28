//! The shape of a failure's text: the part that is the same in all tasks that one cause has killed.

/// The text with everything made `#` that differs from task to task: UUIDs, hexadecimal numbers of eight or more digits, other
/// numbers, and quoted parts. White space becomes single spaces.
///
/// ```
/// use tickwheel_api::failure_shape;
///
/// assert_eq!(failure_shape("user 4711: can't open \"a b\" after 1.5 s"), "user #: can't open # after # s");
/// ```
#[must_use]
pub fn failure_shape(text: &str) -> String {
    let mut shape = String::with_capacity(text.len());
    let mut before = None;
    // Quotes that have no end in the rest, so that a text with many of them is not searched again for each.
    let mut unclosed = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let differing = uuid(rest)
            .or_else(|| quoted(rest, first, before, &mut unclosed))
            .or_else(|| hexadecimal(rest, before))
            .or_else(|| number(rest));
        match differing {
            Some(_) => shape.push('#'),
            None if !first.is_whitespace() => shape.push(first),
            None if !shape.is_empty() && !shape.ends_with(' ') => shape.push(' '),
            None => {}
        }
        let (gone, left) = rest.split_at(differing.unwrap_or(first.len_utf8()));
        (before, rest) = (gone.chars().next_back(), left);
    }
    shape.truncate(shape.trim_end().len());
    shape
}

/// The length of the UUID at the beginning.
fn uuid(text: &str) -> Option<usize> {
    const LENGTH: usize = 36;
    let bytes = text.as_bytes().get(..LENGTH)?;
    let fits = bytes.iter().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    fits.then_some(LENGTH)
}

/// The length of the quoted part at the beginning. A quote inside a word, as in `can't`, begins and ends nothing.
fn quoted(text: &str, quote: char, before: Option<char>, unclosed: &mut String) -> Option<usize> {
    // A part that has become `#` counts as a word, so that the shape of a shape is the shape itself.
    let is_of_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '#');
    if !matches!(quote, '"' | '\'' | '`') || is_of_word(before) || unclosed.contains(quote) {
        return None;
    }
    let inner = &text[1..];
    let mut ends = inner.match_indices(quote).map(|(at, _)| at);
    let end = ends.find(|at| !is_of_word(inner[at + 1..].chars().next()));
    if end.is_none() {
        unclosed.push(quote);
    }
    end.map(|at| at + 2)
}

/// The length of the hexadecimal number at the beginning: a whole word of eight or more digits, one of which is decimal.
fn hexadecimal(text: &str, before: Option<char>) -> Option<usize> {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    if before.is_some_and(is_of_word) {
        return None;
    }
    let word = &text[..text.find(|c| !is_of_word(c)).unwrap_or(text.len())];
    let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")).unwrap_or(word);
    let fits = digits.len() >= 8
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && digits.bytes().any(|byte| byte.is_ascii_digit());
    fits.then_some(word.len())
}

/// The length of the number at the beginning: digits, also in groups as in `1.5`, `12:30` and `10.0.0.1`.
fn number(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = digits(0);
    if end == 0 {
        return None;
    }
    while bytes.get(end).is_some_and(|byte| b".,:".contains(byte)) {
        match digits(end + 1) {
            0 => break,
            more => end += 1 + more,
        }
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_that_differ_from_task_to_task_are_made_one_sign() {
        for (text, shape) in [
            ("", ""),
            ("card refused", "card refused"),
            ("  HTTP 503\n from\t10.0.0.1:8080 ", "HTTP # from #"),
            ("order 7f3c2b1a-0000-4000-8000-0123456789ab is gone", "order # is gone"),
            ("no row \"a 'b' c\" in `t`", "no row # in #"),
            ("can't open 'my file', don't retry", "can't open #, don't retry"),
            ("an unclosed \"quote 7", "an unclosed \"quote #"),
            ("\"a 'b \"c 'd' `e", "\"a # `e"),
            ("'a' \"b 'c d' \"e", "# \"b # \"e"),
            ("trace 0xdeadbeef01 and cafebabe12", "trace # and #"),
            ("the facade deadbeef stays", "the facade deadbeef stays"),
            ("at 12:30:05,5 in utf8", "at # in utf#"),
            ("Ü 5€ “7”", "Ü #€ “#”"),
        ] {
            assert_eq!(failure_shape(text), shape, "{text:?}");
        }
    }

    /// Texts in which quotes, digits, words and white space meet.
    fn odd() -> impl Strategy<Value = String> {
        "([a-f0-9x]{1,9}|[\"'`#_. :,-]|can't|\\n|0x|ü|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}){0,12}"
    }

    fn word() -> impl Strategy<Value = String> {
        "[g-z]{1,8}"
    }

    proptest! {
        #[test]
        fn a_shape_has_no_digits_and_is_its_own_shape(text in prop_oneof![odd(), any::<String>()]) {
            let shape = failure_shape(&text);
            prop_assert!(!shape.bytes().any(|byte| byte.is_ascii_digit()), "{:?}", shape);
            prop_assert!(shape.len() <= text.len(), "{:?} is longer than {:?}", shape, text);
            prop_assert_eq!(failure_shape(&shape), shape);
        }

        #[test]
        fn numbers_and_quoted_parts_make_no_difference(
            words in (word(), word(), word()),
            (number, other) in any::<(u32, u32)>(),
            (id, other_id) in any::<(u128, u128)>(),
            (quoted, other_quoted) in ("[^\"]{0,9}", "[^\"]{0,9}"),
        ) {
            let text = |number: u32, id: u128, quoted: &str| {
                let id = format!("{id:032x}");
                let uuid = format!("{}-{}-{}-{}-{}", &id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]);
                format!("{} {number} {} \"{quoted}\" {uuid} {}", words.0, words.1, words.2)
            };
            let shape = failure_shape(&text(number, id, &quoted));
            prop_assert_eq!(&shape, &failure_shape(&text(other, other_id, &other_quoted)));
            prop_assert_eq!(shape, format!("{} # {} # # {}", words.0, words.1, words.2));
        }

        #[test]
        fn words_alone_stay_as_they_are(words in proptest::collection::vec(word(), 1..6)) {
            let text = words.join(" ");
            prop_assert_eq!(failure_shape(&text), text);
        }
    }
}
