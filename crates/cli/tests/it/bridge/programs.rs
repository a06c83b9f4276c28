//! The bridge and the server as processes.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

pub(crate) use crate::program::tickwheel;
use crate::rabbit::Broker;

/// Runs a bridge that ends by itself.
pub(crate) fn failed_bridge(broker: &Broker, options: &[&str]) -> Output {
    let mut command = tickwheel(&["bridge", "rabbitmq", "--url", &broker.uri()]);
    command.args(options).output().expect("the program runs")
}

/// A process that is killed when it is dropped.
pub(crate) struct Program {
    child: Child,
    lines: Receiver<String>,
    said: Arc<Mutex<Vec<String>>>,
    /// The rest of the first line.
    pub(crate) ready: String,
}

impl Program {
    /// Starts a bridge, and waits until it works.
    pub(crate) fn bridge(broker: &Broker, options: &[&str]) -> Self {
        // The password is not in the command line.
        let uri = broker.uri();
        let url = uri.replace("guest:guest@", "guest@");
        let mut command = tickwheel(&["bridge", "rabbitmq", "--url", &url]);
        command.args(options).env("TICKWHEEL_RABBITMQ_PASSWORD", "guest");
        Self::start(command, "bridging ")
    }

    /// Starts a server with the connection `main`, and waits until it listens.
    pub(crate) fn server(data: &Path, config: &Path, listen: &str) -> Self {
        let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
        let mut command = tickwheel(&["serve", "--listen", listen]);
        command.args(["--data", &text(data), "--config", &text(config)]).env("RABBIT_PASSWORD", "guest");
        Self::start(command, "listening ")
    }

    fn start(mut command: Command, word: &str) -> Self {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let said = Arc::new(Mutex::new(Vec::new()));
        let (to, lines) = channel();
        let out = BufReader::new(child.stdout.take().expect("piped"));
        thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| to.send(line)));
        let err = BufReader::new(child.stderr.take().expect("piped"));
        let kept = Arc::clone(&said);
        thread::spawn(move || {
            for line in err.lines().map_while(Result::ok) {
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
        let mut program = Self { child, lines, said, ready: String::new() };
        let first = program.lines.recv_timeout(tickwheel_testing::HANG_TIME);
        let first = first.unwrap_or_else(|_| panic!("it does not start: {:?}", program.said()));
        program.ready =
            first.strip_prefix(word).unwrap_or_else(|| panic!("the first line was {first:?}")).to_owned();
        program
    }

    /// Returns the lines on stderr so far.
    pub(crate) fn said(&self) -> Vec<String> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Kills the process at once, as a crash does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Stops the process as an operator does, and returns its last line on stdout.
    pub(crate) fn stop(mut self) -> String {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, Signal::TERM).expect("a signal");
        let mut last = String::new();
        while let Ok(line) = self.lines.recv_timeout(tickwheel_testing::HANG_TIME) {
            last = line;
        }
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}: {:?}", self.said());
        last
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Returns the number behind a word of the last line of a bridge: `kept 1,000`.
pub(crate) fn count(line: &str, word: &str) -> u64 {
    let found = line.split_once(&format!("{word} ")).unwrap_or_else(|| panic!("no {word}: {line}")).1;
    let number: String =
        found.chars().take_while(|c| c.is_ascii_digit() || *c == ',').filter(|c| *c != ',').collect();
    number.parse().unwrap_or_else(|_| panic!("no number behind {word}: {line}"))
}
