//! One round of the load tool.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use super::server::Server;
use crate::sample::Sample;

/// What `tickwheel bench beanstalk` is told beside the server.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) mode: &'static str,
    pub(super) jobs: u64,
    pub(super) connections: u64,
    pub(super) depth: u64,
    pub(super) delay_s: u64,
    /// Leave the jobs there.
    pub(super) keep: bool,
}

impl Load {
    /// Puts, 8 connections with 64 under way on each, of 200 bytes.
    pub(super) fn puts(jobs: u64) -> Self {
        Self { mode: "put", jobs, connections: 8, depth: 64, delay_s: 0, keep: false }
    }

    /// Jobs that are due in eleven days, and stay.
    pub(super) fn far(jobs: u64) -> Self {
        Self { delay_s: 1_000_000, keep: true, ..Self::puts(jobs) }
    }

    /// One round: jobs, or cycles, in a second, and how long each took, or how late it came.
    pub(super) fn run(&self, program: &Path, server: &Server) -> anyhow::Result<Sample> {
        let mut command = Command::new(program);
        command.args(["bench", "beanstalk", &server.address.ip().to_string()]);
        command.arg(server.address.port().to_string()).args(["--rounds", "1", "-o", "json"]);
        command.args(["--mode", self.mode]);
        let numbers = [
            ("--jobs", self.jobs),
            ("--connections", self.connections),
            ("--depth", self.depth),
            ("--delay", self.delay_s),
        ];
        for (name, number) in numbers.iter().filter(|(name, number)| *name != "--delay" || *number > 0) {
            command.arg(name).arg(number.to_string());
        }
        if self.keep {
            command.arg("--keep");
        }
        let output = command.stderr(Stdio::piped()).output().with_context(|| format!("start {command:?}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{command:?} ended with {}: {said}", output.status);
        let line = String::from_utf8(output.stdout).context("read what the load tool says")?;
        let mut sample = Sample { measured: self.jobs, ..Sample::default() };
        for (figure, member) in
            [("jobs_s", "per_second"), ("p50_ms", "p50_ms"), ("p99_ms", "p99_ms"), ("p99.9_ms", "p999_ms")]
        {
            sample.figure(figure, number(&line, member)?);
        }
        Ok(sample)
    }
}

/// A member of an object of numbers.
fn number(line: &str, member: &str) -> anyhow::Result<f64> {
    let rest =
        line.split_once(&format!("\"{member}\":")).with_context(|| format!("find {member} in {line}"))?.1;
    let ends = rest.find([',', '}']).unwrap_or(rest.len());
    rest[..ends].trim().parse().with_context(|| format!("read {member} in {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_found_by_its_whole_name() {
        let line = "{\"server\":\"a\",\"per_second\":2.5,\"per_second_max\":3,\"p50_ms\":1}\n";
        assert_eq!(number(line, "per_second").expect("it is there"), 2.5);
        assert_eq!(number(line, "p50_ms").expect("it is there"), 1.0);
        assert!(number(line, "second").is_err());
    }
}
