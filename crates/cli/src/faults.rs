//! The faults of a file, all of them in one error.

use anyhow::{Result, bail};

/// Succeeds if there is no fault.
///
/// # Errors
/// The faults: one alone is a sentence, and several have a line each.
pub(crate) fn none(faults: &[String]) -> Result<()> {
    match faults {
        [] => Ok(()),
        [fault] => bail!("{fault}"),
        several => bail!("{} faults\n  {}", several.len(), several.join("\n  ")),
    }
}
