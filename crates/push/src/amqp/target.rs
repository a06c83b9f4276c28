//! Connections and targets of RabbitMQ, made from their settings.

use std::sync::Arc;

use tickwheel_api::{BadRequest, ContentForm};

use super::connection::{AmqpConnection, AmqpDial, AmqpLogin};
use super::plan::{AmqpForm, AmqpPlan};
use super::sender::AmqpSink;
use crate::broker::{Connect, Link, Opened, Settings};
use crate::sink::Sink;

/// The user that a new RabbitMQ has, for connections of its own machine.
const GUEST: &str = "guest";
/// The routing key of a target that names none.
const ROUTING_KEY: &str = "{queue}";

impl Connect for AmqpDial {
    fn of(opened: &Opened<'_>) -> Result<Self, String> {
        let has_certificate = opened.tls.as_ref().is_some_and(|tls| tls.client_pem.is_some());
        Ok(Self::new(AmqpConnection {
            endpoints: opened.endpoints()?,
            vhost: opened.plan.member("vhost").unwrap_or("/").to_owned(),
            login: login(opened.login(), has_certificate),
            tls: opened.tls()?,
            name: format!("tickwheel: {}", opened.name),
        }))
    }

    fn sink(link: Arc<Link<Self>>, settings: Settings<'_>) -> Result<Arc<dyn Sink>, BadRequest> {
        let target = settings.target;
        let (form, usual_key) = match target.body {
            None | Some(ContentForm::Payload) => (AmqpForm::Payload, ROUTING_KEY),
            Some(ContentForm::Envelope) => (AmqpForm::Envelope, ROUTING_KEY),
            Some(ContentForm::Unpacked) => (AmqpForm::Unpacked, ""),
            Some(ContentForm::CloudEvents) => {
                let what = "`cloudevents` does not go with the kind `amqp`";
                return Err(BadRequest::member("body", what, "write `payload`, `envelope` or `unpacked`"));
            }
        };
        let exchange = target.exchange.as_deref().unwrap_or_default();
        let routing_key = target.routing_key.as_deref().unwrap_or(usual_key);
        let plan = AmqpPlan::new(exchange, routing_key, form, &settings.headers());
        let mut plan = plan.map_err(Settings::refused)?;
        plan.mandatory = target.mandatory.unwrap_or(plan.mandatory);
        plan.persistent = target.persistent.unwrap_or(plan.persistent);
        plan.timeout = settings.timeout;
        Ok(Arc::new(AmqpSink::new(link, plan)))
    }
}

/// Returns how to log in with the user and the password of the configuration.
fn login(login: Option<(String, String)>, has_certificate: bool) -> AmqpLogin {
    match login {
        Some((user, password)) if !user.is_empty() => AmqpLogin::Password { user, password },
        Some((_, password)) => AmqpLogin::Password { user: GUEST.to_owned(), password },
        None if has_certificate => AmqpLogin::Certificate,
        None => AmqpLogin::Password { user: GUEST.to_owned(), password: GUEST.to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_without_a_user_logs_in_as_guest() {
        let words = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        for (given, has_certificate, user) in [
            (words("shop", "hunter2"), true, Some(("shop", "hunter2"))),
            (words("", "hunter2"), false, Some(("guest", "hunter2"))),
            (None, false, Some(("guest", "guest"))),
            (None, true, None),
        ] {
            match (login(given, has_certificate), user) {
                (AmqpLogin::Password { user, password }, Some(expected)) => {
                    assert_eq!((user.as_str(), password.as_str()), expected);
                }
                (AmqpLogin::Certificate, None) => {}
                _ => panic!("another login instead of {user:?}"),
            }
        }
    }
}
