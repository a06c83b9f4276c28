//! One line of an export.

use super::head::{EXPORT_FORMAT, HeaderMembers};
use super::{ExportEnd, ExportHeader, ExportQueue, ExportSchedule, ExportTask};
use crate::declare::json::{self, Known};
use crate::declare::{Body as _, Schema, Source, schema, value};
use crate::text::bad_request::{BadRequest, inside};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::RawValue;

/// Maximum length of the cursor of an export (bytes).
pub const EXPORT_CURSOR_BYTES_MAX: usize = 256;

/// The names of the members that a line may have.
const WORDS: [&str; 7] = ["export", "queue", "task", "dead", "schedule", "cursor", "end"];

const KNOWN: Known = Known {
    find: |name| WORDS.iter().position(|word| *word == name),
    names: || WORDS.to_vec(),
    later: &[],
    elsewhere: &[],
};

/// One line of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportLine {
    /// The first line: where, when and with which limits the export was made.
    Header(ExportHeader),
    /// The settings of a queue.
    Queue(Box<ExportQueue>),
    /// A live task, or a dead one.
    Task(Box<ExportTask>),
    /// A schedule and its progress.
    Schedule(Box<ExportSchedule>),
    /// The cursor from which an interrupted export goes on.
    Cursor(String),
    /// The last line: how many lines of each kind there are.
    End(ExportEnd),
}

impl ExportLine {
    /// Reads one line, without its line end.
    ///
    /// # Errors
    ///
    /// Text that is not a JSON object with exactly one of the members `export`, `queue`, `task`, `dead`, `schedule`, `cursor` and `end`. In the
    /// value of the member: unknown, repeated or missing members, and values of the wrong kind or outside their limits.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadRequest> {
        Self::read(bytes, Source::Export)
    }

    /// Reads one line as [`parse`](Self::parse) does, and refuses a payload that some JSON readers cannot read. See
    /// [`PayloadBody::check_portable`](crate::PayloadBody::check_portable). A payload that stands beside `payload_invalid: true` is taken as it is.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse). For such a payload the error names the first place that cannot be read.
    pub fn parse_portable(bytes: &[u8]) -> Result<Self, BadRequest> {
        Self::read(bytes, Source::PortableExport)
    }

    fn read(bytes: &[u8], source: Source) -> Result<Self, BadRequest> {
        if let Some(task) = plain_task(bytes, source) {
            return Ok(Self::Task(Box::new(task)));
        }
        let mut slots = [None; WORDS.len()];
        json::read_members(bytes, &KNOWN, &mut slots)?;
        let mut named = WORDS.iter().zip(slots).filter_map(|(word, slot)| slot.map(|raw| (*word, raw)));
        let (Some((name, raw)), None) = (named.next(), named.next()) else {
            let hint = "write one of `export`, `queue`, `task`, `dead`, `schedule`, `cursor` and `end`";
            let what = match slots.iter().flatten().count() {
                0 => "has no member".to_owned(),
                count => format!("has {count} members; a line has exactly one"),
            };
            return Err(BadRequest::body(what, hint));
        };
        Self::of(name, raw, source).map_err(|refused| match name {
            "cursor" => refused,
            _ => inside(name, refused),
        })
    }

    fn of(name: &str, raw: &RawValue, source: Source) -> Result<Self, BadRequest> {
        Ok(match name {
            "export" => Self::Header(HeaderMembers::from_value(raw, source)?.header),
            "queue" => Self::Queue(Box::new(ExportQueue::from_value(raw, source)?)),
            "task" => Self::Task(Box::new(ExportTask::of(raw, false, source)?)),
            "dead" => Self::Task(Box::new(ExportTask::of(raw, true, source)?)),
            "schedule" => Self::Schedule(Box::new(ExportSchedule::from_value(raw, source)?)),
            "cursor" => Self::Cursor(cursor(raw)?),
            _ => Self::End(ExportEnd::from_value(raw, source)?),
        })
    }

    /// Appends the line, with its line end.
    pub fn write(&self, out: &mut Vec<u8>) {
        serde_json::to_writer(&mut *out, self)
            .expect("types of this crate have string keys and write into memory");
        out.push(b'\n');
    }

    /// Describes the line.
    pub(crate) fn schema() -> Schema {
        Schema::answer(
            "ExportLine",
            "One line of an export. It has exactly one member, whose name says what the line is.",
            vec![
                schema::may(
                    "export",
                    schema::of("ExportHeader"),
                    "The first line: where, when and with which limits the export was made.",
                ),
                schema::may("queue", schema::of("ExportQueue"), "The settings of a queue."),
                schema::may("task", schema::of("ExportTask"), "A live task."),
                schema::may("dead", schema::of("ExportDead"), "A dead task."),
                schema::may("schedule", schema::of("ExportSchedule"), "A schedule and its progress."),
                schema::may(
                    "cursor",
                    schema::text(256),
                    "The cursor from which an export that was cut goes on: `?cursor=`.",
                ),
                schema::may("end", schema::of("ExportEnd"), "The last line. A file without it is cut."),
            ],
        )
    }
}

impl Serialize for ExportLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Self::Header(header) => {
                let header = HeaderMembers { format: EXPORT_FORMAT, header: header.clone() };
                map.serialize_entry("export", &header)?;
            }
            Self::Queue(queue) => map.serialize_entry("queue", queue)?,
            Self::Task(task) if task.death.is_some() => map.serialize_entry("dead", task)?,
            Self::Task(task) => map.serialize_entry("task", task)?,
            Self::Schedule(schedule) => map.serialize_entry("schedule", schedule)?,
            Self::Cursor(cursor) => map.serialize_entry("cursor", cursor)?,
            Self::End(end) => map.serialize_entry("end", end)?,
        }
        map.end()
    }
}

/// Reads a task line that has the form in which this crate writes it. This saves one pass over the text. `None`: the line has another form,
/// or a fault that the general parser has to name.
fn plain_task(bytes: &[u8], source: Source) -> Option<ExportTask> {
    let inner = bytes.trim_ascii().strip_prefix(br#"{"task":"#)?.strip_suffix(b"}")?;
    ExportTask::of_line(inner, false, source).ok()
}

fn cursor(raw: &RawValue) -> Result<String, BadRequest> {
    let text = value::text("cursor", raw, "1-2-0")?;
    if text.is_empty() || text.len() > EXPORT_CURSOR_BYTES_MAX {
        let what = format!("has {} bytes", text.len());
        return Err(BadRequest::member("cursor", what, "leave the line as the export wrote it"));
    }
    Ok(text)
}

impl ExportEnd {
    /// Counts one more line. Headers, cursors and the end itself are not counted.
    pub fn count(&mut self, line: &ExportLine) {
        match line {
            ExportLine::Queue(_) => self.queues += 1,
            ExportLine::Task(task) if task.death.is_some() => self.dead += 1,
            ExportLine::Task(_) => self.tasks += 1,
            ExportLine::Schedule(_) => self.schedules += 1,
            ExportLine::Header(_) | ExportLine::Cursor(_) | ExportLine::End(_) => {}
        }
    }
}
