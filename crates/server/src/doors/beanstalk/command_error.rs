//! Why a command is not carried out, and the answer to its client.

use std::io;

use tickwheel_api::ProblemKind;
use tickwheel_api::beanstalk::{Fault, Reply};
use tickwheel_queue::{
    ByIdError, CancelError, GetError, NackError, PatchError, PutError, QueueError, Unavailable,
};

use crate::access::refusal::Refusal;

/// Why a command is not carried out.
pub(super) enum CommandError {
    /// The client gets this answer, and the connection goes on.
    Answer(Reply<'static>),
    /// The connection ends.
    End(End),
}

/// Why a connection ends before its client leaves.
///
/// A command error does not turn into an end by `?`. So what carries out several commands, and returns an end only, has
/// to write the answer of a failed command and go on to the next.
pub(super) enum End {
    /// The service refused the command; the client gets this answer.
    Refused(Reply<'static>),
    /// The socket failed.
    Socket(io::Error),
    /// The server stops. A command without an answer may have been carried out or not.
    Stop,
}

impl CommandError {
    /// The answer of a failed command, if the connection goes on.
    ///
    /// # Errors
    /// The connection ends.
    pub(super) fn answer(self) -> Result<Reply<'static>, End> {
        match self {
            Self::Answer(reply) => Ok(reply),
            Self::End(end) => Err(end),
        }
    }
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Socket(error)
    }
}

impl From<Refusal> for End {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refused(&refusal))
    }
}

impl From<Reply<'static>> for CommandError {
    fn from(reply: Reply<'static>) -> Self {
        Self::Answer(reply)
    }
}

impl From<End> for CommandError {
    fn from(end: End) -> Self {
        Self::End(end)
    }
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        Self::End(error.into())
    }
}

impl From<Refusal> for CommandError {
    fn from(refusal: Refusal) -> Self {
        match refusal.problem().kind() {
            // There is no memory for the answer now.
            Some(ProblemKind::Busy) => Self::Answer(Reply::OutOfMemory),
            _ => Self::End(refusal.into()),
        }
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

/// A stop has no answer: the connection just ends.
impl From<Unavailable> for CommandError {
    fn from(why: Unavailable) -> Self {
        match why {
            Unavailable::Closed => Self::End(End::Stop),
            Unavailable::Full { .. } | Unavailable::NoDescriptors | Unavailable::ReadOnly { .. } => {
                Self::Answer(Reply::OutOfMemory)
            }
            // The protocol has no word for these: the command had no effect and can be sent again; or it may have had its effect.
            Unavailable::Unowned | Unavailable::Late { .. } | Unavailable::Indeterminate { .. } => {
                Self::Answer(Reply::InternalError)
            }
        }
    }
}

/// The answer to each error of the queue: the cases with an answer of their own, and the answer to the others.
macro_rules! answers {
    ($($error:ident { $($case:ident => $answer:expr),* } else $other:expr;)*) => {$(
        impl From<$error> for CommandError {
            fn from(error: $error) -> Self {
                match error {
                    $error::Unavailable(why) => why.into(),
                    $($error::$case { .. } => Self::Answer($answer),)*
                    _ => Self::Answer($other),
                }
            }
        }
    )*};
}

const BAD_FORMAT: Reply<'static> = Reply::Fault(Fault::BadFormat);

answers! {
    PutError {
        Leased => Reply::IsReserved,
        Draining => Reply::Draining,
        BacklogFull => Reply::OutOfMemory,
        TooFar => BAD_FORMAT
    } else Reply::InternalError;
    PatchError { Leased => Reply::IsReserved, TooFar => BAD_FORMAT } else Reply::NotFound;
    CancelError { Leased => Reply::IsReserved } else Reply::NotFound;
    ByIdError { Draining => Reply::Draining, BacklogFull => Reply::OutOfMemory } else Reply::NotFound;
    GetError {} else Reply::NotFound;
    NackError {} else Reply::InternalError;
    QueueError {} else Reply::OutOfMemory;
}
