//! The client itself, and what goes with each of its calls.

use crate::exchange::Exchange;
use crate::url::server_place;
use crate::{ClientError, Retries};
use std::time::Duration;
use tickwheel_api::{PutAnswer, TraceContext};

/// Where a server listens if nobody says otherwise.
pub const SERVER_URL_DEFAULT: &str = "http://127.0.0.1:8463";

/// 30 s for one call: a healthy server answers in milliseconds, one on a busy disk in a few seconds.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// 10 minutes for a step of the virtual clock, which may fire millions of tasks before it answers.
pub(crate) const ADVANCE_TIMEOUT: Duration = Duration::from_secs(600);

/// A connection to one server. Cloning is cheap, and clones share the open connections.
///
/// Every method sends one request and returns what the server said, or a [`ClientError`]. Queue names and
/// keys are given as they are; the client percent-encodes them.
///
/// ```no_run
/// use tickwheel_client::{Client, SERVER_URL_DEFAULT};
/// use tickwheel_api::{Due, LeaseBody, PayloadBody, PutBody, PutQuery};
///
/// let client = Client::new(SERVER_URL_DEFAULT)?;
/// let payload = PayloadBody::json(br#"{"order":1}"#.to_vec());
/// let body = PutBody { due: Due::After(1_800_000), payload, ..PutBody::default() };
/// client.put("close", "order/1", &body, PutQuery::default(), None)?;
/// for task in client.lease("close", &LeaseBody { wait_ms: 20_000, ..LeaseBody::default() })? {
///     client.ack("close", vec![task.token])?;
/// }
/// # Ok::<(), tickwheel_client::ClientError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) exchange: Exchange,
}

/// What a put did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Whether the task is new; else it replaced the live one of that key.
    pub created: bool,
    /// The task.
    pub task: PutAnswer,
}

impl Client {
    /// A client of the server at this URL, such as [`SERVER_URL_DEFAULT`] or `http://[::1]:8463`, or at this unix socket, such as
    /// `unix:/run/tickwheel/http`. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// [`ClientError::BadUrl`] for anything but `http://HOST[:PORT]`, `https://HOST[:PORT]` and `unix:PATH`.
    pub fn new(server_url: &str) -> Result<Self, ClientError> {
        Ok(Self { exchange: Exchange::new(server_place(server_url)?) })
    }

    /// Sends this token with each request, for a server that wants one.
    #[must_use]
    pub fn with_token(mut self, token: &str) -> Self {
        self.exchange.set_token(token);
        self
    }

    /// Sends calls again where that is safe; blocks in between.
    #[must_use]
    pub fn with_retries(mut self, retries: Retries) -> Self {
        self.exchange.set_retries(retries);
        self
    }

    /// What is put from now on is traced by this: it comes back with the task, to whoever leases it.
    #[must_use]
    pub fn with_trace(mut self, trace: TraceContext) -> Self {
        self.exchange.set_trace(trace);
        self
    }

    /// Trusts a server over TLS whose certificate comes from one of these roots, in PEM, or is one of them. Without this the roots of
    /// Mozilla are trusted, as of the day this was built.
    ///
    /// # Errors
    ///
    /// [`ClientError::BadCertificates`], and [`ClientError::NoTls`] for a unix socket.
    pub fn with_roots(mut self, pem: &[u8]) -> Result<Self, ClientError> {
        self.exchange.set_roots(pem)?;
        Ok(self)
    }

    /// The `HOST:PORT` of the server, or its `unix:PATH`.
    pub fn address(&self) -> &str {
        self.exchange.address()
    }
}
