//! The strict reader of query strings. Each known parameter may stand once; unknown parameters are refused by name.

use crate::declare::choice;
use crate::declare::choice::Choice;
use crate::declare::json::list;
use crate::declare::value;
use crate::tasks::filter;
use crate::tasks::filter::TaskFilter;
use crate::tasks::task::TaskState;
use crate::text::bad_request::{BadRequest, nearest, shown};
use crate::text::path::push_encoded;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Maximum number of tasks on a page of a list.
pub const LIST_LIMIT_MAX: usize = 1_000;
/// Number of tasks on a page if the request does not say.
pub(crate) const LIST_LIMIT_DEFAULT: usize = 100;
/// Maximum length of the name of a queue (bytes).
const QUEUE_NAME_BYTES_MAX: usize = 200;
/// Maximum length of the cursor of a list of tasks (bytes).
pub const CURSOR_BYTES_MAX: usize = 256;

/// Declares a query: its parameters, their defaults, readers and writers. Parser and writer follow.
///
/// A reader takes the name of its parameter and the decoded text. A field with a writer is written by it, another one by [`ToText`]. A
/// field in parentheses is a filter, which has several parameters.
macro_rules! query {
    (
        $(#[$attribute:meta])*
        pub struct $Name:ident $(($(#[$what:meta])* $filter:ident: $Filter:ty = $($part:literal),+))? {
            $($(#[$about:meta])* $field:ident $(as $wire:literal)?: $type:ty = $usual:expr, $read:expr $(, $write:expr)?;)*
        }
        $(later: $later:expr;)?
        $(check: $check:expr;)?
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $Name {
            $($(#[$what])* pub $filter: $Filter,)?
            $($(#[$about])* pub $field: $type,)*
        }

        impl Default for $Name {
            fn default() -> Self {
                Self { $($filter: <$Filter>::default(),)? $($field: $usual,)* }
            }
        }

        impl $Name {
            /// The names of the parameters.
            const NAMES: &[&str] = &[$($($part,)+)? $($crate::declare::body::wire_name!($field $($wire)?)),*];

            /// Reads the text after the `?`. An empty text is a query without parameters.
            ///
            /// # Errors
            ///
            /// Unknown and repeated parameters, values that their parameters do not allow, and broken percent-encoding.
            pub fn parse(query: &str) -> Result<Self, $crate::BadRequest> {
                Self::of(&$crate::declare::query::Parameters::read(query, Self::NAMES, $crate::declare::body::list!($($later)?))?)
            }

            fn of(found: &$crate::declare::query::Parameters) -> Result<Self, $crate::BadRequest> {
                let query = Self {
                    $($filter: <$Filter>::of_parameters(found)?,)?
                    $($field: found.read_as($crate::declare::body::wire_name!($field $($wire)?), $read)?.unwrap_or($usual),)*
                };
                $(($check)(&query)?;)?
                Ok(query)
            }

            /// The query as [`parse`](Self::parse) reads it, without the `?`. Defaults are left out.
            #[must_use]
            pub fn to_query(&self) -> String {
                let (mut query, usual) = ($crate::declare::query::Query::default(), Self::default());
                $(self.$filter.parameters().iter().for_each(|(name, text)| query.add(name, text));)?
                $(
                    if self.$field != usual.$field {
                        let text = $crate::declare::query::query!(text &self.$field $(, $write)?);
                        query.add($crate::declare::body::wire_name!($field $($wire)?), &text);
                    }
                )*
                query.text
            }
        }
    };
    (text $value:expr) => { $crate::declare::query::ToText::to_text($value) };
    (text $value:expr, $write:expr) => { ($write)($value) };
}
pub(crate) use query;

choice::choice! {
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

choice::choice! {
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
    /// The query of `GET /v1/queues/{q}/target/attempts`: `?limit=`.
    pub struct AttemptsQuery {
        /// Maximum number of attempts. Default: 100.
        limit: usize = LIST_LIMIT_DEFAULT, |name, given| number(name, given, 1..=LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT);
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
        key: String = String::new(), |name, given| filter::a_word(name, given, filter::KEY_BYTES_MAX);
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
        count: usize = PREVIEW_DEFAULT, |name, given| number(name, given, 1..=crate::PREVIEW_MAX, PREVIEW_DEFAULT);
    }
}

impl QueuesQuery {
    /// Maximum length of a cursor of this list (bytes).
    pub const CURSOR_BYTES_MAX: usize = 2 * QUEUE_NAME_BYTES_MAX;
}

impl SchedulesQuery {
    /// Maximum length of a cursor (bytes). A cursor of the list of all queues' schedules names a queue, too, and perhaps an instant.
    pub const CURSOR_BYTES_MAX: usize =
        18 + 2 * QUEUE_NAME_BYTES_MAX + 1 + 2 * crate::SCHEDULE_NAME_BYTES_MAX;

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
    let max = crate::SCHEDULE_NAME_BYTES_MAX;
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

/// Refuses every parameter, for the endpoints that take none.
///
/// # Errors
///
/// Any parameter. If it was ignored, the caller would believe that it has an effect.
pub fn no_query(query: &str) -> Result<(), BadRequest> {
    Parameters::read(query, &[], &[]).map(|_| ())
}

/// The parameters of a query string, decoded.
pub(crate) struct Parameters {
    found: Vec<(&'static str, String)>,
}

impl Parameters {
    pub(crate) fn read(
        query: &str,
        known: &'static [&'static str],
        later: &[&str],
    ) -> Result<Self, BadRequest> {
        let mut found: Vec<(&'static str, String)> = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name =
                decoded(name).map_err(|what| BadRequest::parameter(shown(name), what, ENCODING_HINT))?;
            let Some(known) = known.iter().find(|known| **known == name) else {
                return Err(unknown(&name, known, later));
            };
            if found.iter().any(|(earlier, _)| earlier == known) {
                return Err(BadRequest::parameter(*known, "is given twice", "leave one of them out"));
            }
            let value = decoded(value).map_err(|what| BadRequest::parameter(*known, what, ENCODING_HINT))?;
            found.push((known, value));
        }
        Ok(Self { found })
    }

    /// The value of a parameter as `read` reads it.
    pub(crate) fn read_as<T>(
        &self,
        name: &'static str,
        read: impl FnOnce(&'static str, &str) -> Result<T, BadRequest>,
    ) -> Result<Option<T>, BadRequest> {
        let found = self.found.iter().find(|(found, _)| *found == name);
        found.map(|(_, value)| read(name, value)).transpose()
    }
}

fn unknown(name: &str, known: &[&str], later: &[&str]) -> BadRequest {
    if later.contains(&name) {
        return BadRequest::parameter(name, "is not supported by this version", "leave it out");
    }
    let hint = match (nearest(name, known), known) {
        (Some(close), _) => format!("did you mean `{close}`?"),
        (None, []) => "leave it out; there are none here".to_owned(),
        (None, _) => format!("there may be {}", list(known)),
    };
    BadRequest::parameter(shown(name), "is not a parameter of this request", hint)
}

pub(crate) fn word<T: Copy>(name: &'static str, given: &str, words: &[(&str, T)]) -> Result<T, BadRequest> {
    let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    words.iter().find(|(word, _)| *word == given).map(|(_, value)| *value).ok_or_else(|| {
        let hint = format!("it may be {}", list(&names).replace(" and ", " or "));
        BadRequest::parameter(name, format!("`{}` is not known", shown(given)), hint)
    })
}

/// Reads one of the words of a choice.
pub(crate) fn choice<T: Choice>(name: &'static str, given: &str) -> Result<T, BadRequest> {
    word(name, given, T::WORDS)
}

/// Reads `true` or `false`.
pub(crate) fn flag(name: &'static str, given: &str) -> Result<bool, BadRequest> {
    word(name, given, &[("true", true), ("false", false)])
}

/// Reads a number in this range. The hint of a refusal names the usual value.
pub(crate) fn number<N: FromStr + Display + PartialOrd>(
    name: &'static str,
    given: &str,
    range: RangeInclusive<N>,
    usual: impl Display,
) -> Result<N, BadRequest> {
    value::digits(given.as_bytes()).filter(|number| range.contains(number)).ok_or_else(|| {
        let what = format!("`{}` is not a number from {} to {}", shown(given), range.start(), range.end());
        BadRequest::parameter(name, what, format!("leave it out for {usual}"))
    })
}

pub(crate) fn cursor(given: &str, bytes_max: usize) -> Result<String, BadRequest> {
    if (1..=bytes_max).contains(&given.len()) {
        return Ok(given.to_owned());
    }
    Err(BadRequest::parameter(
        "cursor",
        format!("has {} bytes, not from 1 to {bytes_max}", given.len()),
        "send the `next_cursor` of the page before as it is, or leave it out for the first page",
    ))
}

const ENCODING_HINT: &str = "write other bytes than letters and digits as `%` and two hex digits, in UTF-8";

/// Decodes percent-encoding. A `%` without two hex digits is refused; `+` is a space, as in HTML forms.
fn decoded(text: &str) -> Result<String, &'static str> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let hex = |byte: Option<u8>| byte.and_then(|b| char::from(b).to_digit(16));
                let (Some(high), Some(low)) = (hex(rest.next()), hex(rest.next())) else {
                    return Err("has a `%` without two hex digits");
                };
                u8::try_from(high * 16 + low).expect("two hex digits are a byte")
            }
            _ => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| "is not UTF-8")
}

/// A parameter whose value can be written as text.
pub(crate) trait ToText {
    /// The text, not yet encoded. A parameter that is written has a value.
    fn to_text(&self) -> String;
}

impl<T: Choice> ToText for T {
    fn to_text(&self) -> String {
        let word = T::WORDS.iter().find(|(_, choice)| choice == self);
        word.map_or_else(String::new, |(word, _)| (*word).to_owned())
    }
}

impl<T: ToText> ToText for Option<T> {
    fn to_text(&self) -> String {
        self.as_ref().map_or_else(String::new, T::to_text)
    }
}

macro_rules! to_text {
    ($($type:ty),*) => {
        $(impl ToText for $type {
            fn to_text(&self) -> String {
                self.to_string()
            }
        })*
    };
}
to_text!(bool, u64, usize, String);

/// Builds a query string.
#[derive(Default)]
pub(crate) struct Query {
    pub(crate) text: String,
}

impl Query {
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        if !self.text.is_empty() {
            self.text.push('&');
        }
        self.text.push_str(name);
        self.text.push('=');
        push_encoded(&mut self.text, value);
    }
}
