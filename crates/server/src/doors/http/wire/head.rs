//! The head of a request: the rules that are stricter than hyper's.
//!
//! hyper takes a bare LF for the end of a line; `tests/it/smuggling.rs` shows how a request can hide behind that. It
//! also merges two lengths and takes two hosts. Some proxies read these cases differently, and no client library sends
//! them, so they are refused here. `httparse`, which hyper uses, splits the lines.

use axum::http::Uri;
use httparse::{Error, Header, Request};

use super::fault::{Fault, Rule};

/// The longest request target (bytes). A queue (200 bytes) and a key (256 bytes), each byte percent-encoded, and a
/// query string need less than 2 KiB.
pub(crate) const URI_BYTES_MAX: usize = 8 << 10;
/// The longest header fields, in total (bytes). A browser with cookies of other local servers stays below.
pub(crate) const FIELDS_BYTES_MAX: usize = 16 << 10;
/// The largest number of header fields; browsers send about 20.
pub(crate) const FIELDS_MAX: usize = 100;
/// The longest request line without its target (bytes): the method, two spaces and `HTTP/1.1`.
const LINE_EXTRA_BYTES: usize = 64;
/// The longest empty lines before a request that are skipped (bytes). This is two lines; RFC 9112 section 2.2 asks for
/// at least one, because some old clients send one.
const EMPTY_LINES_BYTES_MAX: usize = 4;

/// The framing of a request's body.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Framing {
    /// The body ends after this many bytes.
    Length(u64),
    /// The body ends with its last chunk.
    Chunked,
}

/// A head that passed the check.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    /// The bytes of empty lines before the head, which are dropped.
    pub(crate) skip: usize,
    /// The bytes of the head, with the empty line at its end.
    pub(crate) bytes: usize,
    /// The framing of the body.
    pub(crate) framing: Framing,
}

/// Finds the end of a head in bytes that arrive in pieces. It looks at each byte only once.
#[derive(Default)]
pub(crate) struct Scan {
    skip: usize,
    scanned: usize,
    line_start: usize,
    /// The end of the request line and the minor version in it, once they are known.
    first_line: Option<(usize, u8)>,
}

impl Scan {
    /// Looks at the new bytes of `bytes`, which begin with the head and only grow.
    ///
    /// `Ok(None)`: the head is incomplete and has no fault so far.
    ///
    /// # Errors
    /// A [`Fault`] as soon as it is certain. So an endless head is refused at the limit.
    pub(crate) fn look(&mut self, bytes: &[u8]) -> Result<Option<Head>, Fault> {
        while let Some(found) = memchr::memchr(b'\n', &bytes[self.scanned..]) {
            let end = self.scanned + found + 1;
            let line = &bytes[self.line_start..end];
            if !line.ends_with(b"\r\n") {
                return Err(Fault::malformed(
                    "a line of the request's head ends with a bare LF",
                    "end each line with CR LF",
                ));
            }
            (self.scanned, self.line_start) = (end, end);
            self.check_sizes(end)?;
            match (line.len() == 2, self.first_line) {
                (true, None) if end > EMPTY_LINES_BYTES_MAX => {
                    return Err(Fault::malformed(
                        "the request starts with empty lines",
                        "start with the request line",
                    ));
                }
                (true, None) => self.skip = end,
                // The line is checked at once, so that a client of another protocol gets an answer immediately.
                (false, None) => self.first_line = Some((end, request_line(line)?)),
                (true, Some((fields, minor))) => {
                    let framing = framing(&bytes[fields..end], minor)?;
                    return Ok(Some(Head { skip: self.skip, bytes: end - self.skip, framing }));
                }
                (false, Some(_)) => {}
            }
        }
        self.scanned = bytes.len();
        self.check_sizes(bytes.len())?;
        Ok(None)
    }

    /// Checks the limits for a head whose first `end` bytes are known.
    fn check_sizes(&self, end: usize) -> Result<(), Fault> {
        match self.first_line {
            None if end - self.skip > URI_BYTES_MAX + LINE_EXTRA_BYTES => Err(uri_too_long()),
            Some((first, _)) if end - first > FIELDS_BYTES_MAX => Err(Fault {
                rule: Rule::HeadersTooLarge,
                what: format!("the header fields have more than {FIELDS_BYTES_MAX} bytes"),
                hint: "send fewer or shorter header fields; data belongs into the body",
            }),
            _ => Ok(()),
        }
    }
}

