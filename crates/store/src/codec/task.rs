//! The record of a task: how it is written and read.

use std::sync::Arc;

use tickwheel_engine::{
    Body, DueKey, Epoch, Extra, Key, LeaseNo, Moment, PRIORITY_DEFAULT, Seq, StoredLease, Tag, Task,
};

use super::extra::{FAILURE, put_extra, put_extra_behind_body, read_extra};
use super::names::Names;
use super::wire::{
    DecodeError, Reader, put_bytes, put_member, put_text, put_timestamp, put_varint, timestamp,
};

/// The tags of the members that a record may have, in the order in which the record has them. An absent member has the value that most
/// tasks have, unless the record leaves the body out. The numbers never change. The numbers between 5 and 16, and 20, are in
/// `extra.rs`.
mod tag {
    pub(super) const PRIORITY: u8 = 1;
    pub(super) const ATTEMPTS: u8 = 2;
    pub(super) const LEASE_FENCE: u8 = 3;
    pub(super) const REVOKED: u8 = 4;
    pub(super) const LEASE: u8 = 5;
    pub(super) const CONTENT_TYPE: u8 = 16;
    pub(super) const TAG: u8 = 17;
    pub(super) const PAYLOAD: u8 = 18;
    pub(super) const MOMENT: u8 = 19;
}

pub(super) fn key(reader: &mut Reader<'_>) -> Result<Key, DecodeError> {
    let text = reader.str()?;
    Key::new(text).map_err(|_| reader.error("no key"))
}

pub(super) fn word(reader: &mut Reader<'_>) -> Result<Tag, DecodeError> {
    let text = reader.str()?;
    Tag::new(text).map_err(|_| reader.error("no tag"))
}

/// Appends the record of a task, with or without its body.
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
    put_member(out, tag::LEASE, lease.as_ref(), |out, StoredLease { no, until, left_ms, written_in }| {
        put_varint(out, no.0);
        put_timestamp(out, *until);
        put_varint(out, *left_ms);
        put_varint(out, u64::from(written_in.0));
    });
    if let Some(extra) = extra {
        put_extra(out, extra);
    }
    if with_body {
        put_body(out, body);
    }
    put_extra_behind_body(out, task.extra());
}

/// Appends a body without the task that has it.
pub(super) fn put_body(out: &mut Vec<u8>, body: &Body) {
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

/// The beginning of a task's record: enough to decide whether the task is wanted.
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

/// Reads the record of a task, up to the end of `reader`. If `with_body` is false, the record has no body, and the task gets an empty one.
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
    while let Some(tag) = reader.tag(&mut last, &[tag::TAG, FAILURE, tag::MOMENT])? {
        match tag {
            tag::PRIORITY => task.priority = reader.number()?,
            tag::ATTEMPTS => task.attempts = reader.number()?,
            tag::LEASE_FENCE => task.lease_fence = LeaseNo(reader.varint()?),
            tag::REVOKED => task.revoked = Some(LeaseNo(reader.varint()?)),
            tag::LEASE => {
                let no = LeaseNo(reader.varint()?);
                let until = timestamp(reader)?;
                let left_ms = reader.varint()?;
                let written_in = Epoch(reader.number()?);
                task.lease = Some(StoredLease { no, until, left_ms, written_in });
            }
            tag::CONTENT_TYPE..=tag::MOMENT if with_body => {
                has_payload |= tag == tag::PAYLOAD;
                read_body_member(tag, reader, names, &mut body)?;
            }
            _ if read_extra(tag, reader, extra(&mut task))? => {}
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

/// Reads a body that stands alone, up to the end of `reader`.
pub(super) fn read_body(reader: &mut Reader<'_>, names: &mut Names) -> Result<Body, DecodeError> {
    let mut body = Body::default();
    let (mut has_payload, mut last) = (false, 0);
    while let Some(tag) = reader.tag(&mut last, &[tag::TAG, tag::MOMENT])? {
        if !(tag::CONTENT_TYPE..=tag::MOMENT).contains(&tag) {
            return Err(reader.error("a member of a later format"));
        }
        has_payload |= tag == tag::PAYLOAD;
        read_body_member(tag, reader, names, &mut body)?;
    }
    if has_payload { Ok(body) } else { Err(reader.error("no payload")) }
}

/// Reads one member of a body. `tag` is between `CONTENT_TYPE` and `MOMENT`.
fn read_body_member(
    tag: u8,
    reader: &mut Reader<'_>,
    names: &mut Names,
    body: &mut Body,
) -> Result<(), DecodeError> {
    match tag {
        tag::CONTENT_TYPE => body.content_type = names.content_type(reader.str()?),
        tag::TAG => body.tags.push(word(reader)?),
        tag::PAYLOAD => body.payload = reader.bytes()?.to_vec(),
        _ => {
            let at = timestamp(reader)?;
            let content_type = names.content_type(reader.str()?);
            body.timeline.push(Moment { at, payload: reader.bytes()?.to_vec(), content_type });
        }
    }
    Ok(())
}

fn extra(task: &mut Task) -> &mut Extra {
    task.extra.get_or_insert_default()
}
