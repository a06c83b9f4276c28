//! The totals file: one line for each range of seeds that passed.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use crate::coverage::Coverage;

/// A range that passed.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// The commit that was run, followed by `+` if the working tree had changes.
    pub commit: &'a str,
    /// The seeds, as they were given on the command line: `0..10000`.
    pub seeds: &'a str,
    /// The number of runs.
    pub runs: u64,
    /// The situations that the runs met.
    pub coverage: Coverage,
    /// The duration of all runs.
    pub took: Duration,
}

impl Line<'_> {
    /// Adds the line to a file. If there is no such file, it is created.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append(&self, file: &Path) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(file)?;
        file.write_all(self.text().as_bytes())
    }

    fn text(&self) -> String {
        let met = &self.coverage;
        format!(
            "commit={} seeds={} runs={} calls={} crashes={} crashes-in-recovery={} faults={} checkpoints={} seconds={:.0}\n",
            self.commit,
            self.seeds,
            self.runs,
            met.calls,
            met.crashes,
            met.crashes_in_recovery,
            met.faults(),
            met.checkpoints,
            self.took.as_secs_f64()
        )
    }
}

/// A commit, the ranges that were run on it, and the sums over them.
type Commit = (String, Vec<(u64, u64)>, Vec<(String, u64)>);

/// The sums over the lines of a totals file, one line for each commit.
///
/// # Errors
/// A sentence about a line that is malformed, or about ranges of one commit that overlap: a seed would count twice.
pub fn sums(text: &str) -> Result<String, String> {
    let mut commits: Vec<Commit> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let bad = |what: &str| format!("line {}: {what}: {line}", number + 1);
        let mut parts = line.split(' ').map(|part| part.split_once('='));
        let commit = parts.next().flatten().filter(|(name, _)| *name == "commit");
        let seeds = parts.next().flatten().filter(|(name, _)| *name == "seeds");
        let (Some((_, commit)), Some((_, seeds))) = (commit, seeds) else {
            return Err(bad("no commit and seeds"));
        };
        let known = commits.iter().position(|(known, ..)| known == commit);
        let at = known.unwrap_or_else(|| {
            commits.push((commit.to_owned(), Vec::new(), Vec::new()));
            commits.len() - 1
        });
        let (_, ranges, counts) = &mut commits[at];
        let range = seeds.split_once("..").and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let (from, to): (u64, u64) = range.ok_or_else(|| bad("no range of seeds"))?;
        if ranges.iter().any(|&(other_from, other_to)| from < other_to && other_from < to) {
            return Err(bad("a seed of this range was counted before"));
        }
        ranges.push((from, to));
        for part in parts {
            let (name, count) = part.ok_or_else(|| bad("not of the form name=number"))?;
            let count: u64 = count.parse().map_err(|_| bad("not a number"))?;
            match counts.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += count,
                None => counts.push((name.to_owned(), count)),
            }
        }
    }
    let mut said = String::new();
    for (commit, ranges, counts) in commits {
        let counts: Vec<String> = counts.into_iter().map(|(name, sum)| format!("{name}={sum}")).collect();
        let _ = writeln!(said, "commit={commit} ranges={} {}", ranges.len(), counts.join(" "));
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(commit: &str, seeds: &str) -> String {
        let coverage = Coverage { calls: 1_000, crashes: 7, ..Coverage::default() };
        Line { commit, seeds, runs: 5, coverage, took: Duration::from_millis(2_600) }.text()
    }

    #[test]
    fn ranges_of_one_commit_add_up() {
        let text = line("abc", "0..5") + &line("abc", "5..10") + &line("def", "0..5");
        let sums = sums(&text).expect("good lines");
        let mut lines = sums.lines();
        let first = lines.next().expect("a line for each commit");
        assert!(first.starts_with("commit=abc ranges=2 runs=10 calls=2000 crashes=14 "), "{first}");
        assert!(first.ends_with("seconds=6"), "{first}");
        assert!(lines.next().is_some_and(|line| line.starts_with("commit=def ranges=1 runs=5 ")));
    }

    #[test]
    fn a_seed_counts_once() {
        let text = line("abc", "0..5") + &line("abc", "4..10");
        assert!(sums(&text).expect_err("4 is in both").starts_with("line 2"));
    }
}
