//! A real server in a process of its own: started in any way, killed at any time.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::kit::Random;

/// The longest time from a start to a kill that should happen during the recovery (ms).
const RECOVERY_MS: u64 = 80;

/// A directory with the data and the log of a server.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    /// The data directory; absolute.
    pub(crate) data: PathBuf,
    /// The file for the stderr of all servers of this home. They write to it one after the other.
    pub(crate) log: PathBuf,
}

/// A server that is ready. Dropping it kills it.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
}

/// A server that was started and is not ready yet. Dropping it kills it.
pub(crate) struct Starting {
    child: Option<Child>,
    out: ChildStdout,
}

impl Home {
    /// Makes a home below an existing directory.
    pub(crate) fn below(directory: &Path) -> Self {
        Self { data: directory.join("data"), log: directory.join("server.log") }
    }

    /// The server's command line after `wrapper`, which is a program that runs it, or nothing.
    pub(crate) fn command(&self, wrapper: &[&str]) -> Command {
        let program = env!("CARGO_BIN_EXE_tickwheel");
        let mut words =
            wrapper.iter().copied().chain([program, "serve", "--listen", "127.0.0.1:0", "--data"]);
        let mut command = Command::new(words.next().expect("the program at least"));
        // Variables of the test run's environment must not reach the server.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TICKWHEEL_") || name == "RUST_LOG" {
                command.env_remove(name);
            }
        }
        let log = File::options().create(true).append(true).open(&self.log).expect("open the server's log");
        command.env("TICKWHEEL_BEANSTALK", "off");
        command.args(words).arg(&self.data).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        command
    }

    /// Starts a server and waits until it is ready.
    pub(crate) fn start(&self) -> Server {
        self.start_as(&mut self.command(&[]))
    }

    /// Starts a server with a command that [`command`](Self::command) made.
    pub(crate) fn start_as(&self, command: &mut Command) -> Server {
        match Starting::of(command).ready() {
            Ok(server) => server,
            Err(status) => panic!("LOST: the server does not start: {status}\n{}", self.last_words()),
        }
    }

    /// The name of the checkpoint from which a recovery would start, as files are named today.
    pub(crate) fn newest_checkpoint(&self) -> Option<String> {
        let files = std::fs::read_dir(self.data.join("shard-0000")).ok()?;
        let names = files.flatten().filter_map(|file| file.file_name().into_string().ok());
        names.filter(|name| name.starts_with("checkpoint-") && !name.ends_with(".tmp")).max()
    }

    /// The lines of the log with this event.
    pub(crate) fn lines(&self, event: &str) -> Vec<String> {
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        let named = format!("event=\"{event}\"");
        said.lines().filter(|line| line.contains(&named)).map(str::to_owned).collect()
    }

    /// The end of the servers' log.
    pub(crate) fn last_words(&self) -> String {
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Starting {
    /// Runs a command that starts a server.
    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child = command.spawn().expect("start a server");
        let out = child.stdout.take().expect("piped");
        Self { child: Some(child), out }
    }

    /// Waits for the first line. Returns the exit status if there is none.
    pub(crate) fn ready(mut self) -> Result<Server, ExitStatus> {
        let mut line = String::new();
        BufReader::new(&mut self.out).read_line(&mut line).expect("read its first line");
        let mut child = self.child.take().expect("taken here only");
        let Some(url) = line.trim_end().strip_prefix("listening ") else {
            assert_eq!(line, "", "the first line");
            return Err(child.wait().expect("wait for the server"));
        };
        Ok(Server { url: url.to_owned(), child })
    }

    /// Kills the server with SIGKILL. The process is gone when this returns. True if the server was
    /// ready before.
    pub(crate) fn kill(mut self) -> bool {
        kill(self.child.as_mut().expect("taken by `ready` only"));
        let mut said = String::new();
        self.out.read_to_string(&mut said).expect("read what it said");
        said.contains("listening ")
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            kill(child);
        }
    }
}

impl Server {
    /// The process id.
    pub(crate) fn pid(&self) -> Pid {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id")
    }

    /// Sends the process a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("send the signal");
        if signal == Signal::STOP {
            tickwheel_testing::until_stopped(self.child.id());
        }
    }

    /// Kills the server with SIGKILL. The process is gone when this returns.
    pub(crate) fn kill(mut self) {
        kill(&mut self.child);
    }

    /// Waits for the end of the process, which has another cause than this call.
    pub(crate) fn ended(mut self) -> ExitStatus {
        self.child.wait().expect("wait for the server")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        kill(&mut self.child);
    }
}

/// Starts a server and kills it soon. Returns whether the kill came before the server was ready.
pub(crate) fn kill_start(random: &mut Random, command: &mut Command) -> bool {
    let starting = Starting::of(command);
    // Short waits are as likely as long ones, because a recovery of little data is over soon.
    let longest = 1 << random.below(7);
    thread::sleep(Duration::from_millis(1 + random.below(longest.min(RECOVERY_MS))));
    !starting.kill()
}

fn kill(child: &mut Child) {
    // After a kill, or an end by itself, the process is gone already.
    let _gone = child.kill();
    let _status = child.wait();
}
