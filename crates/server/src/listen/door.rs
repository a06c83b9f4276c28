//! The interface between a listener and the protocols of its clients.

use std::pin::Pin;
use std::sync::Arc;

use tickwheel_api::Problem;

use crate::listen::standing::Standing;
use crate::listen::stream::Stream;

/// A connection that was accepted and has a permit.
pub(crate) struct Connection {
    /// The bytes of the connection, decrypted.
    pub(crate) stream: Stream,
    /// The permit of the connection, which counts until this is dropped.
    pub(crate) standing: Arc<Standing>,
}

/// A future that serves one connection to its end.
pub(crate) type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The behaviour of a door's connections between two calls.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Idle {
    /// An idle connection is closed when a new one needs its permit: its client opens another for its next request.
    MakesWay,
    /// A connection is a session, which is idle most of the time. A session is never closed for another connection.
    /// Sessions leave one of 16 permits to other connections.
    Stays,
}

/// A protocol. The listener accepts connections, does the TLS handshake and keeps the limits; a door reads and writes
/// the protocol.
pub(crate) trait Door: Send + Sync + 'static {
    /// The name of the protocol, for the log.
    fn name(&self) -> &'static str;

    /// Whether idle connections of this door make way for new ones.
    fn idle(&self) -> Idle;

    /// Serves a connection until its client leaves or the server stops. Dropping the future ends the connection.
    fn serve(self: Arc<Self>, connection: Connection) -> Serving;

    /// Refuses a connection for the reason `why`. If there is a `stream`, the client can still be told, in plain
    /// bytes. Returns the future that tells the client; `None`: the client is told nothing.
    fn turn_away(self: Arc<Self>, why: Problem, stream: Option<Stream>) -> Option<Serving>;
}
