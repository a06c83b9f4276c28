//! The records of the log, of checkpoints and of segments: how they are written and read.

use tickwheel_engine::{
    Batch, Body, Ended, EngineState, LeaseNo, Outcome, Rule, RuleEffect, RuleName, Seq, Task, TaskEffect,
};

use super::names::Names;
use super::rule;
use super::task::{self, TaskHead, key, put_task, read_head, read_task};
use super::wire::{DecodeError, Reader, put_text, put_timestamp, put_varint, timestamp};

mod tag {
    pub(super) const STORED: u8 = 1;
    pub(super) const STORED_BODY_KNOWN: u8 = 2;
    pub(super) const ENDED: u8 = 3;
    pub(super) const RULE: u8 = 4;
    pub(super) const STATE: u8 = 5;
    pub(super) const LAST: u8 = STATE;
}

mod outcome {
    pub(super) const DONE: u8 = 0;
    pub(super) const CANCELLED: u8 = 1;
    pub(super) const REVOKED: u8 = 2;
    pub(super) const FORGOTTEN: u8 = 3;
    pub(super) const DONE_UNDER: u8 = 4;
}

/// A record of a file, decoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    /// A task with its body.
    Stored(Task),
    /// A task whose body is in an earlier record. The body in this value is empty.
    StoredBodyKnown(Task),
    /// A task that ended.
    Ended(Ended),
    /// The state of the engine.
    State(EngineState),
    /// A rule, or the removal of a rule.
    Rule(RuleEffect),
}

/// Appends every record of a commit.
pub(crate) fn put_batch(out: &mut Vec<u8>, batch: &Batch) {
    let Batch { effects, before: _, state, rules, taken: _ } = batch;
    for effect in effects {
        match effect {
            TaskEffect::Stored { task, body_known } => put_stored(out, task, !body_known),
            TaskEffect::Ended(ended) => put_ended(out, ended),
        }
    }
    if let Some(state) = state {
        put_op(out, tag::STATE, |out| out.extend_from_slice(&state.to_bytes()));
    }
    rules.iter().for_each(|(name, rule)| put_rule(out, name, rule.as_deref()));
}

/// Returns about how many bytes [`put_batch`] appends for the tasks of a commit. The state and the rules are not counted.
pub(crate) fn batch_bytes(batch: &Batch) -> usize {
    let of = |effect: &TaskEffect| match effect {
        TaskEffect::Stored { task, body_known: false } => 160 + task.body.payload_bytes(),
        TaskEffect::Stored { .. } | TaskEffect::Ended(_) => 96,
    };
    batch.effects.iter().map(of).sum()
}

/// Reads an engine state from all bytes that are left in `rest`.
pub(crate) fn state(rest: &mut Reader<'_>) -> Result<EngineState, DecodeError> {
    let error = rest.error("the state of a later engine");
    EngineState::from_bytes(rest.rest()).map_err(|_| error)
}

/// Appends a rule, or the removal of the rule if `rule` is `None`.
pub(crate) fn put_rule(out: &mut Vec<u8>, name: &RuleName, rule: Option<&Rule>) {
    put_op(out, tag::RULE, |out| rule::put_rule(out, name, rule));
}

/// Appends a task, with or without its body.
pub(crate) fn put_stored(out: &mut Vec<u8>, task: &Task, with_body: bool) {
    let tag = if with_body { tag::STORED } else { tag::STORED_BODY_KNOWN };
    put_op(out, tag, |out| put_task(out, task, with_body));
}

/// Appends a body without the task that has it. The bytes have neither a tag nor a length.
pub(crate) fn put_body(out: &mut Vec<u8>, body: &Body) {
    task::put_body(out, body);
}

/// Reads all bytes as a body that [`put_body`] wrote.
pub(crate) fn read_body(bytes: &[u8], names: &mut Names) -> Result<Body, DecodeError> {
    task::read_body(&mut Reader::new(bytes), names)
}

