//! [`Outside`]: what targets need from the configuration, opened: keys, named secrets, certificates, and the places that may be reached.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ClientConfig;
use tickwheel_push::broker::{Opened, SecretText};
use tickwheel_push::guard::Guard;
use tickwheel_push::has_kind;
use tickwheel_push::webhook::{Connections, TlsPlan, TlsPlanError};

use super::brokers::Brokers;
use super::log_lines;
use super::plan::{PushPlan, PushTls};
use super::secret_keys::{SecretKeyError, SecretKeys};

/// The opened configuration of targets. By default there are no secrets, and webhooks reach public addresses only.
pub(crate) struct Outside {
    pub(crate) guard: Arc<Guard>,
    pub(super) keys: SecretKeys,
    secrets: BTreeMap<String, SecretText>,
    tls: BTreeMap<String, Certificates>,
    pub(super) brokers: Brokers,
    /// The connections that webhooks may have.
    pub(super) connections: Connections,
}

/// Certificates that were read.
#[derive(Default)]
struct Certificates {
    roots_pem: Option<Vec<u8>>,
    client_pem: Option<(Vec<u8>, Vec<u8>)>,
}

/// Why the configuration of targets cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The file gives no keys for secrets.
    #[error("cannot take the keys for secrets from {}: {source}", place.display())]
    SecretKeys {
        /// The file.
        place: PathBuf,
        /// The mistake in the file.
        source: SecretKeyError,
    },
    /// A file with a certificate cannot be read.
    #[error("[push.tls.{name}]: cannot read {}: {source}", place.display())]
    CertificateFile {
        /// The name in the configuration.
        name: String,
        /// The file.
        place: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A connection cannot be used.
    #[error("[push.connections.{name}]: {why}")]
    Connection {
        /// The name in the configuration.
        name: String,
        /// The mistake.
        why: String,
    },
    /// Certificates cannot be used.
    #[error("[push.tls.{name}]: {source}")]
    Certificates {
        /// The name in the configuration.
        name: String,
        /// The mistake.
        source: TlsPlanError,
    },
}

impl PushPlan {
    /// Returns the files of the plan that cannot be read, and the connections that cannot be used, as a start does. Connects to no broker.
    #[must_use]
    pub fn faults(&self) -> Vec<PushError> {
        Outside::opened(self).1
    }
}

impl Default for Outside {
    fn default() -> Self {
        let (secrets, tls, brokers) = Default::default();
        let (keys, connections) = Default::default();
        Self { guard: Arc::new(Guard::new(Vec::new())), keys, secrets, tls, brokers, connections }
    }
}

impl Outside {
    /// Reads the files that a plan names. The log warns of connections that this program cannot use.
    ///
    /// # Errors
    /// The first [`PushError`].
    pub(crate) fn open(plan: &PushPlan) -> Result<Self, PushError> {
        let (opened, faults) = Self::opened(plan);
        for (name, connection) in plan.connections.iter().filter(|(_, connection)| !has_kind(connection.kind))
        {
            log_lines::unsupported(name, connection.kind);
        }
        faults.into_iter().next().map_or(Ok(opened), Err)
    }

    /// Returns this configuration with another budget for the connections of webhooks.
    pub(crate) fn within(self, connections: Connections) -> Self {
        Self { connections, ..self }
    }

