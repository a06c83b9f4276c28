//! Why a connection ends before its client leaves, and what is said where it goes on.

use std::io;

use tickwheel_api::ProblemKind;
use tickwheel_api::beanstalk::Reply;
use tickwheel_queue::{ByIdError, Unavailable};

use crate::access::refusal::Refusal;

/// Why it ends.
pub(super) enum Cut {
    /// Its socket failed.
    Socket(io::Error),
    /// The door may not do what the client asked; the client is told and its connection ends.
    Refused(Reply<'static>),
    /// The server stops: what it does not say any more may have happened or not.
    Stop,
}

impl From<io::Error> for Cut {
    fn from(error: io::Error) -> Self {
        Self::Socket(error)
    }
}

impl From<Refusal> for Cut {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refused(&refusal))
    }
}

/// The reply to a command that the service refuses.
pub(super) fn refused(refusal: &Refusal) -> Reply<'static> {
    match refusal.problem().kind() {
        Some(ProblemKind::ServerDraining) => Reply::Draining,
        Some(ProblemKind::OutOfScope) => Reply::NotFound,
        _ => Reply::InternalError,
    }
}

/// What is said where the queue cannot answer. A stop is no answer: the connection ends without one.
pub(super) fn unavailable(why: &Unavailable) -> Result<Reply<'static>, Cut> {
    match why {
        Unavailable::Closed => Err(Cut::Stop),
        Unavailable::Full { .. } | Unavailable::ReadOnly { .. } => Ok(Reply::OutOfMemory),
        // It may have happened or not, and the protocol has no word for that.
        _ => Ok(Reply::InternalError),
    }
}

/// What is said where an act by id is refused.
pub(super) fn by_id_refused(error: &ByIdError) -> Result<Reply<'static>, Cut> {
    match error {
        ByIdError::BacklogFull { .. } => Ok(Reply::OutOfMemory),
        ByIdError::Unavailable(why) => unavailable(why),
        _ => Ok(Reply::NotFound),
    }
}