/// Appends the end of a task.
pub(crate) fn put_ended(out: &mut Vec<u8>, ended: &Ended) {
    let Ended { id, queue, key, seq, at, outcome } = ended;
    put_op(out, tag::ENDED, |out| {
        put_varint(out, *id);
        put_varint(out, seq.0);
        put_timestamp(out, *at);
        put_text(out, queue.as_str());
        put_text(out, key.as_str());
        match outcome {
            Outcome::Done(LeaseNo::NONE) => out.push(outcome::DONE),
            Outcome::Done(lease) => {
                out.push(outcome::DONE_UNDER);
                put_varint(out, lease.0);
            }
            Outcome::Cancelled => out.push(outcome::CANCELLED),
            Outcome::Revoked(lease) => {
                out.push(outcome::REVOKED);
                put_varint(out, lease.0);
            }
            Outcome::Forgotten => out.push(outcome::FORGOTTEN),
        }
    });
}

/// Appends a tag, the length of the record in four bytes, and the record.
fn put_op(out: &mut Vec<u8>, tag: u8, record: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    record(out);
    let bytes = out.len() - at - 4;
    let length = u32::try_from(bytes).expect("a task is bounded far below 4 GiB by who took it in");
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

/// Reads all records in `bytes`, and hands them to `take` in order.
///
/// # Errors
/// The first bytes that are no record, or the first error of `take`. All records before that point were handed to `take`.
pub(crate) fn read_ops(
    bytes: &[u8],
    names: &mut Names,
    mut take: impl FnMut(Op) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        let tag = reader.u8()?;
        let length = reader.u32_le()? as usize;
        let start = reader.error("").at;
        let mut record = Reader::new(reader.take(length)?);
        let op = read_op(tag, &mut record, names)
            .map_err(|error| DecodeError { at: start.saturating_add(error.at), ..error })?;
        take(op)?;
    }
    Ok(())
}

/// Reads the head of a stored task. `None`: the bytes are no stored task with a body, or the head is damaged.
pub(crate) fn stored_head(bytes: &[u8]) -> Option<TaskHead<'_>> {
    let (head, content) = bytes.split_first_chunk::<OP_HEAD_BYTES>()?;
    (head[0] == tag::STORED).then(|| read_head(&mut Reader::new(content)).ok()).flatten()
}

/// Bytes before a record's content: its tag (1), its length (4).
pub(crate) const OP_HEAD_BYTES: usize = 5;

/// A record, and where it is among other records.
pub(crate) struct OpAt {
    /// The offset of the first byte of the record, which is its tag (bytes).
    pub(crate) at: usize,
    /// The length of the record, with its tag and its length field (bytes).
    pub(crate) bytes: usize,
    /// The decoded content of the record, or the error of decoding it.
    pub(crate) op: Result<Op, DecodeError>,
}

/// Returns an iterator that decodes records one by one. The iterator goes on after a record that does not decode. The iterator ends at the
/// first bytes that cannot begin a record: too few bytes, an unknown tag, or a length beyond the end of `bytes`.
pub(crate) fn split_ops<'a>(bytes: &'a [u8], names: &'a mut Names) -> impl Iterator<Item = OpAt> + 'a {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(at..)?;
        let head = rest.first_chunk::<OP_HEAD_BYTES>()?;
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let content = rest[OP_HEAD_BYTES..].get(..length)?;
        if !(tag::STORED..=tag::LAST).contains(&head[0]) {
            return None;
        }
        let found = OpAt {
            at,
            bytes: OP_HEAD_BYTES + length,
            op: read_op(head[0], &mut Reader::new(content), names),
        };
        at += found.bytes;
        Some(found)
    })
}

fn read_op(tag: u8, reader: &mut Reader<'_>, names: &mut Names) -> Result<Op, DecodeError> {
    let op = match tag {
        tag::STORED => Op::Stored(read_task(reader, names, true)?),
        tag::STORED_BODY_KNOWN => Op::StoredBodyKnown(read_task(reader, names, false)?),
        tag::ENDED => Op::Ended(read_ended(reader, names)?),
        tag::STATE => Op::State(state(reader)?),
        tag::RULE => Op::Rule(rule::read_rule(reader, names)?),
        _ => return Err(reader.error("a record of a later format")),
    };
    if reader.is_empty() { Ok(op) } else { Err(reader.error("bytes behind a record")) }
}

