//! [`Importer`]: takes the lines of an export, until one is refused.

use std::fmt;
use std::sync::Arc;

use tickwheel_api::{
    BadRequest, ExportHeader, ExportLine, ExportQueue, ExportSchedule, ImportCounts, ImportLine,
    ImportResult, Problem, SkipWhy,
};
use tickwheel_queue::{
    ChangeQueue, IMPORT_TASKS_MAX, ImportOutcome, ImportSchedule, ImportTask, ImportTasks, Imported, Key,
    Pending, Queue, QueueChange, QueueName, QueueSettings, Unavailable,
};

use crate::targets::check_settings;
use crate::translate::twin::Twin;
use crate::translate::{self, exported, schedule, settings};

/// The largest total size of payloads in one command (bytes); a single task may have more.
const COMMAND_BYTES: usize = 1 << 20;

/// Takes the lines of an export in their order. Tasks go to the queue in groups, one group at a time. The next group
/// is read meanwhile, and is sent only when the whole earlier group is stored. So all lines before a refused one are
/// stored durably, and no line after it.
pub struct Importer {
    queue: Queue,
    existing: tickwheel_api::Existing,
    revoke: bool,
    ids_below: Option<u64>,
    /// The scope of the caller, whose schedules share their places; `None`: all queues.
    scope: Option<Arc<[Arc<str>]>>,
    /// The tasks of the next command.
    group: Group,
    /// The tasks of the command that was sent.
    under_way: Option<(Vec<At>, Pending<Imported, Unavailable>)>,
    counts: ImportCounts,
    /// All lines before this one are stored.
    next_line: u64,
    /// The number of the line after the last that was taken.
    taken: u64,
    /// The results of lines that were not simply added.
    rows: Vec<ImportLine>,
}

/// The line of a task in the file, and the names of the task.
#[derive(Debug)]
struct At {
    line: u64,
    queue: QueueName,
    key: Key,
}

#[derive(Debug, Default)]
struct Group {
    tasks: Vec<ImportTask>,
    at: Vec<At>,
    bytes: usize,
}

/// Why an import ended before a line. All lines before it are stored, and no line after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// The line's number.
    pub line: u64,
    /// The mistake.
    pub problem: Box<Problem>,
}

impl fmt::Debug for Importer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Importer").field("next_line", &self.next_line).finish_non_exhaustive()
    }
}

impl Importer {
    /// An import whose first line has this number. `ids_below` is the bound of the ids in the header.
    #[must_use]
    pub fn new(
        queue: Queue,
        existing: tickwheel_api::Existing,
        revoke: bool,
        ids_below: u64,
        first_line: u64,
    ) -> Self {
        Self {
            queue,
            existing,
            revoke,
            ids_below: Some(ids_below).filter(|ids| *ids > 0),
            scope: None,
            group: Group::default(),
            under_way: None,
            counts: ImportCounts::default(),
            next_line: first_line,
            taken: first_line,
            rows: Vec::new(),
        }
    }

    /// Returns this import for a caller of this scope.
    pub(crate) fn within(self, scope: Option<Arc<[Arc<str>]>>) -> Self {
        Self { scope, ..self }
    }

    /// Checks that the file and the queue have the same kind of clock. A task at a virtual time would be due at once
    /// in real time, or in years.
    ///
    /// # Errors
    /// One clock is virtual, and the other is not.
    pub fn check_clock(queue: &Queue, header: &ExportHeader) -> Result<(), Box<Problem>> {
        let (file, here) = match (header.virtual_clock, queue.health().virtual_clock) {
            (true, false) => ("a virtual clock", "real time"),
            (false, true) => ("real time", "a virtual clock"),
            _ => return Ok(()),
        };
        let what = format!("is the header of a file of {file}, but this queue runs on {here}");
        let hint = "import it where the kind of clock is the same; with other_clock=true (--other-clock) it is imported with all times as they are";
        Err(Problem::bad_request(&BadRequest::body(what, hint)).into())
    }

