//! The report as a whole.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use indicatif::HumanBytes;
use serde::Serialize;
use tickwheel_queue::backup::{Loss, LostTask, MayHoldEnded, SalvageReport};

use crate::output::{Format, STDOUT, json_line, say, stdout};
use crate::printable::one_line;

/// Losses that people are shown, and tasks of each.
const LOSSES_MAX: usize = 20;
const TASKS_MAX: usize = 20;

/// What became of a directory, as it is printed.
#[derive(Serialize)]
pub(crate) struct Report {
    directory: String,
    out: String,
    whole: bool,
    read: Read,
    tasks: u64,
    dead: u64,
    settings: u64,
    schedules: u64,
    ended: u64,
    queues: Vec<QueueRow>,
    may_hold_ended_tasks: bool,
    /// `null` if that cannot be told.
    ended_tasks_max: Option<u64>,
    superseded_tasks: u64,
    mended: Vec<Mended>,
    unreadable: Vec<Unreadable>,
    losses: Vec<LossRow>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Read {
    files: u64,
    bytes: u64,
    frames: u64,
    records: u64,
    checkpoint: Option<String>,
}

#[derive(Serialize)]
struct QueueRow {
    queue: String,
    tasks: u64,
    dead: u64,
}

#[derive(Serialize)]
struct Mended {
    file: String,
    offset: u64,
}

#[derive(Serialize)]
struct Unreadable {
    file: String,
    from: u64,
    to: u64,
}

#[derive(Serialize)]
struct LossRow {
    file: String,
    from: u64,
    to: Option<u64>,
    unit: &'static str,
    what: String,
    certain: bool,
    tasks_max: Option<u64>,
    ended_tasks_max: Option<u64>,
    tasks: Vec<TaskRow>,
}

#[derive(Serialize)]
struct TaskRow {
    id: u64,
    queue: Option<String>,
    key: Option<String>,
    fate: &'static str,
}

impl Report {
    pub(crate) fn new(directory: &Path, out: &Path, report: &SalvageReport) -> Self {
        let (may_hold_ended_tasks, ended_tasks_max) = match report.may_hold_ended() {
            MayHoldEnded::No => (false, Some(0)),
            MayHoldEnded::AtMost(most) => (true, Some(most)),
            MayHoldEnded::Unknown => (true, None),
        };
        let queues = report.written.queues.iter();
        let tasks = report.tasks();
        Self {
            directory: directory.display().to_string(),
            out: out.display().to_string(),
            whole: report.is_whole(),
            read: Read {
                files: report.read.files,
                bytes: report.read.bytes,
                frames: report.read.frames,
                records: report.read.records,
                checkpoint: report.read.checkpoint.clone(),
            },
            tasks: tasks.live,
            dead: tasks.dead,
            settings: report.written.settings,
            schedules: report.written.schedules,
            ended: report.written.ended,
            queues: queues
                .map(|(queue, of)| QueueRow {
                    queue: queue.as_str().to_owned(),
                    tasks: of.live,
                    dead: of.dead,
                })
                .collect(),
            may_hold_ended_tasks,
            ended_tasks_max,
            superseded_tasks: report.superseded,
            mended: report
                .read
                .mended
                .iter()
                .map(|(file, offset)| Mended { file: file.clone(), offset: *offset })
                .collect(),
            unreadable: report
                .read
                .unreadable
                .iter()
                .map(|(file, from, to)| Unreadable { file: file.clone(), from: *from, to: *to })
                .collect(),
            losses: report.losses.iter().map(LossRow::from).collect(),
            notes: report.notes.clone(),
        }
    }

