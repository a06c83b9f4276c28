//! `tickwheel bench beanstalk`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::cli::Cli;
use crate::load::{Mode, Plan, Round, greet, measure};
use crate::output::{Format, Row, say};
use crate::values;

/// Measure a server that speaks the protocol of beanstalkd, or compare two such servers
///
/// With two servers, the rounds alternate between them, so that other load on the machine affects both. A ratio compares two consecutive
/// rounds. Each connection uses its own tubes and leaves no job in them, unless the command is interrupted. In mode `lateness`, half of the
/// connections put jobs and the other half wait for them, so the number of connections has to be even.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel bench beanstalk 127.0.0.1 11300
  tickwheel bench beanstalk 127.0.0.1 11300 --vs 127.0.0.1:11301 --mode cycle --depth 32 --rounds 5
  tickwheel bench beanstalk 127.0.0.1 11300 --mode lateness --jobs 50000 --delay 3")]
pub(crate) struct BenchBeanstalk {
    /// The name or the address of the server's machine
    host: String,
    /// The server's port for clients of beanstalkd
    #[arg(value_parser = values::port)]
    port: u16,
    /// Another server, to compare with the first one
    #[arg(long, value_name = "HOST:PORT", value_parser = values::host_and_port)]
    vs: Option<String>,
    /// The operation to measure
    #[arg(long, value_enum, default_value_t = Mode::Put)]
    mode: Mode,
    /// How many connections
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = |text: &str| values::number(text, 1, 10_000))]
    connections: u64,
    /// How many commands (in mode `cycle`: cycles) each connection has under way at one time
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = |text: &str| values::number(text, 1, 10_000))]
    depth: u64,
    /// How many jobs a round has
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = |text: &str| values::number(text, 1, 100_000_000))]
    jobs: u64,
    /// How many bytes the payload of each job has, at least 16
    #[arg(long, value_name = "BYTES", default_value_t = 200, value_parser = |text: &str| values::number(text, 16, u64::from(tickwheel_server::JOB_BYTES_MAX)))]
    payload: u64,
    /// The delay of each job after its put (seconds); mode `cycle` has none
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = |text: &str| values::number(text, 0, 100_000_000))]
    delay: u64,
    /// The time within which the jobs of a round in mode `lateness` are put
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = values::every)]
    span: u64,
    /// How many rounds for each server
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = |text: &str| values::number(text, 1, 1_000))]
    rounds: u64,
    /// Do not delete the jobs of a round in mode `put`
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    format: Format,
}

/// The result for one server: the median of each figure over the rounds of this server.
#[derive(Serialize)]
struct Line {
    server: String,
    mode: String,
    per_second: f64,
    per_second_min: f64,
    per_second_max: f64,
    p50_ms: f64,
    p99_ms: f64,
    p999_ms: f64,
    max_ms: f64,
    /// The first server's rate divided by this server's rate in the same round: the smallest ratio, the median and the largest. `None` for
    /// the first server itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<[f64; 3]>,
}

