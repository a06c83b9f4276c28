//! `/v1/queues/{q}/dead/groups` and `/v1/queues/{q}/dead/redrive`: dead tasks.

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{
    Problem, REDRIVE_MAX, RedriveAnswer, RedriveBody, RedriveOutcome, TaskFilter, TaskState, no_query,
};
use tickwheel_queue::{GetError, Key, Pending, QueueName, RedriveError, State, TaskView};

use crate::access::refusal::Refusal;
use crate::access::tokens::Right;
use crate::base::aside::Steps;
use crate::doors::http::answer;
use crate::doors::http::bulk;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;
use crate::service::caller::Caller;
use crate::service::jobs::work::{Redriving, Work};
use crate::translate;

handlers! {
    DeadGroups => grouped,
    Redrive => redrive,
}

/// The largest number of pages that a call for all tasks reads. With millions of tasks this takes some seconds.
const PAGES_MAX: usize = 1_000;

/// `GET groups`: the newest dead tasks, grouped by their causes of death.
async fn grouped(call: Call) -> Result<Response, Refusal> {
    no_query(call.query())?;
    let (caller, queue) = (&call.caller, call.queue());
    Ok(answer::json(StatusCode::OK, &caller.dead_groups(queue).await?))
}

/// `POST redrive`: redrives one, some, or all dead tasks.
///
/// The tasks of one call are redriven together. Each has its own result, as the lines of a batch have.
async fn redrive(mut call: Call) -> Result<Response, Refusal> {
    let body = call.read(RedriveBody::parse).await?;
    let (caller, queue) = (&call.caller, call.queue());
    // A caller that may redrive tasks may also look them up.
    caller.may(Right::Admin, queue)?;
    let mut steps = Steps::default();
    let (ids, more, keyless) = match body {
        RedriveBody::Id(id) => return one(caller, queue, id).await,
        RedriveBody::Filter { filter, dry_run } => {
            let begun = caller.now();
            let work = Work::Redrive(Redriving { filter, dry_run, begun });
            return bulk::run(caller, Right::Admin, queue, work).await;
        }
        RedriveBody::Key(text) => {
            let key = Key::new(&text).map_err(|error| translate::name_refused(&error))?;
            let id = dead_id(caller.get_for(Right::Admin, translate::get(queue, &key))?.await)?;
            let id = id.ok_or_else(|| Problem::not_dead(queue.as_str(), &format!("the key `{text}`")))?;
            return one(caller, queue, id).await;
        }
        RedriveBody::Ids(ids) => (ids.into_iter().map(Some).collect(), false, 0),
        RedriveBody::Keys(texts) => {
            let keys = texts.iter().map(|text| Key::new(text));
            let keys: Vec<Key> =
                keys.collect::<Result<_, _>>().map_err(|error| translate::name_refused(&error))?;
            // The look-ups are asked for together.
            let mut found = Vec::with_capacity(keys.len());
            for key in &keys {
                found.push(caller.get_for(Right::Admin, translate::get(queue, key))?);
                steps.did(0).await;
            }
            let mut ids = Vec::with_capacity(found.len());
            for pending in found {
                ids.push(dead_id(pending.await)?);
                steps.did(0).await;
            }
            (ids, false, 0)
        }
        RedriveBody::All => all(caller, queue).await?,
    };
    // The redrives are sent together, so that they share commits.
    let mut asked: Vec<Option<Pending<TaskView, RedriveError>>> = Vec::with_capacity(ids.len());
    for id in ids {
        asked.push(id.map(|id| caller.redrive(translate::redrive(queue, id))).transpose()?);
        steps.did(0).await;
    }
    let mut results = Vec::with_capacity(asked.len());
    for pending in asked {
        results.push(match pending {
            None => RedriveOutcome::NotFound,
            Some(pending) => translate::redrive_outcome(pending.await.map(drop))?,
        });
        steps.did(0).await;
    }
    let redriven = results.iter().filter(|result| **result == RedriveOutcome::Redriven).count();
    Ok(answer::json(
        StatusCode::OK,
        &RedriveAnswer { matched: results.len(), redriven, results, more, keyless },
    ))
}

async fn one(caller: &Caller, queue: &QueueName, id: u64) -> Result<Response, Refusal> {
    let redriven = caller.redrive(translate::redrive(queue, id))?.await;
    let task = redriven.map_err(|error| translate::redrive_refused(&error, queue, id))?;
    Ok(answer::versioned(StatusCode::OK, task.version, &translate::put_answer(&task)))
}

/// The id of the task that a key found, if the task is dead.
fn dead_id(found: Result<TaskView, GetError>) -> Result<Option<u64>, Refusal> {
    match found {
        Ok(task) => Ok(Some(task.id).filter(|_| task.state == State::Dead)),
        Err(GetError::Unavailable(why)) => Err(translate::unavailable(&why).into()),
        Err(_) => Ok(None),
    }
}

/// The ids of dead tasks that still own their keys, at most as many as one call takes; whether there may be more; and
/// the number of dead tasks that were left out, because later tasks took their keys.
///
/// If a live task has the key of a dead one, its redrive would be refused. Otherwise each call would name such tasks,
/// and they would hide the others.
async fn all(caller: &Caller, queue: &QueueName) -> Result<(Vec<Option<u64>>, bool, usize), Refusal> {
    let dead = TaskFilter { state: Some(TaskState::Dead), ..TaskFilter::default() };
    let (mut ids, mut keyless, mut after) = (Vec::new(), 0, None);
    for _ in 0..PAGES_MAX {
        let page = caller
            .list_for(Right::Admin, translate::list(queue, &dead, REDRIVE_MAX - ids.len(), after))?
            .await?;
        let has_key = |task: &&TaskView| task.extra.dead.is_some_and(|dead| !dead.keyless);
        let (keyed, others): (Vec<_>, Vec<_>) = page.tasks.iter().partition(has_key);
        ids.extend(keyed.iter().map(|task| Some(task.id)));
        keyless += others.len();
        after = page.next;
        if after.is_none() || ids.len() >= REDRIVE_MAX {
            break;
        }
    }
    Ok((ids, after.is_some(), keyless))
}