    /// Takes one line. The result of a task is known later, at [`finish`](Self::finish) at the latest.
    ///
    /// # Errors
    /// This line, or one before it, is refused.
    pub async fn take(&mut self, line: u64, what: ExportLine) -> Result<(), Stop> {
        match what {
            ExportLine::Task(task) => {
                let task = exported::task(*task);
                let task = self.unless_refused(line, task).await?;
                self.group.push(line, task);
                self.taken = line + 1;
                if self.group.is_full() {
                    self.send().await?;
                }
            }
            ExportLine::Queue(queue) => {
                self.settle_all().await?;
                let done = self.queue_line(line, *queue).await;
                done.map_err(|problem| self.stop(line, problem))?;
                self.next_line = line + 1;
            }
            ExportLine::Schedule(schedule) => {
                self.settle_all().await?;
                let done = self.schedule_line(line, *schedule).await;
                done.map_err(|problem| self.stop(line, problem))?;
                self.next_line = line + 1;
            }
            ExportLine::Header(_) | ExportLine::Cursor(_) | ExportLine::End(_) => {}
        }
        self.taken = line + 1;
        Ok(())
    }

    /// Refuses a line that could not be read. The lines before it are stored first.
    ///
    /// # Errors
    /// Always returned: for this line, or for one before it.
    pub async fn refuse(&mut self, line: u64, problem: Box<Problem>) -> Result<(), Stop> {
        self.settle_all().await?;
        self.next_line = line;
        Err(self.stop(line, problem))
    }

    /// Waits until all taken lines are stored durably.
    ///
    /// # Errors
    /// One of them is refused.
    pub async fn finish(&mut self) -> Result<(), Stop> {
        self.settle_all().await?;
        self.next_line = self.taken;
        Ok(())
    }

    /// The counts of results until now.
    #[must_use]
    pub fn counts(&self) -> ImportCounts {
        self.counts
    }

    /// All lines before this one are stored.
    #[must_use]
    pub fn next_line(&self) -> u64 {
        self.next_line
    }

    /// The results of lines that were not simply added, since the last call.
    pub fn rows(&mut self) -> Vec<ImportLine> {
        std::mem::take(&mut self.rows)
    }

    async fn unless_refused<T>(&mut self, line: u64, read: Result<T, Box<Problem>>) -> Result<T, Stop> {
        match read {
            Ok(read) => Ok(read),
            Err(problem) => {
                self.refuse(line, problem).await?;
                unreachable!("a line that is refused is an error")
            }
        }
    }

    fn stop(&self, line: u64, problem: impl Into<Box<Problem>>) -> Stop {
        Stop { line, problem: Box::new(problem.into().at_line(line)) }
    }

    /// Sends the group when the previous group is stored.
    async fn send(&mut self) -> Result<(), Stop> {
        self.settle().await?;
        let Group { tasks, at, .. } = std::mem::take(&mut self.group);
        if tasks.is_empty() {
            return Ok(());
        }
        let import = ImportTasks {
            tasks,
            existing: self.existing.twin(),
            on_lease: translate::on_lease(self.revoke),
            ids_below: self.ids_below,
        };
        self.under_way = Some((at, self.queue.import(import)));
        Ok(())
    }

    async fn settle_all(&mut self) -> Result<(), Stop> {
        self.send().await?;
        self.settle().await
    }

