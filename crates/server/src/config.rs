//! The configuration of a server.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use tickwheel_api::{ConsoleMode, Levels};
use tickwheel_queue::{AckLevel, SLOW_COMMIT_DEFAULT, Timestamp};

use crate::access::host::no_host;
use crate::access::tokens::Tokens;
use crate::doors::beanstalk::Beanstalk;
use crate::listen::addresses::is_loopback;
use crate::listen::socket::ListenAt;
use crate::listen::tls::TlsFiles;
use crate::service::permits::limits::Limits;
use crate::start_error::StartError;
use crate::targets::PushPlan;
use crate::telemetry::span::SpanSink;

/// The default port of servers and clients.
pub const PORT_DEFAULT: u16 = 8463;

/// Backups that the server makes of itself while it serves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackupPlan {
    /// The directory of the backups; each backup is a directory in it. It is created if it is absent, but its parent
    /// must exist. It must be outside of the data directory, and only one server may use it at a time.
    pub directory: PathBuf,
    /// The interval of backups, by the clock of the system. `None`: only on request.
    pub every: Option<Duration>,
    /// The number of whole backups to keep, both scheduled and requested ones. When a new one is whole, the oldest is
    /// removed. `None`: all are kept.
    pub keep: Option<NonZeroUsize>,
}

/// The storage of tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Store {
    /// In this directory. An acknowledged call survives a process crash, a system crash and a power loss.
    Dir(PathBuf),
    /// In memory. Nothing survives the end of the process.
    Memory,
    /// In PostgreSQL. An acknowledged call survives what a commit of the database survives.
    Postgres(PostgresPlan),
}

/// A data set in PostgreSQL, and how the server takes part in it.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresPlan {
    /// The URL of the database, such as `postgres://tickwheel@db1,db2/tickwheel`. What it does not say comes from the environment, as with
    /// `psql`.
    pub url: String,
    /// The name of this server among those that share the database, for people.
    pub node: String,
    /// Whether the server makes the tables if they are missing. Otherwise an administrator does.
    pub migrate: bool,
}

/// The URL may have a password, so it is not shown.
impl fmt::Debug for PostgresPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url: _, node, migrate } = self;
        f.debug_struct("PostgresPlan").field("node", node).field("migrate", migrate).finish_non_exhaustive()
    }
}

/// The configuration of a server. Start from [`Config::new`] and change members as needed.
///
/// ```
/// use tickwheel_server::{Config, Store};
/// let config = Config { virtual_clock: true, ..Config::new(Store::Memory) };
/// assert_eq!(config.listen.to_string(), "127.0.0.1:8463");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The address to listen on, where port 0 lets the system choose, or a path of the file system. Default:
    /// `127.0.0.1:8463`.
    pub listen: ListenAt,
    /// Names that a request may give as its `Host`, in addition to those of this computer, for a reverse proxy that
    /// passes the name on: `tasks.example` with any port, `tasks.example:8443` with this port only. Pages of these
    /// names may call, over `http` and `https`. At a path of the file system an empty list allows every host.
    /// Default: none.
    pub allow_hosts: Vec<String>,
    /// The storage of tasks.
    pub store: Store,
    /// The number of shards, 1 to 1,024. Each shard has a log of its own, so several processors can write at one time. A directory keeps
    /// its number for ever, and a start with another number is refused. Default: the number that the directory has, or 1.
    pub shards: Option<u32>,
    /// Backups of the directory; tasks in memory are not copied. Default: none.
    pub backups: Option<BackupPlan>,
    /// The part about targets: the queues whose tasks the server sends by itself.
    pub push: PushPlan,
    /// The door for clients of beanstalkd. Default: none.
    pub beanstalk: Option<Beanstalk>,
    /// The clock stands still until `POST /v1/clock/advance` moves it. A directory keeps its kind of clock for ever.
    /// Default: off.
    pub virtual_clock: bool,
    /// The time at which a virtual clock starts, or the last time that the directory knows if that is later. Without
    /// `virtual_clock` it has no effect. Default: the time of the machine.
    pub virtual_clock_at: Option<Timestamp>,
    /// The moment at which a call that changes something is answered. It decides which failures the change survives.
    /// In memory it makes no difference. Default: when the change is synced.
    pub ack_level: AckLevel,
    /// The certificate for TLS. Default: none, which means plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Allow an address that is not loopback without tokens or without TLS. Without tokens every caller may do
    /// everything; without TLS all bytes, tokens too, can be read on the network. Default: off; such an address then
    /// needs both.
    pub insecure: bool,
    /// The tokens and their rights. Default: none, which means that every caller may do everything.
    pub tokens: Tokens,
    /// A file with more tokens. It is read again every two seconds, so that a token can be given or withdrawn while
    /// the server runs. Default: none.
    pub token_file: Option<PathBuf>,
    /// The delays for `level` in a request. Default: `1s 5s 10s 30s`, every minute to `10m`, `20m 30m 1h 2h`. A new
    /// list does not move tasks that are there already.
    pub levels: Levels,
    /// Take payloads that follow JSON's grammar but that some readers reject: numbers beyond 64-bit floats or of more
    /// than 1,000 digits, half surrogate pairs, duplicate members. Default: off, so they are refused.
    pub lax_json: bool,
    /// The largest number of connections. A further connection closes the one that has been idle the longest. If none
    /// is idle, the new one is answered 429, or closed over TLS. The limit of open files may lower the number.
    /// Default: 10,000, about 20 KiB of memory each.
    pub connections_max: usize,
    /// The largest number of connections from one address of another computer. A further one is answered 429, or
    /// closed over TLS. Connections of this computer are not counted, because behind a local proxy all clients have
    /// one address. Default: 1,000.
    pub connections_per_address_max: usize,
    /// Other limits of the resources that clients may hold at one time.
    pub limits: Limits,
    /// The time that a stop waits for calls and messages of targets under way, then for a backup, and then for the disk to store the leases.
    /// Default: 10 s each.
    /// Supervisors of services allow 10 to 90 s before they kill a process.
    pub stop_grace: Duration,
    /// The console, which answers browsers at `/console/`. In the read-only one the pages show no actions; that is no
    /// protection, because the API takes the same calls. Default: on.
    pub console: ConsoleMode,
    /// A directory from which each request for the console reads its file, for authors of the pages. Default: none, so
    /// the files of this program are served.
    pub console_dir: Option<PathBuf>,
    /// Write a log line for each call, under the target [`events::ACCESS`](crate::events::ACCESS). Default: off.
    pub access_log: bool,
    /// How far the wall clock may be ahead of the last time in the data at a start. Default: no limit.
    pub clock_max_ahead: Option<Duration>,
    /// The duration from which on a commit is logged as slow. Default: 1 s.
    pub slow_commit: Duration,
    /// The receiver of spans of requests and deliveries. Default: none, so no spans are made.
    pub spans: Option<SpanSink>,
}

