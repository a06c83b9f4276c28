//! The console in a real browser: runs the stories of `crates/console/test/browser`, which need Node, Chromium and packages of npm.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// The program that is not there.
fn missing(root: &Path) -> Option<&'static str> {
    let packages = root.join("target/tools/console");
    let lock = |folder: &Path| fs::read(folder.join("package-lock.json")).ok();
    if !tickwheel_testing::is_there("node") {
        Some("node")
    } else if !tickwheel_testing::is_at(Path::new("/usr/lib/chromium/chromium-headless-shell")) {
        Some("chromium-headless-shell")
    } else if lock(&packages) != lock(&root.join("crates/console/test/browser")) {
        Some("packages of crates/console/test/browser/package-lock.json in target/tools/console")
    } else if !packages.join("node_modules/playwright-core").exists() {
        Some("playwright-core")
    } else {
        None
    }
}

#[test]
fn the_console_works_in_a_real_browser() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if let Some(program) = missing(&root) {
        tickwheel_testing::missing(program, "docs/contributing/tests.md, the console in a browser");
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
