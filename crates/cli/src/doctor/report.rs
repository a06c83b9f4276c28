//! The whole report.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use indicatif::HumanBytes;
use serde::Serialize;
use tickwheel_api::time;
use tickwheel_queue::backup::Manifest;
use tickwheel_queue::{BackupError, Durability, ShardId};

use crate::commands::backup::{counted, has_since};
use tickwheel_queue::doctor::{Examination, Problem, Span, root_above};
use tickwheel_server::{KeyUse, SecretKeyError};

use super::rows::{KeyRow, LogRow, ProblemRow, QueueRow, SegmentRow};
use crate::output::{Format, Row, STDOUT, json_line, say, stdout};
use crate::printable::one_line;

/// The largest number of rows in a table for people.
const ROWS_MAX: usize = 20;

/// The findings, as they are printed.
#[derive(Serialize)]
pub(crate) struct Report {
    directory: String,
    in_order: bool,
    is_data_directory: bool,
    in_use: bool,
    /// How many shards the data has of which the directory is a part, or the root.
    shards: Option<u32>,
    /// Only for the directory of one shard among several: the number of the shard, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<u32>,
    /// Only for the directory of one shard among several: the directory above it, if that is the root of all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    format: Option<u32>,
    clock: Option<String>,
    last_written: Option<String>,
    /// Only for a backup: everything that was acknowledged before this instant is in it.
    backup_as_of: Option<String>,
    /// The durability of an acknowledged call when the backup was made.
    #[serde(skip)]
    ack: Option<Durability>,
    /// The number of live tasks.
    tasks: Option<u64>,
    dead: Option<u64>,
    /// The number of ended tasks that are remembered.
    ended: Option<u64>,
    bytes: u64,
    checked_bytes: Option<u64>,
    checkpoint: Option<Checkpoint>,
    torn: Option<Torn>,
    queues: Vec<QueueRow>,
    secret_keys: Vec<KeyRow>,
    logs: Vec<LogRow>,
    segments: Vec<SegmentRow>,
    not_needed: Vec<String>,
    not_ours: Vec<String>,
    problems: Vec<ProblemRow>,
    /// The commands to run; empty if nothing is damaged.
    way_out: Vec<String>,
    /// Only for a root: the reports of the directories of its shards.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    members: Vec<Self>,
}

#[derive(Serialize)]
struct Checkpoint {
    file: String,
    bytes: u64,
    frame: u64,
    segments: u64,
    ended: u64,
}

#[derive(Serialize)]
struct Torn {
    file: String,
    offset: u64,
    bytes: u64,
}

impl Report {
    pub(crate) fn new(directory: &Path, found: &Examination) -> Self {
        let mut segments: Vec<_> = found.segments.iter().collect();
        // The segments are sorted by the begin of their time spans.
        segments.sort_by_key(|segment| match segment.span {
            Span::Overdue => (0, segment.generation),
            Span::Between(from, _) => (1 + from.as_ms(), segment.generation),
        });
        let queues = found.queues.iter();
        let shard = found.shard.filter(|shard| shard.count() > 1);
        let members = found.members.iter();
        Self {
            directory: directory.display().to_string(),
            in_order: found.is_in_order(),
            is_data_directory: found.is_ours,
            in_use: found.in_use,
            shards: found.shards,
            shard: shard.map(ShardId::number),
            root: shard.and_then(|_| root_above(directory)).map(|root| root.display().to_string()),
            format: found.format,
            clock: found.clock.map(|clock| clock.to_string()),
            last_written: found.last_written.map(|at| time::format(at.as_ms())),
            backup_as_of: None,
            ack: None,
            tasks: found.tasks,
            dead: found.dead,
            ended: found.ended,
            bytes: found.bytes,
            checked_bytes: found.checked_bytes,
            checkpoint: found.checkpoint.as_ref().map(|checkpoint| Checkpoint {
                file: checkpoint.file.clone(),
                bytes: checkpoint.bytes,
                frame: checkpoint.frame,
                segments: checkpoint.segments,
                ended: checkpoint.ended,
            }),
            torn: found.torn.as_ref().map(|torn| Torn {
                file: torn.file.clone(),
                offset: torn.offset,
                bytes: torn.bytes,
            }),
            queues: queues
                .map(|(queue, of)| QueueRow {
                    queue: queue.as_str().to_owned(),
                    tasks: of.live,
                    dead: of.dead,
                })
                .collect(),
            secret_keys: Vec::new(),
            logs: found.logs.iter().map(LogRow::from).collect(),
            segments: segments.into_iter().map(SegmentRow::from).collect(),
            not_needed: found.not_needed.clone(),
            not_ours: found.not_ours.clone(),
            problems: found.problems.iter().map(ProblemRow::from).collect(),
            way_out: way_out(directory, found),
            members: members
                .map(|member| Self::new(&directory.join(&member.folder), &member.found))
                .collect(),
        }
    }

