//! Why the server ends a connection, and the answers to failed commands on one that goes on.

use std::io;

use tickwheel_api::ProblemKind;
use tickwheel_api::beanstalk::Reply;
use tickwheel_queue::{ByIdError, Unavailable};

use crate::access::refusal::Refusal;

/// Why the server ends a connection.
pub(super) enum ConnectionEnd {
    /// The socket failed.
    Socket(io::Error),
    /// The service refused the command; the client gets this answer, and the connection ends.
    Refused(Reply<'static>),
    /// The server stops. A command without an answer may have been carried out or not.
    Stop,
}

impl From<io::Error> for ConnectionEnd {
    fn from(error: io::Error) -> Self {
        Self::Socket(error)
    }
}

impl From<Refusal> for ConnectionEnd {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refused(&refusal))
    }
}

/// The answer to a command that the service refuses.
pub(super) fn refused(refusal: &Refusal) -> Reply<'static> {
    match refusal.problem().kind() {
        Some(ProblemKind::ServerDraining) => Reply::Draining,
        Some(ProblemKind::OutOfScope) => Reply::NotFound,
        _ => Reply::InternalError,
    }
}

/// The answer when the queue cannot answer. A stop has no answer: the connection just ends.
pub(super) fn unavailable(why: &Unavailable) -> Result<Reply<'static>, ConnectionEnd> {
    match why {
        Unavailable::Closed => Err(ConnectionEnd::Stop),
        Unavailable::Full { .. } | Unavailable::ReadOnly { .. } => Ok(Reply::OutOfMemory),
        // The command may have been carried out or not, and the protocol has no word for that.
        _ => Ok(Reply::InternalError),
    }
}

/// The answer when an act by id is refused.
pub(super) fn by_id_refused(error: &ByIdError) -> Result<Reply<'static>, ConnectionEnd> {
    match error {
        ByIdError::BacklogFull { .. } => Ok(Reply::OutOfMemory),
        ByIdError::Unavailable(why) => unavailable(why),
        _ => Ok(Reply::NotFound),
    }
}
