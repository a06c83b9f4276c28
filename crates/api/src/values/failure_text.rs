//! The shape of a failure's text: the part that is the same in all tasks that one cause has killed.

/// The text with everything made `#` that differs from task to task: UUIDs, hexadecimal numbers of eight or more digits, other
/// numbers, and quoted parts. White space becomes single spaces.
///
/// Two numbers stay, because they tell causes apart: the status of an answer, behind `http` (also with a version), `status` or `status code`,
/// and the number of an error of the operating system, behind `os error`.
///
/// ```
/// use tickwheel_api::failure_shape;
///
/// assert_eq!(failure_shape("user 4711: can't open \"a b\" after 1.5 s"), "user #: can't open # after # s");
/// assert_eq!(failure_shape("http 422: order 4711 is unknown"), "http 422: order # is unknown");
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
            Some(length) if tells_a_cause(&shape, &rest[..length]) => shape.push_str(&rest[..length]),
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

/// Whether the number behind this part of a shape says what the cause is. It is decided by the shape and not by the text, so that the shape of a
/// shape is the shape itself.
fn tells_a_cause(shape: &str, number: &str) -> bool {
    let mut words = shape.rsplit([' ', ':', '=', '(']).filter(|word| !word.is_empty());
    let (last, before) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let is = |word: &str, wanted: &[&str]| wanted.iter().any(|wanted| word.eq_ignore_ascii_case(wanted));
    let is_status = is(last, &["http", "http/#", "status", "status_code"])
        || is(last, &["code"]) && is(before, &["status"]);
    let is_of_system = is(last, &["error"]) && is(before, &["os"]);
    let number = number.parse::<u16>();
    number.is_ok_and(|number| is_of_system || is_status && (100..600).contains(&number))
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
            ("  HTTP 503\n from\t10.0.0.1:8080 ", "HTTP 503 from #"),
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

    /// A bug that was found: an order that the receiver will never take (422) and one that it may take tomorrow (500) were one group.
    #[test]
    fn the_status_of_an_answer_and_the_error_of_the_system_stay() {
        for (text, shape) in [
            ("http 422: {\"error\": \"no such order: 4711\"}", "http 422: {#: #}"),
            ("http 500: {\"error\": \"deadlock 4711\"}", "http 500: {#: #}"),
            ("http 503, retry after 5s", "http 503, retry after #s"),
            ("HTTP/1.1 404 Not Found", "HTTP/# 404 Not Found"),
            ("Request failed with status code 429", "Request failed with status code 429"),
            ("Status: 400, order 400", "Status: 400, order #"),
            ("status_code=502", "status_code=502"),
            ("a:8080: Connection refused (os error 111)", "a:#: Connection refused (os error 111)"),
            (
                "a:443: Connection reset by peer (os error 104)",
                "a:#: Connection reset by peer (os error 104)",
            ),
            ("http 1234 and http 99, code 500", "http # and http #, code #"),
            ("error 111 of http 10.0.0.1:500", "error # of http #"),
            ("'http' 500", "# #"),
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
        fn a_shape_that_keeps_numbers_is_its_own_shape(
            texts in proptest::collection::vec(("(http|HTTP/1.1|status|code|os|error|[(:= \"'])? ?(503|5)?", odd()), 0..6)
        ) {
            let text: String = texts.iter().flat_map(|(cause, text)| [cause.as_str(), text]).collect();
            let shape = failure_shape(&text);
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
