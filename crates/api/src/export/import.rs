//! The queries of an export and an import, and the answer of an import (NDJSON).

use super::EXPORT_CURSOR_BYTES_MAX;
use crate::INTEGER_MAX;
use crate::bad_request::{BadRequest, shown};
use crate::body::body;
use crate::choice::{Choice as _, choice};
use crate::json;
use crate::kind::{choice, count, number, object, text};
use crate::part::{flat, has, may};
use crate::problem::Problem;
use crate::query::{Parameters, Query, word};
use serde::{Deserialize, Serialize};

/// The query of `GET /v1/export`: `?queue=&cursor=`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExportQuery {
    /// Only what belongs to this queue.
    pub queue: Option<String>,
    /// Where the export that is to be continued was cut: the text of its last whole cursor line.
    pub cursor: Option<String>,
}

impl ExportQuery {
    /// Reads the text after the `?`.
    ///
    /// # Errors
    ///
    /// Unknown and repeated parameters, values that are not theirs, and broken percent-encoding.
    pub fn parse(query: &str) -> Result<Self, BadRequest> {
        let found = Parameters::read(query, &["queue", "cursor"], &[])?;
        Ok(Self {
            queue: found.get("queue").map(str::to_owned),
            cursor: found.cursor(EXPORT_CURSOR_BYTES_MAX)?,
        })
    }

    /// The query as [`parse`](Self::parse) reads it, without the `?`.
    pub fn to_query(&self) -> String {
        let mut query = Query::default();
        for (name, value) in [("queue", &self.queue), ("cursor", &self.cursor)] {
            if let Some(value) = value {
                query.add(name, value);
            }
        }
        query.text
    }
}

choice! {
    /// The rule for a task that the server has already.
    #[derive(Default)]
    pub enum Existing {
        /// The task of the server stays, and the import counts it. An interrupted import can be sent again this way.
        Skip = "skip",
        /// What the file says takes its place.
        Replace = "replace",
        /// The import stops before that line.
        #[default]
        Refuse = "refuse",
    }
}

/// The query of `POST /v1/import`: `?existing=&revoke=&other_clock=&quiet=&first_line=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportQuery {
    /// What to do about what is there already.
    pub existing: Existing,
    /// Whether a task that is replaced is taken out of a worker's hands.
    pub revoke: bool,
    /// Whether a file of a virtual clock is taken by a server of real time, and the other way round.
    pub other_clock: bool,
    /// Whether only the last line is answered.
    pub quiet: bool,
    /// The number, in its file, of the line behind the header; by default 2. A file may be sent in several parts, each with the header in front.
    pub first_line: u64,
}

impl Default for ImportQuery {
    fn default() -> Self {
        Self { existing: Existing::default(), revoke: false, other_clock: false, quiet: false, first_line: 2 }
    }
}

impl ImportQuery {
    /// Reads the text after the `?`.
    ///
    /// # Errors
    ///
    /// As [`ExportQuery::parse`].
    pub fn parse(query: &str) -> Result<Self, BadRequest> {
        const FLAGS: [(&str, bool); 2] = [("true", true), ("false", false)];
        const KNOWN: [&str; 5] = ["existing", "revoke", "other_clock", "quiet", "first_line"];
        let found = Parameters::read(query, &KNOWN, &[])?;
        let flag = |name: &'static str| found.get(name).map_or(Ok(false), |given| word(name, given, &FLAGS));
        let existing = found.get("existing").map(|given| word("existing", given, Existing::WORDS));
        let existing = existing.transpose()?.unwrap_or_default();
        let revoke = flag("revoke")?;
        if revoke && existing != Existing::Replace {
            let hint = "send `existing=replace` with it, or leave it out";
            return Err(BadRequest::parameter("revoke", "is for `existing=replace` alone", hint));
        }
        Ok(Self {
            existing,
            revoke,
            other_clock: flag("other_clock")?,
            quiet: flag("quiet")?,
            first_line: found.get("first_line").map_or(Ok(2), line_number)?,
        })
    }

