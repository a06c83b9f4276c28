//! The socket below a connection, as hyper wants it, and the traffic on it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use hyper::rt::ReadBufCursor;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The number of bytes to read at once: 16 KiB. This is usually a whole answer.
const READ_BYTES: usize = 16 << 10;

/// A socket, with or without TLS.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// The largest number of informational answers (1xx) before an answer. Servers send one or two.
const INFORMATIONAL_MAX: u32 = 8;
/// The largest number of bytes before an answer that informational ones come before: 64 KiB.
const INFORMATIONAL_BYTES_MAX: u64 = 64 << 10;

/// The traffic since the last request began.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) written: AtomicU64,
    pub(crate) read: AtomicU64,
    /// Informational answers.
    pub(crate) informational: AtomicU32,
    /// Whether the head of the answer has come.
    pub(crate) is_answered: AtomicBool,
}

impl Traffic {
    pub(crate) fn begin(&self) {
        let Self { written, read, informational, is_answered } = self;
        written.store(0, Ordering::Relaxed);
        read.store(0, Ordering::Relaxed);
        informational.store(0, Ordering::Relaxed);
        is_answered.store(false, Ordering::Relaxed);
    }

    /// Whether the other side sends informational answers and no end of them.
    pub(crate) fn is_flooded(&self) -> bool {
        let heads = self.informational.load(Ordering::Relaxed);
        let bytes = self.read.load(Ordering::Relaxed);
        !self.is_answered.load(Ordering::Relaxed)
            && (heads > INFORMATIONAL_MAX || heads > 0 && bytes >= INFORMATIONAL_BYTES_MAX)
    }
}

/// A socket that notes its traffic.
pub(crate) struct Socket {
    stream: Box<dyn Stream>,
    traffic: Arc<Traffic>,
    /// Bytes on their way from the stream to hyper, whose buffer may be uninitialised.
    piece: Box<[u8]>,
}

impl Socket {
    pub(crate) fn new(stream: Box<dyn Stream>, traffic: Arc<Traffic>) -> Self {
        Self { stream, traffic, piece: vec![0; READ_BYTES].into() }
    }
}

impl hyper::rt::Read for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut out: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, piece, traffic } = &mut *self;
        // Hyper passes over informational answers without end, and nothing else would be done on this thread meanwhile.
        if traffic.is_flooded() {
            return Poll::Ready(Err(io::Error::other(
                "informational answers (1xx) came, and no answer after them",
            )));
        }
        let wanted = out.remaining().min(piece.len());
        let mut read = ReadBuf::new(&mut piece[..wanted]);
        ready!(Pin::new(stream).poll_read(cx, &mut read))?;
        traffic.read.fetch_add(read.filled().len() as u64, Ordering::Relaxed);
        out.put_slice(read.filled());
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Write for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
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
