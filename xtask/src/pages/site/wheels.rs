//! The wheels of `learn/wheel.html`, compiled to WebAssembly, and the check that they turn as core's wheels do.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::root::root;
use crate::toolchain::{cargo, has_program, has_target, not_checked, succeed};

const TARGET: &str = "wasm32-unknown-unknown";
const PACKAGE: &str = "tickwheel-wheel-page";
/// The page has the bytes as text in a script, because a page that is opened as a file may load scripts, but may not fetch files.
const SCRIPT: &str = "learn/wheel.wasm.js";

/// Puts the wheels into the site. Where the toolchain cannot compile them, the page says so.
pub(super) fn make(site: &Path) -> Result<()> {
    let script = site.join(SCRIPT);
    if !has_target(TARGET)? {
        write(&script, "null")?;
        return not_checked(
            "site",
            &format!("the wheel page, for `rustup target add {TARGET}` was not done"),
        );
    }
    let root = root();
    let words =
        ["build", "--quiet", "--locked", "--profile", "page", "--lib", "--package", PACKAGE, "--target"];
    succeed(cargo().args(words).arg(TARGET).current_dir(&root))?;
    let compiled = root.join(format!("target/{TARGET}/page/{}.wasm", PACKAGE.replace('-', "_")));
    let bytes = fs::read(&compiled).with_context(|| format!("read {}", compiled.display()))?;
    write(&script, &format!("\"{}\"", STANDARD.encode(&bytes)))?;
    println!("wheels: {} KB of WebAssembly", bytes.len().div_ceil(1_000));
    compare(&root, &script)
}

fn write(script: &Path, value: &str) -> Result<()> {
    let text = format!("globalThis.TICKWHEEL_WHEELS = {value};\n");
    fs::write(script, text).with_context(|| format!("write {}", script.display()))
}

/// Plays the same steps on core and, by the script of the page, on the compiled wheels.
fn compare(root: &Path, script: &Path) -> Result<()> {
    if !has_program("node") {
        return not_checked("site", "that the wheel page turns as core does, for there is no node");
    }
    let words = ["run", "--quiet", "--locked", "--package", PACKAGE, "--bin", "trace"];
    let trace = cargo().args(words).current_dir(root).stdout(Stdio::piped()).spawn();
    let mut trace = trace.context("start cargo run")?;
    let steps = trace.stdout.take().context("the output of the trace")?;
    let compared = succeed(
        Command::new("node")
            .arg(root.join("examples/wheel/compare.js"))
            .arg(root.join("docs/learn/wheel.js"))
            .arg(script)
            .stdin(steps),
    );
    let traced = trace.wait().context("wait for the trace")?;
    compared?;
    // A trace that ended early has fewer steps, and all of them may be equal.
    if !traced.success() {
        bail!("the trace of core's wheels: {traced}");
    }
    Ok(())
}
