//! The record of a task.

use std::sync::Arc;

use tickwheel_engine::{
    Backoff, Body, Dead, Death, DueKey, Epoch, Extra, Failed, Failure, Group, Key, LeaseNo, Moment,
    PRIORITY_DEFAULT, Retry, Seq, StoredLease, Tag, Tally, Task, Timestamp,
};

use super::names::Names;
use super::wire::{DecodeError, Reader, put_bytes, put_member, put_text, put_varint};

/// The tags of the members that a record may have, in the order in which they stand. A member that is absent has the value that most tasks
/// have, so a plain task needs no byte for it. The numbers never change.
mod tag {
    pub(super) const PRIORITY: u8 = 1;
    pub(super) const ATTEMPTS: u8 = 2;
    pub(super) const LEASE_FENCE: u8 = 3;
    pub(super) const REVOKED: u8 = 4;
    pub(super) const LEASE: u8 = 5;
    pub(super) const ORIGIN: u8 = 6;
    pub(super) const TTR_MS: u8 = 7;
    pub(super) const EXPIRE_AT: u8 = 8;
    pub(super) const GROUP: u8 = 9;
    pub(super) const TRACE: u8 = 10;
    pub(super) const RETRY: u8 = 11;
    pub(super) const FAILURE: u8 = 12;
    pub(super) const DEAD: u8 = 13;
    pub(super) const STEP: u8 = 14;
    pub(super) const TALLY: u8 = 15;
    pub(super) const CONTENT_TYPE: u8 = 16;
    pub(super) const TAG: u8 = 17;
    pub(super) const PAYLOAD: u8 = 18;
    pub(super) const MOMENT: u8 = 19;
    pub(super) const ACKED: u8 = 20;
}

pub(super) fn put_timestamp(out: &mut Vec<u8>, at: Timestamp) {
    // The bits do not change, because a timestamp is never negative.
    put_varint(out, at.as_tick());
}

/// Reads an instant.
pub(crate) fn timestamp(reader: &mut Reader<'_>) -> Result<Timestamp, DecodeError> {
    let ms = reader.number::<i64>()?;
    Timestamp::from_ms(ms).ok_or_else(|| reader.error("an instant before 1970"))
}

pub(super) fn key(reader: &mut Reader<'_>) -> Result<Key, DecodeError> {
    let text = reader.str()?;
    Key::new(text).map_err(|_| reader.error("no key"))
}

pub(super) fn group(reader: &mut Reader<'_>) -> Result<Group, DecodeError> {
    let text = reader.str()?;
    Group::new(text).map_err(|_| reader.error("no group"))
}

pub(super) fn word(reader: &mut Reader<'_>) -> Result<Tag, DecodeError> {
    let text = reader.str()?;
    Tag::new(text).map_err(|_| reader.error("no tag"))
}

/// Appends the record, with or without its body.
pub(super) fn put_task(out: &mut Vec<u8>, task: &Task, with_body: bool) {
    let Task {
        id,
        queue,
        key,
        seq,
        put_seq,
        version,
        due_at,
        put_at,
        priority,
        attempts,
        lease_fence,
        revoked,
        lease,
        body,
        extra,
    } = task;
    for number in [*id, seq.0, put_seq.0, version.0] {
        put_varint(out, number);
    }
    put_timestamp(out, *due_at);
    put_timestamp(out, *put_at);
    put_text(out, queue.as_str());
    put_text(out, key.as_str());
    let mut number = |tag: u8, value: Option<u64>| put_member(out, tag, value, put_varint);
    number(tag::PRIORITY, (*priority != PRIORITY_DEFAULT).then_some(u64::from(*priority)));
    number(tag::ATTEMPTS, (*attempts > 0).then_some(u64::from(*attempts)));
    number(tag::LEASE_FENCE, (lease_fence.0 > 0).then_some(lease_fence.0));
    number(tag::REVOKED, revoked.map(|revoked| revoked.0));
    put_member(out, tag::LEASE, lease.as_ref(), |out, StoredLease { no, until, written_in }| {
        put_varint(out, no.0);
        put_timestamp(out, *until);
        put_varint(out, u64::from(written_in.0));
    });
    if let Some(extra) = extra {
        put_extra(out, extra);
    }
    if with_body {
        put_body(out, body);
    }
    put_member(out, tag::ACKED, task.acked().map(|acked| acked.0), put_varint);
}

