//! Connections and targets of NATS, made from their settings.

use std::sync::Arc;

use tickwheel_api::BadRequest;

use super::connection::{NatsConnection, NatsLogin};
use super::plan::NatsPlan;
use super::sender::NatsSink;
use crate::broker::{Connect, Link, Opened, Settings};
use crate::sink::Sink;

impl Connect for NatsConnection {
    fn of(opened: &Opened<'_>) -> Result<Self, String> {
        let login = match opened.login() {
            None => NatsLogin::None,
            // A password without a user is a token.
            Some((user, token)) if user.is_empty() => NatsLogin::Token(token),
            Some((user, password)) => NatsLogin::User(user, password),
        };
        Ok(Self { tls: opened.tls()?, login, ..Self::new(opened.endpoints()?) })
    }

    fn sink(link: Arc<Link<Self>>, settings: Settings<'_>) -> Result<Arc<dyn Sink>, BadRequest> {
        let (subject, stream) = (settings.target.subject.as_deref(), settings.target.stream.as_deref());
        let plan = NatsPlan::new(
            subject.unwrap_or_default(),
            stream.unwrap_or_default(),
            settings.form()?.unwrap_or_default(),
            &settings.headers(),
            settings.timeout,
        );
        Ok(Arc::new(NatsSink::new(link, plan.map_err(Settings::refused)?)))
    }
}
