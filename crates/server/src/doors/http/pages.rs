//! HTML pages for people who open the server in a browser.
//!
//! The pages contain no secrets and need no token. Programs do not ask for `text/html`, so they get the usual
//! answers.

use axum::body::Body;
use axum::http::header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, VARY};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use tickwheel_api::ProblemKind;

use crate::doors::http::console::Console;

/// The style of the pages. The policy below allows this text alone, by its hash; a test compares the two.
const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:3rem auto;padding:0 1rem}code{font-size:.95em}";
/// The policy forbids the pages to load, run, send or frame anything.
const POLICY: &str = "default-src 'none'; style-src 'sha256-E8JW3VZfjcGnoLcn1wYWDhVIh8YBeX/PTIAcIHNYcM8='; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page that answers this request; `None`: the client is a program, or the path has no page.
pub(crate) async fn page(parts: &Parts, console: &Console) -> Option<Response> {
    if let Some(answer) = console.answer(parts).await {
        return Some(answer);
    }
    if !parts.method.is_safe() || !accepts(&parts.headers, ACCEPT, "text/html") {
        return None;
    }
    let mut response = Response::new(Body::from(problem(ProblemKind::of_type(parts.uri.path())?)));
    for (name, value) in [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("x-frame-options"), "DENY"),
        (VARY, "accept"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Some(response)
}

/// Whether the client names this form in the header, and not with the weight 0. Browsers name HTML in `Accept`; programs
/// send `*/*`.
pub(crate) fn accepts(headers: &HeaderMap, header: HeaderName, form: &str) -> bool {
    let forms = headers
        .get_all(header)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','));
    forms.into_iter().any(|named| {
        let mut parts = named.split(';').map(str::trim);
        let is_named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(form));
        let is_unwanted = |part: &str| {
            let weight = part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="));
            weight.is_some_and(|weight| weight.parse() == Ok(0.0_f32))
        };
        is_named && !parts.any(is_unwanted)
    })
}

fn problem(kind: ProblemKind) -> String {
    let (meaning, remedy) = kind.explained();
    let (title, meaning, remedy) = (escaped(kind.title()), escaped(meaning), escaped(remedy));
    let status = kind.status();
    html(
        &title,
        &format!(
            "<p>A problem that a <a href=\"/\">Tickwheel server</a> answers, with the status {status}:</p>\
             <h1>{title}</h1><p>{meaning}</p><p><strong>What to do:</strong> {remedy}</p>"
        ),
    )
}

/// A page with these two texts, which are HTML.
fn html(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
         <style>{STYLE}</style></head><body>{body}</body></html>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::doors::http::body::next_piece;

    async fn asked(method: &str, path: &str, accept: &str) -> Option<Response> {
        let request = Request::builder().method(method).uri(path).header(ACCEPT, accept);
        page(&request.body(()).expect("a request").into_parts().0, &Console::Off).await
    }

    const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

    #[tokio::test]
    async fn browsers_are_told_from_programs() {
        let path = ProblemKind::Busy.type_uri();
        for accept in [BROWSER, "text/html", "application/json, TEXT/HTML;q=0.5"] {
            for method in ["GET", "HEAD"] {
                assert!(asked(method, path, accept).await.is_some(), "{method} {accept}");
            }
        }
        for accept in ["*/*", "application/json", "", "text/html;q=0", "text/*", "text/htmlx"] {
            assert!(asked("GET", path, accept).await.is_none(), "{accept}");
        }
        assert!(asked("POST", path, BROWSER).await.is_none());
        for path in ["/", "/healthz", "/v1/queues", "/console/", "/problems/nothing", "/problems/"] {
            assert!(asked("GET", path, BROWSER).await.is_none(), "{path}");
        }
    }

    #[tokio::test]
    async fn each_kind_of_problem_has_its_page() {
        for kind in ProblemKind::ALL {
            let page = asked("GET", kind.type_uri(), BROWSER).await.expect("a page");
            let text = next_piece(&mut page.into_body()).await.expect("it does not fail").expect("some text");
            let text = String::from_utf8(text.to_vec()).expect("UTF-8");
            let (meaning, remedy) = kind.explained();
            assert!(text.contains(&escaped(meaning)) && text.contains(&escaped(remedy)), "{text}");
        }
    }

    #[test]
    fn the_policy_allows_the_style_and_nothing_else() {
        let hash = base64(&Sha256::digest(STYLE.as_bytes()));
        assert!(POLICY.contains(&format!("style-src 'sha256-{hash}';")), "the style has the hash {hash}");
        assert!(POLICY.starts_with("default-src 'none';"));
        let page = problem(ProblemKind::Busy);
        assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("http"), "{page}");
        assert!(page.contains(&format!("<style>{STYLE}</style>")), "{page}");
    }

    /// Base64 of RFC 4648 section 4, for 32 bytes.
    fn base64(bytes: &[u8]) -> String {
        const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for three in bytes.chunks(3) {
            let number = three.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte))
                << (8 * (3 - three.len()));
            for place in 0..4 {
                let letter = LETTERS[(number >> (18 - 6 * place) & 63) as usize] as char;
                text.push(if place > three.len() { '=' } else { letter });
            }
        }
        text
    }
}