impl BenchBeanstalk {
    /// Measures and prints the figures.
    ///
    /// # Errors
    /// There is no server, or an answer is unexpected.
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self.mode {
            Mode::Lateness if !self.connections.is_multiple_of(2) => Cli::misused(
                "bench beanstalk",
                "of lateness half of the connections put and half wait; name an even number with --connections",
            ),
            Mode::Cycle if self.delay > 0 => Cli::misused(
                "bench beanstalk",
                "a cycle has no delay: its job is reserved at once; leave --delay out",
            ),
            Mode::Put if self.keep => {}
            _ if self.keep => {
                Cli::misused("bench beanstalk", "--keep is for rounds of puts: others leave no jobs")
            }
            _ => {}
        }
        let size = |number: u64| usize::try_from(number).expect("within its limit");
        let plan = Plan {
            mode: self.mode,
            connections: size(self.connections),
            depth: size(self.depth),
            jobs: self.jobs,
            payload_bytes: size(self.payload),
            delay_s: u32::try_from(self.delay).expect("within its limit"),
            span_ms: self.span,
            keep: self.keep,
        };
        let first = if self.host.contains(':') {
            format!("[{}]:{}", self.host.trim_matches(['[', ']']), self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        };
        let servers: Vec<String> = std::iter::once(first).chain(self.vs).collect();
        // A missing server is reported at once, not after minutes of rounds.
        servers.iter().try_for_each(|server| greet(server))?;
        let mut rounds: Vec<Vec<Round>> = servers.iter().map(|_| Vec::new()).collect();
        let tube = format!("tickwheel-bench-{}", std::process::id());
        say(&format!("jobs go into tubes whose names begin with {tube}; stopped half way, they stay there"));
        for round in 1..=self.rounds {
            for (server, of) in servers.iter().zip(&mut rounds) {
                let done = measure(server, &format!("{tube}-{round}"), &plan)?;
                say(&format!("round {round} of {}: {server} {:.0}/s", self.rounds, done.per_second()));
                of.push(done);
            }
        }
        let lines = servers.into_iter().zip(&rounds).enumerate();
        self.format.print(lines.map(|(at, (server, of))| {
            let beside = (at > 0).then(|| rounds[0].as_slice());
            line(server, self.mode, of, beside)
        }))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn line(server: String, mode: Mode, rounds: &[Round], beside: Option<&[Round]>) -> Line {
    let [per_second_min, per_second, per_second_max] = spread(rounds.iter().map(Round::per_second));
    let median_ms = |permille| spread(rounds.iter().map(|round| round.permille_ms(permille)))[1];
    let pairs = |others: &[Round]| {
        spread(others.iter().zip(rounds).map(|(first, this)| first.per_second() / this.per_second()))
    };
    Line {
        server,
        mode: format!("{mode:?}").to_lowercase(),
        per_second,
        per_second_min,
        per_second_max,
        p50_ms: median_ms(500),
        p99_ms: median_ms(990),
        p999_ms: median_ms(999),
        max_ms: median_ms(1_000),
        ratio: beside.map(pairs),
    }
}

/// The smallest value, the median, and the largest value.
fn spread(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    [values[0], values[values.len() / 2], values[values.len() - 1]]
}

impl Row for Line {
    const HEADER: &'static [&'static str] =
        &["SERVER", "MODE", "PER S", "MIN", "MAX", "P50 MS", "P99 MS", "P99.9 MS", "MAX MS", "FIRST / THIS"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers and words")
    }

    fn cells(&self) -> Vec<String> {
        let ratio = self
            .ratio
            .map_or_else(String::new, |[min, median, max]| format!("{median:.2} ({min:.2} to {max:.2})"));
        let rates = [self.per_second, self.per_second_min, self.per_second_max].map(|n| format!("{n:.0}"));
        let times = [self.p50_ms, self.p99_ms, self.p999_ms, self.max_ms].map(|ms| format!("{ms:.2}"));
        [self.server.clone(), self.mode.clone()]
            .into_iter()
            .chain(rates)
            .chain(times)
            .chain([ratio])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn figures_are_medians_and_ratios_of_neighbours() {
        let round =
            |ms: u64| Round { took: Duration::from_millis(ms), micros: vec![1_000, 2_000, 3_000, 9_000] };
        let first = [round(1_000), round(2_000), round(4_000)];
        let other = [round(2_000), round(8_000), round(4_000)];
        let line = line("b".to_owned(), Mode::Put, &other, Some(&first));
        assert_eq!((line.per_second_min, line.per_second, line.per_second_max), (0.5, 1.0, 2.0));
        assert_eq!((line.p50_ms, line.p99_ms, line.max_ms), (2.0, 9.0, 9.0));
        assert_eq!(line.ratio, Some([1.0, 2.0, 4.0]));
    }
}
