//! The queries of the calls about queues and schedules.

use crate::declare::choice::choice;
use crate::declare::query::{Parameters, choice, cursor, number, query};
use crate::queues::schedule::PREVIEW_MAX;
use crate::text::bad_request::{BadRequest, shown};
use crate::values::limits::{
    LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX, QUEUE_NAME_BYTES_MAX, SCHEDULE_NAME_BYTES_MAX,
};

choice! {
    /// The order of a list of schedules.
    #[derive(Default)]
    pub enum ScheduleSort {
        /// By queue, and then by name.
        #[default]
        Name = "name",
        /// By the next instant, the soonest first. Schedules that have none are last.
        Next = "next",
    }
}

query! {
    /// The query of `GET /v1/queues`: `?prefix=&limit=&cursor=`.
    pub struct QueuesQuery {
        /// The beginning of the names of the listed queues: at most 200 bytes of the alphabet of queue names. If it is empty, all queues are listed.
        prefix: String = String::new(), |_, given| queue_prefix(given);
        /// Maximum number of queues on the page: 1 to 1,000; `None`: no limit.
        limit: Option<usize> = None, |name, given| number(name, given, 1..=LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT).map(Some);
        /// The `next_cursor` of the page before.
        cursor: Option<String> = None, |_, given| cursor(given, Self::CURSOR_BYTES_MAX).map(Some);
    }
}

query! {
    /// The query of `GET /v1/schedules`: `?prefix=&name_contains=&sort=name|next&limit=&cursor=`. A list of the schedules of one queue takes `limit` and `cursor` only.
    pub struct SchedulesQuery {
        /// The beginning of the names of the queues: at most 200 bytes of the alphabet of queue names. If it is empty, the schedules of all queues are listed.
        prefix: String = String::new(), |_, given| queue_prefix(given);
        /// A part of the names of the schedules, at most 200 bytes. If it is empty, the schedules of all names are listed.
        name_contains: String = String::new(), part_of_name;
        /// The order of the list.
        sort: ScheduleSort = ScheduleSort::Name, choice;
        /// Maximum number of entries on the page: 1 to 1,000, by default 100.
        limit: usize = LIST_LIMIT_DEFAULT, |name, given| number(name, given, 1..=LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT);
        /// The `next_cursor` of the page before.
        cursor: Option<String> = None, |_, given| cursor(given, Self::CURSOR_BYTES_MAX).map(Some);
    }
}

/// Number of instants in a preview if the request does not say.
const PREVIEW_DEFAULT: usize = 5;

query! {
    /// The query of `GET /v1/queues/{q}/schedules/{name}/preview` and of `POST /v1/schedules/preview`: `?count=`.
    #[derive(Copy)]
    pub struct PreviewQuery {
        /// Number of instants: 1 to 1,000, by default 5.
        count: usize = PREVIEW_DEFAULT, |name, given| number(name, given, 1..=PREVIEW_MAX, PREVIEW_DEFAULT);
    }
}

impl QueuesQuery {
    /// Maximum length of a cursor of this list (bytes).
    pub const CURSOR_BYTES_MAX: usize = 2 * QUEUE_NAME_BYTES_MAX;
}

impl SchedulesQuery {
    /// Maximum length of a cursor (bytes). A cursor of the list of all queues' schedules names a queue, too, and perhaps an instant.
    pub const CURSOR_BYTES_MAX: usize = 18 + 2 * QUEUE_NAME_BYTES_MAX + 1 + 2 * SCHEDULE_NAME_BYTES_MAX;

    /// Reads the query of a list of the schedules of one queue: `?limit=&cursor=`.
    ///
    /// # Errors
    ///
    /// The errors of [`parse`](Self::parse).
    pub fn parse_of_queue(query: &str) -> Result<Self, BadRequest> {
        let of_pages = &Self::NAMES[3..];
        Self::of(&Parameters::read(query, of_pages, &[])?)
    }
}

fn part_of_name(name: &'static str, given: &str) -> Result<String, BadRequest> {
    let max = SCHEDULE_NAME_BYTES_MAX;
    if given.len() <= max {
        return Ok(given.to_owned());
    }
    let hint = format!("a schedule name has at most {max} bytes; write a part of it");
    Err(BadRequest::parameter(name, format!("has {} bytes", given.len()), hint))
}

/// Checks the beginning of a queue's name. A text that no name can begin with is refused, because it would find nothing and is most likely
/// a mistake.
pub(crate) fn queue_prefix(given: &str) -> Result<String, BadRequest> {
    let hint = "a queue name has 1 to 200 bytes of A-Z a-z 0-9 - + / ; . $ _ ( ), and does not begin with -";
    let of_a_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-+/;.$_()".contains(&byte);
    if given.len() > QUEUE_NAME_BYTES_MAX {
        return Err(BadRequest::parameter("prefix", format!("has {} bytes", given.len()), hint));
    }
    if let Some(at) = given.bytes().position(|byte| !of_a_name(byte)) {
        let what = format!("is {} with a character at byte {at} that no queue name has", shown(given));
        return Err(BadRequest::parameter("prefix", what, hint));
    }
    if given.starts_with('-') {
        return Err(BadRequest::parameter("prefix", "begins with -, as no queue name does", hint));
    }
    Ok(given.to_owned())
}
