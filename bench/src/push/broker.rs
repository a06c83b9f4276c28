//! [`Broker`]: a real broker in a process of its own.

use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process_group};

use super::kind::Kind;
use crate::scratch::Scratch;

/// A broker that takes no connection for this time has not started.
const PATIENCE: Duration = Duration::from_secs(120);

/// A broker, or the receiver of webhooks, on a free port of loopback. Dropping it kills it with all its processes.
#[derive(Debug)]
pub(super) struct Broker {
    pub(super) address: SocketAddr,
    /// The last one was started first.
    processes: Vec<Child>,
    _files: Scratch,
}

impl Broker {
    /// Starts one without messages. Its files are in a folder in `base`.
    pub(super) fn start(kind: Kind, program: &Path, base: &Path) -> anyhow::Result<Self> {
        let files = Scratch::new(base, &format!("tickwheel-bench-{}-{}", kind.name(), std::process::id()))?;
        let [port, dist_port, epmd_port] = free_ports()?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let dir = files.path().canonicalize().context("find the folder")?;
        let mut broker = Self { address, processes: Vec::new(), _files: files };
        let (mut command, port) = (Command::new(program), port.to_string());
        match kind {
            Kind::Webhook => {
                command.arg("push-receiver").arg(address.to_string());
            }
            Kind::Kafka => {
                let url = format!("tcp://{address}");
                command.args(["broker", "--listener-url", &url, "--advertised-listener-url", &url]);
                command.args(["--storage-engine", "memory://tansu/"]);
            }
            Kind::Nats => {
                command.args(["-a", "127.0.0.1", "-p", &port, "-js", "-sd"]).arg(&dir);
            }
            Kind::Redis => {
                command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
                command.arg("--dir").arg(&dir);
            }
            Kind::Amqp => {
                // The broker would start one that outlives it.
                let mut epmd = Command::new("epmd");
                epmd.args(["-port", &epmd_port.to_string(), "-address", "127.0.0.1"]);
                broker.spawn(epmd, &dir, SocketAddr::from(([127, 0, 0, 1], epmd_port)))?;
                let config = format!("listeners.tcp.default = {address}\nloopback_users = none\n");
                std::fs::write(dir.join("rabbit.conf"), config).context("write the settings")?;
                std::fs::write(dir.join("plugins"), "[].").context("write the settings")?;
                command
                    .env("HOME", &dir)
                    .env("ERL_EPMD_PORT", epmd_port.to_string())
                    .env("ERL_EPMD_ADDRESS", "127.0.0.1")
                    .env("RABBITMQ_NODENAME", format!("tickwheel-{port}@localhost"))
                    .env("RABBITMQ_DIST_PORT", dist_port.to_string())
                    .env("RABBITMQ_MNESIA_BASE", dir.join("mnesia"))
                    .env("RABBITMQ_LOG_BASE", dir.join("log"))
                    .env("RABBITMQ_GENERATED_CONFIG_DIR", dir.join("generated"))
                    .env("RABBITMQ_PID_FILE", dir.join("pid"))
                    .env("RABBITMQ_CONFIG_FILE", dir.join("rabbit.conf"))
                    .env("RABBITMQ_ENABLED_PLUGINS_FILE", dir.join("plugins"));
            }
            Kind::Beanstalk => {
                command.args(["-l", "127.0.0.1", "-p", &port]);
            }
        }
        broker.spawn(command, &dir, address)?;
        Ok(broker)
    }

    /// Starts a process, and waits until it takes connections.
    fn spawn(&mut self, mut command: Command, dir: &Path, address: SocketAddr) -> anyhow::Result<()> {
        let path = dir.join("talk.txt");
        let talk = File::options().create(true).append(true).open(&path).context("open a file")?;
        command.current_dir(dir).stdin(Stdio::null()).process_group(0);
        command.stdout(talk.try_clone().context("share a file")?).stderr(talk);
        let child = command.spawn().with_context(|| format!("start {command:?}"))?;
        self.processes.insert(0, child);
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            let ended = self.processes[0].try_wait().context("look at the broker")?;
            let said = || std::fs::read_to_string(&path).unwrap_or_default();
            ensure!(ended.is_none(), "{command:?} ended: {}", said());
            ensure!(begun.elapsed() < PATIENCE, "{command:?} takes no connection: {}", said());
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        for child in &mut self.processes {
            // The process leads a group that has its children.
            if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                let _ended = kill_process_group(group, Signal::KILL);
            }
            let _ended = child.wait();
        }
    }
}

/// Returns ports that are free. No other program is expected to take them in the meantime.
pub(super) fn free_ports<const COUNT: usize>() -> anyhow::Result<[u16; COUNT]> {
    // All are open at once, so that they differ.
    let listeners = [(); COUNT].map(|()| TcpListener::bind("127.0.0.1:0"));
    let mut ports = [0; COUNT];
    for (port, listener) in ports.iter_mut().zip(listeners) {
        *port = listener.and_then(|listener| listener.local_addr()).context("find a port")?.port();
    }
    Ok(ports)
}
