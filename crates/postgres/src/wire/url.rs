//! [`DatabaseUrl`]: where the database is, as libpq writes it.
//!
//! ```text
//! postgres://user:password@h1:5432,h2:5433/database?sslmode=verify-full&target_session_attrs=read-write
//! ```
//!
//! Parts that the URL leaves out come from the [`Environment`], then from the file of passwords. Differences from libpq:
//! the default of `sslmode` depends on the host, that of `sslrootcert` is `system`, that of the host is `localhost`,
//! and a setting that is said twice is an error.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::environment::Environment;
use super::passfile::{self, Question};
use super::socket::Keepalives;
use super::tls::{ClientFiles, Roots, TlsMode};

const PORT: u16 = 5432;

/// All parameters of a URL.
const PARAMETERS: [&str; 16] = [
    "host",
    "port",
    "user",
    "password",
    "dbname",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "passfile",
    "connect_timeout",
    "target_session_attrs",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
];

/// Why a URL is not taken. No text shows a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UrlError(String);

/// A host of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) kind: HostKind,
    pub(crate) port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostKind {
    Name(String),
    Address(IpAddr),
    /// The directory of a Unix socket.
    Directory(PathBuf),
}

impl Host {
    /// Whether the bytes stay on this machine.
    pub(crate) fn is_local(&self) -> bool {
        match &self.kind {
            HostKind::Name(name) => name.eq_ignore_ascii_case("localhost"),
            HostKind::Address(address) => address.to_canonical().is_loopback(),
            HostKind::Directory(_) => true,
        }
    }

    /// The path of the Unix socket.
    pub(crate) fn socket(&self) -> Option<PathBuf> {
        match &self.kind {
            HostKind::Directory(directory) => Some(directory.join(format!(".s.PGSQL.{}", self.port))),
            HostKind::Name(_) | HostKind::Address(_) => None,
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.port;
        match &self.kind {
            HostKind::Name(name) => write!(f, "{name}:{port}"),
            HostKind::Address(IpAddr::V4(address)) => write!(f, "{address}:{port}"),
            HostKind::Address(IpAddr::V6(address)) => write!(f, "[{address}]:{port}"),
            HostKind::Directory(directory) => write!(f, "{}:{port}", directory.display()),
        }
    }
}

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
            // Anybody gets a certificate of a public authority.
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
        if let Some(idle) = seconds("keepalives_idle", take("keepalives_idle"))? {
            keepalives.idle = idle;
        }
        if let Some(interval) = seconds("keepalives_interval", take("keepalives_interval"))? {
            keepalives.interval = interval;
        }
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

/// Splits a URL into its settings, by the names of the parameters.
fn split(text: &str) -> Result<BTreeMap<&'static str, String>, UrlError> {
    let rest = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://"));
    let rest = rest.ok_or_else(|| UrlError("the URL does not begin with postgres://".to_owned()))?;
    let (rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (rest, None),
    };
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    // A password with a `/` that is not encoded ends up here, and the name of a database is shown.
    if database.contains(['@', '/']) {
        return Err(UrlError(
            "a `/` or `@` in a user, password or database is written as %2F or %40".to_owned(),
        ));
    }
    let (login, hosts) = match authority.rsplit_once('@') {
        Some((login, hosts)) => (Some(login), hosts),
        None => (None, authority),
    };

