//! A Redis on loopback, started late.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use crate::faults::report::wait_for;

/// A Redis that can be started. It is killed when it is dropped.
pub(crate) struct Redis {
    port: u16,
    folder: tempfile::TempDir,
    child: Option<Child>,
}

impl Redis {
    /// A Redis that does not run yet.
    pub(crate) fn stopped() -> Self {
        let port = tickwheel_testing::free_port();
        Self { port, folder: tempfile::tempdir().expect("a folder"), child: None }
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn start(&mut self) {
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--port"]).arg(self.port.to_string());
        command.current_dir(self.folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
        self.child = Some(command.spawn().expect("it starts"));
        wait_for("redis", || TcpStream::connect(self.address()).ok());
    }

    /// The entries of a stream: the time of each (ms), and its last field.
    pub(crate) fn entries(&self, stream: &str) -> Vec<(u64, String)> {
        let mut socket = TcpStream::connect(self.address()).expect("it listens");
        // The answer to the second command shows the end of the first answer.
        socket.write_all(format!("XRANGE {stream} - +\r\nPING\r\n").as_bytes()).expect("it reads");
        let lines = BufReader::new(socket).lines().map(|line| line.expect("text"));
        let mut entries = Vec::<(u64, String)>::new();
        for line in lines.take_while(|line| line != "+PONG") {
            let time =
                line.split_once('-').and_then(|(time, nth)| nth.parse::<u64>().ok().and(time.parse().ok()));
            match (time, entries.last_mut()) {
                (Some(time), _) => entries.push((time, String::new())),
                (None, Some((_, field))) if !line.starts_with(['*', '$']) => *field = line,
                (None, _) => {}
            }
        }
        entries
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // The process may have ended already.
            let _ended = child.kill();
            let _ended = child.wait();
        }
    }
}
