//! The console in a real browser: runs the stories of `crates/console/test/browser`, which need Node, Chromium and packages of npm.

use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

/// The tool that is not there.
fn missing(root: &Path) -> Option<&'static str> {
    let packages = root.join("target/tools/console");
    let lock = |folder: &Path| fs::read(folder.join("package-lock.json")).ok();
    if Command::new("node").arg("--version").stdout(Stdio::null()).status().is_err() {
        Some("node is not installed")
    } else if !Path::new("/usr/lib/chromium/chromium-headless-shell").exists() {
        Some("chromium-headless-shell is not installed")
    } else if lock(&packages) != lock(&root.join("crates/console/test/browser")) {
        Some(
            "the packages in target/tools/console are not those of crates/console/test/browser/package-lock.json",
        )
    } else if !packages.join("node_modules/playwright-core").exists() {
        Some("playwright-core is not installed")
    } else {
        None
    }
}

#[test]
fn the_console_works_in_a_real_browser() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if let Some(what) = missing(&root) {
        let skipped = format!("SKIPPED: {what} (CONTRIBUTING.md, the console in a browser)");
        assert!(env::var_os("TICKWHEEL_REQUIRE_ALL").is_none_or(|value| value != "1"), "{skipped}");
        eprintln!("{skipped}");
        return;
    }
    let main = root.join("crates/console/test/browser/main.js");
    let mut node = Command::new("node");
    node.arg(main).arg(env!("CARGO_BIN_EXE_tickwheel"));
    // Other tests run at the same time.
    node.env("PATIENCE", env::var_os("PATIENCE").unwrap_or_else(|| "3".into()));
    let ran = node.output().expect("start node");
    let (told, said) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{told}{said}");
}
