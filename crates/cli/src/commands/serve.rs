//! `tickwheel serve`.

use std::convert::Infallible;
use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use tickwheel_api::{ConsoleMode, Levels};
use tickwheel_queue::{AckLevel, Timestamp};
use tickwheel_server::{
    Beanstalk as Door, Config, ListenAt, Place, PushPlan, Server, StartError, Store, TOKEN_BYTES_ADVISED,
    TlsFiles, Tokens, events,
};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::commands::backup_options::BackupOptions;
use crate::commands::limits::LimitOptions;
use crate::commands::postgres_options::PostgresOptions;
use crate::environment;
use crate::log::{self, FILTER_DEFAULT, LogFormat, filter, log_to_stderr, told_as_json};
use crate::notify::{Manager, State};
use crate::open_files;
use crate::otlp;
use crate::output::STDOUT;
use crate::push_tables::PushTables;
use crate::remote::TOKEN_VARIABLE;
use crate::values::{self, Beanstalk};

/// Signals within this time after the first one count as the same stop.
const ONE_STOP: Duration = Duration::from_secs(1);

/// The interval at which the log reports lines that were left out.
const REPEATS_TOLD: Duration = Duration::from_secs(1);

/// The directory of the tasks by default.
const DATA_DEFAULT: &str = "./tickwheel-data";

/// The headings of the options. The configuration file has its keys in the same groups.
const OF_TASKS: &str = "Tasks and their clock";
const OF_ADDRESSES: &str = "Addresses";
const OF_ACCESS: &str = "Tokens and TLS";
const OF_BEANSTALK: &str = "Clients of beanstalkd";
const OF_TARGETS: &str = "Targets: the server sends tasks by itself";
const OF_LOG: &str = "Log and traces";

/// Run a server
///
/// Tasks are kept in a directory, and what was acknowledged survives kill -9 and power cuts. The first line on stdout is printed when the
/// server is ready, and says where it listens. The log goes to stderr. SIGTERM and Ctrl-C stop the server gracefully: calls under way are
/// answered, and leases are written down. A second signal, 1 s later or more, stops it at once. SIGUSR1 makes it refuse new tasks, as
/// `tickwheel drain` does; `tickwheel resume` ends that.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel serve                                        tasks in ./tickwheel-data, http://127.0.0.1:8463
  tickwheel serve --data /var/lib/tickwheel --log info
  tickwheel serve --listen 0.0.0.0:8463 --token-file tokens --tls-cert cert.pem --tls-key key.pem
  tickwheel serve --backup-dir /backup/tickwheel --backup-every 1h --backup-keep 24
  tickwheel serve --listen unix:/run/tickwheel/http      behind a proxy, or for curl --unix-socket
  tickwheel serve --postgres postgres://tickwheel@db/tickwheel
  tickwheel serve --memory --listen 127.0.0.1:0          for a test: nothing is kept, any free port
  tickwheel serve --memory --virtual-clock               for a test of a 15-day flow: then
      curl -d '{\"by\":\"15d\"}' http://127.0.0.1:8463/v1/clock/advance")]
