//! The seam between a listener and the protocols that are spoken to it.

use std::pin::Pin;
use std::sync::Arc;

use tickwheel_api::Problem;

use crate::listen::standing::Standing;
use crate::listen::stream::Stream;

/// A connection that was let in.
pub(crate) struct Connection {
    /// Its bytes, decrypted.
    pub(crate) stream: Stream,
    /// Its permit; the connection counts until this is dropped.
    pub(crate) standing: Arc<Standing>,
}

/// The service of one connection, to its end.
pub(crate) type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What a connection may hold while nothing is asked on it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Idle {
    /// An idle connection is closed when another needs its permit: its client opens a new one for its next request.
    MakesWay,
    /// A connection is a session, and to be idle is its work. It is never closed for another. Sessions leave one of 16 permits to the others.
    Stays,
}

/// A protocol. The listener accepts, shakes hands and keeps the limits; a door speaks.
pub(crate) trait Door: Send + Sync + 'static {
    /// The name of the protocol, for the log.
    fn name(&self) -> &'static str;

    /// What becomes of its idle connections.
    fn idle(&self) -> Idle;

    /// Serves a connection until its client leaves or the server stops. Dropping the future cuts it off.
    fn serve(self: Arc<Self>, connection: Connection) -> Serving;

    /// A connection is not let in, for this reason. `stream`: the client can still be told, in plain bytes.
    fn turn_away(self: Arc<Self>, why: Problem, stream: Option<Stream>) -> Serving;
}