    /// Waits for the group that was sent. The future can be dropped and called again.
    async fn settle(&mut self) -> Result<(), Stop> {
        let Some((_, pending)) = &mut self.under_way else { return Ok(()) };
        let imported = pending.await;
        let (at, _) = self.under_way.take().expect("it was just looked at");
        let first = at.first().map_or(self.next_line, |at| at.line);
        let Imported { outcomes, refused } =
            imported.map_err(|why| self.stop(first, translate::unavailable(&why)))?;
        let mut at = at.into_iter();
        for (outcome, at) in outcomes.into_iter().zip(at.by_ref()) {
            self.next_line = at.line + 1;
            self.outcome(at.line, outcome, &at.queue, at.key.as_str());
        }
        match (refused, at.next()) {
            (Some(error), Some(at)) => {
                self.next_line = at.line;
                Err(self.stop(at.line, exported::import_refused(&error, &at.queue, &at.key)))
            }
            _ => Ok(()),
        }
    }

    fn outcome(&mut self, line: u64, outcome: ImportOutcome, queue: &QueueName, key: &str) {
        let row = match outcome {
            ImportOutcome::Added { kept_id } => {
                self.counts.new_ids += u64::from(!kept_id);
                None
            }
            ImportOutcome::Replaced => Some((ImportResult::Replaced, None)),
            ImportOutcome::Skipped(present) => Some((ImportResult::Skipped, Some(present.twin()))),
        };
        self.note(line, row, queue, Some(key));
    }

    /// Counts the result of a line, and makes its row. `None`: the line was simply added.
    fn note(
        &mut self,
        number: u64,
        result: Option<(ImportResult, Option<SkipWhy>)>,
        queue: &QueueName,
        key: Option<&str>,
    ) {
        let counts = &mut self.counts;
        let count = match result {
            None => &mut counts.added,
            Some((ImportResult::Replaced, _)) => &mut counts.replaced,
            Some((ImportResult::Skipped, _)) => &mut counts.skipped,
        };
        *count += 1;
        let (queue, key) = (queue.as_str().to_owned(), key.map(str::to_owned));
        self.rows.extend(result.map(|(result, why)| ImportLine { number, result, why, queue, key }));
    }

    async fn queue_line(&mut self, line: u64, queue: ExportQueue) -> Result<(), Box<Problem>> {
        let (name, record) = exported::queue_record(queue)?;
        let now = self.queue.now();
        let view = self.queue.queue(&name).await.map_err(|why| translate::unavailable(&why))?;
        let is_held = view.counts.paused || view.counts.draining;
        let is_there = is_held || view.settings != QueueSettings::default();
        let is_equal = view.settings == record.settings
            && view.paused_until == record.paused_until.filter(|until| *until > now);
        let is_same = is_equal && view.counts.draining == record.draining;
        // An export has the line of a draining queue twice: without the drain before the tasks, with the drain behind them.
        let adds_drain = is_there && is_equal && record.draining && !view.counts.draining;
        let is_drained =
            is_equal && view.counts.draining && self.existing != tickwheel_api::Existing::Replace;
        match (is_there, self.existing) {
            _ if adds_drain => {}
            (true, _) if is_drained => {
                self.note(line, Some((ImportResult::Skipped, Some(SkipWhy::Exists))), &name, None);
                return Ok(());
            }
            (true, tickwheel_api::Existing::Refuse) if !is_same => {
                return Err(exported::exists(&format!(
                    "queue `{}` already has other settings",
                    name.as_str()
                ))
                .into());
            }
            (true, tickwheel_api::Existing::Replace) if !is_same => {}
            (true, _) => {
                self.note(line, Some((ImportResult::Skipped, Some(SkipWhy::Exists))), &name, None);
                return Ok(());
            }
            (false, _) => {}
        }
        check_settings(&name, view.target.as_deref(), &record.settings)?;
        let change = if adds_drain { QueueChange::Drain } else { QueueChange::Restore(record) };
        let changed = self.queue.change_queue(ChangeQueue { queue: name.clone(), change }).await;
        changed.map_err(|error| settings::change_refused(&error, &name))?;
        let replaces = is_there && (!adds_drain || self.existing == tickwheel_api::Existing::Replace);
        self.note(line, replaces.then_some((ImportResult::Replaced, None)), &name, None);
        Ok(())
    }

