//! What a server is told at its start.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use tickwheel_api::Levels;
use tickwheel_queue::{AckLevel, SLOW_COMMIT_DEFAULT};

use crate::access::host::no_host;
use crate::access::tokens::Tokens;
use crate::doors::beanstalk::Beanstalk;
use crate::listen::addresses::is_loopback;
use crate::listen::socket::ListenAt;
use crate::listen::tls::TlsFiles;
use crate::service::limits::Limits;
use crate::start_error::StartError;
use crate::telemetry::span::SpanSink;

/// The port that everything assumes unless it is told another.
pub const PORT_DEFAULT: u16 = 8463;

/// Backups that the server makes of itself while it serves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackupPlan {
    /// The directory that they go into, each into one of its own. It is made if it is not there, in a folder that is; it lies outside of the
    /// data directory, and one server has it at a time.
    pub directory: PathBuf,
    /// How often one is made, by the clock of the system. `None`: when a caller asks for one.
    pub every: Option<Duration>,
    /// How many whole ones stay, however they were begun: when one more is whole, the oldest goes. `None`: all.
    pub keep: Option<NonZeroUsize>,
}

/// Where tasks are kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Store {
    /// In this directory. An acknowledged call survives a process crash, a system crash and a power loss.
    Dir(PathBuf),
    /// In memory. Nothing survives the end of the process.
    Memory,
}

/// How to serve. Start from [`Config::new`] and change what differs.
///
/// ```
/// use tickwheel_server::{Config, Store};
/// let config = Config { virtual_clock: true, ..Config::new(Store::Memory) };
/// assert_eq!(config.listen.to_string(), "127.0.0.1:8463");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The address to listen on, where port 0 lets the system choose, or a path of the file system. Default: `127.0.0.1:8463`.
    pub listen: ListenAt,
    /// Names that a request may give as its `Host` beside those of this machine, for a reverse proxy that keeps it: `tasks.example` with any
    /// port, `tasks.example:8443` with that one. Pages of these names may call, over `http` and `https`. At a path of the file system every
    /// host may be named where this is empty. Default: none.
    pub allow_hosts: Vec<String>,
    /// Where tasks are kept.
    pub store: Store,
    /// Backups of the directory. Default: none, and nothing is copied of tasks in memory.
    pub backups: Option<BackupPlan>,
    /// A door for clients of beanstalkd. Default: none.
    pub beanstalk: Option<Beanstalk>,
    /// Time stands still until `POST /v1/clock/advance` moves it. A directory belongs to one kind of clock for ever.
    /// Default: off.
    pub virtual_clock: bool,
    /// When a call is answered that changes something, and so what the answer survives. It makes no difference in memory. Default: when it
    /// is synced.
    pub ack_level: AckLevel,
    /// Speak TLS, with this certificate. Default: none, and plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Listen on an address that is not loopback without tokens, and so for everybody, or without TLS, and so that anybody on the way
    /// can read everything, tokens too. Default: off, and such an address needs both.
    pub insecure: bool,
    /// Who may do what. Default: none, and everybody who reaches the port may do everything.
    pub tokens: Tokens,
    /// A file with more of them. It is read again every two seconds, so that a token can be given or taken while the server runs.
    /// Default: none.
    pub token_file: Option<PathBuf>,
    /// The delays that `level` in a request stands for. Default: `1s 5s 10s 30s`, every minute to `10m`, `20m 30m 1h 2h`. Another list does
    /// not move tasks that are there already.
    pub levels: Levels,
    /// Take payloads that are JSON by the grammar and not to all readers: numbers beyond 64-bit floats or of more than 1,000 digits, half surrogate
    /// pairs, members given twice. Default: off, and they are refused.
    pub lax_json: bool,
    /// Connections at one time. For one more the connection is closed that has been idle the longest; where none is idle it is answered 429,
    /// or closed over TLS. Lowered to what the limit of open files allows.
    /// Default: 10,000, about 20 KiB of memory each.
    pub connections_max: usize,
    /// Connections at one time from one address of another machine; one more is answered 429, or closed over TLS. Default: 1,000. This machine's own are not
    /// counted, for behind a proxy on it all clients have one address.
    pub connections_per_address_max: usize,
    /// Other limits of what clients may hold at one time.
    pub limits: Limits,
    /// How long a stop waits for calls under way, and then for the disk to take the leases. Default: 10 s each; supervisors allow 10
    /// to 90 s before they kill.
    pub stop_grace: Duration,
    /// Write a line in the log for each call, under the target [`events::ACCESS`](crate::events::ACCESS). Default: off.
    pub access_log: bool,
    /// A commit that takes this long or longer is a line in the log. Default: 1 s.
    pub slow_commit: Duration,
    /// Where spans of requests and of deliveries go. Default: nowhere, and none are made.
    pub spans: Option<SpanSink>,
}

impl Config {
    /// The defaults, with this store.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT_DEFAULT)).into(),
            allow_hosts: Vec::new(),
            store,
            backups: None,
            beanstalk: None,
            virtual_clock: false,
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
            access_log: false,
            slow_commit: SLOW_COMMIT_DEFAULT,
            spans: None,
        }
    }

    /// Whether callers need a token. The door for clients of beanstalkd never asks for one.
    #[must_use]
    pub fn has_tokens(&self) -> bool {
        !self.tokens.is_empty() || self.token_file.is_some()
    }

    /// Whether others than this machine can reach the server, and are not kept out. Looks at nothing but this.
    ///
    /// # Errors
    /// [`StartError::NotLoopback`], and those of the door for clients of beanstalkd.
    pub fn check(&self) -> Result<(), StartError> {
        if let Some(door) = &self.beanstalk {
            door.check(self.tls.is_some(), self.insecure)?;
        }
        for name in &self.allow_hosts {
            no_host(name).map_or(Ok(()), |why| Err(StartError::AllowedHost { name: name.clone(), why }))?;
        }
        let listen = match &self.listen {
            ListenAt::Tcp(listen) => *listen,
            // Who may open the path gets in, and nobody else can read what is said there.
            ListenAt::Unix(_) => return self.check_socket(),
        };
        let missing = match (self.has_tokens(), self.tls.is_some()) {
            (false, false) => "are no tokens and no TLS: everybody may do everything, and read everything",
            (false, true) => "are no tokens: everybody may do everything",
            (true, false) => "is no TLS: anybody on the way can read everything, tokens too",
            (true, true) => return Ok(()),
        };
        if self.insecure || is_loopback(&listen.ip()) {
            return Ok(());
        }
        Err(StartError::NotLoopback { listen, missing })
    }

    /// A certificate may be there for clients of beanstalkd alone.
    fn check_socket(&self) -> Result<(), StartError> {
        let is_used = self.beanstalk.as_ref().is_some_and(|door| door.client_ca.is_some());
        if self.tls.is_some() && !is_used {
            return Err(StartError::TlsOfSocket { listen: self.listen.clone() });
        }
        Ok(())
    }
}
