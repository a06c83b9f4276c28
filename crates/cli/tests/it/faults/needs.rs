//! The requirements of a test on the computer, and messages about the missing ones.

use std::process::{Command, Stdio};

/// Reports the progress of a long run.
#[expect(clippy::print_stderr, reason = "progress of a long run is for the person who waits for it")]
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}

/// Whether all needs are met. If not, the running test is skipped, and a line says which program or right is missing. A missing program is a
/// failure with `TICKWHEEL_REQUIRE_ALL=1`. Any other missing need is a failure if the long tests are asked for.
pub(crate) fn has(what: &str, needs: &[Need]) -> bool {
    has_by(what, needs, |program, advice| tickwheel_testing::missing(program, advice))
}

/// Like [`has`], for a part of the running test, while the rest of it runs.
pub(crate) fn has_for(part: &str, needs: &[Need]) -> bool {
    has_by(part, needs, |program, advice| tickwheel_testing::missing_for(part, program, advice))
}

fn has_by(what: &str, needs: &[Need], missing: impl Fn(&str, &str)) -> bool {
    // A program can be installed, so it is told first.
    let first =
        needs.iter().filter(|need| !need.is_there()).min_by_key(|need| !matches!(need, Need::Program(_)));
    let Some(need) = first else { return true };
    if let Need::Program(program) = need {
        missing(program, &format!("install it to test {what}"));
    } else {
        assert!(!tickwheel_testing::is_long(), "no {need}, so {what} cannot be tested");
        tickwheel_testing::forbidden(&format!("{need}, for {what}"));
    }
    false
}

/// A need.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need {
    /// An installed program.
    Program(&'static str),
    /// The right to trace another process's system calls.
    Tracing,
    /// The right to mount, which root has outside of containers.
    Mounting,
    /// A device that can be opened.
    Device(&'static str),
    /// A control group in which the test may make others.
    Groups(&'static str),
}

impl Need {
    fn is_there(&self) -> bool {
        match self {
            Self::Program(name) => tickwheel_testing::is_there(name),
            Self::Tracing => command("strace", &["-qq", "-o", "/dev/null", "true"]) == Some(true),
            Self::Mounting => effective_capabilities() & CAP_SYS_ADMIN != 0,
            Self::Device(path) => std::fs::File::open(path).is_ok(),
            Self::Groups(path) => {
                let ours = std::path::Path::new(path).join(format!("tickwheel-{}", std::process::id()));
                std::fs::create_dir(&ours).is_ok() && std::fs::remove_dir(&ours).is_ok()
            }
        }
    }
}

impl std::fmt::Display for Need {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Program(name) => write!(f, "program {name}"),
            Self::Tracing => f.write_str("right to trace"),
            Self::Mounting => f.write_str("right to mount"),
            Self::Device(path) => write!(f, "device {path}"),
            Self::Groups(path) => write!(f, "control group in {path}"),
        }
    }
}

const CAP_SYS_ADMIN: u64 = 1 << 21;

fn effective_capabilities() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap_or_default();
    u64::from_str_radix(line.trim(), 16).unwrap_or_default()
}

/// Whether the program succeeds; `None` if it is not installed.
fn command(name: &str, words: &[&str]) -> Option<bool> {
    let mut command = Command::new(name);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().ok().map(|status| status.success())
}

/// A number from the environment.
pub(crate) fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}
