//! NATS in the table of the kinds.

use tickwheel_api::TargetKind;

use crate::broker::BrokerKind;

/// NATS JetStream. A password without a user is a token, and there are users without a password.
pub(crate) const KIND: BrokerKind = BrokerKind {
    kind: TargetKind::Nats,
    others: &["jetstream"],
    is_experimental: false,
    members: &[],
    faults: |_| Vec::new(),
    open: None,
};
