//! The text about a failure: what was broken, the events that led to it, and how to run it again.

use std::fmt;

use crate::campaign::Failure;
use crate::options::Options;
use crate::run::Outcome;
use crate::shrink::Shrunk;

/// Everything that the text about a failure names.
#[derive(Debug)]
pub struct Report<'a> {
    /// The failure.
    pub failure: &'a Failure,
    /// The options of the run that failed.
    pub options: &'a Options,
    /// The smaller run, if one was found.
    pub shrunk: Option<&'a Shrunk>,
    /// The commit that was run.
    pub commit: &'a str,
    /// The planted bug, if one was switched on.
    pub bug: Option<&'a str>,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { seed, outcome, promise, why } = self.failure;
        writeln!(f, "seed {seed:#x} FAILED on commit {}: {promise} is broken", self.commit)?;
        writeln!(f, "{why}")?;
        writeln!(f, "options: {}", self.options)?;
        // The story of the smaller run is shorter, so that one is printed.
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
        // The copy of the sources that has the bugs is a workspace of its own.
        let (cd, bug) = match self.bug {
            Some(bug) => ("cd target/planted/src && CARGO_TARGET_DIR=.. ", format!(" --bug {bug}")),
            None => ("", String::new()),
        };
        writeln!(f, "replay it:")?;
        write!(
            f,
            "  {cd}cargo run --release -p tickwheel-sim -- --seed {seed:#x} --options '{options}' --until-step {} --trace{bug}",
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
