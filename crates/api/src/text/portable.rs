//! The check for JSON that all readers can read.
//!
//! The grammar of JSON allows more than most readers do: numbers beyond the range of a float, half surrogate pairs, a member given twice.
//! If a payload had one of these, a worker could never read the answer that contains it. So the server refuses the payload at the put.

use crate::text::bad_request::{BadRequest, shown_bytes};
use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};

use memchr::memchr2;

/// Maximum integer in a request: 2^53. Up to there every JSON reader keeps integers exact.
pub const INTEGER_MAX: u64 = 1 << 53;

/// Maximum number of digits of a number. Some readers refuse longer numbers, or take seconds to read them.
const DIGITS_MAX: usize = 1_000;
/// Approximate maximum length of the path in a refusal (bytes).
const PATH_BYTES_MAX: usize = 256;

/// Why some readers cannot read a text that is valid JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The path of the member or element inside the text, such as `.a[3]`; empty for the outermost value.
    pub(crate) path: String,
    /// The fault, and its byte in the text.
    pub(crate) what: String,
}

impl Fault {
    /// The refusal of the member `member`, whose value is the checked text.
    pub(crate) fn refusal(self, member: &str) -> BadRequest {
        const HINT: &str = "send numbers beyond 64-bit floats as strings, whole characters, and each member once; \
            or start the server with --lax-json if all workers of the queue can read it";
        BadRequest::member(format!("{member}{}", self.path), self.what, HINT)
    }
}

/// The first fault of `json`, in the order of the text. If a member is given twice, the fault is found at the end of its object.
///
/// `json` must not nest deeply. For text that is not JSON the result means nothing. The check is one pass. It allocates memory for the
/// nesting levels and for the names in the open objects. It costs at most O(n log n): names are compared by a hash with a random key, so a
/// caller cannot choose names with equal hashes.
pub(crate) fn fault(json: &[u8]) -> Option<Fault> {
    let mut walk = Walk { json, levels: Vec::new(), names: Vec::new(), key: None };
    walk.run().err()
}

struct Walk<'a> {
    json: &'a [u8],
    /// The objects and arrays around the current byte, the outermost first.
    levels: Vec<Level>,
    /// The names of the members so far of these objects.
    names: Vec<Name>,
    key: Option<RandomState>,
}

enum Level {
    Array {
        index: usize,
    },
    Object {
        /// The index in `names` of the first name of this object.
        first: usize,
        /// Whether the next text is a name.
        wants_name: bool,
    },
}

/// The name of a member: its offsets in the text, without the quotes.
#[derive(Copy, Clone)]
struct Name {
    hash: u64,
    from: usize,
    to: usize,
}

