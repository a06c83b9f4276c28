//! [`Broker`]: a real broker in a process of its own.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A broker with its files in a temporary directory. The process is killed and the directory is removed when it is dropped.
pub(crate) struct Broker {
    program: PathBuf,
    args: Vec<String>,
    port: u16,
    child: Child,
    directory: tempfile::TempDir,
}

/// Finds a program: in the environment variable, in the search path, or in `target/tools` of this workspace. `None`: the program is
/// missing, and the running test is skipped.
pub(crate) fn find(program: &str, variable: &str) -> Option<PathBuf> {
    let set = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_file());
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools").join(program);
    let tools = Some(tools).filter(|path| tickwheel_testing::is_at(path));
    let found = set.or_else(|| tickwheel_testing::find(program)).or(tools);
    if found.is_none() {
        tickwheel_testing::missing(program, &format!("install it, or name its file by {variable}"));
    }
    found
}

impl Broker {
    /// Starts a broker on a free port of loopback. `args` makes its arguments from the port and its directory. Returns when the port is
    /// open.
    pub(crate) fn start(program: &Path, args: impl FnOnce(u16, &Path) -> Vec<String>) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let port = tickwheel_testing::free_port();
        let args = args(port, directory.path());
        let child = spawn(program, &args, directory.path(), port);
        Self { program: program.to_owned(), args, port, child, directory }
    }

    /// The address.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Sends a signal to the broker. `-STOP` stops it in the middle of its work: its connections stay open, and nothing is answered until
    /// `-CONT`.
    pub(crate) fn signal(&self, signal: &str) {
        let done = Command::new("kill").arg(signal).arg(self.child.id().to_string()).status();
        assert!(done.expect("kill is installed").success());
        if signal == "-STOP" {
            tickwheel_testing::until_stopped(self.child.id());
        }
    }

    /// Kills the broker at once, as a crash does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Starts a killed broker again, with its port, its arguments and its files.
    pub(crate) fn start_again(&mut self) {
        self.child = spawn(&self.program, &self.args, self.directory.path(), self.port);
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

fn spawn(program: &Path, args: &[String], directory: &Path, port: u16) -> Child {
    let log = std::fs::File::create(directory.join("log.txt")).expect("a file");
    let mut command = Command::new(program);
    command.args(args).current_dir(directory).stdin(Stdio::null());
    command.stdout(log.try_clone().expect("a file")).stderr(log);
    let mut child = command.spawn().expect("the broker starts");
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let ended = child.try_wait().expect("a child");
        let log = || std::fs::read_to_string(directory.join("log.txt")).unwrap_or_default();
        assert!(ended.is_none(), "the broker ended: {}", log());
        assert!(begun.elapsed() < tickwheel_testing::HANG_TIME, "the broker does not start: {}", log());
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}
