//! Processes that a test holds still.

use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::wait::HANG_TIME;

/// Waits until a process that got SIGSTOP stands still. The signal is only sent when `kill` returns, and a thread on another processor may
/// answer one more request. Where the system does not tell the states of threads (other than Linux), it returns at once.
///
/// # Panics
///
/// If the process does not stop in [`HANG_TIME`].
#[track_caller]
pub fn until_stopped(process: u32) {
    let begun = Instant::now();
    while !stands(Path::new(&format!("/proc/{process}/task"))) {
        assert!(begun.elapsed() < HANG_TIME, "process {process} does not stop");
        std::thread::yield_now();
    }
}

/// Whether no thread of these runs.
fn stands(threads: &Path) -> bool {
    let Ok(threads) = fs::read_dir(threads) else { return true };
    threads.flatten().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // The name before the state may have any sign in it. T: stopped, t: traced, Z and X: ended.
        stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with(['T', 't', 'Z', 'X']))
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_stands_still_after_the_wait_only() {
        let mut child = Command::new("sh")
            .arg("-c")
            .arg("while :; do :; done")
            .stdin(Stdio::null())
            .spawn()
            .expect("a shell");
        let threads = format!("/proc/{}/task", child.id());
        assert!(!stands(Path::new(&threads)));
        let script = format!("kill -s STOP {}", child.id());
        assert!(Command::new("sh").args(["-c", &script]).status().expect("a shell").success());
        until_stopped(child.id());
        assert!(stands(Path::new(&threads)));
        child.kill().expect("it is there");
        child.wait().expect("it ends");
    }
}