fn put_extra(out: &mut Vec<u8>, extra: &Extra) {
    let Extra { group, ttr_ms, origin, expire_at, trace, retry, failures, dead, step, acked: _, tally } =
        extra;
    // Also if it is 0: it says that there are extra members at all.
    out.extend_from_slice(&[tag::ORIGIN, *origin]);
    put_member(out, tag::TTR_MS, *ttr_ms, put_varint);
    put_member(out, tag::EXPIRE_AT, *expire_at, put_timestamp);
    put_member(out, tag::GROUP, group.as_ref().map(Group::as_str), put_text);
    put_member(out, tag::TRACE, trace.as_deref(), put_text);
    put_member(out, tag::RETRY, *retry, put_retry);
    for Failure { at, attempt, how, reason } in failures {
        out.push(tag::FAILURE);
        put_timestamp(out, *at);
        put_varint(out, u64::from(*attempt));
        let how = match how {
            Failed::Nacked => 0,
            Failed::LeaseEnded => 1,
            Failed::Revoked => 2,
            Failed::Buried => 3,
            Failed::Gone => 4,
        };
        out.push(how << 1 | u8::from(reason.is_some()));
        if let Some(reason) = reason {
            put_bytes(out, reason.as_bytes());
        }
    }
    if let Some(Dead { at, due_at, why, keyless }) = dead {
        out.push(tag::DEAD);
        put_timestamp(out, *at);
        put_timestamp(out, *due_at);
        let why = match why {
            Death::MaxAttempts => 0,
            Death::Expired => 1,
            Death::Buried => 2,
        };
        out.push(why << 1 | u8::from(*keyless));
    }
    put_member(out, tag::STEP, (*step > 0).then_some(u64::from(*step)), put_varint);
    put_member(out, tag::TALLY, (*tally != Tally::default()).then_some(*tally), put_tally);
}

/// The stored delay is the delay plus one, and 0 if there is none.
fn put_tally(out: &mut Vec<u8>, tally: Tally) {
    let Tally { leases, expiries, nacks, burials, redrives, delay_ms } = tally;
    for count in [leases, expiries, nacks, burials, redrives] {
        put_varint(out, u64::from(count));
    }
    put_varint(out, delay_ms.map_or(0, |ms| ms.saturating_add(1)));
}

fn tally(reader: &mut Reader<'_>) -> Result<Tally, DecodeError> {
    Ok(Tally {
        leases: reader.number()?,
        expiries: reader.number()?,
        nacks: reader.number()?,
        burials: reader.number()?,
        redrives: reader.number()?,
        delay_ms: reader.varint()?.checked_sub(1),
    })
}

/// 0 means no limit, because no task may fail 0 times.
pub(super) fn put_retry(out: &mut Vec<u8>, retry: Retry) {
    let Retry { max_attempts, backoff } = retry;
    put_varint(out, u64::from(max_attempts.unwrap_or(0)));
    let Some(Backoff { doubles, base_ms, max_ms, jitter_percent }) = backoff else { return out.push(0) };
    out.push(if doubles { 2 } else { 1 });
    put_varint(out, base_ms);
    put_varint(out, max_ms);
    out.push(jitter_percent);
}

pub(super) fn retry(reader: &mut Reader<'_>) -> Result<Retry, DecodeError> {
    let max_attempts = Some(reader.number::<u32>()?).filter(|&max| max > 0);
    let doubles = match reader.u8()? {
        0 => return Ok(Retry { max_attempts, backoff: None }),
        1 => false,
        2 => true,
        _ => return Err(reader.error("a back-off of a later format")),
    };
    let (base_ms, max_ms) = (reader.varint()?, reader.varint()?);
    let backoff = Backoff { doubles, base_ms, max_ms, jitter_percent: reader.u8()? };
    Ok(Retry { max_attempts, backoff: Some(backoff) })
}

fn failure(reader: &mut Reader<'_>) -> Result<Failure, DecodeError> {
    let at = timestamp(reader)?;
    let attempt = reader.number()?;
    let (how, has_reason) = flagged(reader)?;
    let how = match how {
        0 => Failed::Nacked,
        1 => Failed::LeaseEnded,
        2 => Failed::Revoked,
        3 => Failed::Buried,
        4 => Failed::Gone,
        _ => return Err(reader.error("a failure of a later format")),
    };
    let reason = if has_reason { Some(reader.str()?.into()) } else { None };
    Ok(Failure { at, attempt, how, reason })
}

fn dead(reader: &mut Reader<'_>) -> Result<Dead, DecodeError> {
    let (at, due_at) = (timestamp(reader)?, timestamp(reader)?);
    let (why, keyless) = flagged(reader)?;
    let why = match why {
        0 => Death::MaxAttempts,
        1 => Death::Expired,
        2 => Death::Buried,
        _ => return Err(reader.error("a death of a later format")),
    };
    Ok(Dead { at, due_at, why, keyless })
}

/// Reads a byte with a lowest bit that has its own meaning.
fn flagged(reader: &mut Reader<'_>) -> Result<(u8, bool), DecodeError> {
    let byte = reader.u8()?;
    Ok((byte >> 1, byte & 1 == 1))
}

