//! A call as a value: the request, whether it may be sent again, and how its answer is read.

use std::time::Duration;

use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, IF_MATCH};
use serde::de::DeserializeOwned;
use tickwheel_api::etag;

use crate::ClientError;

/// The time limit of a call: 30 s. A healthy server answers in milliseconds, a server on a busy disk in a few seconds.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// The time limit of a call that may change millions of tasks before it is answered: 10 minutes.
pub(crate) const LONG_TIMEOUT: Duration = Duration::from_secs(600);

/// Whether a call is sent again if its answer was lost, so that the call may have had its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Yes: sending it twice has the same effect as sending it once.
    Safe,
    /// No. It is sent again only if the server has received nothing of it, or has said that the call had no effect.
    Unsent,
}

/// A request that is being built.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// With the query.
    pub(crate) path: String,
    pub(crate) headers: Vec<(HeaderName, String)>,
    pub(crate) body: Bytes,
    /// The longest time until the whole answer has arrived.
    pub(crate) timeout: Duration,
    pub(crate) repeat: Repeat,
    /// A status that is an answer, besides those of 2xx.
    pub(crate) also: Option<u16>,
}

impl Request {
    /// A request without a body. It is repeated after a lost answer only if the method is `GET`; for other methods the
    /// call has to allow this itself.
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        let repeat = if method == Method::GET { Repeat::Safe } else { Repeat::Unsent };
        let (headers, body) = (Vec::new(), Bytes::new());
        Self { method, path: path.into(), headers, body, timeout: CALL_TIMEOUT, repeat, also: None }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path)
    }

    /// The call may be repeated, unless it names a version. In that case the second attempt would be refused, because
    /// the first one made a new version.
    pub(crate) fn safe_to_repeat(mut self) -> Self {
        let has_version = self.headers.iter().any(|(name, _)| name == IF_MATCH);
        self.repeat = if has_version { Repeat::Unsent } else { Repeat::Safe };
        self
    }

    /// An answer with this status is no error.
    pub(crate) fn also_answered(mut self, status: u16) -> Self {
        self.also = Some(status);
        self
    }

    pub(crate) fn query(mut self, query: &str) -> Self {
        if !query.is_empty() {
            self.path.push('?');
            self.path.push_str(query);
        }
        self
    }

    pub(crate) fn header(mut self, name: HeaderName, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(crate) fn if_match(self, version: Option<u64>) -> Self {
        match version {
            Some(version) => self.header(IF_MATCH, etag(version)),
            None => self,
        }
    }

    pub(crate) fn json(self, body: Vec<u8>) -> Self {
        self.sends("application/json", body)
    }

    pub(crate) fn ndjson(self, body: Vec<u8>) -> Self {
        self.sends(tickwheel_api::BATCH_CONTENT_TYPE, body)
    }

    fn sends(mut self, content_type: &str, body: Vec<u8>) -> Self {
        self.body = body.into();
        self.header(CONTENT_TYPE, content_type.to_owned())
    }

    pub(crate) fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The answer is one JSON value.
    pub(crate) fn answer<T: DeserializeOwned + 'static>(self) -> Call<T> {
        self.read(|answer| answer.body())
    }

    /// Reads the answer with `read`.
    pub(crate) fn read<T: 'static>(
        self,
        read: impl FnOnce(Answer) -> Result<T, ClientError> + Send + 'static,
    ) -> Call<T> {
        self.end(|answer| read(answer?))
    }

    /// Reads the result, which may be a refusal or an error.
    pub(crate) fn end<T>(
        self,
        end: impl FnOnce(Result<Answer, ClientError>) -> Result<T, ClientError> + Send + 'static,
    ) -> Call<T> {
        Call { request: self, end: Box::new(end) }
    }
}

type End<T> = Box<dyn FnOnce(Result<Answer, ClientError>) -> Result<T, ClientError> + Send>;

/// A request, and how its answer is read.
pub(crate) struct Call<T> {
    pub(crate) request: Request,
    pub(crate) end: End<T>,
}

/// An answer with a status of 2xx, or with the other one that the request allows.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) bytes: Vec<u8>,
}

impl Answer {
    /// The body as text.
    pub(crate) fn text(self) -> Result<String, ClientError> {
        let status = Some(self.status);
        String::from_utf8(self.bytes)
            .map_err(|_| ClientError::BadAnswer { status, what: "its body is not UTF-8".to_owned() })
    }

    /// The body as one JSON value.
    pub(crate) fn body<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        self.value(&self.bytes)
    }

    /// The body as lines of JSON.
    pub(crate) fn lines<T: DeserializeOwned>(&self) -> Result<Vec<T>, ClientError> {
        let lines = self.bytes.split(|b| *b == b'\n').filter(|line| !line.trim_ascii().is_empty());
        lines.map(|line| self.value(line)).collect()
    }

    fn value<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, ClientError> {
        serde_json::from_slice(bytes).map_err(|error| ClientError::BadAnswer {
            status: Some(self.status),
            what: format!("its body: {error}"),
        })
    }
}

/// Declares calls of both APIs, async and blocking: documentation, arguments, answer, and the [`Call`] that is sent.
macro_rules! calls {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $answer:ty $call:block)*) => {
        $(fn $name($($argument: $type),*) -> crate::call::Call<$answer> $call)*

        impl crate::Client {
            $(
                $(#[$doc])*
                pub async fn $name(&self, $($argument: $type),*) -> Result<$answer, crate::ClientError> {
                    self.exchange.send(self::$name($($argument),*)).await
                }
            )*
        }

        impl crate::blocking::Client {
            $(
                $(#[$doc])*
                pub fn $name(&self, $($argument: $type),*) -> Result<$answer, crate::ClientError> {
                    self.block_on(self.client.exchange.send(self::$name($($argument),*)))
                }
            )*
        }
    };
}
pub(crate) use calls;
