//! The lists in a report.

use indicatif::HumanBytes;
use serde::Serialize;
use tickwheel_api::time;
use tickwheel_queue::doctor::{LogFile, Problem, SegmentFile, Span};
use tickwheel_server::KeyUse;

use crate::output::Row;

/// A queue with live or dead tasks.
#[derive(Serialize)]
pub(super) struct QueueRow {
    pub(super) queue: String,
    /// The number of live tasks.
    pub(super) tasks: u64,
    pub(super) dead: u64,
}

/// A key that encrypts secrets of targets.
#[derive(Serialize)]
pub(super) struct KeyRow {
    pub(super) id: String,
    pub(super) queues: Vec<String>,
    /// Whether the given file has the key; `null` if no file was given.
    pub(super) in_file: Option<bool>,
}

/// A file of the log.
#[derive(Serialize)]
pub(super) struct LogRow {
    file: String,
    generation: Option<u64>,
    frames: u64,
    first_frame: Option<u64>,
    last_frame: Option<u64>,
    used_bytes: u64,
    bytes: u64,
    spare: bool,
}

/// A segment.
#[derive(Serialize)]
pub(super) struct SegmentRow {
    file: String,
    generation: u64,
    /// `null` for tasks that were overdue when the segment was written.
    due_from: Option<String>,
    /// The first instant after the segment's span.
    due_before: Option<String>,
    runs: Option<u64>,
    records: u64,
    live: Option<u64>,
    dead: Option<u64>,
    bytes: u64,
    #[serde(skip)]
    due: String,
}

/// A problem that was found.
#[derive(Serialize)]
pub(super) struct ProblemRow {
    pub(super) file: String,
    pub(super) offset: Option<u64>,
    pub(super) what: String,
    pub(super) to_do: &'static str,
}

impl From<&KeyUse> for KeyRow {
    fn from(key: &KeyUse) -> Self {
        let queues = key.queues.iter().map(|queue| queue.as_str().to_owned()).collect();
        Self { id: key.id.clone(), queues, in_file: key.is_in_file }
    }
}

impl From<&LogFile> for LogRow {
    fn from(log: &LogFile) -> Self {
        Self {
            file: log.file.clone(),
            generation: log.generation,
            frames: log.frames,
            first_frame: log.numbers.map(|(first, _)| first),
            last_frame: log.numbers.map(|(_, last)| last),
            used_bytes: log.used_bytes,
            bytes: log.bytes,
            spare: log.spare,
        }
    }
}

impl From<&SegmentFile> for SegmentRow {
    fn from(segment: &SegmentFile) -> Self {
        let (from, before) = match segment.span {
            Span::Overdue => (None, None),
            Span::Between(from, before) => (Some(from.as_ms()), Some(before.as_ms())),
        };
        Self {
            file: segment.file.clone(),
            generation: segment.generation,
            due_from: from.map(time::format),
            due_before: before.map(time::format),
            runs: segment.runs,
            records: segment.records,
            live: segment.live,
            dead: segment.live.map(|live| segment.records.saturating_sub(live)),
            bytes: segment.bytes,
            due: from.zip(before).map_or_else(|| "overdue".to_owned(), |(from, before)| due(from, before)),
        }
    }
}

impl From<&Problem> for ProblemRow {
    fn from(problem: &Problem) -> Self {
        let Problem { file, offset, what, to_do, .. } = problem.clone();
        Self { file, offset, what, to_do }
    }
}

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// The shortest text for a time span: an hour, a day, or some days.
fn due(from: i64, before: i64) -> String {
    let (first, end, last) = (time::format(from), time::format(before), time::format(before - 1));
    // The date has ten characters; hours and minutes follow the `T`.
    match before - from {
        HOUR_MS => format!("{} {}-{}", &first[..10], &first[11..16], &end[11..16]),
        DAY_MS => first[..10].to_owned(),
        _ => format!("{} to {}", &first[..10], &last[..10]),
    }
}

fn number(number: Option<u64>) -> String {
    number.map_or_else(|| "?".to_owned(), |number| number.to_string())
}

impl Row for QueueRow {
    const HEADER: &'static [&'static str] = &["QUEUE", "LIVE", "DEAD"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a row is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        vec![self.queue.clone(), self.tasks.to_string(), self.dead.to_string()]
    }
}

impl Row for KeyRow {
    const HEADER: &'static [&'static str] = &["SECRET KEY", "IN THE FILE", "QUEUES"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a row is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        let in_file = match self.in_file {
            Some(true) => "yes",
            Some(false) => "no",
            None => "",
        };
        vec![self.id.clone(), in_file.to_owned(), self.queues.join(", ")]
    }
}

impl Row for LogRow {
    const HEADER: &'static [&'static str] =
        &["LOG FILE", "GENERATION", "FRAMES", "NUMBERS", "USED", "BYTES", ""];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a row is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        let numbers = self.first_frame.zip(self.last_frame);
        vec![
            self.file.clone(),
            self.generation.map_or_else(|| "-".to_owned(), |generation| generation.to_string()),
            self.frames.to_string(),
            numbers.map_or_else(|| "-".to_owned(), |(first, last)| format!("{first}-{last}")),
            HumanBytes(self.used_bytes).to_string(),
            HumanBytes(self.bytes).to_string(),
            if self.spare { "spare" } else { "" }.to_owned(),
        ]
    }
}

impl Row for SegmentRow {
    const HEADER: &'static [&'static str] =
        &["SEGMENT", "DUE (UTC)", "RUNS", "RECORDS", "LIVE", "DEAD", "BYTES"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a row is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.file.clone(),
            self.due.clone(),
            number(self.runs),
            self.records.to_string(),
            number(self.live),
            number(self.dead),
            HumanBytes(self.bytes).to_string(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_of_time_is_told_shortly() {
        let start = 1_700_000_000_000 / DAY_MS * DAY_MS;
        assert_eq!(due(start + 9 * HOUR_MS, start + 10 * HOUR_MS), "2023-11-14 09:00-10:00");
        assert_eq!(due(start + 23 * HOUR_MS, start + DAY_MS), "2023-11-14 23:00-00:00");
        assert_eq!(due(start, start + DAY_MS), "2023-11-14");
        assert_eq!(due(start, start + 30 * DAY_MS), "2023-11-14 to 2023-12-13");
    }
}
