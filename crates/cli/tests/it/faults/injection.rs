//! System calls that fail, by strace: the kernel does not execute them, and the server gets a chosen result.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::faults::report::wait_for;

/// The calls by which data reaches the disk.
const CALLS: &str = "trace=pwrite64,fdatasync,fsync,ftruncate,/^rename";

/// strace attached to a running server. Dropping it detaches, and the server then runs undisturbed.
pub(crate) struct Injection {
    strace: Child,
    trace: PathBuf,
}

impl Injection {
    /// Injects a fault into a running server, such as `fdatasync:error=EIO:when=3`. The count begins now, for each
    /// thread.
    pub(crate) fn into_running(server: Pid, inject: &str, directory: &Path) -> Self {
        wait_until_quiet(server);
        let trace = directory.join("trace");
        let mut command = Command::new("strace");
        command.args(["-f", "-e", CALLS, "-e", &format!("inject={inject}"), "-o"]).arg(&trace);
        command.args(["-p", &server.as_raw_nonzero().to_string()]);
        let mut strace = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("start strace");
        let mut said = BufReader::new(strace.stderr.take().expect("piped"));
        let mut line = String::new();
        said.read_line(&mut line).expect("read what strace says");
        assert!(line.contains("attached"), "strace: {line}");
        // strace prints more when threads start and end. This thread reads its output, because strace must not
        // block.
        std::thread::spawn(move || said.read_to_string(&mut String::new()));
        Self { strace, trace }
    }

    /// Waits until the server made such a call.
    pub(crate) fn wait_for_call(&self, name: &str) {
        wait_for(&format!("{name} to be called"), || {
            std::fs::read_to_string(&self.trace).ok()?.contains(name).then_some(())
        });
    }

    /// Detaches from the server and returns the calls that were seen, one per line.
    pub(crate) fn end(mut self) -> String {
        self.let_go();
        std::fs::read_to_string(&self.trace).expect("read the trace")
    }

    fn let_go(&mut self) {
        let id = i32::try_from(self.strace.id()).ok().and_then(Pid::from_raw).expect("a process id");
        // If the server ended, strace has ended by itself.
        let _ended = kill_process(id, Signal::INT);
        let _status = self.strace.wait();
    }
}

impl Drop for Injection {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// The words before a server's command line. They inject faults from its first call on. The server stays a child of
/// the test.
pub(crate) fn from_the_start<'a>(inject: &'a str, trace: &'a str) -> [&'a str; 10] {
    ["strace", "-D", "-f", "-qq", "-e", CALLS, "-e", inject, "-o", trace]
}

/// Waits until a server without callers has prepared its files.
fn wait_until_quiet(server: Pid) {
    let mut last = (0, String::new());
    wait_for("the server to write nothing", || {
        let now =
            std::fs::read_to_string(format!("/proc/{}/io", server.as_raw_nonzero())).expect("read its I/O");
        last = if last.1 == now { (last.0 + 1, now) } else { (0, now) };
        (last.0 == 20).then_some(())
    });
}
