//! The whole report.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use indicatif::HumanBytes;
use serde::Serialize;
use tickwheel_queue::backup::{
    Loss, LostRule, LostTask, MayHoldEnded, RuleName, SalvageReport, Superseded, Unit,
};

use crate::commands::backup::counted;
use crate::output::{Format, STDOUT, json_line, say, stdout};
use crate::printable::one_line;

/// The largest number of losses, and of tasks in each list, in a report for people.
const LOSSES_MAX: usize = 20;
const TASKS_MAX: usize = 20;

/// The result of a salvage, as it is printed.
#[derive(Serialize)]
pub(crate) struct Report {
    directory: String,
    out: String,
    whole: bool,
    shards: u32,
    read: Read,
    tasks: u64,
    dead: u64,
    settings: u64,
    schedules: u64,
    jobs: u64,
    ended: u64,
    queues: Vec<QueueRow>,
    may_hold_ended_tasks: bool,
    /// `null` if this number is unknown.
    ended_tasks_max: Option<u64>,
    superseded_tasks: u64,
    /// The superseded tasks, at most 10,000.
    superseded: Vec<SupersededRow>,
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
    rules: Vec<RuleRow>,
    rules_may_be_older: bool,
    ends_may_be_forgotten: bool,
}

#[derive(Serialize)]
struct RuleRow {
    /// `null`: the rule belongs to a job.
    queue: Option<String>,
    /// `null`: the rule belongs to the settings of the queue, or to a job.
    schedule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<u64>,
    fate: &'static str,
}

#[derive(Serialize)]
struct SupersededRow {
    id: u64,
    queue: String,
    key: String,
    /// The task that has the key.
    by: u64,
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
            shards: report.shards,
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
            jobs: report.written.jobs,
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
            superseded: report.superseded_tasks.iter().map(SupersededRow::from).collect(),
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

    /// Prints the report: one object as JSON, or a page for people.
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
        let mut lines = self.found();
        lines.extend(self.told());
        lines
    }

    /// Lines about the data that was read, and about the new directory.
    fn found(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = |name: &str, text: String| lines.push(format!("{name:<14}{text}"));
        let Self { directory, out, read, .. } = self;
        line("directory", directory.clone());
        line("salvaged to", out.clone());
        let checkpoint = match &read.checkpoint {
            _ if self.shards > 1 => format!("{} shards", self.shards),
            Some(checkpoint) => checkpoint.clone(),
            None => "no checkpoint".to_owned(),
        };
        let size = HumanBytes(read.bytes);
        let Read { files, frames, records, .. } = read;
        line("read", format!("{files} files, {size}: {checkpoint}, {frames} frames, {records} records"));
        line("tasks", format!("{} live, {} dead, {} ended remembered", self.tasks, self.dead, self.ended));
        let queues = if self.settings == 1 { "1 queue" } else { &format!("{} queues", self.settings) };
        line("rules", format!("settings of {queues}, schedules: {}, jobs: {}", self.schedules, self.jobs));
        for QueueRow { queue, tasks, dead } in self.queues.iter().take(LOSSES_MAX) {
            line("queue", format!("{queue}: {tasks} live, {dead} dead"));
        }
        if self.queues.len() > LOSSES_MAX {
            line(
                "",
                format!(
                    "and {}; -o json has all",
                    counted((self.queues.len() - LOSSES_MAX) as u64, "more queue")
                ),
            );
        }
        lines
    }

    /// Lines about the losses, and about the next steps.
    fn told(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = |name: &str, text: String| lines.push(format!("{name:<14}{text}"));
        for Mended { file, offset } in &self.mended {
            line(
                "mended",
                format!(
                    "{file}: byte {offset} was damaged; its checksum tells the right value, so nothing is lost"
                ),
            );
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
            loss.effects().into_iter().for_each(|effect| line("", effect));
            let rules = loss.rules.iter().map(RuleRow::text);
            let named: Vec<String> = rules.chain(loss.tasks.iter().map(TaskRow::text)).collect();
            for text in named.iter().take(TASKS_MAX) {
                line("", format!("- {text}"));
            }
            if named.len() > TASKS_MAX {
                line("", format!("and {} more; -o json has all", named.len() - TASKS_MAX));
            }
        }
        for task in self.superseded.iter().take(TASKS_MAX) {
            line("left out", task.text());
        }
        if self.superseded_tasks > TASKS_MAX as u64 {
            let more = self.superseded_tasks - TASKS_MAX as u64;
            line("", format!("and {}; -o json has all", counted(more, "more task")));
        }
        line("ended tasks", self.ended_text());
        line("next", format!("tickwheel serve --data {}", self.out));
        lines
    }

    fn lost(&self) -> String {
        let certain = self.losses.iter().filter(|loss| loss.certain).count();
        match (self.losses.len(), certain) {
            (0, _) => "nothing".to_owned(),
            (_, 0) => {
                "perhaps nothing: this may be the rest of a write that a crash cut off and that was never acknowledged".to_owned()
            }
            (1, _) => "one part of the directory, told below".to_owned(),
            (all, _) => format!("{all} parts of the directory, told below"),
        }
    }

    fn ended_text(&self) -> String {
        let out = &self.out;
        match (self.may_hold_ended_tasks, self.ended_tasks_max) {
            (false, _) => format!("none of them is in {out}"),
            (true, Some(1)) => format!("{out} may hold 1 task that had ended: its end was in what is lost"),
            (true, Some(most)) => {
                format!(
                    "{out} may hold tasks that had ended, at most {most}: their ends were in what is lost"
                )
            }
            (true, None) => format!(
                "{out} may hold tasks that had ended: their ends were in what is lost, and how many cannot be told"
            ),
        }
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
            rules: loss.rules.iter().map(RuleRow::from).collect(),
            rules_may_be_older: loss.rules_may_be_older,
            ends_may_be_forgotten: loss.ends_may_be_forgotten,
        }
    }
}

