//! The tests of the JavaScript that need no browser: `node --test crates/console/test/*.test.js`, and the types in its comments.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn the_logic_passes_its_tests_in_node() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/test");
    let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = files.filter(|path| path.to_string_lossy().ends_with(".test.js")).collect();
    files.sort();
    assert!(!files.is_empty(), "{folder} has no tests");
    if !tickwheel_testing::has("node", "apt-get install nodejs") {
        return;
    }
    let ran = Command::new("node").arg("--test").args(&files).output().expect("start node");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
}

#[test]
fn the_types_of_the_modules_agree() {
    let console = env!("CARGO_MANIFEST_DIR");
    let compiler = Path::new(console).join("../../target/tools/console/node_modules/typescript/bin/tsc");
    if !tickwheel_testing::has("node", "apt-get install nodejs") {
        return;
    }
    if !compiler.exists() {
        tickwheel_testing::missing("typescript", "docs/contributing/tests.md, the console in a browser");
        return;
    }
    let ran = Command::new("node").arg(compiler).args(["-p", console]).output().expect("start node");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
}
