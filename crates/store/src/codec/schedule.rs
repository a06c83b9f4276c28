//! The record of a schedule: how it is written and read.

use std::sync::Arc;

use tickwheel_engine::{Body, Cadence, CatchUp, Overlap, Schedule, ScheduleRecord, Seq};

use super::extra::{put_terms, read_terms};
use super::names::Names;
use super::task::word;
use super::wire::{
    DecodeError, Reader, put_bytes, put_member, put_text, put_timestamp, put_varint, timestamp,
};

/// The tags of the members that a record may have, in the order in which the record has them. A member without its tag is not set, or has
/// the value that most schedules have. The numbers between 6 and 11 are in `extra.rs`.
mod tag {
    pub(super) const START: u8 = 1;
    pub(super) const END: u8 = 2;
    pub(super) const COUNT: u8 = 3;
    pub(super) const JITTER_MS: u8 = 4;
    pub(super) const CATCH_UP: u8 = 5;
    pub(super) const OVERLAP: u8 = 6;
    pub(super) const CONTENT_TYPE: u8 = 11;
    pub(super) const TAG: u8 = 12;
    pub(super) const PAYLOAD: u8 = 13;
    pub(super) const NEXT: u8 = 16;
    pub(super) const LAST: u8 = 17;
    pub(super) const MADE: u8 = 18;
    pub(super) const SKIPPED: u8 = 19;
    pub(super) const RUNNING: u8 = 20;
    pub(super) const WAITING: u8 = 21;
    pub(super) const MAY_HAVE_MORE: u8 = 22;
    pub(super) const OFFSET_S: u8 = 23;
    pub(super) const NEXT_OFFSET_S: u8 = 24;
}

mod cadence {
    pub(super) const CRON: u8 = 1;
    pub(super) const EVERY: u8 = 2;
    pub(super) const FIXED_DELAY: u8 = 3;
}

pub(super) fn put_schedule(out: &mut Vec<u8>, record: &ScheduleRecord) {
    let ScheduleRecord { schedule, version, anchor, decided, next, last, made, skipped, .. } = record;
    let ScheduleRecord { running, may_have_more, waiting, offset_s, next_offset_s, .. } = record;
    let Schedule { cadence, start, end, count, jitter_ms, catch_up, overlap, body, terms } = &**schedule;
    let Body { payload, content_type, tags, timeline: _ } = &**body;
    match cadence {
        Cadence::Cron { text, zone } => {
            out.push(cadence::CRON);
            put_text(out, text);
            put_text(out, zone);
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
    put_member(out, tag::START, *start, put_timestamp);
    put_member(out, tag::END, *end, put_timestamp);
    put_member(out, tag::COUNT, *count, put_varint);
    put_member(out, tag::JITTER_MS, Some(*jitter_ms).filter(|&ms| ms > 0), put_varint);
    let catch_up = match catch_up {
        CatchUp::Once => None,
        CatchUp::Skip => Some(1),
        CatchUp::All => Some(2),
    };
    put_member(out, tag::CATCH_UP, catch_up, put_varint);
    let overlap = match overlap {
        Overlap::Allow => None,
        Overlap::Skip => Some(1),
        Overlap::Queue => Some(2),
    };
    put_member(out, tag::OVERLAP, overlap, put_varint);
    put_terms(out, terms);
    put_member(out, tag::CONTENT_TYPE, Some(&**content_type).filter(|text| !text.is_empty()), put_text);
    tags.iter().for_each(|tag| put_member(out, tag::TAG, Some(tag.as_str()), put_text));
    put_member(out, tag::PAYLOAD, Some(&**payload).filter(|bytes| !bytes.is_empty()), put_bytes);
    put_member(out, tag::NEXT, *next, put_timestamp);
    put_member(out, tag::LAST, *last, put_timestamp);
    put_member(out, tag::MADE, Some(*made).filter(|&made| made > 0), put_varint);
    put_member(out, tag::SKIPPED, Some(*skipped).filter(|&skipped| skipped > 0), put_varint);
    running.iter().for_each(|&id| put_member(out, tag::RUNNING, Some(id), put_varint));
    waiting.iter().for_each(|&at| put_member(out, tag::WAITING, Some(at), put_timestamp));
    put_member(out, tag::MAY_HAVE_MORE, Some(()).filter(|()| *may_have_more), |_, ()| {});
    put_member(out, tag::OFFSET_S, *offset_s, put_offset);
    put_member(out, tag::NEXT_OFFSET_S, *next_offset_s, put_offset);
}

/// Reads a schedule. The record has to end with the end of `reader`.
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
    while let Some(tag) = reader.tag(&mut last, &[tag::TAG, tag::RUNNING, tag::WAITING])? {
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
            tag::CONTENT_TYPE => body.content_type = names.content_type(reader.str()?),
            tag::TAG => body.tags.push(word(reader)?),
            tag::PAYLOAD => body.payload = reader.bytes()?.to_vec(),
            tag::NEXT => record.next = Some(timestamp(reader)?),
            tag::LAST => record.last = Some(timestamp(reader)?),
            tag::MADE => record.made = reader.varint()?,
            tag::SKIPPED => record.skipped = reader.varint()?,
            tag::RUNNING => record.running.push(reader.varint()?),
            tag::WAITING => record.waiting.push(timestamp(reader)?),
            tag::MAY_HAVE_MORE => record.may_have_more = true,
            tag::OFFSET_S => record.offset_s = Some(offset(reader)?),
            tag::NEXT_OFFSET_S => record.next_offset_s = Some(offset(reader)?),
            _ if read_terms(tag, reader, &mut schedule.terms)? => {}
            _ => return Err(reader.error("a member of a later format")),
        }
    }
    schedule.body = Arc::new(body);
    record.schedule = Arc::new(schedule);
    Ok(record)
}

/// Writes an offset from UTC (s) as a number without a sign, so that small offsets of either sign are short: 0, -1, 1, -2 are 0, 1, 2, 3.
fn put_offset(out: &mut Vec<u8>, offset_s: i32) {
    put_varint(out, u64::from(((offset_s << 1) ^ (offset_s >> 31)).cast_unsigned()));
}

/// Reads an offset from UTC (s), written by [`put_offset`].
fn offset(reader: &mut Reader<'_>) -> Result<i32, DecodeError> {
    let written = u32::try_from(reader.varint()?).map_err(|_| reader.error("an offset out of range"))?;
    Ok((written >> 1).cast_signed() ^ -(written & 1).cast_signed())
}

/// Reads a duration (ms), and refuses 0.
fn milliseconds(reader: &mut Reader<'_>) -> Result<u64, DecodeError> {
    match reader.varint()? {
        0 => Err(reader.error("a cadence without time between")),
        ms => Ok(ms),
    }
}
