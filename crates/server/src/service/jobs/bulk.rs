//! Work on many tasks at once, while the call waits or as a job.

use tickwheel_api::{BULK_MAX, JobBody, Problem, TaskState};
use tickwheel_queue::{Queue, QueueName, Seq, TaskCursor, TaskPage};

use crate::access::producer::Producer;
use crate::access::refusal::Refusal;
use crate::base::aside::Steps;
use crate::service::jobs::keeper::Jobs;
use crate::service::jobs::work::{Found, FoundOnce, Tally, Work};
use crate::service::search::lookup::by_key;
use crate::service::search::sieve::Sieve;
use crate::translate;

/// The number of tasks on a page; their changes are sent together and share commits.
pub(crate) const PAGE: usize = 1_000;

/// The number of pages that a call processes itself, which is about a second of work. A job does the rest.
const PAGES_MAX: usize = 200;

/// The tasks to change, and the change. Only tasks that existed at the start are changed, and no later ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Bulk {
    pub(crate) queue: QueueName,
    pub(crate) work: Work,
    /// The number of the last change before the work began.
    pub(crate) as_of: Option<Seq>,
}

/// The progress of the work: all pages before this position are done.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Position {
    /// The number of the list. A purge goes through two lists, other work through one.
    pub(crate) part: usize,
    /// The cursor in the list `part`.
    pub(crate) after: Option<TaskCursor>,
}

/// One page of the work.
pub(crate) struct Step {
    pub(crate) found: Vec<Found>,
    pub(crate) looked_at: usize,
    /// `None`: there is no further page.
    pub(crate) next: Option<Position>,
}

/// The end of the work, as its caller sees it.
pub(crate) enum Done {
    /// Each task was processed.
    All { matched: u64, tally: Tally },
    /// A job does the work.
    Job(JobBody),
}

impl Bulk {
    pub(crate) fn new(queue: QueueName, work: Work) -> Self {
        Self { queue, work, as_of: None }
    }

    /// Finds the tasks of the page at this position.
    pub(crate) async fn look(&mut self, queue: &Queue, at: Position) -> Result<Step, Problem> {
        let Some(filter) = self.work.filter(at.part) else {
            return Ok(Step { found: Vec::new(), looked_at: 0, next: None });
        };
        let next_part = || {
            let part = at.part + 1;
            self.work.filter(part).map(|_| Position { part, after: None })
        };
        if let Some(found) = by_key(queue, &self.queue, &filter).await? {
            let found: Vec<_> = found.into_iter().filter_map(|task| Found::of(task, &self.work)).collect();
            return Ok(Step { found, looked_at: 1, next: next_part() });
        }
        let mut list = translate::list(&self.queue, &filter, PAGE, at.after);
        list.filter.put_until = self.as_of;
        // A moved task comes later in the list. It must not be moved again there, not even after a restart that does
        // not know that the page was done. Its version shows it: the move raised it above the last change before the
        // work began.
        list.filter.changed_until = self.as_of.filter(|_| self.work.leaves_tasks());
        let page = queue.list(list).await.map_err(|error| translate::unavailable(&error))?;
        let TaskPage { tasks, looked_at, next, as_of, .. } = page;
        let next = next.map(|next| Position { after: Some(next), ..at }).or_else(next_part);
        self.as_of.get_or_insert(as_of);
        let (sieve, mut steps, mut found) = (Sieve::of(&filter), Steps::default(), Vec::new());
        for task in tasks {
            if sieve.passes(&task, &mut steps).await {
                found.extend(Found::of(task, &self.work));
            }
        }
        Ok(Step { found, looked_at, next })
    }

    /// Changes the found tasks, unless it is a dry run.
    pub(crate) async fn act(&self, queue: &Queue, found: &[Found]) -> Result<Tally, Problem> {
        let mut tally = Tally::default();
        match self.act_on(queue, found, &mut tally).await {
            Ok(()) => Ok(tally),
            Err(problem) => Err(self.broken_off(tally.done, problem)),
        }
    }

    /// The same, and `tally` counts what was done before an error, too.
    pub(crate) async fn act_on(
        &self,
        queue: &Queue,
        found: &[Found],
        tally: &mut Tally,
    ) -> Result<(), Problem> {
        if self.work.dry_run() {
            return Ok(());
        }
        for part in found.chunks(PAGE) {
            // The changes are sent together, so that they share commits.
            let (mut asked, mut steps) = (Vec::with_capacity(part.len()), Steps::default());
            for found in part {
                asked.push(self.work.ask(queue, &self.queue, found));
                steps.did(0).await;
            }
            for asked in asked {
                steps.did(0).await;
                asked.count(tally).await?;
            }
        }
        Ok(())
    }

    /// The problem of work that stopped early. Changes that were made before it stay.
    fn broken_off(&self, done: u64, problem: Problem) -> Problem {
        match done {
            0 => problem,
            _ => {
                let what = self.work.action().counted();
                Problem::indeterminate(&format!("{done} tasks were {what}, then: {}", problem.detail))
            }
        }
    }

    /// The number of tasks to look at.
    async fn extent(&self, queue: &Queue) -> Result<u64, Problem> {
        let view = queue.queue(&self.queue).await.map_err(|error| translate::unavailable(&error))?;
        let of_part = |part| match self.work.filter(part).map(|filter| filter.state) {
            Some(Some(TaskState::Dead)) => view.counts.dead,
            Some(_) => view.counts.live(),
            None => 0,
        };
        Ok(of_part(0) + of_part(1))
    }

    /// Does the work while the call waits, or starts a job if there is much to do.
    pub(crate) async fn run(mut self, queue: &Queue, jobs: &Jobs, caller: Producer) -> Result<Done, Refusal> {
        let (mut found, mut next) = (FoundOnce::default(), Some(Position::default()));
        for _ in 0..PAGES_MAX {
            let Some(at) = next.filter(|_| found.tasks().len() <= BULK_MAX) else { break };
            let step = self.look(queue, at).await?;
            found.add(step.found);
            next = step.next;
        }
        let found = found.tasks();
        if next.is_none() && found.len() <= BULK_MAX {
            let tally = self.act(queue, found).await?;
            return Ok(Done::All { matched: found.len() as u64, tally });
        }
        let of = self.extent(queue).await?;
        Ok(Done::Job(jobs.start(caller, self, of).await?))
    }
}
