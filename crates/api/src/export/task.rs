//! A task, live or dead, as a line of an export.

use super::parts::{
    count, flag, instant, instant_option, payload, small_count, text, text_option, write_count, write_instant,
};
use crate::bad_request::{BadRequest, inside};
use crate::duration;
use crate::json::{Members, Shape};
use crate::payload::PayloadBody;
use crate::retry::RetryBody;
use crate::task::{DeathReason, FailureBody, FailureKind, TaskState};
use crate::terms::PRIORITY_DEFAULT;
use crate::timeline::{self, MomentBody, timeline};
use crate::trace::TraceContext;
use crate::{time, value};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// The members of a task, with those that only a live one has, and those that only a dead one has.
macro_rules! members {
    ([$($live:literal),*], [$($dead:literal),*]) => {
        &[
            "queue",
            "key",
            "id",
            "due_at",
            "put_at",
            "payload",
            "payload_base64",
            "content_type",
            $($live,)*
            "tags",
            "priority",
            "group",
            "attempt",
            "retry",
            "expire_at",
            "failures",
            "timeline",
            "step",
            "ttr",
            "origin",
            "tally",
            "traceparent",
            "tracestate",
            $($dead,)*
        ]
    };
}

const SHAPE: Shape = Shape {
    known: members!(["state"], []),
    later: &[],
    elsewhere: &[("dead_at", "a dead task is a line with the member `dead`")],
};
const DEAD_SHAPE: Shape =
    Shape { known: members!([], ["dead_at", "reason", "keyless"]), later: &[], elsewhere: &[] };
const FAILURE_SHAPE: Shape = Shape { known: &["at", "attempt", "how", "reason"], later: &[], elsewhere: &[] };
const TALLY_SHAPE: Shape = Shape {
    known: &["leases", "expiries", "nacks", "burials", "redrives", "delay"],
    later: &[],
    elsewhere: &[],
};
const HINT: &str = "write an object";

/// A task has at most this many failures on a line.
const FAILURES_MAX: usize = 100;

/// A task with all that is kept of it. A lease is not: a task in a worker's hands is a live one here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportTask {
    /// The queue.
    pub queue: String,
    /// The user's name for the task.
    pub key: String,
    /// The number that the server gave it.
    pub id: u64,
    /// When it is, or was, due, ms since 1970.
    pub due_at_ms: i64,
    /// When its put was received, ms since 1970.
    pub put_at_ms: i64,
    /// Where it stood. An import goes by `due_at` alone. `None`: the line does not say.
    pub state: Option<TaskState>,
    /// What the worker gets.
    pub payload: PayloadBody,
    /// All its instants, those that are over included; empty: it is due once.
    pub timeline: Vec<MomentBody>,
    /// Which instant of them it is due at, from 0.
    pub step: u32,
    /// Words to find the task by.
    pub tags: Vec<String>,
    /// Smaller goes first.
    pub priority: u32,
    /// The group it is in.
    pub group: Option<String>,
    /// Leases that ended without an ack.
    pub attempt: u32,
    /// How often and how soon it is tried again.
    pub retry: Option<RetryBody>,
    /// When it is given up, ms since 1970.
    pub expire_at_ms: Option<i64>,
    /// The attempts that failed last, the oldest first.
    pub failures: Vec<FailureBody>,
    /// The lease duration that its producer chose, ms.
    pub ttr_ms: Option<u64>,
    /// The door it came through; 0 is HTTP or an embedding program.
    pub origin: u8,
    /// What has happened to it so far, counted.
    pub tally: TallyBody,
    /// What its put was traced by.
    pub trace: Option<TraceContext>,
    /// When and why it was given up; `None`: it is live.
    pub death: Option<ExportDeath>,
}

/// When and why a task was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportDeath {
    /// When, ms since 1970.
    pub at_ms: i64,
    /// Why.
    pub reason: DeathReason,
    /// Another task has had its key since: it is found by its id alone.
    pub keyless: bool,
}

/// What has happened to a task so far, counted, for those who look at it over the protocol of beanstalkd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TallyBody {
    /// Leases that ended without an ack.
    pub leases: u32,
    /// Of those, ran out.
    pub expiries: u32,
    /// Of those, given back by their workers.
    pub nacks: u32,
    /// Of those, ended by a worker that gave the task up.
    pub burials: u32,
    /// Redrives, and calls to be due at once.
    pub redrives: u32,
    /// The delay that it was given last after its put, ms.
    pub delay_ms: Option<u64>,
}

impl ExportTask {
    pub(super) fn of(raw: &RawValue, dead: bool) -> Result<Self, BadRequest> {
        if !raw.get().starts_with('{') {
            return Err(BadRequest::body(format!("expected an object, got {}", value::kind(raw)), HINT));
        }
        Self::read(raw.get().as_bytes(), dead)
    }

