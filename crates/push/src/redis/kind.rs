//! Redis in the table of the kinds.

use tickwheel_api::TargetKind;

use crate::broker::{BrokerKind, ConnectionFault, ConnectionPlan, Form, Member, PASSWORD};

/// Redis. Several addresses are those of a server and its replicas.
pub(crate) const KIND: BrokerKind = BrokerKind {
    kind: TargetKind::Redis,
    others: &["valkey"],
    is_experimental: false,
    members: &[Member {
        name: "database",
        others: &["db"],
        form: Form::Number,
        what: "Redis alone: the number of the database, without quotes. Default: 0",
    }],
    faults,
    open: None,
};

/// A password without a user is that of the default user.
fn faults(plan: &ConnectionPlan) -> Vec<ConnectionFault> {
    if plan.user.is_none() || plan.password.is_some() {
        return Vec::new();
    }
    let why = format!(
        "`user` has no effect without a password: Redis takes its default user; write {PASSWORD}, too, or leave it out"
    );
    vec![ConnectionFault::new("user", why)]
}
