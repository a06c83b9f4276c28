//! [`Webhook`]: the sink that sends messages by HTTP.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{HeaderMap, RETRY_AFTER};
use tickwheel_http::Connection;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::rustls::ClientConfig;

use super::answer::{Answer, AnswerRules, Failure, retry_after};
use super::budget::{ConnectionPermit, ConnectionShare, Connections, Pool};
use super::connect::{Connector, Resolve};
use super::request::RequestPlan;
use super::sign::Signer;
use crate::guard::Guard;
use crate::message::Message;
use crate::outcome::Outcome;
use crate::sink::{Attempt, Report, Sink};

/// At most this much of an answer's body is read (bytes): 64 KiB. Then the connection is closed.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The bytes of an answer's body that a report has.
const REPORTED_BYTES: usize = 256;
/// The rest of an answer's body has this time to come. Then the connection is closed. The outcome depends on the head alone.
const BODY_TIMEOUT: Duration = Duration::from_secs(2);
/// A connection without a request is kept for at most this time. Many receivers close theirs after a minute.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Within this time after an answer, the runtime is not asked anew whether the receiver has closed the connection. A request on a closed one
/// is sent again over another connection.
const FRESH: Duration = Duration::from_millis(10);
/// A connection is used for at most this time, so that a change of the receiver's address has an effect.
const AGE_MAX: Duration = Duration::from_secs(5 * 60);
/// The time in which an empty connection shows whether the target closes all connections.
const PROBE_TIME: Duration = Duration::from_millis(300);

/// The sink that sends messages by HTTP/1.1.
///
/// A message whose connection breaks before an answer has come is a failure of the task, because the task may have caused it; unless the
/// target also closes a connection on which nothing is sent. So a load balancer without a machine behind it uses up no attempt.
pub struct Webhook {
    plan: RequestPlan,
    signers: Vec<Signer>,
    rules: AnswerRules,
    timeout: Duration,
    connector: Connector,
    share: ConnectionShare,
    unused: Arc<Unused>,
    unused_max: usize,
}

/// A connection with its right to be open.
struct Held {
    connection: Connection,
    permit: ConnectionPermit,
    born: Instant,
}

/// The connections without a request; the last one was used last.
#[derive(Default)]
struct Unused(Mutex<Vec<(Held, Instant)>>);

impl Unused {
    fn lock(&self) -> MutexGuard<'_, Vec<(Held, Instant)>> {
        // Each change is one step, so that a panic leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Unused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unused({})", self.lock().len())
    }
}

impl Pool for Unused {
    fn close_one(&self) -> bool {
        let mut unused = self.lock();
        let oldest = (!unused.is_empty()).then(|| unused.remove(0));
        // Closed outside of the lock.
        drop(unused);
        oldest.is_some()
    }
}

/// The settings of a webhook.
pub struct WebhookPlan {
    /// The requests.
    pub request: RequestPlan,
    /// The keys that sign; each gives one signature. Without keys the requests are not signed.
    pub signers: Vec<Signer>,
    /// Which answers have a meaning of their own.
    pub rules: AnswerRules,
    /// The time for one attempt.
    pub timeout: Duration,
    /// The largest number of connections that are kept without a request.
    pub connections_kept: usize,
    /// The places that may be reached.
    pub guard: Arc<Guard>,
    /// Looks up names.
    pub resolver: Arc<dyn Resolve>,
    /// The settings of TLS.
    pub tls: Arc<ClientConfig>,
}

impl Webhook {
    /// Returns a webhook without a limit of its connections but the caller's concurrency. Opens no connection yet.
    #[must_use]
    pub fn new(plan: WebhookPlan) -> Self {
        let WebhookPlan { request, signers, rules, timeout, connections_kept, guard, resolver, tls } = plan;
        let connector = Connector::new(request.url(), guard, resolver, tls);
        Self {
            plan: request,
            signers,
            rules,
            timeout,
            connector,
            share: Connections::default().share_of(None),
            unused: Arc::default(),
            unused_max: connections_kept,
        }
    }

    /// Returns the same webhook with a share of the connections of a process. A message waits for its connection before its time begins.
    #[must_use]
    pub fn within(self, share: ConnectionShare) -> Self {
        share.add(&self.unused);
        Self { share, ..self }
    }

