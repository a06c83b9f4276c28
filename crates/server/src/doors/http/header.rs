//! Headers of requests: the token, `If-Match`, `Idempotency-Key`, `traceparent`.

use axum::http::header::{AUTHORIZATION, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use tickwheel_api::{BadRequest, TraceContext};
use tickwheel_queue::Key;

use crate::access::refusal::Refusal;

/// The token of a request; empty if the header has no valid one.
pub(crate) fn token(headers: &HeaderMap) -> Option<&[u8]> {
    headers.contains_key(AUTHORIZATION).then(|| bearer(headers).unwrap_or_default())
}

/// The token in `Authorization: Bearer TOKEN`.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (values.next()?.as_bytes(), values.next()) else { return None };
    let (scheme, token) = value.split_at_checked(7)?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty()).then_some(token)
}

/// The trace of a request.
pub(crate) fn trace(headers: &HeaderMap) -> Option<TraceContext> {
    const PARENT: HeaderName = HeaderName::from_static("traceparent");
    const STATE: HeaderName = HeaderName::from_static("tracestate");
    let mut parents = headers.get_all(PARENT).iter();
    let (Some(parent), None) = (parents.next(), parents.next()) else { return None };
    // The list may be split over several headers.
    let states: Vec<&str> = headers.get_all(STATE).iter().filter_map(|state| state.to_str().ok()).collect();
    let state = (!states.is_empty()).then(|| states.join(","));
    TraceContext::of_headers(parent.to_str().ok()?, state.as_deref())
}

/// The value of `If-Match`. Other conditions are refused, because a change whose condition was ignored could be one
/// that its caller excluded.
pub(crate) fn condition(headers: &HeaderMap) -> Result<Option<&HeaderValue>, Refusal> {
    const OTHERS: [(HeaderName, &str); 3] = [
        (IF_NONE_MATCH, "If-None-Match"),
        (IF_MODIFIED_SINCE, "If-Modified-Since"),
        (IF_UNMODIFIED_SINCE, "If-Unmodified-Since"),
    ];
    if let Some((_, shown)) = OTHERS.into_iter().find(|(name, _)| headers.contains_key(name)) {
        let hint = "send `If-Match` with a version, or `?mode=create` for a task that must be new";
        return Err(BadRequest::header(shown, "is a condition that is not known here", hint).into());
    }
    only(headers, &IF_MATCH, "If-Match")
}

/// The key of a `POST`: the value of `Idempotency-Key`, with or without the quotes of its draft standard.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<Key>, Refusal> {
    const NAME: HeaderName = HeaderName::from_static("idempotency-key");
    let Some(value) = only(headers, &NAME, "Idempotency-Key")? else { return Ok(None) };
    // The connection framer lets only ASCII through.
    let text = value.to_str().unwrap_or_default();
    let bare = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
    let key = Key::new(bare).map_err(|error| {
        BadRequest::header(
            "Idempotency-Key",
            format!("is no key: {error}"),
            "send something of your own that is unique for this task, such as a UUID",
        )
    })?;
    Ok(Some(key))
}

fn only<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
    shown: &'static str,
) -> Result<Option<&'a HeaderValue>, Refusal> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(_), Some(_)) => {
            Err(BadRequest::header(shown, "is given more than once", "send it once").into())
        }
        (first, _) => Ok(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idempotency_key_is_the_same_with_and_without_quotes() {
        let key = |values: &[&'static str]| {
            let name = HeaderName::from_static("idempotency-key");
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(name.clone(), HeaderValue::from_static(value));
            }
            idempotency_key(&headers).map(|key| key.map(|key| key.as_str().to_owned())).ok()
        };
        assert_eq!(key(&[]), Some(None));
        assert_eq!(key(&["a-1"]), Some(Some("a-1".to_owned())));
        assert_eq!(key(&["\"a-1\""]), Some(Some("a-1".to_owned())));
        assert_eq!(key(&["\""]), Some(Some("\"".to_owned())));
        assert_eq!(key(&[""]), None);
        assert_eq!(key(&["\"\""]), None);
        assert_eq!(key(&["a", "a"]), None);
    }

    #[test]
    fn a_bearer_is_read_strictly() {
        let of = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, value.parse().expect("a value"));
            }
            bearer(&headers).map(<[u8]>::to_vec)
        };
        assert_eq!(of(&["Bearer abc"]), Some(b"abc".to_vec()));
        assert_eq!(of(&["bearer  abc "]), Some(b"abc".to_vec()));
        for bad in [&[][..], &["abc"], &["Bearer"], &["Bearer "], &["Basic abc"], &["Bearer a", "Bearer b"]] {
            assert_eq!(of(bad), None, "{bad:?}");
        }
    }
}
