//! The record of a schedule.

use std::sync::Arc;

use tickwheel_engine::{
    Body, Cadence, CatchUp, Overlap, PRIORITY_DEFAULT, Schedule, ScheduleRecord, Seq, Terms, Timestamp,
};

use super::names::Names;
use super::task::{group, put_retry, put_timestamp, retry, timestamp, word};
use super::wire::{DecodeError, Reader, put_bytes, put_varint};

/// The tags of the members that a record may have, in the order in which they stand. A member without its tag is not set, or has the value
/// that most schedules have.
mod tag {
    pub(super) const START: u8 = 1;
    pub(super) const END: u8 = 2;
    pub(super) const COUNT: u8 = 3;
    pub(super) const JITTER_MS: u8 = 4;
    pub(super) const CATCH_UP: u8 = 5;
    pub(super) const OVERLAP: u8 = 6;
    pub(super) const PRIORITY: u8 = 7;
    pub(super) const GROUP: u8 = 8;
    pub(super) const RETRY: u8 = 9;
    pub(super) const EXPIRE_AFTER_MS: u8 = 10;
    pub(super) const CONTENT_TYPE: u8 = 11;
    pub(super) const TAG: u8 = 12;
    pub(super) const PAYLOAD: u8 = 13;
    pub(super) const NEXT: u8 = 16;
    pub(super) const LAST: u8 = 17;
    pub(super) const MADE: u8 = 18;
    pub(super) const SKIPPED: u8 = 19;
    pub(super) const RUNNING: u8 = 20;
    pub(super) const WAITING: u8 = 21;
}

mod cadence {
    pub(super) const CRON: u8 = 1;
    pub(super) const EVERY: u8 = 2;
    pub(super) const FIXED_DELAY: u8 = 3;
}

pub(super) fn put_schedule(out: &mut Vec<u8>, record: &ScheduleRecord) {
    let ScheduleRecord { schedule, version, anchor, decided, next, last, made, skipped, running, waiting } =
        record;
    let Schedule { cadence, start, end, count, jitter_ms, catch_up, overlap, body, terms } = &**schedule;
    let Terms { priority, group, retry, expire_after_ms } = terms;
    let Body { payload, content_type, tags, timeline: _ } = &**body;
    match cadence {
        Cadence::Cron { text, zone } => {
            out.push(cadence::CRON);
            put_bytes(out, text.as_bytes());
            put_bytes(out, zone.as_bytes());
        }
        Cadence::Every { ms } => {
            out.push(cadence::EVERY);
            put_varint(out, *ms);
        }
        Cadence::FixedDelay { ms } => {
            out.push(cadence::FIXED_DELAY);
            put_varint(out, *ms);
        }
    }
    put_varint(out, version.0);
    put_timestamp(out, *anchor);
    put_timestamp(out, *decided);
    instant(out, tag::START, *start);
    instant(out, tag::END, *end);
    number(out, tag::COUNT, *count);
    number(out, tag::JITTER_MS, Some(*jitter_ms).filter(|&ms| ms > 0));
    let catch_up = match catch_up {
        CatchUp::Once => None,
        CatchUp::Skip => Some(1),
        CatchUp::All => Some(2),
    };
    number(out, tag::CATCH_UP, catch_up);
    let overlap = match overlap {
        Overlap::Allow => None,
        Overlap::Skip => Some(1),
        Overlap::Queue => Some(2),
    };
    number(out, tag::OVERLAP, overlap);
    number(out, tag::PRIORITY, Some(u64::from(*priority)).filter(|_| *priority != PRIORITY_DEFAULT));
    if let Some(group) = group {
        out.push(tag::GROUP);
        put_bytes(out, group.as_str().as_bytes());
    }
    if let Some(retry) = retry {
        out.push(tag::RETRY);
        put_retry(out, *retry);
    }
    number(out, tag::EXPIRE_AFTER_MS, *expire_after_ms);
    if !content_type.is_empty() {
        out.push(tag::CONTENT_TYPE);
        put_bytes(out, content_type.as_bytes());
    }
    for tag in tags {
        out.push(tag::TAG);
        put_bytes(out, tag.as_str().as_bytes());
    }
    if !payload.is_empty() {
        out.push(tag::PAYLOAD);
        put_bytes(out, payload);
    }
    instant(out, tag::NEXT, *next);
    instant(out, tag::LAST, *last);
    number(out, tag::MADE, Some(*made).filter(|&made| made > 0));
    number(out, tag::SKIPPED, Some(*skipped).filter(|&skipped| skipped > 0));
    number(out, tag::RUNNING, *running);
    waiting.iter().for_each(|&at| instant(out, tag::WAITING, Some(at)));
}