    async fn schedule_line(&mut self, line: u64, schedule: ExportSchedule) -> Result<(), Box<Problem>> {
        let import = exported::schedule_of(schedule, self.existing)?;
        let import = ImportSchedule { scope: self.scope.clone(), ..import };
        let (queue, name) = (import.queue.clone(), import.name.clone());
        let outcome = self.queue.import_schedule(import).await;
        let outcome = outcome.map_err(|error| schedule::refused(&error, &queue, &name, None))?;
        self.outcome(line, outcome, &queue, name.as_str());
        Ok(())
    }
}

impl Group {
    fn push(&mut self, line: u64, task: ImportTask) {
        self.bytes += task.body.payload_bytes();
        self.at.push(At { line, queue: task.queue.clone(), key: task.key.clone() });
        self.tasks.push(task);
    }

    fn is_full(&self) -> bool {
        self.tasks.len() >= IMPORT_TASKS_MAX || self.bytes >= COMMAND_BYTES
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tickwheel_api::Existing;
    use tickwheel_queue::Put;
    use tokio::time::timeout;

    use super::*;

    fn task(key: &str, payload: &str) -> ExportLine {
        let text = format!(
            r#"{{"task":{{"queue":"q","key":"{key}","due_at":"2099-01-01T00:00:00Z","put_at":"2030-01-01T00:00:00Z","payload":"{payload}"}}}}"#
        );
        ExportLine::parse(text.as_bytes()).expect("a task")
    }

    /// A queue that has much to do before it answers.
    async fn busy() -> (Queue, QueueName) {
        let (queue, name) =
            (Queue::options().open_memory().expect("a queue"), QueueName::new("q").expect("a name"));
        queue.put(Put::new(&name, Key::new("k9").expect("a key"))).await.expect("stored");
        let others = QueueName::new("others").expect("a name");
        for key in 0..20_000 {
            drop(queue.put(Put::new(&others, Key::new(&key.to_string()).expect("a key"))));
        }
        (queue, name)
    }

    /// Takes more than one group. The last call is dropped while it waits for the answer to the first group.
    async fn taken_in_part(importer: &mut Importer) {
        let large = task("large", &"x".repeat(COMMAND_BYTES));
        for (line, key) in (2..).zip(0..IMPORT_TASKS_MAX) {
            importer.take(line, task(&format!("k{key}"), "")).await.expect("no group was answered");
        }
        let line = 2 + IMPORT_TASKS_MAX as u64;
        assert!(timeout(Duration::ZERO, importer.take(line, large)).await.is_err(), "the queue is busy");
    }

    /// A call that is late is dropped while it waits for the queue. The answer of the queue must not be lost with it.
    #[tokio::test]
    async fn a_refusal_that_a_dropped_call_waited_for_is_told_by_the_next_one() {
        let (queue, name) = busy().await;
        let mut importer = Importer::new(queue.clone(), Existing::Refuse, false, 0, 2);
        taken_in_part(&mut importer).await;
        let stop = importer.finish().await.expect_err("the line of `k9` is refused");
        assert_eq!((stop.line, importer.next_line()), (11, 11), "{stop:?}");
        let counts = queue.queue(&name).await.expect("it answers").counts;
        assert_eq!(counts.live(), 10, "no task after the refused one is stored");
    }

    /// All lines before the next one are stored, also the line of the dropped call.
    #[tokio::test]
    async fn the_line_of_a_dropped_call_is_stored_by_the_next_one() {
        let (queue, name) = busy().await;
        let mut importer = Importer::new(queue.clone(), Existing::Skip, false, 0, 2);
        taken_in_part(&mut importer).await;
        importer.finish().await.expect("no line is refused");
        let counts = queue.queue(&name).await.expect("it answers").counts;
        let tasks = IMPORT_TASKS_MAX as u64 + 1;
        assert_eq!((importer.next_line(), counts.live()), (2 + tasks, tasks));
    }
}
