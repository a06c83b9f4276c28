//! Where a listener listens: at an address, or at a path of the file system.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::net::sockopt::set_socket_keepalive;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};

/// The number of connections that the kernel keeps for a busy server. It is enough for 1,000 clients that start
/// together.
const BACKLOG: u32 = 1_024;
/// The prefix that marks a path in a place where an address is possible, too.
const UNIX: &str = "unix:";

/// Where a listener listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ListenAt {
    /// At this address. With port 0 the system chooses a port.
    Tcp(SocketAddr),
    /// At this path of the file system. A socket that a killed server left there is replaced.
    Unix(PathBuf),
}

impl fmt::Display for ListenAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

impl From<SocketAddr> for ListenAt {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

/// Why a text is not a [`ListenAt`].
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ListenAtError {
    /// Nothing follows `unix:`.
    #[error("the path is empty; write unix:/run/tickwheel.sock")]
    NoPath,
    /// The text is not an address with a port.
    #[error(
        "not an address and a port; write 127.0.0.1:8463, [::1]:8463 or unix:/run/tickwheel.sock, for names such as localhost are not looked up"
    )]
    NoAddress,
}

/// Reads `127.0.0.1:8463`, `[::1]:8463` or `unix:/run/tickwheel.sock`.
impl FromStr for ListenAt {
    type Err = ListenAtError;

    fn from_str(text: &str) -> Result<Self, ListenAtError> {
        match text.strip_prefix(UNIX) {
            Some("") => Err(ListenAtError::NoPath),
            Some(path) => Ok(Self::Unix(path.into())),
            None => text.parse().map(Self::Tcp).map_err(|_| ListenAtError::NoAddress),
        }
    }
}

impl ListenAt {
    /// The advice to a user whose server cannot listen here.
    pub(crate) fn way_out(&self, source: &io::Error) -> &'static str {
        use io::ErrorKind as Kind;
        match (self, source.kind()) {
            (Self::Tcp(_), Kind::AddrInUse) => "is another server running? choose another port, or 0 for any",
            (Self::Tcp(_), Kind::AddrNotAvailable) => {
                "this machine has no such address; 127.0.0.1 is always there"
            }
            (Self::Tcp(_), Kind::PermissionDenied) => "ports below 1024 are for root; choose a higher one",
            (Self::Tcp(_), _) => "choose another address or port",
            (Self::Unix(_), Kind::AddrInUse) => {
                "is another server running? choose another path, and if a file is there that is no socket, it stays"
            }
            (Self::Unix(_), Kind::PermissionDenied) => "choose a directory that this user may write to",
            (Self::Unix(_), Kind::NotFound) => "make its directory first, or choose another path",
            (Self::Unix(_), _) => "choose another path",
        }
    }
}

/// A socket that is bound and does not accept connections yet.
pub(crate) enum Bound {
    Tcp(TcpSocket),
    Unix(OwnPath, UnixListener),
}

/// A socket that accepts connections. Dropping it closes it and removes its path.
pub(crate) enum Opened {
    Tcp(TcpListener),
    Unix(OwnPath, UnixListener),
}

/// A path at which this server listens. Dropping it removes the path, unless another server has taken the path.
///
/// The path is dropped before its listener. While the listener is open, no other socket can have the same inode
/// number.
pub(crate) struct OwnPath {
    path: PathBuf,
    file: Option<FileId>,
}

/// The device and the inode number of a file.
type FileId = (u64, u64);

impl OwnPath {
    /// The path of a socket that was just made there.
    fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), file: socket_at(path) }
    }
}

impl Drop for OwnPath {
    fn drop(&mut self) {
        if self.file.is_some() && socket_at(&self.path) == self.file {
            // If the removal fails, the next server that starts replaces the socket.
            let _gone = std::fs::remove_file(&self.path);
        }
    }
}

/// The file of the socket at `path`, if there is one.
fn socket_at(path: &Path) -> Option<FileId> {
    let file = std::fs::symlink_metadata(path).ok()?;
    file.file_type().is_socket().then(|| (file.dev(), file.ino()))
}

