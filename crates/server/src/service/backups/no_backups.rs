//! [`NoBackups`]: the reason why a server makes no backups.

use tickwheel_api::Problem;

/// The reason why a server makes no backups.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NoBackups {
    /// The server has a data directory, but no place for backups.
    NoDirectory,
    /// The tasks are in memory.
    InMemory,
    /// The tasks are in PostgreSQL.
    InDatabase,
}

impl NoBackups {
    /// Returns the answer to all calls about backups.
    pub(crate) fn problem(self) -> Problem {
        let (why, hint) = match self {
            Self::NoDirectory => (
                "the server was started without a place for backups",
                "start the server with --backup-dir DIR (TICKWHEEL_BACKUP_DIR)",
            ),
            Self::InMemory => (
                "the tasks of this server are kept in memory, so there is nothing to copy",
                "start the server with --backup-dir DIR (TICKWHEEL_BACKUP_DIR) and a data directory",
            ),
            Self::InDatabase => (
                "the tasks of this server are in PostgreSQL, so a backup of the database has them",
                "make a backup of the database: pg_dump, or a base backup with the archived log",
            ),
        };
        Problem::no_backup_dir(why, hint)
    }
}
