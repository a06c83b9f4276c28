//! [`Connection`]: one connection to a server. It carries requests one after the other.
//!
//! The request itself polls the future that reads and writes, and no task is spawned. So a request that is dropped closes its connection,
//! and a kept connection costs nothing between two requests.

use std::future::{Future, poll_fn, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use http_body_util::Full;
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};

use crate::socket::{Socket, Stream, Traffic};

/// A connection that speaks HTTP/1.1.
///
/// ```
/// use http_body_util::Full;
/// use hyper::Request;
/// use hyper::body::Bytes;
/// use tickwheel_http::Connection;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// # use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// let (socket, mut server) = tokio::io::duplex(1 << 10);
/// let mut connection = Connection::new(Box::new(socket)).await?;
/// # let serve = async move {
/// #     let _ = server.read(&mut [0; 1 << 10]).await;
/// #     let _ = server.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
/// # };
/// let request = Request::new(Full::new(Bytes::from("ping")));
/// # let (answer, ()) = tokio::join!(connection.send(request), serve);
/// # let _ = "
/// let answer = connection.send(request).await;
/// # ";
/// assert_eq!(answer?.status(), 204);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Connection {
    requests: SendRequest<Full<Bytes>>,
    work: http1::Connection<Socket, Full<Bytes>>,
    /// The future has ended and must not be polled again.
    ended: bool,
    traffic: Arc<Traffic>,
}

impl Connection {
    /// Begins to speak HTTP on an open socket. Nothing is sent yet.
    ///
    /// # Errors
    /// An error of hyper.
    pub async fn new(stream: Box<dyn Stream>) -> hyper::Result<Self> {
        let traffic = Arc::<Traffic>::default();
        let (requests, work) = http1::handshake(Socket::new(stream, Arc::clone(&traffic))).await?;
        Ok(Self { requests, work, ended: false, traffic })
    }

    /// Whether a request may be sent: the last answer has been read to its end, and the server has not closed the connection.
    pub async fn is_open(&mut self) -> bool {
        // Nothing has read the socket since the last request. The yield lets the runtime ask the system which sockets are ready. Without
        // it, a runtime that runs only during a call would not notice that the server has closed the connection.
        tokio::task::yield_now().await;
        self.seems_open().await
    }

    /// Whether a request may be sent, as far as the runtime knows: as [`is_open`](Self::is_open), but a connection that the server has just
    /// closed may count as open. Use it shortly after an answer.
    pub async fn seems_open(&mut self) -> bool {
        self.drive(ready(())).await;
        !self.ended && self.requests.is_ready()
    }

    /// Whether the connection is known to have ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended || self.requests.is_closed()
    }

    /// Sends a request and waits for the head of its answer. Informational answers (1xx) before it are passed over. After 8 of them, or 64 KiB,
    /// nothing more is read.
    ///
    /// # Errors
    /// The connection broke, the answer is not HTTP, or more informational answers came. [`written`](Self::written) says whether the server
    /// may have received a part of the request, and [`is_flooded`](Self::is_flooded) whether the last is the reason.
    pub async fn send(&mut self, mut request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        self.traffic.begin();
        let traffic = Arc::clone(&self.traffic);
        hyper::ext::on_informational(&mut request, move |_| {
            traffic.informational.fetch_add(1, Ordering::Relaxed);
        });
        let answer = self.requests.send_request(request);
        let answer = self.drive(answer).await?;
        self.traffic.is_answered.store(true, Ordering::Relaxed);
        Ok(answer)
    }

    /// Whether the last request failed because the server sent informational answers (1xx) and no end of them.
    #[must_use]
    pub fn is_flooded(&self) -> bool {
        self.traffic.is_flooded()
    }

    /// Returns the number of bytes of the last request that the system took.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.traffic.written.load(Ordering::Relaxed)
    }

    /// Whether a byte came back since the last request began.
    #[must_use]
    pub fn has_read(&self) -> bool {
        self.traffic.read.load(Ordering::Relaxed) > 0
    }

    /// Returns the next piece of a body; `None` at its end.
    ///
    /// # Errors
    /// The connection broke before the end of the body.
    pub async fn next(&mut self, body: &mut Incoming) -> hyper::Result<Option<Bytes>> {
        loop {
            let frame = self.drive(poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx))).await.transpose()?;
            match frame.map(|frame| frame.into_data()) {
                // The trailers are dropped, because no caller needs them.
                Some(Err(_)) => {}
                Some(Ok(bytes)) => return Ok(Some(bytes)),
                None => return Ok(None),
            }
        }
    }

    /// Waits until the server closes or breaks the connection, on which no request is under way.
    pub async fn closed(&mut self) {
        if !self.ended {
            // The result says only how the connection ended.
            let _ = poll_fn(|cx| Pin::new(&mut self.work).poll(cx)).await;
            self.ended = true;
        }
    }

    /// Reads and writes until the other future is ready.
    async fn drive<T>(&mut self, wanted: impl Future<Output = T>) -> T {
        let mut wanted = pin!(wanted);
        poll_fn(|cx| {
            // A request that waits also gets the error that ends the connection.
            self.ended = self.ended || Pin::new(&mut self.work).poll(cx).is_ready();
            wanted.as_mut().poll(cx)
        })
        .await
    }
}
