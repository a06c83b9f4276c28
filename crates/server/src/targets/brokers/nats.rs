//! Targets at streams of NATS JetStream.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_api::{BadRequest, TargetBody};
use tickwheel_push::Sink;
use tickwheel_push::broker::{Link, LinkState};
use tickwheel_push::nats::{NatsConnection, NatsLogin, NatsPlan, NatsSink};

use super::broker::{Broker, Opened, form, headers, refused};

/// A connection to NATS.
pub(super) struct NatsBroker(Arc<Link<NatsConnection>>);

impl NatsBroker {
    pub(super) fn open(opened: &Opened<'_>) -> Result<Self, String> {
        let login = match opened.login() {
            None => NatsLogin::None,
            // A password without a user is a token.
            Some((user, token)) if user.is_empty() => NatsLogin::Token(token),
            Some((user, password)) => NatsLogin::User(user, password),
        };
        let connection =
            NatsConnection { tls: opened.tls()?, login, ..NatsConnection::new(opened.endpoints()?) };
        Ok(Self(Arc::new(Link::new(connection))))
    }
}

impl Broker for NatsBroker {
    fn sink(&self, target: &TargetBody, timeout: Duration) -> Result<Arc<dyn Sink>, BadRequest> {
        let (subject, stream) = (target.subject.as_deref(), target.stream.as_deref());
        let plan = NatsPlan::new(
            subject.unwrap_or_default(),
            stream.unwrap_or_default(),
            form(target)?.unwrap_or_default(),
            &headers(target),
            timeout,
        );
        Ok(Arc::new(NatsSink::new(Arc::clone(&self.0), plan.map_err(refused)?)))
    }

    fn state(&self) -> LinkState {
        self.0.state()
    }
}
