//! Accepts connections for one door, and ends them when the server stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tickwheel_api::Problem;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::base::stopping::Stopping;
use crate::events;
use crate::listen::addresses::Addresses;
use crate::listen::door::{Connection, Door};
use crate::listen::permits::{ConnectionPermit, Permits};
use crate::listen::socket::{Came, Opened};
use crate::listen::standing::Standing;
use crate::listen::stream::Stream;
use crate::listen::tls::{Begun, Tls};

/// The number of refused connections that are told the reason at one time. More are closed without a word, so that a
/// flood costs nothing.
const REFUSALS_MAX: usize = 32;
/// The pause after a failed accept. An accept fails when the system lacks some resource; an immediate retry would
/// only use CPU.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The limits that all doors share, because they use the open files and the memory of one process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) permits: Permits,
    pub(crate) addresses: Addresses,
    pub(crate) stopping: Stopping,
    /// Connections that all doors serve now.
    pub(crate) open: Arc<AtomicUsize>,
}

/// An open socket and its door.
pub(crate) struct Listener {
    socket: Opened,
    tls: Option<Tls>,
    door: Arc<dyn Door>,
    shared: Shared,
}

impl Listener {
    pub(crate) fn new(socket: Opened, tls: Option<Tls>, door: Arc<dyn Door>, shared: Shared) -> Self {
        Self { socket, tls, door, shared }
    }

    /// Serves until the server stops. Then waits until the connections end, at most for `grace`.
    pub(crate) async fn run(self, grace: Duration) {
        let (mut connections, mut refusals) = (JoinSet::new(), JoinSet::new());
        loop {
            tokio::select! {
                () = self.shared.stopping.wait() => break,
                accepted = self.socket.accept() => match accepted {
                    Ok(came) => self.take(&mut connections, &mut refusals, came),
                    Err(error) => {
                        // The error is about a descriptor or about memory. An idle connection has some of both.
                        let closed_idle = self.shared.permits.close_idle();
                        tracing::warn!(event = events::ACCEPT_FAILED, %error, closed_idle, "accept failed");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                // Removes ended connections from the sets.
                Some(_) = connections.join_next() => {}
                Some(_) = refusals.join_next() => {}
            }
        }
        let name = self.door.name();
        // Closes the socket, so that no client waits in the backlog of a stopping server.
        drop(self);
        let ended = async { while connections.join_next().await.is_some() {} };
        if timeout(grace, ended).await.is_err() {
            let count = connections.len();
            tracing::warn!(
                event = events::STOP_CUT_OFF,
                door = name,
                connections = count,
                "calls under way were cut off"
            );
            connections.shutdown().await;
        }
    }

    /// Serves a connection, or refuses it if there are too many.
    fn take(&self, connections: &mut JoinSet<()>, refusals: &mut JoinSet<()>, came: Came) {
        let from = match &came {
            Came::Tcp(_, from) => Some(from.ip()),
            Came::Unix(_) => None,
        };
        let Shared { permits, addresses, .. } = &self.shared;
        let standing = match Standing::find(permits, addresses, from, self.door.idle()) {
            Ok(standing) => Arc::new(standing),
            Err(why) => return self.turn_away(refusals, came, *why),
        };
        let id = standing.id();
        let serving =
            serve(self.tls.clone(), came, Arc::clone(&self.door), self.shared.stopping.clone(), standing);
        let open = Counted::new(&self.shared.open);
        let task = connections.spawn(async move {
            serving.await;
            drop(open);
        });
        ConnectionPermit::closes(permits, id, task);
    }

    /// Refuses a connection and tells its client why. Over TLS that would cost a handshake, and above
    /// [`REFUSALS_MAX`] it would cost too much. In both cases the connection is only closed.
    fn turn_away(&self, refusals: &mut JoinSet<()>, came: Came, why: Problem) {
        // The level is `debug`: one address that connects again and again must not fill the log.
        tracing::debug!(door = self.door.name(), %why, "too many connections");
        let stream = match came {
            _ if refusals.len() >= REFUSALS_MAX => None,
            Came::Tcp(socket, _) => self.tls.is_none().then_some(Stream::Tcp(socket)),
            Came::Unix(socket) => Some(Stream::Unix(socket)),
        };
        if let Some(telling) = Arc::clone(&self.door).turn_away(why, stream) {
            refusals.spawn(telling);
        }
    }
}

/// Serves a connection to its end.
async fn serve(
    tls: Option<Tls>,
    came: Came,
    door: Arc<dyn Door>,
    stopping: Stopping,
    standing: Arc<Standing>,
) {
    let stream = match (came, tls) {
        (Came::Unix(socket), _) => Stream::Unix(socket),
        (Came::Tcp(socket, _), None) => Stream::Tcp(socket),
        (Came::Tcp(socket, _), Some(tls)) => {
            let begun = tokio::select! {
                begun = tls.begin(socket) => begun,
                () = stopping.wait() => return,
            };
            match begun {
                Begun::Encrypted(stream) => Stream::Tls(stream),
                Begun::Plain(socket) => {
                    if let Some(telling) = door.turn_away(Problem::needs_tls(), Some(Stream::Tcp(socket))) {
                        telling.await;
                    }
                    return;
                }
                Begun::Failed(error) => return tracing::debug!(%error, "no handshake"),
            }
        }
    };
    door.serve(Connection { stream, standing }).await;
}

/// A counted connection. Dropping it ends the count.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(open))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
