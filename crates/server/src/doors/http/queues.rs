//! `/v1/queues` and `/v1/queues/{q}` with `pause`, `drain` and `resume`.

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{
    BadRequest, DeleteQueueAnswer, PauseBody, Problem, QueueGone, QueuesQuery, SettingsBody, no_body,
};
use tickwheel_queue::{ListQueues, QUEUES_PAGE_MAX, QueueChange, QueueCounts, QueueName, WhichQueues};

use crate::access::refusal::Refusal;
use crate::access::tokens::{Grant, Right};
use crate::base::hex;
use crate::base::pieces::Pieces;
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;
use crate::service::caller::Caller;
use crate::translate;
use crate::translate::cursor::foreign_cursor;
use crate::translate::settings;

handlers! {
    ListQueues => all,
    GetQueue => one,
    PutQueue => put,
    PatchQueue => patch,
    DeleteQueue => delete,
    PauseQueue => pause,
    DrainQueue => drain,
    ResumeQueue => resume,
}

/// `GET`: every queue that has tasks or settings, or had some within the last hour, and its number of tasks in each
/// state. Without a `limit` it lists all queues. In this case, too, only one page of the engine is counted and
/// written at a time, and other calls are served between two pages.
async fn all(call: Call) -> Result<Response, Refusal> {
    let caller = &call.caller;
    let QueuesQuery { prefix, limit, cursor } = QueuesQuery::parse(call.query())?;
    let after = cursor.map(|text| read_cursor(&text).ok_or_else(foreign_cursor)).transpose()?;
    let max = looked_at(limit, caller.grant());
    let list = ListQueues { which: WhichQueues::Listed, prefix: prefix.into(), after, max };
    let mut pages = caller.queues(list)?;
    let mut body = ListedQueues::new(limit);
    while let Some(page) = pages.next().await? {
        if page.iter().map(|counts| body.add(counts)).any(|added| added == Added::Full) {
            break;
        }
    }
    Ok(answer::json_pieces(StatusCode::OK, body.finish()))
}

/// The number of queues in one question to the engine. A token with a scope may see few of many queues, so whole
/// pages are read. Otherwise a page of one queue would need a round through the engine for each queue outside of the
/// scope.
fn looked_at(limit: Option<usize>, grant: &Grant) -> usize {
    let wanted = limit.filter(|_| grant.is_unscoped()).map(|limit| limit + 1);
    wanted.map_or(QUEUES_PAGE_MAX, |wanted| wanted.min(QUEUES_PAGE_MAX))
}

/// The cursor after a page. It is the name in hex, so that each name has one spelling.
fn cursor(name: &QueueName) -> String {
    hex::write(name.as_str().as_bytes())
}

/// The name in a cursor; `None`: the text is not a cursor.
fn read_cursor(text: &str) -> Option<QueueName> {
    QueueName::new(&String::from_utf8(hex::read(text)?).ok()?).ok()
}

/// Whether a page could take one more queue.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Added {
    Yes,
    Full,
}

/// A [`QueuesBody`](tickwheel_api::QueuesBody) that is written queue by queue.
struct ListedQueues {
    json: Pieces,
    /// The number of queues that still fit; `None`: no limit.
    left: Option<usize>,
    last: Option<QueueName>,
    /// Whether there was a further queue that did not fit.
    more: bool,
}

impl ListedQueues {
    fn new(limit: Option<usize>) -> Self {
        let mut json = Pieces::default();
        json.push(b"{\"queues\":[");
        Self { json, left: limit, last: None, more: false }
    }

    fn add(&mut self, counts: &QueueCounts) -> Added {
        if self.left == Some(0) {
            self.more = true;
            return Added::Full;
        }
        if self.last.is_some() {
            self.json.push(b",");
        }
        let counts_of = translate::queue_counts(counts);
        serde_json::to_writer(&mut self.json, &counts_of).expect("plain JSON, and memory takes it");
        self.last = Some(counts.queue.clone());
        self.left = self.left.map(|left| left - 1);
        Added::Yes
    }

    fn finish(mut self) -> Pieces {
        self.json.push(b"],\"next_cursor\":");
        let next = self.last.filter(|_| self.more).map(|last| cursor(&last));
        serde_json::to_writer(&mut self.json, &next).expect("plain JSON, and memory takes it");
        self.json.push(b"}");
        self.json
    }
}

