//! `tickwheel top`.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use serde::Serialize;
use tickwheel_api::client::{Client, ClientError};
use tickwheel_api::{QueueCounts, duration};

use crate::figures::{Figures, Rates};
use crate::output::{STDOUT, json_line};
use crate::printable::one_line;
use crate::remote::Remote;
use crate::values;

/// Watch a server work: what it does in a second, how late it is, and the queues
///
/// On a terminal the picture is drawn anew each time; into a pipe or file it is a JSON object a line. Ctrl-C ends it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel top
  tickwheel top --every 10s --sort dead
  tickwheel top --times 1 | jq .rates                  what it did in two seconds")]
pub(crate) struct Top {
    /// How often
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = values::every)]
    every: u64,
    /// Which queues come first
    #[arg(long, value_enum, default_value_t = Sort::Ready)]
    sort: Sort,
    /// End after so many pictures
    #[arg(long, value_name = "N")]
    times: Option<u64>,
    #[command(flatten)]
    remote: Remote,
}

/// What queues are sorted by: the most first, or by name.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Sort {
    Scheduled,
    Ready,
    Leased,
    Dead,
    Name,
}

/// What is seen at one moment.
struct Seen {
    at: Instant,
    queues: Vec<QueueCounts>,
    /// Or why there are none: a token with a scope does not see them.
    figures: Result<Figures, String>,
}

/// What is shown.
#[derive(Serialize)]
struct Picture<'a> {
    server: &'a str,
    rates: Option<&'a Rates>,
    figures: Option<&'a Figures>,
    queues: &'a [QueueCounts],
}

