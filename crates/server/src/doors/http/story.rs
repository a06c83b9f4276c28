//! `/v1/queues/{q}/tasks/{key}/story`: what happened to a task, what comes, and why it does not run now.

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{AttemptBody, StoryBody, StoryWord};
use tickwheel_queue::GetError;

use crate::access::refusal::Refusal;
use crate::access::tokens::Right;
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;
use crate::service::why;
use crate::translate;
use crate::translate::story::{self, Story};

handlers! {
    GetStory => get,
}

/// `GET`: the story of the live or dead task of this key, or of one that is done.
async fn get(call: Call) -> Result<Response, Refusal> {
    let (caller, queue, key) = (&call.caller, call.queue(), call.key()?);
    let task = match caller.get(translate::get(queue, &key))?.await {
        Ok(task) => Some(task),
        Err(GetError::Done) => None,
        Err(error) => return Err(translate::get_refused(&error, queue, &key).into()),
    };
    let around = caller.queue(Right::Read, queue)?.await?;
    let targets = caller.targets(Right::Read, Some(queue))?;
    let target = around.target.as_deref().map(|record| targets.facts(queue, record, &key, task.as_ref()));
    let ahead_ms = caller.health().clock_offset_ms.max(0).cast_unsigned();
    let (why, story) = match &task {
        Some(task) => (why::why(caller.now(), ahead_ms, task, &around, target.as_ref()), story::story(task)),
        None => (why::done(target.as_ref()), done()),
    };
    let Story { events, next, complete } = story;
    let (target, last_attempt) = target.map(|target| (target.row, target.last_attempt)).unzip();
    // A key may have had another task before.
    let is_of_this = |last: &AttemptBody| task.as_ref().is_none_or(|task| task.id == last.id);
    let last_attempt = last_attempt.flatten().filter(is_of_this);
    Ok(answer::json(StatusCode::OK, &StoryBody { events, next, why, target, last_attempt, complete }))
}

/// The story of a task that is done. The server keeps nothing else of it.
fn done() -> Story {
    Story { events: vec![story::event(StoryWord::Done, None)], next: Vec::new(), complete: false }
}
