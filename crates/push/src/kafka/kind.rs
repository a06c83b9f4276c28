//! Kafka in the table of the kinds.

use tickwheel_api::TargetKind;

use crate::broker::{BrokerKind, ConnectionFault, ConnectionPlan, Form, Member, PASSWORD};

/// Kafka. It is experimental until it ran against Apache Kafka itself.
pub(crate) const KIND: BrokerKind = BrokerKind {
    kind: TargetKind::Kafka,
    others: &["redpanda"],
    is_experimental: true,
    members: &[Member {
        name: "sasl",
        others: &["mechanism"],
        form: Form::Word(&["plain", "scram-sha-256", "scram-sha-512"]),
        what: "Kafka alone: how it is told the password: `plain`, `scram-sha-256` or `scram-sha-512`. Default: `plain`",
    }],
    faults,
    open: None,
};

fn faults(plan: &ConnectionPlan) -> Vec<ConnectionFault> {
    let (has_user, has_password) = (plan.user.is_some(), plan.password.is_some());
    let has_name = plan.user.as_deref().is_some_and(|user| !user.is_empty());
    let (member, why) = if has_user && !has_password {
        ("user", format!("Kafka lets in no `user` without a password; write {PASSWORD}, too"))
    } else if has_password && !has_name {
        ("password", "Kafka lets in no password without a user; write `user`, too".to_owned())
    } else if plan.member("sasl").is_some() && !has_user {
        (
            "sasl",
            format!("`sasl` has no effect without a login; write `user`, and {PASSWORD}, or leave it out"),
        )
    } else {
        return Vec::new();
    };
    vec![ConnectionFault::new(member, why)]
}
