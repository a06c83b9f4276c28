//! A server in a process of its own, ours or beanstalkd.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

/// A server that does not answer for so long has not started.
const PATIENCE: Duration = Duration::from_secs(120);

/// Which server, and how safe its jobs are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Ours: a job that was answered survives a power cut.
    Tickwheel,
    /// Beanstalkd without a log: none survives its process.
    Beanstalkd,
    /// Beanstalkd with a log that is synced for each job, as `-f0` says.
    BeanstalkdSync,
    /// Beanstalkd with a log that is never synced, `-F`: jobs survive its process.
    BeanstalkdLog,
}

impl Kind {
    /// As it is called in the figures.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tickwheel => "tickwheel",
            Self::Beanstalkd => "beanstalkd",
            Self::BeanstalkdSync => "beanstalkd-sync",
            Self::BeanstalkdLog => "beanstalkd-log",
        }
    }
}

/// One that runs. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    pub(super) address: SocketAddr,
    /// From its start until it answered.
    pub(super) started_in: Duration,
}

impl Server {
    /// Starts one on what this directory holds.
    pub(super) fn start(kind: Kind, program: &Path, dir: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(dir).with_context(|| format!("make {}", dir.display()))?;
        // Nobody else takes the port in the moment between.
        let free =
            TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr()).context("find a port")?;
        let (ip, port) = (free.ip().to_string(), free.port().to_string());
        let mut command = match kind {
            Kind::Tickwheel => {
                let mut command = Command::new(program);
                command.args(["serve", "--listen", "127.0.0.1:0", "--beanstalk", &free.to_string()]);
                command.arg("--data").arg(dir);
                command
            }
            _ => {
                let mut command = Command::new("beanstalkd");
                command.args(["-l", &ip, "-p", &port]);
                match kind {
                    Kind::BeanstalkdSync => drop(command.arg("-b").arg(dir).arg("-f0")),
                    Kind::BeanstalkdLog => drop(command.arg("-b").arg(dir).arg("-F")),
                    Kind::Tickwheel | Kind::Beanstalkd => {}
                }
                command
            }
        };
        let begun = Instant::now();
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.with_context(|| format!("start {command:?}"))?;
        let mut server = Self { child, address: free, started_in: Duration::ZERO };
        while !server.answers() {
            let ended = server.child.try_wait().context("look at the server")?;
            ensure!(ended.is_none(), "{command:?} ended: {ended:?}");
            ensure!(begun.elapsed() < PATIENCE, "{command:?} does not answer");
            std::thread::sleep(Duration::from_millis(1));
        }
        server.started_in = begun.elapsed();
        Ok(server)
    }

    /// Whether it answers a question, and so has read its jobs.
    fn answers(&self) -> bool {
        let asked = TcpStream::connect(self.address).and_then(|mut socket| {
            std::io::Write::write_all(&mut socket, b"list-tube-used\r\n")?;
            let mut line = String::new();
            BufReader::new(socket).read_line(&mut line)?;
            Ok(line)
        });
        asked.is_ok_and(|line| line.starts_with("USING"))
    }

    /// A file that the system keeps of its process.
    fn told(&self, name: &str) -> anyhow::Result<String> {
        let path = format!("/proc/{}/{name}", self.child.id());
        std::fs::read_to_string(&path).with_context(|| format!("read {path}"))
    }

    /// Resident bytes now.
    pub(super) fn resident_bytes(&self) -> anyhow::Result<u64> {
        crate::rss::of_status(&self.told("status")?)
    }

    /// How often its threads have waited for something, all together: each was woken after.
    pub(super) fn waits(&self) -> anyhow::Result<u64> {
        let tasks = PathBuf::from(format!("/proc/{}/task", self.child.id()));
        let threads = std::fs::read_dir(&tasks).with_context(|| format!("read {}", tasks.display()))?;
        let mut waits = 0;
        for thread in threads {
            let path = thread?.path().join("status");
            let status =
                std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
            let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            waits += line.context("find the switches")?.trim().parse::<u64>().context("read the switches")?;
        }
        Ok(waits)
    }

    /// Ends it without a word.
    pub(super) fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill().context("kill the server")?;
        self.child.wait().context("wait for its end")?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
