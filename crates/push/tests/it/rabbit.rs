//! A RabbitMQ broker for tests, in a temporary folder and on a free port.

use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tickwheel_push::amqp::{AmqpConnection, AmqpDial, AmqpLogin};
use tickwheel_push::broker::Link;

/// The programs of RabbitMQ behind the wrappers that change the user and the folder.
const PROGRAMS: &str = "/usr/lib/rabbitmq/bin";
/// The largest message that the broker takes (bytes).
pub(crate) const MESSAGE_BYTES_MAX: usize = 1_000_000;

/// A broker. It is killed when it is dropped.
pub(crate) struct Broker {
    folder: TempDir,
    port: u16,
    dist_port: u16,
    epmd_port: u16,
    /// The port of the management API; `None`: its plugin is not enabled.
    management_port: Option<u16>,
    epmd: Child,
    server: Mutex<Option<Child>>,
}

static SHARED: Mutex<Weak<Broker>> = Mutex::new(Weak::new());

impl Broker {
    /// Starts a broker, if RabbitMQ is installed.
    pub(crate) fn start() -> Option<Arc<Self>> {
        Self::start_with(&[])
    }

    /// Starts a broker with the management API, if RabbitMQ is installed.
    #[allow(dead_code, reason = "used by one of the tests that share this file")]
    pub(crate) fn start_managed() -> Option<Arc<Self>> {
        Self::start_with(&["rabbitmq_management"])
    }

