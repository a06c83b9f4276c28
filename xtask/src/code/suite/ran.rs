//! [`Ran`]: one run of a test program.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::process::{Child, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::event::{Event, Outcome, read, read_plain};
use super::program::Program;
use super::skip::Skip;
use crate::toolchain::by_itself;

/// A test that ended, or that the end of its program cut off.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Tested {
    pub(super) outcome: Outcome,
    pub(super) seconds: f64,
    pub(super) output: String,
}

/// One run of a test program.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) tests: BTreeMap<String, Tested>,
    /// Lines of tests that did nothing.
    pub(super) skips: Vec<Skip>,
    /// Errors in lines that begin like those.
    pub(super) bad_skips: Vec<String>,
    /// Text that the harness did not capture.
    pub(super) talk: String,
}

/// How a program is run.
#[derive(Copy, Clone)]
pub(super) struct How<'a> {
    /// Its command begins with these words, such as `nice`.
    pub(super) before: &'a [&'a str],
    /// Only tests whose names have one of these in them. None: all.
    pub(super) filters: &'a [String],
    pub(super) threads: usize,
    /// Variables that are set; `None`: removed.
    pub(super) variables: &'a [(String, Option<String>)],
}

/// A program that takes longer hangs. It is killed, and counts as failed.
const TIME_MAX: Duration = Duration::from_secs(15 * 60);
const PAUSE: Duration = Duration::from_millis(20);

/// Runs a program to its end.
pub(super) fn run(program: &Program, how: &How<'_>) -> Result<Ran> {
    let mut command = by_itself(&program.file, how.before);
    command.args(&program.words).args(how.filters);
    if !program.is_examples() {
        command.args(["-Zunstable-options", "--format=json", "--report-time"]);
        // The harness of a stable toolchain takes those options only so. Cargo would build all packages again for it.
        command.env("RUSTC_BOOTSTRAP", "1");
    }
    command.arg(format!("--test-threads={}", how.threads)).current_dir(&program.folder);
    for (name, value) in how.variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    // Files, not pipes: a process that a test leaves behind would keep a pipe open.
    let (mut stdout, mut stderr) = (scratch()?, scratch()?);
    let copy = |file: &File| file.try_clone().context("copy a file");
    command.stdin(Stdio::null()).stdout(copy(&stdout)?).stderr(copy(&stderr)?);
    let mut process = command.spawn().with_context(|| format!("start {}", program.file.display()))?;
    let status = end_of(&mut process).with_context(|| format!("wait for {}", program.file.display()))?;
    let mut talk = text(&mut stderr)?;
    let mut tests = BTreeMap::new();
    let said = text(&mut stdout)?;
    for line in said.lines() {
        match if program.is_examples() { read_plain(line, &said) } else { read(line) } {
            Some(Event::Started(test)) => {
                let output = "the program ended before this test did".to_owned();
                tests.insert(test, Tested { outcome: Outcome::Failed, seconds: 0.0, output });
            }
            // The harness says of it, too, that it begins.
            Some(Event::Ignored(test)) => drop(tests.remove(&test)),
            Some(Event::Ended { test, outcome, seconds, output }) => {
                tests.insert(test, Tested { outcome, seconds, output });
            }
            None => talk.extend([line, "\n"]),
        }
    }
    let failed = tests.values().any(|test| test.outcome == Outcome::Failed);
    if !status.success() && !failed {
        let output = format!("{status}\n{talk}");
        tests.insert("(the program)".to_owned(), Tested { outcome: Outcome::Failed, seconds: 0.0, output });
    }
    let (mut skips, mut bad_skips) = (Vec::new(), Vec::new());
    for skip in talk.lines().filter_map(Skip::read) {
        match skip {
            Ok(skip) => skips.push(skip),
            Err(error) => bad_skips.push(format!("{error:#}")),
        }
    }
    Ok(Ran { tests, skips, bad_skips, talk })
}

/// The status of a process that ends, or is killed because it hangs.
fn end_of(process: &mut Child) -> Result<ExitStatus> {
    let begun = Instant::now();
    loop {
        if let Some(status) = process.try_wait()? {
            return Ok(status);
        }
        if begun.elapsed() > TIME_MAX {
            process.kill()?;
            return Ok(process.wait()?);
        }
        thread::sleep(PAUSE);
    }
}

/// A file without a name.
fn scratch() -> Result<File> {
    tempfile::tempfile().context("make a file")
}

/// The text of a file from its beginning.
fn text(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).context("read what the program says")?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Ran {
    /// The tests that failed.
    pub(super) fn failed(&self) -> impl Iterator<Item = (&String, &Tested)> {
        self.tests.iter().filter(|(_, test)| test.outcome == Outcome::Failed)
    }
}
