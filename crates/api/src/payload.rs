//! The payload of a task: bytes and their content type. On the wire it is JSON or base64.

use crate::JSON_DEPTH_MAX;
use crate::bad_request::{BadRequest, shown};
use crate::body::{Slots, Source};
use crate::json::{malformed, too_deep_at};
use crate::openapi::schema::{Member, any, may, text};
use crate::part::Part;
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
    /// white space around it, and the value nests no deeper than a request may. The check is needed because a
    /// program that embeds the queue can store any bytes under any content type, and an answer must be valid
    /// JSON. Costs one pass over the bytes.
    pub fn as_json(&self) -> Option<&RawValue> {
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
        let fault = portable::fault(&self.bytes).filter(|_| self.as_json().is_some());
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
    serde_json::from_slice::<&RawValue>(bytes).map_err(|error| {
        let BadRequest { what, hint, .. } = malformed(&error);
        BadRequest::member("payload", what, hint)
    })?;
    portable::fault(bytes).map_or(Ok(()), |fault| Err(fault.refusal("payload")))
}

/// The members that carry a payload, in requests.
pub(crate) fn payload() -> Payload {
    Payload { content_type: content_type_text, members: in_requests }
}

/// The members that carry a payload, in answers. Any content type is allowed, because a program that embeds the queue can choose it.
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

impl Part for Payload {
    type Value = PayloadBody;

    fn count(&self) -> usize {
        3
    }

    fn find(&self, _: &'static str, name: &str) -> Option<usize> {
        ["payload", "payload_base64", "content_type"].iter().position(|known| *known == name)
    }

    fn read(&self, _: &'static str, slots: Slots<'_, '_>, _: Source) -> Result<PayloadBody, BadRequest> {
        match (slots[0], slots[1], slots[2]) {
            (None, None, None) => Ok(PayloadBody::default()),
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
            (Some(json), None, None) => Ok(PayloadBody::json(json.get().as_bytes().to_vec())),
            (None, Some(base64), content_type) => {
                let bytes = base64_bytes(base64)?;
                let content_type =
                    content_type.map_or_else(|| Ok(CONTENT_TYPE_OCTETS.to_owned()), self.content_type)?;
                Ok(PayloadBody { bytes, content_type })
            }
        }
    }

    /// Writes the payload. With `one_line`, a JSON payload that has line ends is written as base64, which keeps its bytes and its content type. No other
    /// JSON of this crate has line ends.
    fn write<M: SerializeMap>(
        &self,
        _: &'static str,
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

fn in_answers() -> Vec<Member> {
    let base64 = json!({ "type": "string", "contentEncoding": "base64" });
    vec![
        may("payload", any(), "The payload, if it is JSON."),
        may("payload_base64", base64, "The payload in base64, if it is not JSON."),
        may("content_type", text(CONTENT_TYPE_BYTES_MAX), "The content type of `payload_base64`."),
    ]
}

fn in_exports() -> Vec<Member> {
    let base64 = "The payload in base64, if it is not JSON or is JSON with line ends.";
    vec![
        may("payload", any(), "The payload, if it is JSON. Default: `null`."),
        may("payload_base64", text(2 << 20), base64),
        may("content_type", text(ANY_CONTENT_TYPE_BYTES_MAX), "The content type of `payload_base64`."),
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
