//! [`Exporter`]: writes a store as lines, page by page.

use std::collections::VecDeque;
use std::fmt;

use tickwheel_api::{
    BadRequest, ExportEnd, ExportHeader, ExportLine, ExportQuery, ExportQueue, ExportSchedule, Problem,
    ProblemKind,
};
use tickwheel_queue::{
    Act, Acted, ById, Key, ListAllSchedules, ListAllTasks, ListQueues, Pending, Queue, QueueName,
    SCHEDULES_PAGE_MAX, TaskCursor, TaskPage, TaskView, Timestamp, Unavailable,
};

use super::position::{Foreign, Position};
use crate::access::tokens::Grant;
use crate::base::aside::Steps;
use crate::base::queue_pages::QueuePages;
use crate::translate::{self, exported};

/// The number of tasks in a page. The store ends a page of large payloads at 4 MiB of them.
const PAGE_TASKS: usize = 1_000;

/// Writes the contents of a store as the lines of an export: the header, settings, tasks and dead tasks by time,
/// schedules, drains, the end. A queue that drains takes no imported task, so the line with its drain comes behind its
/// tasks. It holds one page of tasks, and asks for the next page while that one is written.
///
/// Each page of tasks shows one moment. A task that changes during an export may appear as before or as after the
/// change. It appears twice if its time moves later. It does not appear if its time moves earlier, or if it is put
/// before the export's position. The schedules are those of the beginning, even if the export was interrupted: an
/// importing server makes the later instants again, so none is lost.
pub struct Exporter {
    queue: Queue,
    grant: Grant,
    /// The only queue to export; `None`: all.
    only: Option<QueueName>,
    /// When the export began.
    begun: Timestamp,
    written: ExportEnd,
    stage: Stage,
    /// The next page, which was asked for.
    page: Option<Pending<TaskPage, Unavailable>>,
    /// The schedules, which are written last.
    schedules: VecDeque<ExportSchedule>,
    /// The settings of the queues that drain, which are written once more behind all tasks.
    drains: VecDeque<ExportQueue>,
    steps: Steps,
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").field("stage", &self.stage).finish_non_exhaustive()
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Stage {
    /// The header and the settings are written next.
    Head,
    /// The export goes on after this cursor; no line of this request is written yet.
    Resumed(TaskCursor),
    /// A page of tasks was asked for and comes next.
    Tasks,
    Schedules,
    Over,
}

impl Exporter {
    /// An export of the whole store, or of the part that the query asks for.
    ///
    /// # Errors
    /// The name of a queue is not valid, or the cursor is of another export.
    pub fn new(queue: Queue, query: &ExportQuery) -> Result<Self, Box<Problem>> {
        Self::within(queue, query, Grant::everything())
    }

    /// An export of the part that the bearer of a token may see.
    pub(crate) fn within(queue: Queue, query: &ExportQuery, grant: Grant) -> Result<Self, Box<Problem>> {
        let only = query.queue.as_deref().map(QueueName::new).transpose();
        let only = only.map_err(|error| translate::name_refused(&error))?;
        if let Some(only) = only.as_ref().filter(|only| !grant.covers(only)) {
            return Err(Problem::out_of_scope(only.as_str()).into());
        }
        let position = query.cursor.as_deref().map(|text| {
            Position::read(text, &queue.opened().identity, only.as_ref())
                .map_err(|foreign| Box::new(Problem::bad_request(&foreign_cursor(foreign))))
        });
        let (begun, written, stage) = match position.transpose()? {
            Some(Position { begun, after, written }) => (begun, written, Stage::Resumed(after)),
            None => (queue.now(), ExportEnd::default(), Stage::Head),
        };
        let (schedules, drains) = (VecDeque::new(), VecDeque::new());
        let (page, steps) = (None, Steps::default());
        Ok(Self { queue, grant, only, begun, written, stage, page, schedules, drains, steps })
    }

