//! The look-up of a task by its key, for filters that name one.

use tickwheel_api::{Problem, TaskFilter};
use tickwheel_queue::{GetError, Key, Queue, QueueName, TaskView};

use crate::base::aside::Steps;
use crate::service::search::sieve::Sieve;
use crate::translate;

/// The task with the key that the filter names, if the task matches the whole filter. The outer `None`: the filter names no key.
///
/// # Errors
/// The queue cannot be read.
pub(crate) async fn by_key(
    queue: &Queue,
    name: &QueueName,
    filter: &TaskFilter,
) -> Result<Option<Option<TaskView>>, Problem> {
    let Some(key) = &filter.key else { return Ok(None) };
    let key = Key::new(key).map_err(|error| translate::name_refused(&error))?;
    let found = match queue.get(translate::get(name, &key)).await {
        Ok(task) => task,
        Err(GetError::Unavailable(why)) => return Err(translate::unavailable(&why)),
        Err(_) => return Ok(Some(None)),
    };
    let matches = translate::task_filter(filter).matches(&found)
        && Sieve::of(filter).passes(&found, &mut Steps::default()).await;
    Ok(Some(Some(found).filter(|_| matches)))
}
