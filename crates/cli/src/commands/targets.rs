//! `tickwheel targets`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tickwheel_api::{ConnectionRow, PushCounts, TargetRow, TargetsBody, time};

use crate::output::{Format, Row, print_line, say};
use crate::remote::Remote;

/// Show the targets of all queues, and the connections to brokers
///
/// A target is the place to which the server sends the tasks of a queue. Its state is `closed` if the server sends, `open` or `half_open` if the
/// target failed lately, `disabled`, or `paused`. The numbers count the attempts since the server started, by their outcome. In JSON, a line with
/// `queue` is a target, and a line with `name` is a connection. A token with a scope sees no connections.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel targets
  tickwheel targets -o json | jq 'select(.queue and .state != \"closed\")'
  tickwheel target --help                           makes, tests and removes a target")]
pub(crate) struct Targets {
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

impl Targets {
    /// Asks for the targets and prints them.
    ///
    /// # Errors
    /// There is no server, or it refuses.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let Self { remote, format } = self;
        let TargetsBody { targets, connections } = remote.client()?.targets()?;
        let has_both = !targets.is_empty() && !connections.is_empty();
        if targets.is_empty() {
            say("no queue has a target");
        } else {
            let reasons: Vec<_> = targets.iter().filter_map(reason).collect();
            format.print(targets)?;
            if !format.is_json() {
                reasons.iter().try_for_each(|reason| print_line(reason))?;
            }
        }
        if has_both && !format.is_json() {
            print_line("")?;
        }
        if !connections.is_empty() {
            format.print(connections)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The line below the table for a target with a reason.
fn reason(target: &TargetRow) -> Option<String> {
    let reason = target.reason.as_ref()?;
    let next_try = target.next_try_ms.map(|at| format!("; next try at {}", time::format(at)));
    Some(format!("{}: {reason}{}", target.queue, next_try.unwrap_or_default()))
}

/// Since when there is a state; empty if the server does not say.
fn since(ms: Option<i64>) -> String {
    ms.map(time::format).unwrap_or_default()
}

/// The numbers of attempts, in the order of the header.
fn counts(counts: PushCounts) -> [String; 5] {
    let PushCounts { acked, failed, dead, given_back, blocked } = counts;
    [acked, failed, dead, given_back, blocked].map(|count| count.to_string())
}

impl Row for TargetRow {
    const HEADER: &'static [&'static str] = &[
        "QUEUE",
        "KIND",
        "TO",
        "STATE",
        "SINCE",
        "IN FLIGHT",
        "ACKED",
        "FAILED",
        "DEAD",
        "GIVEN BACK",
        "BLOCKED",
    ];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an answer is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        let place = [&self.queue, self.kind.name(), &self.to].map(str::to_owned);
        let state = [self.state.name().to_owned(), since(self.since_ms), self.in_flight.to_string()];
        [&place[..], &state, &counts(self.attempts)].concat()
    }
}

impl Row for ConnectionRow {
    const HEADER: &'static [&'static str] = &["CONNECTION", "KIND", "STATE", "SINCE", "REASON"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an answer is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            self.kind.name().to_owned(),
            self.state.name().to_owned(),
            since(self.since_ms),
            self.reason.clone().unwrap_or_default(),
        ]
    }
}
