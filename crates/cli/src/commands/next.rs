//! `tickwheel next`.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use serde::Serialize;
use tickwheel_api::time;
use tickwheel_queue::Timestamp;
use tickwheel_queue::cron::{ClockChange, Cron, Occurrence};

use crate::output::{Format, Row, say};
use crate::values;

/// Show when a cron expression fires next, and what happens when the clocks change
///
/// The expression has five fields (minute hour day month weekday), or six with the seconds first. A local time that is skipped when the
/// clocks go forward fires once, at the moment of the jump. A local time that comes twice fires the first time.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel next '0 2 * * *' --tz America/New_York
  tickwheel next '*/15 9-17 * * MON-FRI' --tz Europe/Berlin --count 10
  tickwheel next '30 2 * * *' --tz America/New_York --after 2030-03-09T12:00:00Z")]
pub(crate) struct Next {
    /// The expression, in quotes
    #[arg(value_name = "CRON")]
    cron: String,
    /// The time zone, an IANA name
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    tz: String,
    /// How many instants to show, up to 1000
    #[arg(long, value_name = "N", default_value = "5", value_parser = values::lease_max)]
    count: usize,
    /// Only instants after this time, RFC 3339 or milliseconds since 1970 [default: now]
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    after: Option<i64>,
    #[command(flatten)]
    format: Format,
}

impl Next {
    /// Prints the instants.
    ///
    /// # Errors
    /// The expression or the zone is not valid.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let cron = match Cron::parse(&self.cron, &self.tz) {
            Ok(cron) => cron,
            Err(error) => return Err(anyhow!("{error}; {}", error.hint())),
        };
        let after_ms = self.after.map_or_else(now_ms, Ok)?;
        let mut after = Timestamp::from_ms(after_ms).context("times begin in 1970")?;
        let mut rows = Vec::with_capacity(self.count);
        while rows.len() < self.count
            && let Some(next) = cron.next_after(after)
        {
            after = next.at;
            rows.push(Fire::new(next));
        }
        if rows.is_empty() {
            say("it does not fire after that: expressions are followed to the year 5000");
            return Ok(ExitCode::FAILURE);
        }
        self.format.print(rows)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn now_ms() -> Result<i64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock shows a time before 1970")?;
    i64::try_from(since.as_millis()).context("the clock shows a time beyond all calendars")
}

#[derive(Serialize)]
struct Fire {
    at: String,
    local: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    note: String,
}

impl Fire {
    fn new(next: Occurrence) -> Self {
        let note = match &next.change {
            ClockChange::None => String::new(),
            change => change.to_string(),
        };
        Self { at: time::format(next.at.as_ms()), local: next.local().to_owned(), note }
    }
}

impl Row for Fire {
    const HEADER: &'static [&'static str] = &["AT", "LOCAL", "NOTE"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        vec![self.at.clone(), self.local.clone(), self.note.clone()]
    }
}