    /// Prints it: one object as JSON, or a page for people.
    ///
    /// # Errors
    /// Stdout cannot be written.
    pub(crate) fn print(self, format: &Format) -> Result<()> {
        let mut out = stdout();
        if format.is_json() {
            let line = json_line(serde_json::to_vec(&self).context("write JSON")?);
            return out.write_all(&line).and_then(|()| out.flush()).context(STDOUT);
        }
        for line in self.lines() {
            writeln!(out, "{}", one_line(&line)).context(STDOUT)?;
        }
        out.flush().context(STDOUT)?;
        drop(out);
        if self.losses.len() > LOSSES_MAX {
            say(&format!("and {} more losses; -o json has all", self.losses.len() - LOSSES_MAX));
        }
        Ok(())
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = |name: &str, text: String| lines.push(format!("{name:<14}{text}"));
        let Self { directory, out, read, .. } = self;
        line("directory", directory.clone());
        line("salvaged to", out.clone());
        let checkpoint = read.checkpoint.as_deref().unwrap_or("no checkpoint");
        let size = HumanBytes(read.bytes);
        let Read { files, frames, records, .. } = read;
        line("read", format!("{files} files, {size}: {checkpoint}, {frames} frames, {records} records"));
        line("tasks", format!("{} live, {} dead, {} ended remembered", self.tasks, self.dead, self.ended));
        line("rules", format!("settings of {} queues, {} schedules", self.settings, self.schedules));
        for QueueRow { queue, tasks, dead } in self.queues.iter().take(LOSSES_MAX) {
            line("queue", format!("{queue}: {tasks} live, {dead} dead"));
        }
        if self.queues.len() > LOSSES_MAX {
            line("", format!("and {} more queues; -o json has all", self.queues.len() - LOSSES_MAX));
        }
        for Mended { file, offset } in &self.mended {
            line("mended", format!("{file}: byte {offset} was damaged, and its checksum tells what it was"));
        }
        for Unreadable { file, from, to } in &self.unreadable {
            let to = if *to == u64::MAX { "its end".to_owned() } else { format!("byte {to}") };
            line("unreadable", format!("{file}: the disk fails to read from byte {from} to {to}"));
        }
        for note in &self.notes {
            line("note", note.clone());
        }
        line("lost", self.lost());
        for loss in self.losses.iter().take(LOSSES_MAX) {
            line("loss", loss.text());
            for task in loss.tasks.iter().take(TASKS_MAX) {
                line("", format!("- {}", task.text()));
            }
            if loss.tasks.len() > TASKS_MAX {
                line("", format!("and {} more tasks; -o json has all", loss.tasks.len() - TASKS_MAX));
            }
        }
        line("ended tasks", self.ended_text());
        line("next", format!("tickwheel serve --data {out}"));
        lines
    }

    fn lost(&self) -> String {
        let certain = self.losses.iter().filter(|loss| loss.certain).count();
        match (self.losses.len(), certain) {
            (0, _) => "nothing".to_owned(),
            (_, 0) => {
                "perhaps nothing: what is below may be the rest of a write that never finished".to_owned()
            }
            (1, _) => "one part of the directory".to_owned(),
            (all, _) => format!("{all} parts of the directory"),
        }
    }

    fn ended_text(&self) -> String {
        let superseded = match self.superseded_tasks {
            0 => String::new(),
            count => format!("; {count} more were left out, for a later task has their key"),
        };
        let most = match (self.may_hold_ended_tasks, self.ended_tasks_max) {
            (false, _) => "none came back".to_owned(),
            (true, Some(most)) => format!(
                "{} may hold tasks that had ended: at most {most}, whose end was in what is lost",
                self.out
            ),
            (true, None) => format!(
                "{} may hold tasks that had ended, and how many cannot be told: their end was in what is lost",
                self.out
            ),
        };
        most + &superseded
    }
}

impl From<&Loss> for LossRow {
    fn from(loss: &Loss) -> Self {
        Self {
            file: loss.file.clone(),
            from: loss.from,
            to: loss.to,
            unit: loss.unit.name(),
            what: loss.what.clone(),
            certain: loss.certain,
            tasks_max: loss.tasks_max,
            ended_tasks_max: loss.ended_max,
            tasks: loss.tasks.iter().map(TaskRow::from).collect(),
        }
    }
}

impl From<&LostTask> for TaskRow {
    fn from(task: &LostTask) -> Self {
        Self {
            id: task.id,
            queue: task.queue.as_ref().map(|queue| queue.as_str().to_owned()),
            key: task.key.as_ref().map(|key| key.as_str().to_owned()),
            fate: task.fate.words(),
        }
    }
}

impl LossRow {
    fn text(&self) -> String {
        let Self { file, from, unit, what, .. } = self;
        let to = self.to.map_or_else(|| "on".to_owned(), |to| format!("to {to}"));
        let tasks = match self.tasks_max {
            Some(0) => "no task is lost with it".to_owned(),
            Some(1) => "at most 1 task".to_owned(),
            Some(most) => format!("at most {most} tasks"),
            None => "how many tasks cannot be told".to_owned(),
        };
        format!("{file}, bytes {from} {to} ({unit}): {what}; {tasks}")
    }
}

impl TaskRow {
    fn text(&self) -> String {
        let name = match (&self.queue, &self.key) {
            (Some(queue), Some(key)) => format!("{queue} {key} (task {})", self.id),
            (Some(queue), None) => format!("task {} of {queue}, whose key is not known", self.id),
            (None, _) => format!("task {}", self.id),
        };
        format!("{name}: {}", self.fate)
    }
}
