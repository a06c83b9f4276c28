//! One request and its answer over HTTP.

use crate::ClientError;
use crate::client::CALL_TIMEOUT;
use crate::error::{refusal, untrusted};
use crate::retries::Retries;
#[cfg(unix)]
use crate::unix::{NoConnection, NoNames, ToSocket};
use crate::url::Place;
use serde::de::DeserializeOwned;
use std::error::Error;
use std::io::{ErrorKind, Read};
use std::time::Duration;
use tickwheel_api::TraceContext;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Timeout, http};

/// 5 s to reach a server: one that takes longer is down or far away.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// 64 open connections are kept: as many threads share one client without opening new ones for each call.
const IDLE_CONNECTIONS_MAX: usize = 64;
/// 2 GiB: a lease of 1,000 tasks of 1 MiB, in base64. A limit, so that a strange server cannot fill the
/// memory.
const ANSWER_BYTES_MAX: u64 = 2 << 30;

/// A request in the making.
pub(crate) struct Call {
    method: &'static str,
    path: String,
    if_match: Option<String>,
    body: Option<(&'static str, Vec<u8>)>,
    idempotency_key: Option<String>,
    timeout: Duration,
    /// Sent twice it does what it does when it is sent once.
    twice_is_once: bool,
}

impl Call {
    pub(crate) fn new(method: &'static str, path: String) -> Self {
        let twice_is_once = method == "GET";
        Self {
            method,
            path,
            if_match: None,
            body: None,
            idempotency_key: None,
            timeout: CALL_TIMEOUT,
            twice_is_once,
        }
    }

    /// It may be sent again though it may have had its effect.
    pub(crate) fn twice_is_once(mut self) -> Self {
        // With a version the second would be refused, for the first made another.
        self.twice_is_once = self.if_match.is_none();
        self
    }

    pub(crate) fn idempotency_key(mut self, key: &str) -> Self {
        self.idempotency_key = Some(format!("\"{key}\""));
        self
    }

    pub(crate) fn query(mut self, query: &str) -> Self {
        if !query.is_empty() {
            self.path.push('?');
            self.path.push_str(query);
        }
        self
    }

    pub(crate) fn if_match(mut self, etag: Option<String>) -> Self {
        self.if_match = etag;
        self
    }

    pub(crate) fn json(mut self, body: Vec<u8>) -> Self {
        self.body = Some(("application/json", body));
        self
    }

    pub(crate) fn ndjson(mut self, body: Vec<u8>) -> Self {
        self.body = Some((tickwheel_api::BATCH_CONTENT_TYPE, body));
        self
    }

    pub(crate) fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

/// An answer with a status of 2xx.
pub(crate) struct Answer {
    pub(crate) status: u16,
    bytes: Vec<u8>,
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
        self.read(&self.bytes)
    }

    /// The body as lines of JSON.
    pub(crate) fn lines<T: DeserializeOwned>(&self) -> Result<Vec<T>, ClientError> {
        let lines = self.bytes.split(|b| *b == b'\n').filter(|line| !line.trim_ascii().is_empty());
        lines.map(|line| self.read(line)).collect()
    }

    fn read<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, ClientError> {
        let mut json = serde_json::Deserializer::from_slice(bytes);
        serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let path = error.path().to_string();
            let place = if path == "." { "its body".to_owned() } else { format!("its member `{path}`") };
            ClientError::BadAnswer { status: Some(self.status), what: format!("{place}: {}", error.inner()) }
        })
    }
}

/// The open connections to one server.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    agent: Agent,
    place: Place,
    token: Option<Secret>,
    retries: Retries,
    trace: Option<TraceContext>,
}