fn uri_too_long() -> Fault {
    Fault {
        rule: Rule::UriTooLong,
        what: format!("the request target has more than {URI_BYTES_MAX} bytes"),
        hint: "a queue name has at most 200 bytes and a key 256; data belongs into the body",
    }
}

fn check_ascii(bytes: &[u8]) -> Result<(), Fault> {
    if bytes.is_ascii() {
        return Ok(());
    }
    Err(Fault::malformed(
        "the request's head has a byte that is not ASCII",
        "percent-encode other characters in the path (UTF-8, then %XX)",
    ))
}

/// Checks `GET /path HTTP/1.1`, with its line end, and returns the minor version.
fn request_line(line: &[u8]) -> Result<u8, Fault> {
    const SHAPE: &str = "write `METHOD /path HTTP/1.1`, with single spaces";
    check_ascii(line)?;
    let mut request = Request::new(&mut []);
    match (request.parse(line), request.method) {
        (Ok(_), _) => {}
        (Err(Error::Version), _) => {
            return Err(Fault::malformed(
                "the request line does not end with HTTP/1.1 or HTTP/1.0 after its target",
                SHAPE,
            ));
        }
        (Err(_), None) => return Err(Fault::malformed("the request line has no method", SHAPE)),
        (Err(_), Some(_)) => return Err(Fault::malformed("the request line is not three words", SHAPE)),
    }
    let target = request.path.unwrap_or_default();
    if target.len() > URI_BYTES_MAX {
        return Err(uri_too_long());
    }
    if !is_target(target) {
        return Err(Fault::malformed(
            "the request target is not a path",
            "write a path that starts with / and percent-encode what a URL does not take",
        ));
    }
    Ok(request.version.unwrap_or_default())
}

fn is_target(target: &str) -> bool {
    // Nearly every target is a path of these bytes, and needs no copy for the parser.
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"/-._~%:?&=+,;@!$'()*".contains(&b);
    if target.starts_with('/') && target.bytes().all(is_plain) {
        return true;
    }
    let is_known = target.starts_with('/') || target.starts_with("http://") || target == "*";
    is_known && !target.contains('#') && target.parse::<Uri>().is_ok()
}

/// Checks the header fields, with the empty line at their end, and returns the framing that they describe.
fn framing(fields: &[u8], minor: u8) -> Result<Framing, Fault> {
    const SHAPE: &str = "write `name: value`, one field on one line";
    check_ascii(fields)?;
    let mut space = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let what = match httparse::parse_headers(fields, &mut space) {
        Ok(httparse::Status::Complete((_, fields))) => return framing_of(fields, minor),
        Err(Error::TooManyHeaders) => {
            return Err(Fault {
                rule: Rule::HeadersTooLarge,
                what: format!("the request has more than {FIELDS_MAX} header fields"),
                hint: "send fewer header fields",
            });
        }
        Err(Error::HeaderName) => "a header line has no plain name before its colon",
        _ => "a header value has a control character",
    };
    Err(Fault::malformed(what, SHAPE))
}

fn framing_of(fields: &[Header<'_>], minor: u8) -> Result<Framing, Fault> {
    let (mut hosts, mut length, mut is_chunked) = (0, None, false);
    for Header { name, value } in fields {
        if name.eq_ignore_ascii_case("host") {
            hosts += 1;
        } else if name.eq_ignore_ascii_case("content-length") {
            if length.replace(content_length(value)?).is_some() {
                return Err(Fault::malformed("the request has more than one Content-Length", ONE_LENGTH));
            }
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            if is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Fault::malformed(
                    "the Transfer-Encoding is not `chunked` alone",
                    "send `Transfer-Encoding: chunked` once, or a Content-Length",
                ));
            }
            is_chunked = true;
        }
    }
    if hosts > 1 || (minor == 1 && hosts == 0) {
        let what = if hosts == 0 { "no" } else { "more than one" };
        return Err(Fault::malformed(format!("the request has {what} Host header"), "send one Host header"));
    }
    match (length, is_chunked) {
        (Some(_), true) => Err(Fault::malformed(
            "the request has both Content-Length and Transfer-Encoding",
            "send one of them: two lengths can be read in two ways",
        )),
        (None, true) if minor == 0 => Err(Fault::malformed(
            "an HTTP/1.0 request has a Transfer-Encoding",
            "send a Content-Length, or speak HTTP/1.1",
        )),
        (None, true) => Ok(Framing::Chunked),
        (length, false) => Ok(Framing::Length(length.unwrap_or(0))),
    }
}

