//! What a test needs of the machine, and what is said when it is not there.

use std::process::{Command, Stdio};

/// Tells what a campaign is doing.
#[expect(clippy::print_stderr, reason = "progress of a long run is for the person who waits for it")]
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}

/// Whether all of it is there; else it says loudly what was not tested. With `TICKWHEEL_REQUIRE_ALL=1` that is a failure.
pub(crate) fn has(what: &str, needs: &[Need]) -> bool {
    let missing: Vec<String> = needs.iter().filter(|need| !need.is_there()).map(Need::to_string).collect();
    if missing.is_empty() {
        return true;
    }
    let text = format!("NOT TESTED: {what}, for there is no {}", missing.join(", no "));
    assert!(std::env::var_os("TICKWHEEL_REQUIRE_ALL").is_none_or(|value| value != "1"), "{text}");
    say(&format!("\n!!!! {text}\n"));
    false
}

/// Something of the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need {
    Root,
    Program(&'static str),
    File(&'static str),
}

impl Need {
    fn is_there(&self) -> bool {
        match self {
            Self::Root => rustix::process::getuid().is_root(),
            Self::Program(name) => {
                let mut command = Command::new(name);
                command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                command.status().is_ok()
            }
            Self::File(path) => std::path::Path::new(path).exists(),
        }
    }
}

impl std::fmt::Display for Need {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Root => f.write_str("root"),
            Self::Program(name) => write!(f, "program {name}"),
            Self::File(path) => write!(f, "{path}"),
        }
    }
}

/// A number from the environment.
pub(crate) fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

/// Whether the tests that take minutes are asked for.
pub(crate) fn is_long() -> bool {
    std::env::var_os("TICKWHEEL_LONG").is_some_and(|value| value == "1")
}
