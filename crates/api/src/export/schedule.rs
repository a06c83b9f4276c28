//! A schedule, and how far it has come, as a line of an export.

use super::parts::{count, instant, instant_option, instants, text, text_option, write_count, write_instant};
use crate::bad_request::{BadRequest, inside};
use crate::json::{Members, Shape};
use crate::schedule::ScheduleSpec;
use crate::time;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

const SHAPE: Shape = Shape {
    known: &[
        "queue", "name", "spec", "anchor", "decided", "next_at", "last_at", "made", "skipped", "running",
        "waiting",
    ],
    later: &[],
    elsewhere: &[],
};

/// A schedule with its progress: enough to go on elsewhere without making a task of an instant twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportSchedule {
    /// The queue that its tasks are put into.
    pub queue: String,
    /// Its name.
    pub name: String,
    /// What its owner put.
    pub spec: ScheduleSpec,
    /// The first instant of all, from which the others are counted, ms since 1970.
    pub anchor_ms: i64,
    /// All instants up to this one are decided.
    pub decided_ms: i64,
    /// When it makes its next task.
    pub next_at_ms: Option<i64>,
    /// The last instant that a task was made of.
    pub last_at_ms: Option<i64>,
    /// Tasks made so far.
    pub made: u64,
    /// Instants left out so far.
    pub skipped: u64,
    /// The key of the task that has to end before another is made.
    pub running: Option<String>,
    /// Instants whose turn comes when it has ended, rising.
    pub waiting_ms: Vec<i64>,
}

impl ExportSchedule {
    pub(super) fn of(raw: &RawValue) -> Result<Self, BadRequest> {
        let members = Members::of_value(raw, &SHAPE, "write an object")?;
        let spec = members.required("spec", "\"spec\": {\"every\": \"1h\"}")?;
        let waiting_ms = instants(&members, "waiting")?;
        if let Some(at) = waiting_ms.windows(2).position(|pair| pair[1] <= pair[0]) {
            let what = "is not after the instant before it";
            return Err(BadRequest::member(
                format!("waiting[{}]", at + 1),
                what,
                "write them in the order of time",
            ));
        }
        Ok(Self {
            queue: text(&members, "queue", "close")?,
            name: text(&members, "name", "nightly")?,
            spec: ScheduleSpec::parse(spec.get().as_bytes()).map_err(|refused| inside("spec", refused))?,
            anchor_ms: instant(&members, "anchor")?,
            decided_ms: instant(&members, "decided")?,
            next_at_ms: instant_option(&members, "next_at")?,
            last_at_ms: instant_option(&members, "last_at")?,
            made: count(&members, "made")?,
            skipped: count(&members, "skipped")?,
            running: text_option(&members, "running")?,
            waiting_ms,
        })
    }
}

impl Serialize for ExportSchedule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("queue", &self.queue)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("spec", &self.spec.on_one_line())?;
        map.serialize_entry("anchor", &time::format(self.anchor_ms))?;
        map.serialize_entry("decided", &time::format(self.decided_ms))?;
        write_instant(&mut map, "next_at", self.next_at_ms)?;
        write_instant(&mut map, "last_at", self.last_at_ms)?;
        write_count(&mut map, "made", self.made)?;
        write_count(&mut map, "skipped", self.skipped)?;
        if let Some(running) = &self.running {
            map.serialize_entry("running", running)?;
        }
        if !self.waiting_ms.is_empty() {
            let waiting: Vec<String> = self.waiting_ms.iter().map(|ms| time::format(*ms)).collect();
            map.serialize_entry("waiting", &waiting)?;
        }
        map.end()
    }
}
