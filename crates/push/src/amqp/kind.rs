//! RabbitMQ in the table of the kinds.

use tickwheel_api::TargetKind;

use crate::broker::{BrokerKind, ConnectionFault, ConnectionPlan, Form, Member, PASSWORD};

/// RabbitMQ.
pub(crate) const KIND: BrokerKind = BrokerKind {
    kind: TargetKind::Amqp,
    others: &["rabbitmq", "rabbit"],
    is_experimental: false,
    members: &[Member {
        name: "vhost",
        others: &["virtual_host"],
        form: Form::Text,
        what: "RabbitMQ alone: the virtual host. Default: `/`",
    }],
    faults,
    open: None,
};

/// A password without a user is that of `guest`.
fn faults(plan: &ConnectionPlan) -> Vec<ConnectionFault> {
    if plan.user.is_none() || plan.password.is_some() {
        return Vec::new();
    }
    let or_else = "leave `user` out: then the client certificate logs in, or else `guest`";
    let why = format!("RabbitMQ lets in no `user` without a password; write {PASSWORD}, too, or {or_else}");
    vec![ConnectionFault::new("user", why)]
}
