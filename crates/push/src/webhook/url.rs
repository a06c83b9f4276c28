//! [`Url`]: the URL of a webhook, whose path and query may have places for the values of a task.

use std::fmt;

use crate::guard::{Host, HostError};
use crate::message::Message;
use crate::template::{Template, TemplateError, Unfilled};
use crate::text::percent_encoded;

/// The longest URL (bytes).
const BYTES_MAX: usize = 4_096;

/// The URL of a webhook.
///
/// Scheme, host and port are fixed. Path and query are a [`Template`], whose values are percent-encoded.
///
/// ```
/// use tickwheel_push::webhook::Url;
/// let url = Url::parse("https://api.shop.example/hooks/{queue}?k={key}")?;
/// assert_eq!((url.host.to_string().as_str(), url.port), ("api.shop.example", 443));
/// assert_eq!(url.to_string(), "https://api.shop.example/hooks/{queue}?k={key}");
/// # Ok::<(), tickwheel_push::webhook::UrlError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Url {
    /// Whether the scheme is `https`; else it is `http`.
    pub is_https: bool,
    /// The host.
    pub host: Host,
    /// The port: the one of the scheme if the URL names none.
    pub port: u16,
    /// Path and query.
    path: Template,
}

/// Why a text is no URL of a webhook.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UrlError {
    /// The text is too long.
    #[error("the URL has {0} bytes, more than {BYTES_MAX}")]
    TooLong(usize),
    /// The scheme is neither `https` nor `http`.
    #[error("a URL begins with `https://`, or with `http://` for a place that an operator opened")]
    Scheme,
    /// The URL has a user or a password.
    #[error("a URL has no user and no password here: write them in `auth`")]
    User,
    /// The URL has a fragment, which is never sent.
    #[error("a URL has no `#` here, because what follows is never sent")]
    Fragment,
    /// The scheme, the host or the port has a place.
    #[error("`{{` stands in the host: only path and query may have values of a task")]
    Place,
    /// The host cannot be read.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The port is no number from 1 to 65535.
    #[error("the port `{0}` is not from 1 to 65535")]
    Port(String),
    /// Path or query has a character that is not allowed there.
    #[error("{0:?} is not allowed in a URL: percent-encode it")]
    Character(char),
    /// A percent sign has no two hexadecimal digits behind it.
    #[error("`%` has no two hexadecimal digits behind it: write `%25` for a percent sign")]
    Percent,
    /// A segment of the path is `.` or `..`, in whatever spelling.
    #[error(
        "receivers take `.` and `..` out of a path, so `{0}` leads to another path: write the path that is meant"
    )]
    Dots(String),
    /// A place has no value.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

impl Url {
    /// Reads a URL.
    ///
    /// # Errors
    /// [`UrlError`].
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        if text.len() > BYTES_MAX {
            return Err(UrlError::TooLong(text.len()));
        }
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
        let is_https = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(UrlError::Scheme),
        };
        let at = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        let (place, path) = rest.split_at(at);
        match place {
            _ if place.contains('@') => return Err(UrlError::User),
            _ if place.contains('{') => return Err(UrlError::Place),
            _ if path.contains('#') => return Err(UrlError::Fragment),
            _ => {}
        }
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (place, None),
        };
        let bad_port = |port: &str| UrlError::Port(port.to_owned());
        let read = |port: &str| port.parse().ok().filter(|&port| port != 0).ok_or_else(|| bad_port(port));
        let port = port.map(read).transpose()?.unwrap_or(if is_https { 443 } else { 80 });
        let host = Host::parse(host)?;
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let path = Template::parse(&path)?;
        path.texts().try_for_each(check)?;
        if let Some(dots) = segments(&path.to_string()).find(|segment| is_dots(segment)) {
            return Err(UrlError::Dots(dots.to_owned()));
        }
        Ok(Self { is_https, host, port, path })
    }

    /// Returns path and query for a message, as they stand in the first line of a request.
    ///
    /// # Errors
    /// [`Unfilled`]: the task lacks a value, or the values would make a segment of the path `.` or `..`. No value is empty, so no
    /// segment becomes empty.
    pub fn path_of(&self, message: &Message) -> Result<String, Unfilled> {
        let filled = self.path.fill(message, percent_encoded)?;
        let dots = segments(&filled).find(|segment| is_dots(segment)).map(str::to_owned);
        dots.map_or(Ok(filled), |dots| Err(Unfilled::Dots(dots)))
    }

    /// Returns the value of the header `host`.
    #[must_use]
    pub fn authority(&self) -> String {
        match (self.is_https, self.port) {
            (true, 443) | (false, 80) => self.host.to_string(),
            _ => format!("{}:{}", self.host, self.port),
        }
    }
}

/// Returns the segments of a path, which a query may follow.
fn segments(text: &str) -> impl Iterator<Item = &str> {
    text.split_once('?').map_or(text, |(path, _)| path).split('/').skip(1)
}

/// Whether a receiver may read `.` or `..` in a segment and take it out of the path. Parsers of URLs read `%2e` like a dot; some receivers decode
/// `%2f` and `%5c` before they look for such segments, and some pass over a `;` and the text behind it.
fn is_dots(segment: &str) -> bool {
    let plain = segment.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/");
    plain.split('/').any(|part| matches!(part.split(';').next(), Some("." | "..")))
}

