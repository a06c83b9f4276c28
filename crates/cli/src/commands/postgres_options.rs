//! Options of `serve` about tasks in PostgreSQL.

use std::path::Path;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use tickwheel_server::PostgresPlan;

/// The database, the name of this server, and who makes the tables.
#[derive(Args)]
#[command(next_help_heading = "Tasks in PostgreSQL")]
pub(crate) struct PostgresOptions {
    /// Keep tasks in this PostgreSQL instead of a directory, such as postgres://tickwheel@db1,db2/tickwheel
    ///
    /// The first start makes the tables, and a data set of 64 shards or the number of --shards. Parts that the URL leaves out come from the
    /// variables of psql, such as PGPASSWORD, and from ~/.pgpass. A password in the URL is visible to all users of the machine: use the
    /// environment or the file. A second server on the same database waits, and takes over once the first one is gone
    #[arg(long, value_name = "URL", env = "TICKWHEEL_POSTGRES", hide_env_values = true)]
    postgres: Option<String>,
    /// The name of this server among those that share the database [default: the name of this machine]
    #[arg(long, value_name = "NAME", env = "TICKWHEEL_NODE")]
    node: Option<String>,
    /// Whether the server makes tables that are missing; with `off` an administrator makes them, with `tickwheel cluster sql`
    #[arg(long, value_name = "on|off", env = "TICKWHEEL_MIGRATE", value_enum, default_value_t = Migrate::On)]
    migrate: Migrate,
}

/// Who makes the tables.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Migrate {
    On,
    Off,
}

/// The URL may have a password, so it is not shown.
impl std::fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { postgres: _, node, migrate } = self;
        f.debug_struct("PostgresOptions")
            .field("node", node)
            .field("migrate", migrate)
            .finish_non_exhaustive()
    }
}

impl PostgresOptions {
    /// Whether tasks are in PostgreSQL.
    pub(crate) fn is_given(&self) -> bool {
        self.postgres.is_some()
    }

    /// The plan that the options describe; `None`: tasks are not in PostgreSQL.
    ///
    /// # Errors
    /// Another option says that tasks are somewhere else.
    pub(crate) fn plan(
        &self,
        data: Option<&Path>,
        memory: bool,
        backups: bool,
    ) -> Result<Option<PostgresPlan>> {
        let Some(url) = self.postgres.clone() else {
            if self.node.is_some() {
                bail!(
                    "--node names a server that shares a database, and there is none; add --postgres, or leave out --node"
                );
            }
            return Ok(None);
        };
        if data.is_some() {
            bail!(
                "--postgres keeps tasks in a database, and --data in a directory; leave out one of them. `tickwheel export --data DIR` and \
                 `tickwheel import` bring the tasks of a directory into the database"
            );
        }
        if memory {
            bail!("--postgres keeps tasks in a database, and --memory in memory only; leave out one of them");
        }
        if backups {
            bail!(
                "--backup-dir copies a directory, and the tasks are in PostgreSQL; leave it out, and back up the database with pg_dump, or \
                 with base backups and the archived log"
            );
        }
        let node = self.node.clone().unwrap_or_else(name_of_machine);
        Ok(Some(PostgresPlan { url, node, migrate: self.migrate == Migrate::On }))
    }
}

fn name_of_machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
