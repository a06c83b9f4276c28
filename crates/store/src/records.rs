//! The records of tasks, ends and rules as bytes, for a store that keeps them in a place of its own.
//!
//! The bytes are those of the files of a directory, see the page of the format: each record has its tag and its length, so that several
//! records can follow each other. The body of a task stands alone, because most changes leave it as it is.

use std::sync::Arc;

use tickwheel_engine::{Body, Ended, Rule, RuleEffect, RuleName, Task};

use crate::codec::{self, DecodeError, Names, Op, read_ops};

/// Bytes that are no record: they are damaged, or a later release wrote them.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what} (byte {at})")]
pub struct RecordError {
    /// The reason, in words.
    what: &'static str,
    /// The offset at which the reading failed (bytes).
    at: usize,
}

impl From<DecodeError> for RecordError {
    fn from(DecodeError { what, at }: DecodeError) -> Self {
        Self { what, at }
    }
}

/// Appends the record of a task, without its body.
pub fn put_task(out: &mut Vec<u8>, task: &Task) {
    codec::put_stored(out, task, false);
}

/// Appends a body: content type, tags, payload and timeline.
pub fn put_body(out: &mut Vec<u8>, body: &Body) {
    codec::put_body(out, body);
}

/// Appends the record of the end of a task.
pub fn put_ended(out: &mut Vec<u8>, ended: &Ended) {
    codec::put_ended(out, ended);
}

/// Appends the record of a rule.
pub fn put_rule(out: &mut Vec<u8>, name: &RuleName, rule: &Rule) {
    codec::put_rule(out, name, Some(rule));
}

/// Reads records. Texts that many records share, such as the names of queues, are kept once in memory.
///
/// ```
/// use tickwheel_store::records::{RecordReader, put_body, put_task};
///
/// let task = tickwheel_store::conformance::sample_task(1, 1, "mail", "order:1", 1_000);
/// let (mut record, mut body) = (Vec::new(), Vec::new());
/// put_task(&mut record, &task);
/// put_body(&mut body, &task.body);
/// assert_eq!(RecordReader::new().task(&record, &body), Ok(task));
/// ```
#[derive(Debug)]
pub struct RecordReader {
    names: Names,
}

impl Default for RecordReader {
    fn default() -> Self {
        Self::new()
    }
}

impl RecordReader {
    /// Returns a reader that has read no record yet.
    #[must_use]
    pub fn new() -> Self {
        Self { names: Names::new() }
    }

    /// Reads a task from its record and its body.
    ///
    /// # Errors
    /// The bytes are not exactly one record of a task, or not a body.
    pub fn task(&mut self, record: &[u8], body: &[u8]) -> Result<Task, RecordError> {
        let Op::StoredBodyKnown(mut task) = self.one(record)? else { return Err(foreign()) };
        task.body = Arc::new(codec::read_body(body, &mut self.names)?);
        Ok(task)
    }

    /// Reads a rule.
    ///
    /// # Errors
    /// The bytes are not exactly one record of a rule.
    pub fn rule(&mut self, record: &[u8]) -> Result<RuleEffect, RecordError> {
        if let Op::Rule(rule) = self.one(record)? { Ok(rule) } else { Err(foreign()) }
    }

    /// Reads the ends of tasks, one behind the other, and hands them to `take`.
    ///
    /// # Errors
    /// The first bytes that are not the record of an end. All ends before were handed to `take`.
    pub fn ends(&mut self, records: &[u8], mut take: impl FnMut(Ended)) -> Result<(), RecordError> {
        let is_end = |op| if let Op::Ended(ended) = op { Some(ended) } else { None };
        read_ops(records, &mut self.names, |op| {
            take(is_end(op).ok_or(DecodeError { what: FOREIGN, at: 0 })?);
            Ok(())
        })?;
        Ok(())
    }

    fn one(&mut self, record: &[u8]) -> Result<Op, RecordError> {
        let mut ops = Vec::with_capacity(1);
        read_ops(record, &mut self.names, |op| {
            ops.push(op);
            Ok(())
        })?;
        match (ops.pop(), ops.is_empty()) {
            (Some(op), true) => Ok(op),
            _ => Err(foreign()),
        }
    }
}

const FOREIGN: &str = "another record than expected";

fn foreign() -> RecordError {
    RecordError { what: FOREIGN, at: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{sample_rule, sample_task};
    use tickwheel_engine::{LeaseNo, Moment, Outcome, Tag, Timestamp};

    #[test]
    fn a_body_stands_alone() {
        let mut body = Body::bytes(*b"payload");
        body.tags = ["a", "b"].map(|tag| Tag::new(tag).expect("a tag")).into();
        let at = |ms| Timestamp::from_ms(ms).expect("not negative");
        body.timeline =
            [1, 2].map(|ms| Moment { at: at(ms), payload: vec![7; 3], content_type: "a/b".into() }).into();
        let mut task = sample_task(7, 3, "q", "k", 50);
        task.body = Arc::new(body);
        task.attempts = 9;
        let (mut record, mut bytes) = (Vec::new(), Vec::new());
        put_task(&mut record, &task);
        put_body(&mut bytes, &task.body);
        assert_eq!(RecordReader::new().task(&record, &bytes), Ok(task));
        for cut in 0..bytes.len() {
            let read = RecordReader::new().task(&record, &bytes[..cut]);
            assert!(read.is_err() || cut > 0, "{cut} bytes are no body");
        }
    }

    #[test]
    fn another_record_is_no_task_no_rule_and_no_end() {
        let (name, rule) = sample_rule("q", 3);
        let rule = rule.expect("a rule");
        let task = sample_task(7, 3, "q", "k", 50);
        let ended = Ended {
            id: 7,
            queue: task.queue.clone(),
            key: task.key.clone(),
            seq: task.seq,
            at: Timestamp::EPOCH,
            outcome: Outcome::Done(LeaseNo(4)),
        };
        let (mut rules, mut ends) = (Vec::new(), Vec::new());
        put_rule(&mut rules, &name, &rule);
        put_ended(&mut ends, &ended);
        put_ended(&mut ends, &ended);
        let mut reader = RecordReader::new();
        assert_eq!(reader.rule(&rules), Ok((name, Some(rule))));
        let mut read = Vec::new();
        assert_eq!(reader.ends(&ends, |ended| read.push(ended)), Ok(()));
        assert_eq!(read, [ended.clone(), ended]);
        assert!(reader.rule(&ends).is_err() && reader.task(&rules, &[]).is_err());
        assert!(reader.ends(&rules, |_| {}).is_err() && reader.task(&[], &[]).is_err());
    }
}
