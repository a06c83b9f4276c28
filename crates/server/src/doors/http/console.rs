//! The console: pages and files for a browser, which talks to the API with them. They contain no secrets and need no token.

use axum::body::{Body, Bytes};
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, LOCATION, REFERRER_POLICY, VARY,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use tickwheel_console::{Accepted, File, Found, PAGE, POLICY, find, version};

use crate::doors::http::pages::wants_html;

/// The path of the first page.
pub(crate) const ROOT: &str = "/console/";

/// The answer to a request for a page or a file of the console; `None`: it is none.
pub(crate) fn answer(parts: &Parts) -> Option<Response> {
    if parts.method != Method::GET && parts.method != Method::HEAD {
        return None;
    }
    let path = parts.uri.path();
    if path == ROOT.trim_end_matches('/') {
        return Some(moved("console/"));
    }
    let path = path.strip_prefix(ROOT)?;
    let accepted = Accepted { html: wants_html(&parts.headers), gzip: takes_gzip(&parts.headers) };
    let mut response = match find(path, accepted)? {
        Found::Page(page) => {
            let tag = format!("\"{}\"", version());
            let mut response = kept_as(&parts.headers, &tag, Bytes::from(page));
            set(&mut response, CONTENT_TYPE, PAGE.as_str());
            set(&mut response, CACHE_CONTROL, "no-cache");
            response
        }
        Found::File(file) => of_file(&parts.headers, file),
    };
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (VARY, "accept, accept-encoding"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        set(&mut response, name, value);
    }
    Some(response)
}

/// Sends a browser to another address, which is relative, so that a proxy may put the server below a path.
pub(crate) fn moved(to: &'static str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    set(&mut response, LOCATION, to);
    set(&mut response, VARY, "accept");
    response
}

fn of_file(asked: &HeaderMap, file: File) -> Response {
    let form = if file.is_gzip { "-gzip" } else { "" };
    let tag = format!("\"{}{form}\"", file.version);
    let mut response = kept_as(asked, &tag, Bytes::from_static(file.bytes));
    set(&mut response, CONTENT_TYPE, file.media.as_str());
    set(
        &mut response,
        CACHE_CONTROL,
        if file.keeps { "public, max-age=31536000, immutable" } else { "no-cache" },
    );
    if file.is_gzip {
        set(&mut response, CONTENT_ENCODING, "gzip");
    }
    response
}

/// The contents, or 304 if the browser has them already.
fn kept_as(asked: &HeaderMap, tag: &str, bytes: Bytes) -> Response {
    let tags = asked.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let has = tags.flat_map(|text| text.split(',')).any(|known| known.trim().trim_start_matches("W/") == tag);
    let mut response = Response::new(if has { Body::empty() } else { Body::from(bytes) });
    if has {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let tag = HeaderValue::try_from(tag).expect("hex and quotes are a header value");
    response.headers_mut().insert(ETAG, tag);
    response
}

fn set(response: &mut Response, name: HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}

/// Whether the browser takes gzip.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let forms = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    forms.flat_map(|text| text.split(',')).any(|form| {
        let (name, weight) = form.split_once(';').unwrap_or((form, ""));
        name.trim().eq_ignore_ascii_case("gzip")
            && weight.trim().trim_start_matches("q=").parse() != Ok(0.0_f32)
    })
}
