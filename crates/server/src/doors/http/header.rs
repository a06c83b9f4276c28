//! Headers that concern tasks: `If-Match`, `Idempotency-Key`, `traceparent`.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use tickwheel_api::{BadRequest, TraceContext, if_match};
use tickwheel_queue::{Key, Seq};

use crate::access::refusal::Refusal;
use crate::doors::http::problem;
use crate::translate;

/// The version that a change requires; `None`: any.
pub(crate) struct IfMatch(pub(crate) Option<Seq>);

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let headers = &parts.headers;
        refuse_other_conditions(headers)?;
        let value = only(headers, &IF_MATCH, "If-Match")?;
        Ok(Self(value.map(|value| if_match(value.as_bytes())).transpose()?.map(translate::version)))
    }
}

/// The trace of the request, in its stored form. Malformed headers count as absent, because no request is refused for
/// its tracing.
pub(crate) struct Trace(pub(crate) Option<Arc<str>>);

impl<S: Sync> FromRequestParts<S> for Trace {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(trace(&parts.headers).map(|trace| trace.to_text().into())))
    }
}

/// The trace of a request.
pub(crate) fn trace(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all("traceparent").iter();
    let (Some(parent), None) = (parents.next(), parents.next()) else { return None };
    // The list may be split over several headers.
    let states: Vec<&str> =
        headers.get_all("tracestate").iter().filter_map(|state| state.to_str().ok()).collect();
    let state = (!states.is_empty()).then(|| states.join(","));
    TraceContext::of_headers(parent.to_str().ok()?, state.as_deref())
}

/// Refuses other conditions: if one was ignored, a change could be made that its caller excluded.
fn refuse_other_conditions(headers: &HeaderMap) -> Result<(), BadRequest> {
    const CONDITIONS: [(HeaderName, &str); 3] = [
        (IF_NONE_MATCH, "If-None-Match"),
        (IF_MODIFIED_SINCE, "If-Modified-Since"),
        (IF_UNMODIFIED_SINCE, "If-Unmodified-Since"),
    ];
    match CONDITIONS.into_iter().find(|(name, _)| headers.contains_key(name)) {
        None => Ok(()),
        Some((_, shown)) => Err(BadRequest::header(
            shown,
            "is a condition that is not known here",
            "send `If-Match` with a version, or `?mode=create` for a task that must be new",
        )),
    }
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
        (Some(_), Some(_)) => Err(problem::repeated_header(shown).into()),
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
}
