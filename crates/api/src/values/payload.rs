//! The payload of a task: bytes and their content type. On the wire it is JSON or base64.

use crate::declare::json::{JSON_DEPTH_MAX, malformed, too_deep_at};
use crate::declare::schema::{Member, any, may, text};
use crate::declare::{FieldCodec, Form, RawMembers, Reader, Source, value};
use crate::text::bad_request::{BadRequest, shown};
use crate::text::portable;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::SerializeMap;
use serde_json::json;
use serde_json::value::RawValue;

/// The content type of a payload sent as the member `payload`.
pub const CONTENT_TYPE_JSON: &str = "application/json";

/// The content type of a `payload_base64` sent without `content_type`.
pub const CONTENT_TYPE_OCTETS: &str = "application/octet-stream";

/// Maximum length of a content type (bytes): two registered names of the maximum length, 127, and the slash.
pub const CONTENT_TYPE_BYTES_MAX: usize = 255;

/// Maximum length of a content type in an export (bytes).
const ANY_CONTENT_TYPE_BYTES_MAX: usize = 4_096;

/// The payload of a task.
///
/// A JSON payload is the member `payload` on the wire; any other is `payload_base64` with `content_type`. JSON
/// is kept byte for byte: white space, the order of members, `1.0` and `1e2` come back as they were sent.
///
/// The payload of a task without one is the JSON `null`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadBody {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The content type, such as `application/json` or `image/png`.
    pub content_type: String,
}

impl Default for PayloadBody {
    /// The JSON `null`, the payload of a task that was put without one.
    fn default() -> Self {
        Self::json(b"null".to_vec())
    }
}

impl PayloadBody {
    /// A payload that is JSON text. Bytes that are not JSON are written as base64, see [`as_json`](Self::as_json).
    pub fn json(bytes: Vec<u8>) -> Self {
        Self { bytes, content_type: CONTENT_TYPE_JSON.to_owned() }
    }

    /// The payload as JSON, if it can stand in a JSON answer as the member `payload` and come back as the
    /// same bytes.
    ///
    /// `None` unless the content type is `application/json`, the bytes are exactly one JSON value without
    /// white space around it, the value nests no deeper than a request may, and all readers can read it (see
    /// [`check_portable`](Self::check_portable)). The check is needed because a program that embeds the queue can store any
    /// bytes under any content type, and an answer must be JSON that each client can read. Costs two passes over the bytes.
    pub fn as_json(&self) -> Option<&RawValue> {
        self.as_any_json().filter(|json| portable::fault(json.get().as_bytes()).is_none())
    }

    /// As [`as_json`](Self::as_json), for readers that read whatever follows the grammar.
    fn as_any_json(&self) -> Option<&RawValue> {
        // The object of the answer around the payload takes one level.
        if self.content_type != CONTENT_TYPE_JSON || too_deep_at(&self.bytes, JSON_DEPTH_MAX - 1).is_some() {
            return None;
        }
        let raw: &RawValue = serde_json::from_slice(&self.bytes).ok()?;
        (raw.get().len() == self.bytes.len()).then_some(raw)
    }

    /// Refuses a payload that is valid JSON but that some readers cannot read: a number beyond the range of a 64-bit float or with more than 1,000
    /// digits, half a surrogate pair, a member given twice. A payload that is delivered as base64 may have any bytes.
    ///
    /// # Errors
    ///
    /// The error names the first such place, by path and byte.
    pub fn check_portable(&self) -> Result<(), BadRequest> {
        if self.content_type != CONTENT_TYPE_JSON || too_deep_at(&self.bytes, JSON_DEPTH_MAX - 1).is_some() {
            return Ok(());
        }
        // Nearly all payloads have no fault. The check that the bytes are valid JSON is made only for those that have one.
        let fault = portable::fault(&self.bytes).filter(|_| self.as_any_json().is_some());
        fault.map_or(Ok(()), |fault| Err(fault.refusal("payload")))
    }
}

