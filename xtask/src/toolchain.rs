//! Targets and programs that a check needs. A check without one of them says that it did not run.

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::root::root;

/// Whether the toolchain has the libraries of a target.
pub(crate) fn has_target(target: &str) -> Result<bool> {
    let asked = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", target])
        .current_dir(root())
        .output()
        .context("start rustc")?;
    if !asked.status.success() {
        bail!("failed to ask rustc for {target}: {}", String::from_utf8_lossy(&asked.stderr).trim());
    }
    let folder = String::from_utf8(asked.stdout).context("read what rustc said")?;
    Ok(PathBuf::from(folder.trim()).is_dir())
}

/// Whether a program is there.
pub(crate) fn has_program(name: &str) -> bool {
    let asked = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

/// Cargo, as a person calls it.
pub(crate) fn cargo() -> Command {
    by_itself(env!("CARGO"), &[])
}

/// A program, behind words such as `nice`, as a person calls it. `cargo xtask` sets variables about its own package, and a library whose build
/// looks at them, as that of `ring` does, would be compiled again with all that is above it.
pub(crate) fn by_itself(program: impl AsRef<OsStr>, before: &[&str]) -> Command {
    let mut words = before.iter().map(OsStr::new).chain([program.as_ref()]);
    let mut command = Command::new(words.next().expect("at least the program"));
    command.args(words);
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|begin| name.starts_with(begin)) {
            command.env_remove(&*name);
        }
    }
    command
}

/// Says that something was not checked. With `TICKWHEEL_REQUIRE_ALL=1` that is a failure.
pub(crate) fn not_checked(chore: &str, what: &str) -> Result<()> {
    if env::var_os("TICKWHEEL_REQUIRE_ALL").is_some_and(|value| value == "1") {
        bail!("not checked: {what}");
    }
    eprintln!("{chore}: NOT CHECKED: {what}");
    Ok(())
}

/// Runs a command that has to succeed.
pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("start {command:?}"))?;
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(())
}
