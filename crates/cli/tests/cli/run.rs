//! Runs the program once.

use std::io::Write;
use std::process::{Output, Stdio};

use crate::server::tickwheel;

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs it with these words and nothing on stdin.
pub(crate) fn run(words: &[&str]) -> Ran {
    ended(&tickwheel(words).output().expect("run tickwheel"))
}

/// Runs it with this on stdin.
pub(crate) fn run_with(words: &[&str], stdin: &str) -> Ran {
    let mut command = tickwheel(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("run tickwheel");
    let mut pipe = child.stdin.take().expect("piped");
    let text = stdin.to_owned();
    // On a thread of its own: the program may print more than a pipe holds before it has read everything.
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
    /// The lines of stdout, after a run that has to succeed.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<&str> {
        assert_eq!(self.code, 0, "{}", self.err);
        self.out.lines().collect()
    }
}
