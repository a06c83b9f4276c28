//! One connection to a server. It carries calls one after the other.
//!
//! The call itself polls the future that reads and writes, and no task is spawned. So a call that is dropped closes its connection, and a
//! kept connection costs nothing between two calls.

use std::future::{Future, poll_fn, ready};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{self, Context, Poll};

use http_body_util::Full;
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::rt::ReadBufCursor;
use hyper::{Request, Response};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The number of bytes to read at once: 16 KiB. This is usually a whole answer.
const READ_BYTES: usize = 16 << 10;

/// A socket, with or without TLS.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection that speaks HTTP.
pub(crate) struct Connection {
    requests: SendRequest<Full<Bytes>>,
    work: http1::Connection<Socket, Full<Bytes>>,
    /// The future has ended and must not be polled again.
    ended: bool,
    /// A byte of the current request was written.
    sent: Arc<AtomicBool>,
}

impl Connection {
    pub(crate) async fn new(stream: Box<dyn Stream>) -> hyper::Result<Self> {
        let sent = Arc::new(AtomicBool::new(false));
        let socket = Socket { stream, sent: Arc::clone(&sent), piece: vec![0; READ_BYTES].into() };
        let (requests, work) = http1::handshake(socket).await?;
        Ok(Self { requests, work, ended: false, sent })
    }

    /// Whether a request may be sent: the last answer has been read to its end, and the server has not closed the connection.
    ///
    /// Nothing has read the socket since the last call. The yield lets the runtime ask the system which sockets are ready. Without it, the
    /// runtime of the blocking API would not notice that the server has closed the connection.
    pub(crate) async fn is_open(&mut self) -> bool {
        tokio::task::yield_now().await;
        self.drive(ready(())).await;
        !self.ended && self.requests.is_ready()
    }

    /// Whether the connection is known to have ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended || self.requests.is_closed()
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        self.sent.store(false, Ordering::Relaxed);
        let answer = self.requests.send_request(request);
        self.drive(answer).await
    }

    /// Whether the server may have received a part of the last request.
    pub(crate) fn has_sent(&self) -> bool {
        self.sent.load(Ordering::Relaxed)
    }

    /// The next piece of a body; `None` at its end.
    pub(crate) async fn next(&mut self, body: &mut Incoming) -> hyper::Result<Option<Bytes>> {
        loop {
            let frame = self.drive(poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx))).await.transpose()?;
            // The trailers are dropped, because no call needs them.
            match frame.map(|frame| frame.into_data()) {
                Some(Err(_)) => {}
                Some(Ok(bytes)) => return Ok(Some(bytes)),
                None => return Ok(None),
            }
        }
    }

    /// Reads and writes until the other future is ready.
    async fn drive<T>(&mut self, wanted: impl Future<Output = T>) -> T {
        let mut wanted = pin!(wanted);
        poll_fn(|cx| {
            self.poll_work(cx);
            // There may be an answer even if the connection has ended.
            wanted.as_mut().poll(cx)
        })
        .await
    }

    fn poll_work(&mut self, cx: &mut Context<'_>) {
        // The call that waits also gets the error that ends the connection.
        self.ended = self.ended || Pin::new(&mut self.work).poll(cx).is_ready();
    }
}

/// The socket as hyper wants it.
struct Socket {
    stream: Box<dyn Stream>,
    sent: Arc<AtomicBool>,
    /// Bytes on their way from the stream to hyper, whose buffer may be uninitialised.
    piece: Box<[u8]>,
}

impl hyper::rt::Read for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut out: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, piece, .. } = &mut *self;
        let wanted = out.remaining().min(piece.len());
        let mut read = ReadBuf::new(&mut piece[..wanted]);
        task::ready!(Pin::new(stream).poll_read(cx, &mut read))?;
        out.put_slice(read.filled());
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Write for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = task::ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.sent.fetch_or(written > 0, Ordering::Relaxed);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
