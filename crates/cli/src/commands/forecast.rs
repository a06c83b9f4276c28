//! `tickwheel forecast`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tickwheel_api::{BucketBody, ForecastQuery, ForecastScale, time};

use super::backup::counted;
use crate::missing;
use crate::output::{Format, Row, say};
use crate::remote::Remote;
use crate::values;

/// Show how many tasks fall due in each bucket of time
///
/// The forecast is for one queue or for all queues. Empty buckets are not shown. The edges of buckets are multiples of the bucket's length
/// since 1970, in UTC. With `--log` there are 39 buckets that get longer, from the next second to 100 years. The counts have tasks that
/// exist and are not due yet, and with `--schedules` beside them the tasks that schedules will put. They do not have later instants of a
/// timeline, ready tasks and dead tasks.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel forecast                                     the next 24 hours, by the minute
  tickwheel forecast close --bucket 1h --span 7d
  tickwheel forecast --log --schedules                   all that is to come, at a glance
  tickwheel forecast --from 2030-01-01T00:00:00Z --span 24h
  tickwheel forecast -o json | jq -s 'max_by(.tasks)'    the worst minute of the day")]
pub(crate) struct Forecast {
    /// Only this queue
    #[arg(value_parser = values::queue)]
    queue: Option<String>,
    /// The length of a bucket
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = values::delay)]
    bucket: u64,
    /// The time that the forecast covers
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = values::delay)]
    span: u64,
    /// Where the forecast begins, instead of now
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    from: Option<i64>,
    /// Show 39 buckets that get longer, from the next second to 100 years
    #[arg(long, conflicts_with_all = ["bucket", "span", "from"])]
    log: bool,
    /// Also count the tasks that schedules will put, shown as in `3 + 24`: at most 10,000 of a schedule and 50,000 of all, the nearest first
    #[arg(long)]
    schedules: bool,
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
        let BucketBody { at_ms, to_ms: _, tasks, expected } = self.bucket;
        let bar =
            (u128::from(all_of(&self.bucket)) * u128::from(BAR_MAX)).div_ceil(u128::from(self.most.max(1)));
        let bar = "#".repeat(usize::try_from(bar).unwrap_or_default());
        let expected = expected.map(|expected| format!(" + {expected}")).unwrap_or_default();
        vec![time::format(at_ms), format!("{tasks}{expected}"), bar]
    }
}

/// Number of tasks in a bucket, those of schedules among them.
fn all_of(bucket: &BucketBody) -> u64 {
    bucket.tasks + bucket.expected.unwrap_or_default()
}

impl Forecast {
    /// Asks the server and prints the forecast.
    ///
    /// # Errors
    /// There is no server, or it refuses.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let Self { queue, bucket, span, from: from_ms, log, schedules, remote, format } = self;
        let scale = if log { ForecastScale::Log } else { ForecastScale::Linear };
        let [bucket_ms, span_ms] = [bucket, span].map(|ms| Some(ms).filter(|_| !log));
        let query = ForecastQuery { queue, scale, bucket_ms, span_ms, from_ms, schedules };
        let client = remote.client()?;
        let found = client.forecast(&query)?;
        if let Some(queue) = query.queue.as_deref().filter(|_| found.tasks == 0) {
            missing::check(&client, queue)?;
        }
        let most = found.buckets.iter().map(all_of).max().unwrap_or_default();
        if !format.is_json() {
            let expected = found.expected.map(|expected| format!(" and {expected} of schedules"));
            let until = time::format(found.to_ms);
            say(&format!("{}{} until {until}", counted(found.tasks, "task"), expected.unwrap_or_default()));
            if let Some(until) = found.expected_until_ms {
                say(&format!("hint: the tasks of schedules are counted until {} only", time::format(until)));
            }
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
