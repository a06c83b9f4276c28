//! The faults of a file, all of them in one error.

use std::fmt::{self, Display};

use anyhow::{Result, bail};

/// A fault of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    /// The line; `None`: it has none, for it concerns the file as a whole or the environment.
    line: Option<usize>,
    what: String,
}

impl Fault {
    /// A fault in this line.
    pub(crate) fn new(line: Option<usize>, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// Succeeds if there is no fault.
///
/// # Errors
/// The faults in the order of their lines: one alone is a sentence, and several have a line each.
pub(crate) fn none(mut faults: Vec<Fault>) -> Result<()> {
    faults.sort_by_key(|fault| fault.line.unwrap_or(usize::MAX));
    match &faults[..] {
        [] => Ok(()),
        [fault] => bail!("{fault}"),
        several => {
            let told: Vec<String> = several.iter().map(Fault::to_string).collect();
            bail!("{} faults\n  {}", told.len(), told.join("\n  "))
        }
    }
}
