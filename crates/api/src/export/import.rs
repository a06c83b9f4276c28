//! The queries of an export and of an import, and the answer to an import (NDJSON).

use super::EXPORT_CURSOR_BYTES_MAX;
use crate::declare::query::{self, query};
use crate::declare::{Schema, body, choice, count, flat, has, json, may, number, object, schema, text};
use crate::problems::problem::Problem;
use crate::text::bad_request::BadRequest;
use crate::text::portable::INTEGER_MAX;
use serde::{Deserialize, Serialize};

query! {
    /// The query of `GET /v1/export`: `?queue=&cursor=`.
    pub struct ExportQuery {
        /// The queue that the export is limited to.
        queue: Option<String> = None, |_, given: &str| Ok::<_, BadRequest>(Some(given.to_owned()));
        /// The text of the last complete cursor line of an export that was cut. The new export goes on there.
        cursor: Option<String> = None, |_, given| query::cursor(given, EXPORT_CURSOR_BYTES_MAX).map(Some);
    }
}

choice! {
    /// The rule for a task, settings or a schedule that the server has already.
    #[derive(Default)]
    pub enum Existing {
        /// The server keeps what it has, and the import counts the line as skipped. An interrupted import can be sent again with this rule.
        Skip = "skip",
        /// The line of the file replaces what the server has.
        Replace = "replace",
        /// The import stops before the line.
        #[default]
        Refuse = "refuse",
    }
}

query! {
    /// The query of `POST /v1/import`: `?existing=&revoke=&other_clock=&quiet=&first_line=`.
    #[derive(Copy)]
    pub struct ImportQuery {
        /// The rule for what the server has already.
        existing: Existing = Existing::Refuse, query::choice;
        /// Whether a leased task that is replaced is taken from its worker.
        revoke: bool = false, query::flag;
        /// Whether the file and the server may differ in that one of them has a virtual clock.
        other_clock: bool = false, query::flag;
        /// Whether the answer has the last line only.
        quiet: bool = false, query::flag;
        /// The number in its file of the first line behind the header; by default 2. A file may be sent in several parts, each with the header in front.
        first_line: u64 = 2, |name, given| query::number(name, given, 2..=INTEGER_MAX, "2, the line behind the header");
    }
    check: ImportQuery::check_revoke;
}

impl ImportQuery {
    fn check_revoke(&self) -> Result<(), BadRequest> {
        if !self.revoke || self.existing == Existing::Replace {
            return Ok(());
        }
        let hint = "send `existing=replace` with it, or leave it out";
        Err(BadRequest::parameter("revoke", "is for `existing=replace` alone", hint))
    }
}

/// A line of the answer to an import: `{"line": {...}}` for each line that was replaced or skipped, and `{"end": {...}}` as the last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImportRow {
    /// The result of a line that was replaced or skipped.
    Line(ImportLine),
    /// The last line of the answer: how the import ended.
    End(Box<ImportEnd>),
}

impl ImportRow {
    /// The row as JSON, with its line end.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = json::write(self);
        line.push(b'\n');
        line
    }

    /// Describes the line.
    pub(crate) fn schema() -> Schema {
        Schema::answer(
            "ImportRow",
            "One line of the answer to an import.",
            vec![
                schema::may(
                    "line",
                    schema::of("ImportLine"),
                    "The result of a line that was replaced or skipped. With `quiet` there are no such lines.",
                ),
                schema::may(
                    "end",
                    schema::of("ImportEnd"),
                    "The last line of the answer: the end of the import.",
                ),
            ],
        )
    }
}

body! {
    /// The result of a line of an import that was replaced or skipped.
    pub struct ImportLine: answer "ImportLine" {
        /// The number of the line in the file.
        number: u64 = has(number(1, INTEGER_MAX));
        /// The result.
        result: ImportResult = has(choice());
        /// Why the line was skipped.
        why: Option<SkipWhy> = may(choice());
        /// The queue.
        queue: String = has(text(200, ""));
        /// The key of the task, or the name of the schedule.
        ///
        /// Absent for the settings of a queue.
        key: Option<String> = may(text(256, ""));
    }
}

choice! {
    /// The result of a line.
    pub enum ImportResult {
        /// The line replaced what the server had.
        Replaced = "replaced",
        /// The server kept what it had.
        Skipped = "skipped",
    }
}

choice! {
    /// Why a line was skipped.
    pub enum SkipWhy {
        /// A live task has the key of the line.
        Live = "live",
        /// A dead task has the key or the id of the line.
        Dead = "dead",
        /// The task of the line was put on this server and has ended here.
        Ended = "ended",
        /// The line is a dead task without a key of its own, and the import does not keep ids. So the server cannot tell whether it has the task already.
        Keyless = "keyless",
        /// The server has settings of the queue, or the schedule, already.
        Exists = "exists",
    }
}

body! {
    /// Number of lines that an import has processed, by result.
    #[derive(Copy, Default)]
    pub struct ImportCounts: group {
        /// Number of lines that were added.
        added: u64 = has(count());
        /// Number of lines that replaced what the server had.
        replaced: u64 = has(count());
        /// Number of lines that were skipped, because the server kept what it had.
        skipped: u64 = has(count());
        /// Number of added tasks whose id differs from the one in the file.
        new_ids: u64 = has(count());
    }
}

impl ImportCounts {
    /// Number of all processed lines, the skipped ones included.
    pub fn total(self) -> u64 {
        self.added + self.replaced + self.skipped
    }

    /// Adds the counts of another part of the file.
    pub fn add(&mut self, other: Self) {
        let Self { added, replaced, skipped, new_ids } = other;
        self.added += added;
        self.replaced += replaced;
        self.skipped += skipped;
        self.new_ids += new_ids;
    }
}

body! {
    /// The end of an import: all lines before `next_line` are imported and durable, and no later line is.
    pub struct ImportEnd: answer "ImportEnd" {
        /// The number of the line to go on with: the line that stopped the import, or the one after the last line.
        next_line: u64 = has(number(1, INTEGER_MAX));
        /// Number of processed lines, by result.
        counts: ImportCounts = flat();
        /// The problem that stopped the import. Absent if all lines were processed.
        problem: Option<Problem> = may(object());
    }
}
