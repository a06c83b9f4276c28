//! The chore `bare`: core builds where there is no standard library, and an index has 32 bits.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::root::root;

/// A microcontroller: `core` and `alloc` are all that exists for it, so a name from `std` cannot hide behind a feature or a
/// dependency; and its `usize` is a `u32`.
const TARGET: &str = "thumbv7em-none-eabi";

/// Builds core for the bare target. Where the toolchain does not have that target, it says that nothing was checked; with
/// `TICKWHEEL_REQUIRE_ALL=1` that is a failure.
pub(crate) fn run() -> Result<()> {
    if !has_target()? {
        let what = format!("core without std, for `rustup target add {TARGET}` was not done");
        if env::var_os("TICKWHEEL_REQUIRE_ALL").is_some_and(|value| value == "1") {
            bail!("not checked: {what}");
        }
        eprintln!("bare: NOT CHECKED: {what}");
        return Ok(());
    }
    let words = ["build", "--quiet", "--locked", "--package", "tickwheel-core", "--target", TARGET];
    let status = Command::new(env!("CARGO")).args(words).current_dir(root()).status();
    let status = status.context("start cargo build")?;
    if !status.success() {
        bail!("core does not build for {TARGET}, which has no std and 32 bits: {status}");
    }
    println!("bare: core builds for {TARGET}");
    Ok(())
}

/// Whether the toolchain has the libraries of the target.
fn has_target() -> Result<bool> {
    let asked = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", TARGET])
        .current_dir(root())
        .output()
        .context("start rustc")?;
    if !asked.status.success() {
        bail!("failed to ask rustc for {TARGET}: {}", String::from_utf8_lossy(&asked.stderr).trim());
    }
    let folder = String::from_utf8(asked.stdout).context("read what rustc said")?;
    Ok(PathBuf::from(folder.trim()).is_dir())
}
