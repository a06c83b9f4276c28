//! Databases beside the one that a URL names, for a program that needs one for itself.

use std::fmt;
use std::time::Duration;

use super::connect::Postgres;
use super::link::row;
use super::setup_error::SetupError;
use crate::database::Failure;
use crate::wire::{DatabaseUrl, Pipeline};

const LIMIT: Duration = Duration::from_secs(60);
const APPLICATION: &str = "tickwheel";

const CLOCK_US: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8";
/// Each look at the clock gives a bound. The narrowest one counts, and one of some looks is quick.
const LOOKS: u32 = 8;

/// The URL with another database in it. All else stays as it is.
///
/// # Errors
/// [`SetupError::Url`]: the text is no URL of a database.
pub fn with_database(url: &str, database: &str) -> Result<String, SetupError> {
    DatabaseUrl::with_database(url, database).map_err(|error| SetupError::Url(error.to_string()))
}

/// The URL with `***` in the place of a password, for messages.
#[must_use]
pub fn without_password(url: &str) -> String {
    DatabaseUrl::without_password(url)
}

impl Postgres {
    /// Makes an empty database of this name on the server. The role needs the right to make databases.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn make_database(&self, name: &str) -> Result<(), SetupError> {
        // No session uses `template0`, so its copy is never refused because of another session.
        self.run_alone(&format!("CREATE DATABASE {} TEMPLATE template0", quoted(name)))
    }

    /// Removes the database of this name from the server, if it is there, and ends its sessions.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn drop_database(&self, name: &str) -> Result<(), SetupError> {
        self.run_alone(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", quoted(name)))
    }

    /// Returns how far the clock of the database is ahead of another clock, at most (µs). `now_us` reads the other clock.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn clock_ahead_us(&self, now_us: impl Fn() -> i64) -> Result<i64, SetupError> {
        let mut link = self.open(APPLICATION)?;
        let mut ahead_us = i64::MAX;
        for _ in 0..LOOKS {
            let mut pipeline = Pipeline::new();
            pipeline.kept(CLOCK_US, Vec::new());
            let asked_us = now_us();
            let results = link.run(&pipeline, Some(LIMIT))?;
            let clock_us: i64 = row(&results, 0, 0)?.get(0).map_err(Failure::from)?;
            // The database read its clock after the question was sent.
            ahead_us = ahead_us.min(clock_us - asked_us);
        }
        Ok(ahead_us)
    }

    /// Runs a statement that cannot be part of a transaction.
    fn run_alone(&self, sql: &str) -> Result<(), SetupError> {
        let done = self.open(APPLICATION)?.script(sql, LIMIT);
        done.map_err(|failure| match failure {
            // A right that the role lacks does not come by itself.
            Failure::Refused { why, again: _ } => SetupError::Refused(why),
            failure @ Failure::Gone { .. } => failure.into(),
        })
    }
}

/// Names the database without a password.
impl fmt::Display for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url().fmt(f)
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
