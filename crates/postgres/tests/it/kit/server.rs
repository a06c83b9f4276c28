//! [`Server`]: a real PostgreSQL server in a temporary directory.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::Database;
use super::programs::{Programs, run};

/// The pause between two looks at a condition.
const PAUSE: Duration = Duration::from_millis(10);

/// How a server is made.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Whether a commit is written to the disk. `false` is faster and survives the death of all processes, but the store refuses it.
    pub(crate) fsync: bool,
    /// Further lines of `postgresql.conf`, such as `("synchronous_standby_names", "'ANY 1 (b)'")`.
    pub(crate) lines: Vec<(&'static str, String)>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { fsync: true, lines: Vec::new() }
    }
}

/// A server with its files in a temporary directory and a port of its own on loopback. Any user may log in without a password. The server
/// is stopped and the directory is removed when it is dropped, and also when the test process ends in any other way.
pub(crate) struct Server {
    programs: Programs,
    directory: PathBuf,
    port: u16,
    /// The postmaster; `None`: the server is stopped.
    postmaster: Option<Child>,
    /// Waits for the end of the test process, then stops the server and removes the directory.
    guard: Child,
    databases: AtomicU64,
}

/// Returns the server that all tests of one binary share; `None`, with a line for each test: PostgreSQL is not installed. A test that stops
/// the server makes its own.
pub(crate) fn shared() -> Option<&'static Server> {
    static SHARED: OnceLock<Server> = OnceLock::new();
    let programs = Programs::find()?;
    Some(SHARED.get_or_init(|| Server::start_by(programs, &Settings::default())))
}

