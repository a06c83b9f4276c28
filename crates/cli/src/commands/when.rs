//! Options for the due time of a task.

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::value::RawValue;
use tickwheel_api::{Due, MomentBody, PutBody};

use super::payload::text_of;
use crate::values;

/// One time, or a timeline.
#[derive(Args, Debug)]
#[group(multiple = false)]
pub(super) struct When {
    /// The time from now until the task is due, such as 250ms, 30m, 1h30m or 15d
    #[arg(long = "in", value_name = "DURATION", value_parser = values::delay, allow_hyphen_values = true)]
    delay_ms: Option<u64>,
    /// Due at this time, RFC 3339 or milliseconds since 1970
    #[arg(long = "at", value_name = "TIME", value_parser = values::instant, allow_hyphen_values = true)]
    at_ms: Option<i64>,
    /// Due after the server's delay level N, counted from 1 (see `tickwheel serve --levels`)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    level: Option<u32>,
    /// Due at each of these instants, one after the other, with the payload of each: a list such as
    /// `[{"at": "2030-01-01T00:00:00Z", "payload": {"price": 9}}]`, or @FILE, or @- for stdin
    #[arg(long, value_name = "JSON|@FILE", conflicts_with_all = ["payload", "payload_file", "content_type"])]
    timeline: Option<String>,
}

impl When {
    /// The single due time; `None` if no option names one.
    pub(super) fn due(&self) -> Option<Due> {
        match (self.delay_ms, self.at_ms, self.level) {
            (Some(ms), ..) => Some(Due::After(ms)),
            (None, Some(ms), _) => Some(Due::At(ms)),
            (None, None, Some(level)) => Some(Due::Level(level)),
            (None, None, None) => None,
        }
    }

    /// The instants of the timeline; `None` if there is none.
    ///
    /// # Errors
    /// The text cannot be read, or is no timeline.
    pub(super) fn timeline(self) -> Result<Option<Vec<MomentBody>>> {
        self.timeline.map(timeline).transpose()
    }
}

fn timeline(text: String) -> Result<Vec<MomentBody>> {
    let (text, place) = match text.strip_prefix('@') {
        Some(file) => text_of(file)?,
        None => (text.into_bytes(), "--timeline".to_owned()),
    };
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
    let list: &RawValue = serde_json::from_slice(text).with_context(|| format!("{place} is not JSON"))?;
    let body = format!(r#"{{"timeline":{list}}}"#);
    match PutBody::parse(body.as_bytes()) {
        Ok(body) => Ok(body.timeline),
        Err(error) => bail!("{place}: {error}; {}", error.hint),
    }
}
