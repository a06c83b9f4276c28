//! `tickwheel replay`.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;

use crate::output::{say, stdout};
use crate::replay::play;

/// Play timestamped operations on a virtual clock and print every delivery
///
/// Years pass in seconds: the clock jumps to the next instant at which something happens. The command runs the real engine in this process
/// and in memory; it needs no server. Deliveries go to stdout, the summary to stderr.
#[derive(Args, Debug)]
#[command(after_help = "\
A line is one operation, and lines are in the order of `at`:
  {\"at\":\"2017-10-02T10:56:33Z\",\"op\":\"put\",\"queue\":\"close\",\"key\":\"order:1\",\"delay\":\"30m\",\"payload\":{\"order\":1}}
  {\"at\":\"2017-10-02T11:07:15Z\",\"op\":\"cancel\",\"queue\":\"close\",\"key\":\"order:1\"}
A put says when it is due by `delay` (from `at` on) or `due_at`; with neither it is due at `at`. Blank lines are skipped; a line
that is bad or out of order ends the replay with its number and exit code 1.

Each delivery is one line, in the order of firing, and counts as acked at once:
  {\"queue\":\"close\",\"key\":\"order:1\",\"due_at\":\"2017-10-02T11:26:33.000Z\",\"fired_at\":\"2017-10-02T11:26:33.000Z\",\"payload\":{\"order\":1}}

At one instant:
  - Due tasks fire before the operations of that instant: a cancel exactly at the due time is too late.
  - Lines keep the order of the file.
  - A put that is due at or before its own `at` fires right after its line, before the next one.
After the last line the clock runs until nothing is pending.

In the summary a cancel is `too late` if its task had fired, and `unknown` if there is no such task: it never was, it was
cancelled before, or it fired earlier than the queue's history (10,000 finished keys) reaches.

Example:
  tickwheel replay orders.ndjson > deliveries.ndjson")]
pub(crate) struct Replay {
    /// The operations, or `-` for stdin
    #[arg(value_name = "FILE")]
    file: String,
    /// Accept payloads that are valid JSON but that some readers refuse, as `serve --lax-json` does
    #[arg(long)]
    lax_json: bool,
}

impl Replay {
    /// Plays the file.
    ///
    /// # Errors
    /// The file cannot be read, or one of its lines is not valid.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let (input, name): (Box<dyn BufRead>, &str) = if self.file == "-" {
            (Box::new(BufReader::with_capacity(READ_BYTES, io::stdin().lock())), "stdin")
        } else {
            let file = File::open(&self.file).with_context(|| format!("failed to open {}", self.file))?;
            (Box::new(BufReader::with_capacity(READ_BYTES, file)), &self.file)
        };
        let began = Instant::now();
        let summary =
            play(input, stdout(), self.lax_json).with_context(|| format!("failed to replay {name}"))?;
        say(&summary.to_text(began.elapsed()));
        Ok(ExitCode::SUCCESS)
    }
}

/// The size of the read buffer (bytes): 256 KiB, a few thousand lines for each system call.
const READ_BYTES: usize = 256 * 1024;
