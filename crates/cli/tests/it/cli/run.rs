//! Runs of the program.

use std::io::Write;
use std::process::{Output, Stdio};

use crate::server::tickwheel;

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs the program with these arguments and an empty stdin.
pub(crate) fn run(words: &[&str]) -> Ran {
    ended(&tickwheel(words).output().expect("run tickwheel"))
}

/// Runs the program with this text on stdin.
pub(crate) fn run_with(words: &[&str], stdin: &str) -> Ran {
    let mut command = tickwheel(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("run tickwheel");
    let mut pipe = child.stdin.take().expect("piped");
    let text = stdin.to_owned();
    // The writer has its own thread, because the program may fill the pipe of its output before it has read
    // all input.
    let writer = std::thread::spawn(move || drop(pipe.write_all(text.as_bytes())));
    let output = child.wait_with_output().expect("run tickwheel");
    writer.join().expect("the writer only writes");
    ended(&output)
}

fn ended(output: &Output) -> Ran {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("it prints UTF-8");
    let code = output.status.code().unwrap_or_else(|| panic!("ended by a signal: {output:?}"));
    let ran = Ran { code, out: text(&output.stdout), err: text(&output.stderr) };
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    ran
}

impl Ran {
    /// The lines of stdout, after a run that must succeed.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<&str> {
        assert_eq!(self.code, 0, "{}", self.err);
        self.out.lines().collect()
    }
}
