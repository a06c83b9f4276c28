//! The part of the configuration that is about targets.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tickwheel_push::broker::{ConnectionPlan, SecretText};
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

/// Files with certificates.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PushTls {
    /// The authorities to trust, in PEM. Default: those of the web.
    pub ca: Option<PathBuf>,
    /// The certificate chain and the private key of the client, in PEM.
    pub client: Option<(PathBuf, PathBuf)>,
}
