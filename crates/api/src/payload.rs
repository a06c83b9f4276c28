//! A task's payload: bytes and their content type, as JSON in the body or as base64.

use crate::JSON_DEPTH_MAX;
use crate::bad_request::{BadRequest, shown};
use crate::body::Slots;
use crate::json::too_deep_at;
use crate::openapi::schema::{Member, any, may, text};
use crate::part::{Absence, Group};
use crate::portable;
use crate::value;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::SerializeMap;
use serde_json::json;
use serde_json::value::RawValue;

/// The content type of a payload sent as the member `payload`.
pub const CONTENT_TYPE_JSON: &str = "application/json";

/// The content type of a `payload_base64` sent without `content_type`.
pub const CONTENT_TYPE_OCTETS: &str = "application/octet-stream";

/// A content type has 1 to 255 bytes: two registered names of 127, the longest allowed, and the slash.
pub const CONTENT_TYPE_BYTES_MAX: usize = 255;

/// The longest content type in an export.
const ANY_CONTENT_TYPE_BYTES_MAX: usize = 4_096;

/// The payload of a task.
///
/// On the wire it is the member `payload` if it is JSON, and else `payload_base64` with `content_type`. JSON
/// is kept as it was written, to the byte: white space, order of members, `1.0` and `1e2` come back as they
/// were sent.
///
/// A task without a payload has the JSON `null`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadBody {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// What they are, such as `application/json` or `image/png`.
    pub content_type: String,
}

impl Default for PayloadBody {
    /// The payload of a task put without one: the JSON `null`.
    fn default() -> Self {
        Self::json(b"null".to_vec())
    }
}

impl PayloadBody {
    /// A payload that is JSON text. Bytes that are not are written as base64, see [`as_json`](Self::as_json).
    pub fn json(bytes: Vec<u8>) -> Self {
        Self { bytes, content_type: CONTENT_TYPE_JSON.to_owned() }
    }

    /// The payload as JSON, if it can stand in a JSON answer as the member `payload` and come back as the
    /// same bytes.
    ///
    /// `None` unless the content type is `application/json`, the bytes are exactly one JSON value without
    /// white space around it, and it nests no deeper than a request may. A program that embeds the queue can
    /// store anything under any content type; an answer has to be valid JSON all the same. Cost: one pass
    /// over the bytes.
    pub fn as_json(&self) -> Option<&RawValue> {
        // One level belongs to the object around it.
        if self.content_type != CONTENT_TYPE_JSON || too_deep_at(&self.bytes, JSON_DEPTH_MAX - 1).is_some() {
            return None;
        }
        let raw: &RawValue = serde_json::from_slice(&self.bytes).ok()?;
        (raw.get().len() == self.bytes.len()).then_some(raw)
    }

    /// Refuses a payload that is JSON by the grammar and not to all readers: a number that no 64-bit float holds or of more than 1,000 digits, half
    /// a surrogate pair, a member given twice. A payload that is delivered as base64 may be anything.
    ///
    /// # Errors
    ///
    /// Names the first such place, by path and byte.
    pub fn check_portable(&self) -> Result<(), BadRequest> {
        if self.content_type != CONTENT_TYPE_JSON || too_deep_at(&self.bytes, JSON_DEPTH_MAX - 1).is_some() {
            return Ok(());
        }
        // Nearly all payloads are without a fault, so whether this one is JSON at all is asked of the others alone.
        let fault = portable::fault(&self.bytes).filter(|_| self.as_json().is_some());
        fault.map_or(Ok(()), |fault| Err(fault.refusal("payload")))
    }
}

/// The members that carry a payload, in requests.
pub(crate) fn payload() -> Payload {
    Payload { content_type: content_type_text, members: in_requests }
}

/// The members that carry a payload, in answers. A program that embeds the queue may have chosen any content type.
pub(crate) fn kept_payload() -> Payload {
    Payload { content_type: any_content_type, members: in_answers }
}

/// The members that carry a payload, in exports.
pub(crate) fn exported_payload() -> Payload {
    Payload { content_type: any_content_type, members: in_exports }
}

/// See [`payload`].
pub(crate) struct Payload {
    content_type: fn(&RawValue) -> Result<String, BadRequest>,
    members: fn() -> Vec<Member>,
}

impl Group for Payload {
    type Value = PayloadBody;