    let mut said = BTreeMap::new();
    let mut say = |name: &'static str, value: String| match said.insert(name, value) {
        None => Ok(()),
        Some(_) => Err(UrlError(format!("`{name}` is said twice"))),
    };
    if let Some(login) = login {
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (login, None),
        };
        if !user.is_empty() {
            say("user", decoded(user)?)?;
        }
        if let Some(password) = password {
            say("password", decoded(password)?)?;
        }
    }
    if !hosts.is_empty() {
        let (mut names, mut ports) = (Vec::new(), Vec::new());
        for host in hosts.split(',') {
            let (name, port) = match host.rsplit_once(':') {
                // The colons in brackets belong to the address.
                Some((name, port)) if !port.contains(']') => (name, port),
                _ => (host, ""),
            };
            names.push(decoded(name)?);
            ports.push(decoded(port)?);
        }
        if names.iter().any(|name| !name.is_empty()) {
            say("host", names.join(","))?;
        }
        if ports.iter().any(|port| !port.is_empty()) {
            say("port", ports.join(","))?;
        }
    }
    if !database.is_empty() {
        say("dbname", decoded(database)?)?;
    }
    for pair in query.into_iter().flat_map(|query| query.split('&')).filter(|pair| !pair.is_empty()) {
        // A password with a `?` that is not encoded ends up here, so the text is not repeated if it may be one.
        let shown = |name: &str| match text.rsplit_once('?').is_some_and(|(_, query)| query.contains('@')) {
            true => "***".to_owned(),
            false => name.to_owned(),
        };
        let Some((name, value)) = pair.split_once('=') else {
            return Err(UrlError(format!("the parameter `{}` has no value", shown(pair))));
        };
        let name = decoded(name)?;
        if name == "application_name" {
            return Err(UrlError("`application_name` is set by the program: it names the node".to_owned()));
        }
        let Some(known) = PARAMETERS.into_iter().find(|known| *known == name) else {
            return Err(UrlError(format!(
                "the parameter `{}` is unknown; the known ones are {}",
                shown(&name),
                PARAMETERS.join(", ")
            )));
        };
        say(known, decoded(value)?)?;
    }
    Ok(said)
}

/// Decodes `%41`.
fn decoded(text: &str) -> Result<String, UrlError> {
    let wrong =
        || UrlError("a `%` in the URL is not followed by two hexadecimal digits of a character".to_owned());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, after) = rest.split_first_chunk::<2>().ok_or_else(wrong)?;
        let digit = |digit: u8| char::from(digit).to_digit(16).ok_or_else(wrong);
        let value = digit(digits[0])? << 4 | digit(digits[1])?;
        bytes.push(u8::try_from(value).map_err(|_| wrong())?);
        rest = after;
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong())?;
    match text.contains('\0') {
        true => Err(UrlError("the URL has a NUL in it".to_owned())),
        false => Ok(text),
    }
}

/// Encodes what is neither a letter, a digit nor one of `-._~`.
fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let one = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

/// Reads the lists of hosts and ports. One port counts for all hosts.
fn hosts(names: &str, ports: Option<&str>) -> Result<Vec<Host>, UrlError> {
    let names: Vec<&str> = names.split(',').collect();
    let ports: Vec<&str> = ports.map(|ports| ports.split(',').collect()).unwrap_or_default();
    if ports.len() > 1 && ports.len() != names.len() {
        return Err(UrlError(format!("there are {} hosts and {} ports", names.len(), ports.len())));
    }
    names
        .iter()
        .enumerate()
        .map(|(nth, name)| {
            let port = match ports.get(nth).or(ports.first().filter(|_| ports.len() == 1)) {
                None | Some(&"") => PORT,
                // The text may be a part of a password with a character that is not encoded.
                Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or_else(|| {
                    UrlError(
                        "a port is no number from 1 to 65535 (a `/`, `?`, `@`, `:` or `%` in a user or password is \
                         written as %2F, %3F, %40, %3A, %25)"
                            .to_owned(),
                    )
                })?,
            };
            Ok(Host { kind: host(name)?, port })
        })
        .collect()
}