    /// The next lines; `None` after the end.
    ///
    /// # Errors
    /// The queue cannot be read. The first call may also say that the queue to export does not exist.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, Box<Problem>> {
        let mut out = Vec::new();
        match self.stage {
            Stage::Head => {
                self.take_schedules().await?;
                self.write_head(&mut out).await?;
                let (lines, has_any) = self.queue_lines().await?;
                for line in lines {
                    self.write(ExportLine::Queue(Box::new(line)), &mut out);
                }
                let is_there = has_any || !self.schedules.is_empty();
                if let Some(only) = self.only.as_ref().filter(|_| !is_there) {
                    return Err(no_queue(only).into());
                }
                self.write_cursor(TaskCursor::START, &mut out);
                self.ask(TaskCursor::START);
                self.stage = Stage::Tasks;
            }
            Stage::Resumed(after) => {
                self.take_schedules().await?;
                self.queue_lines().await?;
                self.ask(after);
                self.stage = Stage::Tasks;
            }
            Stage::Tasks => self.write_page(&mut out).await?,
            Stage::Schedules => {
                self.write_schedules_and_drains(&mut out).await;
                if self.schedules.is_empty() && self.drains.is_empty() {
                    ExportLine::End(self.written).write(&mut out);
                    self.stage = Stage::Over;
                }
            }
            Stage::Over => return Ok(None),
        }
        Ok(Some(out))
    }

    /// The number of lines of each kind so far.
    #[must_use]
    pub fn written(&self) -> ExportEnd {
        self.written
    }

    fn covers(&self, queue: &QueueName) -> bool {
        let is_wanted = self.only.as_ref().is_none_or(|only| only == queue);
        is_wanted && self.grant.covers(queue)
    }

    fn write(&mut self, line: ExportLine, out: &mut Vec<u8>) {
        self.written.count(&line);
        line.write(out);
    }

    async fn write_head(&mut self, out: &mut Vec<u8>) -> Result<(), Box<Problem>> {
        let one = ListQueues { max: 1, ..ListQueues::default() };
        let stats = self.queue.stats(one).await.map_err(|why| translate::unavailable(&why))?;
        let scope = match self.grant.is_unscoped() {
            true => Vec::new(),
            false => self.grant.prefixes().into_iter().map(str::to_owned).collect(),
        };
        let header = ExportHeader {
            at_ms: self.begun.as_ms(),
            release: env!("CARGO_PKG_VERSION").to_owned(),
            virtual_clock: self.queue.health().virtual_clock,
            store: Some(self.queue.opened().identity.to_string()),
            scope,
            queue: self.only.as_ref().map(|only| only.as_str().to_owned()),
            // Tasks may be put while the export goes on.
            ids_below: stats.ids_below.saturating_add(IDS_AHEAD),
        };
        self.write(ExportLine::Header(header), out);
        Ok(())
    }

    /// Returns the settings of queues without their drains, which it keeps for the end, and whether any queue belongs
    /// to the export.
    async fn queue_lines(&mut self) -> Result<(Vec<ExportQueue>, bool), Box<Problem>> {
        let (mut lines, mut has_any) = (Vec::new(), false);
        let prefix = self.only.as_ref().map_or("", QueueName::as_str);
        let list = ListQueues { prefix: prefix.into(), ..ListQueues::default() };
        let queue = self.queue.clone();
        let mut pages = QueuePages::new(&queue, list);
        while let Some(page) = pages.next().await.map_err(|why| translate::unavailable(&why))? {
            for counts in page {
                if !self.covers(&counts.queue) {
                    continue;
                }
                has_any = true;
                let view = queue.queue(&counts.queue).await.map_err(|why| translate::unavailable(&why))?;
                if let Some(line) = exported::queue_line(&view) {
                    self.drains.extend(line.draining.then(|| line.clone()));
                    lines.push(ExportQueue { draining: false, ..line });
                }
            }
        }
        Ok((lines, has_any))
    }

    /// Writes a cursor line for the position `after`.
    fn write_cursor(&self, after: TaskCursor, out: &mut Vec<u8>) {
        let position = Position { begun: self.begun, after, written: self.written };
        ExportLine::Cursor(position.to_text(&self.queue.opened().identity, self.only.as_ref())).write(out);
    }

    fn ask(&mut self, after: TaskCursor) {
        let list = ListAllTasks { max: PAGE_TASKS, after: Some(after) };
        self.page = Some(self.queue.all_tasks(list));
    }