/// What must not be shown.
#[derive(Clone)]
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Exchange {
    pub(crate) fn new(place: Place) -> Self {
        Self {
            agent: agent(&place, RootCerts::WebPki),
            place,
            token: None,
            retries: Retries::NONE,
            trace: None,
        }
    }

    /// Trusts these roots in place of the usual ones.
    pub(crate) fn set_roots(&mut self, pem: &[u8]) -> Result<(), ClientError> {
        if self.place.socket.is_some() {
            return Err(ClientError::NoTls { address: self.place.address.clone() });
        }
        let mut roots = Vec::new();
        for item in parse_pem(pem) {
            if let PemItem::Certificate(root) = item.map_err(|_| ClientError::BadCertificates)? {
                roots.push(root);
            }
        }
        if roots.is_empty() {
            return Err(ClientError::BadCertificates);
        }
        self.agent = agent(&self.place, RootCerts::new_with_certs(&roots));
        Ok(())
    }

    pub(crate) fn set_retries(&mut self, retries: Retries) {
        self.retries = retries;
    }

    pub(crate) fn set_trace(&mut self, trace: TraceContext) {
        self.trace = Some(trace);
    }

    pub(crate) fn set_token(&mut self, token: &str) {
        self.token = Some(Secret(format!("Bearer {token}")));
    }

    pub(crate) fn address(&self) -> &str {
        &self.place.address
    }

    /// Sends the request, again where that is safe, and reads the whole answer.
    pub(crate) fn send(&self, call: Call) -> Result<Answer, ClientError> {
        let mut nth = 0;
        loop {
            nth += 1;
            let error = match self.send_once(&call) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match self.retries.wait(nth, &error, call.twice_is_once) {
                Some(wait) => std::thread::sleep(wait),
                None => return Err(error),
            }
        }
    }

    /// Sends the request once, and gives the body of its answer as it comes.
    pub(crate) fn stream(&self, call: &Call) -> Result<impl Read + Send + use<>, ClientError> {
        Ok(self.ask(call)?.into_body().into_with_config().limit(u64::MAX).reader())
    }

    fn send_once(&self, call: &Call) -> Result<Answer, ClientError> {
        let mut answer = self.ask(call)?;
        let status = answer.status().as_u16();
        let read = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        Ok(Answer { status, bytes: read.map_err(|error| self.failed(error))? })
    }

    /// Sends the request; a status other than 2xx is an error.
    fn ask(&self, call: &Call) -> Result<http::Response<ureq::Body>, ClientError> {
        let mut request = http::Request::builder()
            .method(call.method)
            .uri(format!("{}://{}{}", self.place.scheme, self.place.host(), call.path))
            .header("accept", "application/json, application/problem+json, application/x-ndjson");
        if let Some(Secret(bearer)) = &self.token {
            request = request.header("authorization", bearer);
        }
        if let Some(etag) = &call.if_match {
            request = request.header("if-match", etag);
        }
        if let Some(key) = &call.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        if let Some(TraceContext { traceparent, tracestate }) = &self.trace {
            request = request.header("traceparent", traceparent);
            if let Some(state) = tracestate {
                request = request.header("tracestate", state);
            }
        }
        let answer = match &call.body {
            None => request
                .body(())
                .map_err(|error| self.failed(error.into()))
                .and_then(|request| self.run(request, call.timeout)),
            Some((content_type, body)) => request
                .header("content-type", *content_type)
                .body(&body[..])
                .map_err(|error| self.failed(error.into()))
                .and_then(|request| self.run(request, call.timeout)),
        };
        let mut answer = answer?;
        let status = answer.status().as_u16();
        if (200..=299).contains(&status) {
            return Ok(answer);
        }
        let read = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        Err(refusal(status, &read.map_err(|error| self.failed(error))?))
    }

    fn run<B: ureq::AsSendBody>(
        &self,
        request: http::Request<B>,
        timeout: Duration,
    ) -> Result<http::Response<ureq::Body>, ClientError> {
        let request = self.agent.configure_request(request).timeout_global(Some(timeout)).build();
        self.agent.run(request).map_err(|error| self.failed(error))
    }

    /// Sorts what went wrong below HTTP by whether the request can have reached the server.
    fn failed(&self, error: ureq::Error) -> ClientError {
        let address = self.place.address.clone();
        #[cfg(unix)]
        if let (Some(path), ureq::Error::Other(other)) = (&self.place.socket, &error)
            && let Some(no_connection) = other.downcast_ref::<NoConnection>()
        {
            return no_connection.told(address, path);
        }
        let handshake = match &error {
            ureq::Error::Io(io) => io.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()),
            ureq::Error::Rustls(tls) => Some(tls),
            _ => None,
        };
        match handshake {
            Some(rustls::Error::InvalidCertificate(bad)) => return untrusted(address, bad),
            // What answers a handshake with something else is no server of ours, and has seen no request.
            Some(rustls::Error::InvalidMessage(_)) => {
                let what = "it does not speak TLS; write http:// in place of https://".to_owned();
                return ClientError::BadAnswer { status: None, what };
            }
            _ => {}
        }
        let unreachable = match &error {
            ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => true,
            ureq::Error::Timeout(Timeout::Connect | Timeout::Resolve) => true,
            ureq::Error::Io(io) => {
                let kinds = [
                    ErrorKind::ConnectionRefused,
                    ErrorKind::HostUnreachable,
                    ErrorKind::NetworkUnreachable,
                    ErrorKind::AddrNotAvailable,
                ];
                // The standard library has no kind for a name that is not known.
                kinds.contains(&io.kind()) || io.to_string().starts_with("failed to lookup address")
            }
            _ => false,
        };
        match error {
            ureq::Error::Protocol(_)
            | ureq::Error::LargeResponseHeader(..)
            | ureq::Error::BodyExceedsLimit(_) => {
                ClientError::BadAnswer { status: None, what: error.to_string() }
            }
            _ if unreachable => ClientError::Unreachable { address, source: plain(error) },
            _ => ClientError::NoAnswer { address, source: plain(error) },
        }
    }
}

fn agent(place: &Place, roots: RootCerts) -> Agent {
    let config = Agent::config_builder()
        .tls_config(TlsConfig::builder().root_certs(roots).build())
        .http_status_as_error(false)
        // The server is named by address, mostly this machine: a proxy of the environment is not meant
        // for it.
        .proxy(None)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("tickwheel/", env!("CARGO_PKG_VERSION")))
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .max_idle_connections(IDLE_CONNECTIONS_MAX)
        .max_idle_connections_per_host(IDLE_CONNECTIONS_MAX)
        .build();
    match &place.socket {
        #[cfg(unix)]
        Some(path) => Agent::with_parts(config, ToSocket(path.clone()), NoNames),
        _ => config.new_agent(),
    }
}

/// The error of the socket itself if there is one: it says more to a person than its wrapping.
fn plain(error: ureq::Error) -> Box<dyn Error + Send + Sync> {
    match error {
        ureq::Error::Io(io) => Box::new(io),
        other => Box::new(other),
    }
}
