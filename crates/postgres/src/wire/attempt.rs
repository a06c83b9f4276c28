//! [`Attempt`]: one attempt to get a session from one host. The hosts of a URL are attempted in their order.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Instant;

use postgres_protocol::message::frontend;
use rustls::pki_types::ServerName;

use super::connection::Connection;
use super::error::{HostError, OpenError};
use super::pipeline::Pipeline;
use super::socket::Socket;
use super::startup::{Login, StartError};
use super::tls::{self, TlsMode};
use super::transport::{Transport, TransportError, now};
use super::url::{DatabaseUrl, Host, HostKind, SessionAttrs};

/// At most this many addresses of a name are tried.
const ADDRESSES_MAX: usize = 8;

impl Connection {
    /// Opens a session at the first host of the URL that gives one, at the latest at `deadline`. Each host gets its
    /// share of the time, so that one that is silent leaves time for the others.
    ///
    /// The look-up of a name is done by the system and keeps its own limit.
    ///
    /// # Errors
    /// [`OpenError`].
    #[cfg(test)]
    pub(crate) fn open(
        url: &DatabaseUrl,
        application_name: &str,
        settings: &[(&str, &str)],
        deadline: Instant,
    ) -> Result<Self, OpenError> {
        Self::open_first(url, application_name, settings, deadline, Ok)
    }

    /// As `open`, at the first host whose session `accept` takes. A host may give a session and be the wrong one all the
    /// same, such as a primary from before a fail-over.
    ///
    /// # Errors
    /// [`OpenError`].
    pub(crate) fn open_first<T>(
        url: &DatabaseUrl,
        application_name: &str,
        settings: &[(&str, &str)],
        deadline: Instant,
        mut accept: impl FnMut(Self) -> Result<T, HostError>,
    ) -> Result<T, OpenError> {
        let hosts = url.hosts();
        let mut errors = Vec::with_capacity(hosts.len());
        for (nth, host) in hosts.iter().enumerate() {
            let start = now();
            let share = deadline.saturating_duration_since(start)
                / (hosts.len() - nth).try_into().unwrap_or(u32::MAX);
            let limit = url.connect_timeout().map_or(share, |limit| limit.min(share));
            let attempt = Attempt { url, host, application_name, settings, deadline: start + limit };
            match attempt.open().and_then(&mut accept) {
                Ok(accepted) => return Ok(accepted),
                Err(error) => errors.push(error),
            }
        }
        // A host that is away may have another configuration, so only the word of all of them is final.
        match errors.iter().all(|error| error.is_refused) {
            true => Err(OpenError::Refused(errors)),
            false => Err(OpenError::Unreachable(errors)),
        }
    }
}

/// One attempt to get a session from one host.
pub(crate) struct Attempt<'a> {
    pub(crate) url: &'a DatabaseUrl,
    pub(crate) host: &'a Host,
    pub(crate) application_name: &'a str,
    pub(crate) settings: &'a [(&'a str, &'a str)],
    pub(crate) deadline: Instant,
}

