//! Request bodies: their types, sizes and time limits.

use std::ops::Deref;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use tickwheel_api::{BadRequest, Problem};
use tokio::time::timeout;

use crate::access::quota::Quota;
use crate::access::refusal::Refusal;
use crate::base::aside::{LONG_BYTES, aside};
use crate::doors::http::problem;
use crate::service::caller::Caller;
use crate::service::permits::shares::Permit;

/// The longest request body, and the longest line of a batch (bytes).
pub(crate) const BODY_BYTES_MAX: usize = 1 << 20;
/// The largest body that needs no permit. With 10,000 connections such bodies take 160 MiB.
const SMALL_BODY_BYTES: usize = 16 << 10;
/// The longest time for a body to arrive, but for those of batches and imports.
pub(crate) const BODY_TIME_MAX: Duration = Duration::from_secs(30);

/// The media types of JSON bodies. `curl -d` and Python's urllib send `application/x-www-form-urlencoded` by default;
/// such a body is read as JSON. (Forms of web pages have this type, too; the check of origins refuses those.)
pub(crate) const JSON_TYPES: [&str; 2] = ["application/json", "application/x-www-form-urlencoded"];
/// The media types that clients use for batches.
pub(crate) const NDJSON_TYPES: [&str; 6] = [
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "application/x-jsonlines",
    "application/json",
    "application/x-www-form-urlencoded",
];

/// A whole JSON body, not yet parsed. Dropping it frees its permit, so a handler drops it before a long wait.
pub(crate) struct JsonBytes {
    bytes: Vec<u8>,
    pub(super) permit: Option<Permit>,
}

impl Deref for JsonBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl JsonBytes {
    /// Reads the whole body of a request with these headers.
    ///
    /// # Errors
    /// The body has a foreign type, is too long, too slow or broken, or the caller's quota is used up.
    pub(crate) async fn of(headers: &HeaderMap, body: &mut Body, caller: &Caller) -> Result<Self, Refusal> {
        check_type(headers, &JSON_TYPES)?;
        check_length(headers, BODY_BYTES_MAX as u64)?;
        caller.quota().map_or(Ok(()), Quota::body)?;
        let read = timeout(BODY_TIME_MAX, Self::whole(body, caller)).await;
        Ok(read.map_err(|_| problem::body_too_slow(BODY_TIME_MAX))??)
    }

