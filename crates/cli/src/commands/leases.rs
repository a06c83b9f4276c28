//! `tickwheel leases`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tickwheel_api::{HeldLease, LIST_LIMIT_MAX, LeasesQuery, time};

use crate::missing;
use crate::output::{Format, Row, say};
use crate::remote::Remote;
use crate::values;

/// Show which worker has which task, and until when
///
/// The leases are listed in the order in which they began. The server knows a worker by the name that it gave with `lease --worker`, and a client
/// of beanstalkd by its address; it forgets the names when it stops. `release` takes a task from its worker.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel leases
  tickwheel leases close --worker mailer-1
  tickwheel leases close --worker mailer-1 --all -o json | jq -r .key | xargs -r -n 1 tickwheel release close")]
pub(crate) struct Leases {
    /// The queue [default: every queue]
    #[arg(value_parser = values::queue)]
    queue: Option<String>,
    /// Only the leases of the worker with this name
    #[arg(long, value_name = "NAME", value_parser = values::worker)]
    worker: Option<String>,
    /// The largest number of leases to list
    #[arg(long, value_name = "N", default_value = "100", value_parser = values::limit)]
    limit: usize,
    /// List all leases, without a limit
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

impl Leases {
    /// Reads one page after the other and prints the leases.
    ///
    /// # Errors
    /// There is no server.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let Self { queue, worker, limit, all, remote, format } = self;
        let client = remote.client()?;
        let mut left = if all { usize::MAX } else { limit };
        let mut query = LeasesQuery { queue, worker, ..LeasesQuery::default() };
        let (mut leases, mut is_empty) = (Vec::new(), true);
        loop {
            query.limit = left.min(LIST_LIMIT_MAX);
            let page = client.leases(&query)?;
            left -= page.leases.len().min(left);
            is_empty &= page.leases.is_empty();
            query.cursor = page.next_cursor;
            if format.is_json() {
                // Pages are printed as they come.
                format.print(page.leases)?;
            } else {
                leases.extend(page.leases);
            }
            if query.cursor.is_none() || left == 0 {
                break;
            }
        }
        if let Some(queue) = query.queue.as_deref().filter(|_| is_empty) {
            missing::check(&client, queue)?;
        }
        if !format.is_json() {
            if leases.is_empty() {
                say("no leases");
            } else {
                format.print(leases)?;
            }
        }
        if query.cursor.is_some() {
            say("there are more leases; --limit N shows N, --all shows all");
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Row for HeldLease {
    const HEADER: &'static [&'static str] = &["QUEUE", "KEY", "ATTEMPT", "WORKER", "SINCE", "UNTIL"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an answer is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.queue.clone(),
            self.key.clone(),
            self.attempt.to_string(),
            self.worker.clone().unwrap_or_default(),
            self.since_ms.map(time::format).unwrap_or_default(),
            time::format(self.until_ms),
        ]
    }
}
