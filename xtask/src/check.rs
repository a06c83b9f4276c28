//! The chore `check`: everything about the code that needs no test to run.

use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::code::{arrows, no_std, plant, tidy};
use crate::pages::{behaviours, claims};
use crate::root::root;
use crate::toolchain;

const FMT: &[&str] = &["fmt", "--all", "--check"];
const CLIPPY: &[&str] = &["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"];
const DENY: &[&str] =
    &["deny", "--workspace", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"];

/// Runs all of it, cheapest first, and stops at the first that fails.
pub(crate) fn run() -> Result<()> {
    cargo(FMT)?;
    arrows::run()?;
    tidy::run(&[])?;
    claims::run()?;
    plant::check()?;
    behaviours::run()?;
    if has_deny() {
        cargo(DENY)?;
    } else {
        eprintln!("check: NOT CHECKED: bans, licences and sources, for cargo-deny is not installed");
    }
    no_std::run()?;
    cargo(CLIPPY)
}

fn cargo(words: &[&str]) -> Result<()> {
    println!("cargo {}", words.join(" "));
    let status = toolchain::cargo().args(words).current_dir(root()).status();
    let status = status.with_context(|| format!("start cargo {}", words.join(" ")))?;
    if !status.success() {
        bail!("cargo {} failed: {status}", words.join(" "));
    }
    Ok(())
}

fn has_deny() -> bool {
    let asked =
        toolchain::cargo().args(["deny", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}