fn put_body(out: &mut Vec<u8>, body: &Body) {
    let Body { payload, content_type, tags, timeline } = body;
    put_member(out, tag::CONTENT_TYPE, Some(&**content_type).filter(|text| !text.is_empty()), put_text);
    tags.iter().for_each(|tag| put_member(out, tag::TAG, Some(tag.as_str()), put_text));
    out.push(tag::PAYLOAD);
    put_bytes(out, payload);
    for Moment { at, payload, content_type } in timeline {
        out.push(tag::MOMENT);
        put_timestamp(out, *at);
        put_bytes(out, content_type.as_bytes());
        put_bytes(out, payload);
    }
}

/// The beginning of a record: enough to know whether the task is wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TaskHead<'a> {
    pub(crate) id: u64,
    pub(crate) place: DueKey,
    pub(crate) queue: &'a str,
}

pub(super) fn read_head<'a>(reader: &mut Reader<'a>) -> Result<TaskHead<'a>, DecodeError> {
    let id = reader.varint()?;
    let [_seq, put_seq, _version] = [reader.varint()?, reader.varint()?, reader.varint()?];
    let due_at = timestamp(reader)?;
    let _put_at = timestamp(reader)?;
    Ok(TaskHead { id, place: DueKey { due_at, put_seq: Seq(put_seq) }, queue: reader.str()? })
}

/// Reads a record to its end. A record without a body gets an empty one.
pub(super) fn read_task(
    reader: &mut Reader<'_>,
    names: &mut Names,
    with_body: bool,
) -> Result<Task, DecodeError> {
    let id = reader.varint()?;
    let [seq, put_seq, version] = [Seq(reader.varint()?), Seq(reader.varint()?), Seq(reader.varint()?)];
    let due_at = timestamp(reader)?;
    let put_at = timestamp(reader)?;
    let queue = names.queue(reader)?;
    let mut task = Task {
        id,
        queue,
        key: key(reader)?,
        seq,
        put_seq,
        version,
        due_at,
        put_at,
        priority: PRIORITY_DEFAULT,
        attempts: 0,
        lease_fence: LeaseNo(0),
        revoked: None,
        lease: None,
        body: names.no_body(),
        extra: None,
    };
    let mut body = Body::default();
    let mut has_payload = false;
    let mut last = 0;
    while let Some(tag) = reader.tag(&mut last, &[tag::TAG, tag::FAILURE, tag::MOMENT])? {
        match tag {
            tag::PRIORITY => task.priority = reader.number()?,
            tag::ATTEMPTS => task.attempts = reader.number()?,
            tag::LEASE_FENCE => task.lease_fence = LeaseNo(reader.varint()?),
            tag::REVOKED => task.revoked = Some(LeaseNo(reader.varint()?)),
            tag::LEASE => {
                let no = LeaseNo(reader.varint()?);
                let until = timestamp(reader)?;
                task.lease = Some(StoredLease { no, until, written_in: Epoch(reader.number()?) });
            }
            tag::ORIGIN => extra(&mut task).origin = reader.u8()?,
            tag::TTR_MS => extra(&mut task).ttr_ms = Some(reader.varint()?),
            tag::EXPIRE_AT => extra(&mut task).expire_at = Some(timestamp(reader)?),
            tag::GROUP => extra(&mut task).group = Some(group(reader)?),
            tag::TRACE => extra(&mut task).trace = Some(reader.str()?.into()),
            tag::RETRY => extra(&mut task).retry = Some(retry(reader)?),
            tag::FAILURE => {
                let failure = failure(reader)?;
                extra(&mut task).failures.push(failure);
            }
            tag::DEAD => extra(&mut task).dead = Some(dead(reader)?),
            tag::STEP => extra(&mut task).step = reader.number()?,
            tag::ACKED => extra(&mut task).acked = Some(LeaseNo(reader.varint()?)),
            tag::TALLY => extra(&mut task).tally = tally(reader)?,
            tag::CONTENT_TYPE if with_body => body.content_type = names.content_type(reader.str()?),
            tag::TAG if with_body => body.tags.push(word(reader)?),
            tag::PAYLOAD if with_body => {
                body.payload = reader.bytes()?.to_vec();
                has_payload = true;
            }
            tag::MOMENT if with_body => {
                let at = timestamp(reader)?;
                let content_type = names.content_type(reader.str()?);
                body.timeline.push(Moment { at, payload: reader.bytes()?.to_vec(), content_type });
            }
            _ => return Err(reader.error("a member of a later format")),
        }
    }
    if with_body {
        if !has_payload {
            return Err(reader.error("no payload"));
        }
        task.body = Arc::new(body);
    }
    Ok(task)
}

fn extra(task: &mut Task) -> &mut Extra {
    task.extra.get_or_insert_default()
}
