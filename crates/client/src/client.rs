//! The async API: a client, and the token, the retries and the trace that apply to each of its calls.

use std::fmt;

use tickwheel_api::TraceContext;

use crate::connect::Connector;
use crate::endpoint::endpoint_of;
use crate::error::Secret;
use crate::exchange::Exchange;
use crate::{ClientError, Retries};

/// Where a server listens unless it is told otherwise.
pub const SERVER_URL_DEFAULT: &str = "http://127.0.0.1:8463";

/// An async client of one server, for programs on tokio with its I/O and time. Cloning is cheap, and clones share the open
/// connections, which belong to the runtime that first called.
///
/// Every method sends one request and returns what the server said, or a [`ClientError`]. Queue names and keys are given as they are; the
/// client percent-encodes them.
#[derive(Clone)]
pub struct Client {
    pub(crate) exchange: Exchange,
}

impl Client {
    /// A client of the server at this URL, such as [`SERVER_URL_DEFAULT`] or `http://[::1]:8463`, or at this unix socket, such as
    /// `unix:/run/tickwheel/http`. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// [`ClientError::BadUrl`] for anything but `http://HOST[:PORT]`, `https://HOST[:PORT]` and `unix:PATH`.
    pub fn new(server_url: &str) -> Result<Self, ClientError> {
        Ok(Self { exchange: Exchange::new(Connector::new(endpoint_of(server_url)?)) })
    }

    /// Sends this token with each request, for a server that wants one.
    #[must_use]
    pub fn with_token(mut self, token: &str) -> Self {
        self.exchange.token = Some(Secret(format!("Bearer {token}")));
        self
    }

    /// Sends calls again where that is safe: see [what is repeated](crate#what-is-repeated).
    #[must_use]
    pub fn with_retries(mut self, retries: Retries) -> Self {
        self.exchange.retries = retries;
        self
    }

    /// Traces each task that is put from now on by this: the trace comes back with the task, to the worker that leases it.
    #[must_use]
    pub fn with_trace(mut self, trace: TraceContext) -> Self {
        self.exchange.trace = Some(trace);
        self
    }

    /// Trusts a server over TLS whose certificate comes from one of these roots, in PEM, or is one of them. Without this the roots of
    /// Mozilla are trusted, as of the day this was built.
    ///
    /// # Errors
    ///
    /// [`ClientError::BadCertificates`], and [`ClientError::NoTls`] for a unix socket.
    pub fn with_roots(mut self, pem: &[u8]) -> Result<Self, ClientError> {
        let connector = Connector::with_roots(self.exchange.connector().endpoint().clone(), pem)?;
        self.exchange.set_connector(connector);
        Ok(self)
    }

    /// The `HOST:PORT` of the server, or its `unix:PATH`.
    pub fn address(&self) -> &str {
        &self.exchange.connector().endpoint().address
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("address", &self.address()).finish_non_exhaustive()
    }
}
