//! Encodes the batch of an engine for the database.

use tickwheel_engine::{Batch, Before, Rule, RuleName, Seq, Task, TaskEffect, Timestamp};
use tickwheel_store::records;

use crate::database::{Claim, PutRow, RuleRow, ShardBatch};
use crate::shard::counts;

/// A number that is beyond the range of the database.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("store the number {0}: the database keeps numbers below 2^63")]
pub struct OutOfRange(u64);

/// Encodes a batch. `no` is its number in the shard.
///
/// # Errors
/// An id or the number of a change is beyond the range of the database.
pub(crate) fn encode(
    claim: Claim,
    no: i64,
    seq: Seq,
    wall: Timestamp,
    batch: &Batch,
) -> Result<ShardBatch, OutOfRange> {
    let mut encoded = ShardBatch {
        claim,
        no,
        seq: signed(seq.0)?,
        wall: wall.as_ms(),
        counters: batch.state.map(tickwheel_engine::EngineState::to_bytes),
        counts: counts::changes(&batch.growth()),
        ended: Vec::new(),
        ends: Vec::new(),
        keyless: Vec::new(),
        puts: Vec::new(),
        rules: Vec::with_capacity(batch.rules.len()),
        taken: batch.taken.iter().map(|row| row.cast_signed()).collect(),
    };
    for (effect, before) in batch.effects.iter().zip(&batch.before) {
        match effect {
            TaskEffect::Stored { task, body_known } => {
                if !task.is_keyed() {
                    encoded.keyless.push(signed(task.id)?);
                }
                encoded.puts.push(row(task, *before == Before::Absent, *body_known)?);
            }
            TaskEffect::Ended(ended) => {
                encoded.ends.push(signed(ended.id)?);
                records::put_ended(&mut encoded.ended, ended);
            }
        }
    }
    for (name, rule) in &batch.rules {
        encoded.rules.push(rule_row(name, rule.as_deref()));
    }
    Ok(encoded)
}

fn row(task: &Task, is_new: bool, body_known: bool) -> Result<PutRow, OutOfRange> {
    let mut record = Vec::new();
    records::put_task(&mut record, task);
    let body = (!body_known).then(|| {
        let mut body = Vec::with_capacity(task.body.payload_bytes() + 32);
        records::put_body(&mut body, &task.body);
        body
    });
    Ok(PutRow {
        id: signed(task.id)?,
        is_new,
        queue: task.queue.clone(),
        key: task.is_keyed().then(|| task.key.clone()),
        due_at: task.due_at.as_ms(),
        put_seq: signed(task.put_seq.0)?,
        seq: signed(task.seq.0)?,
        dead: task.dead().is_some(),
        leased: task.lease.is_some(),
        record,
        body,
    })
}

fn rule_row(name: &RuleName, rule: Option<&Rule>) -> RuleRow {
    let record = rule.map(|rule| {
        let mut record = Vec::new();
        records::put_rule(&mut record, name, rule);
        record
    });
    let (kind, queue, name) = match name {
        RuleName::Queue(queue) => (1, queue.as_str().to_owned(), String::new()),
        RuleName::Schedule(queue, name) => (2, queue.as_str().to_owned(), name.as_str().to_owned()),
        RuleName::Job(number) => (3, String::new(), number.to_string()),
    };
    RuleRow { kind, queue, name, record }
}

/// Returns a number as the database keeps it.
///
/// # Errors
/// The number is 2^63 or more.
pub(crate) fn signed(number: u64) -> Result<i64, OutOfRange> {
    i64::try_from(number).map_err(|_| OutOfRange(number))
}
