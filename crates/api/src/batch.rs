//! Lines of a batch: operations in, results out, as NDJSON.

use crate::INTEGER_MAX;
use crate::bad_request::BadRequest;
use crate::cancel::CancelOutcome;
use crate::json::{self, Members, Shape, find_text};
use crate::problem::Problem;
use crate::problem_kind::ProblemKind;
use crate::put::{LATER, PatchBody, PutBody};
use crate::query::{MODES, PutMode};
use crate::value;
use crate::{time, timeline};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use std::fmt;

pub(crate) const SHAPE: Shape = Shape {
    known: &[
        "op",
        "key",
        "delay",
        "at",
        "at_ms",
        "level",
        "timeline",
        "payload",
        "payload_base64",
        "content_type",
        "tags",
        "priority",
        "group",
        "retry",
        "expire_after",
        "mode",
        "max_wait",
        "if_match",
        "revoke",
    ],
    later: &LATER,
    elsewhere: &[
        ("queue", "it stands in the path: POST /v1/queues/{q}/batch"),
        ("due_at", "write `at` or `at_ms`; `due_at` is the name in answers"),
        ("version", "write `if_match`; `version` is the name in answers"),
    ],
};

/// Members that only a put has.
const OF_PUT: [&str; 2] = ["mode", "max_wait"];
/// Members that a cancel has.
const OF_CANCEL: [&str; 4] = ["op", "key", "if_match", "revoke"];

/// One line of a batch: `{"op": "put", "key": "a", "delay": "30m", "payload": {}}`, `{"op": "patch", ...}`,
/// `{"op": "cancel", "key": "b"}`.
///
/// A put has the members of [`PutBody`] and `mode`, a patch those of [`PatchBody`]; each of the three may
/// have `if_match` (a number) and `revoke`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchLine {
    /// The task's key.
    pub key: String,
    /// Only if the live task has this version.
    pub if_match: Option<u64>,
    /// Whether to take the task out of a worker's hands.
    pub revoke: bool,
    /// What to do with it.
    pub op: BatchOp,
}

/// The operation of one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchOp {
    /// Schedule a task.
    Put {
        /// When and what.
        body: PutBody,
        /// What to do about a live task of that key.
        mode: PutMode,
    },
    /// Change a task.
    Patch(PatchBody),
    /// End a task.
    Cancel,
}

