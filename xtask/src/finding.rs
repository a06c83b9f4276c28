//! A finding of a check.

use std::fmt;

use anyhow::{Result, bail};

/// One thing that is not as it should be: where, what, and what to do.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Finding {
    /// A file from the root, with a line if there is one.
    pub(crate) place: String,
    pub(crate) what: String,
    /// Whether it is only worth a look.
    pub(crate) mild: bool,
}

impl Finding {
    pub(crate) fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into(), mild: false }
    }

    pub(crate) fn mild(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { mild: true, ..Self::new(place, what) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let grade = if self.mild { "note" } else { "error" };
        write!(f, "{grade}: {}: {}", self.place, self.what)
    }
}

/// Prints the findings; an error if any of them is one.
pub(crate) fn report(chore: &str, looked_at: &str, mut findings: Vec<Finding>) -> Result<()> {
    findings.sort_by(|a, b| (!a.mild, &a.place, &a.what).cmp(&(!b.mild, &b.place, &b.what)));
    for finding in &findings {
        println!("{finding}");
    }
    let errors = findings.iter().filter(|finding| !finding.mild).count();
    if errors > 0 {
        bail!("{chore}: {errors} of {} findings are errors ({looked_at} looked at)", findings.len());
    }
    println!("{chore}: in order ({looked_at})");
    Ok(())
}
