//! A request and its answer: the connection that it uses, its time limit, and when it is sent again.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, HOST, USER_AGENT};
use hyper::http;
use tickwheel_api::TraceContext;
use tickwheel_http::Connection;
use tokio::time::{Instant, sleep, timeout_at};

use crate::ClientError;
use crate::call::{Answer, Call, Repeat, Request};
use crate::connect::Connector;
use crate::error::{Outcome, Secret, broken, refusal};
use crate::pool::Pool;
use crate::retries::Retries;

/// The largest answer: 2 GiB, which is a lease of 1,000 tasks of 1 MiB in base64. Without a limit, a faulty server could fill the memory.
const ANSWER_BYTES_MAX: u64 = 2 << 30;

/// The connections to one server, and the settings of each call.
#[derive(Clone)]
pub(crate) struct Exchange {
    line: Arc<Line>,
    pub(crate) token: Option<Secret>,
    pub(crate) retries: Retries,
    pub(crate) trace: Option<TraceContext>,
}

/// The connector and the connections of one server.
struct Line {
    connector: Connector,
    pool: Pool,
}

impl Exchange {
    pub(crate) fn new(connector: Connector) -> Self {
        let line = Arc::new(Line { connector, pool: Pool::default() });
        Self { line, token: None, retries: Retries::NONE, trace: None }
    }

    /// Uses another kind of connection from now on.
    pub(crate) fn set_connector(&mut self, connector: Connector) {
        self.line = Self::new(connector).line;
    }

    pub(crate) fn connector(&self) -> &Connector {
        &self.line.connector
    }

    /// Sends a call, repeats it where that is safe, and reads the whole answer.
    pub(crate) async fn send<T>(&self, call: Call<T>) -> Result<T, ClientError> {
        let mut nth = 0;
        // If a later attempt is refused, an earlier attempt may still have taken effect. The result says so.
        let mut unknown = None;
        loop {
            nth += 1;
            let answer = self.send_once(&call.request).await;
            let failed = answer.as_ref().err();
            let wait = failed.and_then(|error| self.retries.wait(nth, error, call.request.repeat));
            let Some(wait) = wait else {
                let was_lost = unknown.filter(|_| answer.is_err());
                return (call.end)(was_lost.map_or(answer, Err));
            };
            if let Err(error) = answer
                && error.outcome() == Outcome::Unknown
            {
                unknown = Some(error);
            }
            sleep(wait).await;
        }
    }

    async fn send_once(&self, request: &Request) -> Result<Answer, ClientError> {
        let mut reply = self.open(request).await?;
        Ok(Answer { status: reply.status, bytes: reply.rest(ANSWER_BYTES_MAX).await? })
    }

    /// Sends a request once, and returns its answer as it arrives. A status other than 2xx is an error, unless the request
    /// allows it.
    pub(crate) async fn open(&self, request: &Request) -> Result<Reply, ClientError> {
        let mut reply = self.reply(request).await?;
        if (200..=299).contains(&reply.status) || request.also == Some(reply.status) {
            return Ok(reply);
        }
        let body = reply.rest(ANSWER_BYTES_MAX).await?;
        Err(refusal(reply.status, &body))
    }

