//! Jobs of an earlier release, which stored each job as a task in a queue of the server's own.

use tickwheel_api::TaskFilter;
use tickwheel_queue::{
    Cancel, CancelError, ChangeQueue, JobError, Key, Queue, QueueChange, QueueName, TaskView, Unavailable,
};

use crate::access::authorizer::OWN_QUEUE;
use crate::events;
use crate::service::bulk::PAGE;
use crate::service::job::Job;
use crate::translate;

/// The due time of those tasks: the year 2100. All have this one instant, so a list finds them without reading the
/// tasks that are due before.
const DUE_AT_MS: i64 = 4_102_444_800_000;

/// Takes over the jobs of an earlier release. Each task becomes a job with its number, and the task ends when the job
/// is durable. A crash between the two leaves both. The next call then ends the task and keeps the job as it is.
/// Without such tasks nothing happens.
///
/// # Errors
/// The queue cannot be read or written. The next call takes over the remaining jobs.
pub async fn take_over_jobs(queue: &Queue) -> Result<(), JobError> {
    let name = QueueName::new(OWN_QUEUE).expect("a name");
    if queue.queue(&name).await?.counts.live() == 0 {
        return Ok(());
    }
    let kept = queue.jobs().await?;
    for task in tasks(queue, &name).await? {
        let Some(id) = number(&task) else {
            let id = task.id;
            tracing::warn!(
                event = events::JOB_UNREADABLE,
                id,
                "a task is no job, though it stands in the queue of jobs"
            );
            continue;
        };
        if !kept.iter().any(|(known, _)| *known == id) {
            queue.keep_job(id, task.body.payload.as_slice()).await?;
        }
        if let Err(CancelError::Unavailable(why)) = queue.cancel(Cancel::new(&name, task.key)).await {
            return Err(why.into());
        }
    }
    // Lists would otherwise show an empty queue for an hour. A queue that still has a task stays.
    let _refused = queue.change_queue(ChangeQueue { queue: name, change: QueueChange::Delete }).await;
    Ok(())
}

/// The number of the job that the task stands for; `None`: the task is not a job.
fn number(task: &TaskView) -> Option<u64> {
    let id = task.key.as_str().parse().ok().filter(|id| Key::from_id(*id) == task.key)?;
    Job::read(id, &task.body.payload).map(|job| job.body.id)
}

async fn tasks(queue: &Queue, name: &QueueName) -> Result<Vec<TaskView>, Unavailable> {
    let at = Some(DUE_AT_MS);
    let filter = TaskFilter { due_from_ms: at, due_to_ms: at, ..TaskFilter::default() };
    let (mut tasks, mut after) = (Vec::new(), None);
    loop {
        let page = queue.list(translate::list(name, &filter, PAGE, after)).await?;
        tasks.extend(page.tasks);
        after = page.next;
        if after.is_none() {
            return Ok(tasks);
        }
    }
}
