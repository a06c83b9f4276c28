//! Beanstalkd in the table of the kinds.

use tickwheel_api::TargetKind;

use crate::broker::{BrokerKind, ConnectionFault, ConnectionPlan};

/// Beanstalkd.
pub(crate) const KIND: BrokerKind = BrokerKind {
    kind: TargetKind::Beanstalk,
    others: &["tube"],
    is_experimental: false,
    members: &[],
    faults,
    open: None,
};

fn faults(plan: &ConnectionPlan) -> Vec<ConnectionFault> {
    let mut faults = Vec::new();
    for (member, is_there) in [("user", plan.user.is_some()), ("password", plan.password.is_some())] {
        if is_there {
            let why = format!("beanstalkd has no users and no passwords; leave the {member} out");
            faults.push(ConnectionFault::new(member, why));
        }
    }
    if plan.addresses.len() > 1 {
        let why =
            "each beanstalkd has jobs of its own; write one address, and a connection for each of the others";
        faults.push(ConnectionFault::new("addresses", why));
    }
    faults
}
