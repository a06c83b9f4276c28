//! Versions of tasks in headers: `ETag` of answers, `If-Match` of requests.

use crate::declare::value::digits;
use crate::text::bad_request::{BadRequest, shown_bytes};

const HEADER: &str = "If-Match";

/// The `ETag` of a task with this version: the number in quotes.
pub fn etag(version: u64) -> String {
    format!("\"{version}\"")
}

/// Reads the value of an `If-Match` header: one version, as the `ETag` has it (`"41"`) or bare (`41`).
///
/// # Errors
///
/// - `*`: a caller that wants any live task sends `mode=replace` instead;
/// - a weak tag, `W/"41"`: versions are compared exactly, so a weak tag can never match;
/// - more than one tag, or a text that is not a version.
///
/// # Examples
///
/// ```
/// use tickwheel_api::if_match;
///
/// assert_eq!(if_match(b"\"41\""), Ok(41));
/// assert_eq!(if_match(b"41"), Ok(41));
/// assert_eq!(if_match(b"*").unwrap_err().to_string(), "header `If-Match`: `*` names no version");
/// ```
pub fn if_match(value: &[u8]) -> Result<u64, BadRequest> {
    const ONE: &str = "send the one version you saw, for example `\"41\"`";
    let value = value.trim_ascii();
    if value == b"*" {
        let hint = "use `?mode=replace` to ask for a live task, or send a version, for example `\"41\"`";
        return Err(BadRequest::header(HEADER, "`*` names no version", hint));
    }
    if value.starts_with(b"W/") {
        let hint = "send the version without `W/`, for example `\"41\"`";
        return Err(BadRequest::header(HEADER, format!("`{}` is a weak tag", shown_bytes(value)), hint));
    }
    if value.contains(&b',') {
        return Err(BadRequest::header(
            HEADER,
            format!("`{}` names several versions", shown_bytes(value)),
            ONE,
        ));
    }
    let bare = value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(value);
    digits(bare)
        .ok_or_else(|| BadRequest::header(HEADER, format!("`{}` is not a version", shown_bytes(value)), ONE))
}
