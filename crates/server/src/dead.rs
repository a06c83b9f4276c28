//! `/v1/queues/{q}/dead` and `/v1/queues/{q}/dead/redrive`: tasks that were given up.

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{
    Problem, REDRIVE_MAX, RedriveAnswer, RedriveBody, RedriveOutcome, TaskFilter, TaskState, no_query,
};
use tickwheel_queue::{Key, Pending, QueueName, RedriveError, State, TaskView};

use crate::answer;
use crate::app::{App, Shared};
use crate::body::JsonBytes;
use crate::path::QueueAt;
use crate::problem::Refusal;
use crate::query::QueryText;
use crate::translate;

/// `POST redrive`: dead tasks get another life, one, some, or all of them.
///
/// All of one call are redriven together; each stands for itself, as the lines of a batch do.
pub(crate) async fn redrive(
    app: Shared,
    QueueAt(queue): QueueAt,
    QueryText(query): QueryText,
    body: JsonBytes,
) -> Result<Response, Refusal> {
    no_query(&query)?;
    let (ids, more) = match RedriveBody::parse(&body)? {
        RedriveBody::Id(id) => return one(&app, &queue, id).await,
        RedriveBody::Key(text) => {
            let key = Key::new(&text).map_err(|error| translate::name_refused(&error))?;
            let id = dead_id(&app, &queue, &key).await?;
            let id = id.ok_or_else(|| Problem::not_dead(queue.as_str(), &format!("the key `{text}`")))?;
            return one(&app, &queue, id).await;
        }
        RedriveBody::Ids(ids) => (ids.into_iter().map(Some).collect(), false),
        RedriveBody::Keys(texts) => {
            let mut ids = Vec::with_capacity(texts.len());
            for text in texts {
                let key = Key::new(&text).map_err(|error| translate::name_refused(&error))?;
                ids.push(dead_id(&app, &queue, &key).await?);
            }
            (ids, false)
        }
        RedriveBody::All => all(&app, &queue).await?,
    };
    // Asked for together, so that they share commits.
    let asked: Vec<Option<Pending<TaskView, RedriveError>>> =
        ids.into_iter().map(|id| Some(app.queue.redrive(translate::redrive(&queue, id?)))).collect();
    let mut results = Vec::with_capacity(asked.len());
    for pending in asked {
        results.push(match pending {
            None => RedriveOutcome::NotFound,
            Some(pending) => translate::redrive_outcome(pending.await.map(drop))?,
        });
    }
    let redriven = results.iter().filter(|result| **result == RedriveOutcome::Redriven).count();
    Ok(answer::json(StatusCode::OK, &RedriveAnswer { matched: results.len(), redriven, results, more }))
}

async fn one(app: &App, queue: &QueueName, id: u64) -> Result<Response, Refusal> {
    let redriven = app.queue.redrive(translate::redrive(queue, id)).await;
    let task = redriven.map_err(|error| translate::redrive_refused(&error, queue, id))?;
    Ok(answer::versioned(StatusCode::OK, task.version, &translate::put_answer(&task)))
}

/// The id of the dead task that this key leads to.
async fn dead_id(app: &App, queue: &QueueName, key: &Key) -> Result<Option<u64>, Problem> {
    match app.queue.get(translate::get(queue, key)).await {
        Ok(task) => Ok(Some(task.id).filter(|_| task.state == State::Dead)),
        Err(tickwheel_queue::GetError::Unavailable(why)) => Err(translate::unavailable(&why)),
        Err(_) => Ok(None),
    }
}

/// The ids of all that are dead, as many as one call takes, and whether there are more.
async fn all(app: &App, queue: &QueueName) -> Result<(Vec<Option<u64>>, bool), Problem> {
    let dead = TaskFilter { state: Some(TaskState::Dead), ..TaskFilter::default() };
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let page = app.queue.list(translate::list(queue, &dead, REDRIVE_MAX, after)).await;
        let page = page.map_err(|error| translate::unavailable(&error))?;
        ids.extend(page.tasks.iter().map(|task| Some(task.id)));
        after = page.next;
        if after.is_none() || ids.len() >= REDRIVE_MAX {
            return Ok((ids, after.is_some()));
        }
    }
}
