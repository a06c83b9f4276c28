//! The tests of the JavaScript that need no browser: `node --test crates/console/test/*.test.js`, and the types in its comments.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// A test that lacks a tool says so, and fails where all tools are required.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn skip(what: &str) {
    assert!(env::var_os("TICKWHEEL_REQUIRE_ALL").is_none_or(|value| value != "1"), "SKIPPED: {what}");
    eprintln!("SKIPPED: {what}");
}

#[test]
fn the_logic_passes_its_tests_in_node() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/test");
    let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = files.filter(|path| path.to_string_lossy().ends_with(".test.js")).collect();
    files.sort();
    assert!(!files.is_empty(), "{folder} has no tests");
    let Ok(ran) = Command::new("node").arg("--test").args(&files).output() else {
        skip("node is not installed (apt-get install nodejs)");
        return;
    };
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
}

#[test]
fn the_types_of_the_modules_agree() {
    let console = env!("CARGO_MANIFEST_DIR");
    let compiler = Path::new(console).join("../../target/tools/console/node_modules/typescript/bin/tsc");
    if !compiler.exists() {
        skip("typescript is not installed (CONTRIBUTING.md, the console in a browser)");
        return;
    }
    let ran = Command::new("node").arg(compiler).args(["-p", console]).output().expect("start node");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
}
