//! HTTP over a unix socket: a transport for ureq, which has none of its own.
//!
//! ureq leaves its traits for transports out of its promise of compatible versions. A version that changes them does not compile, and the
//! lock file says which one is used. The other way would be a second HTTP client.

use std::error::Error as StdError;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use ureq::config::Config;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};
use ureq::{Error, Timeout, http};

/// Connects to the socket at a path, whatever host the request names.
#[derive(Debug)]
pub(super) struct ToSocket(pub(super) PathBuf);

/// No connection came about, and this is why.
#[derive(Debug)]
pub(super) struct NoConnection(pub(super) io::Error);

impl fmt::Display for NoConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for NoConnection {}

impl NoConnection {
    /// What is wrong, and what to do.
    pub(super) fn why_and_hint(&self, path: &Path) -> (String, String) {
        let start = format!(
            "start one with `tickwheel serve --listen unix:{}`, or name another with --server",
            path.display()
        );
        match self.0.kind() {
            ErrorKind::NotFound => ("there is no such file".to_owned(), start),
            ErrorKind::ConnectionRefused => {
                ("no server listens at it, or it is no socket".to_owned(), start)
            }
            ErrorKind::PermissionDenied => (
                "this user may not open it".to_owned(),
                "let this user write to the socket and search its directories, or run this as the user of the server"
                    .to_owned(),
            ),
            ErrorKind::InvalidInput => (
                format!("the path has {} bytes, which is too long for a socket", path.as_os_str().len()),
                "listen at a shorter path".to_owned(),
            ),
            _ => (self.0.to_string(), start),
        }
    }
}

impl Connector for ToSocket {
    type Out = Socket;

    fn connect(&self, details: &ConnectionDetails<'_>, _: Option<()>) -> Result<Option<Socket>, Error> {
        let stream = connect(&self.0, details.timeout)?;
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(Socket { stream, buffers }))
    }
}

/// A connect to a socket waits while the server's backlog is full, for ever if need be, and takes no time limit. So a thread does it: one
/// that is not wanted any more ends when the server goes on or ends.
fn connect(path: &Path, timeout: NextTimeout) -> Result<UnixStream, Error> {
    let (sender, connected) = mpsc::sync_channel(1);
    let path = path.to_owned();
    thread::Builder::new().spawn(move || sender.send(UnixStream::connect(path)))?;
    let result = match timeout.not_zero() {
        Some(limit) => connected.recv_timeout(*limit).map_err(|_| Error::Timeout(Timeout::Connect))?,
        None => connected.recv().map_err(|_| Error::ConnectionFailed)?,
    };
    result.map_err(|error| Error::Other(Box::new(NoConnection(error))))
}

/// A connection.
pub(super) struct Socket {
    stream: UnixStream,
    buffers: LazyBuffers,
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket").field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl Transport for Socket {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let timeout = timeout.for_write();
        let end = End::of(timeout)?;
        let mut rest = &self.buffers.output()[..amount];
        while !rest.is_empty() {
            self.stream.set_write_timeout(end.left()?)?;
            match self.stream.write(rest) {
                Ok(0) => return Err(io::Error::from(ErrorKind::WriteZero).into()),
                Ok(written) => rest = &rest[written..],
                Err(error) => end.unless_over(error)?,
            }
        }
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let end = End::of(timeout.for_read())?;
        loop {
            self.stream.set_read_timeout(end.left()?)?;
            match self.stream.read(self.buffers.input_append_buf()) {
                Ok(amount) => {
                    self.buffers.input_appended(amount);
                    return Ok(amount > 0);
                }
                Err(error) => end.unless_over(error)?,
            }
        }
    }

    /// Between two requests a server sends nothing. What can be read is the end of the connection, or nothing of ours.
    fn is_open(&mut self) -> bool {
        let nothing_comes = |stream: &mut UnixStream| matches!(stream.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock);
        self.stream.set_nonblocking(true).is_ok()
            && nothing_comes(&mut self.stream)
            && self.stream.set_nonblocking(false).is_ok()
    }
}

/// When a read or a write has to be over.
struct End {
    at: Option<Instant>,
    reason: Timeout,
}

impl End {
    fn of(timeout: NextTimeout) -> Result<Self, Error> {
        if timeout.after.is_zero() {
            return Err(Error::Timeout(timeout.reason));
        }
        let at = timeout.not_zero().and_then(|left| Instant::now().checked_add(*left));
        Ok(Self { at, reason: timeout.reason })
    }

    /// How long it may still take; `None`: for ever.
    fn left(&self) -> Result<Option<Duration>, Error> {
        let Some(at) = self.at else { return Ok(None) };
        match at.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(Error::Timeout(self.reason)),
            left => Ok(Some(left)),
        }
    }

    /// A signal only interrupts a wait, and a wait that is over blocks no longer.
    fn unless_over(&self, error: io::Error) -> Result<(), Error> {
        match error.kind() {
            ErrorKind::Interrupted => Ok(()),
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Err(Error::Timeout(self.reason)),
            _ => Err(error.into()),
        }
    }
}

/// Finds one address for any name, because ureq wants one. [`ToSocket`] does not look at it.
#[derive(Debug)]
pub(super) struct NoNames;

impl Resolver for NoNames {
    fn resolve(&self, _: &http::Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let mut addresses = self.empty();
        addresses.push(([0, 0, 0, 0], 0).into());
        Ok(addresses)
    }
}
