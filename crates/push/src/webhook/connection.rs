//! [`Connection`]: one connection to a receiver. It carries requests one after the other.
//!
//! The request itself polls the future that reads and writes, and no task is spawned. So a request that is dropped closes its connection.

use std::future::{Future, poll_fn, ready};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{self, Context, Poll};

use http_body_util::Full;
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::rt::ReadBufCursor;
use hyper::{Request, Response};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The number of bytes to read at once (16 KiB).
const READ_BYTES: usize = 16 << 10;

/// A socket, with or without TLS.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection that speaks HTTP/1.1.
pub(crate) struct Connection {
    requests: SendRequest<Full<Bytes>>,
    work: http1::Connection<Socket, Full<Bytes>>,
    /// The future has ended and must not be polled again.
    ended: bool,
    traffic: Arc<Traffic>,
}

/// The traffic since the last request began.
#[derive(Debug, Default)]
struct Traffic {
    written: AtomicU64,
    read: AtomicBool,
}

impl Connection {
    pub(crate) async fn new(stream: Box<dyn Stream>) -> hyper::Result<Self> {
        let traffic = Arc::<Traffic>::default();
        let socket = Socket { stream, traffic: Arc::clone(&traffic), piece: vec![0; READ_BYTES].into() };
        let (requests, work) = http1::handshake(socket).await?;
        Ok(Self { requests, work, ended: false, traffic })
    }

    /// Whether a request may be sent: the last answer has been read to its end, and the receiver has not closed the connection.
    pub(crate) async fn is_open(&mut self) -> bool {
        // Nothing has read the socket since the last request. The yield lets the runtime ask the system which sockets are ready.
        tokio::task::yield_now().await;
        self.drive(ready(())).await;
        !self.ended && self.requests.is_ready()
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        self.traffic.written.store(0, Ordering::Relaxed);
        self.traffic.read.store(false, Ordering::Relaxed);
        let answer = self.requests.send_request(request);
        self.drive(answer).await
    }

    /// The number of bytes of the last request that the system took.
    pub(crate) fn written(&self) -> u64 {
        self.traffic.written.load(Ordering::Relaxed)
    }

    /// Whether a byte came back since the last request began.
    pub(crate) fn has_read(&self) -> bool {
        self.traffic.read.load(Ordering::Relaxed)
    }

    /// The next piece of a body; `None` at its end.
    pub(crate) async fn next(&mut self, body: &mut Incoming) -> hyper::Result<Option<Bytes>> {
        loop {
            let frame = self.drive(poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx))).await.transpose()?;
            match frame.map(|frame| frame.into_data()) {
                // Trailers say nothing to us.
                Some(Err(_)) => {}
                Some(Ok(bytes)) => return Ok(Some(bytes)),
                None => return Ok(None),
            }
        }
    }

    /// Waits until the receiver closes or breaks the connection, on which no request is under way.
    pub(crate) async fn closed(&mut self) {
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

/// The socket as hyper wants it.
struct Socket {
    stream: Box<dyn Stream>,
    traffic: Arc<Traffic>,
    /// Bytes on their way from the stream to hyper, whose buffer may be uninitialised.
    piece: Box<[u8]>,
}

impl hyper::rt::Read for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut out: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, piece, traffic } = &mut *self;
        let wanted = out.remaining().min(piece.len());
        let mut read = ReadBuf::new(&mut piece[..wanted]);
        task::ready!(Pin::new(stream).poll_read(cx, &mut read))?;
        traffic.read.fetch_or(!read.filled().is_empty(), Ordering::Relaxed);
        out.put_slice(read.filled());
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Write for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = task::ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.traffic.written.fetch_add(written as u64, Ordering::Relaxed);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
