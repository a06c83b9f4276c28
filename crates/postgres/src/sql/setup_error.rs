//! [`SetupError`]: why a data set cannot be used.

use tickwheel_engine::SHARDS_MAX;

use crate::database::{ConnectFailure, Failure};

/// The format of the tables that this program reads and writes.
pub(super) const FORMAT: i32 = 1;

/// Why the data set cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The URL is wrong.
    #[error("{0}")]
    Url(String),
    /// The database does not answer at present.
    #[error("{0}")]
    Unreachable(String),
    /// The database refuses, or is not as it should be.
    #[error("{0}")]
    Refused(String),
    /// The tables are missing, and this process may not make them.
    #[error(
        "the database has no tables of Tickwheel, and this process may not make them; an administrator makes them with `tickwheel cluster \
         sql | psql`, as a superuser or the owner of the database"
    )]
    NoTables,
    /// The tables are missing, and the database refuses to make them, for example because the role may not.
    #[error(
        "the database has no tables of Tickwheel, and it refuses to make them: {0}; an administrator makes them with `tickwheel cluster sql | \
         psql`, as a superuser or the owner of the database"
    )]
    NotMade(String),
    /// A later release made the tables.
    #[error(
        "the tables have the format {found}, and this release reads the formats up to {FORMAT}; start a later release"
    )]
    Later {
        /// The format of the tables.
        found: i32,
    },
    /// The data set has another number of shards.
    #[error(
        "the data set was made with {found} shards, and the number never changes, so {wanted} are refused; leave the number away, or export \
         the tasks and import them into a new data set"
    )]
    Shards {
        /// The number of the data set.
        found: u32,
        /// The number that was asked for.
        wanted: u32,
    },
    /// The number of shards is out of range.
    #[error("a data set has 1 to {SHARDS_MAX} shards, not {0}")]
    ShardsRange(u32),
    /// The data set has the other kind of clock.
    #[error("the data set has a {found} clock, and the kind never changes; {advice}")]
    Clock {
        /// The kind that the data set has.
        found: String,
        /// The action that helps.
        advice: &'static str,
    },
    /// Another session has the lock of those that make the tables.
    #[error(
        "the lock for making the tables was not free within 10 s, and Tickwheel holds it for less than a second: {holder}"
    )]
    Locked {
        /// The session, and how to end it.
        holder: String,
    },
    /// The operating system has no random bytes.
    #[error("get random bytes from the operating system: {0}")]
    Random(String),
    /// A thread cannot be started, or the first heartbeat was not answered.
    #[error("{0}")]
    Start(String),
}

impl From<ConnectFailure> for SetupError {
    fn from(failure: ConnectFailure) -> Self {
        match failure {
            ConnectFailure::Unreachable(why) => Self::Unreachable(why),
            ConnectFailure::Refused(why) => Self::Refused(why),
        }
    }
}

impl From<Failure> for SetupError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused { why, again: false } => Self::Refused(why),
            Failure::Refused { why, again: true } | Failure::Gone { why } => Self::Unreachable(why),
        }
    }
}