fn number(out: &mut Vec<u8>, tag: u8, value: Option<u64>) {
    if let Some(value) = value {
        out.push(tag);
        put_varint(out, value);
    }
}

fn instant(out: &mut Vec<u8>, tag: u8, value: Option<Timestamp>) {
    if let Some(value) = value {
        out.push(tag);
        put_timestamp(out, value);
    }
}

/// Reads to the end of the record.
pub(super) fn read_schedule(
    reader: &mut Reader<'_>,
    names: &mut Names,
) -> Result<ScheduleRecord, DecodeError> {
    let cadence = match reader.u8()? {
        cadence::CRON => Cadence::Cron { text: reader.str()?.into(), zone: reader.str()?.into() },
        cadence::EVERY => Cadence::Every { ms: milliseconds(reader)? },
        cadence::FIXED_DELAY => Cadence::FixedDelay { ms: milliseconds(reader)? },
        _ => return Err(reader.error("a cadence of a later format")),
    };
    let version = Seq(reader.varint()?);
    let (anchor, decided) = (timestamp(reader)?, timestamp(reader)?);
    let mut schedule = Schedule::new(cadence);
    let mut body = Body::default();
    let mut record = ScheduleRecord::new(Arc::new(schedule.clone()), version, anchor, decided);
    let mut last = 0;
    while !reader.is_empty() {
        let tag = reader.u8()?;
        let repeats = matches!(tag, tag::TAG | tag::WAITING);
        if tag < last || (tag == last && !repeats) {
            return Err(reader.error("members out of order"));
        }
        last = tag;
        let terms = &mut schedule.terms;
        match tag {
            tag::START => schedule.start = Some(timestamp(reader)?),
            tag::END => schedule.end = Some(timestamp(reader)?),
            tag::COUNT => schedule.count = Some(reader.varint()?),
            tag::JITTER_MS => schedule.jitter_ms = reader.varint()?,
            tag::CATCH_UP => {
                schedule.catch_up = match reader.varint()? {
                    1 => CatchUp::Skip,
                    2 => CatchUp::All,
                    _ => return Err(reader.error("a way to catch up of a later format")),
                };
            }
            tag::OVERLAP => {
                schedule.overlap = match reader.varint()? {
                    1 => Overlap::Skip,
                    2 => Overlap::Queue,
                    _ => return Err(reader.error("an overlap of a later format")),
                };
            }
            tag::PRIORITY => terms.priority = reader.number()?,
            tag::GROUP => terms.group = Some(group(reader)?),
            tag::RETRY => terms.retry = Some(retry(reader)?),
            tag::EXPIRE_AFTER_MS => terms.expire_after_ms = Some(reader.varint()?),
            tag::CONTENT_TYPE => body.content_type = names.content_type(reader.str()?),
            tag::TAG => body.tags.push(word(reader)?),
            tag::PAYLOAD => body.payload = reader.bytes()?.to_vec(),
            tag::NEXT => record.next = Some(timestamp(reader)?),
            tag::LAST => record.last = Some(timestamp(reader)?),
            tag::MADE => record.made = reader.varint()?,
            tag::SKIPPED => record.skipped = reader.varint()?,
            tag::RUNNING => record.running = Some(reader.varint()?),
            tag::WAITING => record.waiting.push(timestamp(reader)?),
            _ => return Err(reader.error("a member of a later format")),
        }
    }
    schedule.body = Arc::new(body);
    record.schedule = Arc::new(schedule);
    Ok(record)
}

/// A duration (ms) that has to be greater than 0.
fn milliseconds(reader: &mut Reader<'_>) -> Result<u64, DecodeError> {
    match reader.varint()? {
        0 => Err(reader.error("a cadence without time between")),
        ms => Ok(ms),
    }
}