/// `GET` on one queue: its counts and settings. A queue appears on first use, so a queue that was never used has no
/// tasks and is not an error; the answer says that it does not exist.
async fn one(call: Call) -> Result<Response, Refusal> {
    show(&call.caller, call.queue(), Right::Read).await
}

/// `PUT` on one queue: replaces all settings.
async fn put(mut call: Call) -> Result<Response, Refusal> {
    let mut body = call.json().await?;
    if body.trim_ascii().is_empty() {
        // A missing body would reset every setting to its default.
        let hint = "send the settings as they are to be; `{}` gives all of them their defaults";
        return Err(BadRequest::body("is empty", hint).into());
    }
    let settings = settings::settings(body.read(SettingsBody::parse).await?);
    let _one_by_one = call.app().admission.settings().lock().await;
    call.targets(Right::Admin)?.check_settings(call.queue(), &settings).await?;
    change(&call.caller, call.queue(), QueueChange::Settings(settings)).await
}

/// `PATCH` on one queue: changes the named settings. No other change comes between the read and the write.
async fn patch(mut call: Call) -> Result<Response, Refusal> {
    let mut body = call.json().await?;
    let _one_by_one = call.app().admission.settings().lock().await;
    let view = call.caller.queue(Right::Admin, call.queue())?.await?;
    let before = settings::queue_body(&view).settings;
    let settings = body.read(move |bytes| before.patched(bytes)).await?;
    let settings = settings::settings(settings);
    call.targets(Right::Admin)?.check_settings(call.queue(), &settings).await?;
    change(&call.caller, call.queue(), QueueChange::Settings(settings)).await
}

/// `DELETE` on an empty queue: removes its settings and takes it off the list.
async fn delete(call: Call) -> Result<Response, Refusal> {
    let queue = call.queue();
    let _one_by_one = call.app().admission.settings().lock().await;
    let deleted = async {
        let deleted = call.caller.change_queue(settings::change(queue, QueueChange::Delete))?.await;
        Ok::<_, Refusal>(deleted.map_err(|error| settings::change_refused(&error, queue))?)
    };
    call.targets(Right::Admin)?.delete_queue(queue, deleted).await?;
    Ok(answer::json(StatusCode::OK, &DeleteQueueAnswer { result: QueueGone::Deleted }))
}

/// `POST pause`: no task is leased.
async fn pause(mut call: Call) -> Result<Response, Refusal> {
    let PauseBody { for_ms: ms } = call.read(PauseBody::parse).await?;
    change(&call.caller, call.queue(), QueueChange::Pause { ms }).await
}

/// `POST drain`: no task is added.
async fn drain(mut call: Call) -> Result<Response, Refusal> {
    call.read(no_body).await?;
    change(&call.caller, call.queue(), QueueChange::Drain).await
}

/// `POST resume`: ends a pause and a drain.
async fn resume(mut call: Call) -> Result<Response, Refusal> {
    call.read(no_body).await?;
    change(&call.caller, call.queue(), QueueChange::Resume).await
}

/// Changes a queue and shows it.
async fn change(caller: &Caller, queue: &QueueName, change: QueueChange) -> Result<Response, Refusal> {
    let changed = caller.change_queue(settings::change(queue, change))?.await;
    changed.map_err(|error| settings::change_refused(&error, queue))?;
    // The change is made, even if the queue cannot be shown.
    show(caller, queue, Right::Admin)
        .await
        .map_err(|_| Problem::indeterminate("the queue cannot be read after the change").into())
}

async fn show(caller: &Caller, queue: &QueueName, right: Right) -> Result<Response, Refusal> {
    let view = caller.queue(right, queue)?.await?;
    Ok(answer::json(StatusCode::OK, &settings::queue_body(&view)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::tokens::Tokens;

    #[test]
    fn a_token_with_a_scope_looks_at_whole_pages() {
        let tokens = Tokens::parse("scoped scope=z\nunscoped").expect("tokens");
        let grant = |token: &str| tokens.grant(token.as_bytes()).expect("it is known");
        assert_eq!(looked_at(Some(1), &grant("scoped")), QUEUES_PAGE_MAX);
        assert_eq!(looked_at(Some(1), &grant("unscoped")), 2, "one more tells whether there is another page");
        assert_eq!(looked_at(Some(QUEUES_PAGE_MAX), &grant("unscoped")), QUEUES_PAGE_MAX);
        assert_eq!(looked_at(None, &Grant::everything()), QUEUES_PAGE_MAX);
    }
}