    /// Adds the manifest of a backup, and its difference from the files.
    pub(crate) fn of_backup(mut self, manifest: Option<&Manifest>, differs: Option<&BackupError>) -> Self {
        self.ack = manifest.and_then(Manifest::ack);
        self.backup_as_of = manifest.and_then(Manifest::as_of).map(|at| time::format(at.as_ms()));
        if let Some(error) = differs {
            self.in_order = false;
            let what = match error {
                BackupError::Differs { what, .. } => what.clone(),
                other => other.to_string(),
            };
            self.problems.push(ProblemRow {
                file: Manifest::FILE.to_owned(),
                offset: None,
                what,
                to_do: "take another backup, and keep this one as it is until then",
            });
        }
        self
    }

    /// Whether no problem was found.
    pub(crate) fn is_in_order(&self) -> bool {
        self.in_order
    }

    /// Adds the keys that the targets need. One that the given file lacks is a problem, and so is a file that gives no keys.
    pub(crate) fn with_keys(
        mut self,
        keys: &Result<Vec<KeyUse>, SecretKeyError>,
        file: Option<&Path>,
    ) -> Self {
        let file = file.map(|file| file.display().to_string()).unwrap_or_default();
        let keys = match keys {
            Ok(keys) => keys,
            Err(error) => {
                self.in_order = false;
                self.problems.push(ProblemRow {
                    file,
                    offset: None,
                    what: format!("no secret keys can be read: {error}"),
                    to_do: "correct --secret-key-file (TICKWHEEL_SECRET_KEY_FILE); a server does not start with this file",
                });
                return self;
            }
        };
        self.secret_keys = keys.iter().map(KeyRow::from).collect();
        for row in self.secret_keys.iter().filter(|row| row.in_file == Some(false)) {
            self.in_order = false;
            self.problems.push(ProblemRow {
                file: file.clone(),
                offset: None,
                what: format!(
                    "the file lacks the key {}, which encrypts secrets of the targets of: {}",
                    row.id,
                    row.queues.join(", ")
                ),
                to_do: "add the key to the file; without it these targets are disabled, and their secrets have to be set anew",
            });
        }
        self
    }

    /// Prints the report: one object as JSON, or a page for people.
    ///
    /// # Errors
    /// Stdout cannot be written.
    pub(crate) fn print(mut self, format: &Format) -> Result<()> {
        if format.is_json() {
            let line = json_line(serde_json::to_vec(&self).context("write JSON")?);
            let mut out = stdout();
            return out.write_all(&line).and_then(|()| out.flush()).context(STDOUT);
        }
        let mut out = stdout();
        for line in self.lines() {
            writeln!(out, "{}", one_line(&line)).context(STDOUT)?;
        }
        out.flush().context(STDOUT)?;
        drop(out);
        print_rows(format, "queue", std::mem::take(&mut self.queues))?;
        print_rows(format, "secret key", std::mem::take(&mut self.secret_keys))?;
        print_rows(format, "log file", std::mem::take(&mut self.logs))?;
        print_rows(format, "segment", std::mem::take(&mut self.segments))?;
        if self.way_out.is_empty() {
            return Ok(());
        }
        let mut out = stdout();
        writeln!(out).context(STDOUT)?;
        for (index, step) in self.way_out.iter().enumerate() {
            let name = if index == 0 { "way out" } else { "" };
            writeln!(out, "{}", one_line(&format!("{name:<14}{step}"))).context(STDOUT)?;
        }
        out.flush().context(STDOUT)
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = |name: &str, text: String| lines.push(format!("{name:<14}{text}"));
        line("directory", self.directory.clone());
        line("state", self.state());
        for problem in &self.problems {
            line("problem", problem.text());
            line("", format!("-> {}", problem.to_do));
        }
        match (self.shards, self.shard) {
            (Some(shards), Some(shard)) => {
                let root = self.root.as_deref().map_or_else(
                    || "the directory that has all of them is not the one above".to_owned(),
                    |root| format!("{root} has all of them, and a server opens that"),
                );
                line("shard", format!("{shard} of {shards}; {root}"));
            }
            (Some(shards), None) if !self.members.is_empty() => line("shards", shards.to_string()),
            _ => {}
        }
        for member in self.members.iter().take(ROWS_MAX) {
            line("shard", member.as_member());
        }
        if self.members.len() > ROWS_MAX {
            line(
                "",
                format!(
                    "and {}; -o json has all",
                    counted((self.members.len() - ROWS_MAX) as u64, "more shard")
                ),
            );
        }
        if let (Some(format), Some(clock)) = (self.format, &self.clock) {
            line("format", format!("{format}, {clock} clock"));
        }
        if let Some(last_written) = &self.last_written {
            line("last written", last_written.clone());
        }
        if let Some(as_of) = &self.backup_as_of {
            line("backup", has_since(as_of, self.ack));
        }
        if let Some(counts) = self.counts() {
            line("tasks", counts);
        }
        if let Some(Checkpoint { file, segments, frame, bytes, .. }) = &self.checkpoint {
            let size = HumanBytes(*bytes);
            line(
                "checkpoint",
                format!("{file}, {}, the log up to frame {frame}, {size}", counted(*segments, "segment")),
            );
        }
        if let Some(Torn { file, offset, bytes }) = &self.torn {
            let why =
                if self.in_use { "is just being written, or was never finished" } else { UNACKNOWLEDGED };
            line("torn tail", format!("{bytes} bytes at byte {offset} of {file}: {why}"));
        }
        for name in &self.not_needed {
            line("not needed", format!("{name}, the next start removes it"));
        }
        for name in &self.not_ours {
            line("not ours", format!("{name}, left alone"));
        }
        if self.is_data_directory {
            line("bytes", HumanBytes(self.bytes).to_string());
        }
        lines
    }

