//! [`Broker`]: a named connection, which makes the sinks of targets.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use tickwheel_api::{BadRequest, ContentForm, TargetBody};
use tickwheel_push::Sink;
use tickwheel_push::broker::{self, Endpoint, LinkState};
use tickwheel_push::webhook::TlsPlan;

use crate::targets::plan::ConnectionPlan;

/// A named connection to a broker.
pub(in crate::targets) trait Broker: Send + Sync {
    /// Makes the sink of a target that names this connection.
    ///
    /// # Errors
    /// A setting of the target is wrong.
    fn sink(&self, target: &TargetBody, timeout: Duration) -> Result<Arc<dyn Sink>, BadRequest>;

    /// Returns the state of the connection.
    fn state(&self) -> LinkState;
}

/// The parts of a connection that were read from the configuration.
pub(in crate::targets) struct Opened<'p> {
    pub(in crate::targets) name: &'p str,
    pub(in crate::targets) plan: &'p ConnectionPlan,
    /// The certificates, if the connection uses TLS.
    pub(in crate::targets) tls: Option<TlsPlan>,
}

impl Opened<'_> {
    /// Returns the addresses as endpoints.
    ///
    /// # Errors
    /// The reason that an address is none, for an operator.
    pub(super) fn endpoints(&self) -> Result<Vec<Endpoint>, String> {
        let endpoints: Result<Vec<Endpoint>, _> =
            self.plan.addresses.iter().map(|text| text.parse()).collect();
        let endpoints = endpoints.map_err(|error| error.to_string())?;
        if endpoints.is_empty() { Err("there is no address".to_owned()) } else { Ok(endpoints) }
    }

    /// Returns the settings of TLS, if the connection uses it.
    ///
    /// # Errors
    /// The reason that the certificates cannot be used, for an operator.
    pub(super) fn tls(&self) -> Result<Option<Arc<ClientConfig>>, String> {
        let config = self.tls.as_ref().map(TlsPlan::config).transpose();
        config.map_err(|error| error.to_string())
    }

    /// Returns the user and the password, if there is one of them.
    pub(super) fn login(&self) -> Option<(String, String)> {
        let ConnectionPlan { user, password, .. } = self.plan;
        let password = password.as_ref().map(|secret| secret.0.clone());
        (user.is_some() || password.is_some())
            .then(|| (user.clone().unwrap_or_default(), password.unwrap_or_default()))
    }
}

/// Returns the form of a body for a broker.
///
/// # Errors
/// The form is for other kinds of targets.
pub(super) fn form(target: &TargetBody) -> Result<Option<broker::ContentForm>, BadRequest> {
    match target.body {
        None => Ok(None),
        Some(ContentForm::Payload) => Ok(Some(broker::ContentForm::Payload)),
        Some(ContentForm::Envelope) => Ok(Some(broker::ContentForm::Envelope)),
        Some(other @ (ContentForm::CloudEvents | ContentForm::Unpacked)) => {
            let what = format!("`{}` does not go with the kind `{}`", other.name(), target.kind.name());
            Err(BadRequest::member("body", what, "write `payload` or `envelope`"))
        }
    }
}

/// Returns the headers of a target's own.
pub(super) fn headers(target: &TargetBody) -> Vec<(String, String)> {
    target.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns the refusal of settings that the sink does not take.
pub(super) fn refused(error: impl Display) -> BadRequest {
    BadRequest::body(error.to_string(), "correct the target, and put it again")
}