/// Refuses a payload of the content type `application/json` that is not JSON, or that some readers cannot read. Any other content type may have any
/// bytes.
///
/// Unlike [`PayloadBody::check_portable`], it also refuses bytes that are not JSON at all: it is the check for a payload that comes by another way
/// than a request.
///
/// # Errors
///
/// The error names the first fault, by path and byte.
pub fn check_payload(content_type: &str, bytes: &[u8]) -> Result<(), BadRequest> {
    if content_type != CONTENT_TYPE_JSON {
        return Ok(());
    }
    check_grammar(bytes)?;
    portable::fault(bytes).map_or(Ok(()), |fault| Err(fault.refusal("payload")))
}

/// Refuses a payload that does not follow the grammar of JSON.
fn check_grammar(bytes: &[u8]) -> Result<(), BadRequest> {
    serde_json::from_slice::<&RawValue>(bytes).map(|_| ()).map_err(|error| {
        let BadRequest { what, hint, .. } = malformed(&error);
        BadRequest::member("payload", what, hint)
    })
}

/// The members that carry a payload, in requests.
pub(crate) fn payload() -> Payload {
    Payload { content_type: content_type_text, members: in_requests, count: NAMES.len() - 1 }
}

/// The members that carry a payload, in bodies that are part of requests and of answers. A request with `payload_invalid` is refused.
pub(crate) fn passed_payload() -> Payload {
    Payload { content_type: content_type_text, members: in_both, count: NAMES.len() }
}

/// The members that carry a payload, in answers. Any content type is allowed, because a program that embeds the queue can choose it.
pub(crate) fn kept_payload() -> Payload {
    Payload { content_type: any_content_type, members: in_answers, count: NAMES.len() }
}

/// The members that carry a payload, in exports.
pub(crate) fn exported_payload() -> Payload {
    Payload { content_type: any_content_type, members: in_exports, count: NAMES.len() }
}

/// The names of the members. The last one is for answers and exports alone.
const NAMES: [&str; 4] = ["payload", "payload_base64", "content_type", "payload_invalid"];

/// See [`payload`].
pub(crate) struct Payload {
    content_type: fn(&RawValue) -> Result<String, BadRequest>,
    members: fn() -> Vec<Member>,
    count: usize,
}

impl FieldCodec for Payload {
    type Value = PayloadBody;

    fn count(&self) -> usize {
        self.count
    }

    fn find(&self, _: &'static str, name: &str) -> Option<usize> {
        NAMES[..self.count].iter().position(|known| *known == name)
    }

    fn read(
        &self,
        _: &'static str,
        raw: RawMembers<'_, '_>,
        source: Source,
    ) -> Result<PayloadBody, BadRequest> {
        let invalid = raw.get(3).copied().flatten();
        let is_invalid = match (invalid, source) {
            (None, _) | (_, Source::Answer) => false,
            (Some(_), Source::Request) => {
                let hint = "leave it out, and give a payload that is no valid JSON another content type, such as `text/plain`";
                return Err(BadRequest::member("payload_invalid", "is not a member of this request", hint));
            }
            (Some(invalid), Source::Export | Source::PortableExport) => {
                let is_invalid = value::boolean("payload_invalid", invalid)?;
                if is_invalid && raw[1].is_none() {
                    let hint = "leave the line as the export wrote it";
                    return Err(BadRequest::member(
                        "payload_invalid",
                        "goes with `payload_base64` only",
                        hint,
                    ));
                }
                is_invalid
            }
        };
        let payload = match (raw[0], raw[1], raw[2]) {
            (None, None, None) => PayloadBody::default(),
            (Some(_), Some(_), _) => {
                return Err(BadRequest::member(
                    "payload_base64",
                    "`payload` and `payload_base64` both say what the payload is",
                    "keep one of them",
                ));
            }
            (_, None, Some(_)) => {
                return Err(BadRequest::member(
                    "content_type",
                    "goes with `payload_base64` only",
                    "leave it out (`payload` is always application/json), or send the payload as `payload_base64`",
                ));
            }
            (Some(json), None, None) => PayloadBody::json(json.get().as_bytes().to_vec()),
            (None, Some(base64), content_type) => {
                let bytes = base64_bytes(base64)?;
                let content_type =
                    content_type.map_or_else(|| Ok(CONTENT_TYPE_OCTETS.to_owned()), self.content_type)?;
                PayloadBody { bytes, content_type }
            }
        };
        if source == Source::PortableExport && !is_invalid {
            payload.check_portable()?;
        }
        Ok(payload)
    }

