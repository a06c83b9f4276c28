//! HTTP over a unix socket: a transport for ureq, which has none of its own.
//!
//! ureq leaves its traits for transports out of its promise of compatible versions. A version that changes them does not compile, and the
//! lock file says which one is used. The other way would be a second HTTP client.

use std::error::Error as StdError;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
#[cfg(target_os = "linux")]
use rustix::net::{SocketFlags, socket_with};
use ureq::config::Config;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};
use ureq::{Error, Timeout, http};

use crate::ClientError;

/// 1 ms, doubled up to 50 ms: from one look to the next whether a busy server takes the connection.
const BUSY_WAIT_MIN: Duration = Duration::from_millis(1);
const BUSY_WAIT_MAX: Duration = Duration::from_millis(50);

/// Connects to the socket at a path, whatever host the request names.
#[derive(Debug)]
pub(crate) struct ToSocket(pub(crate) PathBuf);

/// No connection came about, and this is why.
#[derive(Debug)]
pub(crate) struct NoConnection(pub(crate) io::Error);

impl fmt::Display for NoConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for NoConnection {}

impl NoConnection {
    /// What is wrong, and what to do.
    pub(crate) fn told(&self, address: String, path: &Path) -> ClientError {
        let start = || {
            format!(
                "start one with `tickwheel serve --listen unix:{}`, or give the address of another",
                path.display()
            )
        };
        let (why, hint, lasting) = match self.0.kind() {
            ErrorKind::NotFound => ("there is no such file".to_owned(), start(), false),
            ErrorKind::ConnectionRefused => {
                ("no server listens at it, or it is no socket".to_owned(), start(), false)
            }
            ErrorKind::WouldBlock => (
                "it takes no connection, because many wait already".to_owned(),
                "try again later, or find out what holds it up".to_owned(),
                false,
            ),
            ErrorKind::PermissionDenied => (
                "this user may not open it".to_owned(),
                "let this user write to the socket and search its directories, or run this as the user of the server"
                    .to_owned(),
                true,
            ),
            ErrorKind::InvalidInput => (
                format!("the path has {} bytes, which is too long for a socket", path.as_os_str().len()),
                "listen at a shorter path".to_owned(),
                true,
            ),
            _ => (self.0.to_string(), start(), false),
        };
        ClientError::NoSocket { address, why, hint, lasting }
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

/// A connect that blocks waits while the server's backlog is full, for ever if need be, and takes no time limit. So this one does not block:
/// it is tried again until it succeeds or the time is over, and leaves nothing behind.
fn connect(path: &Path, timeout: NextTimeout) -> Result<UnixStream, Error> {
    let end = End::of(NextTimeout { reason: Timeout::Connect, ..timeout })?;
    let no_connection = |error: io::Error| Error::Other(Box::new(NoConnection(error)));
    let address = SocketAddrUnix::new(path).map_err(|_| no_connection(ErrorKind::InvalidInput.into()))?;
    let stream = UnixStream::from(socket()?);
    stream.set_nonblocking(true)?;
    let mut wait = BUSY_WAIT_MIN;
    loop {
        match (rustix::net::connect(&stream, &address), end.left()) {
            (Ok(()), _) => break,
            (Err(Errno::INTR), Ok(_)) => {}
            (Err(Errno::AGAIN), Ok(left)) => {
                thread::sleep(left.map_or(wait, |left| wait.min(left)));
                wait = (wait * 2).min(BUSY_WAIT_MAX);
            }
            (Err(error), _) => return Err(no_connection(error.into())),
        }
    }
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// A socket that a child process does not inherit.
fn socket() -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    #[cfg(not(target_os = "linux"))]
    let socket = {
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
        rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
        socket
    };
    Ok(socket)
}

/// A connection.
pub(crate) struct Socket {
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
pub(crate) struct NoNames;

impl Resolver for NoNames {
    fn resolve(&self, _: &http::Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let mut addresses = self.empty();
        addresses.push(([0, 0, 0, 0], 0).into());
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::net::UnixListener;

    use rustix::net::{bind, listen};

    use super::*;

    fn timeout(after: Duration) -> NextTimeout {
        NextTimeout { after: after.into(), reason: Timeout::Connect, per_read: None, per_write: None }
    }

    #[test]
    fn a_connect_to_a_busy_server_ends_and_leaves_no_connection_behind() {
        let path = std::env::temp_dir().join(format!("tickwheel-busy-{}", std::process::id()));
        let listening = socket().expect("a socket");
        bind(&listening, &SocketAddrUnix::new(&path).expect("short enough")).expect("bound");
        // A backlog of 0 takes one connection.
        listen(&listening, 0).expect("it listens");
        let first = connect(&path, timeout(Duration::from_secs(60))).expect("there is a place");
        let error = connect(&path, timeout(Duration::from_millis(1))).expect_err("there is none");
        let Error::Other(other) = error else { panic!("{error:?}") };
        let told = other.downcast_ref::<NoConnection>().expect("it is known why").told(String::new(), &path);
        assert!(told.to_string().contains("many wait already; try again later"), "{told}");
        // Had the second left a connect behind, that one would be woken first when a place becomes free, and would say nothing.
        let third = thread::spawn({
            let path = path.clone();
            move || connect(&path, timeout(Duration::from_secs(60)))?.write_all(b"3").map_err(Error::from)
        });
        let server = UnixListener::from(listening);
        server.accept().expect("the first");
        let mut said = Vec::new();
        server.accept().and_then(|(mut next, _)| next.read_to_end(&mut said)).expect("the third");
        assert_eq!(said, b"3");
        third.join().expect("no panic").expect("it had a place");
        drop(first);
        fs::remove_file(&path).expect("removed");
    }
}
