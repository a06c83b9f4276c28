//! Which tasks of a queue are meant: by state, due time and tag.

use crate::bad_request::{BadRequest, shown};
use crate::task::TaskState;
use crate::terms::TAG_BYTES_MAX;
use crate::time;

/// Tasks of a queue that have all of these; what is `None` does not matter. All `None`: every task that is not dead.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskFilter {
    /// In this state.
    pub state: Option<TaskState>,
    /// Due then or later, ms since 1970.
    pub due_from_ms: Option<i64>,
    /// Due then or earlier, ms since 1970.
    pub due_to_ms: Option<i64>,
    /// With this tag.
    pub tag: Option<String>,
}

impl TaskFilter {
    /// Whether both ends of the span make sense together.
    pub(crate) fn check(self) -> Result<Self, BadRequest> {
        match (self.due_from_ms, self.due_to_ms) {
            (Some(from), Some(to)) if from > to => Err(BadRequest::parameter(
                "due_to",
                format!("{} is before `due_from`, {}", time::format(to), time::format(from)),
                "both ends belong to the span; leave one of them out for no limit",
            )),
            _ => Ok(self),
        }
    }

    /// The parameters, in order, as a query string has them.
    pub(crate) fn parameters(&self) -> Vec<(&'static str, String)> {
        let Self { state, due_from_ms, due_to_ms, tag } = self;
        let mut parameters = Vec::new();
        parameters.extend(state.map(|state| ("state", state.name().to_owned())));
        parameters.extend(due_from_ms.map(|ms| ("due_from", time::format(ms))));
        parameters.extend(due_to_ms.map(|ms| ("due_to", time::format(ms))));
        parameters.extend(tag.clone().map(|tag| ("tag", tag)));
        parameters
    }

    /// The same filter in one text, to tell it from others.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let parameters = self.parameters();
        parameters.iter().map(|(name, value)| format!("{name}={}:{value};", value.len())).collect()
    }
}

/// An instant: RFC 3339, or whole milliseconds since 1970.
pub(crate) fn instant(name: &'static str, given: &str) -> Result<i64, BadRequest> {
    let digits = !given.is_empty() && given.bytes().all(|b| b.is_ascii_digit());
    if !digits {
        return time::parse(given)
            .map_err(|error| BadRequest::parameter(name, error.to_string(), error.hint()));
    }
    given.parse().ok().filter(|ms| *ms <= time::INSTANT_MS_MAX).ok_or_else(|| {
        BadRequest::parameter(
            name,
            format!("{} is after the year 9999", shown(given)),
            "write RFC 3339, or whole milliseconds since 1970 (not micro- or nanoseconds)",
        )
    })
}

/// A tag to look for.
pub(crate) fn tag(given: &str) -> Result<String, BadRequest> {
    let fits = (1..=TAG_BYTES_MAX).contains(&given.len()) && !given.chars().any(char::is_control);
    if fits {
        return Ok(given.to_owned());
    }
    let what = format!("`{}` is no tag", shown(given));
    let hint = format!("a tag has 1 to {TAG_BYTES_MAX} bytes of UTF-8 without control characters");
    Err(BadRequest::parameter("tag", what, hint))
}
