//! On what terms a task is handed out: the members beside time and payload.

use crate::bad_request::{BadRequest, shown};
use crate::json::Members;
use crate::retry::RetryBody;
use crate::{duration, value};
use serde::ser::SerializeMap;
use serde_json::value::RawValue;

/// A task has at most so many tags: a list of words to find it by, not a second payload.
pub const TAGS_MAX: usize = 32;
/// A tag has 1 to 128 bytes.
pub const TAG_BYTES_MAX: usize = 128;
/// A group has 1 to 256 bytes.
pub const GROUP_BYTES_MAX: usize = 256;
/// The priority of a task whose request names none.
pub const PRIORITY_DEFAULT: u32 = 1024;

/// The members of a task that a put takes beside its time and payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// Words to find the task by, at most [`TAGS_MAX`].
    pub tags: Vec<String>,
    /// Of what is ready, smaller goes first; 0 to 4,294,967,295, by default [`PRIORITY_DEFAULT`].
    pub priority: u32,
    /// Tasks of one group share a limit of their queue.
    pub group: Option<String>,
    /// How often and how soon the task is tried again; `None`: for ever, and at once.
    pub retry: Option<RetryBody>,
    /// Given up so many ms after the put, unless a worker has it then or has finished it.
    pub expire_after_ms: Option<u64>,
}

impl Default for Terms {
    fn default() -> Self {
        Self { tags: Vec::new(), priority: PRIORITY_DEFAULT, group: None, retry: None, expire_after_ms: None }
    }
}

/// What a patch changes of a task's [`Terms`]; `None` leaves a member as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TermsPatch {
    /// All tags from now on.
    pub tags: Option<Vec<String>>,
    /// The priority from now on.
    pub priority: Option<u32>,
    /// The group from now on; `null` on the wire is none.
    pub group: Option<Option<String>>,
    /// The retry policy from now on; `null` on the wire is none.
    pub retry: Option<Option<RetryBody>>,
    /// Given up so many ms after the patch; `null` on the wire is never.
    pub expire_after_ms: Option<Option<u64>>,
}

impl Terms {
    pub(crate) fn of(members: &Members<'_>) -> Result<Self, BadRequest> {
        let patch = TermsPatch::of(members)?;
        Ok(Self {
            tags: patch.tags.unwrap_or_default(),
            priority: patch.priority.unwrap_or(PRIORITY_DEFAULT),
            group: patch.group.flatten(),
            retry: patch.retry.flatten(),
            expire_after_ms: patch.expire_after_ms.flatten(),
        })
    }

    /// Writes the members that differ from their defaults.
    pub(crate) fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        if !self.tags.is_empty() {
            map.serialize_entry("tags", &self.tags)?;
        }
        if self.priority != PRIORITY_DEFAULT {
            map.serialize_entry("priority", &self.priority)?;
        }
        if let Some(group) = &self.group {
            map.serialize_entry("group", group)?;
        }
        if let Some(retry) = &self.retry {
            map.serialize_entry("retry", retry)?;
        }
        match self.expire_after_ms {
            Some(ms) => map.serialize_entry("expire_after", &duration::format(ms)),
            None => Ok(()),
        }
    }
}

impl TermsPatch {
    pub(crate) fn of(members: &Members<'_>) -> Result<Self, BadRequest> {
        Ok(Self {
            tags: members.get("tags").map(tags).transpose()?,
            priority: members.get("priority").map(priority).transpose()?,
            group: members.get("group").map(|raw| value::or_null(raw, group)).transpose()?,
            retry: members
                .get("retry")
                .map(|raw| value::or_null(raw, |raw| RetryBody::of("retry", raw)))
                .transpose()?,
            expire_after_ms: members
                .get("expire_after")
                .map(|raw| value::or_null(raw, |raw| value::duration_ms("expire_after", raw)))
                .transpose()?,
        })
    }

    pub(crate) fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        if let Some(tags) = &self.tags {
            map.serialize_entry("tags", tags)?;
        }
        if let Some(priority) = self.priority {
            map.serialize_entry("priority", &priority)?;
        }
        if let Some(group) = &self.group {
            map.serialize_entry("group", group)?;
        }
        if let Some(retry) = &self.retry {
            map.serialize_entry("retry", retry)?;
        }
        match self.expire_after_ms {
            Some(ms) => map.serialize_entry("expire_after", &ms.map(duration::format)),
            None => Ok(()),
        }
    }
}

fn tags(raw: &RawValue) -> Result<Vec<String>, BadRequest> {
    let rows = value::array("tags", raw, "write a list of strings, for example `[\"vip\", \"eu\"]`")?;
    if rows.len() > TAGS_MAX {
        let what = format!("has {} tags; a task takes at most {TAGS_MAX}", rows.len());
        return Err(BadRequest::member("tags", what, "keep what nobody searches for in the payload"));
    }
    let mut tags: Vec<String> = Vec::with_capacity(rows.len());
    for (index, row) in rows.into_iter().enumerate() {
        let path = format!("tags[{index}]");
        let tag = word(&path, row, "vip", TAG_BYTES_MAX)?;
        if tags.contains(&tag) {
            let what = format!("`{}` is given twice", shown(&tag));
            return Err(BadRequest::member(path, what, "leave one of them out"));
        }
        tags.push(tag);
    }
    Ok(tags)
}

fn priority(raw: &RawValue) -> Result<u32, BadRequest> {
    let priority = value::integer("priority", raw, 0..=u64::from(u32::MAX))?;
    Ok(u32::try_from(priority).expect("it is within the limit"))
}

fn group(raw: &RawValue) -> Result<String, BadRequest> {
    word("group", raw, "user:7", GROUP_BYTES_MAX)
}

/// A string of 1 to `max` bytes without control characters.
fn word(path: &str, raw: &RawValue, example: &str, max: usize) -> Result<String, BadRequest> {
    let text = value::text(path, raw, example)?;
    let what = match text.chars().find(|c| c.is_control()) {
        _ if text.is_empty() => "is empty".to_owned(),
        _ if text.len() > max => format!("has {} bytes", text.len()),
        Some(control) => format!("has the control character `{}`", shown(&control.to_string())),
        None => return Ok(text),
    };
    Err(BadRequest::member(path, what, format!("write 1 to {max} bytes of UTF-8 without control characters")))
}
