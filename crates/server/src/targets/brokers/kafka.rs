//! Targets at topics of Kafka.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_api::{BadRequest, TargetBody, TargetOrder};
use tickwheel_push::Sink;
use tickwheel_push::broker::{Link, LinkState};
use tickwheel_push::kafka::{KafkaConnection, KafkaLogin, KafkaPlan, KafkaSink};

use super::broker::{Broker, Opened, form, headers, refused};
use crate::targets::plan::Sasl;

/// A connection to Kafka.
pub(super) struct KafkaBroker(Arc<Link<KafkaConnection>>);

impl KafkaBroker {
    pub(super) fn open(opened: &Opened<'_>) -> Result<Self, String> {
        let login = match (opened.login(), opened.plan.sasl.unwrap_or_default()) {
            (None, _) => KafkaLogin::None,
            (Some((user, password)), Sasl::Plain) => KafkaLogin::Plain(user, password),
            (Some((user, password)), Sasl::ScramSha256) => KafkaLogin::ScramSha256(user, password),
            (Some((user, password)), Sasl::ScramSha512) => KafkaLogin::ScramSha512(user, password),
        };
        let tls = opened.tls.clone();
        let connection = KafkaConnection { tls, login, ..KafkaConnection::new(opened.endpoints()?) };
        Ok(Self(Arc::new(Link::new(connection))))
    }
}

impl Broker for KafkaBroker {
    fn sink(&self, target: &TargetBody, timeout: Duration) -> Result<Arc<dyn Sink>, BadRequest> {
        let usual_key = if target.order == Some(TargetOrder::Group) { "{group}" } else { "{key}" };
        let plan = KafkaPlan::new(
            target.topic.as_deref().unwrap_or_default(),
            Some(target.key.as_deref().unwrap_or(usual_key)),
            form(target)?.unwrap_or_default(),
            &headers(target),
            timeout,
        );
        Ok(Arc::new(KafkaSink::new(Arc::clone(&self.0), plan.map_err(refused)?)))
    }

    fn state(&self) -> LinkState {
        self.0.state()
    }
}
