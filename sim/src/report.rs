//! A failure on paper: what was broken, the story of it, how to see it again.

use std::fmt;

use crate::campaign::Failure;
use crate::options::Options;
use crate::run::Outcome;
use crate::shrink::Shrunk;

/// All that is said about a failure.
#[derive(Debug)]
pub struct Report<'a> {
    /// The failure.
    pub failure: &'a Failure,
    /// The options it was met with.
    pub options: &'a Options,
    /// The shortened run, if there is one.
    pub shrunk: Option<&'a Shrunk>,
    /// The commit it was met on.
    pub commit: &'a str,
    /// The bug that was planted.
    pub bug: Option<&'a str>,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { seed, outcome, promise, why } = self.failure;
        writeln!(f, "seed {seed:#x} FAILED on commit {}: {promise} is broken", self.commit)?;
        writeln!(f, "{why}")?;
        writeln!(f, "options: {}", self.options)?;
        // The shorter story is the better one to read.
        let (outcome, options) = match self.shrunk {
            Some(shrunk) => {
                writeln!(f, "made smaller in {} runs: {}", shrunk.runs, shrunk.options)?;
                if let Some(violation) = &shrunk.outcome.violation {
                    writeln!(f, "{}", violation.what)?;
                }
                (&shrunk.outcome, &shrunk.options)
            }
            None => (outcome, self.options),
        };
        writeln!(f, "at step {}, virtual wall time {} ms", outcome.steps, outcome.wall_ms)?;
        self.story(outcome, f)?;
        writeln!(f, "the store's files:")?;
        for (name, bytes) in &outcome.files {
            writeln!(f, "  {name} {bytes}")?;
        }
        let (cfg, bug) = match self.bug {
            Some(bug) => ("RUSTFLAGS='--cfg tickwheel_sim' ", format!(" --bug {bug}")),
            None => ("", String::new()),
        };
        writeln!(f, "replay it:")?;
        write!(
            f,
            "  {cfg}cargo run --release -p tickwheel-sim -- --seed {seed:#x} --options '{options}' --until-step {} --trace{bug}",
            outcome.steps
        )
    }
}

impl Report<'_> {
    fn story(&self, outcome: &Outcome, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(violation) = outcome.violation.as_ref().filter(|violation| !violation.story.is_empty())
        else {
            return Ok(());
        };
        writeln!(f, "the key's story:")?;
        violation.story.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}
