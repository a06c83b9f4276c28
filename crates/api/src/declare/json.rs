//! The reader of a JSON object. In a request each known member may stand once, and unknown members are refused by name.

use crate::declare::form::Source;
use crate::text::bad_request::{BadRequest, nearest, shown};
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Maximum nesting of the JSON of a request (levels), the object of the request included.
///
/// 64 levels are far more than programs send, and far fewer than would overflow the stack of a reader.
pub const JSON_DEPTH_MAX: usize = 64;

/// The members that a request may have, and hints for other names.
pub(crate) struct Known {
    /// The index of the member with this name.
    pub(crate) find: fn(&str) -> Option<usize>,
    /// All names, in the order of their declarations.
    pub(crate) names: fn() -> Vec<&'static str>,
    /// Members that the documents announce for a later version. Their refusal says so, instead of calling them misspelt.
    pub(crate) later: &'static [&'static str],
    /// Members that belong elsewhere in the request, each with the right place.
    pub(crate) elsewhere: &'static [(&'static str, &'static str)],
}

/// Reads `bytes` as one object, each value to the index of its member. An empty text, or one of white space, counts as an object without
/// members. The reason is that in most requests every member has a default, and many clients cannot send an empty object.
///
/// `RawValue` keeps the text of each value. So a payload is never re-encoded, and a number is read by the rule of its member, not through a
/// float.
pub(crate) fn read_members<'a>(
    bytes: &'a [u8],
    known: &Known,
    slots: &mut [Option<&'a RawValue>],
) -> Result<(), BadRequest> {
    if bytes.trim_ascii().is_empty() {
        return Ok(());
    }
    check_depth(bytes)?;
    check_object(bytes)?;
    read_object(bytes, known, slots, Source::Request)
}

/// Reads an object whose text was checked as part of another one.
pub(crate) fn read_object<'a>(
    bytes: &'a [u8],
    known: &Known,
    slots: &mut [Option<&'a RawValue>],
    source: Source,
) -> Result<(), BadRequest> {
    let mut refused = None;
    let reader = SlotsReader { known, slots, source, refused: &mut refused };
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let read = reader.deserialize(&mut json).and_then(|()| json.end());
    read.map_err(|error| refused.unwrap_or_else(|| malformed(&error)))
}

/// Reads the object. A [`BadRequest`] is returned through `refused`, because an error of `serde` carries text only.
struct SlotsReader<'s, 'a> {
    known: &'s Known,
    slots: &'s mut [Option<&'a RawValue>],
    source: Source,
    refused: &'s mut Option<BadRequest>,
}

impl<'de> DeserializeSeed<'de> for SlotsReader<'_, 'de> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for SlotsReader<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let known = self.known;
        let source = self.source;
        let place = |name: &str| match (known.find)(name) {
            None if source.is_checked() => Err(known.refusal(name)),
            found => Ok(found),
        };
        while let Some(place) = map.next_key_seed(NameSeed(place))? {
            let refusal = match place {
                Ok(None) => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
                Ok(Some(at)) if self.slots[at].is_some() && source.is_checked() => {
                    BadRequest::member((known.names)()[at], "is given twice", "leave one of them out")
                }
                Ok(Some(at)) => {
                    self.slots[at] = Some(map.next_value()?);
                    continue;
                }
                Err(refusal) => refusal,
            };
            *self.refused = Some(refusal);
            return Err(de::Error::custom("refused"));
        }
        Ok(())
    }
}

impl Known {
    /// The refusal of an unknown member.
    fn refusal(&self, name: &str) -> BadRequest {
        let mut names = (self.names)();
        names.retain(|name| !self.elsewhere.iter().any(|(other, _)| other == name));
        unknown(name, &names, self.later, self.elsewhere)
    }
}

/// Refuses JSON text that is not an object, with a clearer message than that of `serde`.
fn check_object(bytes: &[u8]) -> Result<(), BadRequest> {
    let kind = match bytes.trim_ascii() {
        [b'[', ..] => "an array",
        [b'"', ..] => "a string",
        [b'-' | b'0'..=b'9', ..] => "a number",
        b"true" | b"false" => "a boolean",
        b"null" => "null",
        [0xEF, 0xBB, 0xBF, ..] => {
            return Err(BadRequest::body("begins with a byte order mark", "send UTF-8 without one"));
        }
        _ => return Ok(()),
    };
    Err(BadRequest::body(format!("expected a JSON object, got {kind}"), OBJECT_HINT))
}

const OBJECT_HINT: &str = "send one JSON object in UTF-8, such as `{\"delay\": \"30m\"}`";