fn host(name: &str) -> Result<HostKind, UrlError> {
    if name.starts_with('/') {
        return Ok(HostKind::Directory(Path::new(name).to_path_buf()));
    }
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    if let Ok(address) = bare.unwrap_or(name).parse() {
        return Ok(HostKind::Address(address));
    }
    let is_name = |character: char| character.is_ascii_alphanumeric() || "-._".contains(character);
    if name.is_empty() {
        return Ok(HostKind::Name("localhost".to_owned()));
    }
    match bare.is_none() && name.chars().all(is_name) {
        true => Ok(HostKind::Name(name.to_owned())),
        false => Err(UrlError("a host is no name, no address and no directory".to_owned())),
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn parse(text: &str) -> Result<DatabaseUrl, UrlError> {
        DatabaseUrl::parse(text, &Environment::default())
    }

    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    fn shown(url: &DatabaseUrl) -> Vec<String> {
        url.hosts().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_url_has_all_its_parts() {
        let url =
            parse("postgres://me:s%40%3A%2fcret@h1:5432,h2:5433,[::1],10.0.0.1:1/work%20db?sslmode=require")
                .unwrap();
        assert_eq!(shown(&url), ["h1:5432", "h2:5433", "[::1]:5432", "10.0.0.1:1"]);
        assert_eq!((url.user(), url.database()), ("me", "work db"));
        assert_eq!(url.password(&url.hosts()[0]).unwrap().as_deref(), Some("s@:/cret"));
        assert_eq!(url.tls_mode(&url.hosts()[0]), TlsMode::Require);
        assert_eq!(url.attrs(), SessionAttrs::ReadWrite);

        let url = parse("postgresql://me@/?target_session_attrs=any").unwrap();
        assert_eq!(shown(&url), ["localhost:5432"]);
        assert_eq!((url.user(), url.database()), ("me", "me"));
        assert_eq!(url.password(&url.hosts()[0]).unwrap(), None);
        assert_eq!(url.attrs(), SessionAttrs::Any);
    }

    #[test]
    fn another_database_takes_the_place_of_the_one_in_the_url() {
        for (text, expected) in [
            ("postgres://me@h/shop", "postgres://me@h/my%20db"),
            ("postgres://me:a%40b@h1:1,h2", "postgres://me:a%40b@h1:1,h2/my%20db"),
            ("postgresql:///?host=/run&dbname=shop&user=me", "postgresql:///my%20db?host=/run&user=me"),
            ("postgres://me@h/shop?%64bname=shop", ""),
            ("postgres://me@h?dbname=shop&sslmode=disable", "postgres://me@h/my%20db?sslmode=disable"),
            ("postgres://me@h?db%6eame=shop", "postgres://me@h/my%20db"),
        ] {
            let changed = DatabaseUrl::with_database(text, "my db");
            if expected.is_empty() {
                assert!(changed.unwrap_err().to_string().contains("`dbname` is said twice"));
                continue;
            }
            let changed = changed.unwrap();
            assert_eq!(changed, expected);
            let url = DatabaseUrl::parse(
                &changed,
                &Environment { database: Some("other".to_owned()), ..Environment::default() },
            );
            assert_eq!((url.unwrap().database(), text.contains("me")), ("my db", true));
        }
        assert!(DatabaseUrl::with_database("mysql://h/shop", "other").is_err());
    }

    #[test]
    fn a_message_has_no_password_of_a_url() {
        for (text, expected) in [
            ("postgres://me@h/shop?sslmode=disable", "postgres://me@h/shop?sslmode=disable"),
            ("postgres://me:canary@h/shop", "postgres://me:***@h/shop"),
            ("postgres://me:can@ary/x?y@h/shop", "postgres://***"),
            ("postgres://h/shop?user=me&password=can@ary", "postgres://***"),
            ("postgres://h:5432/shop?password=can@ary", "postgres://***"),
            ("postgres://h/shop?user=me&password=canary", "postgres://h/shop?user=me&password=***"),
            ("postgres://h/shop?p%61ssword=canary", "postgres://h/shop?p%61ssword=***"),
            ("me:canary", "***"),
        ] {
            assert_eq!(DatabaseUrl::without_password(text), expected);
        }
    }

    #[test]
    fn a_host_may_be_the_directory_of_a_socket() {
        for text in [
            "postgres://me@%2Fvar%2Frun%2Fpostgresql:5433/work",
            "postgres://me@/work?host=/var/run/postgresql&port=5433",
            "postgres:///work?user=me&host=%2fvar%2frun%2fpostgresql&port=5433",
        ] {
            let url = parse(text).unwrap();
            let host = &url.hosts()[0];
            assert_eq!(host.socket().unwrap(), Path::new("/var/run/postgresql/.s.PGSQL.5433"), "{text}");
            assert!(host.is_local());
        }
    }

    #[test]
    fn parameters_may_stand_for_parts_of_the_url() {
        let url = parse("postgres://?host=h1,h2&port=7&user=me&password=secret&dbname=work").unwrap();
        assert_eq!(shown(&url), ["h1:7", "h2:7"]);
        assert_eq!(url.password(&url.hosts()[1]).unwrap().as_deref(), Some("secret"));
        let url = parse(
            "postgres://me@h?connect_timeout=3&keepalives_idle=7&keepalives_interval=8&keepalives_count=9\
             &tcp_user_timeout=1500&sslcert=/c&sslkey=/k&sslrootcert=/r",
        )
        .unwrap();
        assert_eq!(url.connect_timeout(), Some(Duration::from_secs(3)));
        let keepalives = Keepalives {
            idle: Duration::from_secs(7),
            interval: Duration::from_secs(8),
            count: 9,
            user_timeout: Some(Duration::from_millis(1500)),
        };
        assert_eq!(*url.keepalives(), keepalives);
        assert_eq!(url.roots(), Some(&Roots::File("/r".into())));
        assert_eq!(url.client_files(), Some(&ClientFiles { certificate: "/c".into(), key: "/k".into() }));
        assert_eq!(
            parse("postgres://me@h?connect_timeout=0&tcp_user_timeout=0").unwrap().connect_timeout(),
            None
        );
        assert_eq!(parse("postgres://me@h?sslrootcert=system").unwrap().roots(), Some(&Roots::System));
    }

    #[test]
    fn tls_is_the_default_away_from_this_machine() {
        let hosts = "localhost,127.0.0.1,[::1],%2Frun,db1,10.0.0.1";
        let url = parse(&format!("postgres://me@{hosts}")).unwrap();
        let modes: Vec<_> = url.hosts().iter().map(|host| url.tls_mode(host)).collect();
        use TlsMode::{Disable, VerifyFull};
        assert_eq!(modes, [Disable, Disable, Disable, Disable, VerifyFull, VerifyFull]);
        // The given mode counts, but a Unix socket has no TLS.
        let url = parse("postgres://me@localhost,%2Frun,db1?sslmode=verify-ca&sslrootcert=/r").unwrap();
        let modes: Vec<_> = url.hosts().iter().map(|host| url.tls_mode(host)).collect();
        assert_eq!(modes, [TlsMode::VerifyCa, Disable, TlsMode::VerifyCa]);
    }

    #[test]
    fn an_error_says_what_to_change() {
        let unknown = error("postgres://me@h?sslmod=disable");
        assert!(
            unknown.contains("`sslmod` is unknown") && unknown.contains("sslmode, sslrootcert"),
            "{unknown}"
        );
        assert!(error("postgres://me@h?application_name=x").contains("set by the program"));
        assert!(error("mysql://me@h").contains("postgres://"));
        assert!(error("postgres://h").contains("PGUSER"));
        assert!(
            error("postgres://me@h?sslmode=allow")
                .contains("disable, prefer, require, verify-ca, verify-full")
        );
        assert!(error("postgres://me@h?user=you").contains("`user` is said twice"));
        assert!(error("postgres://me@h?sslkey=/k").contains("go together"));
        assert!(error("postgres://me@h1,h2,h3?port=1,2").contains("3 hosts and 2 ports"));
        assert!(error("postgres://me@h?sslmode=require&sslrootcert=system").contains("too weak"));
        assert!(error("postgres://me@h?target_session_attrs=standby").contains("`any` or `read-write`"));
        assert!(error("postgres://me@h?connect_timeout=soon").contains("connect_timeout=soon"));
        assert!(error("postgres://me@h?keepalives_count=0").contains("at least 1"));
        assert!(error("postgres://me@h?keepalives_idle").contains("no value"));
        for text in ["postgres://me@h:0", "postgres://me@h:70000", "postgres://me@h:x"] {
            assert!(error(text).contains("from 1 to 65535"), "{text}");
        }
        for text in ["postgres://m%e@h", "postgres://m%zz@h", "postgres://m%ff@h", "postgres://m%2"] {
            assert!(error(text).contains('%'), "{text}");
        }
        assert!(error("postgres://m%00@h").contains("NUL"));
        for text in ["postgres://me@[h]", "postgres://me@a b", "postgres://me@::1"] {
            parse(text).unwrap_err();
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let url = parse("postgres://me:secret@db1:7/work?sslmode=disable").unwrap();
        assert_eq!(url.to_string(), "postgres://me:***@db1:7/work?sslmode=disable");
        assert!(!format!("{url:?}").contains("secret"), "{url:?}");
        // Characters that should be encoded put a part of the password elsewhere.
        for text in [
            "postgres://me:secret/secret@h/d",
            "postgres://me:1/secret@h/d",
            "postgres://me:a?secret@h/d",
            "postgres://me:a?secret=1@h/d",
            "postgres://me:a#secret@h:secret/d",
            "postgres://me:%secret@h/d",
        ] {
            let environment = Environment { user: Some("me".into()), ..Environment::default() };
            let parsed = DatabaseUrl::parse(text, &environment);
            let shown = parsed.map(|url| format!("{url} {url:?}")).unwrap_or_else(|error| error.to_string());
            assert!(!shown.contains("secret"), "{text}: {shown}");
        }
    }

    #[test]
    fn the_environment_fills_the_gaps() {
        let environment = Environment {
            user: Some("me".into()),
            password: Some("secret".into()),
            database: Some("work".into()),
            host: Some("db1,db2".into()),
            port: Some("6000".into()),
            sslmode: Some("verify-ca".into()),
            sslrootcert: Some("/r".into()),
            ..Environment::default()
        };
        let url = DatabaseUrl::parse("postgres://", &environment).unwrap();
        assert_eq!(shown(&url), ["db1:6000", "db2:6000"]);
        assert_eq!((url.user(), url.database()), ("me", "work"));
        assert_eq!(url.password(&url.hosts()[0]).unwrap().as_deref(), Some("secret"));
        assert_eq!(url.tls_mode(&url.hosts()[0]), TlsMode::VerifyCa);
        assert_eq!(url.roots(), Some(&Roots::File("/r".into())));
        let url = DatabaseUrl::parse("postgres://you:x@h:1/d?sslmode=disable", &environment).unwrap();
        assert_eq!(url.to_string(), "postgres://you:***@h:1/d?sslmode=disable");
    }

    #[test]
    fn the_password_of_a_file_is_read_each_time() {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment { home: Some(home.path().into()), ..Environment::default() };
        let url = DatabaseUrl::parse("postgres://me@db1", &environment).unwrap();
        assert_eq!(url.password(&url.hosts()[0]).unwrap(), None);
        let path = home.path().join(".pgpass");
        fs::write(&path, "db1:5432:me:me:first\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(url.password(&url.hosts()[0]).unwrap().as_deref(), Some("first"));
        fs::write(&path, "db1:5432:me:me:second\n").unwrap();
        assert_eq!(url.password(&url.hosts()[0]).unwrap().as_deref(), Some("second"));

        fs::set_permissions(&path, fs::Permissions::from_mode(0o604)).unwrap();
        assert!(url.password(&url.hosts()[0]).unwrap_err().contains("chmod 600"));
        let why = DatabaseUrl::parse("postgres://me@db1", &environment).unwrap_err().to_string();
        assert!(why.contains("others may read it"), "{why}");
        // A password that is said needs no file.
        DatabaseUrl::parse("postgres://me:x@db1", &environment).unwrap();

        let absent = format!("postgres://me@db1?passfile={}", home.path().join("none").display());
        assert!(error(&absent).contains("there is no file of passwords"));
        let said = Environment { passfile: Some(home.path().join("none")), ..Environment::default() };
        DatabaseUrl::parse("postgres://me@db1", &said).unwrap_err();
    }
}