    fn start_with(plugins: &[&str]) -> Option<Arc<Self>> {
        if !tickwheel_testing::is_at(&Path::new(PROGRAMS).join("rabbitmq-server")) {
            tickwheel_testing::missing("rabbitmq-server", "apt-get install rabbitmq-server");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let [port, dist_port, epmd_port, free] = [(); 4].map(|()| tickwheel_testing::free_port());
        let management_port = plugins.contains(&"rabbitmq_management").then_some(free);
        let mut config = format!(
            "listeners.tcp.default = 127.0.0.1:{port}\nmax_message_size = {MESSAGE_BYTES_MAX}\nloopback_users = none\n"
        );
        if let Some(port) = management_port {
            config += &format!("management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {port}\n");
        }
        std::fs::write(folder.path().join("rabbit.conf"), config).expect("a file");
        std::fs::write(folder.path().join("plugins"), format!("[{}].", plugins.join(","))).expect("a file");
        // The broker would start one that outlives it.
        let epmd = Command::new("epmd")
            .args(["-port", &epmd_port.to_string(), "-address", "127.0.0.1"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("epmd comes with RabbitMQ");
        let broker =
            Self { folder, port, dist_port, epmd_port, management_port, epmd, server: Mutex::default() };
        until_open(epmd_port);
        broker.run();
        Some(Arc::new(broker))
    }

    /// Returns the broker that the tests of one process share, for tests that do not stop it.
    pub(crate) fn shared() -> Option<Arc<Self>> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(broker) = shared.upgrade() {
            return Some(broker);
        }
        let broker = Self::start()?;
        *shared = Arc::downgrade(&broker);
        Some(broker)
    }

    /// Starts the server, and waits until it takes connections.
    pub(crate) fn run(&self) {
        let server = self
            .command("rabbitmq-server")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // The server has children. All of them are killed with it.
            .process_group(0)
            .spawn()
            .expect("RabbitMQ starts");
        *self.server() = Some(server);
        until_open(self.port);
        self.management_port.into_iter().for_each(until_open);
    }

    /// Kills the server at once, as a crash does.
    pub(crate) fn kill(&self) {
        if let Some(mut server) = self.server().take() {
            let group = format!("-{}", server.id());
            let _ = Command::new("kill").args(["-9", "--", &group]).status();
            let _ = server.wait();
            // The machine of Erlang ends a little later than its wrapper. A second one of its name does not start before that.
            let killed = Instant::now();
            while TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                assert!(killed.elapsed() < tickwheel_testing::HANG_TIME, "port {} is still open", self.port);
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// Writes all queues to the disk. RabbitMQ does so some time after it has confirmed a new queue, and a kill before that loses the queue.
    #[allow(dead_code, reason = "used by one of the tests that share this file")]
    pub(crate) fn keep_queues(&self) {
        self.app("stop_app");
        self.app("start_app");
    }

    /// Stops the broker in its running machine, or starts it again: connections end, and ports close.
    #[allow(dead_code, reason = "used by one of the tests that share this file")]
    pub(crate) fn app(&self, word: &str) {
        self.control(&[word]);
    }

    /// Calls `rabbitmqctl`, and returns its output.
    pub(crate) fn control(&self, words: &[&str]) -> String {
        let output = self.command("rabbitmqctl").args(words).output().expect("rabbitmqctl runs");
        assert!(output.status.success(), "rabbitmqctl {words:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    #[expect(clippy::print_stderr, reason = "the log is for the reader of a failed test")]
    fn print_log(&self) {
        let files = std::fs::read_dir(self.folder.path().join("log")).into_iter().flatten().flatten();
        for file in files.filter(|file| file.path().is_file()) {
            let text = std::fs::read(file.path()).unwrap_or_default();
            let end = &text[text.len().saturating_sub(16_384)..];
            eprintln!("---- {} ----\n{}", file.path().display(), String::from_utf8_lossy(end));
        }
    }

    fn command(&self, program: &str) -> Command {
        let path = |name: &str| self.folder.path().join(name);
        let mut command = Command::new(Path::new(PROGRAMS).join(program));
        command
            .env("HOME", self.folder.path())
            .env("ERL_EPMD_PORT", self.epmd_port.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODENAME", format!("tickwheel-{}@localhost", self.port))
            .env("RABBITMQ_DIST_PORT", self.dist_port.to_string())
            .env("RABBITMQ_MNESIA_BASE", path("mnesia"))
            .env("RABBITMQ_LOG_BASE", path("log"))
            .env("RABBITMQ_GENERATED_CONFIG_DIR", path("generated"))
            .env("RABBITMQ_PID_FILE", path("pid"))
            .env("RABBITMQ_CONFIG_FILE", path("rabbit.conf"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", path("plugins"))
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    /// Returns the port.
    #[allow(dead_code, reason = "used by one of the tests that share this file")]
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the settings of a connection to the broker.
    pub(crate) fn plan(&self, password: &str) -> AmqpConnection {
        AmqpConnection {
            endpoints: vec![format!("127.0.0.1:{}", self.port).parse().expect("an endpoint")],
            vhost: "/".to_owned(),
            login: AmqpLogin::Password { user: "guest".to_owned(), password: password.to_owned() },
            tls: None,
            name: "tickwheel test".to_owned(),
        }
    }

    /// Returns a connection to the broker that is opened when it is needed.
    pub(crate) fn link(&self) -> Arc<Link<AmqpDial>> {
        Arc::new(Link::new(AmqpDial::new(self.plan("guest"))))
    }

    /// Opens a connection without a part of the product, for the other side of a test.
    pub(crate) async fn client(&self) -> lapin::Connection {
        let properties = lapin::ConnectionProperties::default();
        lapin::Connection::connect(&self.uri(), properties).await.expect("the broker takes a connection")
    }

    /// Returns the URL of the broker.
    pub(crate) fn uri(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}/%2f", self.port)
    }

    /// Returns the address of the management API, `HOST:PORT`.
    #[allow(dead_code, reason = "used by one of the tests that share this file")]
    pub(crate) fn management(&self) -> String {
        format!("127.0.0.1:{}", self.management_port.expect("the plugin is enabled"))
    }

    fn server(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Broker {
    /// Kills the broker. A test that fails prints the end of its log first.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.print_log();
        }
        self.kill();
        let _ = self.epmd.kill();
        let _ = self.epmd.wait();
    }
}

fn until_open(port: u16) {
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < tickwheel_testing::HANG_TIME, "no server at port {port}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Takes the next message of a queue, and waits for it.
#[allow(dead_code, reason = "used by some of the tests that share this file")]
pub(crate) async fn get(channel: &lapin::Channel, queue: &str) -> lapin::message::Delivery {
    let options = lapin::options::BasicGetOptions { no_ack: true };
    let begun = Instant::now();
    loop {
        let message = channel.basic_get(queue.into(), options).await;
        if let Some(message) = message.expect("the broker answers") {
            return message.delivery;
        }
        assert!(begun.elapsed() < tickwheel_testing::HANG_TIME, "no message in {queue}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
