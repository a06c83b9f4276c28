//! The terms of tasks and schedules, and the extra members of tasks.
//!
//! A new member of [`Terms`] or [`Extra`] gets its tags in this file, and is written and read in this file.

use tickwheel_engine::{
    Backoff, Dead, Death, Extra, Failed, Failure, Group, LeaseNo, PRIORITY_DEFAULT, Retry, Tally, Terms,
};

use super::wire::{
    DecodeError, Reader, put_bytes, put_member, put_text, put_timestamp, put_varint, timestamp,
};

// The tags of the extra members of a task, in the order of the members in the task's record. The tags never change, and differ from the
// tags in `task.rs`.
const ORIGIN: u8 = 6;
const TTR_MS: u8 = 7;
const EXPIRE_AT: u8 = 8;
const GROUP: u8 = 9;
const TRACE: u8 = 10;
const RETRY: u8 = 11;
/// The tag of a failure. A record has this tag once for each failure.
pub(super) const FAILURE: u8 = 12;
const DEAD: u8 = 13;
const STEP: u8 = 14;
const TALLY: u8 = 15;
// Members that are added to the format later come behind the body of the task.
const ACKED: u8 = 20;

/// The tags of the terms of a schedule, in the order of the terms in the schedule's record. The tags never change, and differ from the tags
/// in `schedule.rs`.
mod of_schedule {
    pub(super) const PRIORITY: u8 = 7;
    pub(super) const GROUP: u8 = 8;
    pub(super) const RETRY: u8 = 9;
    pub(super) const EXPIRE_AFTER_MS: u8 = 10;
}

/// Appends the terms to the record of a schedule.
pub(super) fn put_terms(out: &mut Vec<u8>, terms: &Terms) {
    let Terms { priority, group, retry, expire_after_ms } = terms;
    let priority = (*priority != PRIORITY_DEFAULT).then_some(u64::from(*priority));
    put_member(out, of_schedule::PRIORITY, priority, put_varint);
    put_member(out, of_schedule::GROUP, group.as_ref().map(Group::as_str), put_text);
    put_member(out, of_schedule::RETRY, *retry, put_retry);
    put_member(out, of_schedule::EXPIRE_AFTER_MS, *expire_after_ms, put_varint);
}

/// Reads the value of a member of a schedule's record, if the tag is one of the terms. Returns whether the tag is one.
pub(super) fn read_terms(tag: u8, reader: &mut Reader<'_>, terms: &mut Terms) -> Result<bool, DecodeError> {
    match tag {
        of_schedule::PRIORITY => terms.priority = reader.number()?,
        of_schedule::GROUP => terms.group = Some(group(reader)?),
        of_schedule::RETRY => terms.retry = Some(retry(reader)?),
        of_schedule::EXPIRE_AFTER_MS => terms.expire_after_ms = Some(reader.varint()?),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Appends to the record of a task the extra members that come before the body.
pub(super) fn put_extra(out: &mut Vec<u8>, extra: &Extra) {
    let Extra { group, ttr_ms, origin, expire_at, trace, retry, failures, dead, step, acked: _, tally } =
        extra;
    // The origin is written even if it is 0, because its tag says that the task has extra members.
    out.extend_from_slice(&[ORIGIN, *origin]);
    put_member(out, TTR_MS, *ttr_ms, put_varint);
    put_member(out, EXPIRE_AT, *expire_at, put_timestamp);
    put_member(out, GROUP, group.as_ref().map(Group::as_str), put_text);
    put_member(out, TRACE, trace.as_deref(), put_text);
    put_member(out, RETRY, *retry, put_retry);
    for Failure { at, attempt, how, reason } in failures {
        out.push(FAILURE);
        put_timestamp(out, *at);
        put_varint(out, u64::from(*attempt));
        let how = match how {
            Failed::Nacked => 0,
            Failed::LeaseEnded => 1,
            Failed::Revoked => 2,
            Failed::Buried => 3,
            Failed::Gone => 4,
            Failed::Undeliverable => 5,
        };
        out.push(how << 1 | u8::from(reason.is_some()));
        if let Some(reason) = reason {
            put_bytes(out, reason.as_bytes());
        }
    }
    if let Some(Dead { at, due_at, why, keyless }) = dead {
        out.push(DEAD);
        put_timestamp(out, *at);
        put_timestamp(out, *due_at);
        let why = match why {
            Death::MaxAttempts => 0,
            Death::Expired => 1,
            Death::Buried => 2,
            Death::Refused => 3,
            Death::Template => 4,
            Death::TooLarge => 5,
        };
        out.push(why << 1 | u8::from(*keyless));
    }
    put_member(out, STEP, (*step > 0).then_some(u64::from(*step)), put_varint);
    put_member(out, TALLY, (*tally != Tally::default()).then_some(*tally), put_tally);
}

/// Appends to the record of a task the extra members that come behind the body.
pub(super) fn put_extra_behind_body(out: &mut Vec<u8>, extra: &Extra) {
    put_member(out, ACKED, extra.acked.map(|acked| acked.0), put_varint);
}

/// Reads the value of a member of a task's record, if the tag is one of the extra members. Returns whether the tag is one.
pub(super) fn read_extra(tag: u8, reader: &mut Reader<'_>, extra: &mut Extra) -> Result<bool, DecodeError> {
    match tag {
        ORIGIN => extra.origin = reader.u8()?,
        TTR_MS => extra.ttr_ms = Some(reader.varint()?),
        EXPIRE_AT => extra.expire_at = Some(timestamp(reader)?),
        GROUP => extra.group = Some(group(reader)?),
        TRACE => extra.trace = Some(reader.str()?.into()),
        RETRY => extra.retry = Some(retry(reader)?),
        FAILURE => extra.failures.push(failure(reader)?),
        DEAD => extra.dead = Some(dead(reader)?),
        STEP => extra.step = reader.number()?,
        TALLY => extra.tally = tally(reader)?,
        ACKED => extra.acked = Some(LeaseNo(reader.varint()?)),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Appends a tally. The delay (ms) is stored plus one, and 0 means that there is none.
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

/// Appends a retry policy. A stored limit of 0 attempts means no limit, because a real limit is at least 1.
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
        5 => Failed::Undeliverable,
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
        3 => Death::Refused,
        4 => Death::Template,
        5 => Death::TooLarge,
        _ => return Err(reader.error("a death of a later format")),
    };
    Ok(Dead { at, due_at, why, keyless })
}

/// Reads a byte whose lowest bit is a flag. Returns the other seven bits, and the flag.
fn flagged(reader: &mut Reader<'_>) -> Result<(u8, bool), DecodeError> {
    let byte = reader.u8()?;
    Ok((byte >> 1, byte & 1 == 1))
}

fn group(reader: &mut Reader<'_>) -> Result<Group, DecodeError> {
    let text = reader.str()?;
    Group::new(text).map_err(|_| reader.error("no group"))
}
