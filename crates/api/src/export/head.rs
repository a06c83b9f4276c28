//! The first and the last line of an export.

use super::EXPORT_FORMAT;
use super::parts::{count, flag, instant, text, text_option, write_count};
use crate::INTEGER_MAX;
use crate::bad_request::BadRequest;
use crate::json::{Members, Shape};
use crate::{time, value};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

const HEAD_SHAPE: Shape = Shape {
    known: &["format", "at", "release", "virtual_clock", "store", "scope", "queue", "ids_below"],
    later: &[],
    elsewhere: &[],
};
const END_SHAPE: Shape =
    Shape { known: &["queues", "tasks", "dead", "schedules"], later: &[], elsewhere: &[] };
const HINT: &str = "write an object";

/// The first line of an export. It says what the file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportHeader {
    /// When the export began, by the clock of the server, ms since 1970.
    pub at_ms: i64,
    /// The release that wrote it, such as `0.3.0`.
    pub release: String,
    /// Whether that clock was a virtual one.
    pub virtual_clock: bool,
    /// Which data directory it is of: 16 hex digits that tell it from others, and nothing of what is in it. `None`: an earlier release wrote the file.
    pub store: Option<String>,
    /// The namespaces that the export is limited to; empty: it is not.
    pub scope: Vec<String>,
    /// The one queue that the export is limited to.
    pub queue: Option<String>,
    /// The ids in this file are below this number, but for tasks that were put while it was written.
    pub ids_below: u64,
}

impl ExportHeader {
    pub(super) fn of(raw: &RawValue) -> Result<Self, BadRequest> {
        let members = Members::of_value(raw, &HEAD_SHAPE, HINT)?;
        let format = value::integer("format", members.required("format", "\"format\": 1")?, 0..=INTEGER_MAX)?;
        if format != EXPORT_FORMAT {
            let what = format!("is {format}; this release reads {EXPORT_FORMAT}");
            return Err(BadRequest::member(
                "format",
                what,
                "import the file with the release that wrote it, or a later one",
            ));
        }
        let scope = match members.get("scope") {
            None => Vec::new(),
            Some(raw) => {
                let rows = value::array("scope", raw, "write a list of namespaces")?;
                let one = |(index, row)| value::text(&format!("scope[{index}]"), row, "shop");
                rows.into_iter().enumerate().map(one).collect::<Result<_, _>>()?
            }
        };
        Ok(Self {
            at_ms: instant(&members, "at")?,
            release: text(&members, "release", "0.3.0")?,
            virtual_clock: flag(&members, "virtual_clock")?,
            store: text_option(&members, "store")?,
            scope,
            queue: text_option(&members, "queue")?,
            ids_below: count(&members, "ids_below")?,
        })
    }
}

impl Serialize for ExportHeader {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("format", &EXPORT_FORMAT)?;
        map.serialize_entry("at", &time::format(self.at_ms))?;
        map.serialize_entry("release", &self.release)?;
        map.serialize_entry("virtual_clock", &self.virtual_clock)?;
        if let Some(store) = &self.store {
            map.serialize_entry("store", store)?;
        }
        if !self.scope.is_empty() {
            map.serialize_entry("scope", &self.scope)?;
        }
        if let Some(queue) = &self.queue {
            map.serialize_entry("queue", queue)?;
        }
        write_count(&mut map, "ids_below", self.ids_below)?;
        map.end()
    }
}

/// How many lines of each kind a whole file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExportEnd {
    /// Queues with settings, or held.
    pub queues: u64,
    /// Live tasks.
    pub tasks: u64,
    /// Dead tasks.
    pub dead: u64,
    /// Schedules.
    pub schedules: u64,
}

impl ExportEnd {
    pub(super) fn of(raw: &RawValue) -> Result<Self, BadRequest> {
        let members = Members::of_value(raw, &END_SHAPE, HINT)?;
        let number = |name: &'static str| {
            value::integer(name, members.required(name, &format!("\"{name}\": 0"))?, 0..=INTEGER_MAX)
        };
        Ok(Self {
            queues: number("queues")?,
            tasks: number("tasks")?,
            dead: number("dead")?,
            schedules: number("schedules")?,
        })
    }

    /// Counts one line more. Headers, cursors and the end itself are not counted.
    pub fn count(&mut self, line: &super::ExportLine) {
        use super::ExportLine;
        match line {
            ExportLine::Queue(_) => self.queues += 1,
            ExportLine::Task(task) if task.death.is_some() => self.dead += 1,
            ExportLine::Task(_) => self.tasks += 1,
            ExportLine::Schedule(_) => self.schedules += 1,
            ExportLine::Header(_) | ExportLine::Cursor(_) | ExportLine::End(_) => {}
        }
    }
}

impl Serialize for ExportEnd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("queues", &self.queues)?;
        map.serialize_entry("tasks", &self.tasks)?;
        map.serialize_entry("dead", &self.dead)?;
        map.serialize_entry("schedules", &self.schedules)?;
        map.end()
    }
}
