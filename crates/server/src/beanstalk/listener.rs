//! Where clients of beanstalkd come in.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt::set_socket_keepalive;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::desk::Desk;
use super::session;
use crate::addresses::Addresses;
use crate::places::Places;
use crate::tls::{Begun, Tls};

/// After a failed accept, as at the HTTP door.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Connections that the kernel holds for us while we are busy.
const BACKLOG: u32 = 1_024;

/// Of so many connections one is left to the other door.
const LEFT_TO_OTHERS: usize = 16;

/// Where the door is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ListenAt {
    /// At this address; port 0 lets the system choose.
    Tcp(SocketAddr),
    /// At this path of the file system. What is left there of a server that was killed is replaced.
    Unix(PathBuf),
}

impl fmt::Display for ListenAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A door that is bound, and opens when it is told to.
pub(crate) enum Bound {
    Tcp(TcpSocket),
    Unix(UnixListener, PathBuf),
}

/// A door that is open.
pub(crate) struct Listener {
    way: Way,
    tls: Option<Tls>,
    places: Places,
    /// So many of them are not for this door: who looks after the server comes by the other.
    left_to_others: usize,
    addresses: Addresses,
}

enum Way {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

/// Somebody who came in.
enum Came {
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

impl Bound {
    /// Takes the place, and lets nobody in yet: of a path that cannot be said, so whoever comes there waits.
    ///
    /// # Errors
    /// The place cannot be had.
    pub(crate) fn take(at: &ListenAt) -> io::Result<Self> {
        match at {
            ListenAt::Tcp(address) => crate::server::bind(*address).map(Self::Tcp),
            ListenAt::Unix(path) => {
                remove_dead(path)?;
                UnixListener::bind(path).map(|listener| Self::Unix(listener, path.clone()))
            }
        }
    }

    /// Opens it.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn open(self, tls: Option<Tls>, places: Places, addresses: Addresses) -> io::Result<Listener> {
        let way = match self {
            Self::Tcp(socket) => Way::Tcp(socket.listen(BACKLOG)?),
            Self::Unix(listener, path) => Way::Unix(listener, path),
        };
        let left_to_others = places.max() / LEFT_TO_OTHERS;
        Ok(Listener { way, tls, places, left_to_others, addresses })
    }
}

/// A socket that nobody listens on any more is in the way of a new one.
fn remove_dead(path: &Path) -> io::Result<()> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if is_socket && error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
        Err(_) => Ok(()),
    }
}

impl Listener {
    /// Where it is, with the port that the system chose.
    ///
    /// # Errors
    /// The system does not say.
    pub(crate) fn place(&self) -> io::Result<ListenAt> {
        match &self.way {
            Way::Tcp(listener) => listener.local_addr().map(ListenAt::Tcp),
            Way::Unix(_, path) => Ok(ListenAt::Unix(path.clone())),
        }
    }

    /// Serves until the server stops, and then as long as connections take to end, at most `grace`.
    pub(crate) async fn run(self, desk: Arc<Desk>, grace: Duration) {
        let mut connections = JoinSet::new();
        let stopping = desk.stopping.clone();
        loop {
            tokio::select! {
                () = stopping.wait() => break,
                came = self.accept() => match came {
                    Ok(came) => self.take(&mut connections, came, &desk),
                    Err(error) => {
                        tracing::warn!(%error, "accept failed");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(_) = connections.join_next() => {}
            }
        }
        drop(self);
        let ended = async { while connections.join_next().await.is_some() {} };
        if timeout(grace, ended).await.is_err() {
            connections.shutdown().await;
        }
    }

    async fn accept(&self) -> io::Result<Came> {
        match &self.way {
            Way::Tcp(listener) => listener.accept().await.map(|(socket, from)| Came::Tcp(socket, from)),
            Way::Unix(listener, _) => listener.accept().await.map(|(socket, _)| Came::Unix(socket)),
        }
    }

    /// Serves whoever came, or closes if there are too many: the protocol has no word for that.
    fn take(&self, connections: &mut JoinSet<()>, came: Came, desk: &Arc<Desk>) {
        let desk = Arc::clone(desk);
        let Some(place) = self.places.enter(self.left_to_others) else { return desk.counters.turn_away() };
        match came {
            Came::Unix(socket) => {
                connections.spawn(async move {
                    session::serve(socket, desk).await;
                    drop(place);
                });
            }
            Came::Tcp(socket, from) => {
                let Some(place_of_address) = self.addresses.enter(from.ip()) else {
                    tracing::debug!(%from, "the address has all the connections that one may have");
                    return desk.counters.turn_away();
                };
                // Answers are whole; and who has gone without a word is found out at last, though nothing is sent for days.
                let _as_it_was = socket.set_nodelay(true);
                let _as_it_was = set_socket_keepalive(&socket, true);
                let tls = self.tls.clone();
                connections.spawn(async move {
                    serve(tls, socket, desk).await;
                    drop((place, place_of_address));
                });
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Way::Unix(_, path) = &self.way {
            // Whoever comes next makes a new one.
            let _gone = std::fs::remove_file(path);
        }
    }
}

async fn serve(tls: Option<Tls>, socket: TcpStream, desk: Arc<Desk>) {
    let Some(tls) = tls else { return session::serve(socket, desk).await };
    let begun = tokio::select! {
        begun = tls.begin(socket) => begun,
        () = desk.stopping.wait() => return,
    };
    match begun {
        Begun::Encrypted(socket) => session::serve(socket, desk).await,
        Begun::Plain(_) => tracing::debug!("a client of beanstalkd's protocol did not speak TLS"),
        Begun::Failed(error) => tracing::debug!(%error, "no handshake"),
    }
}
