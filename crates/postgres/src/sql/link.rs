//! [`Link`]: a connection that tells definite failures from unknown ones.

use std::time::{Duration, Instant};

use crate::database::Failure;
use crate::wire::{Connection, DbError, Pipeline, Row, RowError, RunError, StepResult};

/// Classes of errors that pass: too few resources, such as a full disk, and errors of the system.
const RESOURCES: &str = "53";
const SYSTEM: &str = "58";
/// Codes of other errors after which the same call may succeed later.
const AGAIN: [&str; 7] = [
    "55P03", // A lock was not free in time.
    "40P01", // A deadlock.
    "40001", // The transaction cannot be serialised.
    "57014", // An administrator cancelled the statement.
    "42501", // The role lacks a right, which an administrator may give it back.
    "0A000", // The plan of a kept statement is stale; the next try makes a new one.
    "26000", // A kept statement is gone; the next try makes it anew.
];
/// The database refuses changes, because it is a standby or was made read-only. Another host may take them.
const READ_ONLY: &str = "25006";

/// A connection, and the judgement about its failures.
pub(crate) struct Link {
    connection: Connection,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("peer", &self.connection.peer()).finish_non_exhaustive()
    }
}

impl Link {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Runs a pipeline. `limit`: how long to wait for the answer; `None`: as long as the connection stands, because a commit that waits for a
    /// standby is never given up.
    ///
    /// # Errors
    /// [`Failure`]. A failure of a pipeline that changes nothing can be taken as definite by its caller.
    pub(crate) fn run(
        &mut self,
        pipeline: &Pipeline<'_>,
        limit: Option<Duration>,
    ) -> Result<Vec<StepResult>, Failure> {
        self.connection.run(pipeline, limit.map(after)).map_err(failure)
    }

    /// Runs several statements without parameters.
    ///
    /// # Errors
    /// [`Failure`].
    pub(crate) fn script(&mut self, sql: &str, limit: Duration) -> Result<(), Failure> {
        self.connection.simple(sql, Some(after(limit))).map(drop).map_err(failure)
    }

    /// Runs a pipeline whose last step is `COMMIT`. Returns the answers of the steps before.
    ///
    /// # Errors
    /// [`Failure`]. A `COMMIT` that was answered with another tag, or with a warning, has an unknown outcome: an administrator who cancels the
    /// wait for a standby makes the database report success with a warning.
    pub(crate) fn commit(&mut self, pipeline: &mut Pipeline<'_>) -> Result<Vec<StepResult>, Failure> {
        self.commit_until(pipeline, None)
    }

    /// Like [`commit`](Self::commit), for at most this time. Then the outcome is unknown.
    ///
    /// # Errors
    /// [`Failure`].
    pub(crate) fn commit_within(
        &mut self,
        pipeline: &mut Pipeline<'_>,
        limit: Duration,
    ) -> Result<Vec<StepResult>, Failure> {
        self.commit_until(pipeline, Some(limit))
    }

    fn commit_until(
        &mut self,
        pipeline: &mut Pipeline<'_>,
        limit: Option<Duration>,
    ) -> Result<Vec<StepResult>, Failure> {
        pipeline.text("COMMIT");
        let mut results = self.run(pipeline, limit)?;
        let Some(commit) = results.pop() else { return Err(gone("the commit was not answered".to_owned())) };
        if commit.tag == "ROLLBACK" {
            return Err(Failure::Refused { why: "commit: the database rolled back".to_owned(), again: true });
        }
        if commit.tag != "COMMIT" {
            return Err(gone(format!("the commit was answered with {}", commit.tag)));
        }
        no_warning(&[commit])?;
        Ok(results)
    }
}

/// Checks that no answer has a warning.
///
/// # Errors
/// There is a warning, so the outcome is unknown.
pub(crate) fn no_warning(results: &[StepResult]) -> Result<(), Failure> {
    let mut notices = results.iter().flat_map(|result| &result.notices);
    match notices.find(|notice| notice.severity == "WARNING") {
        Some(notice) => Err(gone(format!("the commit was answered with a warning: {}", notice.message))),
        None => Ok(()),
    }
}

fn gone(why: String) -> Failure {
    Failure::Gone { why }
}

#[expect(clippy::disallowed_methods, reason = "the wire waits for a database until an instant of real time")]
pub(crate) fn after(limit: Duration) -> Instant {
    Instant::now() + limit
}

fn failure(error: RunError) -> Failure {
    match error {
        RunError::Invalid(why) => Failure::Refused { why, again: false },
        RunError::Database { error, .. } if error.code == READ_ONLY => gone(text(&error)),
        RunError::Database { error, .. } => {
            Failure::Refused { why: text(&error), again: may_succeed_later(&error.code) }
        }
        lost @ RunError::Lost { .. } => gone(lost.to_string()),
    }
}

/// Whether the same call may succeed later.
fn may_succeed_later(code: &str) -> bool {
    code.starts_with(RESOURCES) || code.starts_with(SYSTEM) || AGAIN.contains(&code)
}

fn text(error: &DbError) -> String {
    format!("the database answered: {error}")
}

/// Returns the row at `index` of the answer to the step at `step`.
///
/// # Errors
/// The answer has no such row, so it is not an answer of this schema.
pub(crate) fn row(results: &[StepResult], step: usize, index: usize) -> Result<&Row, Failure> {
    let row = results.get(step).and_then(|result| result.rows.get(index));
    row.ok_or_else(|| foreign(&format!("step {step} has no row {index}")))
}

/// Returns the failure for an answer that this schema does not give.
pub(crate) fn foreign(what: &str) -> Failure {
    Failure::Refused { why: format!("the database gave an unexpected answer: {what}"), again: false }
}

impl From<RowError> for Failure {
    fn from(error: RowError) -> Self {
        foreign(&error.to_string())
    }
}
