//! The tests of the JavaScript, which need Node and no browser: `node --test crates/console/test/*.test.js`.

use std::process::Command;
use std::{env, fs};

#[test]
fn the_logic_passes_its_tests_in_node() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/test");
    let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = files.filter(|path| path.to_string_lossy().ends_with(".test.js")).collect();
    files.sort();
    assert!(!files.is_empty(), "{folder} has no tests");
    let Ok(ran) = Command::new("node").arg("--test").args(&files).output() else {
        let skipped = "SKIPPED: node is not installed (apt-get install nodejs)";
        assert!(env::var_os("TICKWHEEL_REQUIRE_ALL").is_none_or(|value| value != "1"), "{skipped}");
        eprintln!("{skipped}");
        return;
    };
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
}
