//! The chore `no-std`: core builds where there is no standard library, and an index has 32 bits.

use anyhow::{Context, Result, bail};

use crate::root::root;
use crate::toolchain::{cargo, has_target, not_checked};

/// A microcontroller: `core` and `alloc` are all that exists for it, so a name from `std` cannot hide behind a feature or a
/// dependency; and its `usize` is a `u32`.
const TARGET: &str = "thumbv7em-none-eabi";

/// Builds core for that target. Where the toolchain does not have that target, it says that nothing was checked; with
/// `TICKWHEEL_REQUIRE_ALL=1` that is a failure.
pub(crate) fn run() -> Result<()> {
    if !has_target(TARGET)? {
        let what = format!("core without std, for `rustup target add {TARGET}` was not done");
        return not_checked("no-std", &what);
    }
    let words = ["build", "--quiet", "--locked", "--package", "tickwheel-core", "--target", TARGET];
    let status = cargo().args(words).current_dir(root()).status();
    let status = status.context("start cargo build")?;
    if !status.success() {
        bail!("core does not build for {TARGET}, which has no std and 32 bits: {status}");
    }
    println!("no-std: core builds for {TARGET}");
    Ok(())
}
