//! The way of the client crate to a connection that this crate has opened.
//!
//! The TLS of the client crate brings code for PKCS #12, and no choice of the settings. So the connection is opened here, by rustls with
//! the settings of the caller, and handed over.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use async_rs::traits::Reactor;
use async_rs::util::RuntimeParts;
use async_rs::{Runtime, Tokio};
use futures_core::Stream;
use tickwheel_http::Stream as Way;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The runtime that the client crate uses: tokio, with connections of our own.
pub(super) type Kit = RuntimeParts<Tokio, Opened>;

/// Returns the runtime of the caller for the client crate.
pub(super) fn kit() -> Runtime<Kit> {
    Runtime::new(RuntimeParts::new(Tokio::current(), Opened(Tokio::current())))
}

/// A connection for the client crate. The thread of the client crate ends when the connection does, so [`End`] ends that thread.
pub(super) struct Connection {
    bytes: Box<dyn Way>,
    ended: Arc<Ended>,
}

#[derive(Default)]
struct Ended(Mutex<(bool, Option<Waker>)>);

/// Ends the connection when it is dropped, unless it is kept.
pub(super) struct End {
    ended: Option<Arc<Ended>>,
}

impl Connection {
    pub(super) fn new(bytes: Box<dyn Way>) -> (Self, End) {
        let ended = Arc::<Ended>::default();
        (Self { bytes, ended: Arc::clone(&ended) }, End { ended: Some(ended) })
    }
}

impl End {
    /// Leaves the end of the connection to its owner.
    pub(super) fn keep(mut self) {
        self.ended = None;
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if let Some(ended) = self.ended.take() {
            let waker = {
                let mut state = ended.0.lock().unwrap_or_else(PoisonError::into_inner);
                state.0 = true;
                state.1.take()
            };
            // Without the lock, because a waker may poll the connection at once.
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl Ended {
    /// Whether the connection is at its end. If not, the reader is woken at the end.
    fn is_set(&self, context: &Context<'_>) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.0 {
            state.1 = Some(context.waker().clone());
        }
        state.0
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection")
    }
}

impl futures_io::AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if self.ended.is_set(context) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let mut to = ReadBuf::new(to);
        match Pin::new(&mut self.bytes).poll_read(context, &mut to) {
            Poll::Ready(Ok(())) => Poll::Ready(Ok(to.filled().len())),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl futures_io::AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.bytes).poll_write(context, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_flush(context)
    }

    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_shutdown(context)
    }
}

/// The clock of tokio, and connections that are open already.
#[derive(Clone, Debug)]
pub(super) struct Opened(Tokio);

impl Reactor for Opened {
    type TcpStream = Connection;
    type Sleep = tokio::time::Sleep;

    fn register<H: Send + 'static>(
        &self,
        _: H,
    ) -> io::Result<impl futures_io::AsyncRead + futures_io::AsyncWrite + Send + Unpin + 'static> {
        Err::<Connection, _>(io::ErrorKind::Unsupported.into())
    }

    fn sleep(&self, time: Duration) -> Self::Sleep {
        self.0.sleep(time)
    }

    fn interval(&self, time: Duration) -> impl Stream<Item = Instant> + Send + 'static {
        self.0.interval(time)
    }

    #[expect(clippy::manual_async_fn, reason = "an async function would borrow from the reactor")]
    fn tcp_connect_addr(
        &self,
        _: SocketAddr,
    ) -> impl Future<Output = io::Result<Self::TcpStream>> + Send + 'static {
        // The client crate is never asked to open a connection.
        async { Err(io::ErrorKind::Unsupported.into()) }
    }
}
