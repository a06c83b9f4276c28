//! `/v1/queues/{q}/tasks/{key}/story`: what happened to a task, what comes, and why it does not run now.

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{StoryBody, StoryWord};
use tickwheel_queue::GetError;

use crate::access::refusal::Refusal;
use crate::access::tokens::Right;
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;
use crate::service::why;
use crate::translate;
use crate::translate::story;

handlers! {
    GetStory => get,
}

/// `GET`: the story of the live or dead task of this key, or of one that is done.
async fn get(call: Call) -> Result<Response, Refusal> {
    let (caller, queue, key) = (&call.caller, call.queue(), call.key()?);
    let task = match caller.get(translate::get(queue, &key))?.await {
        Ok(task) => task,
        Err(GetError::Done) => return Ok(answer::json(StatusCode::OK, &done())),
        Err(error) => return Err(translate::get_refused(&error, queue, &key).into()),
    };
    let around = caller.queue(Right::Read, queue)?.await?;
    let why = why::why(caller.app.queue.now(), &task, &around);
    let story::Story { events, next, complete } = story::story(&task);
    Ok(answer::json(StatusCode::OK, &StoryBody { events, next, why, complete }))
}

/// The story of a task that is done. The server keeps nothing else of it.
fn done() -> StoryBody {
    let events = vec![story::event(StoryWord::Done, None)];
    StoryBody { events, next: Vec::new(), why: why::DONE.to_owned(), complete: false }
}