    async fn write_page(&mut self, out: &mut Vec<u8>) -> Result<(), Box<Problem>> {
        let page = self.page.take().expect("a page is asked for before it is written");
        let TaskPage { tasks, cursors, next, .. } = page.await.map_err(|why| translate::unavailable(&why))?;
        // The next page is read while this one is written.
        match next {
            Some(next) => self.ask(next),
            None => self.stage = Stage::Schedules,
        }
        let covered: Vec<(&TaskView, TaskCursor)> =
            tasks.iter().zip(cursors).filter(|(task, _)| self.covers(&task.queue)).collect();
        let last = covered.iter().rposition(|(task, _)| may_be_named(task));
        for (at, (task, cursor)) in covered.iter().enumerate() {
            let begun = out.len();
            self.write(ExportLine::Task(Box::new(exported::task_line(task))), out);
            self.steps.did(out.len() - begun).await;
            if next.is_some() && !self.grant.is_unscoped() && last == Some(at) {
                self.write_cursor(*cursor, out);
            }
        }
        // The position after a page may be that of a task outside of the token's scope. So a token with a scope gets
        // its cursor at the last task that it may see.
        if let Some(next) = next.filter(|_| self.grant.is_unscoped()) {
            self.write_cursor(next, out);
        }
        Ok(())
    }

    /// Copies the schedules as they are now, to be written after all tasks. They are in memory anyway, at most 16
    /// MiB.
    async fn take_schedules(&mut self) -> Result<(), Box<Problem>> {
        let mut after = None;
        loop {
            let list = ListAllSchedules { prefix: "".into(), after, max: SCHEDULES_PAGE_MAX };
            let page = self.queue.all_schedules(list).await.map_err(|why| translate::unavailable(&why))?;
            after = page.last().map(|last| (last.queue.clone(), last.name.clone()));
            for view in &page {
                if !self.covers(&view.queue) {
                    continue;
                }
                let running = match view.record.running.last().copied() {
                    Some(id) => key_of(&self.queue, id).await?,
                    None => None,
                };
                self.schedules.push_back(exported::schedule_line(view, running.as_ref(), self.begun));
            }
            if page.len() < SCHEDULES_PAGE_MAX {
                return Ok(());
            }
        }
    }

    async fn write_schedules_and_drains(&mut self, out: &mut Vec<u8>) {
        let next = |of: &mut Self| match of.schedules.pop_front() {
            Some(schedule) => Some(ExportLine::Schedule(Box::new(schedule))),
            None => of.drains.pop_front().map(|queue| ExportLine::Queue(Box::new(queue))),
        };
        while let Some(line) = next(self) {
            let begun = out.len();
            self.write(line, out);
            self.steps.did(out.len() - begun).await;
            if out.len() >= PIECE_BYTES {
                return;
            }
        }
    }
}

/// Whether the due time of this task is its position in the order. The position of a dead task is the instant at
/// which it will be forgotten.
fn may_be_named(task: &TaskView) -> bool {
    task.extra.dead.is_none()
}

/// The key of the task with this id; `None`: the task has ended.
async fn key_of(queue: &Queue, id: u64) -> Result<Option<Key>, Box<Problem>> {
    let get = ById { id, act: Act::Get, within: None, if_version: None, worker: None };
    match queue.by_id(get).await {
        Ok(Acted::Task(task)) => Ok(Some(task.key)),
        Err(tickwheel_queue::ByIdError::Unavailable(why)) => Err(translate::unavailable(&why).into()),
        Ok(_) | Err(_) => Ok(None),
    }
}

/// The number of tasks that may be put during an export and still keep their ids on the importing server.
const IDS_AHEAD: u64 = 1_000_000;

/// Schedules and drains are written in pieces of this size (bytes).
const PIECE_BYTES: usize = 1 << 20;

fn no_queue(queue: &QueueName) -> Problem {
    let detail = format!("there is no queue `{}`", queue.as_str());
    let hint = "check the name, which is case-sensitive; GET /v1/queues lists those there are";
    Problem::new(ProblemKind::NotFound, detail).with_hint(hint)
}

fn foreign_cursor(foreign: Foreign) -> BadRequest {
    let (what, hint) = match foreign {
        Foreign::Store => (
            "is of an export of another server or data directory",
            "go on at the one where the export began, or begin anew here",
        ),
        Foreign::Other => (
            "is not a cursor of this export",
            "send the text of the last whole cursor line of the export, with the same queue",
        ),
    };
    BadRequest::parameter("cursor", what, hint)
}
