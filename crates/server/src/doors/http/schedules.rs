//! `/v1/schedules` with `preview`, `/v1/queues/{q}/schedules` and `/v1/queues/{q}/schedules/{name}` with `preview`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::Response;
use tickwheel_api::path::schedule_path;
use tickwheel_api::{
    Answer, DeleteScheduleAnswer, PreviewBody, PreviewQuery, ScheduleGone, ScheduleSort, ScheduleSpec,
    SchedulesPage, SchedulesQuery,
};
use tickwheel_queue::{
    DeleteSchedule, GetSchedule, ListAllSchedules, ListSchedules, PutSchedule, QueueName, SCHEDULES_PAGE_MAX,
    ScheduleName, ScheduleView,
};

use crate::access::refusal::Refusal;
use crate::base::aside::aside;
use crate::base::others::let_others;
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;
use crate::service::caller::Caller;
use crate::service::reads::ScheduleId as Id;
use crate::translate::cursor::foreign_cursor;
use crate::translate::schedule::{self, NextPlace};

handlers! {
    PutSchedule => put,
    GetSchedule => get,
    DeleteSchedule => delete,
    ListSchedules => list,
    ListAllSchedules => all,
    PreviewSchedule => preview,
    PreviewUnstored => preview_unstored,
}

/// `PUT`: creates or replaces a schedule. An equal schedule changes nothing.
async fn put(mut call: Call) -> Result<Response, Refusal> {
    let (name, version) = (call.schedule_name()?, call.version()?);
    let check = |spec: &ScheduleSpec| spec.payload.check_portable();
    let spec = call.read_portable(ScheduleSpec::parse, check).await?;
    // A time zone that is used for the first time is read from its file. Another thread does this.
    let spec = aside(move || schedule::schedule(spec)).await??;
    let queue = call.queue();
    let scope = call.caller.grant().shared_scope();
    let put =
        PutSchedule { if_version: version, scope, ..PutSchedule::new(queue, name.clone(), spec.into()) };
    let stored = call.caller.put_schedule(put)?.await;
    let stored = stored.map_err(|error| schedule::refused(&error, queue, &name, version))?;
    let (created, next) = (stored.created, stored.schedule.record.next.map(tracing::field::display));
    tracing::debug!(queue = queue.as_str(), name = name.as_str(), created, next, "a schedule stands");
    let status = if stored.created { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = show(status, &stored.schedule, call.caller.lax_json());
    if stored.created {
        response
            .headers_mut()
            .insert(LOCATION, answer::location(schedule_path(queue.as_str(), name.as_str())));
    }
    Ok(response)
}

/// `GET`: the schedule and its progress.
async fn get(call: Call) -> Result<Response, Refusal> {
    let view = find(&call.caller, call.queue(), &call.schedule_name()?).await?;
    Ok(show(StatusCode::OK, &view, call.caller.lax_json()))
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
    let preview = aside(move || schedule::preview(&view.record, view.name.as_str(), count)).await?;
    Ok(answer::json(StatusCode::OK, &preview))
}

/// `POST preview`: the instants of a schedule that is not stored, as if it was put now.
async fn preview_unstored(mut call: Call) -> Result<Response, Refusal> {
    let PreviewQuery { count } = PreviewQuery::parse(call.query())?;
    let check = |spec: &ScheduleSpec| spec.payload.check_portable();
    let spec = call.read_portable(ScheduleSpec::parse, check).await?;
    let caller = call.caller.clone();
    // As with a stored one, the time zone is read and the instants are computed by another thread.
    let preview = aside(move || -> Result<PreviewBody, Refusal> {
        let schedule = schedule::schedule(spec)?;
        let record = caller.as_if_put(schedule.into()).map_err(|error| schedule::unfit(&error))?;
        Ok(schedule::preview(&record, "", count))
    });
    Ok(answer::json(StatusCode::OK, &preview.await??))
}

/// `GET` on the collection: one page, in the order of the names.
async fn list(call: Call) -> Result<Response, Refusal> {
    let SchedulesQuery { limit, cursor, .. } = SchedulesQuery::parse_of_queue(call.query())?;
    let after = cursor.map(|text| schedule::read_cursor(&text).ok_or_else(foreign_cursor)).transpose()?;
    // The query asks for one schedule more than the page shows. It tells whether there is another page.
    let list = ListSchedules { queue: call.queue().clone(), after, max: limit + 1 };
    let found = call.caller.schedules(list)?.await?;
    page(found, limit, call.caller.lax_json(), |last| schedule::cursor(&last.name)).await
}

/// `GET` on all queues in the token's scope: one page, in the order of queues and names, or of next instants. Other
/// calls are served between two pages of the engine.
async fn all(call: Call) -> Result<Response, Refusal> {
    let SchedulesQuery { prefix, name_contains, sort, limit, cursor } = SchedulesQuery::parse(call.query())?;
    let of = Listed { caller: &call.caller, prefix: prefix.into(), name_contains };
    match sort {
        ScheduleSort::Name => {
            let read = |text: String| schedule::read_all_cursor(&text).ok_or_else(foreign_cursor);
            let found = of.first(cursor.map(read).transpose()?, limit + 1).await?;
            page(found, limit, call.caller.lax_json(), |last| schedule::all_cursor(&last.queue, &last.name))
                .await
        }
        ScheduleSort::Next => {
            let read = |text: String| NextPlace::read(&text).ok_or_else(foreign_cursor);
            let found = of.soonest(cursor.map(read).transpose()?, limit + 1).await?;
            page(found, limit, call.caller.lax_json(), |last| NextPlace::of(last).cursor()).await
        }
    }
}

/// The page of the first `limit` schedules; its last one gives the cursor if there are more.
async fn page(
    found: Vec<ScheduleView>,
    limit: usize,
    lax: bool,
    cursor: fn(&ScheduleView) -> String,
) -> Result<Response, Refusal> {
    // There may be 16 MiB of payloads.
    let written = aside(move || {
        let page = &found[..limit.min(found.len())];
        let next_cursor = page.last().filter(|_| found.len() > limit).map(cursor);
        let schedules = page.iter().map(schedule::schedule_body).collect();
        let body = SchedulesPage { schedules, next_cursor };
        answer::json_in_pieces(StatusCode::OK, &Answer { body, lax })
    });
    Ok(written.await?)
}

/// The schedules that a list shows: those in the caller's scope that its query names.
struct Listed<'a> {
    caller: &'a Caller,
    /// The beginning of the names of the queues.
    prefix: Arc<str>,
    /// A part of the names of the schedules.
    name_contains: String,
}