impl Walk<'_> {
    fn run(&mut self) -> Result<(), Fault> {
        let mut at = 0;
        while let Some(byte) = self.json.get(at) {
            match byte {
                b'"' => {
                    at = self.text(at)?;
                    continue;
                }
                b'-' | b'0'..=b'9' => {
                    at = self.number(at)?;
                    continue;
                }
                b'{' => self.levels.push(Level::Object { first: self.names.len(), wants_name: true }),
                b'[' => self.levels.push(Level::Array { index: 0 }),
                b'}' | b']' => self.close()?,
                b',' => match self.levels.last_mut() {
                    Some(Level::Array { index }) => *index += 1,
                    Some(Level::Object { wants_name, .. }) => *wants_name = true,
                    None => {}
                },
                _ => {}
            }
            at += 1;
        }
        Ok(())
    }

    /// Reads the string that begins at `from`. Returns the offset of its end.
    fn text(&mut self, from: usize) -> Result<usize, Fault> {
        let mut at = from + 1;
        loop {
            let rest = self.json.get(at..).unwrap_or_default();
            let Some(plain) = memchr2(b'"', b'\\', rest) else { return Ok(self.json.len()) };
            at += plain;
            if self.json[at] == b'"' {
                break;
            }
            at = self.escape(at)?;
        }
        if let Some(Level::Object { wants_name: wants_name @ true, .. }) = self.levels.last_mut() {
            *wants_name = false;
            let hash = self.hash(&self.json[from + 1..at]);
            self.names.push(Name { hash, from: from + 1, to: at });
        }
        Ok(at + 1)
    }

    /// Reads the escape that begins at `at`; two halves of a surrogate pair count as one escape. Returns the offset of its end.
    fn escape(&self, at: usize) -> Result<usize, Fault> {
        let half = |at: usize| hex4(self.json.get(at..at + 6)?);
        match half(at) {
            Some(0xD800..=0xDBFF) if matches!(half(at + 6), Some(0xDC00..=0xDFFF)) => Ok(at + 12),
            Some(0xD800..=0xDFFF) => {
                let shown = shown_bytes(&self.json[at..at + 6]);
                Err(self
                    .broken(format!("`{shown}` at byte {at} is half of a surrogate pair and no character")))
            }
            Some(_) => Ok(at + 6),
            None => Ok(at + 2),
        }
    }

    /// Reads the number that begins at `from`. Returns the offset of its end.
    fn number(&self, from: usize) -> Result<usize, Fault> {
        let rest = &self.json[from..];
        let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
        let number = &rest[..rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len())];
        if number.len() > DIGITS_MAX {
            let digits = number.iter().filter(|byte| byte.is_ascii_digit()).count();
            if digits > DIGITS_MAX {
                let what = format!("a number at byte {from} has {digits} digits, the limit is {DIGITS_MAX}");
                return Err(self.broken(what));
            }
        }
        if may_be_beyond(number) && !is_finite(number) {
            let what =
                format!("`{}` at byte {from} is beyond what a 64-bit float holds", shown_bytes(number));
            return Err(self.broken(what));
        }
        Ok(from + number.len())
    }

    /// Handles the end of an object or an array.
    fn close(&mut self) -> Result<(), Fault> {
        let Some(Level::Object { first, .. }) = self.levels.pop() else { return Ok(()) };
        if self.names.len() - first > 1 {
            self.names[first..].sort_unstable_by_key(|name| (name.hash, name.from));
            if let Some(second) = self.second(&self.names[first..]) {
                self.names.truncate(first);
                let shown = shown_bytes(&self.json[second.from..second.to]);
                let mut fault = self.broken(format!("`{shown}` at byte {} is given twice", second.from - 1));
                self.put_name(&mut fault.path, second);
                return Err(fault);
            }
        }
        self.names.truncate(first);
        Ok(())
    }

    /// The first name in the text that repeats an earlier one. `names` is sorted by hash.
    fn second(&self, names: &[Name]) -> Option<Name> {
        let runs = names.chunk_by(|a, b| a.hash == b.hash).filter(|run| run.len() > 1);
        // Names with one hash are almost always equal, because a caller does not know the key. To be exact, each is compared with the one before it.
        let twice = runs.flat_map(|run| run.windows(2)).filter(|pair| self.same(pair[0], pair[1]));
        twice.map(|pair| pair[1]).min_by_key(|name| name.from)
    }

    fn same(&self, a: Name, b: Name) -> bool {
        unescaped(&self.json[a.from..a.to]).eq(unescaped(&self.json[b.from..b.to]))
    }

    fn hash(&mut self, name: &[u8]) -> u64 {
        let key = self.key.get_or_insert_with(RandomState::new);
        if !name.contains(&b'\\') {
            return key.hash_one(name);
        }
        let mut plain = Vec::with_capacity(name.len());
        unescaped(name).for_each(|c| plain.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()));
        key.hash_one(&plain[..])
    }

    /// A fault at the current byte.
    fn broken(&self, what: String) -> Fault {
        let mut steps = Vec::new();
        let mut end = self.names.len();
        for level in self.levels.iter().rev() {
            match level {
                Level::Array { index } => steps.push(Err(*index)),
                Level::Object { first, wants_name } => {
                    if !wants_name && end > *first {
                        steps.push(Ok(self.names[end - 1]));
                    }
                    end = *first;
                }
            }
        }
        let mut path = String::new();
        for step in steps.into_iter().rev() {
            match step {
                _ if path.len() > PATH_BYTES_MAX => {
                    path.push('…');
                    break;
                }
                Err(index) => write!(path, "[{index}]").expect("a text takes all"),
                Ok(name) => self.put_name(&mut path, name),
            }
        }
        Fault { path, what }
    }

    fn put_name(&self, path: &mut String, name: Name) {
        let name = &self.json[name.from..name.to];
        let is_plain =
            !name.is_empty() && name.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
        let shown = shown_bytes(name);
        let written = if is_plain { write!(path, ".{shown}") } else { write!(path, "[\"{shown}\"]") };
        written.expect("a text takes all");
    }
}