impl Config {
    /// The default configuration with this store.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT_DEFAULT)).into(),
            allow_hosts: Vec::new(),
            store,
            shards: None,
            backups: None,
            push: PushPlan::default(),
            beanstalk: None,
            virtual_clock: false,
            virtual_clock_at: None,
            ack_level: AckLevel::Fsync,
            tls: None,
            insecure: false,
            tokens: Tokens::default(),
            token_file: None,
            levels: Levels::default(),
            lax_json: false,
            connections_max: 10_000,
            connections_per_address_max: 1_000,
            limits: Limits::default(),
            stop_grace: Duration::from_secs(10),
            console: ConsoleMode::On,
            console_dir: None,
            access_log: false,
            clock_max_ahead: None,
            slow_commit: SLOW_COMMIT_DEFAULT,
            spans: None,
        }
    }

    /// Whether callers need a token. The door for clients of beanstalkd never asks for one.
    #[must_use]
    pub fn has_tokens(&self) -> bool {
        !self.tokens.is_empty() || self.token_file.is_some()
    }

    /// Checks that other computers cannot reach the server without tokens and TLS, unless that is allowed. Reads
    /// nothing but this configuration.
    ///
    /// # Errors
    /// [`StartError::NotLoopback`], and the errors of the door for clients of beanstalkd.
    pub fn check(&self) -> Result<(), StartError> {
        if let Some(door) = &self.beanstalk {
            door.check(self.tls.is_some(), self.insecure)?;
        }
        for name in &self.allow_hosts {
            no_host(name).map_or(Ok(()), |why| Err(StartError::AllowedHost { name: name.clone(), why }))?;
        }
        let listen = match &self.listen {
            ListenAt::Tcp(listen) => *listen,
            // The permissions of the path decide which users can connect, and no other user can read the bytes.
            ListenAt::Unix(_) => return self.check_socket(),
        };
        let missing = match (self.has_tokens(), self.tls.is_some()) {
            (false, false) => {
                "are no tokens and no TLS: every client may do everything, and calls can be read on the network"
            }
            (false, true) => "are no tokens: every client may do everything",
            (true, false) => "is no TLS: calls and their tokens can be read on the network",
            (true, true) => return Ok(()),
        };
        if self.insecure || is_loopback(&listen.ip()) {
            return Ok(());
        }
        Err(StartError::NotLoopback { listen, missing })
    }

    /// A socket needs no certificate, unless the beanstalkd door uses it for its clients.
    fn check_socket(&self) -> Result<(), StartError> {
        let is_used = self.beanstalk.as_ref().is_some_and(|door| door.client_ca.is_some());
        if self.tls.is_some() && !is_used {
            return Err(StartError::TlsOfSocket { listen: self.listen.clone() });
        }
        Ok(())
    }
}