const ONE_LENGTH: &str = "send one Content-Length, in decimal digits";

/// At most 18 digits, which always fit into 64 bits; the routes refuse much smaller bodies.
fn content_length(value: &[u8]) -> Result<u64, Fault> {
    let digits = std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    let length = digits.filter(|digits| digits.len() <= 18).and_then(|digits| digits.parse().ok());
    length.ok_or_else(|| Fault::malformed("the Content-Length is not a number", ONE_LENGTH))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(bytes: &[u8]) -> Result<Option<Head>, Fault> {
        Scan::default().look(bytes)
    }

    fn rule(bytes: &[u8]) -> Rule {
        whole(bytes).expect_err("taken").rule
    }

    const GET: &[u8] = b"GET /v1/queues HTTP/1.1\r\nHost: a\r\n\r\n";

    #[test]
    fn a_plain_head_passes_and_its_length_is_exact() {
        let head = Head { skip: 0, bytes: GET.len(), framing: Framing::Length(0) };
        assert_eq!(whole(GET), Ok(Some(head)));
        assert_eq!(whole(&[GET, b"GET / HT"].concat()), Ok(Some(head)), "what follows is another head's");
        assert_eq!(whole(&[b"\r\n", GET].concat()), Ok(Some(Head { skip: 2, ..head })));
    }

    #[test]
    fn byte_by_byte_gives_an_equal_result() {
        let mut scan = Scan::default();
        for end in 0..GET.len() {
            assert_eq!(scan.look(&GET[..end]), Ok(None), "{end}");
        }
        assert_eq!(scan.look(GET), whole(GET));
    }

    #[test]
    fn the_verdict_does_not_depend_on_how_bytes_arrive() {
        const WORDS: [&str; 16] = [
            "GET / HTTP/1.1\r\n",
            "PUT /a HTTP/1.0\r\n",
            "Host: a\r\n",
            "Content-Length: 5\r\n",
            "Transfer-Encoding: chunked\r\n",
            "\r\n",
            "\n",
            "\r",
            " ",
            ":",
            "x",
            "/",
            "\0",
            "\u{fc}",
            "HTTP/1.1",
            "GET ",
        ];
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut verdicts = [0; 3];
        for round in 0..20_000 {
            let mut bytes =
                ["", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a\r\n"][round % 3].as_bytes().to_vec();
            for _ in 0..round % 10 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                bytes.extend_from_slice(WORDS[usize::try_from(state % 16).expect("below 16")].as_bytes());
            }
            let at_once = whole(&bytes);
            let mut scan = Scan::default();
            let piecewise =
                (1..=bytes.len()).map(|end| scan.look(&bytes[..end])).find(|seen| *seen != Ok(None));
            assert_eq!(piecewise.unwrap_or(Ok(None)), at_once, "{:?}", String::from_utf8_lossy(&bytes));
            verdicts[if at_once.is_err() { 0 } else { 1 + usize::from(at_once != Ok(None)) }] += 1;
        }
        assert!(verdicts.iter().all(|&count| count > 100), "too few of one verdict: {verdicts:?}");
    }

    #[test]
    fn framing_has_one_reading() {
        let framing = |fields: &str| {
            let head = format!("PUT / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
            whole(head.as_bytes()).map(|head| head.expect("complete").framing)
        };
        assert_eq!(framing("Content-Length: 12\r\n"), Ok(Framing::Length(12)));
        assert_eq!(framing("content-length:0\r\n"), Ok(Framing::Length(0)));
        assert_eq!(framing("Transfer-Encoding: Chunked\r\n"), Ok(Framing::Chunked));
        for two in [
            "Content-Length: 1\r\nContent-Length: 1\r\n",
            "Content-Length: 1, 1\r\n",
            "Content-Length: +1\r\n",
            "Content-Length: -1\r\n",
            "Content-Length:\r\n",
            "Content-Length: 1234567890123456789\r\n",
            "Content-Length: 0x10\r\n",
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding : chunked\r\n",
            "Transfer-Encoding: \x0bchunked\r\n",
            "Host: b\r\n",
            "X: a\r\n b\r\n",
            "X: a\rb\r\n",
            "X: a\x00\r\n",
            "X a\r\n",
            ": a\r\n",
        ] {
            assert_eq!(framing(two).expect_err(two).rule, Rule::Malformed, "{two:?}");
        }
    }

    #[test]
    fn request_lines_have_one_shape() {
        for good in ["GET / HTTP/1.1", "GET /a?b=c HTTP/1.0", "OPTIONS * HTTP/1.1", "GET http://a/b HTTP/1.1"]
        {
            let head = format!("{good}\r\nHost: a\r\n\r\n");
            assert!(whole(head.as_bytes()).is_ok(), "{good:?} was refused");
        }
        for bad in [
            "GET /",
            "GET  / HTTP/1.1",
            "GET / HTTP/1.1 ",
            "GET /a b HTTP/1.1",
            " GET / HTTP/1.1",
            "GET / HTTP/2.0",
            "GET / http/1.1",
            "G(T / HTTP/1.1",
            "GET a HTTP/1.1",
            "GET /\t HTTP/1.1",
            "GET /#a HTTP/1.1",
            "GET /<a> HTTP/1.1",
            "GET /\u{fc} HTTP/1.1",
            "CONNECT a:1 HTTP/1.1",
            "PRI * HTTP/2.0",
            "\x16\x03\x01",
            "\u{fc} / HTTP/1.1",
        ] {
            let head = format!("{bad}\r\nHost: a\r\n\r\n");
            assert_eq!(rule(head.as_bytes()), Rule::Malformed, "{bad:?}");
        }
        assert_eq!(rule(b"GET / HTTP/1.1\r\n\r\n"), Rule::Malformed, "no Host");
        assert!(whole(b"GET / HTTP/1.0\r\n\r\n").is_ok(), "HTTP/1.0 needs no Host");
        assert_eq!(rule(b"GET / HTTP/1.1\nHost: a\n\n"), Rule::Malformed);
        assert_eq!(rule(b"\n"), Rule::Malformed);
        assert_eq!(rule(b"HELO example\r\n"), Rule::Malformed, "known before the head is complete");
        assert_eq!(rule(b"\r\n\r\n\r\n"), Rule::Malformed);
    }

    #[test]
    fn the_limits_hold_on_both_sides_of_the_edge() {
        let target = |bytes: usize| format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(bytes - 1));
        assert!(whole(target(URI_BYTES_MAX).as_bytes()).is_ok());
        assert_eq!(rule(target(URI_BYTES_MAX + 1).as_bytes()), Rule::UriTooLong);
        assert_eq!(rule(&[b'a'; URI_BYTES_MAX + LINE_EXTRA_BYTES + 1]), Rule::UriTooLong, "without an end");

        let fields =
            |count: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "x: y\r\n".repeat(count - 1));
        assert!(whole(fields(FIELDS_MAX).as_bytes()).is_ok());
        assert_eq!(rule(fields(FIELDS_MAX + 1).as_bytes()), Rule::HeadersTooLarge);

        // "Host: a\r\n" + "x: ...\r\n" + "\r\n" make 9 + 5 + n + 2 bytes.
        let value =
            |bytes: usize| format!("GET / HTTP/1.1\r\nHost: a\r\nx: {}\r\n\r\n", "y".repeat(bytes - 16));
        assert!(whole(value(FIELDS_BYTES_MAX).as_bytes()).is_ok());
        assert_eq!(rule(value(FIELDS_BYTES_MAX + 1).as_bytes()), Rule::HeadersTooLarge);
        let endless = format!("GET / HTTP/1.1\r\nx: {}", "y".repeat(FIELDS_BYTES_MAX));
        assert_eq!(rule(endless.as_bytes()), Rule::HeadersTooLarge, "without an end");
    }
}