    /// Writes the payload. On one line, a JSON payload that has line ends is written as base64, which keeps its bytes and its content type. No other
    /// JSON of this crate has line ends.
    ///
    /// A reader of strict JSON gets a payload that it could not read as base64, and is told why. Requests have no such mark: the server checks them.
    fn write<M: SerializeMap>(
        &self,
        _: &'static str,
        payload: &PayloadBody,
        map: &mut M,
        form: Form,
    ) -> Result<(), M::Error> {
        let json = match form.reader {
            Reader::Client => payload.as_json(),
            Reader::Server | Reader::LaxClient => payload.as_any_json(),
        };
        if let Some(json) = json.filter(|json| !form.one_line || !json.get().contains('\n')) {
            return map.serialize_entry(NAMES[0], json);
        }
        map.serialize_entry(NAMES[1], &STANDARD.encode(&payload.bytes))?;
        map.serialize_entry(NAMES[2], &payload.content_type)?;
        let is_invalid = match form.reader {
            Reader::Server => false,
            Reader::Client => check_payload(&payload.content_type, &payload.bytes).is_err(),
            // A lax reader reads all that follows the grammar.
            Reader::LaxClient => {
                payload.content_type == CONTENT_TYPE_JSON && check_grammar(&payload.bytes).is_err()
            }
        };
        if is_invalid { map.serialize_entry(NAMES[3], &true) } else { Ok(()) }
    }

    fn describe(&self, _: &'static str, _: String, _: bool, all: &mut Vec<Member>) {
        all.extend((self.members)());
    }
}

fn in_requests() -> Vec<Member> {
    vec![
        may(
            "payload",
            any(),
            "The payload as JSON; it is kept byte for byte. JSON that some readers cannot read is refused, unless the server has `--lax-json`: numbers beyond the range of a 64-bit float or with more than 1,000 digits, half surrogate pairs, and members given twice. Default: `null`.",
        ),
        may(
            "payload_base64",
            json!({
                "type": "string", "contentEncoding": "base64",
                "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"
            }),
            "The payload in base64, if it is not JSON.",
        ),
        may(
            "content_type",
            json!({ "type": "string", "maxLength": CONTENT_TYPE_BYTES_MAX, "pattern": "^[ -~]*/[ -~]*$", "examples": ["image/png"] }),
            "The content type of `payload_base64`. Default: application/octet-stream.",
        ),
    ]
}

fn in_both() -> Vec<Member> {
    let mut members = in_requests();
    members.push(invalid("In answers and exports only: the payload is said to be JSON, and is none or is one that some readers cannot read. A request with it is refused."));
    members
}

fn invalid(what: &'static str) -> Member {
    may("payload_invalid", json!({ "type": "boolean" }), what)
}

/// The description of `payload_invalid`.
const INVALID: &str = "Whether `payload_base64` is said to be JSON (`content_type` is `application/json`) and is none, or is JSON that some readers cannot read. It was stored in another way than by a request. Left out otherwise.";

fn in_answers() -> Vec<Member> {
    let base64 = json!({ "type": "string", "contentEncoding": "base64" });
    vec![
        may("payload", any(), "The payload, if it is JSON."),
        may("payload_base64", base64, "The payload in base64, if it is not JSON."),
        may("content_type", text(CONTENT_TYPE_BYTES_MAX), "The content type of `payload_base64`."),
        invalid(INVALID),
    ]
}

fn in_exports() -> Vec<Member> {
    let base64 = "The payload in base64, if it is not JSON or is JSON with line ends.";
    vec![
        may("payload", any(), "The payload, if it is JSON. Default: `null`."),
        may("payload_base64", text(2 << 20), base64),
        may("content_type", text(ANY_CONTENT_TYPE_BYTES_MAX), "The content type of `payload_base64`."),
        invalid(INVALID),
    ]
}

