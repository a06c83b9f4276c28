//! [`Socket`]: a non-blocking stream to one address of a host.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

/// How a connection that is silent is found dead.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keepalives {
    /// The silence before the first probe.
    pub(crate) idle: Duration,
    /// The time between two probes.
    pub(crate) interval: Duration,
    /// The number of probes without an answer.
    pub(crate) count: u32,
    /// How long sent bytes may stay without an acknowledgement of the other machine; `None`: as the system has it.
    pub(crate) user_timeout: Option<Duration>,
}

impl Default for Keepalives {
    /// About 10 s. A commit that waits for a standby has no deadline, so only probes find that the machine of its server is gone. Linux sends no
    /// probes while sent bytes are not acknowledged, and by default waits 15 minutes for the acknowledgement.
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(5),
            interval: Duration::from_secs(2),
            count: 3,
            user_timeout: Some(Duration::from_secs(10)),
        }
    }
}

/// A non-blocking stream.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Connects to an address, at most for `limit`.
    pub(crate) fn tcp(address: SocketAddr, limit: Duration, keepalives: &Keepalives) -> io::Result<Self> {
        // The call refuses a limit of 0.
        let stream = TcpStream::connect_timeout(&address, limit.max(Duration::from_millis(1)))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        sockopt::set_socket_keepalive(&stream, true)?;
        sockopt::set_tcp_keepidle(&stream, keepalives.idle)?;
        sockopt::set_tcp_keepintvl(&stream, keepalives.interval)?;
        sockopt::set_tcp_keepcnt(&stream, keepalives.count)?;
        #[cfg(target_os = "linux")]
        if let Some(limit) = keepalives.user_timeout {
            let limit_ms = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
            sockopt::set_tcp_user_timeout(&stream, limit_ms)?;
        }
        Ok(Self::Tcp(stream))
    }

    /// Connects to a Unix socket. A socket whose queue is full is an error at once: there is nothing to wait by.
    pub(crate) fn unix(path: &Path) -> io::Result<Self> {
        let address = SocketAddrUnix::new(path)?;
        #[cfg(target_os = "linux")]
        let flags = SocketFlags::CLOEXEC;
        #[cfg(not(target_os = "linux"))]
        let flags = SocketFlags::empty();
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        #[cfg(not(target_os = "linux"))]
        rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        rustix::net::connect(&socket, &address)?;
        Ok(Self::Unix(UnixStream::from(socket)))
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(to),
            Self::Unix(stream) => stream.read(to),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(from),
            Self::Unix(stream) => stream.write(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