fn read_ended(reader: &mut Reader<'_>, names: &mut Names) -> Result<Ended, DecodeError> {
    let id = reader.varint()?;
    let seq = Seq(reader.varint()?);
    let ended_at = timestamp(reader)?;
    let queue = names.queue(reader)?;
    let key = key(reader)?;
    let outcome = match reader.u8()? {
        outcome::DONE => Outcome::Done(LeaseNo::NONE),
        outcome::DONE_UNDER => Outcome::Done(LeaseNo(reader.varint()?)),
        outcome::CANCELLED => Outcome::Cancelled,
        outcome::REVOKED => Outcome::Revoked(LeaseNo(reader.varint()?)),
        outcome::FORGOTTEN => Outcome::Forgotten,
        _ => return Err(reader.error("an outcome of a later format")),
    };
    Ok(Ended { id, queue, key, seq, at: ended_at, outcome })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tickwheel_engine::{
        Backoff, Body, Cadence, CatchUp, Dead, Death, Epoch, Extra, Failed, Failure, Group, Moment, Overlap,
        QueueName, QueueRecord, QueueSettings, Rate, Retention, Retry, Schedule, ScheduleName,
        ScheduleRecord, StoredLease, Tag, Tally, TargetRecord, Terms, Timestamp,
    };

    fn read_all(bytes: &[u8]) -> Result<Vec<Op>, DecodeError> {
        let mut ops = Vec::new();
        read_ops(bytes, &mut Names::new(), |op| {
            ops.push(op);
            Ok::<(), DecodeError>(())
        })?;
        Ok(ops)
    }

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(ms).expect("not negative")
    }

    fn full_task() -> Task {
        let mut task = crate::conformance::sample_task(7, 300, "shop/close", "Ü order:1", 1_506_902_400_250);
        task.priority = 0;
        task.attempts = 3;
        task.lease_fence = LeaseNo(1 << 33);
        task.revoked = Some(LeaseNo(5));
        task.lease = Some(StoredLease {
            no: LeaseNo(u64::MAX),
            until: Timestamp::MAX,
            left_ms: u64::MAX - 1,
            written_in: Epoch(u32::MAX),
        });
        task.extra = Some(Box::new(Extra {
            group: Some(Group::new("g").expect("a group")),
            ttr_ms: Some(0),
            origin: 9,
            expire_at: Some(Timestamp::EPOCH),
            retry: Some(Retry {
                max_attempts: Some(3),
                backoff: Some(Backoff {
                    doubles: true,
                    base_ms: 1_000,
                    max_ms: u64::MAX,
                    jitter_percent: 50,
                }),
            }),
            failures: vec![
                Failure { at: at(5), attempt: 1, how: Failed::Nacked, reason: Some("no money".into()) },
                Failure { at: at(6), attempt: 2, how: Failed::LeaseEnded, reason: None },
                Failure { at: at(7), attempt: 3, how: Failed::Revoked, reason: Some("".into()) },
                Failure { at: at(7), attempt: 4, how: Failed::Buried, reason: None },
                Failure { at: at(7), attempt: 5, how: Failed::Gone, reason: None },
                Failure { at: at(7), attempt: 6, how: Failed::Undeliverable, reason: Some("413".into()) },
            ],
            dead: Some(Dead { at: at(8), due_at: at(4), why: Death::Buried, keyless: true }),
            trace: Some("00-ab".into()),
            step: 1,
            acked: Some(LeaseNo(6)),
            tally: Tally {
                leases: 5,
                expiries: 1,
                nacks: 300,
                burials: 0,
                redrives: u32::MAX,
                delay_ms: Some(0),
            },
        }));
        task.body = Arc::new(Body {
            payload: (0..=255).collect(),
            content_type: "application/octet-stream".into(),
            tags: ["a", "b", "a"].map(|tag| Tag::new(tag).expect("a tag")).to_vec(),
            timeline: vec![
                Moment { at: at(1), payload: vec![1, 2], content_type: "a/b".into() },
                Moment { at: at(2), payload: Vec::new(), content_type: "".into() },
            ],
        });
        task
    }

    fn rules() -> Vec<RuleEffect> {
        let name = |name| RuleName::Queue(QueueName::new(name).expect("a queue name"));
        let settings = QueueSettings {
            max_in_flight: Some(1),
            max_in_flight_per_group: Some(u64::MAX),
            rate: Some(Rate { tasks: 5, per_ms: 1_000, burst: u64::MAX }),
            max_backlog: Some(0),
            default_lease_ms: Some(30_000),
            retry: Some(Retry { max_attempts: Some(3), backoff: None }),
            history: Some(Retention { keep_ms: 0, keys: u64::MAX }),
        };
        let target = |value: &[u8], retry| Some(Arc::new(TargetRecord { value: value.into(), retry }));
        let retry = Some(Retry { max_attempts: None, backoff: None });
        let full = QueueRecord {
            settings,
            paused_until: Some(Timestamp::MAX),
            draining: true,
            target: target(b"{}", retry),
        };
        let pushed = QueueRecord { target: target(&[0xff; 300], None), ..QueueRecord::default() };
        let held = QueueRecord { paused_until: Some(at(7)), ..QueueRecord::default() };
        let rule = |record| Some(Arc::new(Rule::Queue(record)));
        let mut rules = vec![
            (name("a"), rule(full)),
            (name("b/c"), None),
            (name("d"), rule(held)),
            (name("e"), rule(pushed)),
        ];
        for (index, record) in schedules().into_iter().enumerate() {
            let of = ScheduleName::new(&format!("Ü {index}")).expect("a name");
            let queue = QueueName::new("d").expect("a queue name");
            let record = record.map(|record| Arc::new(Rule::Schedule(record)));
            rules.push((RuleName::Schedule(queue, of), record));
        }
        rules
    }

    /// Returns a schedule with every member, two schedules with few members, and a schedule that was removed (`None`).
    fn schedules() -> [Option<ScheduleRecord>; 4] {
        let retry = Retry { max_attempts: Some(3), backoff: None };
        let full = Schedule {
            cadence: Cadence::Cron { text: "0 2 * * *".into(), zone: "America/New_York".into() },
            start: Some(at(0)),
            end: Some(Timestamp::MAX),
            count: Some(u64::MAX),
            jitter_ms: 5,
            catch_up: CatchUp::All,
            overlap: Overlap::Queue,
            body: Arc::new(Body { tags: vec![Tag::new("t").expect("a tag"); 2], ..Body::bytes(b"{}") }),
            terms: Terms {
                priority: 0,
                group: Some(Group::new("g").expect("a group")),
                retry: Some(retry),
                expire_after_ms: Some(6),
            },
        };
        let mut record = ScheduleRecord {
            schedule: Arc::new(full),
            version: Seq(7),
            anchor: at(1),
            decided: at(2),
            next: Some(at(3)),
            offset_s: Some(-12 * 3_600),
            next_offset_s: Some(-1),
            last: Some(at(0)),
            made: 4,
            skipped: 5,
            running: vec![0, 1],
            may_have_more: true,
            waiting: vec![at(8), at(9)],
        };
        let full = record.clone();
        (record.next, record.last, record.made, record.skipped) = (None, None, 0, 0);
        (record.offset_s, record.next_offset_s) = (Some(14 * 3_600), None);
        (record.running, record.may_have_more, record.waiting) = (Vec::new(), false, Vec::new());
        record.schedule = Arc::new(Schedule::new(Cadence::Every { ms: 1 }));
        let skips = Schedule {
            catch_up: CatchUp::Skip,
            overlap: Overlap::Skip,
            ..Schedule::new(Cadence::FixedDelay { ms: u64::MAX })
        };
        [Some(full), Some(record.clone()), Some(ScheduleRecord { schedule: Arc::new(skips), ..record }), None]
    }

    fn sample() -> (Vec<Op>, Vec<u8>) {
        let full = full_task();
        let mut plain = crate::conformance::sample_task(8, 301, "q", "k", 0);
        let retry = Some(Retry { max_attempts: None, backoff: None });
        plain.extra = Some(Box::new(Extra { retry, ..Extra::default() }));
        let mut known = full.clone();
        known.body = Arc::default();
        let ended = |outcome| Ended {
            id: 1,
            queue: full.queue.clone(),
            key: full.key.clone(),
            seq: Seq(302),
            at: Timestamp::MAX,
            outcome,
        };
        let batch = Batch {
            effects: vec![
                TaskEffect::Stored { task: Arc::new(full.clone()), body_known: false },
                TaskEffect::Stored { task: Arc::new(plain.clone()), body_known: false },
                TaskEffect::Stored { task: Arc::new(full.clone()), body_known: true },
                TaskEffect::Ended(ended(Outcome::Done(LeaseNo::NONE))),
                TaskEffect::Ended(ended(Outcome::Done(LeaseNo(1 << 40 | 77)))),
                TaskEffect::Ended(ended(Outcome::Cancelled)),
                TaskEffect::Ended(ended(Outcome::Revoked(LeaseNo(77)))),
            ],
            state: Some(EngineState::from_parts(u64::MAX, 0b1_0100)),
            rules: rules(),
            ..Batch::default()
        };
        let mut bytes = Vec::new();
        put_batch(&mut bytes, &batch);
        let ops = vec![
            Op::Stored(full.clone()),
            Op::Stored(plain),
            Op::StoredBodyKnown(known),
            Op::Ended(ended(Outcome::Done(LeaseNo::NONE))),
            Op::Ended(ended(Outcome::Done(LeaseNo(1 << 40 | 77)))),
            Op::Ended(ended(Outcome::Cancelled)),
            Op::Ended(ended(Outcome::Revoked(LeaseNo(77)))),
            Op::State(EngineState::from_parts(u64::MAX, 0b1_0100)),
        ];
        let ops = ops.into_iter().chain(rules().into_iter().map(Op::Rule)).collect();
        (ops, bytes)
    }

    #[test]
    fn what_was_written_is_read() {
        let (ops, bytes) = sample();
        let mut names = Names::new();
        let split: Vec<Op> = split_ops(&bytes, &mut names).map(|found| found.op.expect("a record")).collect();
        assert_eq!(split, ops, "a salvage reads them one by one");
        assert_eq!(read_all(&bytes), Ok(ops));
    }

    /// Files have the numbers, so each death keeps its own for ever.
    #[test]
    fn each_death_has_its_number() {
        let deaths = [
            Death::MaxAttempts,
            Death::Expired,
            Death::Buried,
            Death::Refused,
            Death::Template,
            Death::TooLarge,
        ];
        for (number, why) in deaths.into_iter().enumerate() {
            let mut task = crate::conformance::sample_task(7, 300, "q", "k", 0);
            task.body = Arc::default();
            task.extra_mut().dead = Some(Dead { at: at(8), due_at: at(4), why, keyless: true });
            let mut bytes = Vec::new();
            put_stored(&mut bytes, &task, true);
            assert!(
                bytes.ends_with(&[number as u8 * 2 + 1, 18, 0]),
                "{why:?}: an empty payload comes behind it"
            );
            assert_eq!(read_all(&bytes), Ok(vec![Op::Stored(task)]));
        }
    }

    #[test]
    fn a_plain_task_costs_few_bytes_beside_its_texts() {
        let task = crate::conformance::sample_task(1_000_000, 1_000_000, "q", "k", 1_506_902_400_250);
        let mut bytes = Vec::new();
        put_stored(&mut bytes, &task, true);
        let texts = 2 + task.body.payload.len() + task.body.content_type.len();
        assert_eq!(bytes.len() - texts, 30);
    }

    #[test]
    fn any_bytes_end_in_a_value_or_an_error() {
        let (ops, bytes) = sample();
        for cut in 0..bytes.len() {
            if let Ok(read) = read_all(&bytes[..cut]) {
                assert!(ops.starts_with(&read) && read.len() < ops.len(), "cut at {cut}: {read:?}");
            }
        }
        for at in 0..bytes.len() {
            for flip in [1, 0x40, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                // The result may be a value or an error. Decoding need not notice damage, because the checksum around the records does.
                drop(read_all(&damaged));
            }
        }
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let mut noise = Vec::new();
            for _ in 0..state % 40 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                noise.push(if state >> 61 == 0 { (state >> 33) as u8 } else { (state >> 33) as u8 % 20 });
            }
            drop(read_all(&noise));
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        }
    }
}
