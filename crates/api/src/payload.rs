//! A task's payload: bytes and their content type, as JSON in the body or as base64.

use crate::JSON_DEPTH_MAX;
use crate::bad_request::{BadRequest, shown};
use crate::json::{Members, too_deep_at};
use crate::portable;
use crate::value;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::SerializeMap;
use serde_json::value::RawValue;

/// The content type of a payload sent as the member `payload`.
pub const CONTENT_TYPE_JSON: &str = "application/json";

/// The content type of a `payload_base64` sent without `content_type`.
pub const CONTENT_TYPE_OCTETS: &str = "application/octet-stream";

/// A content type has 1 to 255 bytes: two registered names of 127, the longest allowed, and the slash.
pub const CONTENT_TYPE_BYTES_MAX: usize = 255;

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
        let fault = self.as_json().and_then(|json| portable::fault(json.get().as_bytes()));
        fault.map_or(Ok(()), |fault| Err(fault.refusal("payload")))
    }

    /// The payload among the members of a request, `None` if it has none.
    pub(crate) fn of(members: &Members<'_>) -> Result<Option<Self>, BadRequest> {
        let (json, base64) = (members.get("payload"), members.get("payload_base64"));
        match (json, base64, members.get("content_type")) {
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
            (Some(json), None, None) => Ok(Some(Self::json(json.get().as_bytes().to_vec()))),
            (None, Some(base64), content_type) => {
                let bytes = base64_bytes(base64)?;
                let content_type =
                    content_type.map_or_else(|| Ok(CONTENT_TYPE_OCTETS.to_owned()), content_type_text)?;
                Ok(Some(Self { bytes, content_type }))
            }
        }
    }

    /// Writes the one or two members that carry the payload.
    pub(crate) fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.write_as(self.as_json(), map)
    }

    /// As [`write`](Self::write), for a line of NDJSON. The only line ends that JSON of ours can hold are
    /// white space inside of a payload, so such a payload goes as base64, which keeps its bytes and its
    /// content type.
    pub(crate) fn write_on_one_line<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.write_as(self.as_json().filter(|json| !json.get().contains('\n')), map)
    }

    fn write_as<M: SerializeMap>(&self, json: Option<&RawValue>, map: &mut M) -> Result<(), M::Error> {
        if let Some(json) = json {
            return map.serialize_entry("payload", json);
        }
        map.serialize_entry("payload_base64", &STANDARD.encode(&self.bytes))?;
        map.serialize_entry("content_type", &self.content_type)
    }

    /// The payload out of the members of an answer. No member at all is `null`, as in a request.
    pub(crate) fn of_answer(
        payload: Option<&RawValue>,
        base64: Option<&str>,
        content_type: Option<String>,
    ) -> Result<Self, String> {
        match base64 {
            None => Ok(payload.map_or_else(Self::default, |json| Self::json(json.get().as_bytes().to_vec()))),
            Some(base64) => {
                let bytes =
                    STANDARD.decode(base64).map_err(|error| format!("read `payload_base64`: {error}"))?;
                Ok(Self {
                    bytes,
                    content_type: content_type.unwrap_or_else(|| CONTENT_TYPE_OCTETS.to_owned()),
                })
            }
        }
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
