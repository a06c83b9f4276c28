//! The errors of a connection: what the database says, why a connection cannot be opened, how a run ends.

use std::fmt;

/// An error of the database, with the fields that it sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DbError {
    /// `ERROR`, `FATAL` or `PANIC`, in English.
    pub(crate) severity: String,
    /// The SQLSTATE, such as `23505`.
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) detail: Option<String>,
    pub(crate) hint: Option<String>,
    pub(crate) constraint: Option<String>,
    pub(crate) table: Option<String>,
}

impl DbError {
    /// Whether only the statement failed, and the session goes on.
    pub(crate) fn is_error(&self) -> bool {
        self.severity == "ERROR"
    }
}

impl fmt::Display for DbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.severity, self.code, self.message)?;
        if let Some(detail) = &self.detail {
            write!(f, " ({detail})")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "; hint: {hint}")?;
        }
        Ok(())
    }
}

/// A notice of the database, such as a `WARNING`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// `WARNING`, `NOTICE`, `INFO`, `LOG` or `DEBUG`, in English.
    pub(crate) severity: String,
    pub(crate) code: String,
    pub(crate) message: String,
}

/// One host that gave no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostError {
    /// `host:port`, or the path of the socket.
    pub(crate) peer: String,
    pub(crate) why: String,
    /// The SQLSTATE, if the database itself said no.
    pub(crate) code: Option<String>,
    /// Whether the configuration is wrong at this host, so that a later attempt fails as well.
    pub(crate) is_refused: bool,
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.peer, self.why)
    }
}

/// Why no connection was opened.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The configuration is wrong at every host: authentication, no such database or role, TLS. A later attempt
    /// fails as well.
    #[error("the database refuses the connection: {}", Hosts(.0))]
    Refused(Vec<HostError>),
    /// At least one host may take a connection later. The reason of each host is in the list, those of hosts that
    /// refuse included.
    #[error("no database is reached: {}", Hosts(.0))]
    Unreachable(Vec<HostError>),
}

struct Hosts<'a>(&'a [HostError]);

impl fmt::Display for Hosts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, host) in self.0.iter().enumerate() {
            write!(f, "{}{host}", if nth == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

/// How a run failed.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// The pipeline cannot be put into messages. The database saw nothing of it; the connection is in order.
    #[error("the statements cannot be sent: {0}")]
    Invalid(String),
    /// The database answered a step with an `ERROR` and skipped the steps after it. This is definite. A transaction
    /// that was open is rolled back.
    #[error("step {step}: {error}")]
    Database {
        /// The index of the step. It is the number of steps if all of them succeeded and the end of the implicit
        /// transaction failed.
        step: usize,
        error: Box<DbError>,
    },
    /// The connection has ended. Unless `is_sent` is false, the outcome of the pipeline is unknown.
    #[error("the connection is lost: {why}")]
    Lost {
        why: String,
        /// The last words of the database, such as a `FATAL`.
        error: Option<Box<DbError>>,
        /// False: the connection had ended before anything of the pipeline was sent, so nothing of it took effect.
        is_sent: bool,
    },
}