    pub(super) fn read(bytes: &[u8], dead: bool) -> Result<Self, BadRequest> {
        let members = Members::read(bytes, if dead { &DEAD_SHAPE } else { &SHAPE })?;
        let origin = members.get("origin").map(|raw| value::integer("origin", raw, 0..=u64::from(u8::MAX)));
        let (timeline, step) = moments(&members)?;
        Ok(Self {
            queue: text(&members, "queue", "close")?,
            key: text(&members, "key", "order:1")?,
            id: count(&members, "id")?,
            due_at_ms: instant(&members, "due_at")?,
            put_at_ms: instant(&members, "put_at")?,
            state: state(&members)?,
            payload: payload(&members)?,
            timeline,
            step,
            tags: tags(&members)?,
            priority: match members.get("priority") {
                Some(_) => small_count(&members, "priority")?,
                None => PRIORITY_DEFAULT,
            },
            group: text_option(&members, "group")?,
            attempt: small_count(&members, "attempt")?,
            retry: members.get("retry").map(|raw| RetryBody::of("retry", raw)).transpose()?,
            expire_at_ms: instant_option(&members, "expire_at")?,
            failures: failures(&members)?,
            ttr_ms: members.get("ttr").map(|raw| value::duration_ms("ttr", raw)).transpose()?,
            origin: u8::try_from(origin.transpose()?.unwrap_or(0)).expect("it is within the limit"),
            tally: members.get("tally").map_or(Ok(TallyBody::default()), TallyBody::of)?,
            trace: trace(&members)?,
            death: if dead { Some(death(&members)?) } else { None },
        })
    }

    pub(super) fn check_portable(&self) -> Result<(), BadRequest> {
        self.payload.check_portable()?;
        timeline::check_portable(&self.timeline)
    }

    /// Writes what says when and why it was given up.
    fn write_death<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let Some(ExportDeath { at_ms, reason, keyless }) = self.death else { return Ok(()) };
        map.serialize_entry("dead_at", &time::format(at_ms))?;
        map.serialize_entry("reason", &reason)?;
        if keyless { map.serialize_entry("keyless", &true) } else { Ok(()) }
    }

    fn write_what<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        if self.timeline.is_empty() {
            return self.payload.write_on_one_line(map);
        }
        if self.payload != PayloadBody::default() {
            self.payload.write_on_one_line(map)?;
        }
        timeline::write_on_one_line(&self.timeline, map)?;
        write_count(map, "step", u64::from(self.step))
    }

    fn write_terms<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        if !self.tags.is_empty() {
            map.serialize_entry("tags", &self.tags)?;
        }
        if self.priority != PRIORITY_DEFAULT {
            map.serialize_entry("priority", &self.priority)?;
        }
        if let Some(group) = &self.group {
            map.serialize_entry("group", group)?;
        }
        write_count(map, "attempt", u64::from(self.attempt))?;
        if let Some(retry) = &self.retry {
            map.serialize_entry("retry", retry)?;
        }
        write_instant(map, "expire_at", self.expire_at_ms)?;
        if !self.failures.is_empty() {
            map.serialize_entry("failures", &self.failures)?;
        }
        if let Some(ms) = self.ttr_ms {
            map.serialize_entry("ttr", &duration::format(ms))?;
        }
        write_count(map, "origin", u64::from(self.origin))
    }
}

impl Serialize for ExportTask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("queue", &self.queue)?;
        map.serialize_entry("key", &self.key)?;
        write_count(&mut map, "id", self.id)?;
        map.serialize_entry("due_at", &time::format(self.due_at_ms))?;
        map.serialize_entry("put_at", &time::format(self.put_at_ms))?;
        if let Some(state) = self.state {
            map.serialize_entry("state", &state)?;
        }
        self.write_what(&mut map)?;
        self.write_terms(&mut map)?;
        if self.tally != TallyBody::default() {
            map.serialize_entry("tally", &self.tally)?;
        }
        if let Some(TraceContext { traceparent, tracestate }) = &self.trace {
            map.serialize_entry("traceparent", traceparent)?;
            tracestate.iter().try_for_each(|state| map.serialize_entry("tracestate", state))?;
        }
        self.write_death(&mut map)?;
        map.end()
    }
}

fn moments(members: &Members<'_>) -> Result<(Vec<MomentBody>, u32), BadRequest> {
    let moments = members.get("timeline").map(timeline).transpose()?.unwrap_or_default();
    let step = small_count(members, "step")?;
    if step > 0 && step as usize >= moments.len() {
        let what = format!("is {step}, and the timeline has {} instants", moments.len());
        return Err(BadRequest::member("step", what, "it counts the instants from 0"));
    }
    Ok((moments, step))
}

