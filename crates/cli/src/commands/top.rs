//! `tickwheel top`.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use tickwheel_api::QueueCounts;

use crate::figures::{Figures, Rates};
use crate::output::{STDOUT, json_line};
use crate::remote::Remote;
use crate::top::{Column, Order, Plan, Seen, SystemClock, watch};
use crate::values;

/// Watch a server: its rates per second, its lateness, and its queues
///
/// On a terminal the picture is drawn again at each interval, and keys change it: `q` leaves, `s` sorts by the next column, `r` reverses
/// the order, the arrows, PgUp, PgDn, Home and End scroll, and `?` shows all keys. While the server does not answer, the first line says
/// for how long, and the old figures below it are dim. Into a pipe or a file the command writes a JSON object
/// per line until Ctrl-C ends it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel top
  tickwheel top --every 10s --sort dead
  tickwheel top --sort scheduled --reverse             the emptiest queues first
  tickwheel top --times 1 | jq .rates                  what it did in two seconds")]
pub(crate) struct Top {
    /// The time between two pictures
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = values::every)]
    every: u64,
    /// The column to sort queues by: the largest count first, names from a to z
    #[arg(long, value_enum, default_value_t = Column::Ready)]
    sort: Column,
    /// Sort in the other direction
    #[arg(long)]
    reverse: bool,
    /// End after this many pictures
    #[arg(long, value_name = "N")]
    times: Option<u64>,
    #[command(flatten)]
    remote: Remote,
}

/// One picture as data.
#[derive(Serialize)]
struct Picture<'a> {
    server: &'a str,
    rates: Option<&'a Rates>,
    figures: Option<&'a Figures>,
    queues: &'a [QueueCounts],
}

impl Top {
    /// Watches the server.
    ///
    /// # Errors
    /// There is no server at the start; or, without a terminal, the server stopped answering.
    pub(crate) fn run(self) -> Result<ExitCode> {
        if !io::stdout().is_terminal() {
            return self.print();
        }
        let order = self.order();
        watch(Plan { client: self.remote.client()?, every_ms: self.every, order, times: self.times })
    }

    fn order(&self) -> Order {
        Order { column: self.sort, reversed: self.reverse }
    }

    /// Prints a line after each request for the state except the first.
    fn print(&self) -> Result<ExitCode> {
        let client = self.remote.client()?;
        let mut before = Seen::look(&client, &SystemClock)?;
        let mut printed = 0;
        while self.times.is_none_or(|times| printed < times) {
            std::thread::sleep(Duration::from_millis(self.every));
            let mut seen = Seen::look(&client, &SystemClock)?;
            self.order().sort(&mut seen.queues);
            let (rates, figures) = (seen.rates_since(&before), seen.figures.as_ref().ok());
            let (server, rates, queues) = (client.address(), rates.as_ref(), &seen.queues[..]);
            let line = json_line(serde_json::to_vec(&Picture { server, rates, figures, queues })?);
            io::stdout().lock().write_all(&line).context(STDOUT)?;
            before = seen;
            printed += 1;
        }
        Ok(ExitCode::SUCCESS)
    }
}