/// An accepted connection.
pub(crate) enum Came {
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

impl Bound {
    /// Binds, and accepts no connection yet. At a path a client can connect from now on; it then waits until the
    /// socket is open.
    ///
    /// # Errors
    /// The address or the path cannot be bound.
    pub(crate) async fn take(at: &ListenAt) -> io::Result<Self> {
        match at {
            ListenAt::Tcp(address) => bind(*address).map(Self::Tcp),
            ListenAt::Unix(path) => {
                remove_dead(path).await?;
                let listener = UnixListener::bind(path)?;
                Ok(Self::Unix(OwnPath::new(path), listener))
            }
        }
    }

    /// Opens the socket for connections.
    ///
    /// # Errors
    /// The system refused.
    pub(crate) fn open(self) -> io::Result<Opened> {
        match self {
            Self::Tcp(socket) => socket.listen(BACKLOG).map(Opened::Tcp),
            Self::Unix(path, listener) => Ok(Opened::Unix(path, listener)),
        }
    }
}

impl Opened {
    /// The address, with the port that the system chose, or the path.
    ///
    /// # Errors
    /// The system does not tell the address.
    pub(crate) fn place(&self) -> io::Result<ListenAt> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(ListenAt::Tcp),
            Self::Unix(own, _) => Ok(ListenAt::Unix(own.path.clone())),
        }
    }

    /// Waits for the next connection.
    ///
    /// # Errors
    /// The system lacks some resource.
    pub(crate) async fn accept(&self) -> io::Result<Came> {
        match self {
            Self::Tcp(listener) => {
                let (socket, from) = listener.accept().await?;
                // Answers are small and are written whole, so waiting for a full packet only costs time.
                let _as_it_was = socket.set_nodelay(true);
                // With keep-alive, a client that is gone is found although nothing is sent for days.
                let _as_it_was = set_socket_keepalive(&socket, true);
                Ok(Came::Tcp(socket, from))
            }
            Self::Unix(_, listener) => listener.accept().await.map(|(socket, _)| Came::Unix(socket)),
        }
    }
}

/// Removes the socket of a server that is gone, because it prevents a new one.
///
/// # Errors
/// Another server listens there.
async fn remove_dead(path: &Path) -> io::Result<()> {
    let Some(found) = socket_at(path) else { return Ok(()) };
    // The connect does not wait. For a server with a full backlog, its error differs from that for a server that is
    // gone.
    match UnixStream::connect(path).await {
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && socket_at(path) == Some(found) => {
            std::fs::remove_file(path)
        }
        Err(_) => Ok(()),
    }
}

fn bind(listen: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if listen.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // With this, a restart need not wait until the connections of the last run time out.
    socket.set_reuseaddr(true)?;
    socket.bind(listen)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixSocket;

    use super::*;

    async fn opened(path: &Path) -> io::Result<Opened> {
        Bound::take(&ListenAt::Unix(path.to_owned())).await?.open()
    }

    /// A bug that was found: a user removed a path, a second server took it, and the end of the first server removed
    /// it.
    #[tokio::test]
    async fn a_path_that_another_server_has_by_now_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("http");
        let first = opened(&path).await.expect("bound");
        std::fs::remove_file(&path).expect("removed");
        let second = opened(&path).await.expect("bound");
        drop(first);
        assert!(UnixStream::connect(&path).await.is_ok(), "the second is still there");
        drop(second);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_start_that_fails_later_leaves_no_path() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("http");
        let bound = Bound::take(&ListenAt::Unix(path.clone())).await.expect("bound");
        assert!(path.exists());
        drop(bound);
        assert!(!path.exists());
    }

    /// A bug that was found: a start tried to connect to a busy server, and waited until that server was less busy.
    #[tokio::test]
    async fn a_server_that_takes_no_connection_is_not_waited_for() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("http");
        let socket = UnixSocket::new_stream().expect("a socket");
        socket.bind(&path).expect("bound");
        let _busy = socket.listen(1).expect("it listens");
        let mut waiting = Vec::new();
        while let Ok(client) = UnixStream::connect(&path).await {
            waiting.push(client);
        }
        let refused = opened(&path).await.err().expect("the path is taken");
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        assert!(path.exists());
    }
}