pub(crate) struct Serve {
    /// A file with options; `tickwheel config` prints one with every key. The command line and the environment override it
    #[arg(long, value_name = "FILE", env = "TICKWHEEL_CONFIG")]
    config: Option<PathBuf>,
    /// The directory for tasks; it is made if it does not exist [default: ./tickwheel-data]
    #[arg(long, help_heading = OF_TASKS, value_name = "DIR", env = "TICKWHEEL_DATA")]
    data: Option<PathBuf>,
    /// Keep tasks in memory only: nothing survives the end of the process
    ///
    /// `--data` has no effect then. But `--data` overrides a configuration file with `memory = true`
    #[arg(long, help_heading = OF_TASKS, env = "TICKWHEEL_MEMORY", value_parser = BoolishValueParser::new())]
    memory: bool,
    /// The number of shards of the directory or the database, 1 to 1,024; it never changes [default: as the data have it; 1 for a new
    /// directory, 64 for a new database]
    ///
    /// Each shard of a directory has a log and a thread of its own, as far as the machine has processors, so more changes can be written in the same time.
    /// All tasks of a queue are in one shard, so the shards help only if there are several queues. A start with another number than the
    /// directory has is refused. To change the number, export the directory and import it into a new one
    #[arg(long, help_heading = OF_TASKS, value_name = "N", env = "TICKWHEEL_SHARDS", value_parser = values::shards)]
    shards: Option<u32>,
    /// When a call that changes something is answered: after its change is synced (fsync), written (os) or accepted (memory)
    ///
    /// fsync: changes survive a power cut. os: changes survive a crash of the server, but a power cut may lose the last moments. memory:
    /// changes of the last moments do not survive a crash
    #[arg(long, help_heading = OF_TASKS, value_name = "LEVEL", env = "TICKWHEEL_ACK", value_enum, default_value_t = Ack::Fsync)]
    ack: Ack,
    /// Use a virtual clock that stands still until `POST /v1/clock/advance` moves it; the kind of clock of a directory never changes
    #[arg(long, help_heading = OF_TASKS, env = "TICKWHEEL_VIRTUAL_CLOCK", value_parser = BoolishValueParser::new())]
    virtual_clock: bool,
    /// The time at which the virtual clock starts, such as 2027-03-27T20:00:00Z; a directory whose time is later keeps its time [default:
    /// the time of this machine]
    ///
    /// With a fixed start a test has the same dates in each run. An instant before this time is in the past for the server
    #[arg(long, help_heading = OF_TASKS, value_name = "INSTANT", env = "TICKWHEEL_VIRTUAL_CLOCK_AT", value_parser = values::instant)]
    virtual_clock_at: Option<i64>,
    /// Refuse to start if the wall clock is further than this ahead of the last time in the data, from 1s to 36500d
    ///
    /// Without it, a start whose clock is far ahead holds back for a minute what fell due since the last time in the data
    #[arg(long, help_heading = OF_TASKS, value_name = "DURATION", env = "TICKWHEEL_CLOCK_MAX_AHEAD", value_parser = values::clock_max_ahead)]
    clock_max_ahead: Option<u64>,
    /// The delays for `level` in requests; the first is level 1
    #[arg(long, help_heading = OF_TASKS, value_name = "DELAYS", env = "TICKWHEEL_LEVELS", value_parser = values::levels, default_value_t = Levels::default())]
    levels: Levels,
    /// Accept payloads that are valid JSON but that some readers refuse
    ///
    /// Such payloads have numbers beyond 64-bit floats or of more than 1,000 digits, half surrogate pairs such as `\ud800`, or a member
    /// twice in one object. One such payload makes a whole lease answer unreadable to a strict reader. Without this option they are refused
    /// in puts, and stored ones are delivered in base64
    #[arg(long, help_heading = OF_TASKS, env = "TICKWHEEL_LAX_JSON", value_parser = BoolishValueParser::new())]
    lax_json: bool,
    /// The address to listen on; port 0 takes any free port
    ///
    /// A unix socket lets in every user who may open its path; the umask and the permissions of the directory decide that. A socket file
    /// that a killed server left is replaced
    #[arg(long, help_heading = OF_ADDRESSES, value_name = "ADDR:PORT|unix:PATH", env = "TICKWHEEL_LISTEN", default_value = "127.0.0.1:8463", value_parser = values::listen)]
    listen: ListenAt,
    /// A host name that requests may have besides those of this machine, for a reverse proxy that passes the name on; may be repeated
    ///
    /// `tasks.example` is valid with any port, `tasks.example:8443` with this port only. In the environment variable, commas separate
    /// several names. Web pages of these hosts may call the server
    #[arg(long, help_heading = OF_ADDRESSES, value_name = "NAME", env = "TICKWHEEL_ALLOW_HOST", value_delimiter = ',')]
    allow_host: Vec<String>,
    /// A place that webhooks may reach besides public addresses: an address, a range, or a name, each with or without a port; may be repeated
    ///
    /// Examples: `10.1.0.0/16`, `127.0.0.1:9000`, `[::1]:9000`, `*.corp.example:443`; `any` opens every place. Without this option webhooks
    /// reach public addresses only, by https. In the environment variable, commas separate several places
    #[arg(long, help_heading = OF_TARGETS, value_name = "PLACE", env = "TICKWHEEL_PUSH_ALLOW", value_delimiter = ',')]
    push_allow: Vec<Place>,
    /// A file with the keys that encrypt the secrets of targets, one per line: 32 bytes in base64, as `openssl rand -base64 32` writes them
    ///
    /// The first key encrypts, and all of them decrypt. At its start the server encrypts every secret under the first key, so that an old
    /// key can be removed afterwards. Without this option targets can only have the secrets of the configuration file
    #[arg(long, help_heading = OF_TARGETS, value_name = "FILE", env = "TICKWHEEL_SECRET_KEY_FILE")]
    secret_key_file: Option<PathBuf>,
    /// The tables of the configuration file
    #[arg(skip)]
    push_tables: PushTables,
    /// A file with tokens, one per line; it is read again when it changes. `tickwheel token` makes a token
    ///
    /// The token in the variable TICKWHEEL_TOKEN is valid, too, and has all rights, unless this file gives it others. Without any token,
    /// every client that reaches the port has all rights
    #[arg(long, help_heading = OF_ACCESS, value_name = "FILE", env = "TICKWHEEL_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// Use TLS: a PEM file with the server's certificate and the certificates between it and a root. It is read again when it changes
    #[arg(long, help_heading = OF_ACCESS, value_name = "FILE", env = "TICKWHEEL_TLS_CERT")]
    tls_cert: Option<PathBuf>,
    /// The key of that certificate, in PEM
    #[arg(long, help_heading = OF_ACCESS, value_name = "FILE", env = "TICKWHEEL_TLS_KEY")]
    tls_key: Option<PathBuf>,
    /// Listen on an address that other machines can reach even without tokens or without TLS
    #[arg(long, help_heading = OF_ACCESS, env = "TICKWHEEL_INSECURE", value_parser = BoolishValueParser::new())]
    insecure: bool,
    /// Answer browsers with the console at `/console/`: the pages that show what is coming, and let a person act on it
    ///
    /// The pages have no data of their own. Each call of them needs the rights of the token that a person types in. `read-only` leaves the
    /// actions out of the pages. That is no protection, because the API takes the same calls: give people a token with `rights=read`.
    /// `off` answers a browser with the JSON index of the API
    #[arg(long, help_heading = OF_ADDRESSES, value_name = "on|read-only|off", env = "TICKWHEEL_CONSOLE", value_enum, default_value_t = Console::On)]
    console: Console,
    /// Read the files of the console from this directory at each request, for authors of the pages
    ///
    /// The directory is one like `crates/console/assets`. Nothing outside of it is served
    #[arg(long, help_heading = OF_ADDRESSES, value_name = "DIR", env = "TICKWHEEL_CONSOLE_DIR")]
    console_dir: Option<PathBuf>,
    /// The address to listen on for clients of beanstalkd [default: 127.0.0.1:11300]
    ///
    /// Without this option, the server starts without this door if another program has that port. The protocol has no tokens: a server with
    /// tokens opens the door only if this option or --beanstalk-client-ca is given
    #[arg(long, help_heading = OF_BEANSTALK, value_name = "ADDR:PORT|unix:PATH|off", env = "TICKWHEEL_BEANSTALK", value_parser = values::beanstalk)]
    beanstalk: Option<Beanstalk>,
    /// Clients of beanstalkd see only the queues of this namespace, and tubes have no namespace in their names: for `shop`, tube `close` is
    /// queue `shop/close`
    #[arg(long, help_heading = OF_BEANSTALK, value_name = "NAME", env = "TICKWHEEL_BEANSTALK_NAMESPACE")]
    beanstalk_namespace: Option<String>,
    /// Clients of beanstalkd need TLS and a certificate that one of the certificates in this PEM file signed. Needs --tls-cert and
    /// --tls-key
    #[arg(long, help_heading = OF_BEANSTALK, value_name = "FILE", env = "TICKWHEEL_BEANSTALK_CLIENT_CA")]
    beanstalk_client_ca: Option<PathBuf>,
    /// The largest size of a job of a client of beanstalkd (bytes)
    #[arg(long, help_heading = OF_BEANSTALK, value_name = "BYTES", env = "TICKWHEEL_MAX_JOB_SIZE", default_value = "65535", value_parser = values::job_bytes)]
    max_job_size: u32,
    #[command(flatten)]
    postgres: PostgresOptions,
    #[command(flatten)]
    backups: BackupOptions,
    #[command(flatten)]
    limits: LimitOptions,
    /// How long a stop waits for calls and messages of targets that are under way, from 0s to 10m; then as long again for a backup, and for the disk
    ///
    /// No new message is sent meanwhile. A message that is not confirmed by then is given back, and its receiver may have got it
    #[arg(long, value_name = "DURATION", env = "TICKWHEEL_STOP_GRACE", default_value = "10s", value_parser = values::stop_grace)]
    stop_grace: u64,
    /// The lines to log: error, warn, info, debug or trace, or a filter such as `tickwheel_server=debug`
    ///
    /// `warn,audit=info` also shows the acts of administrators and the refusals by token; docs/reference/log.md lists all events
    #[arg(long, help_heading = OF_LOG, value_name = "FILTER", env = "RUST_LOG", default_value = FILTER_DEFAULT, value_parser = filter)]
    log: String,
    /// The format of the log: text for people, or a JSON object per line for programs
    #[arg(long, help_heading = OF_LOG, value_name = "FORMAT", env = "TICKWHEEL_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// Write a log line for each call: method, route, queue, status, time, bytes, token and address; no payloads, keys or query strings
    ///
    /// The lines have level `info` and target `access`; `--log info,access=off` leaves them out
    #[arg(long, help_heading = OF_LOG, env = "TICKWHEEL_ACCESS_LOG", value_parser = BoolishValueParser::new())]
    access_log: bool,
    /// Log each commit that takes this time or longer, from 1ms to 1h
    #[arg(long, help_heading = OF_LOG, value_name = "DURATION", env = "TICKWHEEL_SLOW_COMMIT", default_value = "1s", value_parser = values::slow_commit)]
    slow_commit: u64,
    /// Send spans of requests and deliveries to this OpenTelemetry collector, by OTLP over HTTP, such as `http://127.0.0.1:4318`
    ///
    /// The span of a delivery has a link to the span of the put
    #[arg(long, help_heading = OF_LOG, value_name = "URL", env = "TICKWHEEL_OTLP_ENDPOINT")]
    otlp_endpoint: Option<String>,
}

