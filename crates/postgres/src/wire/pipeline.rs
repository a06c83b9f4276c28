//! [`Pipeline`]: steps that are sent in one flight, and [`StepResult`], the answer to one of them.

use std::borrow::Cow;

use super::error::Notice;
use super::param::Param;
use super::row::Row;

/// Steps that are sent in one flight with one `Sync` at the end: an error skips all steps after it.
///
/// Without a `BEGIN`, the steps are one transaction, which ends with the flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pipeline<'a> {
    steps: Vec<Step<'a>>,
}

/// One statement of a pipeline.
#[derive(Clone, Debug)]
pub(crate) struct Step<'a> {
    pub(crate) sql: Sql<'a>,
    pub(crate) params: Vec<Param<'a>>,
}

/// The text of a statement, and how long the server keeps its preparation.
#[derive(Clone, Debug)]
pub(crate) enum Sql<'a> {
    /// Prepared once for each connection. With the settings of our sessions it has one plan for all parameters.
    Kept(&'static str),
    /// Prepared for this step only.
    Once(Cow<'a, str>),
}

impl<'a> Pipeline<'a> {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a text without parameters, such as `BEGIN` or `SET LOCAL lock_timeout = '1s'`. It is one statement.
    pub(crate) fn text(&mut self, sql: impl Into<Cow<'a, str>>) -> &mut Self {
        self.once(sql, Vec::new())
    }

    /// Adds a statement that the connection prepares once and keeps by its text.
    pub(crate) fn kept(&mut self, sql: &'static str, params: Vec<Param<'a>>) -> &mut Self {
        self.steps.push(Step { sql: Sql::Kept(sql), params });
        self
    }

    /// Adds a statement that is prepared for these parameters. `plan_cache_mode` says whether its plan depends on them.
    pub(crate) fn once(&mut self, sql: impl Into<Cow<'a, str>>, params: Vec<Param<'a>>) -> &mut Self {
        self.steps.push(Step { sql: Sql::Once(sql.into()), params });
        self
    }

    pub(crate) fn steps(&self) -> &[Step<'a>] {
        &self.steps
    }

    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

/// The answer to one step.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepResult {
    /// The tag of `CommandComplete`, such as `COMMIT`, `ROLLBACK` or `INSERT 0 3`; empty for an empty text.
    pub(crate) tag: String,
    pub(crate) rows: Vec<Row>,
    /// The notices that came during this step. Those of the end of an implicit transaction are in the last step.
    pub(crate) notices: Vec<Notice>,
}

impl StepResult {
    /// The number of rows at the end of the tag: `Some(3)` for `INSERT 0 3`; `None` for `COMMIT`.
    #[cfg(test)]
    pub(crate) fn affected(&self) -> Option<u64> {
        self.tag.rsplit(' ').next()?.parse().ok()
    }
}