    /// The query as [`parse`](Self::parse) reads it, without the `?`. Defaults are left out.
    pub fn to_query(&self) -> String {
        let mut query = Query::default();
        if self.existing != Existing::default() {
            query.add("existing", self.existing.name());
        }
        for (name, value) in
            [("revoke", self.revoke), ("other_clock", self.other_clock), ("quiet", self.quiet)]
        {
            if value {
                query.add(name, "true");
            }
        }
        if self.first_line != 2 {
            query.add("first_line", &self.first_line.to_string());
        }
        query.text
    }
}

fn line_number(given: &str) -> Result<u64, BadRequest> {
    let digits = !given.is_empty() && given.bytes().all(|byte| byte.is_ascii_digit());
    match given.parse() {
        Ok(number) if digits && (2..=INTEGER_MAX).contains(&number) => Ok(number),
        _ => {
            let what = format!("`{}` is not a number from 2 to {INTEGER_MAX}", shown(given));
            Err(BadRequest::parameter("first_line", what, "leave it out for 2, the line behind the header"))
        }
    }
}

/// A line of the answer to an import: `{"line": {...}}` of a line that was not plainly added, and at last `{"end": {...}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImportRow {
    /// What became of a line.
    Line(ImportLine),
    /// How the import ended.
    End(Box<ImportEnd>),
}

impl ImportRow {
    /// The row, with its line end.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = json::write(self);
        line.push(b'\n');
        line
    }
}

body! {
    /// What became of a line that was not plainly added.
    pub struct ImportLine: answer "ImportLine" {
        /// Its number in the file.
        number: u64 = has(number(1, INTEGER_MAX));
        /// What became of it.
        result: ImportResult = has(choice());
        /// What was there already, if it was left out.
        why: Option<SkipWhy> = may(choice());
        /// The queue.
        queue: String = has(text(200, ""));
        /// The key of the task, or the name of the schedule.
        ///
        /// None of a queue's settings.
        key: Option<String> = may(text(256, ""));
    }
}

choice! {
    /// What became of a line.
    pub enum ImportResult {
        /// It took the place of what was there.
        Replaced = "replaced",
        /// What was there stayed.
        Skipped = "skipped",
    }
}

choice! {
    /// Why a line was left out.
    pub enum SkipWhy {
        /// A live task has its key.
        Live = "live",
        /// A dead task has its key, or its id.
        Dead = "dead",
        /// Its task has ended here since it was put.
        Ended = "ended",
        /// It is a dead task that has lost its key, and ids are not kept: nobody can tell whether it is there.
        Keyless = "keyless",
        /// The queue's settings, or the schedule, are there already.
        Exists = "exists",
    }
}

body! {
    /// How many lines an import has dealt with, by what became of them.
    #[derive(Copy, Default)]
    pub struct ImportCounts: group {
        /// Lines that are new.
        added: u64 = has(count());
        /// Lines that took the place of what was there.
        replaced: u64 = has(count());
        /// Lines that were left out, for what was there stayed.
        skipped: u64 = has(count());
        /// Of the tasks that are new, those that got another id than in the file.
        new_ids: u64 = has(count());
    }
}

impl ImportCounts {
    /// All that were dealt with, the ones that were left out among them.
    pub fn total(self) -> u64 {
        self.added + self.replaced + self.skipped
    }

    /// Adds those of another part of the file.
    pub fn add(&mut self, other: Self) {
        let Self { added, replaced, skipped, new_ids } = other;
        self.added += added;
        self.replaced += replaced;
        self.skipped += skipped;
        self.new_ids += new_ids;
    }
}

body! {
    /// How an import ended: all lines before `next_line` are in and durable, and none after.
    pub struct ImportEnd: answer "ImportEnd" {
        /// The line to go on with: the one that stopped it, or the one behind the last.
        next_line: u64 = has(number(1, INTEGER_MAX));
        /// What became of the lines.
        counts: ImportCounts = flat();
        /// What stopped it.
        problem: Option<Problem> = may(object());
    }
}