fn state(members: &Members<'_>) -> Result<Option<TaskState>, BadRequest> {
    let words = TaskState::ALL.map(|state| (state.name(), state));
    // What is dead is a line of another name.
    members.get("state").map(|raw| value::word("state", raw, &words[..3])).transpose()
}

fn tags(members: &Members<'_>) -> Result<Vec<String>, BadRequest> {
    let Some(raw) = members.get("tags") else { return Ok(Vec::new()) };
    let rows = value::array("tags", raw, "write a list of strings")?;
    let one = |(index, row)| value::text(&format!("tags[{index}]"), row, "vip");
    rows.into_iter().enumerate().map(one).collect()
}

fn failures(members: &Members<'_>) -> Result<Vec<FailureBody>, BadRequest> {
    let Some(raw) = members.get("failures") else { return Ok(Vec::new()) };
    let rows = value::array("failures", raw, "write a list of objects")?;
    if rows.len() > FAILURES_MAX {
        let what = format!("has {} failures; a line takes {FAILURES_MAX}", rows.len());
        return Err(BadRequest::member("failures", what, "keep those that were last"));
    }
    let one = |(index, row)| failure(row).map_err(|refused| inside(&format!("failures[{index}]"), refused));
    rows.into_iter().enumerate().map(one).collect()
}

fn failure(raw: &RawValue) -> Result<FailureBody, BadRequest> {
    const KINDS: [(&str, FailureKind); 5] = [
        ("nacked", FailureKind::Nacked),
        ("lease_ended", FailureKind::LeaseEnded),
        ("revoked", FailureKind::Revoked),
        ("buried", FailureKind::Buried),
        ("worker_gone", FailureKind::WorkerGone),
    ];
    let members = Members::of_value(raw, &FAILURE_SHAPE, HINT)?;
    Ok(FailureBody {
        at_ms: instant(&members, "at")?,
        attempt: small_count(&members, "attempt")?,
        how: value::word("how", members.required("how", "\"how\": \"nacked\"")?, &KINDS)?,
        reason: text_option(&members, "reason")?,
    })
}

fn trace(members: &Members<'_>) -> Result<Option<TraceContext>, BadRequest> {
    let (parent, state) = (text_option(members, "traceparent")?, text_option(members, "tracestate")?);
    let Some(parent) = parent else {
        let hint = "leave it out, or add the `traceparent` that it goes with";
        return match state {
            Some(_) => Err(BadRequest::member("tracestate", "means nothing without a `traceparent`", hint)),
            None => Ok(None),
        };
    };
    let read = TraceContext::of_headers(&parent, state.as_deref());
    let malformed = || {
        BadRequest::member(
            "traceparent",
            "is no W3C trace context",
            "leave the line as the export wrote it, or the member out",
        )
    };
    read.ok_or_else(malformed).map(Some)
}

fn death(members: &Members<'_>) -> Result<ExportDeath, BadRequest> {
    const REASONS: [(&str, DeathReason); 3] = [
        ("max_attempts", DeathReason::MaxAttempts),
        ("expired", DeathReason::Expired),
        ("buried", DeathReason::Buried),
    ];
    let reason = members.required("reason", "\"reason\": \"max_attempts\"")?;
    Ok(ExportDeath {
        at_ms: instant(members, "dead_at")?,
        reason: value::word("reason", reason, &REASONS)?,
        keyless: flag(members, "keyless")?,
    })
}

impl TallyBody {
    fn of(raw: &RawValue) -> Result<Self, BadRequest> {
        let read = || {
            let members = Members::of_value(raw, &TALLY_SHAPE, HINT)?;
            Ok(Self {
                leases: small_count(&members, "leases")?,
                expiries: small_count(&members, "expiries")?,
                nacks: small_count(&members, "nacks")?,
                burials: small_count(&members, "burials")?,
                redrives: small_count(&members, "redrives")?,
                delay_ms: members.get("delay").map(|raw| value::duration_ms("delay", raw)).transpose()?,
            })
        };
        read().map_err(|refused| inside("tally", refused))
    }
}

impl Serialize for TallyBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, count) in [
            ("leases", self.leases),
            ("expiries", self.expiries),
            ("nacks", self.nacks),
            ("burials", self.burials),
            ("redrives", self.redrives),
        ] {
            write_count(&mut map, name, u64::from(count))?;
        }
        if let Some(ms) = self.delay_ms {
            map.serialize_entry("delay", &duration::format(ms))?;
        }
        map.end()
    }
}
