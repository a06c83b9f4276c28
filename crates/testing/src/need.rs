//! Programs and rights that a test needs, and the line that names a missing one.

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Whether a test fails if its program is missing: `TICKWHEEL_REQUIRE_ALL=1`.
pub fn requires_all() -> bool {
    std::env::var_os("TICKWHEEL_REQUIRE_ALL").is_some_and(|value| value == "1")
}

/// Returns the file of a program: a path, or a name that is looked up in the search path. The program is not started.
pub fn find(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|file| file.is_file());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Whether something is installed at a fixed place outside the search path, such as a folder of a package. Never with
/// `TICKWHEEL_TEST_BARE=1`, by which `scripts/test bare` sees what tests do on a computer without it.
pub fn is_at(place: &Path) -> bool {
    std::env::var_os("TICKWHEEL_TEST_BARE").is_none_or(|value| value != "1") && place.exists()
}

/// Whether a program is installed. It says nothing if not.
pub fn is_there(program: &str) -> bool {
    find(program).is_some()
}

/// Whether a program is installed. If not, the running test is skipped as by [`missing`]: it has to return.
///
/// # Panics
///
/// If it is not installed and all programs are required.
#[track_caller]
pub fn has(program: &str, advice: &str) -> bool {
    let there = is_there(program);
    if !there {
        missing(program, advice);
    }
    there
}

/// Says that the running test does nothing, for `program` is missing, and how one gets it.
///
/// # Panics
///
/// If all programs are required.
#[track_caller]
pub fn missing(program: &str, advice: &str) {
    skip(&test(), &format!("no {program}: {advice}"));
}

/// Like [`missing`], for a part of the running test, while the rest of it runs.
///
/// # Panics
///
/// If all programs are required.
#[track_caller]
pub fn missing_for(part: &str, program: &str, advice: &str) {
    skip(&format!("{} ({part})", test()), &format!("no {program}: {advice}"));
}

/// Says that the running test does nothing, for this computer does not allow what it does, such as to mount. That is no failure, also if
/// all programs are required: a program can be installed, a right can not.
pub fn forbidden(what: &str) {
    say(&format!("SKIPPED: {}: not allowed: {what}", test()));
}

/// Says that the running test does nothing, for a variable of the environment does not name the data that it reads. That is no failure.
pub fn unset(variable: &str, what: &str) {
    say(&format!("SKIPPED: {}: not set: {variable}: {what}", test()));
}

#[track_caller]
fn skip(which: &str, why: &str) {
    let line = format!("SKIPPED: {which}: {why}");
    assert!(!requires_all(), "{line} (and TICKWHEEL_REQUIRE_ALL is 1)");
    say(&line);
}

/// The name of the running test, which its thread has.
fn test() -> String {
    std::thread::current().name().unwrap_or("a test").to_owned()
}

/// Writes a line. `eprintln!` is not shown for a test that passes, and one call keeps the lines of several threads apart.
fn say(line: &str) {
    let text = format!("\n{line}\n");
    std::io::stderr().write_all(text.as_bytes()).expect("write to stderr");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_its_name_and_by_its_path() {
        let here = std::env::current_exe().expect("this program");
        let here = here.to_str().expect("a path of text");
        assert_eq!(find(here).as_deref(), Some(here.as_ref()));
        assert!(is_there("sh"), "no sh in the search path");
        assert!(!is_there("no-program-has-this-name") && !is_there("/no/program/has/this/path"));
        assert!(!is_there("/"), "a folder is no program");
    }

    #[test]
    fn a_thread_of_a_test_has_its_name() {
        assert_eq!(test(), "need::tests::a_thread_of_a_test_has_its_name");
    }
}
