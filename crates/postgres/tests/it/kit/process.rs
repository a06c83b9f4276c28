//! [`Process`]: a process of Tickwheel that gets real signals.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};

use super::until::until;
use super::worker::{self, Work};

/// The words of the worker begin with this, so that the output of the test harness is told apart.
pub(super) const MARK: &str = "@ ";

/// The test binary once more, which runs its test `process` and does nothing but the [`Work`]. The binary that starts processes has that
/// test at its root, which calls [`Work::run`].
pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts a process of this name on the database.
    pub(crate) fn start(url: &str, name: &str, work: Work) -> Self {
        let binary = std::env::current_exe().expect("a test has a file");
        let mut command = Command::new(binary);
        command.args(["--exact", "process", "--ignored", "--nocapture"]);
        command.env(worker::WORK, work.word()).env(worker::URL, url).env(worker::NAME, name);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the test starts itself");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&lines);
        let reader = std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // The harness writes the name of the test without an end of the line.
                if let Some((_, line)) = line.split_once(MARK) {
                    sink.lock().expect("no panic").push(line.to_owned());
                }
            }
        });
        Self { input: child.stdin.take(), child, lines, reader: Some(reader) }
    }

    /// The lines that the process has written so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().expect("no panic").clone()
    }

    /// How many lines begin with this word.
    pub(crate) fn count(&self, word: &str) -> usize {
        let lines = self.lines.lock().expect("no panic");
        lines.iter().filter(|line| line.split(' ').next() == Some(word)).count()
    }

    /// Waits until this many more lines begin with this word.
    #[track_caller]
    pub(crate) fn until_more(&self, word: &str, more: usize) -> std::time::Duration {
        let before = self.count(word);
        until(&format!("{more} more lines `{word}`"), || self.count(word) >= before + more)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the process runs");
        if signal == Signal::STOP {
            tickwheel_testing::until_stopped(self.child.id());
        }
    }

    /// Lets the process close its queue. Returns all its lines when it has ended.
    pub(crate) fn close(mut self) -> Vec<String> {
        drop(self.input.take());
        assert!(
            self.child.wait().expect("a child").success(),
            "the process failed: {:?}",
            self.lines().last()
        );
        self.rest()
    }

    /// Kills the process. Returns all its lines.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.signal(Signal::KILL);
        let _status = self.child.wait().expect("a child");
        self.rest()
    }

    fn rest(&mut self) -> Vec<String> {
        if let Some(reader) = self.reader.take() {
            reader.join().expect("no panic");
        }
        self.lines()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// A number from the environment, such as the number of rounds.
#[allow(clippy::disallowed_methods, reason = "a test reads its environment")]
pub(crate) fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

/// Writes a line for the process that started this one.
pub(super) fn say(line: &str) {
    // The other end may be gone. Then this process is about to end.
    let _gone = writeln!(std::io::stdout().lock(), "{MARK}{line}");
}