    /// Reads the files that a plan names. Returns what can be used, and all faults.
    fn opened(plan: &PushPlan) -> (Self, Vec<PushError>) {
        let mut faults = Vec::new();
        let keys = plan.secret_key_file.as_ref().map_or_else(
            || Ok(SecretKeys::default()),
            |place| {
                let failed = |source| PushError::SecretKeys { place: place.clone(), source };
                SecretKeys::read(place).map_err(failed)
            },
        );
        let keys = keys.unwrap_or_else(|fault| {
            faults.push(fault);
            SecretKeys::default()
        });
        let mut tls = BTreeMap::new();
        for (name, files) in &plan.tls {
            match Certificates::open(name, files) {
                Ok(certificates) => drop(tls.insert(name.clone(), certificates)),
                Err(found) => faults.extend(found),
            }
        }
        let mut brokers = Brokers::default();
        for (name, connection) in &plan.connections {
            let bad = |why| PushError::Connection { name: name.clone(), why };
            let found = connection.faults();
            let has_faults = !found.is_empty();
            faults.extend(found.into_iter().map(|fault| bad(fault.why)));
            let certificates = match &connection.certificates {
                None => TlsPlan::default(),
                Some(certificates) => match tls.get(certificates) {
                    Some(found) => found.plan(false),
                    // The fault of the certificates is told already.
                    None if plan.tls.contains_key(certificates) => continue,
                    None => {
                        faults.push(bad(format!("there is no [push.tls.{certificates}]")));
                        continue;
                    }
                },
            };
            if has_faults {
                continue;
            }
            let tls = connection.tls.then_some(certificates);
            faults.extend(brokers.add(&Opened { name, plan: connection, tls }).map_err(bad).err());
        }
        let guard = Arc::new(Guard::new(plan.allow.clone()));
        let connections = Connections::default();
        (Self { guard, keys, secrets: plan.secrets.clone(), tls, brokers, connections }, faults)
    }

    /// Returns the text of a named secret.
    pub(super) fn secret(&self, name: &str) -> Option<&str> {
        self.secrets.get(name).map(|SecretText(text)| text.as_str())
    }

    /// Returns the names of all named secrets, for a hint.
    pub(super) fn secret_names(&self) -> String {
        names(self.secrets.keys())
    }

    /// Returns the names of all certificates, for a hint.
    pub(super) fn tls_names(&self) -> String {
        names(self.tls.keys())
    }

    /// Returns the settings of TLS with the roots and the client certificate of these names; `Ok(None)`: there is no such name.
    pub(super) fn tls(
        &self,
        ca: Option<&str>,
        client: Option<&str>,
        only_tls13: bool,
    ) -> Result<Option<Arc<ClientConfig>>, TlsPlanError> {
        let find = |name: Option<&str>| name.map(|name| self.tls.get(name));
        let (roots, client) = match (find(ca), find(client)) {
            (Some(None), _) | (_, Some(None)) => return Ok(None),
            (roots, client) => (roots.flatten(), client.flatten()),
        };
        let plan = TlsPlan {
            roots_pem: roots.and_then(|found| found.roots_pem.clone()),
            client_pem: client.and_then(|found| found.client_pem.clone()),
            only_tls13,
        };
        plan.config().map(Some)
    }
}

impl Certificates {
    /// Reads the files, and checks that they can be used.
    ///
    /// # Errors
    /// All files that cannot be read, or else the mistake in them.
    fn open(name: &str, files: &PushTls) -> Result<Self, Vec<PushError>> {
        let mut faults = Vec::new();
        let mut read = |place: &Path| {
            let failed = |source| PushError::CertificateFile {
                name: name.to_owned(),
                place: place.to_owned(),
                source,
            };
            fs::read(place).map_err(|source| faults.push(failed(source))).ok()
        };
        let roots_pem = files.ca.as_deref().and_then(&mut read);
        let client_pem = files.client.as_ref().and_then(|(chain, key)| {
            let (chain, key) = (read(chain), read(key));
            chain.zip(key)
        });
        if !faults.is_empty() {
            return Err(faults);
        }
        let certificates = Self { roots_pem, client_pem };
        match certificates.plan(false).config() {
            Ok(_) => Ok(certificates),
            Err(source) => Err(vec![PushError::Certificates { name: name.to_owned(), source }]),
        }
    }

    fn plan(&self, only_tls13: bool) -> TlsPlan {
        TlsPlan { roots_pem: self.roots_pem.clone(), client_pem: self.client_pem.clone(), only_tls13 }
    }
}

fn names<'n>(names: impl Iterator<Item = &'n String>) -> String {
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
