//! [`BrokerKind`]: what a kind of broker says about itself.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use tickwheel_api::{BadRequest, ContentForm, TargetBody, TargetKind};
use tokio_rustls::rustls::ClientConfig;

use super::endpoint::Endpoint;
use super::link::{Dial, Link, LinkState};
use super::plan::{ConnectionFault, ConnectionPlan};
use crate::sink::Sink;
use crate::webhook::TlsPlan;

/// How a password is written in the configuration.
pub(crate) const PASSWORD: &str = "`password_file` or `password_env`";

/// A kind of broker. It stands in `kind.rs` of the folder of the kind, also in a program that was built without the client of the broker: such
/// a program checks the configuration as others do.
#[derive(Debug)]
pub struct BrokerKind {
    /// The kind of the targets.
    pub kind: TargetKind,
    /// Words of other programs for this kind.
    pub others: &'static [&'static str],
    /// Whether it was not tried against the broker of this name yet.
    pub is_experimental: bool,
    /// The members of a connection that not every kind has.
    pub members: &'static [Member],
    /// Returns the mistakes in a login, and in what else not every kind takes.
    pub faults: fn(&ConnectionPlan) -> Vec<ConnectionFault>,
    /// Makes a connection; the table sets it. `None`: the program was built without this kind.
    pub open: Option<Open>,
}

/// Makes a connection to a broker, and opens nothing yet. The error is the reason for an operator.
pub type Open = fn(&Opened<'_>) -> Result<Arc<dyn Broker>, String>;

/// A member of a connection that not every kind has.
#[derive(Debug)]
pub struct Member {
    /// The name.
    pub name: &'static str,
    /// Words of other programs for it.
    pub others: &'static [&'static str],
    /// The values that it takes.
    pub form: Form,
    /// The meaning and the default, for the page of the configuration.
    pub what: &'static str,
}

/// The values that a member of the configuration takes.
#[derive(Copy, Clone, Debug)]
pub enum Form {
    /// A text.
    Text,
    /// A list of texts.
    Texts,
    /// `true` or `false`.
    Flag,
    /// A number from 0 to `u32::MAX`.
    Number,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// A named connection to a broker.
pub trait Broker: Send + Sync {
    /// Makes the sink of a target that names this connection.
    ///
    /// # Errors
    /// A setting of the target is wrong.
    fn sink(&self, settings: Settings<'_>) -> Result<Arc<dyn Sink>, BadRequest>;

    /// Returns the state of the connection.
    fn state(&self) -> LinkState;
}

/// The way from a configuration to connections and sinks of a kind.
pub trait Connect: Dial + Sized {
    /// Reads the settings of a connection.
    ///
    /// # Errors
    /// The reason that the connection cannot be used, for an operator.
    fn of(opened: &Opened<'_>) -> Result<Self, String>;

    /// Makes the sink of a target.
    ///
    /// # Errors
    /// A setting of the target is wrong.
    fn sink(link: Arc<Link<Self>>, settings: Settings<'_>) -> Result<Arc<dyn Sink>, BadRequest>;
}

/// Makes a connection of the kind `D`. Opens nothing yet.
///
/// # Errors
/// The reason that the connection cannot be used, for an operator.
pub fn open<D: Connect>(opened: &Opened<'_>) -> Result<Arc<dyn Broker>, String> {
    Ok(Arc::new(Arc::new(Link::new(D::of(opened)?))))
}

impl<D: Connect> Broker for Arc<Link<D>> {
    fn sink(&self, settings: Settings<'_>) -> Result<Arc<dyn Sink>, BadRequest> {
        D::sink(Arc::clone(self), settings)
    }

    fn state(&self) -> LinkState {
        Link::state(self)
    }
}

/// The parts of a connection that were read from the configuration.
#[derive(Clone, Debug)]
pub struct Opened<'p> {
    /// The name of the connection.
    pub name: &'p str,
    /// The connection as the configuration has it.
    pub plan: &'p ConnectionPlan,
    /// The certificates, if the connection uses TLS.
    pub tls: Option<TlsPlan>,
}

impl Opened<'_> {
    /// Returns the addresses as endpoints, at least one.
    ///
    /// # Errors
    /// The reason that an address is none, for an operator.
    pub fn endpoints(&self) -> Result<Vec<Endpoint>, String> {
        let endpoints: Result<Vec<Endpoint>, _> =
            self.plan.addresses.iter().map(|text| text.parse()).collect();
        let endpoints = endpoints.map_err(|error| error.to_string())?;
        if endpoints.is_empty() { Err("there is no address".to_owned()) } else { Ok(endpoints) }
    }

    /// Returns the settings of TLS, if the connection uses it.
    ///
    /// # Errors
    /// The reason that the certificates cannot be used, for an operator.
    pub fn tls(&self) -> Result<Option<Arc<ClientConfig>>, String> {
        let config = self.tls.as_ref().map(TlsPlan::config).transpose();
        config.map_err(|error| error.to_string())
    }

    /// Returns the user and the password, if there is one of them.
    #[must_use]
    pub fn login(&self) -> Option<(String, String)> {
        let ConnectionPlan { user, password, .. } = self.plan;
        let password = password.as_ref().map(|secret| secret.0.clone());
        (user.is_some() || password.is_some())
            .then(|| (user.clone().unwrap_or_default(), password.unwrap_or_default()))
    }
}

/// The settings of a target.
#[derive(Copy, Clone, Debug)]
pub struct Settings<'t> {
    /// The target as a caller wrote it.
    pub target: &'t TargetBody,
    /// The time for one attempt.
    pub timeout: Duration,
}

impl Settings<'_> {
    /// Returns the form of the body.
    ///
    /// # Errors
    /// The form is for other kinds of targets.
    pub fn form(&self) -> Result<Option<super::ContentForm>, BadRequest> {
        match self.target.body {
            None => Ok(None),
            Some(ContentForm::Payload) => Ok(Some(super::ContentForm::Payload)),
            Some(ContentForm::Envelope) => Ok(Some(super::ContentForm::Envelope)),
            Some(other @ (ContentForm::CloudEvents | ContentForm::Unpacked)) => {
                let what =
                    format!("`{}` does not go with the kind `{}`", other.name(), self.target.kind.name());
                Err(BadRequest::member("body", what, "write `payload` or `envelope`"))
            }
        }
    }

    /// Returns the target's own headers.
    #[must_use]
    pub fn headers(&self) -> Vec<(String, String)> {
        self.target.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Returns the refusal of settings that the sink does not take.
    #[must_use]
    pub fn refused(error: impl Display) -> BadRequest {
        BadRequest::body(error.to_string(), "correct the target, and put it again")
    }
}