/// A line that was refused, with its key if that could be read, for the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadBatchLine {
    /// The key, if the line has one.
    pub key: Option<String>,
    /// What is wrong.
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
    /// Refuses payloads that not all readers take. See [`PayloadBody::check_portable`](crate::PayloadBody::check_portable).
    ///
    /// # Errors
    ///
    /// Names the first such place.
    pub fn check_portable(&self) -> Result<(), BadRequest> {
        match &self.op {
            BatchOp::Put { body, .. } => body.check_portable(),
            BatchOp::Patch(body) => body.check_portable(),
            BatchOp::Cancel => Ok(()),
        }
    }

    /// Reads one line, without its line end. Blank lines are the caller's to skip.
    ///
    /// # Errors
    ///
    /// As [`PutBody::parse`] and [`PatchBody::parse`]; no `op` or `key`; a member that the operation does not
    /// have.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadBatchLine> {
        Self::read(bytes).map_err(|refusal| BadBatchLine { key: find_text(bytes, "key"), refusal })
    }

    fn read(bytes: &[u8]) -> Result<Self, BadRequest> {
        #[derive(Clone, Copy)]
        enum Op {
            Put,
            Patch,
            Cancel,
        }
        const OPS: [(&str, Op); 3] = [("put", Op::Put), ("patch", Op::Patch), ("cancel", Op::Cancel)];

        let members = Members::read(bytes, &SHAPE)?;
        let op = value::word("op", members.required("op", r#""op": "put""#)?, &OPS)?;
        let key = value::text("key", members.required("key", r#""key": "order:1""#)?, "order:1")?;
        let if_match = members
            .get("if_match")
            .map(|raw| value::integer("if_match", raw, 0..=INTEGER_MAX))
            .transpose()?;
        let revoke =
            members.get("revoke").map(|raw| value::boolean("revoke", raw)).transpose()?.unwrap_or(false);
        let op = match op {
            Op::Put => {
                let (body, mode) = (PutBody::of(&members)?, mode(&members)?);
                body.check(mode)?;
                BatchOp::Put { body, mode }
            }
            Op::Patch => {
                refuse_others(&members, "patch", |name| !OF_PUT.contains(&name))?;
                BatchOp::Patch(PatchBody::of(&members)?)
            }
            Op::Cancel => {
                refuse_others(&members, "cancel", |name| OF_CANCEL.contains(&name))?;
                BatchOp::Cancel
            }
        };
        Ok(Self { key, if_match, revoke, op })
    }

    /// The line as [`parse`](Self::parse) reads it, without a line end, and with none inside: a payload of
    /// JSON that was written over several lines goes as base64, and is the same JSON to the server.
    pub fn to_json(&self) -> Vec<u8> {
        let line = json::write(self);
        assert!(!line.contains(&b'\n'), "a batch line of {} bytes has a line end inside", line.len());
        line
    }
}

impl Serialize for BatchLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let name = match &self.op {
            BatchOp::Put { .. } => "put",
            BatchOp::Patch(_) => "patch",
            BatchOp::Cancel => "cancel",
        };
        map.serialize_entry("op", name)?;
        map.serialize_entry("key", &self.key)?;
        match &self.op {
            BatchOp::Put { body, mode } => {
                body.write_due(&mut map)?;
                if body.timeline.is_empty() {
                    body.payload.write_on_one_line(&mut map)?;
                } else {
                    timeline::write_on_one_line(&body.timeline, &mut map)?;
                }
                body.write_max_wait(&mut map)?;
                body.terms.write(&mut map)?;
                if *mode != PutMode::default() {
                    map.serialize_entry("mode", mode.name())?;
                }
            }
            BatchOp::Patch(body) => {
                body.write_due(&mut map)?;
                if let Some(payload) = &body.payload {
                    payload.write_on_one_line(&mut map)?;
                }
                if let Some(timeline) = &body.timeline {
                    timeline::write_on_one_line(timeline, &mut map)?;
                }
                body.terms.write(&mut map)?;
            }
            BatchOp::Cancel => {}
        }
        if let Some(version) = self.if_match {
            map.serialize_entry("if_match", &version)?;
        }
        if self.revoke {
            map.serialize_entry("revoke", &true)?;
        }
        map.end()
    }
}

fn mode(members: &Members<'_>) -> Result<PutMode, BadRequest> {
    let Some(raw) = members.get("mode") else { return Ok(PutMode::default()) };
    value::word("mode", raw, &MODES)
}

fn refuse_others(members: &Members<'_>, op: &str, allowed: impl Fn(&str) -> bool) -> Result<(), BadRequest> {
    match members.names().find(|name| !allowed(name)) {
        None => Ok(()),
        Some(name) => Err(BadRequest::member(name, format!("means nothing to a {op}"), "leave it out")),
    }
}

/// One line of a batch's answer. Lines come in the order of the request.
///
/// | operation | line |
/// |---|---|
/// | put, patch | `{"key":"a","status":201,"version":42,"due_at":"..."}` |
/// | cancel | `{"key":"b","status":404,"result":"not_found"}` |
/// | any that failed | `{"key":"c","status":412,"problem":{...}}` |
///
/// `key` is absent only if the line of the request had none that could be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchResult {
    /// The task's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The status that the operation alone would have answered.
    pub status: u16,
    /// The task's version after a put or patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// When the task is due after a put or patch, in ms since 1970.
    #[serde(
        rename = "due_at",
        default,
        with = "time::rfc3339_option",
        skip_serializing_if = "Option::is_none"
    )]
    pub due_at_ms: Option<i64>,
    /// What a cancel found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CancelOutcome>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Box<Problem>>,
}

impl BatchResult {
    /// A put or patch that took effect: 201 for a new task, 200 for a changed one.
    pub fn stored(key: impl Into<String>, status: u16, version: u64, due_at_ms: i64) -> Self {
        let (version, due_at_ms) = (Some(version), Some(due_at_ms));
        Self { key: Some(key.into()), status, version, due_at_ms, result: None, problem: None }
    }

    /// A cancel, whatever it found.
    pub fn cancel(key: impl Into<String>, outcome: CancelOutcome) -> Self {
        let (status, result) = (outcome.status(), Some(outcome));
        Self { key: Some(key.into()), status, version: None, due_at_ms: None, result, problem: None }
    }

    /// An operation that was refused, or a line that was not understood.
    pub fn problem(key: Option<String>, problem: Problem) -> Self {
        let status = problem.status;
        Self { key, status, version: None, due_at_ms: None, result: None, problem: Some(Box::new(problem)) }
    }

    /// Why it was refused; `None` if it was not, or by a kind that this version does not know.
    pub fn refusal(&self) -> Option<ProblemKind> {
        let of_cancel = || self.result.and_then(CancelOutcome::problem_kind);
        self.problem.as_ref().map_or_else(of_cancel, |problem| problem.kind())
    }

    /// The line, with its line end.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = json::write(self);
        line.push(b'\n');
        line
    }
}