impl Server {
    /// Starts a server with the default settings; `None`, with a line on the standard error: PostgreSQL is not installed.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(&Settings::default())
    }

    /// Starts a server with these settings; `None`, with a line on the standard error: PostgreSQL is not installed.
    pub(crate) fn start_with(settings: &Settings) -> Option<Self> {
        Some(Self::start_by(Programs::find()?, settings))
    }

    fn start_by(programs: Programs, settings: &Settings) -> Self {
        let mut server = Self::in_new_directory(programs);
        let data = server.data();
        let mut initdb = server.programs.own("initdb", &server.directory);
        initdb.args([
            "--auth=trust",
            "--username=postgres",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
            "--no-instructions",
        ]);
        run(initdb.arg("-D").arg(&data));
        let fsync = if settings.fsync { "on" } else { "off" };
        server.write_settings(&[
            ("listen_addresses", "'127.0.0.1'".to_owned()),
            ("fsync", fsync.to_owned()),
            ("shared_buffers", "64MB".to_owned()),
            ("max_connections", "100".to_owned()),
            // A standby that is made later needs no restart of its primary.
            ("wal_level", "replica".to_owned()),
            ("max_wal_senders", "10".to_owned()),
            ("wal_keep_size", "256MB".to_owned()),
            ("hot_standby", "on".to_owned()),
            // The log of a failed test shows what the clients sent wrong.
            ("log_min_error_statement", "error".to_owned()),
        ]);
        server.write_settings(&settings.lines);
        server.start_again();
        server
    }

    /// Makes a standby of this server by a base backup, and starts it. `name` is its name in `synchronous_standby_names`. The backup has
    /// the settings of this server, so that they hold after a promotion too.
    pub(crate) fn standby(&self, name: &str) -> Self {
        let mut standby = Self::in_new_directory(self.programs.clone());
        let source = format!("host=127.0.0.1 port={} user=postgres application_name={name}", self.port);
        let mut backup = self.programs.own("pg_basebackup", &standby.directory);
        backup.args([
            "--checkpoint=fast",
            "--wal-method=stream",
            "--write-recovery-conf",
            "--no-sync",
            "--dbname",
            &source,
        ]);
        run(backup.arg("-D").arg(standby.data()));
        standby.start_again();
        standby
    }

    /// Returns the URL of a database of this server, as the superuser.
    pub(crate) fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Returns the URL of the database `postgres`, as the superuser.
    pub(crate) fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// Returns the port on 127.0.0.1.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the folder of the socket.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes an empty database. Its name differs from all others of this server.
    pub(crate) fn database(&self) -> Database<'_> {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.psql(&format!("CREATE DATABASE {name}"));
        Database::new(self, name)
    }

    /// Returns a database that was made by hand.
    pub(crate) fn database_named(&self, name: &str) -> Database<'_> {
        Database::new(self, name.to_owned())
    }

    /// Runs SQL in the database `postgres` as the superuser. Returns the rows: one a line, columns with `|` between them.
    pub(crate) fn psql(&self, sql: &str) -> String {
        Database::new(self, "postgres".to_owned()).psql(sql)
    }

    /// Returns the command of psql, without a target.
    pub(super) fn psql_command(&self) -> Command {
        self.programs.client("psql")
    }

    /// Appends lines to the settings and makes the server read them. Settings that need a restart hold after [`restart`](Self::restart).
    pub(crate) fn configure(&self, lines: &[(&'static str, String)]) {
        self.write_settings(lines);
        self.psql("SELECT pg_reload_conf()");
    }

    /// Stops the server: open transactions are rolled back, and the files are written.
    pub(crate) fn stop(&mut self) {
        self.signal(Signal::INT);
        self.wait_for_end();
    }

    /// Stops the server and starts it again, with its port and its files.
    pub(crate) fn restart(&mut self) {
        self.stop();
        self.start_again();
    }

    /// Kills all processes of the server at once, as a crash does. Returns when they are gone.
    pub(crate) fn kill(&mut self) {
        let postmaster = self.postmaster_id();
        let children = children_of(postmaster);
        for process in [postmaster].into_iter().chain(children.iter().copied()) {
            // A child may have ended by itself.
            let _ended = kill_process(process, Signal::KILL);
        }
        self.wait_for_end();
        // The next start is refused while a child has the shared memory.
        let all_gone = || children.iter().all(|&child| test_kill_process(child).is_err());
        self.wait_until("the processes end", all_gone);
    }

    /// Sends a signal to all processes of the server. `Signal::STOP` stops it in the middle of its work: its connections stay open, and
    /// nothing is answered until `Signal::CONT`.
    pub(crate) fn signal_all(&self, signal: Signal) {
        let postmaster = self.postmaster_id();
        for process in [postmaster].into_iter().chain(children_of(postmaster)) {
            let _ended = kill_process(process, signal);
            if signal == Signal::STOP {
                tickwheel_testing::until_stopped(process.as_raw_nonzero().get().unsigned_abs());
            }
        }
    }

    /// Makes a primary of this standby. Returns when it takes changes.
    pub(crate) fn promote(&self) {
        let promoted =
            self.psql(&format!("SELECT pg_promote(true, {})", tickwheel_testing::HANG_TIME.as_secs()));
        assert_eq!(promoted, "t", "the standby was not promoted: {}", self.log());
    }

    /// Starts a server that was stopped or killed, with its port and its files. Returns when it answers.
    pub(crate) fn start_again(&mut self) {
        assert!(self.postmaster.is_none(), "the server runs");
        let log = OpenOptions::new().create(true).append(true).open(self.log_path()).expect("a file");
        let mut postgres = self.programs.own("postgres", &self.directory);
        postgres
            .arg("-D")
            .arg(self.data())
            .arg("-k")
            .arg(&self.directory)
            .args(["-p", &self.port.to_string()]);
        postgres.stdin(Stdio::null()).stdout(log.try_clone().expect("a file")).stderr(log);
        self.postmaster = Some(postgres.spawn().expect("the server starts"));
        let waited = self.wait_until_or_end("the server answers", || {
            let database = Database::new(self, "postgres".to_owned());
            database.try_psql("SELECT 1").is_ok()
        });
        assert!(waited, "the server ended: {}", self.log());
    }

    /// Returns the log of the server.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    fn in_new_directory(programs: Programs) -> Self {
        let directory =
            tempfile::Builder::new().prefix("tickwheel-postgres-").tempdir().expect("a directory");
        Programs::give(directory.path());
        let directory = directory.keep();
        let guard = guard(&programs, &directory);
        Self {
            programs,
            directory,
            port: tickwheel_testing::free_port(),
            postmaster: None,
            guard,
            databases: AtomicU64::new(0),
        }
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn log_path(&self) -> PathBuf {
        self.directory.join("log.txt")
    }

    fn write_settings(&self, lines: &[(&'static str, String)]) {
        let path = self.data().join("postgresql.conf");
        let mut file = OpenOptions::new().append(true).open(path).expect("the file of the settings");
        for (name, value) in lines {
            writeln!(file, "{name} = {value}").expect("written");
        }
    }

    fn postmaster_id(&self) -> Pid {
        let child = self.postmaster.as_ref().expect("the server runs");
        Pid::from_child(child)
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.postmaster_id(), signal).expect("the server runs");
    }

    fn wait_for_end(&mut self) {
        let mut postmaster = self.postmaster.take().expect("the server runs");
        let mut waited = Duration::ZERO;
        while postmaster.try_wait().expect("a child").is_none() {
            assert!(waited < tickwheel_testing::HANG_TIME, "the server does not stop: {}", self.log());
            pause(&mut waited);
        }
    }

    fn wait_until(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let mut waited = Duration::ZERO;
        while !condition() {
            assert!(waited < tickwheel_testing::HANG_TIME, "timeout: {what}: {}", self.log());
            pause(&mut waited);
        }
    }

    /// Waits for the condition. Returns `false` if the server ended before.
    fn wait_until_or_end(&self, what: &str, mut condition: impl FnMut() -> bool) -> bool {
        let mut holds = false;
        self.wait_until(what, || {
            holds = condition();
            holds || self.has_ended()
        });
        holds
    }

    fn has_ended(&self) -> bool {
        // The child is not waited for here, so its number cannot belong to another process.
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.postmaster_id().as_raw_nonzero()));
        stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut postmaster) = self.postmaster.take() {
            // A server that was stopped by a signal gets this one when it continues.
            let id = Pid::from_child(&postmaster);
            for process in [id].into_iter().chain(children_of(id)) {
                let _ended = kill_process(process, Signal::CONT);
            }
            let _ended = kill_process(id, Signal::QUIT);
            let _ended = postmaster.wait();
        }
        // The guard sees the end of its input, and removes the directory.
        drop(self.guard.stdin.take());
        let _ended = self.guard.wait();
    }
}

