//! Finding jobs of a tube, and kicking them.

use tickwheel_api::beanstalk::{Reply, Tube, YamlList};
use tickwheel_queue::{
    Act, Acted, ByIdError, Get, GetError, Key, List, Place, QueueName, State, TaskFilter, TaskView,
};

use super::connection_end::{ConnectionEnd, by_id_refused, unavailable};
use super::door::BeanstalkDoor;
use crate::access::tokens::Right;
use crate::base::aside::Steps;

/// The largest number of tasks that are read for one page.
const PAGE: usize = 1_000;
/// How often the first job of a tube may change before the search ends.
const TRIES_MAX: usize = 100;

/// A task, or the answer instead of it.
type Found = Result<Result<TaskView, Reply<'static>>, ConnectionEnd>;

/// The names of tubes, as text.
pub(super) fn names<'a>(tubes: impl Iterator<Item = &'a Tube>) -> Vec<u8> {
    tubes.fold(YamlList::default(), YamlList::tube).text()
}

pub(super) async fn by_id(door: &BeanstalkDoor, job: u64) -> Found {
    match door.caller.by_id(Right::Read, job, Act::Get)?.await {
        Ok(Acted::Task(task)) => Ok(Ok(*task)),
        Ok(_) => Ok(Err(Reply::InternalError)),
        Err(error) => by_id_refused(&error).map(Err),
    }
}

pub(super) async fn by_key(door: &BeanstalkDoor, queue: &QueueName, key: &str) -> Found {
    let Ok(key) = Key::new(key) else { return Ok(Err(Reply::NotFound)) };
    match door.caller.get(Get::new(queue, key))?.await {
        Ok(task) => Ok(Ok(task)),
        Err(GetError::Unavailable(why)) => unavailable(&why).map(Err),
        Err(_) => Ok(Err(Reply::NotFound)),
    }
}

/// The job that the next reserve would get.
pub(super) async fn first_ready(door: &BeanstalkDoor, queue: &QueueName) -> Found {
    for _ in 0..TRIES_MAX {
        let first = match door.caller.queue(Right::Read, queue)?.await {
            Ok(view) => view.first_ready,
            Err(why) => return unavailable(&why).map(Err),
        };
        let Some(first) = first else { return Ok(Err(Reply::NotFound)) };
        match by_id(door, first).await? {
            // Another client may have reserved it meanwhile; then another job is the next.
            Ok(task) if task.state == State::Ready => return Ok(Ok(task)),
            Ok(_) | Err(Reply::NotFound) => {}
            Err(reply) => return Ok(Err(reply)),
        }
    }
    Ok(Err(Reply::NotFound))
}

/// The delayed job that is due first.
pub(super) async fn first_delayed(door: &BeanstalkDoor, queue: &QueueName) -> Found {
    Jobs::new(door, queue, State::Scheduled).first().await
}

/// The job that was buried first.
pub(super) async fn first_buried(door: &BeanstalkDoor, queue: &QueueName) -> Found {
    Jobs::new(door, queue, State::Dead).first().await
}

/// Kicks at most `max` buried jobs; if there are none, at most `max` delayed ones.
pub(super) async fn kick(
    door: &BeanstalkDoor,
    queue: &QueueName,
    max: u64,
) -> Result<Reply<'static>, ConnectionEnd> {
    let mut steps = Steps::default();
    for state in [State::Dead, State::Scheduled] {
        let (mut kicked, mut any) = (0, false);
        let mut jobs = Jobs::new(door, queue, state);
        while kicked < max
            && let Some(page) = jobs.next(usize::try_from(max - kicked).unwrap_or(PAGE)).await?
        {
            let page = match page {
                Ok(page) => page,
                Err(reply) => return Ok(reply),
            };
            any |= !page.is_empty();
            // All kicks of a page are asked for at once, so that one commit covers them.
            let wanted = usize::try_from(max - kicked).unwrap_or(usize::MAX);
            let mut asked = Vec::with_capacity(page.len());
            for task in page.into_iter().take(wanted) {
                asked.push(door.caller.by_id(Right::Admin, task.id, Act::Run)?);
                steps.did(0).await;
            }
            for asked in asked {
                steps.did(0).await;
                match asked.await {
                    Ok(_) => kicked += 1,
                    Err(ByIdError::Unavailable(why)) => return unavailable(&why),
                    // Another client may have taken the job before, or the job cannot be kicked.
                    Err(_) => {}
                }
            }
        }
        // Buried and delayed jobs are never kicked together. That holds even if no buried job could be kicked because
        // its key is another task's by now.
        if any {
            return Ok(Reply::Kicked(kicked));
        }
    }
    Ok(Reply::Kicked(0))
}

/// The jobs of a tube in one state, the first due first; of buried jobs, the first buried first.
struct Jobs<'a> {
    door: &'a BeanstalkDoor,
    queue: &'a QueueName,
    state: State,
    /// The place after which the next page begins; `None`: there is no further page.
    after: Option<Option<Place>>,
}

impl<'a> Jobs<'a> {
    fn new(door: &'a BeanstalkDoor, queue: &'a QueueName, state: State) -> Self {
        Self { door, queue, state, after: Some(None) }
    }

    /// The next page, which may be empty; `None` after the last.
    async fn next(
        &mut self,
        wanted: usize,
    ) -> Result<Option<Result<Vec<TaskView>, Reply<'static>>>, ConnectionEnd> {
        let Some(after) = self.after.take() else { return Ok(None) };
        let filter = TaskFilter::in_state(self.state);
        match self
            .door
            .caller
            .list(List { filter, max: wanted.min(PAGE), after, ..List::new(self.queue) })?
            .await
        {
            Ok(page) => {
                self.after = page.next.map(Some);
                Ok(Some(Ok(page.tasks)))
            }
            Err(why) => Ok(Some(Err(unavailable(&why)?))),
        }
    }

    async fn first(&mut self) -> Found {
        while let Some(page) = self.next(1).await? {
            match page {
                Ok(tasks) => match tasks.into_iter().next() {
                    Some(first) => return Ok(Ok(first)),
                    None => continue,
                },
                Err(reply) => return Ok(Err(reply)),
            }
        }
        Ok(Err(Reply::NotFound))
    }
}
