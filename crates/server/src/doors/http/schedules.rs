//! `/v1/schedules`, `/v1/queues/{q}/schedules` and `/v1/queues/{q}/schedules/{name}` with `preview`.

use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::Response;
use tickwheel_api::path::schedule_path;
use tickwheel_api::{
    DeleteScheduleAnswer, PreviewQuery, Problem, ScheduleGone, ScheduleSpec, SchedulesPage, SchedulesQuery,
};
use tickwheel_queue::{
    DeleteSchedule, GetSchedule, ListAllSchedules, ListSchedules, PutSchedule, QueueName, SCHEDULES_PAGE_MAX,
    ScheduleName, ScheduleView,
};

use crate::access::refusal::Refusal;
use crate::base::aside::aside;
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;
use crate::service::caller::Caller;
use crate::translate::cursor::foreign_cursor;
use crate::translate::schedule;

handlers! {
    PutSchedule => put,
    GetSchedule => get,
    DeleteSchedule => delete,
    ListSchedules => list,
    ListAllSchedules => all,
    PreviewSchedule => preview,
}

/// `PUT`: creates or replaces a schedule. An equal schedule changes nothing.
async fn put(mut call: Call) -> Result<Response, Refusal> {
    let (name, version) = (call.schedule_name()?, call.version()?);
    let check = |spec: &ScheduleSpec| spec.payload.check_portable();
    let spec = call.read_portable(ScheduleSpec::parse, check).await?;
    // A time zone that is used for the first time is read from its file. Another thread does this.
    let spec = aside(move || schedule::schedule(spec)).await??;
    let queue = call.queue();
    let put = PutSchedule { if_version: version, ..PutSchedule::new(queue, name.clone(), spec.into()) };
    let stored = call.caller.put_schedule(put)?.await;
    let stored = stored.map_err(|error| schedule::refused(&error, queue, &name, version))?;
    let (created, next) = (stored.created, stored.schedule.record.next.map(tracing::field::display));
    tracing::debug!(queue = queue.as_str(), name = name.as_str(), created, next, "a schedule stands");
    let status = if stored.created { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = show(status, &stored.schedule);
    if stored.created {
        response
            .headers_mut()
            .insert(LOCATION, answer::location(schedule_path(queue.as_str(), name.as_str())));
    }
    Ok(response)
}

/// `GET`: the schedule and its progress.
async fn get(call: Call) -> Result<Response, Refusal> {
    Ok(show(StatusCode::OK, &find(&call.caller, call.queue(), &call.schedule_name()?).await?))
}

/// `DELETE`: the schedule makes no more tasks; existing tasks stay.
async fn delete(call: Call) -> Result<Response, Refusal> {
    let (queue, name, version) = (call.queue(), call.schedule_name()?, call.version()?);
    let delete = DeleteSchedule { queue: queue.clone(), name: name.clone(), if_version: version };
    let gone = call.caller.delete_schedule(delete)?.await;
    gone.map_err(|error| schedule::refused(&error, queue, &name, version))?;
    tracing::debug!(queue = queue.as_str(), name = name.as_str(), "a schedule is deleted");
    Ok(answer::json(StatusCode::OK, &DeleteScheduleAnswer { result: ScheduleGone::Deleted }))
}

/// `GET preview`: the instants of the next tasks.
async fn preview(call: Call) -> Result<Response, Refusal> {
    let (name, PreviewQuery { count }) = (call.schedule_name()?, PreviewQuery::parse(call.query())?);
    let view = find(&call.caller, call.queue(), &name).await?;
    // The instants of a rare expression may be far ahead, so another thread computes them.
    let preview = aside(move || schedule::preview(&view, count)).await?;
    let preview = preview.map_err(|error| Problem::internal(format!("{error}; put the schedule anew")))?;
    Ok(answer::json(StatusCode::OK, &preview))
}

/// `GET` on the collection: one page, in the order of the names.
async fn list(call: Call) -> Result<Response, Refusal> {
    let SchedulesQuery { limit, cursor } = SchedulesQuery::parse(call.query())?;
    let after = cursor.map(|text| schedule::read_cursor(&text).ok_or_else(foreign_cursor)).transpose()?;
    // The query asks for one schedule more than the page shows. It tells whether there is another page.
    let list = ListSchedules { queue: call.queue().clone(), after, max: limit + 1 };
    let found = call.caller.schedules(list)?.await?;
    page(found, limit, |last| schedule::cursor(&last.name)).await
}

/// `GET` on all queues in the token's scope: one page, in the order of queues and names. Other calls are served
/// between two pages of the engine.
async fn all(call: Call) -> Result<Response, Refusal> {
    let SchedulesQuery { limit, cursor } = SchedulesQuery::parse(call.query())?;
    let after = cursor.map(|text| schedule::read_all_cursor(&text).ok_or_else(foreign_cursor)).transpose()?;
    let found = known(&call.caller, after, limit + 1).await?;
    page(found, limit, |last| schedule::all_cursor(&last.queue, &last.name)).await
}

/// The page of the first `limit` schedules; its last one gives the cursor if there are more.
async fn page(
    found: Vec<ScheduleView>,
    limit: usize,
    cursor: fn(&ScheduleView) -> String,
) -> Result<Response, Refusal> {
    // There may be 16 MiB of payloads.
    let written = aside(move || {
        let page = &found[..limit.min(found.len())];
        let next_cursor = page.last().filter(|_| found.len() > limit).map(cursor);
        let schedules = page.iter().map(schedule::schedule_body).collect();
        answer::json_in_pieces(StatusCode::OK, &SchedulesPage { schedules, next_cursor })
    });
    Ok(written.await?)
}

/// The first `wanted` schedules after a cursor whose queues are in the caller's scope.
async fn known(
    caller: &Caller,
    mut after: Option<(QueueName, ScheduleName)>,
    wanted: usize,
) -> Result<Vec<ScheduleView>, Refusal> {
    let max = wanted.min(SCHEDULES_PAGE_MAX);
    let mut found = Vec::new();
    loop {
        let list = ListAllSchedules { after, max };
        let page = caller.app.queue.all_schedules(list).await?;
        after = page.last().map(|last| (last.queue.clone(), last.name.clone()));
        let is_last = page.len() < max;
        let left = wanted - found.len();
        found.extend(page.into_iter().filter(|one| caller.covers(&one.queue)).take(left));
        if is_last || found.len() == wanted {
            return Ok(found);
        }
    }
}

async fn find(caller: &Caller, queue: &QueueName, name: &ScheduleName) -> Result<ScheduleView, Refusal> {
    let found = caller.schedule(GetSchedule { queue: queue.clone(), name: name.clone() })?.await;
    Ok(found.map_err(|error| schedule::refused(&error, queue, name, None))?)
}

fn show(status: StatusCode, view: &ScheduleView) -> Response {
    answer::versioned(status, view.record.version, &schedule::schedule_body(view))
}