fn base64_bytes(raw: &RawValue) -> Result<Vec<u8>, BadRequest> {
    let text = value::text("payload_base64", raw, "aGVsbG8=")?;
    STANDARD.decode(&text).map_err(|error| {
        BadRequest::member(
            "payload_base64",
            format!("is not base64: {}", error.to_string().to_lowercase()),
            "use the standard alphabet (A-Z a-z 0-9 + /) with `=` padding, RFC 4648 section 4",
        )
    })
}

fn content_type_text(raw: &RawValue) -> Result<String, BadRequest> {
    let text = value::text("content_type", raw, "image/png")?;
    let visible = text.bytes().all(|b| b == b' ' || b.is_ascii_graphic());
    if visible && (1..=CONTENT_TYPE_BYTES_MAX).contains(&text.len()) && text.contains('/') {
        return Ok(text);
    }
    Err(BadRequest::member(
        "content_type",
        format!(
            "`{}` is not a content type of 1 to {CONTENT_TYPE_BYTES_MAX} visible ASCII characters",
            shown(&text)
        ),
        "write type and subtype, for example `image/png`",
    ))
}

fn any_content_type(raw: &RawValue) -> Result<String, BadRequest> {
    let text = value::text("content_type", raw, "image/png")?;
    if text.len() <= ANY_CONTENT_TYPE_BYTES_MAX && !text.chars().any(char::is_control) {
        return Ok(text);
    }
    let what = format!(
        "`{}` is no content type of up to {ANY_CONTENT_TYPE_BYTES_MAX} bytes without control characters",
        shown(&text)
    );
    Err(BadRequest::member("content_type", what, "leave the line as the export wrote it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declare::body::Answer;
    use crate::export::replay::ReplayDelivery;
    use crate::{EnvelopeBody, ExportLine, PutBody, ScheduleSpec, TaskBody};

    /// Payloads that a strict reader cannot read, and whether they follow the grammar of JSON.
    const INVALID: [(&str, bool); 6] = [
        ("1e400", true),
        (r#""x\ud800""#, true),
        (r#"{"a":1,"a":2}"#, true),
        ("{", false),
        ("", false),
        ("1,2", false),
    ];

    fn delivery(bytes: &[u8]) -> ReplayDelivery {
        ReplayDelivery {
            queue: "q".to_owned(),
            key: "k".to_owned(),
            due_at_ms: 0,
            fired_at_ms: 0,
            payload: PayloadBody::json(bytes.to_vec()),
        }
    }

    /// The story: a program stored such a payload past the requests, and one strict reader after the other failed at a whole lease.
    #[test]
    fn an_answer_has_a_payload_that_strict_readers_cannot_read_in_base64() {
        for (text, follows_grammar) in INVALID {
            let stored = delivery(text.as_bytes());
            let written = serde_json::to_string(&stored).expect("JSON");
            let base64 = STANDARD.encode(text);
            let marked = format!(
                r#""payload_base64":"{base64}","content_type":"application/json","payload_invalid":true}}"#
            );
            assert!(written.ends_with(&marked), "{written}");
            assert_eq!(serde_json::from_str::<ReplayDelivery>(&written).expect("an answer"), stored);
            let lax = serde_json::to_string(&Answer { body: stored, lax: true }).expect("JSON");
            let unchanged = if follows_grammar { format!(r#""payload":{text}}}"#) } else { marked };
            assert!(lax.ends_with(&unchanged), "{lax}");
        }
    }

    #[test]
    fn valid_json_in_base64_is_not_marked() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        for text in [" 1", "1\n", &deep(64), &deep(200)] {
            let written = serde_json::to_string(&delivery(text.as_bytes())).expect("JSON");
            assert!(written.contains("payload_base64") && !written.contains("payload_invalid"), "{written}");
        }
        let line = delivery(b"[\n1]").to_line();
        assert!(!String::from_utf8(line).expect("JSON").contains("payload_invalid"));
    }

    #[test]
    fn requests_have_no_such_mark() {
        let put = PutBody { payload: PayloadBody::json(b"1e400".to_vec()), ..PutBody::default() };
        assert_eq!(put.to_json(), br#"{"payload":1e400}"#);
        for base64 in ["ew==", "MQ=="] {
            let members = format!(
                r#""payload_base64":"{base64}","content_type":"application/json","payload_invalid":true"#
            );
            let put = PutBody::parse(format!("{{{members}}}").as_bytes()).expect_err("a mark");
            assert!(put.to_string().contains("payload_invalid"), "{put}");
            let plan = format!(r#"{{"timeline":[{{"at_ms":1,{members}}}]}}"#);
            let plan = PutBody::parse(plan.as_bytes()).expect_err("a mark");
            assert!(plan.to_string().starts_with("`timeline[0].payload_invalid`: is not a member"), "{plan}");
            let schedule = ScheduleSpec::parse(format!(r#"{{"every":"1h",{members}}}"#).as_bytes());
            assert!(schedule.expect_err("a mark").to_string().contains("`payload_invalid`: is not a member"));
        }
    }

    #[test]
    fn a_line_of_an_export_with_the_mark_is_taken_as_it_is() {
        let line = |word: &str, members: &str| {
            let head = r#""queue":"q","key":"k","id":1,"due_at":"2030-01-01T00:00:00Z","put_at":"2030-01-01T00:00:00Z""#;
            format!(r#"{{"{word}":{{{head},{members}}}}}"#).into_bytes()
        };
        // 1e400 in base64.
        let json = r#""payload_base64":"MWU0MDA=","content_type":"application/json""#;
        let planned = |members: &str| format!(r#""timeline":[{{"at_ms":1,{members}}}]"#);
        for (members, path) in
            [(json.to_owned(), "task.payload"), (planned(json), "task.timeline[0].payload")]
        {
            let refused =
                ExportLine::parse_portable(&line("task", &members)).expect_err("refused").to_string();
            assert!(refused.starts_with(&format!("`{path}`: `1e400`")), "{refused}");
            assert!(ExportLine::parse(&line("task", &members)).is_ok(), "a lax server takes it");
        }
        let marked = format!(r#"{json},"payload_invalid":true"#);
        for members in [marked.clone(), planned(&marked)] {
            let read = ExportLine::parse_portable(&line("task", &members)).expect("taken");
            let mut again = Vec::new();
            read.write(&mut again);
            assert!(String::from_utf8_lossy(&again).contains(&marked), "{}", String::from_utf8_lossy(&again));
            assert_eq!(ExportLine::parse_portable(&again), Ok(read));
        }
        let alone = ExportLine::parse_portable(&line("task", r#""payload":1,"payload_invalid":true"#));
        assert!(alone.expect_err("refused").to_string().contains("goes with `payload_base64` only"));
    }

    #[test]
    fn each_kind_of_answer_reads_the_mark() {
        let mark = r#""payload_base64":"ew==","content_type":"application/json","payload_invalid":true"#;
        let task = format!(
            r#"{{"queue":"q","key":"k","id":1,"version":1,"state":"ready","due_at":"2030-01-01T00:00:00Z","priority":1024,"attempt":0,{mark},"timeline":[{{"at_ms":1,{mark}}}]}}"#
        );
        let task: TaskBody = serde_json::from_str(&task).expect("a task");
        assert_eq!(task.payload, Some(PayloadBody::json(b"{".to_vec())));
        assert_eq!(task.timeline[0].payload.bytes, b"{");
        let envelope = format!(
            r#"{{"queue":"q","key":"k","id":1,"attempt":1,"due_at":"2030-01-01T00:00:00Z","sent_at":"2030-01-01T00:00:00Z",{mark}}}"#
        );
        assert_eq!(serde_json::from_str::<EnvelopeBody>(&envelope).expect("an envelope").payload.bytes, b"{");
    }
}