/// Refuses nesting beyond [`JSON_DEPTH_MAX`] before anything else reads the text.
///
/// `RawValue` skips values without counting levels. Without this check, a payload of a million brackets would be
/// accepted and would overflow the stack of the first recursive reader. Costs one pass and no allocation; text
/// that is not JSON is left to the parser.
pub(crate) fn check_depth(bytes: &[u8]) -> Result<(), BadRequest> {
    match too_deep_at(bytes, JSON_DEPTH_MAX) {
        None => Ok(()),
        Some(at) => Err(BadRequest::body(
            format!("nests deeper than {JSON_DEPTH_MAX} levels at byte {at}"),
            "flatten it, or send deeper data as `payload_base64`",
        )),
    }
}

/// The offset of the byte at which `bytes` nests deeper than `depth_max`, if there is one.
pub(crate) fn too_deep_at(bytes: &[u8], depth_max: usize) -> Option<usize> {
    // The depth is at most the number of opening brackets. Counting them is many times faster than pairing them.
    if opening_brackets(bytes) <= depth_max {
        return None;
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, byte) in bytes.iter().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                if depth > depth_max {
                    return Some(at);
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// Number of opening brackets, those in strings included. The count of a chunk of 128 bytes fits into a byte, so that vector units can add them up.
fn opening_brackets(bytes: &[u8]) -> usize {
    let in_chunk = |chunk: &[u8]| chunk.iter().map(|byte| u8::from(matches!(byte, b'{' | b'['))).sum::<u8>();
    bytes.chunks(128).map(|chunk| usize::from(in_chunk(chunk))).sum()
}

/// The refusal of text that is not JSON.
pub(crate) fn malformed(error: &serde_json::Error) -> BadRequest {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let why = text.strip_suffix(&place).unwrap_or(&text);
    // Line 1 is not mentioned, because lines of a batch or replay have a number of their own, and a second number would confuse.
    let at = match error.line() {
        0 => String::new(),
        1 => format!(" at column {}", error.column()),
        _ => place,
    };
    BadRequest::body(format!("is not JSON: {}{at}", shown_reason(why)), OBJECT_HINT)
}

/// Limits the length of a reason of `serde_json`, which quotes strings of the input in full.
fn shown_reason(why: &str) -> String {
    let mut reason: String = why.chars().filter(|c| !c.is_control()).take(160).collect();
    if reason.len() < why.len() {
        reason.push('…');
    }
    reason
}

fn unknown(name: &str, known: &[&str], later: &[&str], elsewhere: &[(&str, &str)]) -> BadRequest {
    if later.contains(&name) {
        return BadRequest::member(name, "is not supported by this version", "leave it out");
    }
    if let Some((_, place)) = elsewhere.iter().find(|(other, _)| *other == name) {
        return BadRequest::member(name, "is not a member of this request", *place);
    }
    let hint = match nearest(name, known) {
        Some(close) => format!("did you mean `{close}`?"),
        None => format!("it may have {}", list(known)),
    };
    BadRequest::member(shown(name), "is not a member of this request", hint)
}

/// The names as a list for a hint: `` `a`, `b` and `c` ``.
pub(crate) fn list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => "no members".to_owned(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

/// The text of the member `name` of a refused object, so that the refusal can name the object. `None` if the
/// text is not JSON, nests too deep, or has no such member that is a string.
pub(crate) fn find_text(bytes: &[u8], name: &str) -> Option<String> {
    struct Finder<'n>(&'n str);
    impl<'de> Visitor<'de> for Finder<'_> {
        type Value = Option<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a JSON object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<String>, A::Error> {
            let mut found = None;
            while let Some(name) = map.next_key::<Cow<'de, str>>()? {
                if name == self.0 && found.is_none() {
                    let raw: &RawValue = map.next_value()?;
                    found = serde_json::from_str::<String>(raw.get()).ok();
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(found)
        }
    }
    check_depth(bytes).ok()?;
    let mut json = serde_json::Deserializer::from_slice(bytes);
    de::Deserializer::deserialize_map(&mut json, Finder(name)).ok().flatten()
}

/// Writes a value of this crate as JSON. Writing cannot fail: the keys are text, and the target is memory.
pub(crate) fn write(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("types of this crate have string keys and write into memory")
}

/// Reads the name of a member without copying it.
struct NameSeed<F>(F);

impl<'de, T, F: FnOnce(&str) -> T> DeserializeSeed<'de> for NameSeed<F> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl<T, F: FnOnce(&str) -> T> Visitor<'_> for NameSeed<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<T, E> {
        Ok(self.0(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NAMES: [&str; 3] = ["delay", "at", "payload"];
    const KNOWN: Known = Known {
        find: |name| NAMES.iter().position(|known| *known == name),
        names: || NAMES.to_vec(),
        later: &["tags"],
        elsewhere: &[("mode", "it is a query parameter: `?mode=create`")],
    };

    fn read(bytes: &[u8]) -> Result<[Option<&RawValue>; 3], BadRequest> {
        let mut slots = [None; 3];
        read_members(bytes, &KNOWN, &mut slots)?;
        Ok(slots)
    }

    fn refused(text: &str) -> (String, String) {
        let refused = read(text.as_bytes()).expect_err(text);
        (refused.to_string(), refused.hint)
    }

    #[test]
    fn empty_bodies_have_no_members() {
        for text in ["", "  \r\n", "{}", " { } "] {
            let slots = read(text.as_bytes()).expect(text);
            assert!(slots.iter().all(Option::is_none), "{text}");
        }
    }

    #[test]
    fn values_are_kept_to_the_byte() {
        let text = br#" {"payload" : {"b":1.0, "a":1e999,"b":"\ud800"} , "d\u0065lay":"1s"}"#;
        let [delay, at, payload] = read(text).expect("known members").map(|slot| slot.map(RawValue::get));
        assert_eq!(payload, Some(r#"{"b":1.0, "a":1e999,"b":"\ud800"}"#));
        assert_eq!((delay, at), (Some("\"1s\""), None));
    }

    #[test]
    fn refusals_name_the_member() {
        for (text, what, hint) in [
            (r#"{"dealy":1}"#, "`dealy`: is not a member of this request", "did you mean `delay`?"),
            (
                r#"{"zzz":1}"#,
                "`zzz`: is not a member of this request",
                "it may have `delay`, `at` and `payload`",
            ),
            (r#"{"tags":[]}"#, "`tags`: is not supported by this version", "leave it out"),
            (
                r#"{"mode":1}"#,
                "`mode`: is not a member of this request",
                "it is a query parameter: `?mode=create`",
            ),
            (r#"{"at":1,"d\u0065lay":1,"delay":2}"#, "`delay`: is given twice", "leave one of them out"),
            (
                r#"{"a\nb":1}"#,
                "`a\\nb`: is not a member of this request",
                "it may have `delay`, `at` and `payload`",
            ),
        ] {
            assert_eq!(refused(text), (what.to_owned(), hint.to_owned()));
        }
    }

    #[test]
    fn text_that_is_not_one_object() {
        for (text, what) in [
            ("[]", "the body: expected a JSON object, got an array"),
            ("\"x\"", "the body: expected a JSON object, got a string"),
            ("17", "the body: expected a JSON object, got a number"),
            ("null", "the body: expected a JSON object, got null"),
            ("nul", "the body: is not JSON: EOF while parsing a value at column 3"),
            ("{", "the body: is not JSON: EOF while parsing an object at column 1"),
            ("{}{}", "the body: is not JSON: trailing characters at column 3"),
            ("{\n\"at\":1,\n}", "the body: is not JSON: trailing comma at line 3 column 1"),
            ("\u{feff}{}", "the body: begins with a byte order mark"),
            ("{\"at\":NaN}", "the body: is not JSON: expected value at column 7"),
        ] {
            assert_eq!(refused(text).0, what);
        }
        let not_utf8 = read(b"{\"payload\":\"\xff\"}").expect_err("not UTF-8");
        assert_eq!(not_utf8.to_string(), "the body: is not JSON: invalid unicode code point at column 13");
        let long = read(format!("{{\"at\":x{}}}", "x".repeat(10_000)).as_bytes()).expect_err("no value");
        assert!(long.what.len() < 300, "{}", long.what.len());
    }

    #[test]
    fn nesting_stops_at_its_limit() {
        let nested =
            |levels: usize| format!("{{\"payload\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        read(nested(JSON_DEPTH_MAX).as_bytes()).expect("64 levels are allowed");
        for text in [
            nested(JSON_DEPTH_MAX + 1),
            nested(1_000_000),
            "[".repeat(1_000_000),
            "{\"a\":".repeat(1_000_000),
        ] {
            assert!(refused(&text).0.starts_with("the body: nests deeper than 64 levels at byte "));
        }
        let brackets_in_text = format!(r#"{{"payload":"\"{}"}}"#, "[".repeat(1_000));
        read(brackets_in_text.as_bytes()).expect("brackets in a string are text");
        let side_by_side = format!("{{\"payload\":[{}[]]}}", "[],".repeat(1_000));
        read(side_by_side.as_bytes()).expect("many, but not deep");
    }

    #[test]
    fn find_text_of_a_refused_object() {
        assert_eq!(find_text(br#"{"zzz":[1],"key":"a\u00e9","key":"b"}"#, "key"), Some("aé".to_owned()));
        assert_eq!(find_text(br#"{"key":7}"#, "key"), None);
        assert_eq!(find_text(br#"{"key":"a","#, "key"), None);
        assert_eq!(find_text(b"[]", "key"), None);
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64), close in r#"[\[\]{}",:a-z0-9\\ ]{0,40}"#) {
            for bytes in [bytes.as_slice(), close.as_bytes()] {
                let _ = read(bytes);
                let _ = find_text(bytes, "key");
            }
        }
    }
}