/// The number of an escape `\uXXXX`.
fn hex4(escape: &[u8]) -> Option<u32> {
    let digits = escape.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |sum, digit| Some(sum << 4 | char::from(*digit).to_digit(16)?))
}

/// Whether a number may be beyond the range of a 64-bit float. If this quick test says no, the exact test is not needed.
fn may_be_beyond(number: &[u8]) -> bool {
    match number.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        None => number.len() > 300,
        Some(at) => {
            at > 200 || number.len() - at > 4 || number.len() - at == 4 && number[at + 1].is_ascii_digit()
        }
    }
}

fn is_finite(number: &[u8]) -> bool {
    std::str::from_utf8(number).ok().and_then(|text| text.parse::<f64>().ok()).is_none_or(f64::is_finite)
}

/// The characters of a string, given without its quotes.
fn unescaped(text: &[u8]) -> impl Iterator<Item = char> {
    let mut chars = std::str::from_utf8(text).unwrap_or("").chars();
    std::iter::from_fn(move || {
        let c = chars.next()?;
        if c != '\\' {
            return Some(c);
        }
        let hex = |chars: &mut std::str::Chars<'_>| {
            let digits: u32 = (0..4).try_fold(0, |sum, _| Some(sum << 4 | chars.next()?.to_digit(16)?))?;
            Some(digits)
        };
        match chars.next()? {
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'u' => {
                let high = hex(&mut chars)?;
                let code = match high {
                    0xD800..=0xDBFF => {
                        chars.nth(1)?;
                        0x1_0000 + ((high - 0xD800) << 10) + hex(&mut chars)?.checked_sub(0xDC00)?
                    }
                    code => code,
                };
                char::from_u32(code)
            }
            other => Some(other),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
    use std::collections::HashSet;
    use std::fmt;

    fn found(json: &str) -> Option<(String, String)> {
        fault(json.as_bytes()).map(|fault| (fault.path, fault.what))
    }

    #[test]
    fn what_every_reader_takes_passes() {
        for json in [
            "null",
            "0",
            "-0.0e-0",
            "1e308",
            "-1.7976931348623157e308",
            "1e-400",
            "123456789012345678901234567890",
            r#""\ud83d\ude00 \u00e9 \\ud800 \" \n""#,
            r#"{"a":{"a":[{"a":1},{"a":2}]},"b":{"a":3},"":0,"\\":1,"\"":2}"#,
            "[[],{},[1,[2]],\"a\",\"a\"]",
            r#"{"a":"b","b":"a"}"#,
        ] {
            assert_eq!(found(json), None, "{json}");
        }
        assert_eq!(found(&"1".repeat(308)), None);
        assert_eq!(found(&format!("0.{}", "1".repeat(999))), None);
    }

    #[test]
    fn faults_have_their_places() {
        let pair = "half of a surrogate pair and no character";
        for (json, path, what) in [
            ("1e400", "", "`1e400` at byte 0 is beyond what a 64-bit float holds"),
            ("[0, -1E+309]", "[1]", "`-1E+309` at byte 4 is beyond what a 64-bit float holds"),
            (
                r#"{"a":{"b c":[1,{"d":1e999}]}}"#,
                r#".a["b c"][1].d"#,
                "`1e999` at byte 20 is beyond what a 64-bit float holds",
            ),
            (r#""\ud800""#, "", &format!("`\\ud800` at byte 1 is {pair}")),
            (r#"["x\udc00\ud800"]"#, "[0]", &format!("`\\udc00` at byte 3 is {pair}")),
            (r#"{"a":["\ud800\u0041"]}"#, ".a[0]", &format!("`\\ud800` at byte 7 is {pair}")),
            (r#"{"a":1,"x":{"\ud800":1}}"#, ".x", &format!("`\\ud800` at byte 13 is {pair}")),
            (r#"{"a":1,"a":2}"#, ".a", "`a` at byte 7 is given twice"),
            (
                r#"{"x":[0,{"a":1,"b":{},"\u0061":2,"b":1}]}"#,
                r#".x[1]["\u0061"]"#,
                r"`\u0061` at byte 22 is given twice",
            ),
            (r#"{"\ud83d\ude00":1,"😀":2}"#, r#"["😀"]"#, "`😀` at byte 18 is given twice"),
            (r#"{"":1,"":2,"":3}"#, r#"[""]"#, "`` at byte 6 is given twice"),
            (r#"{"a\/b":1,"a/b":2}"#, r#"["a/b"]"#, "`a/b` at byte 10 is given twice"),
        ] {
            assert_eq!(found(json), Some((path.to_owned(), what.to_owned())), "{json}");
        }
        let long = |digits: usize| found(&"9".repeat(digits)).map(|(_, what)| what).unwrap_or_default();
        assert!(long(309).contains("is beyond"), "{}", long(309));
        assert_eq!(long(1_001), "a number at byte 0 has 1001 digits, the limit is 1000");
        let small = format!("0.{}", "0".repeat(1_000));
        assert!(found(&small).is_some_and(|(_, what)| what.contains("1001 digits")));
        let deep = format!("{}1e999{}", "{\"abcdefgh\":".repeat(60), "}".repeat(60));
        let (path, _) = found(&deep).expect("a fault");
        assert!(path.len() < 400 && path.ends_with('…'), "{path}");
    }

    #[test]
    fn many_members_are_told_apart() {
        let members: Vec<String> = (0..100_000).map(|n| format!("\"{n:x}\":1")).collect();
        assert_eq!(found(&format!("{{{}}}", members.join(","))), None);
        let again = format!("{{{},\"1869f\":2}}", members.join(","));
        assert_eq!(found(&again).map(|(path, _)| path), Some(".1869f".to_owned()));
    }

    /// A reader as strict as most are: the value of serde, and no member twice.
    struct Strict;

    impl<'de> Deserialize<'de> for Strict {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(Reader).map(|()| Self)
        }
    }

    struct Reader;

    impl<'de> Visitor<'de> for Reader {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("JSON")
        }

        fn visit_unit<E>(self) -> Result<(), E> {
            Ok(())
        }

        fn visit_bool<E>(self, _: bool) -> Result<(), E> {
            Ok(())
        }

        fn visit_u64<E>(self, _: u64) -> Result<(), E> {
            Ok(())
        }

        fn visit_i64<E>(self, _: i64) -> Result<(), E> {
            Ok(())
        }

        fn visit_f64<E>(self, _: f64) -> Result<(), E> {
            Ok(())
        }

        fn visit_str<E>(self, _: &str) -> Result<(), E> {
            Ok(())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
            while seq.next_element::<Strict>()?.is_some() {}
            Ok(())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            let mut names = HashSet::new();
            while let Some((name, Strict)) = map.next_entry::<String, Strict>()? {
                if !names.insert(name) {
                    return Err(de::Error::custom("given twice"));
                }
            }
            Ok(())
        }
    }

    fn json() -> impl Strategy<Value = String> {
        let text = r#"([ab]|\\u0061|\\/|\\\\|\\"|\\ud83d|\\ude00|\\ud83d\\ude00|\\n|é){0,3}"#;
        let quoted = move || text.prop_map(|text| format!("\"{text}\""));
        let number = r"-?(0|[1-9][0-9]{0,2}|9{300,320})(\.[0-9]{1,3})?([eE][+-]?(0?[0-9]{1,3}))?";
        let leaf = prop_oneof![
            3 => number,
            4 => quoted(),
            1 => Just("null".to_owned()),
            1 => Just("true".to_owned()),
        ];
        leaf.prop_recursive(4, 40, 5, move |inner| {
            let member = (quoted(), inner.clone()).prop_map(|(name, value)| format!("{name} : {value}"));
            prop_oneof![
                prop::collection::vec(inner, 0..5).prop_map(|all| format!("[ {} ]", all.join(" ,\n"))),
                prop::collection::vec(member, 0..5).prop_map(|all| format!("{{{}}}", all.join(", "))),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn it_refuses_what_a_strict_reader_refuses(json in json()) {
            let strict = serde_json::from_str::<Strict>(&json).is_ok();
            prop_assert_eq!(fault(json.as_bytes()).is_none(), strict, "{}", json);
        }

        #[test]
        fn it_never_panics(
            close in r#"[\[\]{}",:a-z0-9\\uD8.e+ -]{0,40}"#,
            bytes in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let _ = fault(close.as_bytes());
            let _ = fault(&bytes);
        }
    }
}
