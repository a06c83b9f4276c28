//! Connections and targets of Kafka, made from their settings.

use std::sync::Arc;

use tickwheel_api::{BadRequest, TargetOrder};

use super::connection::{KafkaConnection, KafkaLogin};
use super::plan::KafkaPlan;
use super::sender::KafkaSink;
use crate::broker::{Connect, Link, Opened, Settings};
use crate::sink::Sink;

impl Connect for KafkaConnection {
    fn of(opened: &Opened<'_>) -> Result<Self, String> {
        let login = match (opened.login(), opened.plan.member("sasl").unwrap_or("plain")) {
            (None, _) => KafkaLogin::None,
            (Some((user, password)), "plain") => KafkaLogin::Plain(user, password),
            (Some((user, password)), "scram-sha-256") => KafkaLogin::ScramSha256(user, password),
            (Some((user, password)), "scram-sha-512") => KafkaLogin::ScramSha512(user, password),
            (Some(_), other) => return Err(format!("`sasl` cannot be `{other}`; leave it out for `plain`")),
        };
        Ok(Self { tls: opened.tls.clone(), login, ..Self::new(opened.endpoints()?) })
    }

    fn sink(link: Arc<Link<Self>>, settings: Settings<'_>) -> Result<Arc<dyn Sink>, BadRequest> {
        let target = settings.target;
        let usual_key = if target.order == Some(TargetOrder::Group) { "{group}" } else { "{key}" };
        let plan = KafkaPlan::new(
            target.topic.as_deref().unwrap_or_default(),
            Some(target.key.as_deref().unwrap_or(usual_key)),
            settings.form()?.unwrap_or_default(),
            &settings.headers(),
            settings.timeout,
        );
        Ok(Arc::new(KafkaSink::new(link, plan.map_err(Settings::refused)?)))
    }
}