    async fn whole(body: &mut Body, caller: &Caller) -> Result<Self, Problem> {
        let (mut bytes, mut permit) = (Vec::new(), None);
        while let Some(piece) = next_piece(body).await? {
            if let Some(quota) = caller.quota() {
                quota.came(piece.len(), 0);
            }
            let length = bytes.len() + piece.len();
            if length > BODY_BYTES_MAX {
                return Err(Problem::body_too_large(BODY_BYTES_MAX as u64));
            }
            if length > SMALL_BODY_BYTES && permit.is_none() {
                permit = Some(caller.app().admission.slots().large_bodies.enter(caller.producer()).await?);
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(Self { bytes, permit })
    }

    /// Parses the body with `read`. A long body is parsed on another thread, because the worst 1 MiB of JSON takes
    /// more than 10 ms, and this thread has other tasks. The body's bytes are moved there. The permit stays taken.
    ///
    /// # Errors
    /// The errors of `read`, or the server stops.
    pub(crate) async fn read<T: Send + 'static>(
        &mut self,
        read: impl FnOnce(&[u8]) -> Result<T, BadRequest> + Send + 'static,
    ) -> Result<T, Refusal> {
        if self.bytes.len() <= LONG_BYTES {
            return Ok(read(&self.bytes)?);
        }
        let bytes = std::mem::take(&mut self.bytes);
        Ok(aside(move || read(&bytes)).await??)
    }
}

/// Refuses a body that has none of these types, or that is compressed. A missing type is accepted, because most
/// programs mean JSON.
pub(crate) fn check_type(headers: &HeaderMap, types: &[&str]) -> Result<(), Refusal> {
    if let Some(coding) = headers.get(CONTENT_ENCODING)
        && !coding.as_bytes().eq_ignore_ascii_case(b"identity")
    {
        return Err(Problem::bad_media_type(
            "Content-Encoding",
            &shown(coding),
            "the body as it is, unpacked",
        )
        .into());
    }
    let Some(given) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let text = given.to_str().unwrap_or_default();
    let mut parts = text.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    let known = types.iter().any(|known| known.eq_ignore_ascii_case(essence));
    let utf8 = parts.filter_map(|part| part.split_once('=')).all(|(name, value)| {
        !name.eq_ignore_ascii_case("charset") || value.trim_matches('"').eq_ignore_ascii_case("utf-8")
    });
    if known && utf8 {
        Ok(())
    } else {
        Err(Problem::bad_media_type("Content-Type", &shown(given), types[0]).into())
    }
}

/// Refuses a body that is too long by its `Content-Length`, before a byte of it is read.
pub(crate) fn check_length(headers: &HeaderMap, max: u64) -> Result<(), Refusal> {
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    match length {
        Some(bytes) if bytes > max => Err(Problem::body_too_large(max).into()),
        _ => Ok(()),
    }
}

fn shown(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// The next bytes of a body; `None` at the end. The future can be dropped and called again.
pub(crate) async fn next_piece(body: &mut Body) -> Result<Option<Bytes>, Problem> {
    loop {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
        match frame {
            None => return Ok(None),
            Some(Err(_)) => return Err(problem::broken_body()),
            // Trailers have no meaning here.
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::access::producer::Producer;
    use crate::access::tokens::{Grant, Tokens};
    use crate::base::stopping;
    use crate::service::app::App;
    use crate::service::permits::limits::Limits;

    /// Whether a body of this size is parsed on another thread.
    async fn read_elsewhere(bytes: usize) -> bool {
        let mut body = JsonBytes { bytes: vec![b' '; bytes], permit: None };
        let read = move |given: &[u8]| {
            assert_eq!(given.len(), bytes);
            Ok(std::thread::current().id())
        };
        body.read(read).await.expect("it is read") != std::thread::current().id()
    }

    #[tokio::test]
    async fn a_long_body_is_read_aside() {
        assert!(!read_elsewhere(LONG_BYTES).await);
        assert!(read_elsewhere(LONG_BYTES + 1).await);
        let mut long = JsonBytes { bytes: vec![b'['; BODY_BYTES_MAX], permit: None };
        let refused = long.read(tickwheel_api::PutBody::parse).await.expect_err("no body");
        assert_eq!(refused.problem().status, 400);
    }

    /// A large body from this sender, with its permit.
    async fn large(app: &Arc<App>, grant: &Grant, from: &str) -> Result<JsonBytes, Refusal> {
        let producer = Producer::new(grant.token(), Some(from.parse().expect("an address")));
        let caller = Caller::new(Arc::clone(app), grant.clone(), producer);
        let mut body = Body::from(vec![b' '; SMALL_BODY_BYTES + 1]);
        JsonBytes::of(&HeaderMap::new(), &mut body, &caller).await
    }

    /// A bug that was found: one producer sent 128 large bodies slowly and took all permits for them.
    #[tokio::test(start_paused = true)]
    async fn a_large_body_takes_a_place_of_its_sender() {
        let (_stop, stopping) = stopping::signal();
        let limits = Limits { large_bodies: 5, large_bodies_per_caller: 1, ..Limits::default() };
        let app = Arc::new(App::with_limits(stopping, &limits));
        let tokens = Tokens::parse("one\ntwo").expect("tokens");
        let of = |token: &str| tokens.grant(token.as_bytes()).expect("it is known");
        let (one, two, none) = (of("one"), of("two"), Grant::everything());
        let mut held = Vec::new();
        for (grant, from) in [(&one, "127.0.0.1"), (&none, "192.0.2.1")] {
            held.push(large(&app, grant, from).await.expect("its share"));
            let refused = large(&app, grant, from).await.err().expect("it has its share");
            assert_eq!(refused.problem().status, 429);
            let detail = &refused.problem().detail;
            assert!(detail.contains("--max-large-bodies-per-caller"), "{detail}");
        }
        held.push(large(&app, &two, "127.0.0.1").await.expect("another token"));
        // Clients of a local proxy, on a server without tokens.
        for _ in 0..2 {
            held.push(large(&app, &none, "127.0.0.1").await.expect("there are permits"));
        }
        let refused = large(&app, &none, "127.0.0.1").await.err().expect("all are taken");
        assert!(refused.problem().detail.contains("(--max-large-bodies)"), "{}", refused.problem().detail);
    }

    #[test]
    fn json_has_several_media_types() {
        let refused = |name, value: &'static str| {
            let headers = HeaderMap::from_iter([(name, HeaderValue::from_static(value))]);
            check_type(&headers, &JSON_TYPES).err().map(|refusal| refusal.problem().status)
        };
        for good in
            ["application/json", "Application/JSON; charset=UTF-8", "application/json;charset=\"utf-8\""]
        {
            assert_eq!(refused(CONTENT_TYPE, good), None, "{good}");
        }
        for bad in
            ["text/plain", "application/jsonl", "", "application/json; charset=latin1", "application/xml"]
        {
            assert_eq!(refused(CONTENT_TYPE, bad), Some(415), "{bad}");
        }
        assert_eq!(refused(CONTENT_ENCODING, "identity"), None);
        assert_eq!(refused(CONTENT_ENCODING, "gzip"), Some(415));
        assert!(check_type(&HeaderMap::new(), &JSON_TYPES).is_ok());
    }
}
