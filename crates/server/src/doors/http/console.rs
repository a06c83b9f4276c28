//! The console: pages and files for a browser, which talks to the API with them. They contain no secrets and need no token.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use axum::body::Body;
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, ETAG, IF_NONE_MATCH,
    LOCATION, REFERRER_POLICY, VARY,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use tickwheel_api::{ConsoleMode, Problem, ProblemKind};
use tickwheel_console::{Accepted, File, POLICY, find, read};

use crate::base::aside::aside;
use crate::doors::http::answer;
use crate::doors::http::pages::accepts;
use crate::doors::http::problem;

/// The path of the first page.
const ROOT: &str = "/console/";

/// The console of a server.
#[derive(Clone, Debug)]
pub(crate) enum Console {
    Off,
    /// The files of this program.
    Built,
    /// The files of a directory, which are read anew for each request.
    Directory(PathBuf),
}

impl Console {
    pub(crate) fn new(mode: ConsoleMode, directory: Option<PathBuf>) -> Self {
        match (mode, directory) {
            (ConsoleMode::Off, _) => Self::Off,
            (_, None) => Self::Built,
            (_, Some(directory)) => Self::Directory(directory),
        }
    }

    /// The answer to a request for a page or a file of the console; `None`: it is none.
    pub(crate) async fn answer(&self, parts: &Parts) -> Option<Response> {
        let is_off = matches!(self, Self::Off);
        if is_off || parts.method != Method::GET && parts.method != Method::HEAD {
            return None;
        }
        let headers = &parts.headers;
        let accepted = Accepted {
            html: accepts(headers, ACCEPT, "text/html"),
            gzip: accepts(headers, ACCEPT_ENCODING, "gzip"),
        };
        let path = parts.uri.path();
        if path == ROOT.trim_end_matches('/') || path == "/" && accepted.html {
            return Some(moved("console/"));
        }
        let path = path.strip_prefix(ROOT)?;
        let file = match self {
            Self::Directory(directory) => match read_aside(directory, path, accepted).await {
                Ok(file) => file?,
                Err(problem) => return Some(problem::response(&problem)),
            },
            _ => find(path, accepted)?,
        };
        let mut response = of_file(headers, file);
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
}

/// Reads a file of the directory on another thread.
async fn read_aside(directory: &Path, path: &str, accepted: Accepted) -> Result<Option<File>, Problem> {
    let (directory, name) = (directory.to_owned(), path.to_owned());
    aside(move || read(&directory, &name, accepted)).await?.map_err(|unread| {
        let hint =
            "the directory of --console-dir has to have the file itself, and no link that leads out of it";
        Problem::new(ProblemKind::NoEndpoint, unread.to_string()).with_hint(hint)
    })
}

/// Sends a browser to another address, which is relative, so that a proxy may put the server below a path.
fn moved(to: &'static str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    set(&mut response, LOCATION, to);
    set(&mut response, VARY, "accept");
    response
}

/// The file, or 304 if the browser has it already.
fn of_file(asked: &HeaderMap, file: File) -> Response {
    let form = if file.is_gzip { "-gzip" } else { "" };
    let tag = format!("\"{}{form}\"", file.version);
    let tags = asked.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let has = tags.flat_map(|text| text.split(',')).any(|known| known.trim().trim_start_matches("W/") == tag);
    let body = match file.bytes {
        _ if has => Body::empty(),
        Cow::Borrowed(bytes) => Body::from(bytes),
        Cow::Owned(bytes) => Body::from(bytes),
    };
    let mut response = answer::of(body, file.media.as_str());
    if has {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let tag = HeaderValue::try_from(tag).expect("hex and quotes are a header value");
    response.headers_mut().insert(ETAG, tag);
    let kept = if file.keeps { "public, max-age=31536000, immutable" } else { "no-cache" };
    set(&mut response, CACHE_CONTROL, kept);
    if file.is_gzip {
        set(&mut response, CONTENT_ENCODING, "gzip");
    }
    response
}

fn set(response: &mut Response, name: HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}
