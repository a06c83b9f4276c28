//! Finding jobs of a tube, and kicking them.

use tickwheel_api::beanstalk::{Reply, Tube, YamlList};
use tickwheel_queue::{
    Act, Acted, ByIdError, Get, Key, List, QueueName, State, TaskCursor, TaskFilter, TaskView,
};

use super::command_error::CommandError;
use super::door::BeanstalkDoor;
use crate::access::tokens::Right;
use crate::base::aside::Steps;

/// The largest number of tasks that are read for one page.
const PAGE: usize = 1_000;
/// The number of times that the first job of a tube may change before the search ends.
const TRIES_MAX: usize = 100;

/// The names of tubes, as text.
pub(super) fn names<'a>(tubes: impl Iterator<Item = &'a Tube>) -> Vec<u8> {
    tubes.fold(YamlList::default(), YamlList::tube).text()
}

pub(super) async fn by_id(door: &BeanstalkDoor, job: u64) -> Result<TaskView, CommandError> {
    match door.caller.by_id(Right::Read, job, Act::Get, None)?.await? {
        Acted::Task(task) => Ok(*task),
        _ => Err(Reply::InternalError.into()),
    }
}

pub(super) async fn by_key(
    door: &BeanstalkDoor,
    queue: &QueueName,
    key: &str,
) -> Result<TaskView, CommandError> {
    let key = Key::new(key).map_err(|_| Reply::NotFound)?;
    Ok(door.caller.get(Get::new(queue, key))?.await?)
}

/// The job that the next reserve would get.
pub(super) async fn first_ready(door: &BeanstalkDoor, queue: &QueueName) -> Result<TaskView, CommandError> {
    for _ in 0..TRIES_MAX {
        let first = door.caller.queue(Right::Read, queue)?.await?.first_ready.ok_or(Reply::NotFound)?;
        match by_id(door, first).await {
            // Another client may have reserved it meanwhile. If so, another job is the next.
            Ok(task) if task.state != State::Ready => {}
            Err(CommandError::Answer(Reply::NotFound)) => {}
            found => return found,
        }
    }
    Err(Reply::NotFound.into())
}

/// The first job of a tube in this state: the delayed one that is due first, or the one that was buried first.
pub(super) async fn first_in(
    door: &BeanstalkDoor,
    queue: &QueueName,
    state: State,
) -> Result<TaskView, CommandError> {
    let mut jobs = Jobs::new(door, queue, state);
    while let Some(page) = jobs.next(1).await? {
        if let Some(first) = page.into_iter().next() {
            return Ok(first);
        }
    }
    Err(Reply::NotFound.into())
}

/// Kicks at most `max` buried jobs; if there are none, at most `max` delayed ones.
pub(super) async fn kick(door: &BeanstalkDoor, queue: &QueueName, max: u64) -> Result<u64, CommandError> {
    let mut steps = Steps::default();
    for state in [State::Dead, State::Scheduled] {
        let (mut kicked, mut any) = (0, false);
        let mut jobs = Jobs::new(door, queue, state);
        while kicked < max
            && let Some(page) = jobs.next(usize::try_from(max - kicked).unwrap_or(PAGE)).await?
        {
            any |= !page.is_empty();
            // All kicks of a page are sent together, so that one commit covers them.
            let wanted = usize::try_from(max - kicked).unwrap_or(usize::MAX);
            let mut asked = Vec::with_capacity(page.len());
            for task in page.into_iter().take(wanted) {
                asked.push(door.caller.by_id(Right::Admin, task.id, Act::Run, None)?);
                steps.did(0).await;
            }
            for asked in asked {
                steps.did(0).await;
                match asked.await {
                    Ok(_) => kicked += 1,
                    Err(ByIdError::Unavailable(why)) => return Err(why.into()),
                    // No other buried job of the tube could be kicked, either.
                    Err(error @ ByIdError::Draining) if kicked == 0 => return Err(error.into()),
                    // Another client may have taken the job before, or the job cannot be kicked.
                    Err(_) => {}
                }
            }
        }
        // Buried and delayed jobs are never kicked together. That holds even if no buried job could be kicked,
        // because another task now has its key.
        if any {
            return Ok(kicked);
        }
    }
    Ok(0)
}

/// The jobs of a tube in one state. The first due comes first; of buried jobs, the first buried.
struct Jobs<'a> {
    door: &'a BeanstalkDoor,
    queue: &'a QueueName,
    state: State,
    /// Where the next page begins; `None`: there is no further page.
    after: Option<Option<TaskCursor>>,
}

impl<'a> Jobs<'a> {
    fn new(door: &'a BeanstalkDoor, queue: &'a QueueName, state: State) -> Self {
        Self { door, queue, state, after: Some(None) }
    }

    /// The next page, which may be empty; `None` after the last.
    async fn next(&mut self, wanted: usize) -> Result<Option<Vec<TaskView>>, CommandError> {
        let Some(after) = self.after.take() else { return Ok(None) };
        let filter = TaskFilter::in_state(self.state);
        let list = List { filter, max: wanted.min(PAGE), after, ..List::new(self.queue) };
        let page = self.door.caller.list(list)?.await?;
        self.after = page.next.map(Some);
        Ok(Some(page.tasks))
    }
}
