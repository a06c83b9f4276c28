//! [`Place`]: where the tasks of the demo are.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use tickwheel_postgres::{
    ClusterClock, Plan, Postgres, SHARDS_DEFAULT, SetupError, with_database, without_password,
};

use super::clock::{Clock, own_us};
use crate::output::say;

/// A server that is killed is followed after this time (ms). Without the demo it is 5 s, which is too long for a shop that is open for 6 s.
const LEASE_MS: u32 = 1_000;

/// Where the servers of the demo keep the tasks.
pub(super) enum Place {
    /// In the temporary directory of the demo.
    Directory,
    /// In a database that the demo has made.
    Database(Box<Database>),
}

impl Place {
    /// Makes the place. `postgres`: the URL of a PostgreSQL that gets a database.
    ///
    /// # Errors
    /// The database cannot be made.
    pub(super) fn make(postgres: Option<&str>) -> Result<Self> {
        Ok(match postgres {
            Some(url) => Self::Database(Box::new(Database::make(url)?)),
            None => Self::Directory,
        })
    }

    /// Tells a server where the tasks are. `root` is the temporary directory.
    pub(super) fn tell(&self, serve: &mut Command, root: &Path) {
        match self {
            Self::Directory => serve.arg("--data").arg(root.join("data")),
            // Other users of the machine see the arguments of a process, and not its environment.
            Self::Database(database) => {
                serve.args(["--node", "demo"]).env("TICKWHEEL_POSTGRES", &database.own_url)
            }
        };
    }

    /// The clock by which tasks are due.
    pub(super) fn clock(&self) -> Clock {
        match self {
            Self::Directory => Clock::of_machine(),
            Self::Database(database) => database.clock,
        }
    }

    /// The place, as the end of "a server on the same".
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::Database(_) => "database",
        }
    }

    /// The lines about the place that a person should read before the shop opens.
    pub(super) fn introduction(&self) -> Option<String> {
        match self {
            Self::Directory => None,
            Self::Database(database) => Some(format!(
                "The tasks are in the new database {} of {}, and the demo removes it at the end. A server that is killed is followed after \
                 {LEASE_MS} ms; without the demo it is 5 s.",
                database.name, database.shown
            )),
        }
    }

    /// Removes the place. The temporary directory is not removed here.
    ///
    /// # Errors
    /// The database does not answer, or refuses.
    pub(super) fn remove(self) -> Result<()> {
        match self {
            Self::Directory => Ok(()),
            Self::Database(mut database) => database.remove(),
        }
    }
}

/// A database with a random name. Dropping it removes it.
pub(super) struct Database {
    /// The server on which the database is.
    server: Postgres,
    name: String,
    /// The URL of the database. It may have a password.
    own_url: String,
    /// The URL that the user gave, without a password.
    shown: String,
    clock: Clock,
    is_there: bool,
}

impl Database {
    fn make(url: &str) -> Result<Self> {
        let shown = without_password(url);
        let server = Postgres::at(url).with_context(|| format!("--postgres {shown}"))?;
        let name = format!("tickwheel_demo_{}", random_digits()?);
        let made = server.make_database(&name).map_err(|error| {
            let is_refused = matches!(error, SetupError::Refused(_));
            let advice = "the demo makes a database for itself, so that it touches no other; if the role may not make databases, \
                          `ALTER ROLE ... CREATEDB` gives it the right";
            let told = if is_refused { format!("{error}; {advice}") } else { error.to_string() };
            anyhow::anyhow!(told)
        });
        made.with_context(|| format!("failed to make a database on {shown}"))?;
        let mut database = Self {
            server,
            own_url: with_database(url, &name)?,
            name,
            shown,
            clock: Clock::of_machine(),
            is_there: true,
        };
        let plan = Plan {
            shards: Some(SHARDS_DEFAULT),
            clock: ClusterClock::Real,
            lease_ms: LEASE_MS,
            migrates: true,
        };
        let own = Postgres::at(&database.own_url)?;
        own.prepare(&plan).with_context(|| format!("failed to make the tables in {}", database.name))?;
        // Another machine has another clock, and a task is due by the clock of the database.
        database.clock = Clock::ahead_us(own.clock_ahead_us(own_us)?);
        Ok(database)
    }

    fn remove(&mut self) -> Result<()> {
        self.is_there = false;
        let Self { server, name, .. } = self;
        server.drop_database(name).with_context(|| {
            format!("failed to remove the database {name}; `DROP DATABASE {name} WITH (FORCE)` removes it")
        })
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if self.is_there
            && let Err(error) = self.remove()
        {
            say(&format!("{error:#}"));
        }
    }
}

fn random_digits() -> Result<String> {
    let mut bytes = [0; 6];
    getrandom::fill(&mut bytes)
        .map_err(|error| anyhow::anyhow!("get random bytes from the operating system: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
