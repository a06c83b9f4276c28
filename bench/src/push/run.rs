//! All rounds of `push`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::kind::Kind;
use super::progress::Load;
use super::sample_message::PAYLOAD_BYTES;
use super::{goals, lateness, outage, rate};
use crate::figures::Figures;
use crate::report::Report;
use crate::sample::Sample;

/// Webhooks are slower than messages to brokers, so a round has this many times fewer.
const FEWER_WEBHOOKS: u64 = 3;
/// Tasks that fall due in a second while the lateness is measured.
const LATENESS_TASKS_S: u64 = 1_000;

/// How large and how often.
#[derive(clap::Args, Debug)]
pub(crate) struct PushArguments {
    /// How often each is measured.
    #[arg(long, default_value_t = 5)]
    rounds: u64,
    /// Messages of a measurement to a broker, and a third as many webhooks.
    #[arg(long, default_value_t = 90_000)]
    messages: u64,
    /// How long the lateness is measured, seconds.
    #[arg(long, default_value_t = 10)]
    late_seconds: u64,
    /// Ready tasks behind a target that is down.
    #[arg(long, default_value_t = 100_000)]
    ready: usize,
    /// How long a target is down, seconds.
    #[arg(long, default_value_t = 20)]
    down_seconds: u64,
    /// Measure only these: kinds of targets, or the others.
    #[arg(long, value_delimiter = ',', value_parser = ["webhook", "kafka", "nats", "redis", "amqp", "beanstalk", "alone", "lateness", "outage"])]
    only: Vec<String>,
    /// Where brokers put their data, a folder; by default that of the system for temporary files.
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Runs all rounds.
pub(crate) fn run(arguments: &PushArguments) -> anyhow::Result<Report> {
    let base = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    let wanted = |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|only| only == name);
    let this = std::env::current_exe().context("find this program")?;
    let mut programs = Vec::new();
    for kind in Kind::ALL.into_iter().filter(|kind| wanted(kind.name())) {
        let Some((program, variable)) = kind.program() else {
            programs.push((kind, this.clone()));
            continue;
        };
        match Kind::find(program, variable) {
            Some(path) => programs.push((kind, path)),
            None => eprintln!(
                "SKIPPED {}: {program} is not installed, and {variable} does not name it",
                kind.name()
            ),
        }
    }
    ensure!(
        !programs.is_empty() || ["alone", "lateness", "outage"].into_iter().any(wanted),
        "none of the brokers is installed"
    );
    let (mut report, mut failed) = (Report::default(), Vec::new());
    for round in 0..arguments.rounds {
        let mut take = |implementation: &str, workload: &str, n, sample: Sample| {
            for (name, value) in sample.figures {
                report.add(implementation, workload, n, &name, value);
            }
        };
        for (kind, program) in &programs {
            let fewer = if *kind == Kind::Webhook { FEWER_WEBHOOKS } else { 1 };
            match rate::both(*kind, program, &base, Load::new(arguments.messages / fewer), round) {
                Ok(sample) => take(kind.name(), "push-rate", PAYLOAD_BYTES as u64, sample),
                // The others are measured all the same.
                Err(error) => failed.push(format!(
                    "round {}: {} beside {}: {error:#}",
                    round + 1,
                    kind.name(),
                    kind.client()
                )),
            }
        }
        if wanted("alone") {
            take("alone", "push-rate", PAYLOAD_BYTES as u64, rate::alone(Load::new(arguments.messages))?);
        }
        if wanted("lateness") {
            let (ours, control) = lateness::measured(&this, &base, LATENESS_TASKS_S, arguments.late_seconds)?;
            take("webhook", "push-lateness", LATENESS_TASKS_S, ours);
            take("control-sleep", "push-lateness", LATENESS_TASKS_S, control);
        }
        if wanted("outage") {
            let sample = outage::measured(arguments.ready, Duration::from_secs(arguments.down_seconds))?;
            take("webhook", "push-outage", arguments.ready as u64, sample);
        }
        eprintln!("round {} of {}", round + 1, arguments.rounds);
    }
    eprint!("{}", goals::summary(&Figures::read(&report.csv())?));
    for failure in &failed {
        eprintln!("FAILED, and not among the figures: {failure}");
    }
    ensure!(
        failed.len() < programs.len() * arguments.rounds as usize || programs.is_empty(),
        "each measurement of a broker failed"
    );
    Ok(report)
}
