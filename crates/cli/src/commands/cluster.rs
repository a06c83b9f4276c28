//! `tickwheel cluster`.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use tickwheel_postgres::{Postgres, statements};

use super::backup::counted;
use crate::output::{STDOUT, say, stdout};

/// Set up and look after tasks in PostgreSQL
#[derive(Args, Debug)]
pub(crate) struct Cluster {
    #[command(subcommand)]
    act: Act,
}

#[derive(Subcommand, Debug)]
enum Act {
    Sql(Sql),
    Adopt(Adopt),
}

/// Print the statements that make the tables, the functions and the roles
///
/// An administrator runs them if the server must not make tables: `serve --migrate off`. The roles are `tickwheel_owner`, which has the
/// tables, `tickwheel` for servers, and `tickwheel_put` for programs that put tasks in their own transactions. The statements for the roles
/// may run again; those for the tables fail if there are tables already.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel cluster sql | psql -v ON_ERROR_STOP=1 tickwheel
  psql -c \"ALTER ROLE tickwheel PASSWORD 'a long one'\"
  psql -c 'GRANT tickwheel_put TO shop'")]
struct Sql {}

/// Make a restored database usable
///
/// A database that came from a dump, or that was restored to an earlier time, may have lost tasks, and numbers that were given out may come
/// again. No server serves it before this command. The command raises the numbers, so that no lease of before the restore is taken for a new
/// one. Stop all servers of the old database first: two servers of one data set would deliver each task twice.
///
/// The command takes the shards from all servers. So it first watches whether a server works with this database, for 1.2 times the time after
/// which another server takes over, and is refused if one does.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel cluster adopt --postgres postgres://tickwheel@db2/tickwheel --yes")]
struct Adopt {
    /// The database
    #[arg(long, value_name = "URL", env = "TICKWHEEL_POSTGRES", hide_env_values = true)]
    postgres: String,
    /// Do it. Without this option, the command says what it would do
    #[arg(long)]
    yes: bool,
    /// Do not watch whether a server works with this database. Such a server loses its shards: calls fail until it has taken them again
    #[arg(long)]
    force: bool,
}

impl Cluster {
    /// Runs the command.
    ///
    /// # Errors
    /// The database cannot be used, or stdout cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self.act {
            Act::Sql(Sql {}) => {
                use std::io::Write;
                stdout().write_all(statements().as_bytes()).context(STDOUT)?;
            }
            Act::Adopt(adopt) => adopt.run()?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Adopt {
    fn run(self) -> Result<()> {
        let postgres = Postgres::at(&self.postgres)?;
        let found = postgres.look()?;
        let Some(found) = found else {
            bail!("the database has no tables of Tickwheel; there is nothing to adopt")
        };
        let facts = format!("data set {}, {}", found.identity, counted(found.shards.into(), "shard"));
        if !self.yes {
            say(&format!(
                "{facts}: would be adopted. Stop all servers of the old database, then run the command again with --yes"
            ));
            return Ok(());
        }
        if !self.force
            && let Some((name, address)) = postgres.watch_beats(found.lease_ms)?
        {
            let at = if address.is_empty() { String::new() } else { format!(" at {address}") };
            bail!(
                "the server `{name}`{at} works with this database, so it was not adopted, and nothing was changed. Stop all servers, then \
                 run the command again; --force takes the shards from servers that work"
            )
        }
        postgres.adopt()?;
        say(&format!("{facts}: adopted. Start the servers"));
        Ok(())
    }
}
