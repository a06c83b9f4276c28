//! The table of the kinds of brokers.

use tickwheel_api::TargetKind;

use crate::broker::{BrokerKind, ConnectionFault, ConnectionPlan};

#[path = "amqp/kind.rs"]
mod amqp;
#[path = "beanstalk/kind.rs"]
mod beanstalk;
#[path = "kafka/kind.rs"]
mod kafka;
#[path = "nats/kind.rs"]
mod nats;
#[path = "redis/kind.rs"]
mod redis;

/// Makes the table. Each line has the name of a kind, which is also the name of its folder and of its feature, and the type of its connections.
macro_rules! kinds {
    ($($module:ident $feature:literal $Connection:ident;)*) => {
        /// All kinds of brokers, in the order of the documents.
        pub const KINDS: &[&BrokerKind] = &[$(&BrokerKind {
            #[cfg(feature = $feature)]
            open: Some(crate::broker::open::<crate::$module::$Connection>),
            ..$module::KIND
        }),*];
        /// The names of [`KINDS`].
        pub const KIND_NAMES: &[&str] = &[$($feature),*];
    };
}

kinds! {
    kafka "kafka" KafkaConnection;
    amqp "amqp" AmqpDial;
    nats "nats" NatsConnection;
    redis "redis" RedisConnection;
    beanstalk "beanstalk" BeanstalkConnection;
}

impl BrokerKind {
    /// Returns the kind of broker of these targets; `None`: they are webhooks.
    #[must_use]
    pub fn of(kind: TargetKind) -> Option<&'static Self> {
        KINDS.iter().copied().find(|known| known.kind == kind)
    }
}

/// Whether this program has targets of a kind. Each kind of broker is a feature with which the program was built or not.
#[must_use]
pub fn has_kind(kind: TargetKind) -> bool {
    BrokerKind::of(kind).is_none_or(|kind| kind.open.is_some())
}

impl ConnectionPlan {
    /// Returns the members that brokers of this kind do not have, and what the kind itself finds: a user without a password, and a password without
    /// a user, where the broker needs both or has neither.
    #[must_use]
    pub fn faults(&self) -> Vec<ConnectionFault> {
        let mut faults = Vec::new();
        for known in KINDS.iter().filter(|known| known.kind != self.kind) {
            for member in known.members.iter().filter(|member| self.members.contains_key(member.name)) {
                let (name, of, kind) = (member.name, known.kind.name(), self.kind.name());
                let why = format!(
                    "`{name}` is for the kind `{of}`, and this connection has the kind `{kind}`; leave it out"
                );
                faults.push(ConnectionFault::new(name, why));
            }
        }
        faults.extend(BrokerKind::of(self.kind).into_iter().flat_map(|kind| (kind.faults)(self)));
        faults
    }
}

#[cfg(test)]
mod tests {
    use TargetKind::{Amqp, Beanstalk, Kafka, Nats, Redis};

    use super::*;
    use crate::broker::SecretText;

    /// Returns the members with a mistake in a connection of this kind that `change` has changed.
    fn members(kind: TargetKind, change: impl FnOnce(&mut ConnectionPlan)) -> Vec<&'static str> {
        let mut plan = ConnectionPlan::new(kind, vec!["a:1".to_owned()]);
        change(&mut plan);
        plan.faults().iter().map(|fault| fault.member).collect()
    }

    fn log_in(plan: &mut ConnectionPlan) {
        plan.user = Some("shop".to_owned());
        plan.password = Some(SecretText("hunter2".to_owned()));
    }

    #[test]
    fn the_table_has_each_kind_of_the_api_but_webhooks_by_its_name() {
        let of_api = TargetKind::ALL.into_iter().filter(|kind| *kind != TargetKind::Webhook);
        assert_eq!(KINDS.iter().map(|kind| kind.kind).collect::<Vec<_>>(), of_api.collect::<Vec<_>>());
        for (kind, name) in KINDS.iter().zip(KIND_NAMES) {
            assert_eq!(kind.kind.name(), *name);
        }
    }

    #[test]
    fn a_member_that_one_kind_has_is_a_fault_in_all_others() {
        for owner in KINDS {
            for member in owner.members {
                for kind in KINDS {
                    let found = members(kind.kind, |plan| {
                        plan.members.insert(member.name.to_owned(), "1".to_owned());
                        if kind.kind == Kafka {
                            log_in(plan);
                        }
                    });
                    let is_owner = kind.kind == owner.kind;
                    assert_eq!(found, if is_owner { vec![] } else { vec![member.name] }, "{:?}", kind.kind);
                }
            }
        }
    }

    #[test]
    fn half_a_login_is_a_fault_where_no_broker_takes_it() {
        for kind in KINDS.iter().map(|kind| kind.kind) {
            let user = members(kind, |plan| plan.user = Some("shop".to_owned()));
            let password = members(kind, |plan| plan.password = Some(SecretText("hunter2".to_owned())));
            let both = members(kind, log_in);
            let (needs_password, needs_user) = match kind {
                Kafka => (true, true),
                Amqp | Redis => (true, false),
                // A password alone is a token, and there are users without a password.
                Nats => (false, false),
                Beanstalk => {
                    assert_eq!(both, ["user", "password"]);
                    continue;
                }
                other => panic!("{other:?} is no broker"),
            };
            assert_eq!(user == ["user"], needs_password, "{kind:?}: {user:?}");
            assert_eq!(password == ["password"], needs_user, "{kind:?}: {password:?}");
            assert!(both.is_empty(), "{kind:?}: {both:?}");
        }
        let scram = |plan: &mut ConnectionPlan| {
            plan.members.insert("sasl".to_owned(), "scram-sha-512".to_owned());
        };
        assert_eq!(members(Kafka, scram), ["sasl"]);
    }

    #[test]
    fn one_kind_alone_has_one_address() {
        for kind in KINDS.iter().map(|kind| kind.kind) {
            let several = members(kind, |plan| plan.addresses.push("b:1".to_owned()));
            assert_eq!(several, if kind == Beanstalk { vec!["addresses"] } else { vec![] }, "{kind:?}");
        }
    }
}