    /// Sends a request over a kept connection or over a new one. If the server took no byte of it on a kept connection, it had closed this
    /// connection meanwhile. That says nothing about the server, so the request is sent over another connection.
    async fn reply(&self, request: &Request) -> Result<Reply, ClientError> {
        let Request { timeout, repeat, .. } = *request;
        let terms = Terms { deadline: Instant::now() + timeout, timeout, repeat };
        loop {
            let message = self.message(request).map_err(|source| ClientError::Unsendable { source })?;
            let kept = self.line.pool.take().await;
            let is_kept = kept.is_some();
            let mut connection = match kept {
                Some(connection) => connection,
                None => self.line.connector.connect().await?,
            };
            match self.line.within(terms, connection.send(message)).await {
                Ok(answer) => {
                    let (status, body) = (answer.status().as_u16(), answer.into_body());
                    let line = Arc::clone(&self.line);
                    return Ok(Reply { status, body, connection: Some(connection), line, terms });
                }
                Err(_) if is_kept && connection.written() == 0 && Instant::now() < terms.deadline => {}
                Err(ClientError::NoAnswer { address, source, .. }) if connection.written() == 0 => {
                    return Err(ClientError::Unreachable { address, source });
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The request as it is sent.
    fn message(&self, request: &Request) -> http::Result<http::Request<Full<Bytes>>> {
        let mut message = http::Request::builder()
            .method(&request.method)
            .uri(&request.path)
            .header(HOST, self.connector().endpoint().host())
            .header(USER_AGENT, concat!("tickwheel/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, "application/json, application/problem+json, application/x-ndjson");
        if let Some(Secret(bearer)) = &self.token {
            message = message.header(AUTHORIZATION, bearer);
        }
        if let Some(TraceContext { traceparent, tracestate }) = &self.trace {
            message = message.header("traceparent", traceparent);
            if let Some(state) = tracestate {
                message = message.header("tracestate", state);
            }
        }
        for (name, value) in &request.headers {
            message = message.header(name, value);
        }
        message.body(Full::new(request.body.clone()))
    }
}

impl Line {
    /// Waits for a part of an answer, until the time limit of the call.
    async fn within<T>(
        &self,
        Terms { deadline, timeout, repeat }: Terms,
        part: impl Future<Output = hyper::Result<T>>,
    ) -> Result<T, ClientError> {
        let address = || self.connector.endpoint().address.clone();
        match timeout_at(deadline, part).await {
            Ok(part) => part.map_err(|error| broken(address(), repeat, &error)),
            Err(_) => {
                let source = format!("it was not there within {} s", timeout.as_secs()).into();
                let repeatable = repeat == Repeat::Safe;
                Err(ClientError::NoAnswer { address: address(), source, repeatable })
            }
        }
    }
}

/// The rules for a call under way.
#[derive(Clone, Copy)]
struct Terms {
    /// The instant at which the whole answer must have arrived.
    deadline: Instant,
    /// The time from the begin of the call until then.
    timeout: Duration,
    repeat: Repeat,
}

/// An answer that is read as it arrives.
pub(crate) struct Reply {
    status: u16,
    body: Incoming,
    /// The body; `None` if it has ended or broke off.
    connection: Option<Connection>,
    line: Arc<Line>,
    terms: Terms,
}

impl Reply {
    /// The next piece of the body. `None` at its end, when the connection is kept, and after an error. A wait that is dropped loses
    /// nothing.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        let Some(connection) = &mut self.connection else { return Ok(None) };
        let piece = self.line.within(self.terms, connection.next(&mut self.body)).await;
        if !matches!(piece, Ok(Some(_)))
            && let Some(connection) = self.connection.take()
            && piece.is_ok()
        {
            self.line.pool.put(connection);
        }
        piece
    }

    /// The rest of the body.
    async fn rest(&mut self, bytes_max: u64) -> Result<Vec<u8>, ClientError> {
        let too_long = |status| {
            let what = format!("its body has more than {bytes_max} bytes");
            Err(ClientError::BadAnswer { status: Some(status), what })
        };
        if self.body.size_hint().lower() > bytes_max {
            return too_long(self.status);
        }
        let mut bytes = Vec::new();
        while let Some(piece) = self.next().await? {
            if (bytes.len() + piece.len()) as u64 > bytes_max {
                return too_long(self.status);
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::endpoint::endpoint_of;

    #[tokio::test]
    async fn a_body_whose_length_is_not_told_is_cut_at_the_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let server = tokio::spawn(async move {
            for _ in 0..2 {
                let (mut line, _) = listener.accept().await.expect("a connection");
                let answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nabcd\r\n4\r\nefgh\r\n0\r\n\r\n";
                line.write_all(answer).await.expect("written");
                line.read_to_end(&mut Vec::new()).await.expect("the client leaves");
            }
        });
        let endpoint = || endpoint_of(&url).expect("a URL");
        for (bytes_max, fits) in [(7, false), (8, true)] {
            // Each case has a new client. When it is dropped, the connection in its pool is closed, and the server waits for that.
            let exchange = Exchange::new(Connector::new(endpoint()));
            let mut reply = exchange.open(&Request::get("/")).await.expect("an answer");
            match reply.rest(bytes_max).await {
                Ok(body) => assert!(fits && body == b"abcdefgh", "{body:?}"),
                Err(error) => assert!(!fits && error.to_string().ends_with("more than 7 bytes"), "{error}"),
            }
        }
        server.await.expect("no panic");
    }
}
