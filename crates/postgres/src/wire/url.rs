//! [`DatabaseUrl`]: where the database is, as libpq writes it.
//!
//! ```text
//! postgres://user:password@h1:5432,h2:5433/database?sslmode=verify-full&target_session_attrs=read-write
//! ```
//!
//! Parts that the URL leaves out come from the [`Environment`], then from the file of passwords. Differences from libpq:
//! the default of `sslmode` depends on the host, that of `sslrootcert` is `system`, that of the host is `localhost`,
//! and a setting that is said twice is an error.

mod host;
#[cfg(test)]
mod tests;
mod text;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::environment::Environment;
use super::passfile::{self, Question};
use super::socket::Keepalives;
use super::tls::{ClientFiles, Roots, TlsMode};
use host::hosts;
pub(crate) use host::{Host, HostKind};
use text::{UrlError, decoded, encoded, split};

/// Which sessions are wanted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum SessionAttrs {
    Any,
    /// Not on a standby, and not in a database that is read-only by default.
    ReadWrite,
}

/// The URL of a database, complete with what the environment says.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct DatabaseUrl {
    hosts: Vec<Host>,
    user: String,
    password: Option<String>,
    database: String,
    tls_mode: Option<TlsMode>,
    roots: Option<Roots>,
    client: Option<ClientFiles>,
    passfile: Option<PathBuf>,
    connect_timeout: Option<Duration>,
    attrs: SessionAttrs,
    keepalives: Keepalives,
}

impl DatabaseUrl {
    /// Reads a URL.
    ///
    /// # Errors
    /// [`UrlError`]: the text is no such URL, a parameter is unknown or wrong, or the file of passwords cannot be used.
    pub(crate) fn parse(text: &str, environment: &Environment) -> Result<Self, UrlError> {
        let mut said = split(text)?;
        let mut take = |name: &str| said.remove(name);

        let host_said = take("host").or_else(|| environment.host.clone());
        let port_said = take("port").or_else(|| environment.port.clone());
        let hosts = hosts(host_said.as_deref().unwrap_or("localhost"), port_said.as_deref())?;
        let user = take("user").or_else(|| environment.user.clone());
        let user = user.ok_or_else(|| UrlError("the URL names no user, and PGUSER is not set".to_owned()))?;
        let password = take("password").or_else(|| environment.password.clone());
        let database =
            take("dbname").or_else(|| environment.database.clone()).unwrap_or_else(|| user.clone());
        for (name, value) in [("user", &user), ("dbname", &database)] {
            if value.is_empty() || value.contains('\0') {
                return Err(UrlError(format!("`{name}` is empty or has a NUL in it")));
            }
        }

        let tls_mode = take("sslmode").or_else(|| environment.sslmode.clone());
        let tls_mode = tls_mode.map(|mode| mode_of(&mode)).transpose()?;
        let roots =
            take("sslrootcert").or_else(|| environment.sslrootcert.clone()).map(|roots| match &*roots {
                "system" => Roots::System,
                _ => Roots::File(PathBuf::from(roots)),
            });
        if let (Some(mode @ (TlsMode::Prefer | TlsMode::Require | TlsMode::VerifyCa)), Some(Roots::System)) =
            (tls_mode, &roots)
        {
            // A public authority gives a certificate to everyone.
            let mode = mode.name();
            return Err(UrlError(format!(
                "sslmode={mode} is too weak for sslrootcert=system: use verify-full"
            )));
        }
        let client = match (take("sslcert"), take("sslkey")) {
            (None, None) => None,
            (Some(certificate), Some(key)) => {
                Some(ClientFiles { certificate: certificate.into(), key: key.into() })
            }
            _ => return Err(UrlError("`sslcert` and `sslkey` go together".to_owned())),
        };

        let passfile_said = take("passfile").map(PathBuf::from).or_else(|| environment.passfile.clone());
        let passfile = passfile_said.clone();
        let passfile = passfile.or_else(|| environment.home.as_ref().map(|home| home.join(".pgpass")));
        if password.is_none()
            && let Some(path) = &passfile
        {
            let read =
                passfile::read(path).map_err(|why| UrlError(format!("the file of passwords {why}")))?;
            if read.is_none() && passfile_said.is_some() {
                return Err(UrlError(format!("there is no file of passwords {}", path.display())));
            }
        }

        let seconds = |name: &str, value: Option<String>| {
            value.map(|value| number(name, &value).map(|count| Duration::from_secs(count.into()))).transpose()
        };
        // As in libpq, 0 stands for no limit.
        let connect_timeout =
            seconds("connect_timeout", take("connect_timeout"))?.filter(|limit| !limit.is_zero());
        let mut keepalives = Keepalives::default();
        let idle = seconds("keepalives_idle", take("keepalives_idle"))?;
        keepalives.idle = idle.unwrap_or(keepalives.idle);
        let interval = seconds("keepalives_interval", take("keepalives_interval"))?;
        keepalives.interval = interval.unwrap_or(keepalives.interval);
        if let Some(count) = take("keepalives_count") {
            keepalives.count = number("keepalives_count", &count)?;
        }
        if keepalives.idle.is_zero() || keepalives.interval.is_zero() || keepalives.count == 0 {
            return Err(UrlError("`keepalives_idle`, `_interval` and `_count` are at least 1".to_owned()));
        }
        if let Some(limit) = take("tcp_user_timeout") {
            let limit_ms = number("tcp_user_timeout", &limit)?;
            keepalives.user_timeout = (limit_ms > 0).then(|| Duration::from_millis(limit_ms.into()));
        }
        let attrs = match take("target_session_attrs").as_deref() {
            None | Some("read-write") => SessionAttrs::ReadWrite,
            Some("any") => SessionAttrs::Any,
            Some(other) => {
                return Err(UrlError(format!("target_session_attrs={other}: it is `any` or `read-write`")));
            }
        };
        Ok(Self {
            hosts,
            user,
            password,
            database,
            tls_mode,
            roots,
            client,
            passfile,
            connect_timeout,
            attrs,
            keepalives,
        })
    }