/// The value of the environment variable for the token, if it is set.
fn variable() -> Option<String> {
    env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty())
}

/// The token of the environment variable. It has all rights.
fn token_of_variable(token: &str) -> Result<Tokens> {
    if token.split_whitespace().count() != 1 {
        bail!(
            "{TOKEN_VARIABLE} takes one token; more of them, and those with rights and scopes, go into --token-file"
        );
    }
    Tokens::parse(&format!("{token} name={TOKEN_VARIABLE}"))
        .with_context(|| format!("failed to read {TOKEN_VARIABLE}"))
}

/// The console, as the option names it.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Console {
    On,
    ReadOnly,
    Off,
}

impl From<Console> for ConsoleMode {
    fn from(console: Console) -> Self {
        match console {
            Console::On => Self::On,
            Console::ReadOnly => Self::ReadOnly,
            Console::Off => Self::Off,
        }
    }
}

/// The durability levels, as options name them.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Ack {
    Fsync,
    Os,
    Memory,
}

impl From<Ack> for AckLevel {
    fn from(ack: Ack) -> Self {
        match ack {
            Ack::Fsync => Self::Fsync,
            Ack::Os => Self::Os,
            Ack::Memory => Self::Memory,
        }
    }
}

impl Serve {
    /// The configuration file.
    pub(crate) fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// Serves until a signal stops the server.
    ///
    /// # Errors
    /// The server cannot start.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let json = self.log_format == LogFormat::Json;
        self.try_run().map_err(|error| if json { told_as_json(&error) } else { error })
    }

    /// Reports an error that came before the start, in the format of the log.
    pub(crate) fn told(&self, error: anyhow::Error) -> anyhow::Error {
        if self.log_format == LogFormat::Json { told_as_json(&error) } else { error }
    }

    fn try_run(self) -> Result<ExitCode> {
        log_to_stderr(&self.log, self.log_format, self.access_log)?;
        end_with_the_engine();
        open_files::raise_limit();
        let runtime = Runtime::new().context("start the server's threads")?;
        let served = runtime.block_on(self.serve());
        log::flush();
        // A recovery may be stopped at any point: it changes nothing that a crash could not have changed.
        runtime.shutdown_background();
        served.map(|()| ExitCode::SUCCESS)
    }

    /// The server's configuration, from the options and from the token in the environment. The function opens nothing.
    ///
    /// # Errors
    /// The options contradict each other, or an unknown environment variable looks like one for tokens or for TLS.
    pub(crate) fn settled(&self) -> Result<Config> {
        environment::check_for_server()?;
        let postgres = self.postgres.plan(self.data.as_deref(), self.memory, self.backups.is_given())?;
        let store = match (postgres, self.memory, &self.data) {
            (Some(plan), ..) => Store::Postgres(plan),
            (None, true, _) => Store::Memory,
            (None, false, data) => Store::Dir(data.clone().unwrap_or_else(|| DATA_DEFAULT.into())),
        };
        if self.postgres.is_given() && self.ack != Ack::Fsync {
            bail!(
                "--ack sets when a directory is synced, and the tasks are in PostgreSQL, which answers once a commit is durable; leave \
                 out --ack"
            );
        }
        let tokens = variable().map_or_else(|| Ok(Tokens::default()), |token| token_of_variable(&token))?;
        if let Some(url) = &self.otlp_endpoint {
            otlp::check(url)?;
        }
        let tls = match (self.tls_cert.clone(), self.tls_key.clone()) {
            (Some(certificates), Some(key)) => Some(TlsFiles { certificates, key }),
            (None, None) => None,
            (Some(_), None) => bail!("there is a certificate and no key; add --tls-key"),
            (None, Some(_)) => bail!("there is a key and no certificate; add --tls-cert"),
        };
        if self.console == Console::Off && self.console_dir.is_some() {
            bail!(
                "there is a directory for the console and no console; leave --console-dir or --console off out"
            );
        }
        let config = Config {
            listen: self.listen.clone(),
            allow_hosts: self.allow_host.clone(),
            shards: self.shards,
            virtual_clock: self.virtual_clock,
            virtual_clock_at: self.virtual_clock_start()?,
            tls,
            push: self.push()?,
            insecure: self.insecure,
            ack_level: self.ack.into(),
            levels: self.levels.clone(),
            lax_json: self.lax_json,
            console: self.console.into(),
            console_dir: self.console_dir.clone(),
            access_log: self.access_log,
            clock_max_ahead: self.clock_max_ahead.map(Duration::from_millis),
            slow_commit: Duration::from_millis(self.slow_commit),
            stop_grace: Duration::from_millis(self.stop_grace),
            tokens,
            token_file: self.token_file.clone(),
            backups: self.backups.plan()?,
            ..Config::new(store)
        };
        let config = self.limits.put_into(config);
        let config = Config { beanstalk: self.door(config.has_tokens()), ..config };
        config.check()?;
        Ok(config)
    }

    /// Takes in the tables `[push.*]` of the configuration file.
    pub(crate) fn take_push_tables(&mut self, tables: PushTables) {
        self.push_tables = tables;
    }

    /// The part about targets.
    fn push(&self) -> Result<PushPlan> {
        let (allow, secret_key_file) = (self.push_allow.clone(), self.secret_key_file.clone());
        self.push_tables.put_into(PushPlan { allow, secret_key_file, ..PushPlan::default() })
    }

    /// The time at which the virtual clock starts. A server on real time has none.
    fn virtual_clock_start(&self) -> Result<Option<Timestamp>> {
        let Some(ms) = self.virtual_clock_at else { return Ok(None) };
        if !self.virtual_clock {
            bail!("there is a start for a virtual clock and no virtual clock; add --virtual-clock");
        }
        Timestamp::from_ms(ms).context("--virtual-clock-at: times begin in 1970").map(Some)
    }

    /// The beanstalkd door. Tokens do not protect it, so a server with tokens opens it only if an option asks for it.
    fn door(&self, has_tokens: bool) -> Option<Door> {
        let usual = Door::default();
        let listen = match self.beanstalk.clone() {
            Some(Beanstalk::Off) => return None,
            Some(Beanstalk::At(listen)) => listen,
            None if has_tokens && self.beanstalk_client_ca.is_none() => return None,
            None => usual.listen,
        };
        Some(Door {
            listen,
            job_bytes_max: self.max_job_size,
            namespace: self.beanstalk_namespace.clone(),
            client_ca: self.beanstalk_client_ca.clone(),
        })
    }

    /// Warns of options that have no effect or may be mistakes.
    fn warn(&self, config: &Config) {
        for unknown in environment::unknown() {
            tracing::warn!(event = events::DOUBTFUL, "{}", unknown.warning());
        }
        if self.memory {
            if let Some(data) = &self.data {
                tracing::warn!(event = events::DOUBTFUL, data = %data.display(), "--data is ignored, because --memory keeps tasks in memory");
            }
            tracing::warn!(
                event = events::DOUBTFUL,
                "tasks are kept in memory: none survives the end of this process"
            );
        } else if self.ack != Ack::Fsync {
            let lost = if self.ack == Ack::Os { "of the machine" } else { "of the server or of the machine" };
            tracing::warn!(
                event = events::DOUBTFUL,
                "calls are answered before they are synced: a crash {lost} may take the last moments"
            );
        }
        if variable().is_some_and(|token| token.len() < TOKEN_BYTES_ADVISED) {
            tracing::warn!(
                event = events::DOUBTFUL,
                "the token in {TOKEN_VARIABLE} is short, and may be guessed; `tickwheel token` makes one that is not"
            );
        }
        self.backups.warn(self.memory);
        if self.push_allow.iter().any(Place::is_any) {
            tracing::warn!(
                event = events::DOUBTFUL,
                "--push-allow any: who may give a queue a target can make this server call every address that it reaches"
            );
        }
        self.warn_of_door(config);
        let Config { listen, insecure, .. } = config;
        if *insecure && !config.has_tokens() {
            tracing::warn!(
                event = events::DOUBTFUL,
                "there are no tokens: every client that reaches {listen} may do everything"
            );
        }
        if *insecure && config.tls.is_none() {
            tracing::warn!(
                event = events::DOUBTFUL,
                "there is no TLS: calls to {listen}, and their tokens, can be read on the network"
            );
        }
    }

    /// Warns of options of the beanstalkd door that have no effect or may be mistakes.
    fn warn_of_door(&self, config: &Config) {
        let Some(Door { listen, client_ca, .. }) = &config.beanstalk else {
            let is_asked_for = self.max_job_size != Door::default().job_bytes_max
                || self.beanstalk_namespace.is_some()
                || self.beanstalk_client_ca.is_some();
            if is_asked_for {
                tracing::warn!(
                    event = events::DOUBTFUL,
                    "the beanstalkd door is closed, so its other options have no effect; open it with --beanstalk"
                );
            }
            if self.beanstalk.is_none() {
                tracing::warn!(
                    event = events::DOUBTFUL,
                    "the beanstalkd door is closed, because the server has tokens and that door does not check them; --beanstalk opens it at an address or path, and `--beanstalk off` ends this warning"
                );
            }
            return;
        };
        if client_ca.is_none() && config.has_tokens() {
            tracing::warn!(
                event = events::DOUBTFUL,
                %listen,
                "the beanstalkd door does not check tokens: every client that reaches it may do everything there"
            );
        }
        if let ListenAt::Tcp(address) = listen
            && client_ca.is_none()
            && !address.ip().to_canonical().is_loopback()
        {
            tracing::warn!(
                event = events::DOUBTFUL,
                %listen,
                "there is no TLS at the beanstalkd door: its commands and jobs can be read on the network"
            );
        }
    }

    async fn serve(self) -> Result<()> {
        // The program takes over the signals before it opens anything, so that an early signal also stops the server.
        let (mut stop, mut again) = (Stop::listen()?, Stop::listen()?);
        let mut usr1 = signal(SignalKind::user_defined1()).context("listen for signals")?;
        let config = self.settled().context("failed to start")?;
        self.warn(&config);
        let (spans, export) = self.otlp_endpoint.as_deref().map(otlp::open).transpose()?.unzip();
        let config = Config { spans, ..config };
        let server = tokio::select! {
            bound = bind(config, self.beanstalk.is_none()) => bound.context("failed to start")?,
            _ = stop.wait() => return Ok(()),
        };
        announce(&server)?;
        let manager = Manager::of_environment();
        manager.tell(State::Ready);
        let drain = server.drain();
        let drained = async {
            // Each SIGUSR1 begins a drain, because a resume may have ended the drain before it.
            while usr1.recv().await.is_some() {
                drain.begin();
            }
            std::future::pending().await
        };
        let told = async {
            let signal = stop.wait().await;
            tracing::info!(event = events::STOP_TOLD, signal, "told to stop");
            manager.tell(State::Stopping);
        };
        let told_twice = async {
            again.wait().await;
            let first = Instant::now();
            // A shell and a supervisor may both forward the same stop signal.
            while first.elapsed() < ONE_STOP {
                again.wait().await;
            }
            tracing::warn!(
                event = events::STOPPED_AT_ONCE,
                "stopped at once: leases that are not written down end with this process"
            );
            log::flush();
            end_at_once()
        };
        let repeats = async {
            loop {
                tokio::time::sleep(REPEATS_TOLD).await;
                log::tell_repeated();
            }
        };
        tokio::select! {
            () = server.run(told) => {}
            () = drained => {}
            () = repeats => {}
            never = told_twice => match never {},
        }
        if let Some(export) = export {
            tokio::task::spawn_blocking(move || export.close()).await.context("send the last spans")?;
        }
        Ok(())
    }
}

