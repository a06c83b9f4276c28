//! [`Skip`]: the line of a test that does nothing, for something is missing. `crates/testing` writes it.

use std::fmt;

use anyhow::{Context, Result};

const BEGIN: &str = "SKIPPED: ";

/// Why a test does nothing.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Why {
    /// This program is not installed.
    Program(String),
    /// This computer does not allow it, or a variable does not name its data.
    Other(String),
}

/// A line of a test.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Skip {
    pub(super) test: String,
    /// The part of the test, if the rest of it runs.
    pub(super) part: Option<String>,
    pub(super) why: Why,
}

impl Skip {
    /// Reads a line of a test; `None`: it is no such line.
    ///
    /// # Errors
    ///
    /// The line names no test, or neither a program nor another reason.
    pub(super) fn read(line: &str) -> Option<Result<Self>> {
        let begin = line.find(BEGIN)?;
        Some(Self::of(&line[begin + BEGIN.len()..]).with_context(|| format!("`{line}`")))
    }

    fn of(line: &str) -> Result<Self> {
        let (test, rest) = test_and_rest(line).context("it names no test")?;
        // A part may have a colon in it.
        let (part, why) = match rest.strip_prefix(" (").and_then(|rest| rest.split_once("): ")) {
            Some((part, why)) => (Some(part.to_owned()), why),
            None => (None, rest.strip_prefix(": ").context("it names no test")?),
        };
        let why = if let Some(rest) = why.strip_prefix("no ") {
            let (program, _) = rest.split_once(": ").context("it says not how to get the program")?;
            Why::Program(program.to_owned())
        } else {
            let other = ["not allowed: ", "not set: "].iter().any(|kind| why.starts_with(kind));
            Why::Other(other.then(|| why.to_owned()).context("it names no program")?)
        };
        Ok(Self { test: test.to_owned(), part, why })
    }
}

/// The name of the test at the begin of a line, and what follows it: a part in brackets, or the reason.
pub(super) fn test_and_rest(line: &str) -> Option<(&str, &str)> {
    let end = line.find(" (").into_iter().chain(line.find(": ")).min()?;
    Some(line.split_at(end))
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.test)?;
        if let Some(part) = &self.part {
            write!(f, " ({part})")?;
        }
        match &self.why {
            Why::Program(program) => write!(f, ": no {program}"),
            Why::Other(why) => write!(f, ": {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_test_its_part_and_the_program() {
        let read = |line| {
            Skip::read(line).map(|skip| skip.map_or_else(|error| format!("{error:#}"), |s| s.to_string()))
        };
        assert_eq!(read("test a::b ... ok"), None);
        assert_eq!(read("SKIPPED: a::b: no node: apt-get install nodejs").as_deref(), Some("a::b: no node"));
        assert_eq!(
            read("x SKIPPED: a::b (docs/a.md): no python3 -c 'import a': it cannot run").as_deref(),
            Some("a::b (docs/a.md): no python3 -c 'import a'")
        );
        assert_eq!(
            read("SKIPPED: a::b (x: y): no go: apt-get install golang-go").as_deref(),
            Some("a::b (x: y): no go")
        );
        assert_eq!(
            read("SKIPPED: a: not allowed: right to mount, for a full disk").as_deref(),
            Some("a: not allowed: right to mount, for a full disk")
        );
        assert_eq!(
            read("SKIPPED: a: I do not like it").as_deref(),
            Some("`SKIPPED: a: I do not like it`: it names no program")
        );
    }
}
