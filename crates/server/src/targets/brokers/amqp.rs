//! Targets at exchanges of RabbitMQ.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_api::{BadRequest, ContentForm, TargetBody};
use tickwheel_push::Sink;
use tickwheel_push::amqp::{AmqpConnection, AmqpDial, AmqpForm, AmqpLogin, AmqpPlan, AmqpSink};
use tickwheel_push::broker::{Link, LinkState};

use super::broker::{Broker, Opened, headers, refused};

/// The user that a new RabbitMQ has, for connections of its own machine.
const GUEST: &str = "guest";
/// The routing key of a target that names none.
const ROUTING_KEY: &str = "{queue}";

/// A connection to RabbitMQ.
pub(super) struct AmqpBroker(Arc<Link<AmqpDial>>);

impl AmqpBroker {
    pub(super) fn open(opened: &Opened<'_>) -> Result<Self, String> {
        let has_certificate = opened.tls.as_ref().is_some_and(|tls| tls.client_pem.is_some());
        let login = login(opened.login(), has_certificate);
        let connection = AmqpConnection {
            endpoints: opened.endpoints()?,
            vhost: opened.plan.vhost.clone().unwrap_or_else(|| "/".to_owned()),
            login,
            tls: opened.tls()?,
            name: format!("tickwheel: {}", opened.name),
        };
        Ok(Self(Arc::new(Link::new(AmqpDial::new(connection)))))
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

impl Broker for AmqpBroker {
    fn sink(&self, target: &TargetBody, timeout: Duration) -> Result<Arc<dyn Sink>, BadRequest> {
        let (form, usual_key) = match target.body {
            None | Some(ContentForm::Payload) => (AmqpForm::Payload, ROUTING_KEY),
            Some(ContentForm::Envelope) => (AmqpForm::Envelope, ROUTING_KEY),
            Some(ContentForm::Unpacked) => (AmqpForm::Unpacked, ""),
            Some(ContentForm::CloudEvents) => {
                let hint = "write `payload`, `envelope` or `unpacked`";
                return Err(BadRequest::member(
                    "body",
                    "`cloudevents` does not go with the kind `amqp`",
                    hint,
                ));
            }
        };
        let exchange = target.exchange.as_deref().unwrap_or_default();
        let routing_key = target.routing_key.as_deref().unwrap_or(usual_key);
        let mut plan = AmqpPlan::new(exchange, routing_key, form, &headers(target)).map_err(refused)?;
        plan.mandatory = target.mandatory.unwrap_or(plan.mandatory);
        plan.persistent = target.persistent.unwrap_or(plan.persistent);
        plan.timeout = timeout;
        Ok(Arc::new(AmqpSink::new(Arc::clone(&self.0), plan)))
    }

    fn state(&self) -> LinkState {
        self.0.state()
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
                (login, _) => panic!("{login:?} instead of {user:?}"),
            }
        }
    }
}