/// Ends the process without closing anything. Acknowledged calls are as safe as after a crash. A close could wait for a disk that does not
/// answer.
#[expect(clippy::exit, reason = "nothing may be dropped: the queue would be closed")]
fn end_at_once() -> Infallible {
    std::process::exit(1)
}

/// Ends the process when the engine or its store panics. After a panic the state of the engine is unknown, so the engine must not answer another
/// call. The next start reads the durable state.
pub(crate) fn end_with_the_engine() {
    std::panic::set_hook(Box::new(move |panic| {
        let thread = std::thread::current();
        let is_engine = thread.name().is_some_and(|name| {
            name == tickwheel_queue::SHARD_THREAD || name.starts_with(tickwheel_postgres::POSTGRES_THREADS)
        });
        log::report_panic(panic, is_engine || thread.name() == Some("main"));
        if is_engine {
            std::process::abort();
        }
    }));
}

/// Binds the listeners. `usual`: no option asks for the beanstalkd door, so the server starts without it if another program has its port.
async fn bind(config: Config, usual: bool) -> Result<Server, StartError> {
    match Server::bind(config.clone()).await {
        Err(StartError::ListenBeanstalk { listen, source })
            if usual && source.kind() == io::ErrorKind::AddrInUse =>
        {
            tracing::warn!(
                event = events::DOUBTFUL,
                %listen,
                "the beanstalkd door is closed, because another program has its port; give another one with --beanstalk, or close the door with `--beanstalk off`"
            );
            Server::bind(Config { beanstalk: None, ..config }).await
        }
        bound => bound,
    }
}

