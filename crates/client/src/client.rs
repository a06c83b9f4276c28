//! The async API: a client, and the token, the retries and the trace that apply to each of its calls.

use std::fmt;

use tickwheel_api::TraceContext;

use crate::connect::Connector;
use crate::endpoint::endpoint_of;
use crate::error::Secret;
use crate::exchange::Exchange;
use crate::{ClientError, Retries};

/// The address at which a server listens by default.
pub const SERVER_URL_DEFAULT: &str = "http://127.0.0.1:8463";

/// An async client of one server, for programs on tokio with its I/O and time. Cloning is cheap. Clones share the open connections, which
/// belong to the runtime that made the first call.
///
/// Every method sends one request and returns the answer of the server, or a [`ClientError`]. Queue names and keys are given without
/// encoding; the client percent-encodes them.
#[derive(Clone)]
pub struct Client {
    pub(crate) exchange: Exchange,
}

impl Client {
    /// A client of the server at this URL, such as [`SERVER_URL_DEFAULT`] or `http://[::1]:8463`, or at this unix socket, such as
    /// `unix:/run/tickwheel/http`. No request is sent yet.
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

    /// Gives this trace to each task that is put from now on. The worker that leases the task gets the trace with it.
    #[must_use]
    pub fn with_trace(mut self, trace: TraceContext) -> Self {
        self.exchange.trace = Some(trace);
        self
    }

    /// Trusts a server over TLS if its certificate was signed by one of these roots (PEM), or is one of them. Without this call, the
    /// roots of Mozilla are trusted, as they were when this program was built.
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
