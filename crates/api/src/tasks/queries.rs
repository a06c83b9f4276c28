//! The queries of the calls about tasks.

use crate::declare::choice::choice;
use crate::declare::query::{Parameters, choice, cursor, flag, number, query};
use crate::tasks::filter::{self, TaskFilter};
use crate::tasks::task::TaskState;
use crate::text::bad_request::BadRequest;
use crate::values::limits::{CURSOR_BYTES_MAX, KEY_BYTES_MAX, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX};

choice! {
    /// The rule of a put for a live task with the same key.
    #[derive(Default)]
    pub enum PutMode {
        /// The put replaces the live task, or adds a new one.
        #[default]
        Upsert = "upsert",
        /// The put adds a task. If there is a live one, the answer is 409.
        Create = "create",
        /// The put replaces the live task. If there is none, the answer is 404.
        Replace = "replace",
        /// As `upsert`; but `max_wait` in the body limits the due time: the task is due at the latest this long after the first of the puts that are debounced together.
        Debounce = "debounce",
    }
}

query! {
    /// The query of `PUT /v1/queues/{q}/tasks/{key}`: `?mode=upsert|create|replace|debounce&revoke=true|false`.
    #[derive(Copy)]
    pub struct PutQuery {
        /// The rule for a live task with the same key.
        mode: PutMode = PutMode::Upsert, choice;
        /// Whether a leased task is taken from its worker.
        revoke: bool = false, flag;
    }
}

query! {
    /// The query of `PATCH` and `DELETE /v1/queues/{q}/tasks/{key}`: `?revoke=true|false`.
    #[derive(Copy)]
    pub struct RevokeQuery {
        /// Whether a leased task is taken from its worker.
        revoke: bool = false, flag;
    }
}

query! {
    /// The query of `GET /v1/queues/{q}/tasks`: `?state=&due_from=&due_to=&tag=&group=&key=&key_contains=&limit=&cursor=&payloads=`.
    pub struct ListQuery(
        /// The tasks to list. The span of due times includes both its ends; on the wire they are RFC 3339 or milliseconds since 1970.
        filter: TaskFilter = "state", "due_from", "due_to", "tag", "group", "key", "key_contains"
    ) {
        /// Maximum number of entries on the page: 1 to 1,000, by default 100.
        limit: usize = LIST_LIMIT_DEFAULT, |name, given| number(name, given, 1..=LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT);
        /// The `next_cursor` of the page before: 1 to 256 bytes, whose meaning only the server knows.
        cursor: Option<String> = None, |_, given| cursor(given, CURSOR_BYTES_MAX).map(Some);
        /// Whether the tasks have their payloads and timelines.
        payloads: bool = true, flag;
    }
}

impl ListQuery {
    /// The names of the parameters of a list of dead tasks.
    #[rustfmt::skip]
    const NAMES_OF_DEAD: &[&str] = &[
        "due_from", "due_to", "tag", "group", "key", "key_contains", "reason", "failure", "group_id",
        "limit", "cursor", "payloads",
    ];

    /// Reads the query of a list of dead tasks: `?due_from=&due_to=&tag=&group=&key=&key_contains=&reason=&failure=&group_id=&limit=&cursor=&payloads=`.
    ///
    /// # Errors
    ///
    /// The errors of [`parse`](Self::parse).
    pub fn parse_dead(query: &str) -> Result<Self, BadRequest> {
        let mut list = Self::of(&Parameters::read(query, Self::NAMES_OF_DEAD, &[])?)?;
        list.filter.state = Some(TaskState::Dead);
        Ok(list)
    }
}

query! {
    /// The query of `GET /v1/tasks`: `?key=`.
    pub struct TasksQuery {
        /// The key to look for in all queues: 1 to 256 bytes without control characters.
        key: String = String::new(), |name, given| filter::a_word(name, given, KEY_BYTES_MAX);
    }
    check: |query: &Self| query.check();
}

impl TasksQuery {
    fn check(&self) -> Result<(), BadRequest> {
        if !self.key.is_empty() {
            return Ok(());
        }
        let hint = "write the key to look for: GET /v1/tasks?key=order:1";
        Err(BadRequest::parameter("key", "is missing", hint))
    }
}