    /// Returns a line about this directory in the report of its root.
    fn as_member(&self) -> String {
        let folder = Path::new(&self.directory).file_name().unwrap_or_default().to_string_lossy();
        let state = match self.problems.len() {
            0 if self.is_data_directory => "in order".to_owned(),
            0 => "not made yet; the next start makes it".to_owned(),
            1 => "1 problem".to_owned(),
            count => format!("{count} problems"),
        };
        let counts = self.counts().map(|counts| format!(", {counts}")).unwrap_or_default();
        format!("{folder}: {state}{counts}, {}", HumanBytes(self.bytes))
    }

    /// Returns the numbers of live, dead and remembered ended tasks; `None` if they are not known.
    fn counts(&self) -> Option<String> {
        let (live, dead, ended) = (self.tasks?, self.dead?, self.ended?);
        Some(format!("{live} live, {dead} dead, {ended} ended remembered"))
    }

    fn state(&self) -> String {
        let checked = match self.checked_bytes {
            Some(_) => "every record read and checked",
            None => "records not read (--deep reads them)",
        };
        match self.problems.len() {
            0 => format!("in order, {checked}"),
            _ if !self.is_data_directory => "no data directory".to_owned(),
            1 => "1 problem".to_owned(),
            count => format!("{count} problems"),
        }
    }
}

/// The commands to run if something is damaged. The restore of a backup comes first, because a backup is complete.
fn way_out(directory: &Path, found: &Examination) -> Vec<String> {
    if !found.is_ours || !found.problems.iter().any(Problem::is_damage) {
        return Vec::new();
    }
    let directory = directory.display();
    vec![
        "with a backup:  tickwheel restore BACKUP NEW, then tickwheel serve --data NEW".to_owned(),
        format!(
            "without one:    tickwheel salvage {directory} NEW saves what can be read and says what is lost, then tickwheel serve --data NEW"
        ),
    ]
}

const UNACKNOWLEDGED: &str =
    "the last write, which a crash cut short, or which was damaged since; the next start leaves it out";

impl ProblemRow {
    fn text(&self) -> String {
        let Self { file, offset, what, .. } = self;
        match (file.as_str(), offset) {
            ("", _) => what.clone(),
            (file, None) => format!("{file}: {what}"),
            (file, Some(offset)) => format!("{file} at byte {offset}: {what}"),
        }
    }
}

/// Prints an empty line and at most [`ROWS_MAX`] rows, and the number of rows left out. `name` is what one row is.
fn print_rows<R: Row>(format: &Format, name: &str, mut rows: Vec<R>) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let more = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    let mut out = stdout();
    writeln!(out).and_then(|()| out.flush()).context(STDOUT)?;
    drop(out);
    format.print(rows)?;
    if more > 0 {
        say(&format!("and {}; -o json has all", counted(more as u64, &format!("more {name}"))));
    }
    Ok(())
}
