//! Schedules.

use hyper::Method;
use tickwheel_api::path::{queue_path, schedule_path};
use tickwheel_api::{
    DeleteScheduleAnswer, PreviewBody, PreviewQuery, ScheduleBody, ScheduleSpec, SchedulesPage,
    SchedulesQuery,
};

use crate::call::{Request, calls};

calls! {
    /// Creates or replaces a schedule. A schedule that is equal already does not change.
    ///
    /// # Errors
    ///
    /// As a problem: 400 for an expression, a zone or a time that cannot be used, 412 if the schedule has another version than
    /// `if_match`; see [`ClientError`](crate::ClientError).
    fn put_schedule(queue: &str, name: &str, spec: &ScheduleSpec, if_match: Option<u64>) -> ScheduleBody {
        let request = Request::new(Method::PUT, schedule_path(queue, name)).if_match(if_match);
        request.json(spec.to_json()).safe_to_repeat().answer()
    }

    /// Returns a schedule.
    ///
    /// # Errors
    ///
    /// As a problem: 404 if there is no schedule with this name; see [`ClientError`](crate::ClientError).
    fn schedule(queue: &str, name: &str) -> ScheduleBody { Request::get(schedule_path(queue, name)).answer() }

    /// Deletes a schedule. The tasks that it has made stay.
    ///
    /// # Errors
    ///
    /// As for [`put_schedule`](Self::put_schedule), and 404 if there is no schedule with this name.
    fn delete_schedule(queue: &str, name: &str, if_match: Option<u64>) -> DeleteScheduleAnswer {
        Request::new(Method::DELETE, schedule_path(queue, name)).if_match(if_match).answer()
    }

    /// One page of the schedules of a queue. Of the query it takes `limit` and `cursor`.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn schedules(queue: &str, query: &SchedulesQuery) -> SchedulesPage {
        Request::get(queue_path(queue, "schedules")).query(&query.to_query()).answer()
    }

    /// One page of the schedules of all queues in the scope of the token, by name or by their next instants.
    ///
    /// # Errors
    ///
    /// See [`ClientError`](crate::ClientError).
    fn all_schedules(query: &SchedulesQuery) -> SchedulesPage {
        Request::get("/v1/schedules").query(&query.to_query()).answer()
    }

    /// The instants of the next tasks of a schedule.
    ///
    /// # Errors
    ///
    /// As for [`schedule`](Self::schedule).
    fn preview(queue: &str, name: &str, query: PreviewQuery) -> PreviewBody {
        Request::get(format!("{}/preview", schedule_path(queue, name))).query(&query.to_query()).answer()
    }

    /// The instants of a schedule that is not stored, as if it was put now. Nothing is stored.
    ///
    /// # Errors
    ///
    /// As a problem: 400 for an expression, a zone or a time that cannot be used; see [`ClientError`](crate::ClientError).
    fn preview_unstored(spec: &ScheduleSpec, query: PreviewQuery) -> PreviewBody {
        let request = Request::new(Method::POST, "/v1/schedules/preview").query(&query.to_query());
        request.json(spec.to_json()).safe_to_repeat().answer()
    }
}