impl Attempt<'_> {
    /// Returns a session that the URL wants.
    pub(crate) fn open(&self) -> Result<Connection, HostError> {
        let mode = self.url.tls_mode(self.host);
        let mut connection = match self.open_with(mode) {
            // As libpq: what was preferred and failed is tried without.
            Err((_, true)) if mode == TlsMode::Prefer => self.open_with(TlsMode::Disable),
            opened => opened,
        }
        .map_err(|(error, _)| error)?;
        if self.url.attrs() == SessionAttrs::ReadWrite {
            self.check_writes(&mut connection)?;
        }
        Ok(connection)
    }

    /// Returns the session; else the error and whether an attempt without TLS may succeed.
    fn open_with(&self, mode: TlsMode) -> Result<Connection, (HostError, bool)> {
        let mut transport = self.connect().map_err(|why| (self.unreachable(why), false))?;
        if mode != TlsMode::Disable {
            self.encrypt(&mut transport, mode)?;
        }
        let password = self.url.password(self.host);
        let password =
            password.map_err(|why| (self.refused(format!("the file of passwords {why}")), false))?;
        let is_tls = transport.is_tls();
        let login = Login {
            user: self.url.user(),
            password: password.as_deref(),
            database: self.url.database(),
            application_name: self.application_name,
            settings: self.settings,
            is_private: is_tls || self.host.is_local(),
        };
        Connection::start(transport, self.host.to_string(), &login, self.deadline).map_err(
            |error| match error {
                StartError::Refused(why) => (self.refused(why), false),
                StartError::Transport(error) => (self.transport(&error), false),
                StartError::Database(error) => {
                    let is_refused = is_refusal(&error.code);
                    let (why, code) = (error.to_string(), Some(error.code.clone()));
                    // The rules of the server may want no TLS from this address.
                    let is_elsewhere = is_tls && error.code == "28000";
                    (HostError { peer: self.host.to_string(), why, code, is_refused }, is_elsewhere)
                }
            },
        )
    }

    fn connect(&self) -> Result<Transport, String> {
        if let Some(path) = self.host.socket() {
            return Ok(Transport::new(Socket::unix(&path).map_err(|error| error.to_string())?));
        }
        let addresses: Vec<SocketAddr> = match &self.host.kind {
            HostKind::Address(address) => vec![SocketAddr::new(*address, self.host.port)],
            HostKind::Name(name) => (name.as_str(), self.host.port)
                .to_socket_addrs()
                .map_err(|error| format!("the look-up failed: {error}"))?
                .take(ADDRESSES_MAX)
                .collect(),
            HostKind::Directory(_) => Vec::new(),
        };
        let mut last = "the name has no address".to_owned();
        for (nth, address) in addresses.iter().enumerate() {
            let count = u32::try_from(addresses.len() - nth).unwrap_or(1);
            let share = self.deadline.saturating_duration_since(now()) / count;
            match Socket::tcp(*address, share, self.url.keepalives()) {
                Ok(socket) => return Ok(Transport::new(socket)),
                Err(error) => last = error.to_string(),
            }
        }
        Err(last)
    }

    /// Asks the server for TLS and makes the handshake.
    fn encrypt(&self, transport: &mut Transport, mode: TlsMode) -> Result<(), (HostError, bool)> {
        frontend::ssl_request(transport.outgoing());
        let word = transport.one_byte(self.deadline).map_err(|error| (self.transport(&error), false))?;
        match word {
            b'S' => {}
            b'N' if mode == TlsMode::Prefer => return Ok(()),
            b'N' => {
                let why = format!(
                    "the server has no TLS, and sslmode={} wants it; in a network that is trusted, sslmode=disable goes \
                     without",
                    mode.name()
                );
                return Err((self.refused(why), false));
            }
            // An error at this point is not authentic, so its text is not shown.
            _ => {
                return Err((
                    self.unreachable("the server does not know the request for TLS".to_owned()),
                    true,
                ));
            }
        }
        let config = tls::config(mode, self.url.roots(), self.url.client_files());
        let config = config.map_err(|why| (self.refused(why), false))?;
        let name = match &self.host.kind {
            HostKind::Name(name) => ServerName::try_from(name.clone()).map_err(|error| error.to_string()),
            HostKind::Address(address) => Ok(ServerName::from(*address)),
            HostKind::Directory(_) => Err("there is no TLS on a Unix socket".to_owned()),
        };
        let name = name.map_err(|why| (self.refused(why), false))?;
        let done = transport.handshake(config, name, self.deadline);
        done.map_err(|error| (self.transport(&error), true))
    }

    /// Checks that the session can write.
    fn check_writes(&self, connection: &mut Connection) -> Result<(), HostError> {
        // PostgreSQL reports both from version 14 on.
        let reported = |name: &str| connection.parameter(name).map(|value| value == "on");
        let reports = (reported("in_hot_standby"), reported("default_transaction_read_only"));
        let is_read_only = match reports {
            (Some(in_standby), Some(is_read_only)) => in_standby || is_read_only,
            _ => {
                let mut pipeline = Pipeline::new();
                pipeline
                    .text("SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'");
                let results = connection.run(&pipeline, Some(self.deadline));
                let results = results.map_err(|error| self.unreachable(error.to_string()))?;
                let row = results.first().and_then(|result| result.rows.first());
                let value = row.map(|row| row.get::<bool>(0));
                let Some(Ok(is_read_only)) = value else {
                    return Err(
                        self.unreachable("the server does not say whether it is a standby".to_owned())
                    );
                };
                is_read_only
            }
        };
        match is_read_only {
            true => {
                Err(self.unreachable("it is a standby or read-only, and read-write is wanted".to_owned()))
            }
            false => Ok(()),
        }
    }

    fn transport(&self, error: &TransportError) -> HostError {
        let tls = match error {
            TransportError::Tls(error) => Some(error),
            TransportError::Io(error) => {
                error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>())
            }
            TransportError::TimedOut | TransportError::Closed | TransportError::Violation(_) => None,
        };
        match tls {
            Some(error) if tls::is_refusal(error) => self.refused(tls::in_words(error)),
            Some(error) => self.unreachable(tls::in_words(error)),
            None => self.unreachable(error.to_string()),
        }
    }

    fn refused(&self, why: String) -> HostError {
        HostError { peer: self.host.to_string(), why, code: None, is_refused: true }
    }

    fn unreachable(&self, why: String) -> HostError {
        HostError { peer: self.host.to_string(), why, code: None, is_refused: false }
    }
}

/// Whether an SQLSTATE at the start of a session means that the configuration is wrong. All else, such as `57P03` (the
/// database starts up) or `53300` (too many connections), may pass.
fn is_refusal(code: &str) -> bool {
    // Authentication; no such database; no right to connect, or a wrong setting; a feature that the server lacks; a
    // database that takes no connections.
    ["28", "3D", "42", "22", "0A", "55"].iter().any(|class| code.starts_with(class))
}
