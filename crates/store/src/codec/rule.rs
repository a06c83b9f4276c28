//! The record of a rule: how it is written and read.

use std::sync::Arc;

use tickwheel_engine::{
    QueueRecord, QueueSettings, Rate, Retention, Rule, RuleEffect, RuleName, ScheduleName, TargetRecord,
};

use super::extra::{put_retry, retry};
use super::names::Names;
use super::schedule::{put_schedule, read_schedule};

use super::wire::{
    DecodeError, Reader, put_bytes, put_member, put_text, put_timestamp, put_varint, timestamp,
};

/// The kinds of rules. The numbers never change, because files have them.
mod kind {
    pub(super) const QUEUE: u8 = 1;
    pub(super) const SCHEDULE: u8 = 2;
    pub(super) const JOB: u8 = 3;
}

/// The tags of the members of a queue's record, in the order in which the record has them. A member whose tag is absent is not set.
mod tag {
    pub(super) const MAX_IN_FLIGHT: u8 = 1;
    pub(super) const MAX_IN_FLIGHT_PER_GROUP: u8 = 2;
    pub(super) const RATE: u8 = 3;
    pub(super) const MAX_BACKLOG: u8 = 4;
    pub(super) const DEFAULT_LEASE_MS: u8 = 5;
    pub(super) const RETRY: u8 = 6;
    pub(super) const HISTORY: u8 = 7;
    pub(super) const PAUSED_UNTIL: u8 = 8;
    pub(super) const DRAINING: u8 = 9;
    pub(super) const TARGET: u8 = 10;
}

/// Appends the kind of a rule, 1 if the rule exists or 0 if it was removed, the name of the rule, and the content of an existing rule.
pub(super) fn put_rule(out: &mut Vec<u8>, name: &RuleName, rule: Option<&Rule>) {
    let stands = u8::from(rule.is_some());
    match name {
        RuleName::Queue(queue) => {
            out.extend_from_slice(&[kind::QUEUE, stands]);
            put_text(out, queue.as_str());
        }
        RuleName::Schedule(queue, name) => {
            out.extend_from_slice(&[kind::SCHEDULE, stands]);
            put_text(out, queue.as_str());
            put_text(out, name.as_str());
        }
        RuleName::Job(id) => {
            out.extend_from_slice(&[kind::JOB, stands]);
            put_varint(out, *id);
        }
    }
    match rule {
        Some(Rule::Queue(record)) => put_queue(out, record),
        Some(Rule::Schedule(record)) => put_schedule(out, record),
        Some(Rule::Job(value)) => put_bytes(out, value),
        None => {}
    }
}

fn put_queue(out: &mut Vec<u8>, record: &QueueRecord) {
    let QueueRecord { settings, paused_until, draining, target } = record;
    let QueueSettings {
        max_in_flight,
        max_in_flight_per_group,
        rate,
        max_backlog,
        default_lease_ms,
        retry,
        history,
    } = settings;
    put_member(out, tag::MAX_IN_FLIGHT, *max_in_flight, put_varint);
    put_member(out, tag::MAX_IN_FLIGHT_PER_GROUP, *max_in_flight_per_group, put_varint);
    put_member(out, tag::RATE, rate.as_ref(), |out, Rate { tasks, per_ms, burst }| {
        [tasks, per_ms, burst].into_iter().for_each(|number| put_varint(out, *number));
    });
    put_member(out, tag::MAX_BACKLOG, *max_backlog, put_varint);
    put_member(out, tag::DEFAULT_LEASE_MS, *default_lease_ms, put_varint);
    put_member(out, tag::RETRY, *retry, put_retry);
    put_member(out, tag::HISTORY, history.as_ref(), |out, Retention { keep_ms, keys }| {
        [keep_ms, keys].into_iter().for_each(|number| put_varint(out, *number));
    });
    put_member(out, tag::PAUSED_UNTIL, *paused_until, put_timestamp);
    if *draining {
        out.push(tag::DRAINING);
    }
    put_member(out, tag::TARGET, target.as_deref(), put_target);
}