/// Checks that a piece of path or query has only characters of RFC 3986.
fn check(text: &str) -> Result<(), UrlError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@/?%".contains(c);
    if let Some(other) = text.chars().find(|&c| !allowed(c)) {
        return Err(UrlError::Character(other));
    }
    let is_encoded = |behind: &str| {
        behind.as_bytes().first_chunk::<2>().is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if text.split('%').skip(1).all(is_encoded) { Ok(()) } else { Err(UrlError::Percent) }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_https { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.path)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tickwheel_queue::{Body, Key, Tag};

    use super::*;
    use crate::message::tests::message;

    #[test]
    fn urls_are_read_and_written() {
        for (text, wanted) in [
            ("https://a.example", "https://a.example/"),
            ("HTTPS://A.Example:443/x", "https://a.example/x"),
            ("https://a.example:8443?q={id}", "https://a.example:8443/?q={id}"),
            ("http://[::1]:80/", "http://[::1]/"),
            ("http://127.0.0.1:80/", "http://127.0.0.1/"),
            ("https://a.example/a%20b/{tag.0}", "https://a.example/a%20b/{tag.0}"),
        ] {
            let url = Url::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(url.to_string(), wanted);
            assert_eq!(Url::parse(wanted), Ok(url));
        }
    }

    #[test]
    fn values_are_encoded_and_cannot_leave_their_place() {
        let url = Url::parse("https://a.example/h/{key}?k={key}").expect("a URL");
        assert_eq!(url.path_of(&message()).as_deref(), Ok("/h/order%3A1%2F%C3%A4?k=order%3A1%2F%C3%A4"));
    }

    /// A message whose key and first tag are these.
    fn message_of(key: &str, tag: &str) -> Message {
        let mut message = message();
        let mut leased = (*message.leased).clone();
        leased.key = Key::new(key).expect("a key");
        leased.body = Arc::new(Body { tags: vec![Tag::new(tag).expect("a tag")], ..(*leased.body).clone() });
        message.leased = Arc::new(leased);
        message
    }

    #[test]
    fn no_value_leaves_its_place_in_the_path() {
        for (path, key, tag, dots) in [
            ("/hooks/{key}/done", ".", "x", "."),
            ("/hooks/{key}/done", "..", "x", ".."),
            ("/hooks/{key}", "..", "x", ".."),
            ("/hooks/{key}?a=b", "..", "x", ".."),
            ("/hooks/.{key}", ".", "x", ".."),
            ("/hooks/%2e{key}", ".", "x", "%2e."),
            ("/hooks/{key}{tag.0}", ".", ".", ".."),
            ("/hooks/{key}", "../admin", "x", "..%2Fadmin"),
            ("/hooks/{key}", "a/..", "x", "a%2F.."),
            ("/hooks/{key}", "a\\..\\b", "x", "a%5C..%5Cb"),
            ("/hooks/{key};v=1", "..", "x", "..;v=1"),
        ] {
            let url = Url::parse(&format!("https://a.example{path}")).expect(path);
            assert_eq!(url.path_of(&message_of(key, tag)), Err(Unfilled::Dots(dots.to_owned())), "{path}");
        }
        for (path, key, filled) in [
            ("/hooks/{key}/", "...", "/hooks/.../"),
            ("//{key}//", "a", "//a//"),
            ("/{key}{tag.0}", ".", "/.x"),
            ("/{key}", "a/b..", "/a%2Fb.."),
            ("/{key}", "%2e%2e", "/%252e%252e"),
            ("/h?k={key}&t=/{key}/", "..", "/h?k=..&t=/../"),
        ] {
            let url = Url::parse(&format!("https://a.example{path}")).expect(path);
            assert_eq!(url.path_of(&message_of(key, "x")).as_deref(), Ok(filled), "{path}");
        }
    }

    #[test]
    fn what_is_no_url_of_a_webhook_is_refused() {
        for (text, error) in [
            ("", UrlError::Scheme),
            ("a.example/x", UrlError::Scheme),
            ("file:///etc/passwd", UrlError::Scheme),
            ("gopher://a.example/", UrlError::Scheme),
            ("https://", UrlError::Host(HostError::Missing)),
            ("https:///x", UrlError::Host(HostError::Missing)),
            ("https://user:pw@a.example/", UrlError::User),
            ("https://a.example#@b.example/", UrlError::Fragment),
            ("https://a.example/x#y", UrlError::Fragment),
            ("https://{queue}.example/", UrlError::Place),
            ("https://a.example:{id}/", UrlError::Place),
            ("https://a.example:0/", UrlError::Port("0".into())),
            ("https://a.example:65536/", UrlError::Port("65536".into())),
            ("https://a.example:/", UrlError::Port(String::new())),
            ("https://a.example/a b", UrlError::Character(' ')),
            ("https://a.example/\r\nx: y", UrlError::Character('\r')),
            ("https://a.example\\@b.example/", UrlError::Character('\\')),
            ("https://a.example/ä", UrlError::Character('ä')),
            ("https://a.example/%2", UrlError::Percent),
            ("https://a.example/%", UrlError::Percent),
            ("https://a.example/{x}", UrlError::Template(TemplateError::Unknown("x".into()))),
            ("https://a.example/{{", UrlError::Character('{')),
            ("https://a.example/a/../b", UrlError::Dots("..".into())),
            ("https://a.example/a/.", UrlError::Dots(".".into())),
            ("https://a.example/%2e%2E/{key}", UrlError::Dots("%2e%2E".into())),
            ("https://a.example/.%2e?x", UrlError::Dots(".%2e".into())),
            ("https://a.example/..;a/b", UrlError::Dots("..;a".into())),
            ("https://a.example/a%2f../b", UrlError::Dots("a%2f..".into())),
        ] {
            assert_eq!(Url::parse(text), Err(error), "{text}");
        }
        let long = format!("https://a.example/{}", "x".repeat(BYTES_MAX));
        assert_eq!(Url::parse(&long), Err(UrlError::TooLong(long.len())));
    }
}
