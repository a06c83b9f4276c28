//! Servers for the tests: this one, and beanstalkd.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::stores::{moved, until_served};

/// A server that is killed when it is dropped.
pub(crate) struct Door {
    child: Child,
    /// The address of the beanstalkd door.
    pub(crate) address: String,
    /// The address of the HTTP door.
    pub(crate) http: String,
}

impl Door {
    /// Starts this server with further options in addition to its addresses.
    pub(crate) fn ours(options: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tickwheel"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TICKWHEEL_") || name == "RUST_LOG" {
                command.env_remove(name);
            }
        }
        command.args(["serve", "--listen", "127.0.0.1:0", "--beanstalk", "127.0.0.1:0"]).args(moved(options));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("start a server");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut next = |of: &str| {
            let line = lines.next().expect("the server starts").expect("it prints text");
            line.strip_prefix(of).unwrap_or_else(|| panic!("`{line}` does not begin with `{of}`")).to_owned()
        };
        let http = next("listening ");
        let address = next("listening beanstalk://");
        until_served(http.trim_start_matches("http://"));
        Self { child, address, http }
    }

    /// Starts this server with its jobs in a directory, which has the number of shards of the variable `TICKWHEEL_TEST_SHARDS`, or one. The
    /// other servers have one shard in any case: the ids in their conversations are those of beanstalkd, without gaps.
    pub(crate) fn durable(directory: &Path) -> Self {
        let shards = std::env::var("TICKWHEEL_TEST_SHARDS").unwrap_or_else(|_| "1".to_owned());
        Self::ours(&["--data", directory.to_str().expect("a path of text"), "--shards", &shards])
    }

    /// Starts beanstalkd, if it is installed. If the test run requires all components, a missing one is a failure.
    pub(crate) fn beanstalkd() -> Option<Self> {
        if !tickwheel_testing::has("beanstalkd", "apt-get install beanstalkd") {
            return None;
        }
        let port = tickwheel_testing::free_port();
        let child = Command::new("beanstalkd")
            .args(["-l", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("start beanstalkd");
        let door = Self { child, address: format!("127.0.0.1:{port}"), http: String::new() };
        let begun = Instant::now();
        while TcpStream::connect(&door.address).is_err() {
            assert!(begun.elapsed() < tickwheel_testing::HANG_TIME, "beanstalkd does not start");
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(door)
    }

    /// Kills the server at once, as a crash does.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}
