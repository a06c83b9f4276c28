//! [`Lines`]: the operations of a file, checked one by one.

use std::io::{self, BufRead, Read};

use anyhow::{Context, Result, anyhow};
use tickwheel_api::replay::{ReplayLine, ReplayOp};
use tickwheel_api::{Due, time};
use tickwheel_queue::{Body, Cancel, Key, Put, QueueName, Tag, Timestamp};

/// The largest length of a line (bytes): 64 MiB, more than the largest payload as base64. The limit keeps a wrong file from filling the
/// memory.
const LINE_BYTES_MAX: usize = 64 << 20;

/// The hint for a payload that a server would also refuse.
const NOT_PORTABLE_HINT: &str = "write numbers beyond 64-bit floats as strings, whole characters, and each member once; \
    or replay with --lax-json";

/// The operations of a file, in its order. The reader holds one line at a time.
pub(super) struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    number: u64,
    /// The `at` of the last line.
    last_at_ms: i64,
    /// Whether payloads are accepted that only some JSON readers accept.
    is_lax: bool,
}

/// One operation.
pub(super) struct Line {
    /// The number of the line, counted from 1; blank lines count, too.
    pub(super) number: u64,
    pub(super) at: Timestamp,
    pub(super) op: Op,
}

pub(super) enum Op {
    /// The number of the line is the only tag of the task, see [`line_of`].
    Put {
        put: Box<Put>,
        due_at: Timestamp,
    },
    Cancel(Cancel),
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R, is_lax: bool) -> Self {
        Self { input, buffer: Vec::new(), number: 0, last_at_ms: 0, is_lax }
    }

    /// The next operation; `None` at the end.
    ///
    /// # Errors
    /// The input fails, or a line is not an operation or is out of order. The error begins with the number of the line.
    pub(super) fn next(&mut self) -> Result<Option<Line>> {
        loop {
            self.number += 1;
            self.buffer.clear();
            let mut limited = self.input.by_ref().take(LINE_BYTES_MAX as u64 + 1);
            let read = match limited.read_until(b'\n', &mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                    return Err(anyhow!("it is a directory"));
                }
                read => read.with_context(|| format!("line {} cannot be read", self.number))?,
            };
            if read == 0 {
                return Ok(None);
            }
            if self.buffer.len() > LINE_BYTES_MAX {
                return Err(anyhow!(
                    "line {} has more than {LINE_BYTES_MAX} bytes; is it NDJSON?",
                    self.number
                ));
            }
            if !self.buffer.trim_ascii().is_empty() {
                return self.operation().with_context(|| format!("line {}", self.number)).map(Some);
            }
        }
    }

    fn operation(&mut self) -> Result<Line> {
        let line = ReplayLine::parse(&self.buffer).map_err(|bad| anyhow!("{bad}; {}", bad.hint))?;
        if line.at_ms < self.last_at_ms {
            let (at, last) = (time::format(line.at_ms), time::format(self.last_at_ms));
            return Err(anyhow!(
                "out of order: its `at` is {at}, the line before is at {last}; sort lines by `at`"
            ));
        }
        self.last_at_ms = line.at_ms;
        let at = instant(line.at_ms);
        let queue = QueueName::new(&line.queue).map_err(|error| anyhow!("`queue`: {error}"))?;
        let key = Key::new(&line.key).map_err(|error| anyhow!("`key`: {error}"))?;
        let op = match line.op {
            ReplayOp::Cancel => Op::Cancel(Cancel::new(&queue, key)),
            ReplayOp::Put { due, payload } => {
                if !self.is_lax {
                    payload.check_portable().map_err(|bad| anyhow!("{bad}; {NOT_PORTABLE_HINT}"))?;
                }
                let due_at = due_at(at, due)?;
                let body = Body {
                    payload: payload.bytes,
                    content_type: payload.content_type.into(),
                    tags: vec![Tag::new(&self.number.to_string()).expect("digits are a tag")],
                    ..Body::default()
                };
                Op::Put { put: Box::new(Put { body, ..Put::new(&queue, key).at(due_at) }), due_at }
            }
        };
        Ok(Line { number: self.number, at, op })
    }
}

/// The number of the line that put the task.
///
/// The queue keeps the order of calls for each key, but not between keys. A put with a key that the queue has to look up may take effect
/// after a later put with a known key. A replay has to write deliveries in the order of the file, so it sorts them by this number.
pub(super) fn line_of(body: &Body) -> u64 {
    body.tags
        .first()
        .and_then(|tag| tag.as_str().parse().ok())
        .expect("every put of a replay has its line as a tag")
}

/// The due time of the task. The put has it as an instant, so that it does not depend on the queue's clock.
fn due_at(at: Timestamp, due: Due) -> Result<Timestamp> {
    let due_at = match due {
        Due::Now => Some(at),
        Due::After(ms) => at.plus_ms(ms),
        Due::At(ms) => Some(instant(ms)),
        Due::Level(_) => unreachable!("a line of a replay has no member for a delay level"),
    };
    due_at
        .filter(|due_at| due_at.as_ms() <= time::INSTANT_MS_MAX)
        .ok_or_else(|| anyhow!("`delay`: the task would be due {}; name a shorter one", time::too_late()))
}

fn instant(ms: i64) -> Timestamp {
    Timestamp::from_ms(ms).expect("the reader of times refuses those before 1970")
}
