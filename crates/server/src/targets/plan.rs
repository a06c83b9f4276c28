//! The part of the configuration that is about targets.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use tickwheel_api::TargetKind;
use tickwheel_push::guard::Place;

/// The part of the configuration that is about targets. Default: webhooks reach public addresses only, and there are no secrets and no brokers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PushPlan {
    /// Places that webhooks may reach in addition to public addresses.
    pub allow: Vec<Place>,
    /// A file with the keys that encrypt the secrets of targets, one in each line: 32 bytes in base64. The first encrypts, all decrypt.
    pub secret_key_file: Option<PathBuf>,
    /// Secrets that targets name.
    pub secrets: BTreeMap<String, SecretText>,
    /// Certificates that targets and connections name.
    pub tls: BTreeMap<String, PushTls>,
    /// Connections to brokers that targets name.
    pub connections: BTreeMap<String, ConnectionPlan>,
}

/// A secret text.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(pub String);

impl fmt::Debug for SecretText {
    /// Shows nothing of the text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(..)")
    }
}

/// Files with certificates.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PushTls {
    /// The authorities to trust, in PEM. Default: those of the web.
    pub ca: Option<PathBuf>,
    /// The certificate chain and the private key of the client, in PEM.
    pub client: Option<(PathBuf, PathBuf)>,
}

/// A named connection to a broker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectionPlan {
    /// The kind of the broker.
    pub kind: TargetKind,
    /// The addresses, each `HOST:PORT`.
    pub addresses: Vec<String>,
    /// The user.
    pub user: Option<String>,
    /// The password.
    pub password: Option<SecretText>,
    /// Whether the connection uses TLS.
    pub tls: bool,
    /// The name of the certificates in [`PushPlan::tls`]. Default: the authorities of the web, and no client certificate.
    pub certificates: Option<String>,
    /// How Kafka is told the user and the password. Default: `PLAIN`.
    pub sasl: Option<Sasl>,
    /// The virtual host of RabbitMQ. Default: `/`.
    pub vhost: Option<String>,
    /// The number of the database of Redis. Default: 0.
    pub database: Option<u32>,
}

impl ConnectionPlan {
    /// Returns a connection without TLS, a user and a password.
    #[must_use]
    pub fn new(kind: TargetKind, addresses: Vec<String>) -> Self {
        Self {
            kind,
            addresses,
            user: None,
            password: None,
            tls: false,
            certificates: None,
            sasl: None,
            vhost: None,
            database: None,
        }
    }
}

/// How Kafka is told the user and the password.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Sasl {
    /// `PLAIN`: the password itself, so that only TLS protects it.
    #[default]
    Plain,
    /// `SCRAM-SHA-256`.
    ScramSha256,
    /// `SCRAM-SHA-512`.
    ScramSha512,
}