    async fn attempt(&self, message: &Message) -> Report {
        let mut deadline = Instant::now() + self.timeout;
        let mut may_reuse = true;
        loop {
            let keys = self.signers.iter().filter_map(|signer| signer.key_at(message.sent_at));
            let request = match self.plan.request(message, keys) {
                Ok(request) => request,
                Err(unsendable) => return Outcome::unfillable(unsendable).into(),
            };
            let body_bytes = message_bytes(&request);
            let kept = if may_reuse { self.take().await } else { None };
            let is_kept = kept.is_some();
            let Held { mut connection, permit, born } = match kept {
                Some(held) => held,
                None => {
                    let asked = Instant::now();
                    let permit = self.share.permit().await;
                    deadline += asked.elapsed();
                    match self.connector.connect(deadline).await {
                        Ok(connection) => Held { connection, permit, born: Instant::now() },
                        Err(failure) => return failure.judge().into(),
                    }
                }
            };
            match timeout_at(deadline, connection.send(request)).await {
                Ok(Ok(answer)) => {
                    let (head, body) = answer.into_parts();
                    let now_ms = message.sent_at.as_ms();
                    let mut answer = read_head(head.status.as_u16(), &head.headers, now_ms);
                    let (bytes, is_whole) = read_body(&mut connection, body, deadline).await;
                    answer.body = bytes;
                    if is_whole {
                        self.keep(Held { connection, permit, born });
                    }
                    let outcome = self.rules.judge(&answer);
                    answer.body.truncate(REPORTED_BYTES);
                    return Report { outcome, status: Some(answer.status), answer: answer.body };
                }
                // The receiver closed a kept connection, probably before it saw the request. That says nothing about the receiver. If it
                // did see the request, it knows the id.
                Ok(Err(_)) if is_kept && !connection.has_read() => may_reuse = false,
                Ok(Err(error)) => {
                    let is_sent = connection.written() >= body_bytes;
                    let text = text_of(&error);
                    if connection.is_flooded() {
                        return Failure::Down(text).judge().into();
                    }
                    drop(connection);
                    // The probe is the connection of this permit now.
                    let failure = self.no_answer(text, is_sent, deadline).await;
                    drop(permit);
                    return failure.judge().into();
                }
                Err(_) if connection.written() < body_bytes => {
                    return Failure::Unsent("the receiver took the request too slowly".into()).judge().into();
                }
                Err(_) => return Failure::TimedOut(self.timeout).judge().into(),
            }
        }
    }

    /// Finds out whose fault it is that a connection ended without an answer.
    async fn no_answer(&self, text: String, is_sent: bool, deadline: Instant) -> Failure {
        if !is_sent {
            return Failure::Unsent(text);
        }
        match self.connector.connect(deadline).await {
            Err(_) => Failure::Down(text),
            Ok(mut empty) => match timeout(PROBE_TIME, empty.closed()).await {
                Ok(()) => Failure::Down(text),
                Err(_) => Failure::NoAnswer(text),
            },
        }
    }

    /// Returns the open connection that was used last.
    async fn take(&self) -> Option<Held> {
        loop {
            let (mut held, since) = self.unused.lock().pop()?;
            let unused_time = since.elapsed();
            if held.born.elapsed() >= AGE_MAX || unused_time >= IDLE_MAX {
                continue;
            }
            let is_open = if unused_time < FRESH {
                held.connection.seems_open().await
            } else {
                held.connection.is_open().await
            };
            if is_open {
                return Some(held);
            }
        }
    }

    /// Keeps a connection whose answer was read to its end, unless another webhook waits for its place.
    fn keep(&self, held: Held) {
        if self.unused_max == 0 {
            return;
        }
        let mut unused = self.unused.lock();
        // Closed outside of the lock.
        let _oldest = (unused.len() >= self.unused_max).then(|| unused.remove(0));
        unused.push((held, Instant::now()));
        drop(unused);
        // After the push: who begins to wait later finds the connection here.
        if self.share.is_wanted() {
            self.unused.close_one();
        }
    }
}

impl Sink for Webhook {
    fn send<'a>(&'a self, message: &'a Message) -> Attempt<'a> {
        Box::pin(self.attempt(message))
    }
}

/// The number of bytes of a request's body, and at least one, because a request without a body has a head.
fn message_bytes(request: &hyper::Request<http_body_util::Full<hyper::body::Bytes>>) -> u64 {
    use hyper::body::Body;
    request.body().size_hint().exact().unwrap_or(0).max(1)
}

fn read_head(status: u16, headers: &HeaderMap, now_ms: i64) -> Answer {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    Answer {
        status,
        retry_after_ms: text(RETRY_AFTER.as_str()).and_then(|value| retry_after(value, now_ms)),
        aborts: text("webhook-delivery")
            .is_some_and(|value| value.trim().eq_ignore_ascii_case("abort-message")),
        body: Vec::new(),
    }
}

/// Reads a body. Returns its first bytes, and whether it was read to its end in time, so that the connection can be used again.
async fn read_body(connection: &mut Connection, mut body: Incoming, deadline: Instant) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let deadline = deadline.min(Instant::now() + BODY_TIMEOUT);
    loop {
        match timeout_at(deadline, connection.next(&mut body)).await {
            Ok(Ok(Some(piece))) if bytes.len() + piece.len() <= ANSWER_BYTES_MAX => {
                bytes.extend_from_slice(&piece)
            }
            Ok(Ok(None)) => return (bytes, true),
            Ok(Ok(Some(piece))) => {
                bytes.extend_from_slice(&piece[..ANSWER_BYTES_MAX - bytes.len()]);
                return (bytes, false);
            }
            Ok(Err(_)) | Err(_) => return (bytes, false),
        }
    }
}

/// Returns an error of HTTP with its causes.
fn text_of(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