impl Top {
    /// Looks and draws, again and again.
    ///
    /// # Errors
    /// No server, or one that goes away.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let client = self.remote.client()?;
        let draws = io::stdout().is_terminal();
        let mut before = self.look(&client)?;
        let mut shown = 0;
        if draws {
            write!(io::stdout().lock(), "\x1b[2J").context(STDOUT)?;
            self.draw(&client, &before, None)?;
        }
        while self.times.is_none_or(|times| shown < times) {
            std::thread::sleep(Duration::from_millis(self.every));
            let seen = match self.look(&client) {
                Ok(seen) => seen,
                // Whoever watches wants to see it come back.
                Err(error) if draws => {
                    let silent = duration::format(before.at.elapsed().as_secs() * 1_000);
                    let error = one_line(&error.to_string());
                    write!(io::stdout().lock(), "\x1b[Hno answer for {silent}: {error}\x1b[K\r")
                        .context(STDOUT)?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let rates = match (&before.figures, &seen.figures) {
                (Ok(before_that), Ok(now)) => Some(Rates::between(before_that, now, seen.at - before.at)),
                _ => None,
            };
            if draws {
                self.draw(&client, &seen, rates.as_ref())?;
            } else {
                let figures = seen.figures.as_ref().ok();
                let (server, rates, queues) = (client.address(), rates.as_ref(), &seen.queues[..]);
                let line = json_line(serde_json::to_vec(&Picture { server, rates, figures, queues })?);
                io::stdout().lock().write_all(&line).context(STDOUT)?;
            }
            before = seen;
            shown += 1;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn look(&self, client: &Client) -> Result<Seen> {
        let mut queues = client.queues()?;
        let at = Instant::now();
        let figures = match client.metrics() {
            Ok(text) => Ok(Figures::read(&text)),
            Err(ClientError::Problem(problem)) if problem.status == 403 => Err(problem.detail),
            Err(error) => return Err(error.into()),
        };
        let most = |counts: &QueueCounts| match self.sort {
            Sort::Scheduled => counts.scheduled,
            Sort::Ready => counts.ready,
            Sort::Leased => counts.leased,
            Sort::Dead => counts.dead,
            Sort::Name => 0,
        };
        // It is stable, so that equals stay in the order of their names.
        queues.sort_by_key(|counts| std::cmp::Reverse(most(counts)));
        Ok(Seen { at, queues, figures })
    }

    fn draw(&self, client: &Client, seen: &Seen, rates: Option<&Rates>) -> Result<()> {
        let (height, width) = console::Term::stdout().size();
        let mut lines = vec![format!(
            "tickwheel at {}, every {}, Ctrl-C ends it",
            client.address(),
            duration::format(self.every)
        )];
        match (&seen.figures, rates) {
            (Err(why), _) => lines.push(format!("no figures: {why}")),
            (Ok(figures), rates) => {
                let both =
                    rates.map_or_else(|| figures.first_lines(), |rates| [rates.line(), figures.line(rates)]);
                lines.extend(both.iter().flat_map(|line| wrapped(line, width.into())));
            }
        }
        let names = names_of(width.into());
        lines.extend([String::new(), head(names)]);
        let room = usize::from(height).saturating_sub(lines.len() + 2).max(1);
        lines.extend(seen.queues.iter().take(room).map(|counts| row(counts, names)));
        if seen.queues.len() > room {
            lines.push(format!("and {} more queues", seen.queues.len() - room));
        }
        let mut out = io::stdout().lock();
        // Home, each line over the one that was there, and nothing below: a screen that is cleared first would flicker.
        write!(out, "\x1b[H").context(STDOUT)?;
        out.write_all(picture(&lines, usize::from(width)).as_bytes()).context(STDOUT)?;
        write!(out, "\x1b[J").and_then(|()| out.flush()).context(STDOUT)
    }
}

const COUNTS: [&str; 4] = ["SCHEDULED", "READY", "LEASED", "DEAD"];
/// A count of a billion less one fits, and a space before it.
const COUNT_WIDTH: usize = 10;
const HELD_WIDTH: usize = 10;

/// How wide the column of names is on a screen this wide.
fn names_of(width: usize) -> usize {
    width.saturating_sub(COUNTS.len() * COUNT_WIDTH + HELD_WIDTH).clamp(12, 60)
}

fn head(names: usize) -> String {
    let counts: String = COUNTS.iter().map(|name| format!("{name:>COUNT_WIDTH$}")).collect();
    format!("{:<names$}{counts}", "QUEUE")
}

fn row(counts: &QueueCounts, names: usize) -> String {
    let QueueCounts { queue, scheduled, ready, leased, dead, paused, draining } = counts;
    let numbers: String =
        [scheduled, ready, leased, dead].iter().map(|count| format!("{count:>COUNT_WIDTH$}")).collect();
    let held = match (paused, draining) {
        (true, _) => "  paused",
        (false, true) => "  draining",
        (false, false) => "",
    };
    let name = console::truncate_str(queue, names - 1, "~");
    format!("{name:<names$}{numbers}{held}")
}

/// A line as lines that fit, broken where it has two spaces or more.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in line.split("  ").map(str::trim).filter(|part| !part.is_empty()) {
        match lines.last_mut() {
            Some(last) if last.chars().count() + 2 + part.chars().count() <= width => {
                last.push_str("  ");
                last.push_str(part);
            }
            Some(_) => lines.push(format!("  {part}")),
            None => lines.push(part.to_owned()),
        }
    }
    lines
}

/// The lines, each over the one that was there, cut where the terminal ends.
fn picture(lines: &[String], width: usize) -> String {
    let line = |line: &String| format!("{}\x1b[K\n", console::truncate_str(&one_line(line), width, ""));
    lines.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_drive_the_terminal() {
        let queue = "a\u{1b}[2J\u{202e}b".to_owned();
        let counts =
            QueueCounts { queue, scheduled: 1, ready: 2, leased: 3, dead: 4, paused: false, draining: false };
        let picture = picture(&[row(&counts, 40), "no figures: \u{9b}2J".to_owned()], 80);
        let own = picture.replace("\u{1b}[K\n", "");
        assert!(own.contains("a\\u{1b}[2J\\u{202e}b") && own.contains("no figures: \\u{9b}2J"), "{own:?}");
        assert!(!own.contains(crate::printable::is_hidden), "{own:?}");
    }

    #[test]
    fn eighty_columns_are_enough() {
        let counts = QueueCounts {
            queue: "q".repeat(200),
            scheduled: 999_999_999,
            ready: 12,
            leased: 3,
            dead: 0,
            paused: false,
            draining: true,
        };
        let names = names_of(80);
        let row = row(&counts, names);
        assert!(row.chars().count() <= 80 && row.ends_with("0  draining"), "{row}");
        assert_eq!(head(names).find("SCHEDULED"), row.find("999999999"), "one below the other");
        let line = "in a second: puts 1.0  fired 20000  leased 20000   oldest due for 1 s";
        assert_eq!(
            wrapped(line, 46),
            ["in a second: puts 1.0  fired 20000", "  leased 20000  oldest due for 1 s"]
        );
        assert_eq!(wrapped(line, 1).len(), 4, "narrower than a word, each has a line");
    }
}
