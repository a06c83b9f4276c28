//! Schedules.

use crate::exchange::Call;
use crate::url::{queue_path, schedule_path};
use crate::{Client, ClientError};
use tickwheel_api::{
    DeleteScheduleAnswer, PreviewBody, PreviewQuery, ScheduleBody, ScheduleSpec, SchedulesPage,
    SchedulesQuery, etag,
};

impl Client {
    /// Lays down what is to be done again and again. One that stands like this already is left alone.
    ///
    /// # Errors
    ///
    /// As a problem: 400 for an expression, a zone or a time that cannot be used, 412 if it has another version than `if_match`; see
    /// [`ClientError`].
    pub fn put_schedule(
        &self,
        queue: &str,
        name: &str,
        spec: &ScheduleSpec,
        if_match: Option<u64>,
    ) -> Result<ScheduleBody, ClientError> {
        let call =
            Call::new("PUT", schedule_path(queue, name)).if_match(if_match.map(etag)).json(spec.to_json());
        self.exchange.send(call.twice_is_once())?.body()
    }

    /// Looks at a schedule.
    ///
    /// # Errors
    ///
    /// As a problem: 404 if there is none of this name; see [`ClientError`].
    pub fn schedule(&self, queue: &str, name: &str) -> Result<ScheduleBody, ClientError> {
        self.exchange.send(Call::new("GET", schedule_path(queue, name)))?.body()
    }

    /// Gives a schedule up. The tasks that it has made stay.
    ///
    /// # Errors
    ///
    /// As for [`put_schedule`](Self::put_schedule), and 404 if there is none of this name.
    pub fn delete_schedule(
        &self,
        queue: &str,
        name: &str,
        if_match: Option<u64>,
    ) -> Result<DeleteScheduleAnswer, ClientError> {
        let call = Call::new("DELETE", schedule_path(queue, name)).if_match(if_match.map(etag));
        self.exchange.send(call)?.body()
    }

    /// One page of the schedules of a queue.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn schedules(&self, queue: &str, query: &SchedulesQuery) -> Result<SchedulesPage, ClientError> {
        self.exchange.send(Call::new("GET", queue_path(queue, "schedules")).query(&query.to_query()))?.body()
    }

    /// One page of the schedules of all queues that the token may know of.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn all_schedules(&self, query: &SchedulesQuery) -> Result<SchedulesPage, ClientError> {
        self.exchange.send(Call::new("GET", "/v1/schedules".to_owned()).query(&query.to_query()))?.body()
    }

    /// When a schedule makes its next tasks.
    ///
    /// # Errors
    ///
    /// As for [`schedule`](Self::schedule).
    pub fn preview(&self, queue: &str, name: &str, query: PreviewQuery) -> Result<PreviewBody, ClientError> {
        let path = format!("{}/preview", schedule_path(queue, name));
        self.exchange.send(Call::new("GET", path).query(&query.to_query()))?.body()
    }
}
