//! [`ConnectionPlan`]: a named connection to a broker, as the configuration has it.

use std::collections::BTreeMap;
use std::fmt;

use tickwheel_api::TargetKind;

/// A secret text.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(pub String);

impl fmt::Debug for SecretText {
    /// Shows nothing of the text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(..)")
    }
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
    /// The name of the certificates in the configuration. Default: the authorities of the web, and no client certificate.
    pub certificates: Option<String>,
    /// The members that not every kind has, by their names: `vhost`. A number stands in decimal digits. The kind lists them in its table.
    pub members: BTreeMap<String, String>,
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
            members: BTreeMap::new(),
        }
    }

    /// Returns a member that not every kind has.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&str> {
        self.members.get(name).map(String::as_str)
    }
}

/// A mistake in a connection that shows without its broker.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ConnectionFault {
    /// The member of [`ConnectionPlan`] with the mistake.
    pub member: &'static str,
    /// The mistake, and what to write instead.
    pub why: String,
}

impl ConnectionFault {
    /// Returns a mistake in this member.
    pub(crate) fn new(member: &'static str, why: impl Into<String>) -> Self {
        Self { member, why: why.into() }
    }
}