    /// Returns the text with another database in it. The other parts stay as they are, so that the environment completes them in the same
    /// way.
    ///
    /// # Errors
    /// [`UrlError`]: the text is no such URL.
    pub(crate) fn with_database(text: &str, database: &str) -> Result<String, UrlError> {
        split(text)?;
        let (address, query) = text.split_once('?').unwrap_or((text, ""));
        let (scheme, rest) = address.split_once("://").unwrap_or((address, ""));
        let authority = rest.split('/').next().unwrap_or(rest);
        let of_database = |pair: &&str| pair.split('=').next().map(decoded) == Some(Ok("dbname".to_owned()));
        let kept: Vec<&str> =
            query.split('&').filter(|pair| !pair.is_empty() && !of_database(pair)).collect();
        let question = if kept.is_empty() { "" } else { "?" };
        Ok(format!("{scheme}://{authority}/{}{question}{}", encoded(database), kept.join("&")))
    }

    /// Returns the text with `***` in the place of each password. The text is for people.
    pub(crate) fn without_password(text: &str) -> String {
        let Some((scheme, rest)) = text.split_once("://") else { return "***".to_owned() };
        // With an `@` behind the first `?`, the text may have a password in either place, and its ends cannot be known.
        if rest.split_once('?').is_some_and(|(_, query)| query.contains('@')) {
            return format!("{scheme}://***");
        }
        // An `@` that is not encoded belongs to the password, whatever stands around it.
        let (login, rest) = rest.rsplit_once('@').map_or((None, rest), |(login, rest)| (Some(login), rest));
        let login = login.map_or_else(String::new, |login| match login.split_once(':') {
            Some((user, _)) => format!("{user}:***@"),
            None => format!("{login}@"),
        });
        let (address, query) = rest.split_once('?').map_or((rest, None), |(one, two)| (one, Some(two)));
        let hidden = |pair: &str| {
            let name = pair.split('=').next().unwrap_or(pair);
            let is_password = decoded(name).as_deref() != Ok(name) || name == "password";
            if is_password { format!("{name}=***") } else { pair.to_owned() }
        };
        let query = query.map(|query| query.split('&').map(hidden).collect::<Vec<_>>().join("&"));
        let query = query.map_or_else(String::new, |query| format!("?{query}"));
        format!("{scheme}://{login}{address}{query}")
    }