impl Listed<'_> {
    fn shows(&self, one: &ScheduleView) -> bool {
        one.name.as_str().contains(&self.name_contains)
    }

    /// A page of the engine with schedules that the list may not show, and the place of the next page.
    async fn page(&self, after: Option<Id>, max: usize) -> Result<(Vec<ScheduleView>, Option<Id>), Refusal> {
        let list = ListAllSchedules { prefix: Arc::clone(&self.prefix), after, max };
        let found = self.caller.all_schedules(list).await?;
        // Awaiting a page that is ready at once does not yield, so this call does.
        let_others().await;
        Ok(found)
    }

    /// The first `wanted` schedules after a cursor.
    async fn first(&self, mut after: Option<Id>, wanted: usize) -> Result<Vec<ScheduleView>, Refusal> {
        let mut found = Vec::new();
        loop {
            let (page, next) = self.page(after, wanted.min(SCHEDULES_PAGE_MAX)).await?;
            let left = wanted - found.len();
            found.extend(page.into_iter().filter(|one| self.shows(one)).take(left));
            if next.is_none() || found.len() == wanted {
                return Ok(found);
            }
            after = next;
        }
    }

    /// The `wanted` schedules after a cursor that are next. No more than these are kept at any time, though all
    /// schedules are looked at.
    async fn soonest(&self, after: Option<NextPlace>, wanted: usize) -> Result<Vec<ScheduleView>, Refusal> {
        let mut soonest = BTreeMap::new();
        let mut next = None;
        loop {
            let (page, more) = self.page(next, SCHEDULES_PAGE_MAX).await?;
            for one in page.into_iter().filter(|one| self.shows(one)) {
                let place = NextPlace::of(&one);
                if after.as_ref().is_some_and(|after| place <= *after) {
                    continue;
                }
                soonest.insert(place, one);
                if soonest.len() > wanted {
                    soonest.pop_last();
                }
            }
            if more.is_none() {
                return Ok(soonest.into_values().collect());
            }
            next = more;
        }
    }
}

async fn find(caller: &Caller, queue: &QueueName, name: &ScheduleName) -> Result<ScheduleView, Refusal> {
    let found = caller.schedule(GetSchedule { queue: queue.clone(), name: name.clone() })?.await;
    Ok(found.map_err(|error| schedule::refused(&error, queue, name, None))?)
}

fn show(status: StatusCode, view: &ScheduleView, lax: bool) -> Response {
    let body = Answer { body: schedule::schedule_body(view), lax };
    answer::versioned(status, view.record.version, &body)
}