/// Prints the line that says that the server is ready, and a line for the beanstalkd door. The parent process may wait for the first line.
fn announce(server: &Server) -> Result<()> {
    let mut lines = format!("listening {}\n", server.url());
    if let Some(door) = server.door("beanstalk") {
        lines.push_str(&format!("listening beanstalk://{door}\n"));
    }
    let mut out = io::stdout().lock();
    let written = out.write_all(lines.as_bytes()).and_then(|()| out.flush());
    match written {
        // The server goes on even if the reader of its stdout is gone.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context(STDOUT),
    }
}

/// The signals that end the server.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    fn listen() -> Result<Self> {
        let on = |kind| signal(kind).context("listen for signals");
        Ok(Self { terminate: on(SignalKind::terminate())?, interrupt: on(SignalKind::interrupt())? })
    }

    /// Waits for the next signal and returns its name.
    async fn wait(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Alone {
        #[command(flatten)]
        serve: Serve,
    }

    /// The address of the door that these options ask for. It does not depend on the environment of the test run.
    fn door(has_tokens: bool, listen: Option<&str>, client_ca: Option<&str>) -> Option<String> {
        let mut alone = Alone::try_parse_from(["serve"]).expect("it needs no options");
        alone.serve.beanstalk = listen.map(|listen| values::beanstalk(listen).expect("a place"));
        alone.serve.beanstalk_client_ca = client_ca.map(PathBuf::from);
        alone.serve.door(has_tokens).map(|door| door.listen.to_string())
    }

    #[test]
    fn a_server_with_tokens_opens_the_other_door_only_where_it_is_asked_to() {
        let usual = Some("127.0.0.1:11300".to_owned());
        assert_eq!(door(false, None, None), usual);
        assert_eq!(door(false, Some("off"), None), None);
        assert_eq!(door(true, None, None), None, "they do not cover it");
        assert_eq!(door(true, Some("127.0.0.1:1"), None), Some("127.0.0.1:1".to_owned()));
        assert_eq!(door(true, Some("unix:/a"), None), Some("unix:/a".to_owned()));
        assert_eq!(door(true, None, Some("ca")), usual);
        assert_eq!(door(true, Some("off"), Some("ca")), None);
    }
}
