//! The chores `tests` and `slow-tests`: which test programs there are, and which of their tests take the longest.

use anyhow::{Context, Result, bail};

use super::program::{all, labelled};
use super::ran::{How, run as run_program};

/// The number of tests in the list.
const SLOWEST: usize = 40;

/// Prints the label and the file of each test program.
pub(crate) fn list() -> Result<()> {
    for program in all()? {
        println!("{}: {}", program.label(), program.file.display());
    }
    Ok(())
}

/// Prints the file of the program with this label.
pub(crate) fn file(label: &str) -> Result<()> {
    let programs = all()?;
    let program = programs.iter().find(|program| program.label() == label);
    println!("{}", program.with_context(|| format!("no test program is `{label}`"))?.file.display());
    Ok(())
}

/// Runs the programs with this text in their label, and prints the slowest tests.
pub(crate) fn slow(only: &str) -> Result<()> {
    let (mut slowest, mut failures) = (Vec::new(), 0);
    for program in &labelled(all()?, only)? {
        let how = How { before: &[], filters: &[], threads: 4, variables: &[] };
        let ran = run_program(program, &how)?;
        failures += ran.failed().count();
        let failed = ran.failed().map(|(name, _)| format!(" FAILED: {name}")).collect::<String>();
        let sum: f64 = ran.tests.values().map(|test| test.seconds).sum();
        println!("{}: {} tests, {sum:.1} s in all{failed}", program.label(), ran.tests.len());
        slowest.extend(ran.tests.into_iter().map(|(name, test)| (test.seconds, program.label(), name)));
    }
    slowest.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (seconds, label, test) in slowest.iter().take(SLOWEST) {
        println!("{seconds:8.2} s  {label} {test}");
    }
    if failures > 0 {
        bail!("{failures} tests failed");
    }
    Ok(())
}