impl From<&LostRule> for RuleRow {
    fn from(rule: &LostRule) -> Self {
        let (queue, schedule, job) = match &rule.name {
            RuleName::Queue(queue) => (Some(queue), None, None),
            RuleName::Schedule(queue, schedule) => (Some(queue), Some(schedule), None),
            RuleName::Job(id) => (None, None, Some(*id)),
        };
        Self {
            queue: queue.map(|queue| queue.as_str().to_owned()),
            schedule: schedule.map(|schedule| schedule.as_str().to_owned()),
            job,
            fate: rule.fate.words(),
        }
    }
}

impl From<&Superseded> for SupersededRow {
    fn from(task: &Superseded) -> Self {
        let Superseded { id, queue, key, by, .. } = task;
        Self { id: *id, queue: queue.as_str().to_owned(), key: key.as_str().to_owned(), by: *by }
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
        if *unit == Unit::Shard.name() {
            return format!("{file} ({unit}): {what}");
        }
        let to = self.to.map_or_else(|| "on".to_owned(), |to| format!("to {to}"));
        format!("{file}, bytes {from} {to} ({unit}): {what}")
    }

    /// The effects of the loss, one sentence each.
    fn effects(&self) -> Vec<String> {
        let tasks = match self.tasks_max {
            Some(0) => "no task is affected".to_owned(),
            Some(1) => "at most 1 task is lost, or was saved in an older state".to_owned(),
            Some(most) => format!("at most {most} tasks are lost, or were saved in an older state"),
            None => "it is not known how many tasks are lost, or were saved in an older state".to_owned(),
        };
        let mut effects = vec![tasks];
        if self.rules_may_be_older {
            effects.push(
                "settings and schedules may be older ones: compare them with what you have set".to_owned(),
            );
        }
        if self.ends_may_be_forgotten {
            let text = "ends of tasks may be forgotten: such a key is answered `not_found`, not `done` or `cancelled`";
            effects.push(text.to_owned());
        }
        effects
    }
}

impl RuleRow {
    fn text(&self) -> String {
        let Self { queue, schedule, job, fate } = self;
        match (queue, schedule, job) {
            (Some(queue), Some(schedule), _) => format!("schedule {schedule} of queue {queue}: {fate}"),
            (Some(queue), None, _) => format!("settings of queue {queue}: {fate}"),
            (None, _, job) => format!("job {}: {fate}", job.unwrap_or_default()),
        }
    }
}

impl SupersededRow {
    fn text(&self) -> String {
        let Self { id, queue, key, by } = self;
        format!(
            "{queue} {key} (task {id}): task {by} has its key since, so it had ended, or was dead and is lost"
        )
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
