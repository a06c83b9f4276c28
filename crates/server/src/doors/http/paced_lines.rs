//! The lines of a batch or an import as they arrive, with the permit, the number and the pace that limit them.

use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use tickwheel_api::{Problem, ProblemKind};
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::access::quota::Quota;
use crate::access::refusal::Refusal;
use crate::base::aside::Steps;
use crate::doors::http::body::{NDJSON_TYPES, check_length, check_type};
use crate::doors::http::lines::{Line, Lines, STREAM_BYTES_MAX};
use crate::doors::http::pace::{PACE_BYTES, PACE_TIME, Pace};
use crate::doors::http::rows::Row;
use crate::service::caller::Caller;
use crate::service::permits::shares::Permit;

/// The largest number of lines, without the header of an import. Their results, about 10 MiB at most, fit into memory
/// even if the client does not read.
pub(crate) const LINES_MAX: usize = 10_000;
/// The longest time of a call: enough for 64 MiB over a slow line.
pub(crate) const LINES_TIME_MAX: Duration = Duration::from_secs(600);

/// The differences between the lines of a batch and those of an import.
pub(crate) struct Form {
    /// The name of the call in its problems.
    pub(crate) name: &'static str,
    /// The number of lines before the counted ones.
    pub(crate) header_lines: usize,
    pub(crate) line_bytes_max: usize,
}

/// The lines of a call. They end with a problem at a fault of the whole body.
pub(crate) struct PacedLines {
    lines: Lines,
    permit: Permit,
    form: Form,
    pace: Pace,
    /// The number of lines so far that are not blank, with the header.
    count: usize,
    pub(crate) steps: Steps,
}

impl PacedLines {
    /// Checks the head of the call, and takes a permit.
    ///
    /// # Errors
    /// The body has a foreign type or is too long, the caller's quota is used up, or there is no permit.
    pub(crate) async fn begin(
        headers: &HeaderMap,
        body: Body,
        caller: &Caller,
        form: Form,
    ) -> Result<Self, Refusal> {
        check_type(headers, &NDJSON_TYPES)?;
        check_length(headers, STREAM_BYTES_MAX as u64)?;
        caller.quota().map_or(Ok(()), Quota::body)?;
        caller.count().await?;
        let permit = caller.app().admission.slots().batches.enter(caller.producer()).await?;
        let lines = Lines::new(body, caller.shared_quota(), form.line_bytes_max);
        Ok(Self { lines, permit, form, pace: Pace::from(0), count: 0, steps: Steps::default() })
    }

    /// The next line that is not blank; `None` at the end. The future can be dropped and called again.
    ///
    /// # Errors
    /// A fault of the whole body: it is too long or broken, has too many lines, or is too slow while another call
    /// waits for its permit.
    pub(crate) async fn next(&mut self) -> Result<Option<Line>, Problem> {
        loop {
            let line = tokio::select! {
                biased;
                line = self.lines.next() => line?,
                () = sleep_until(self.pace.ends()) => {
                    let slow = self.pace.is_slow(self.lines.read());
                    self.permit.makes_way(slow);
                    continue;
                }
                () = self.permit.leaves() => return Err(made_way(self.form.name)),
            };
            if line.is_some() {
                if self.count == self.form.header_lines + LINES_MAX {
                    return Err(Problem::too_many_lines(LINES_MAX));
                }
                self.count += 1;
            }
            return Ok(line);
        }
    }

    /// Charges the caller for a line, and lets other tasks have their turn.
    pub(crate) async fn charge(&mut self, caller: &Caller, line: &Line) {
        if let Some(quota) = caller.quota() {
            quota.came(0, 1);
        }
        // If the count fails, the last one stays valid.
        let _counted = caller.count().await;
        // Reading lines that have arrived already does not yield, so the steps yield.
        self.steps.did(line.bytes()).await;
    }

    /// Leaves out of the pace the time since `begun`: the client could not know that the server waited for its bytes.
    pub(crate) fn worked_since(&mut self, begun: Instant) {
        self.pace.put_off(begun.elapsed());
    }

    /// Notes that the call waits for the server, not for its client. It keeps its permit, even if it was told to leave.
    pub(crate) fn wait_for_server(&mut self) {
        self.pace = Pace::from(self.lines.read());
        self.permit.makes_way(false);
    }

    /// The number of lines so far, with the blank ones, which are skipped.
    pub(crate) fn number(&self) -> u64 {
        self.count as u64 + self.lines.blank()
    }

    /// Frees the permit, and ends the answer after its last result. Before, drops the rest of the body if there may
    /// be one, as long as the client takes the answer, the call is not `late`, and the server does not stop. An error
    /// in the rest of the body makes no result.
    pub(crate) async fn end(
        self,
        has_rest: bool,
        rows: &mpsc::UnboundedSender<Row>,
        late: Pin<&mut Sleep>,
        caller: &Caller,
    ) {
        let Self { mut lines, permit, .. } = self;
        drop(permit);
        if has_rest {
            tokio::select! {
                () = lines.read_away() => {}
                () = rows.closed() => {}
                () = late => {}
                // The connection ends with this answer.
                () = caller.app().background.stopping().wait() => {}
            }
        }
        // The unread part of the body must be known before the answer ends.
        drop(lines);
        // If the client has left by now, it does not need this.
        let _sent = rows.send(Row::End);
    }
}

/// The problem of a call that was too slow and gave its permit to a waiting one.
fn made_way(what: &str) -> Problem {
    let bytes = PACE_BYTES as u64 / PACE_TIME.as_secs();
    let what = format!(
        "the {what} sent less than {bytes} bytes a second for {PACE_TIME:?}, and another waits for its place (--max-batches)"
    );
    Problem::new(ProblemKind::Timeout, what)
        .with_hint("what was answered stands; send the other lines in a new request, all at once")
}