    fn count(&self) -> usize {
        3
    }

    fn find(&self, name: &str) -> Option<usize> {
        ["payload", "payload_base64", "content_type"].iter().position(|known| *known == name)
    }

    fn read(&self, slots: Slots<'_, '_>) -> Result<Option<PayloadBody>, BadRequest> {
        match (slots[0], slots[1], slots[2]) {
            (None, None, None) => Ok(None),
            (Some(_), Some(_), _) => Err(BadRequest::member(
                "payload_base64",
                "`payload` and `payload_base64` both say what the payload is",
                "keep one of them",
            )),
            (_, None, Some(_)) => Err(BadRequest::member(
                "content_type",
                "goes with `payload_base64` only",
                "leave it out (`payload` is always application/json), or send the payload as `payload_base64`",
            )),
            (Some(json), None, None) => Ok(Some(PayloadBody::json(json.get().as_bytes().to_vec()))),
            (None, Some(base64), content_type) => {
                let bytes = base64_bytes(base64)?;
                let content_type =
                    content_type.map_or_else(|| Ok(CONTENT_TYPE_OCTETS.to_owned()), self.content_type)?;
                Ok(Some(PayloadBody { bytes, content_type }))
            }
        }
    }

    /// The only line ends that JSON of ours can hold are white space inside of a payload, so on one line such a payload goes as base64,
    /// which keeps its bytes and its content type.
    fn write<M: SerializeMap>(
        &self,
        payload: &PayloadBody,
        map: &mut M,
        one_line: bool,
    ) -> Result<(), M::Error> {
        let json = payload.as_json().filter(|json| !one_line || !json.get().contains('\n'));
        if let Some(json) = json {
            return map.serialize_entry("payload", json);
        }
        map.serialize_entry("payload_base64", &STANDARD.encode(&payload.bytes))?;
        map.serialize_entry("content_type", &payload.content_type)
    }

    fn members(&self) -> Vec<Member> {
        (self.members)()
    }
}

fn in_requests() -> Vec<Member> {
    vec![
        may(
            "payload",
            any(),
            "What the worker gets: any JSON that all readers take, kept byte for byte. Numbers that no 64-bit float holds or of more than 1,000 digits, half surrogate pairs and a member given twice are refused, unless the server has `--lax-json`. Default: `null`.",
        ),
        may(
            "payload_base64",
            json!({
                "type": "string", "contentEncoding": "base64",
                "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"
            }),
            "What the worker gets, if it is not JSON.",
        ),
        may(
            "content_type",
            json!({ "type": "string", "maxLength": CONTENT_TYPE_BYTES_MAX, "pattern": "^[ -~]*/[ -~]*$", "examples": ["image/png"] }),
            "What those bytes are. Default: application/octet-stream.",
        ),
    ]
}

fn in_answers() -> Vec<Member> {
    let base64 = json!({ "type": "string", "contentEncoding": "base64" });
    vec![
        may("payload", any(), "The payload, if it is JSON."),
        may("payload_base64", base64, "The payload, if it is not."),
        may("content_type", text(CONTENT_TYPE_BYTES_MAX), "What those bytes are."),
    ]
}

fn in_exports() -> Vec<Member> {
    let base64 = "What the worker gets, if it is not JSON, or JSON with line ends.";
    vec![
        may("payload", any(), "What the worker gets, if that is JSON. Default: `null`."),
        may("payload_base64", text(2 << 20), base64),
        may("content_type", text(ANY_CONTENT_TYPE_BYTES_MAX), "What those bytes are."),
    ]
}

/// No payload is the JSON `null`.
pub(crate) struct Null {
    /// Whether `null` is written.
    pub(crate) is_written: bool,
}

impl Absence<PayloadBody> for Null {
    type Value = PayloadBody;

    fn absent(&self) -> Option<PayloadBody> {
        Some(PayloadBody::default())
    }

    fn present(value: PayloadBody) -> PayloadBody {
        value
    }

    fn before(value: PayloadBody) -> Option<PayloadBody> {
        Some(value)
    }

    fn written<'v>(&self, value: &'v PayloadBody) -> Option<&'v PayloadBody> {
        let is_null = value.bytes == b"null" && value.content_type == CONTENT_TYPE_JSON;
        (self.is_written || !is_null).then_some(value)
    }

    fn is_required(&self) -> bool {
        false
    }
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
