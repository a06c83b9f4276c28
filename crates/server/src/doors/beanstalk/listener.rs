//! Where clients of beanstalkd come in.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::desk::Desk;
use super::session::{self, From};
use crate::events;
use crate::listen::addresses::Addresses;
use crate::listen::places::Places;
use crate::listen::socket::{Came, ListenAt, Opened, keep_alive};
use crate::listen::tls::{Begun, Tls};

/// After a failed accept, as at the HTTP door.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// One of 16 connections is left to the other door.
const LEFT_TO_OTHERS: usize = 16;

/// A door that is open.
pub(crate) struct Listener {
    door: Opened,
    tls: Option<Tls>,
    places: Places,
    /// How many of them are not for this door.
    left_to_others: usize,
    addresses: Addresses,
}

impl Listener {
    pub(crate) fn new(door: Opened, tls: Option<Tls>, places: Places, addresses: Addresses) -> Self {
        let left_to_others = places.max() / LEFT_TO_OTHERS;
        Self { door, tls, places, left_to_others, addresses }
    }

    /// Where it is, with the port that the system chose.
    ///
    /// # Errors
    /// The system does not say.
    pub(crate) fn place(&self) -> io::Result<ListenAt> {
        self.door.place()
    }

    /// Serves until the server stops, and then as long as connections take to end, at most `grace`.
    pub(crate) async fn run(self, desk: Arc<Desk>, grace: Duration) {
        let mut connections = JoinSet::new();
        let stopping = desk.stopping.clone();
        loop {
            tokio::select! {
                () = stopping.wait() => break,
                came = self.door.accept() => match came {
                    Ok(came) => self.take(&mut connections, came, &desk),
                    Err(error) => {
                        tracing::warn!(event = events::ACCEPT_FAILED, %error, "accept failed");
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

    /// Serves a connection, or closes it if there are too many: the protocol has no word for that.
    fn take(&self, connections: &mut JoinSet<()>, came: Came, desk: &Arc<Desk>) {
        let desk = Arc::clone(desk);
        let from = match &came {
            Came::Tcp(_, from) => Some(from.ip()),
            Came::Unix(_) => None,
        };
        // Before the place: idle connections of others do not make way for one that is closed anyway.
        let Some(share) = self.addresses.enter(from) else {
            tracing::debug!(
                ?from,
                "the address has all the connections that one may have (--max-connections-per-address)"
            );
            return desk.counters.turn_away();
        };
        let Some(place) = self.places.enter_by_jobs(self.left_to_others) else {
            return desk.counters.turn_away();
        };
        let tls = self.tls.clone();
        connections.spawn(async move {
            match came {
                Came::Unix(socket) => session::serve(socket, desk, From(from)).await,
                Came::Tcp(socket, _) => {
                    keep_alive(&socket);
                    serve(tls, socket, desk, From(from)).await;
                }
            }
            drop((place, share));
        });
    }
}

async fn serve(tls: Option<Tls>, socket: TcpStream, desk: Arc<Desk>, from: From) {
    let Some(tls) = tls else { return session::serve(socket, desk, from).await };
    let begun = tokio::select! {
        begun = tls.begin(socket) => begun,
        () = desk.stopping.wait() => return,
    };
    match begun {
        Begun::Encrypted(socket) => session::serve(socket, desk, from).await,
        Begun::Plain(_) => tracing::debug!("a client of beanstalkd's protocol did not speak TLS"),
        Begun::Failed(error) => tracing::debug!(%error, "no handshake"),
    }
}