    /// The hosts, in the order in which they are tried.
    pub(crate) fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    pub(crate) fn user(&self) -> &str {
        &self.user
    }

    pub(crate) fn database(&self) -> &str {
        &self.database
    }

    /// Returns the password for a host. The file of passwords is read anew each time, so that a password can change.
    ///
    /// # Errors
    /// A text that says why the file of passwords is not used.
    pub(crate) fn password(&self, host: &Host) -> Result<Option<String>, String> {
        if self.password.is_some() {
            return Ok(self.password.clone());
        }
        let Some(text) = self.passfile.as_deref().map(passfile::read).transpose()?.flatten() else {
            return Ok(None);
        };
        let (name, is_socket) = match &host.kind {
            HostKind::Name(name) => (name.clone(), false),
            HostKind::Address(address) => (address.to_string(), false),
            HostKind::Directory(directory) => (directory.display().to_string(), true),
        };
        let question =
            Question { host: &name, is_socket, port: host.port, database: &self.database, user: &self.user };
        Ok(passfile::find(&text, &question))
    }

    /// How TLS is used for a host. Without `sslmode`: none on this machine, `verify-full` elsewhere.
    pub(crate) fn tls_mode(&self, host: &Host) -> TlsMode {
        match (&host.kind, self.tls_mode) {
            // There is no TLS on Unix sockets.
            (HostKind::Directory(_), _) => TlsMode::Disable,
            (_, Some(mode)) => mode,
            (_, None) if host.is_local() => TlsMode::Disable,
            (_, None) => TlsMode::VerifyFull,
        }
    }

    pub(crate) fn roots(&self) -> Option<&Roots> {
        self.roots.as_ref()
    }

    pub(crate) fn client_files(&self) -> Option<&ClientFiles> {
        self.client.as_ref()
    }

    /// The time for one host.
    pub(crate) fn connect_timeout(&self) -> Option<Duration> {
        self.connect_timeout
    }

    pub(crate) fn attrs(&self) -> SessionAttrs {
        self.attrs
    }

    pub(crate) fn keepalives(&self) -> &Keepalives {
        &self.keepalives
    }
}

impl fmt::Display for DatabaseUrl {
    /// Shows no password. The text is for people; it is not read back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "postgres://{}", self.user)?;
        if self.password.is_some() {
            write!(f, ":***")?;
        }
        for (nth, host) in self.hosts.iter().enumerate() {
            write!(f, "{}{host}", if nth == 0 { '@' } else { ',' })?;
        }
        write!(f, "/{}", self.database)?;
        if let Some(mode) = self.tls_mode {
            write!(f, "?sslmode={}", mode.name())?;
        }
        Ok(())
    }
}

impl fmt::Debug for DatabaseUrl {
    /// Shows no password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseUrl")
            .field("url", &self.to_string())
            .field("roots", &self.roots)
            .field("client", &self.client)
            .field("passfile", &self.passfile)
            .field("connect_timeout", &self.connect_timeout)
            .field("attrs", &self.attrs)
            .field("keepalives", &self.keepalives)
            .finish()
    }
}

fn mode_of(text: &str) -> Result<TlsMode, UrlError> {
    use TlsMode::{Disable, Prefer, Require, VerifyCa, VerifyFull};

    let modes = [Disable, Prefer, Require, VerifyCa, VerifyFull];
    modes
        .into_iter()
        .find(|mode| mode.name() == text)
        .ok_or_else(|| UrlError(format!("sslmode={text}: it is {}", modes.map(TlsMode::name).join(", "))))
}

fn number(name: &str, text: &str) -> Result<u32, UrlError> {
    // More than the sockets take would be refused by them, later.
    const MAX: u32 = i32::MAX as u32;
    text.parse()
        .ok()
        .filter(|count| *count <= MAX)
        .ok_or_else(|| UrlError(format!("{name}={text}: it is a whole number from 0 to {MAX}")))
}
