//! Lines of a batch as NDJSON: the operations of a request and the results of an answer.

use crate::declare::json::{self, find_text};
use crate::declare::{
    Body, FieldCodec, Form, Mapped, Member, RawMembers, Source, ValueCodec, body, choice, flag, has, instant,
    key, may, named, number, object, one_of, role, schema, unless,
};
use crate::problems::cancel_outcome::CancelOutcome;
use crate::problems::problem::Problem;
use crate::problems::problem_kind::ProblemKind;
use crate::tasks::put::{OF_TASK, PatchBody, PutBody};
use crate::tasks::queries::PutMode;
use crate::text::bad_request::BadRequest;
use crate::text::portable::INTEGER_MAX;
use serde::ser::SerializeMap;
use serde_json::json;
use std::fmt;

/// The content type of the request and the answer of a batch: one JSON object on each line.
pub const BATCH_CONTENT_TYPE: &str = "application/x-ndjson";

body! {
    /// One line of a batch. A put or a patch also has the members of its route's body.
    pub(crate) struct LineMembers: line_members "BatchLine" {
        /// The operation.
        op: Op = has(one_of(OPS));
        /// The key of the task.
        key: String = has(key("order:1"));
        /// For a put: as the parameter `mode` of its route.
        mode: Option<PutMode> = may(choice());
        /// The operation takes effect only if the task has this version.
        if_match: Option<u64> = may(number(0, INTEGER_MAX).described(|| schema::integer(1, INTEGER_MAX)));
        /// Whether a leased task is taken from its worker.
        revoke: bool = unless(false, flag());
        /// The members of a put or a patch. The operation decides how they are read.
        change: Change = has(ChangeMembers);
    }
    elsewhere: &[
        ("queue", "it stands in the path: POST /v1/queues/{q}/batch"),
        ("due_at", "write `at` or `at_ms`; `due_at` is the name in answers"),
        ("version", "write `if_match`; `version` is the name in answers"),
    ];
    rules: OF_TASK;
}

/// The operation of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Put,
    Patch,
    Cancel,
}

const OPS: &[(&str, Op)] = &[("put", Op::Put), ("patch", Op::Patch), ("cancel", Op::Cancel)];

/// The body of a put or a patch on a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// The line has no body, or the body is not read yet.
    None,
    Put(PutBody),
    Patch(PatchBody),
}

/// The members of a put. The members of a patch are among them, at the same indexes.
struct ChangeMembers;

impl FieldCodec for ChangeMembers {
    type Value = Change;

    fn count(&self) -> usize {
        PutBody::count()
    }

    fn find(&self, _: &'static str, name: &str) -> Option<usize> {
        PutBody::find(name)
    }

    fn read(&self, _: &'static str, _: RawMembers<'_, '_>, _: Source) -> Result<Change, BadRequest> {
        Ok(Change::None)
    }

    fn write<M: SerializeMap>(
        &self,
        _: &'static str,
        change: &Change,
        map: &mut M,
        form: Form,
    ) -> Result<(), M::Error> {
        match change {
            Change::None => Ok(()),
            Change::Put(body) => body.write(map, form),
            Change::Patch(body) => body.write(map, form),
        }
    }

    fn describe(&self, _: &'static str, _: String, _: bool, all: &mut Vec<Member>) {
        all.extend(PutBody::members());
    }
}

impl Op {
    /// Whether a line with this operation may have this member.
    fn takes(self, name: &str) -> bool {
        match self {
            Self::Put => true,
            Self::Patch => {
                name != "mode" && (PatchBody::find(name).is_some() || PutBody::find(name).is_none())
            }
            Self::Cancel => ["op", "key", "if_match", "revoke"].contains(&name),
        }
    }

    fn refuse_others(self, raw: RawMembers<'_, '_>) -> Result<(), BadRequest> {
        let others = |at: usize| raw[at].is_some();
        if !(0..LineMembers::count()).any(others) {
            return Ok(());
        }
        match named::<LineMembers>(raw).into_iter().find(|name| !self.takes(name)) {
            None => Ok(()),
            Some(name) => {
                let op = if self == Self::Patch { "patch" } else { "cancel" };
                Err(BadRequest::member(name, format!("means nothing to a {op}"), "leave it out"))
            }
        }
    }
}

impl Mapped for BatchLine {
    type Members = LineMembers;

    fn from_members(
        members: LineMembers,
        _: Option<Self>,
        raw: RawMembers<'_, '_>,
    ) -> Result<Self, BadRequest> {
        let LineMembers { op, key, mode, if_match, revoke, .. } = members;
        let change = &raw[LineMembers::count() - PutBody::count()..];
        let op = match op {
            Op::Put => {
                let (body, mode) = (PutBody::read(change, Source::Request)?, mode.unwrap_or_default());
                body.check(mode)?;
                BatchOp::Put { body, mode }
            }
            Op::Patch => {
                op.refuse_others(raw)?;
                BatchOp::Patch(PatchBody::read(change, Source::Request)?)
            }
            Op::Cancel => {
                op.refuse_others(raw)?;
                BatchOp::Cancel
            }
        };
        Ok(Self { key, if_match, revoke, op })
    }

