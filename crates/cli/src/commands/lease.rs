//! `tickwheel lease`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tickwheel_api::{LeaseBody, LeasedTask, QueueCounts, time};
use tickwheel_client::blocking::Client;

use crate::missing;
use crate::output::{Format, Row, payload_cell, say};
use crate::remote::Remote;
use crate::values;

/// Lease ready tasks to work on them
///
/// Each task comes with a token. `ack` with this token says that the work is done. If the lease ends before the ack, the task is ready
/// again. If no task is ready, the command prints nothing and the exit code is 0.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel lease close --wait 20s
  tickwheel lease close --wait 20s --worker mailer-1
  tickwheel lease close --max 100 --for 5m -o json
  tickwheel lease close -o json | jq -r .token | xargs -r tickwheel ack close")]
pub(crate) struct Lease {
    /// The queue
    #[arg(value_parser = values::queue)]
    queue: String,
    /// The largest number of tasks to lease, 1 to 1000
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::lease_max)]
    max: usize,
    /// The duration of the leases, 1s to 12h [default: the queue's setting, or else 30s]
    #[arg(long = "for", visible_alias = "lease", value_name = "DURATION", value_parser = values::lease, allow_hyphen_values = true)]
    lease_ms: Option<u64>,
    /// How long to wait if no task is ready, up to 1m
    #[arg(long = "wait", value_name = "DURATION", default_value = "0s", value_parser = values::wait, allow_hyphen_values = true)]
    wait_ms: u64,
    /// The name of the worker, for those who look at `tickwheel leases`
    #[arg(long, value_name = "NAME", value_parser = values::worker)]
    worker: Option<String>,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

impl Lease {
    /// Leases tasks and prints them.
    ///
    /// # Errors
    /// There is no server.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let (max, lease_ms, wait_ms) = (self.max, self.lease_ms, self.wait_ms);
        let body = LeaseBody { max, lease_ms, wait_ms, worker: self.worker };
        let client = self.remote.client()?;
        let tasks = client.lease(&self.queue, &body)?;
        if tasks.is_empty() {
            let hint = if wait_ms == 0 { "; --wait 20s waits for one" } else { "" };
            let held = held_up(&client, &self.queue);
            say(&held.unwrap_or_else(|| format!("no task of {} is ready{hint}", self.queue)));
        } else {
            self.format.print(tasks)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The reason why no task came: the queue is paused, or its limits hold ready tasks back. `None` if neither is known, because a token
/// that may lease tasks may lack the right to read the queue.
fn held_up(client: &Client, queue: &str) -> Option<String> {
    let seen = client.queue(queue).ok()?;
    let until = seen.paused_until_ms.map(|ms| format!(" until {}", time::format(ms))).unwrap_or_default();
    let settings = &seen.settings;
    let limited = settings.rate.is_some()
        || settings.max_in_flight.is_some()
        || settings.max_in_flight_per_group.is_some();
    match seen.counts {
        QueueCounts { paused: true, .. } => Some(format!("{queue} is paused{until}")),
        QueueCounts { ready, .. } if ready > 0 && limited => Some(format!(
            "{ready} of {queue} ready, but its limits do not allow another lease: see `tickwheel queues show {queue}`"
        )),
        _ if !seen.exists => Some(format!("no task of {queue} is ready: {}", missing::told(client, queue))),
        _ => None,
    }
}

impl Row for LeasedTask {
    const HEADER: &'static [&'static str] = &["KEY", "DUE AT", "ATTEMPT", "LEASE UNTIL", "TOKEN", "PAYLOAD"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an answer is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.key.clone(),
            time::format(self.due_at_ms),
            self.attempt.to_string(),
            time::format(self.lease_until_ms),
            self.token.clone(),
            payload_cell(&self.payload),
        ]
    }
}
