//! Readers of the values of members. An error names the member, what was expected and what was sent.

use crate::declare::json::list;
use crate::text::bad_request::{BadRequest, nearest, shown};
use crate::text::portable::INTEGER_MAX;
use crate::text::{duration, time};
use serde_json::value::RawValue;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Reads a string.
pub(crate) fn text(path: &str, raw: &RawValue, example: &str) -> Result<String, BadRequest> {
    let hint = || format!("write a string, for example `{example}`");
    if !raw.get().starts_with('"') {
        return Err(BadRequest::member(path, format!("expected a string, got {}", kind(raw)), hint()));
    }
    // The text is valid JSON at this point, but an escape in it may still be half a surrogate pair.
    serde_json::from_str(raw.get()).map_err(|_| {
        BadRequest::member(path, "has an escape that is no character", "write `\\u` escapes in full pairs")
    })
}

/// Reads an integer that is written without an exponent; `5.0` is 5.
pub(crate) fn integer(path: &str, raw: &RawValue, range: RangeInclusive<u64>) -> Result<u64, BadRequest> {
    let (min, max) = (*range.start(), *range.end());
    debug_assert!(
        max <= INTEGER_MAX,
        "limit {max} is beyond {INTEGER_MAX}, where JSON readers lose integers"
    );
    let hint = || format!("write a whole number from {min} to {max}");
    let text = whole(raw.get());
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    if !digits {
        let what = match kind(raw) {
            number if number.starts_with("the number") && text.starts_with('-') => {
                format!("expected an integer from {min} to {max}, got the negative number {}", shown(text))
            }
            other => format!("expected an integer from {min} to {max}, got {other}"),
        };
        return Err(BadRequest::member(path, what, hint()));
    }
    match text.parse::<u64>() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(BadRequest::member(path, format!("{} is not from {min} to {max}", shown(text)), hint())),
    }
}

/// Reads a number that has digits only.
pub(crate) fn digits<N: FromStr>(text: &[u8]) -> Option<N> {
    let digits = text.iter().all(u8::is_ascii_digit);
    str::from_utf8(text).ok().filter(|_| digits)?.parse().ok()
}

/// The number without a fraction of zeroes. Some writers have floats only and send `5.0` for 5.
pub(crate) fn whole(number: &str) -> &str {
    match number.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|b| b == b'0') => whole,
        _ => number,
    }
}

/// Reads `true` or `false`.
pub(crate) fn boolean(path: &str, raw: &RawValue) -> Result<bool, BadRequest> {
    match raw.get() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(BadRequest::member(
            path,
            format!("expected true or false, got {}", kind(raw)),
            "write `true` or `false`, without quotes",
        )),
    }
}

/// Reads one of a few words.
pub(crate) fn word<T: Copy>(path: &str, raw: &RawValue, words: &[(&str, T)]) -> Result<T, BadRequest> {
    let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
    let given = text(path, raw, names[0])?;
    words.iter().find(|(name, _)| *name == given).map(|(_, value)| *value).ok_or_else(|| {
        let hint = match nearest(&given, &names) {
            Some(close) => format!("did you mean `{close}`?"),
            None => format!("it may be {}", list(&names).replace(" and ", " or ")),
        };
        BadRequest::member(path, format!("`{}` is not known", shown(&given)), hint)
    })
}

/// Reads a duration such as `30m`, in milliseconds.
pub(crate) fn duration_ms(path: &str, raw: &RawValue) -> Result<u64, BadRequest> {
    let text = text(path, raw, "30m")?;
    duration::parse(&text).map_err(|error| error.of_member(path))
}

/// Reads a duration within limits, in milliseconds.
pub(crate) fn duration_ms_within(
    path: &str,
    raw: &RawValue,
    range: RangeInclusive<u64>,
) -> Result<u64, BadRequest> {
    let ms = duration_ms(path, raw)?;
    if range.contains(&ms) {
        return Ok(ms);
    }
    let (min, max) = (duration::format(*range.start()), duration::format(*range.end()));
    Err(BadRequest::member(
        path,
        format!("{} is not from {min} to {max}", duration::format(ms)),
        format!("write a duration from `{min}` to `{max}`"),
    ))
}

/// Reads an RFC 3339 time, in milliseconds since 1970.
pub(crate) fn instant_ms(path: &str, raw: &RawValue) -> Result<i64, BadRequest> {
    let text = text(path, raw, "2017-10-02T11:26:33Z")?;
    time::parse(&text).map_err(|error| error.of_member(path))
}

/// Reads an array, and returns the raw text of its elements.
pub(crate) fn array<'a>(path: &str, raw: &'a RawValue, hint: &str) -> Result<Vec<&'a RawValue>, BadRequest> {
    serde_json::from_str(raw.get())
        .map_err(|_| BadRequest::member(path, format!("expected an array, got {}", kind(raw)), hint))
}

/// The kind of the value, in words for an error.
pub(crate) fn kind(raw: &RawValue) -> String {
    match raw.get().as_bytes().first() {
        Some(b'"') => "a string".to_owned(),
        Some(b'{') => "an object".to_owned(),
        Some(b'[') => "an array".to_owned(),
        Some(b't' | b'f') => shown(raw.get()),
        Some(b'n') => "null".to_owned(),
        _ => format!("the number {}", shown(raw.get())),
    }
}

/// Reads `null` as `None`, and another value with `read`.
pub(crate) fn or_null<T>(
    raw: &RawValue,
    read: impl FnOnce(&RawValue) -> Result<T, BadRequest>,
) -> Result<Option<T>, BadRequest> {
    if raw.get() == "null" { Ok(None) } else { read(raw).map(Some) }
}
