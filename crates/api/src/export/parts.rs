//! Members that several lines of an export have.

use crate::INTEGER_MAX;
use crate::bad_request::{BadRequest, shown};
use crate::json::Members;
use crate::payload::{CONTENT_TYPE_OCTETS, PayloadBody};
use crate::{time, value};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::SerializeMap;
use serde_json::value::RawValue;

/// A content type has at most this many bytes. A program that embeds the queue may have chosen any text.
const CONTENT_TYPE_BYTES_MAX: usize = 4_096;

/// A text that has to be there.
pub(super) fn text(members: &Members<'_>, name: &'static str, example: &str) -> Result<String, BadRequest> {
    value::text(name, members.required(name, &format!("\"{name}\": \"{example}\""))?, example)
}

pub(super) fn text_option(members: &Members<'_>, name: &'static str) -> Result<Option<String>, BadRequest> {
    members.get(name).map(|raw| value::text(name, raw, "text")).transpose()
}

/// An instant that has to be there, ms since 1970.
pub(super) fn instant(members: &Members<'_>, name: &'static str) -> Result<i64, BadRequest> {
    value::instant_ms(name, members.required(name, &format!("\"{name}\": \"2030-01-01T00:00:00Z\""))?)
}

pub(super) fn instant_option(members: &Members<'_>, name: &'static str) -> Result<Option<i64>, BadRequest> {
    members
        .get(name)
        .map(|raw| value::or_null(raw, |raw| value::instant_ms(name, raw)))
        .transpose()
        .map(Option::flatten)
}

/// A number; 0 if it is not there.
pub(super) fn count(members: &Members<'_>, name: &'static str) -> Result<u64, BadRequest> {
    members.get(name).map_or(Ok(0), |raw| value::integer(name, raw, 0..=INTEGER_MAX))
}

/// The same, of up to 32 bits.
pub(super) fn small_count(members: &Members<'_>, name: &'static str) -> Result<u32, BadRequest> {
    let raw = members.get(name);
    raw.map_or(Ok(0), |raw| {
        let number = value::integer(name, raw, 0..=u64::from(u32::MAX))?;
        Ok(u32::try_from(number).expect("it is within the limit"))
    })
}

pub(super) fn flag(members: &Members<'_>, name: &'static str) -> Result<bool, BadRequest> {
    members.get(name).map_or(Ok(false), |raw| value::boolean(name, raw))
}

/// A list of instants, ms since 1970.
pub(super) fn instants(members: &Members<'_>, name: &'static str) -> Result<Vec<i64>, BadRequest> {
    let Some(raw) = members.get(name) else { return Ok(Vec::new()) };
    let rows = value::array(name, raw, "write a list of instants")?;
    let one = |(index, row)| value::instant_ms(&format!("{name}[{index}]"), row);
    rows.into_iter().enumerate().map(one).collect()
}

/// The payload, whatever its content type says. Without one it is the JSON `null`.
pub(super) fn payload(members: &Members<'_>) -> Result<PayloadBody, BadRequest> {
    let (json, base64, content_type) =
        (members.get("payload"), members.get("payload_base64"), members.get("content_type"));
    let Some(base64) = base64 else {
        return Ok(PayloadBody::of(members)?.unwrap_or_default());
    };
    if json.is_some() {
        let what = "`payload` and `payload_base64` both say what the payload is";
        return Err(BadRequest::member("payload_base64", what, "keep one of them"));
    }
    Ok(PayloadBody {
        bytes: bytes(base64)?,
        content_type: content_type.map_or_else(|| Ok(CONTENT_TYPE_OCTETS.to_owned()), content_type_text)?,
    })
}

fn bytes(raw: &RawValue) -> Result<Vec<u8>, BadRequest> {
    let text = value::text("payload_base64", raw, "aGVsbG8=")?;
    STANDARD.decode(&text).map_err(|error| {
        let what = format!("is not base64: {}", error.to_string().to_lowercase());
        BadRequest::member(
            "payload_base64",
            what,
            "use the standard alphabet with `=` padding, RFC 4648 section 4",
        )
    })
}

fn content_type_text(raw: &RawValue) -> Result<String, BadRequest> {
    let text = value::text("content_type", raw, "image/png")?;
    if text.len() <= CONTENT_TYPE_BYTES_MAX && !text.chars().any(char::is_control) {
        return Ok(text);
    }
    let what = format!(
        "`{}` is no content type of up to {CONTENT_TYPE_BYTES_MAX} bytes without control characters",
        shown(&text)
    );
    Err(BadRequest::member("content_type", what, "leave the line as the export wrote it"))
}

/// Writes an instant, if there is one.
pub(super) fn write_instant<M: SerializeMap>(
    map: &mut M,
    name: &str,
    at_ms: Option<i64>,
) -> Result<(), M::Error> {
    at_ms.map_or(Ok(()), |at_ms| map.serialize_entry(name, &time::format(at_ms)))
}

/// Writes a number, unless it is 0.
pub(super) fn write_count<M: SerializeMap>(map: &mut M, name: &str, count: u64) -> Result<(), M::Error> {
    if count == 0 { Ok(()) } else { map.serialize_entry(name, &count) }
}