/// Starts a process that outlives the test process for a moment: when its input ends, it stops the server and removes the directory. A
/// shared server needs it, because a `static` is never dropped.
fn guard(programs: &Programs, directory: &Path) -> Child {
    const SCRIPT: &str = r#"
        trap '' INT TERM HUP
        cat >/dev/null
        [ -f data/postmaster.pid ] && "$0" -D data -m immediate -w stop >/dev/null 2>&1
        cd / && rm -rf "$1"
    "#;
    let mut shell = programs.own_shell(directory);
    shell.args(["-c", SCRIPT]).arg(programs.path("pg_ctl")).arg(directory);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    shell.spawn().expect("a shell")
}

/// Returns the processes that this process has started.
fn children_of(parent: Pid) -> Vec<Pid> {
    let listed = run(Command::new("ps").args(["-A", "-o", "pid=", "-o", "ppid="]));
    let text = String::from_utf8(listed.stdout).expect("numbers");
    let pairs = text.lines().filter_map(|line| {
        let mut numbers = line.split_whitespace().map(|number| number.parse::<i32>().ok());
        Some((numbers.next()??, numbers.next()??))
    });
    let children = pairs.filter(|&(_, its_parent)| its_parent == parent.as_raw_nonzero().get());
    children.filter_map(|(child, _)| Pid::from_raw(child)).collect()
}

#[allow(clippy::disallowed_methods, reason = "another process gives no event to wait for")]
fn pause(waited: &mut Duration) {
    std::thread::sleep(PAUSE);
    *waited += PAUSE;
}
