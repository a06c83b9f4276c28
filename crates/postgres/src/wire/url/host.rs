//! [`Host`]: a host in the list of a URL.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::text::UrlError;

const PORT: u16 = 5432;

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

/// Reads the lists of hosts and ports. One port counts for all hosts.
pub(super) fn hosts(names: &str, ports: Option<&str>) -> Result<Vec<Host>, UrlError> {
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
