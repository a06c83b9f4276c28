//! [`Server`]: the PostgreSQL under measurement.

use std::fs::File;
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::link::Link;
use crate::scratch::Scratch;

/// The user that runs the server if the run itself is root's. The server refuses root.
const USER: &str = "postgres";
/// A server that does not answer for this time has not started.
const PATIENCE: Duration = Duration::from_secs(60);
/// The settings that decide what a commit costs. They are told with the figures.
const SETTINGS: &str = "\
SELECT string_agg(name || ' = ' || setting || coalesce(' ' || unit, ''), ', ' ORDER BY name) FROM pg_settings
WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'wal_sync_method', 'wal_level', 'shared_buffers', 'max_wal_size',
    'checkpoint_timeout', 'autovacuum', 'wal_compression', 'synchronous_standby_names', 'commit_delay')";

/// A PostgreSQL server. One that this program has started ends with the value, and its files are removed.
pub(super) struct Server {
    /// The URL of a database in which other databases can be made.
    pub(super) url: String,
    own: Option<Own>,
}

struct Own {
    postmaster: Child,
    _files: Scratch,
}

impl Server {
    /// Takes a server that runs already.
    pub(super) fn at(url: &str) -> Self {
        Self { url: url.to_owned(), own: None }
    }

    /// Starts a server with the default settings, on a free port of loopback. Its files are in a folder in `base`.
    pub(super) fn start(base: &Path) -> anyhow::Result<Self> {
        let programs = programs()?;
        let files = Scratch::new(base, &format!("tickwheel-bench-postgres-{}", std::process::id()))?;
        let folder = files.path().canonicalize().context("find the folder")?;
        give(&folder)?;
        let data = folder.join("data");
        let mut initdb = as_user(&programs.join("initdb"), &folder);
        initdb.args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8"]);
        let made = initdb.args(["--no-instructions", "-D"]).arg(&data).output().context("start initdb")?;
        ensure!(made.status.success(), "initdb failed: {}", String::from_utf8_lossy(&made.stderr));
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let log = File::create(folder.join("log.txt")).context("make the log of the server")?;
        let mut postgres = as_user(&programs.join("postgres"), &folder);
        postgres.arg("-D").arg(&data).arg("-k").arg(&folder).args(["-p", &port.to_string()]);
        postgres.args(["-c", "listen_addresses=127.0.0.1"]);
        postgres.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let postmaster = postgres.spawn().context("start the server")?;
        let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
        let mut server = Self { url, own: Some(Own { postmaster, _files: files }) };
        server.wait(&folder)?;
        Ok(server)
    }

    /// Returns the version and the settings.
    pub(super) fn describe(&self) -> anyhow::Result<String> {
        let mut link = Link::open(&self.url)?;
        let version = link.text("SELECT version()")?;
        Ok(format!("{version}\n{}", link.text(SETTINGS)?))
    }

    fn wait(&mut self, folder: &Path) -> anyhow::Result<()> {
        let begun = Instant::now();
        while let Err(error) = Link::open(&self.url) {
            let has_ended = match &mut self.own {
                Some(own) => own.postmaster.try_wait()?.is_some(),
                None => false,
            };
            if has_ended || begun.elapsed() > PATIENCE {
                let log = std::fs::read_to_string(folder.join("log.txt")).unwrap_or_default();
                bail!("the server does not answer: {error:#}: {log}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(own) = &mut self.own {
            // The fast way to stop: sessions end, the files are written. It may have ended by itself.
            let _ended = kill_process(Pid::from_child(&own.postmaster), Signal::INT);
            let _ended = own.postmaster.wait();
        }
    }
}

/// Finds the folder of the programs: the one that `TICKWHEEL_POSTGRES_BIN` names, one of the search path, or the newest version in the
/// folder of Debian and Ubuntu.
fn programs() -> anyhow::Result<PathBuf> {
    let set = std::env::var_os("TICKWHEEL_POSTGRES_BIN").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut installed: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    installed.sort_unstable_by(|one, other| other.cmp(one));
    let installed = installed.into_iter().map(|(_, folder)| folder);
    let mut folders = set.into_iter().chain(std::env::split_paths(&path)).chain(installed);
    let is_whole = |folder: &PathBuf| ["initdb", "postgres"].iter().all(|name| folder.join(name).is_file());
    folders
        .find(is_whole)
        .context("PostgreSQL is not installed, and TICKWHEEL_POSTGRES_BIN does not name its folder")
}

/// Returns a command that runs as the user of the server, in this folder.
fn as_user(program: &Path, folder: &Path) -> Command {
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.arg(format!("--reuid={USER}")).arg(format!("--regid={USER}")).arg("--clear-groups");
        command.arg("--pdeathsig=INT").arg(program);
        command
    } else {
        Command::new(program)
    };
    command.current_dir(folder).env("LC_ALL", "C.UTF-8");
    command
}

/// Gives the folder to the user of the server.
fn give(folder: &Path) -> anyhow::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let number = |option: &str| -> anyhow::Result<u32> {
        let answer = Command::new("id").args([option, USER]).output().context("start id")?;
        let text = String::from_utf8_lossy(&answer.stdout);
        let number = text.trim().parse();
        number.with_context(|| format!("the server refuses root, and there is no user {USER}"))
    };
    chown(folder, Some(number("-u")?), Some(number("-g")?)).context("give the folder to the server's user")
}
