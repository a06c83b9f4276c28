//! `tickwheel forecast`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tickwheel_api::{BucketBody, ForecastQuery, time};

use crate::output::{Format, Row, say};
use crate::remote::Remote;
use crate::values;

/// Show how many tasks fall due in each bucket of time
///
/// The forecast is for one queue or for all queues. Empty buckets are not shown. The edges of buckets are multiples of the bucket's length
/// since 1970, in UTC. The counts have tasks that exist and are not due yet. They do not have tasks that a schedule will put, later
/// instants of a timeline, ready tasks and dead tasks.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel forecast                                     the next 24 hours, by the minute
  tickwheel forecast close --bucket 1h --span 7d
  tickwheel forecast -o json | jq -s 'max_by(.tasks)'    the worst minute of the day")]
pub(crate) struct Forecast {
    /// Only this queue
    #[arg(value_parser = values::queue)]
    queue: Option<String>,
    /// The length of a bucket
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = values::delay)]
    bucket: u64,
    /// The time from now that the forecast covers
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = values::delay)]
    span: u64,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

/// One bucket, with the largest count of all buckets as the scale for its bar.
struct Line {
    bucket: BucketBody,
    most: u64,
}

/// The length of the longest bar (characters).
const BAR_MAX: u64 = 40;

impl Row for Line {
    const HEADER: &'static [&'static str] = &["AT", "TASKS", ""];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(&self.bucket).expect("numbers and times are JSON")
    }

    fn cells(&self) -> Vec<String> {
        let BucketBody { at_ms, tasks } = self.bucket;
        let bar = (u128::from(tasks) * u128::from(BAR_MAX)).div_ceil(u128::from(self.most.max(1)));
        let bar = "#".repeat(usize::try_from(bar).unwrap_or_default());
        vec![time::format(at_ms), tasks.to_string(), bar]
    }
}

impl Forecast {
    /// Asks the server and prints the forecast.
    ///
    /// # Errors
    /// There is no server, or it refuses.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let Self { queue, bucket: bucket_ms, span: span_ms, remote, format } = self;
        let query = ForecastQuery { queue, bucket_ms, span_ms };
        let found = remote.client()?.forecast(&query)?;
        let most = found.buckets.iter().map(|bucket| bucket.tasks).max().unwrap_or_default();
        if !format.is_json() {
            say(&format!("{} tasks until {}", found.tasks, time::format(found.to_ms)));
            if let Some(queue) = query.queue.filter(|_| found.tasks == 0) {
                say(&format!(
                    "hint: names are case-sensitive; `tickwheel queues show {queue}` says what is ready and leased"
                ));
            }
        }
        format.print(found.buckets.into_iter().map(|bucket| Line { bucket, most }))?;
        Ok(ExitCode::SUCCESS)
    }
}