/// Appends the value of a target, 1 if the target has a retry policy or 0 if it has none, and the policy.
fn put_target(out: &mut Vec<u8>, TargetRecord { value, retry }: &TargetRecord) {
    put_bytes(out, value);
    out.push(u8::from(retry.is_some()));
    if let Some(retry) = retry {
        put_retry(out, *retry);
    }
}

/// Reads a rule, or the removal of a rule. The record has to end with the end of `reader`.
pub(super) fn read_rule(reader: &mut Reader<'_>, names: &mut Names) -> Result<RuleEffect, DecodeError> {
    let kind = reader.u8()?;
    if !matches!(kind, kind::QUEUE | kind::SCHEDULE | kind::JOB) {
        return Err(reader.error("a rule of a later format"));
    }
    let stands = match reader.u8()? {
        0 => false,
        1 => true,
        _ => return Err(reader.error("neither a rule nor its end")),
    };
    let name = read_name(kind, reader, names)?;
    let rule = match &name {
        _ if !stands => None,
        RuleName::Queue(_) => Some(Rule::Queue(read_queue(reader)?)),
        RuleName::Schedule(..) => Some(Rule::Schedule(read_schedule(reader, names)?)),
        RuleName::Job(_) => Some(Rule::Job(reader.bytes()?.into())),
    };
    Ok((name, rule.map(Arc::new)))
}

fn read_name(kind: u8, reader: &mut Reader<'_>, names: &mut Names) -> Result<RuleName, DecodeError> {
    if kind == kind::JOB {
        return Ok(RuleName::Job(reader.varint()?));
    }
    let queue = names.queue(reader)?;
    if kind == kind::QUEUE {
        return Ok(RuleName::Queue(queue));
    }
    let name = reader.str()?;
    let name = ScheduleName::new(name).map_err(|_| reader.error("no schedule name"))?;
    Ok(RuleName::Schedule(queue, name))
}

fn read_queue(reader: &mut Reader<'_>) -> Result<QueueRecord, DecodeError> {
    let mut record = QueueRecord::default();
    let mut last = 0;
    while let Some(tag) = reader.tag(&mut last, &[])? {
        let settings = &mut record.settings;
        match tag {
            tag::MAX_IN_FLIGHT => settings.max_in_flight = Some(reader.varint()?),
            tag::MAX_IN_FLIGHT_PER_GROUP => settings.max_in_flight_per_group = Some(reader.varint()?),
            tag::RATE => {
                let rate =
                    Rate { tasks: reader.varint()?, per_ms: reader.varint()?, burst: reader.varint()? };
                if rate.tasks == 0 || rate.per_ms == 0 || rate.burst == 0 {
                    return Err(reader.error("a rate of nothing"));
                }
                settings.rate = Some(rate);
            }
            tag::MAX_BACKLOG => settings.max_backlog = Some(reader.varint()?),
            tag::DEFAULT_LEASE_MS => settings.default_lease_ms = Some(reader.varint()?),
            tag::RETRY => settings.retry = Some(retry(reader)?),
            tag::HISTORY => {
                settings.history = Some(Retention { keep_ms: reader.varint()?, keys: reader.varint()? });
            }
            tag::PAUSED_UNTIL => record.paused_until = Some(timestamp(reader)?),
            tag::DRAINING => record.draining = true,
            tag::TARGET => record.target = Some(Arc::new(read_target(reader)?)),
            _ => return Err(reader.error("a member of a later format")),
        }
    }
    Ok(record)
}

fn read_target(reader: &mut Reader<'_>) -> Result<TargetRecord, DecodeError> {
    let value = reader.bytes()?.into();
    let retry = match reader.u8()? {
        0 => None,
        1 => Some(retry(reader)?),
        _ => return Err(reader.error("neither a retry policy nor none")),
    };
    Ok(TargetRecord { value, retry })
}
