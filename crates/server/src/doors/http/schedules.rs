//! `/v1/schedules`, `/v1/queues/{q}/schedules` and `/v1/queues/{q}/schedules/{name}` with `preview`.

use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::Response;
use tickwheel_api::{
    BadRequest, DeleteScheduleAnswer, PreviewQuery, Problem, ScheduleGone, ScheduleSpec, SchedulesPage,
    SchedulesQuery,
};
use tickwheel_queue::{
    DeleteSchedule, GetSchedule, ListAllSchedules, ListSchedules, PutSchedule, QueueName, SCHEDULES_PAGE_MAX,
    ScheduleName, ScheduleView,
};

use crate::access::refusal::Refusal;
use crate::base::aside::aside;
use crate::doors::http::answer;
use crate::doors::http::body::JsonBytes;
use crate::doors::http::header::IfMatch;
use crate::doors::http::path::{QueueAt, ScheduleAt};
use crate::doors::http::query::{NoQuery, QueryText};
use crate::service::caller::Caller;
use crate::translate;
use crate::translate::schedule;

/// `PUT`: creates or replaces a schedule. An equal schedule changes nothing.
pub(crate) async fn put(
    caller: Caller,
    at: ScheduleAt,
    _: NoQuery,
    IfMatch(version): IfMatch,
    mut body: JsonBytes,
) -> Result<Response, Refusal> {
    let check = |spec: &ScheduleSpec| spec.payload.check_portable();
    let spec = body.read(caller.app.portable(ScheduleSpec::parse, check)).await?;
    // A time zone that is used for the first time is read from its file, so another thread does it.
    let spec = aside(move || schedule::schedule(spec)).await??;
    let put =
        PutSchedule { if_version: version, ..PutSchedule::new(&at.queue, at.name.clone(), spec.into()) };
    let stored = caller.put_schedule(put)?.await;
    let stored = stored.map_err(|error| schedule::refused(&error, &at.queue, &at.name, version))?;
    let (queue, name, created) = (at.queue.as_str(), at.name.as_str(), stored.created);
    let next = stored.schedule.record.next.map(tracing::field::display);
    tracing::debug!(queue, name, created, next, "a schedule stands");
    let status = if stored.created { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = show(status, &stored.schedule);
    if stored.created {
        response.headers_mut().insert(LOCATION, answer::schedule_path(&at.queue, &at.name));
    }
    Ok(response)
}

/// `GET`: the schedule and its progress.
pub(crate) async fn get(caller: Caller, at: ScheduleAt, _: NoQuery) -> Result<Response, Refusal> {
    Ok(show(StatusCode::OK, &find(&caller, &at).await?))
}

/// `DELETE`: the schedule makes no more tasks; existing tasks stay.
pub(crate) async fn delete(
    caller: Caller,
    at: ScheduleAt,
    _: NoQuery,
    IfMatch(version): IfMatch,
) -> Result<Response, Refusal> {
    let delete = DeleteSchedule { queue: at.queue.clone(), name: at.name.clone(), if_version: version };
    let gone = caller.delete_schedule(delete)?.await;
    gone.map_err(|error| schedule::refused(&error, &at.queue, &at.name, version))?;
    tracing::debug!(queue = at.queue.as_str(), name = at.name.as_str(), "a schedule is deleted");
    Ok(answer::json(StatusCode::OK, &DeleteScheduleAnswer { result: ScheduleGone::Deleted }))
}

/// `GET preview`: the instants of the next tasks.
pub(crate) async fn preview(
    caller: Caller,
    at: ScheduleAt,
    QueryText(query): QueryText,
) -> Result<Response, Refusal> {
    let PreviewQuery { count } = PreviewQuery::parse(&query)?;
    let view = find(&caller, &at).await?;
    // The instants of a rare expression may be far ahead, so another thread computes them.
    let preview = aside(move || schedule::preview(&view, count)).await?;
    let preview = preview.map_err(|error| Problem::internal(format!("{error}; put the schedule anew")))?;
    Ok(answer::json(StatusCode::OK, &preview))
}

/// `GET` on the collection: one page, in the order of the names.
pub(crate) async fn list(
    caller: Caller,
    QueueAt(queue): QueueAt,
    QueryText(query): QueryText,
) -> Result<Response, Refusal> {
    let SchedulesQuery { limit, cursor } = SchedulesQuery::parse(&query)?;
    let after = cursor.map(|text| schedule::read_cursor(&text).ok_or_else(foreign_cursor)).transpose()?;
    // One schedule more than the page shows whether there is another page.
    let list = ListSchedules { queue, after, max: limit + 1 };
    let found = caller.schedules(list)?.await.map_err(|error| translate::unavailable(&error))?;
    let page = &found[..limit.min(found.len())];
    let last = page.last().filter(|_| found.len() > limit);
    let next_cursor = last.map(|last| schedule::cursor(&last.name));
    // There may be 16 MiB of payloads.
    let written = aside(move || {
        let schedules = found.iter().take(limit).map(schedule::schedule_body).collect();
        answer::json_in_pieces(StatusCode::OK, &SchedulesPage { schedules, next_cursor })
    });
    Ok(written.await?)
}

/// `GET` on all queues in the token's scope: one page, in the order of queues and names. Other calls are served
/// between two pages of the engine.
pub(crate) async fn all(caller: Caller, QueryText(query): QueryText) -> Result<Response, Refusal> {
    let SchedulesQuery { limit, cursor } = SchedulesQuery::parse_all(&query)?;
    let after = cursor.map(|text| schedule::read_all_cursor(&text).ok_or_else(foreign_cursor)).transpose()?;
    let found = known(&caller, after, limit + 1).await?;
    let page = &found[..limit.min(found.len())];
    let last = page.last().filter(|_| found.len() > limit);
    let next_cursor = last.map(|last| schedule::all_cursor(&last.queue, &last.name));
    // Here, too, there may be 16 MiB of payloads.
    let written = aside(move || {
        let schedules = found.iter().take(limit).map(schedule::schedule_body).collect();
        answer::json_in_pieces(StatusCode::OK, &SchedulesPage { schedules, next_cursor })
    });
    Ok(written.await?)
}

/// The first `wanted` schedules after a place, whose queues are in the caller's scope.
async fn known(
    caller: &Caller,
    mut after: Option<(QueueName, ScheduleName)>,
    wanted: usize,
) -> Result<Vec<ScheduleView>, Refusal> {
    let max = wanted.min(SCHEDULES_PAGE_MAX);
    let mut found = Vec::new();
    loop {
        let list = ListAllSchedules { after, max };
        let page =
            caller.app.queue.all_schedules(list).await.map_err(|error| translate::unavailable(&error))?;
        after = page.last().map(|last| (last.queue.clone(), last.name.clone()));
        let is_last = page.len() < max;
        let left = wanted - found.len();
        found.extend(page.into_iter().filter(|one| caller.covers(&one.queue)).take(left));
        if is_last || found.len() == wanted {
            return Ok(found);
        }
    }
}

async fn find(caller: &Caller, at: &ScheduleAt) -> Result<ScheduleView, Refusal> {
    let get = GetSchedule { queue: at.queue.clone(), name: at.name.clone() };
    let found = caller.schedule(get)?.await;
    Ok(found.map_err(|error| schedule::refused(&error, &at.queue, &at.name, None))?)
}

fn show(status: StatusCode, view: &ScheduleView) -> Response {
    answer::versioned(status, view.record.version, &schedule::schedule_body(view))
}

fn foreign_cursor() -> BadRequest {
    let hint = "send the `next_cursor` of the page before as it is";
    BadRequest::parameter("cursor", "is not a cursor of this list", hint)
}
