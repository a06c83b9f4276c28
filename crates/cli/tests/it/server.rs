//! A real server in a process of its own, and commands that talk to it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};

pub(crate) use crate::program::tickwheel;
use crate::stores::{moved, until_served};
use rustix::process::{Pid, Signal, kill_process};

/// A server. Dropping it kills it.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
}

impl Server {
    /// Starts `tickwheel serve` with these options and waits for its first line.
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::start_with(options, [])
    }

    /// The same with these variables in its environment.
    pub(crate) fn start_with<'a>(
        options: &[&str],
        variables: impl IntoIterator<Item = (&'a str, &'a OsStr)>,
    ) -> Self {
        let mut command = tickwheel(&["serve"]);
        command.args(moved(options)).envs(variables);
        Self::of(command)
    }

    /// The same with a file for its log.
    pub(crate) fn start_logged(options: &[&str], log: File) -> Self {
        let mut command = tickwheel(&["serve"]);
        command.args(moved(options)).stderr(log);
        Self::of(command)
    }

    fn of(mut command: Command) -> Self {
        command.stdout(Stdio::piped());
        let mut child = command.spawn().expect("start a server");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped"))
            .read_line(&mut line)
            .expect("read its first line");
        let url = line
            .trim_end()
            .strip_prefix("listening ")
            .unwrap_or_else(|| panic!("the first line was {line:?}"));
        assert!(url.contains("://127.0.0.1:"), "{url}");
        url.strip_prefix("http://").into_iter().for_each(until_served);
        Self { url: url.to_owned(), child }
    }

    /// The `127.0.0.1:PORT` on which another server can start.
    pub(crate) fn address(&self) -> &str {
        self.url.strip_prefix("http://").expect("checked at the start")
    }

    /// The peak memory of the server so far (bytes).
    pub(crate) fn peak_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says it");
        line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).expect("a number") << 10
    }

    /// Kills the server with SIGKILL. The process is gone when this returns.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("kill the server");
        self.child.wait().expect("wait for the server");
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("send the signal");
        if signal == Signal::STOP {
            tickwheel_testing::until_stopped(self.child.id());
        }
    }

    /// Sends a signal and waits for the end.
    pub(crate) fn stop(mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        self.child.wait().expect("wait for the server")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After a kill or a stop the process is gone already.
        let _gone = self.child.kill();
        let _status = self.child.wait();
    }
}