    fn to_members(&self) -> LineMembers {
        let (op, mode, change) = match self.op.clone() {
            BatchOp::Put { body, mode } => {
                (Op::Put, Some(mode).filter(|mode| *mode != PutMode::default()), Change::Put(body))
            }
            BatchOp::Patch(body) => (Op::Patch, None, Change::Patch(body)),
            BatchOp::Cancel => (Op::Cancel, None, Change::None),
        };
        let Self { key, if_match, revoke, .. } = self;
        LineMembers { op, key: key.clone(), mode, if_match: *if_match, revoke: *revoke, change }
    }
}

/// One line of a batch: `{"op": "put", "key": "a", "delay": "30m", "payload": {}}`, `{"op": "patch", ...}`,
/// `{"op": "cancel", "key": "b"}`.
///
/// A put has the members of [`PutBody`] and `mode`, a patch those of [`PatchBody`]; each of the three may
/// have `if_match` (a number) and `revoke`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchLine {
    /// The task's key.
    pub key: String,
    /// The operation takes effect only if the live task has this version.
    pub if_match: Option<u64>,
    /// Whether a leased task is taken from its worker.
    pub revoke: bool,
    /// The operation.
    pub op: BatchOp,
}

/// The operation of one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchOp {
    /// Schedule a task.
    Put {
        /// The task.
        body: PutBody,
        /// The rule for a live task that has the key already.
        mode: PutMode,
    },
    /// Change a task.
    Patch(PatchBody),
    /// End a task.
    Cancel,
}

/// A line that was refused. The result of the line names the key if that could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadBatchLine {
    /// The key, if it could be read.
    pub key: Option<String>,
    /// Why the line was refused.
    pub refusal: BadRequest,
}

impl fmt::Display for BadBatchLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.refusal.fmt(f)
    }
}

impl std::error::Error for BadBatchLine {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.refusal)
    }
}

impl BatchLine {
    /// Refuses a payload that some JSON readers cannot read. See [`PayloadBody::check_portable`](crate::PayloadBody::check_portable).
    ///
    /// # Errors
    ///
    /// The error names the first such place.
    pub fn check_portable(&self) -> Result<(), BadRequest> {
        match &self.op {
            BatchOp::Put { body, .. } => body.check_portable(),
            BatchOp::Patch(body) => body.check_portable(),
            BatchOp::Cancel => Ok(()),
        }
    }

    /// Reads one line, without its line end. The caller skips blank lines.
    ///
    /// # Errors
    ///
    /// The errors of [`PutBody::parse`] and [`PatchBody::parse`]; a line without `op` or `key`; a member that the operation does not have.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadBatchLine> {
        <Self as Body>::parse(bytes).map_err(|refusal| BadBatchLine { key: find_text(bytes, "key"), refusal })
    }

    /// The line as [`parse`](Self::parse) reads it, with no line end in it or after it. A JSON payload that was written over several lines
    /// is sent as base64; the server takes it for the same JSON.
    pub fn to_json(&self) -> Vec<u8> {
        let line = json::write(self);
        assert!(!line.contains(&b'\n'), "a batch line of {} bytes has a line end inside", line.len());
        line
    }
}

role!(functions export BatchLine);

body! {
    /// The result of one line, in the order of the request.
    ///
    /// | operation | line |
    /// |---|---|
    /// | put, patch | `{"key":"a","status":201,"version":42,"due_at":"..."}` |
    /// | cancel | `{"key":"b","status":404,"result":"not_found"}` |
    /// | any operation that failed | `{"key":"c","status":412,"problem":{...}}` |
    pub struct BatchResult: row "BatchResult" {
        /// The key of the line as it was sent, if the line had one.
        key: Option<String> = may(key("order:1").described(|| json!({ "type": "string" })));
        /// The HTTP status that the operation would have had in a call of its own.
        status: u16 = has(number(200, 599));
        /// The version of the task after a put or patch.
        version: Option<u64> = may(number(1, INTEGER_MAX));
        /// When the task is due after a put or patch.
        due_at_ms as "due_at": Option<i64> = may(instant());
        /// The outcome of a cancel.
        result: Option<CancelOutcome> = may(choice());
        /// Why the operation failed.
        problem: Option<Problem> = may(object());
    }
}

impl BatchResult {
    /// The result of a put or patch that took effect: 201 for a new task, 200 for a changed one.
    pub fn stored(key: impl Into<String>, status: u16, version: u64, due_at_ms: i64) -> Self {
        let (version, due_at_ms) = (Some(version), Some(due_at_ms));
        Self { key: Some(key.into()), status, version, due_at_ms, result: None, problem: None }
    }

    /// The result of a cancel, with or without effect.
    pub fn cancel(key: impl Into<String>, outcome: CancelOutcome) -> Self {
        let (status, result) = (outcome.status(), Some(outcome));
        Self { key: Some(key.into()), status, version: None, due_at_ms: None, result, problem: None }
    }

    /// The result of an operation that was refused, or of a line that could not be read.
    pub fn problem(key: Option<String>, problem: Problem) -> Self {
        let status = problem.status;
        Self { key, status, version: None, due_at_ms: None, result: None, problem: Some(problem) }
    }

    /// The kind of problem that the operation met; `None` if it took effect, or if this version does not know the kind.
    pub fn refusal(&self) -> Option<ProblemKind> {
        let of_cancel = || self.result.and_then(CancelOutcome::problem_kind);
        self.problem.as_ref().map_or_else(of_cancel, |problem| problem.kind())
    }
}
