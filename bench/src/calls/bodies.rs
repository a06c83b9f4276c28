//! The largest inputs of a call, of the kinds that take the longest.

use std::fmt::Write as _;

/// A body has at most this many bytes; this leaves some for what stands around a payload.
const BODY_BYTES: usize = (1 << 20) - 64;
/// The largest number of tags, and the longest ones.
const TAGS: usize = 32;
const TAG_BYTES: usize = 120;

/// A put due in 30 days.
pub(super) fn put(rest: &str) -> String {
    format!("{{\"delay\":\"30d\",{rest}}}")
}

/// Repeats `one` with its number until there are this many bytes; `between` stands between two.
fn many(bytes: usize, between: &str, one: impl Fn(usize) -> String) -> String {
    let mut text = String::with_capacity(bytes);
    for index in 0.. {
        let next = one(index);
        if text.len() + between.len() + next.len() > bytes {
            break;
        }
        if index > 0 {
            text.push_str(between);
        }
        text.push_str(&next);
    }
    text
}

/// Very many short members, each name once.
pub(super) fn names() -> String {
    put(&format!("\"payload\":{{{}}}", many(BODY_BYTES, ",", |index| format!("\"{index:x}\":0"))))
}

/// Very many numbers.
pub(super) fn numbers() -> String {
    put(&format!("\"payload\":[{}]", many(BODY_BYTES, ",", |_| "0".to_owned())))
}

/// One text of escapes.
pub(super) fn escapes() -> String {
    put(&format!("\"payload\":\"{}\"", many(BODY_BYTES, "", |_| "\\u00e9".to_owned())))
}

/// Bytes that are no JSON.
pub(super) fn base64() -> String {
    put(&format!("\"payload_base64\":\"{}\"", "QUJD".repeat(BODY_BYTES / 4)))
}

/// A thousand instants, each with a payload.
pub(super) fn timeline() -> String {
    let moment = |index: usize| {
        format!("{{\"at_ms\":{},\"payload\":\"{}\"}}", 4_000_000_000_000_u64 + index as u64, "x".repeat(980))
    };
    let moments: Vec<String> = (0..1_000).map(moment).collect();
    format!("{{\"timeline\":[{}]}}", moments.join(","))
}

/// A thousand instants without payloads.
pub(super) fn timeline_bare() -> String {
    let moments: Vec<String> =
        (0..1_000_u64).map(|index| format!("{{\"at_ms\":{}}}", 4_000_000_000_000 + index)).collect();
    format!("{{\"timeline\":[{}]}}", moments.join(","))
}

/// Far more tokens than a call takes.
pub(super) fn too_many_tokens() -> String {
    format!("{{\"tokens\":[{}]}}", many(BODY_BYTES, ",", |_| "\"\"".to_owned()))
}

/// As many as it takes.
pub(super) fn tokens(tokens: &[String]) -> String {
    format!("{{\"tokens\":[\"{}\"]}}", tokens.join("\",\""))
}

/// Members that are not known.
pub(super) fn nothing_known() -> String {
    format!("{{{}}}", many(BODY_BYTES, ",", |index| format!("\"{index:x}\":0")))
}

/// The most tags, and the longest.
pub(super) fn tags() -> String {
    let tags: Vec<String> = (0..TAGS).map(|index| format!("\"{index:0>TAG_BYTES$}\"")).collect();
    format!("\"tags\":[{}]", tags.join(","))
}

/// A batch of this many lines, each as `one` writes it.
pub(super) fn batch(lines: usize, one: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for index in 0..lines {
        let _ = writeln!(text, "{}", one(index));
    }
    text
}

/// A line of a batch that puts `body` under a key.
pub(super) fn put_line(key: &str, body: &str) -> String {
    format!("{{\"op\":\"put\",\"key\":\"{key}\",{}", &body[1..])
}

/// The tokens in an answer to `lease`.
pub(super) fn tokens_of(answer: &str) -> Vec<String> {
    let rest = answer.split("\"token\":\"").skip(1);
    rest.map(|rest| rest.split('"').next().unwrap_or_default().to_owned()).collect()
}
