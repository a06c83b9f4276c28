//! [`Server`]: the process that is killed.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tickwheel_client::blocking::Client;

use super::ledger::Ledger;
use super::place::Place;

/// The longest wait for a server to take calls.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// The interval at which a server is asked whether it takes calls.
const LOOK: Duration = Duration::from_millis(5);

/// A server of the demo: this program as `serve`, in a process of its own. Dropping it kills it.
pub(super) struct Server {
    child: Child,
    /// `127.0.0.1:PORT`.
    address: String,
    log: PathBuf,
}

impl Server {
    /// Starts a server on this place and waits until it is ready. `root` is the temporary directory. `listen` is `127.0.0.1:PORT`, or port 0
    /// for any.
    ///
    /// # Errors
    /// The server does not start, or does not get ready in time; the error has the end of its log.
    pub(super) fn start(place: &Place, root: &Path, listen: &str) -> Result<Self> {
        let log = root.join("server.log");
        let stderr = File::options().create(true).append(true).open(&log).context("open the server's log")?;
        let program = std::env::current_exe().context("find this program")?;
        let mut command = Command::new(program);
        command
            .args(["serve", "--listen", listen, "--beanstalk", "off", "--console", "on", "--log", "warn"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr);
        // Variables for the user's own server must not reach this one.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TICKWHEEL_") {
                command.env_remove(name);
            }
        }
        place.tell(&mut command, root);
        let child = command.spawn().context("start the server")?;
        let mut server = Self { child, address: String::new(), log };
        server.address = server.listens_at()?;
        server.wait_until_ready()?;
        Ok(server)
    }

    /// The address in the first line that the server prints.
    fn listens_at(&mut self) -> Result<String> {
        let stdout = self.child.stdout.take().context("read what the server prints")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).context("read the server's first line")?;
        match line.trim().strip_prefix("listening http://") {
            Some(address) => Ok(address.to_owned()),
            None => bail!("the server did not start: {}", self.last_words()),
        }
    }

    /// Waits until the server takes calls. In a database, a server waits for the end of the lease of the one before.
    fn wait_until_ready(&mut self) -> Result<()> {
        let client = Client::new(&self.url())?;
        let begun = Instant::now();
        while !client.health().is_ok_and(|health| health.ready) {
            if let Some(status) = self.ended()? {
                bail!("the server ended by itself ({status}): {}", self.last_words());
            }
            if begun.elapsed() > READY_LIMIT {
                bail!("the server is not ready after {} s: {}", READY_LIMIT.as_secs(), self.last_words());
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// The address that the server listens on, `127.0.0.1:PORT`.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The address of the server's console, for a browser.
    pub(super) fn console(&self) -> String {
        format!("{}/console/", self.url())
    }

    /// The server's URL.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Kills the server with SIGKILL, so that it can write nothing more. Returns when the process is gone.
    pub(super) fn kill(mut self) -> Result<()> {
        self.child.kill().context("kill the server")?;
        self.child.wait().context("wait for the killed server")?;
        Ok(())
    }

    /// The exit status, if the server ended by itself; that is a failure of the demo.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().context("look after the server")
    }

    /// The end of the server's log.
    pub(super) fn last_words(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines.iter().rev().take(5).rev().copied().collect::<Vec<_>>().join("\n");
        if last.is_empty() { "it said nothing".to_owned() } else { last }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may be gone already, so errors are ignored.
        let _gone = self.child.kill();
        let _status = self.child.wait();
    }
}

/// The address to listen on: with this port if it is free now, otherwise with any.
pub(super) fn listen_near(port: u16) -> String {
    let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match TcpListener::bind(wanted) {
        Ok(_) => wanted.to_string(),
        Err(_) => "127.0.0.1:0".to_owned(),
    }
}

/// One kill and its outage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outage {
    pub(super) began_ms: i64,
    /// The instant at which the new server was ready.
    pub(super) ended_ms: i64,
    /// Calls that were under way at the kill.
    pub(super) in_flight: usize,
    pub(super) lasted: Duration,
}

impl Outage {
    /// Kills a server and starts another on the same place and port.
    pub(super) fn make(
        server: Server,
        place: &Place,
        root: &Path,
        ledger: &Ledger,
        in_flight: usize,
    ) -> Result<(Server, Self)> {
        let listen = server.address().to_owned();
        let (began, began_ms) = (Instant::now(), ledger.wall_ms());
        server.kill()?;
        let server = Server::start(place, root, &listen)?;
        let (lasted, ended_ms) = (began.elapsed(), ledger.wall_ms());
        Ok((server, Self { began_ms, ended_ms, in_flight, lasted }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_taken_is_left_to_its_owner() {
        let owner = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = owner.local_addr().expect("its address");
        assert_eq!(listen_near(address.port()), "127.0.0.1:0");
        drop(owner);
        assert_eq!(listen_near(address.port()), address.to_string());
    }
}
