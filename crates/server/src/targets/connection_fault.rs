//! [`ConnectionFault`]: a mistake in a connection that shows without its broker.

use tickwheel_api::TargetKind;

use super::plan::ConnectionPlan;

/// A mistake in a connection that shows without its broker.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ConnectionFault {
    /// The member of [`ConnectionPlan`] with the mistake.
    pub member: &'static str,
    /// The mistake, and what to write instead.
    pub why: String,
}

/// How a password is written in the configuration.
const PASSWORD: &str = "`password_file` or `password_env`";

impl ConnectionPlan {
    /// Returns the members that brokers of this kind do not have, a user without a password, and a password without a user, where the broker
    /// needs both or has neither.
    ///
    /// A password without a user is a token of NATS, the password of `guest` in RabbitMQ, and that of the default user in Redis. NATS has users
    /// without a password. Several addresses of Redis are those of a server and its replicas.
    #[must_use]
    pub fn faults(&self) -> Vec<ConnectionFault> {
        use TargetKind::{Amqp, Beanstalk, Kafka, Nats, Redis, Webhook};

        let mut faults = Vec::new();
        let mut fault = |member, why: String| faults.push(ConnectionFault { member, why });
        for (member, is_there, of) in [
            ("vhost", self.vhost.is_some(), Amqp),
            ("database", self.database.is_some(), Redis),
            ("sasl", self.sasl.is_some(), Kafka),
        ] {
            if is_there && self.kind != of {
                let (of, kind) = (of.name(), self.kind.name());
                let why = format!(
                    "`{member}` is for the kind `{of}`, and this connection has the kind `{kind}`; leave it out"
                );
                fault(member, why);
            }
        }
        let (has_user, has_password) = (self.user.is_some(), self.password.is_some());
        let has_name = self.user.as_deref().is_some_and(|user| !user.is_empty());
        match self.kind {
            Kafka if has_user && !has_password => {
                fault("user", format!("Kafka lets in no `user` without a password; write {PASSWORD}, too"));
            }
            Kafka if has_password && !has_name => {
                fault("password", "Kafka lets in no password without a user; write `user`, too".to_owned());
            }
            Kafka if self.sasl.is_some() && !has_user => {
                let why = format!(
                    "`sasl` has no effect without a login; write `user`, and {PASSWORD}, or leave it out"
                );
                fault("sasl", why);
            }
            Amqp if has_user && !has_password => {
                let or_else = "leave `user` out: then the client certificate logs in, or else `guest`";
                fault(
                    "user",
                    format!(
                        "RabbitMQ lets in no `user` without a password; write {PASSWORD}, too, or {or_else}"
                    ),
                );
            }
            Redis if has_user && !has_password => {
                let why = format!(
                    "`user` has no effect without a password: Redis takes its default user; write {PASSWORD}, too, or leave it out"
                );
                fault("user", why);
            }
            Beanstalk => {
                for (member, is_there) in [("user", has_user), ("password", has_password)] {
                    if is_there {
                        fault(
                            member,
                            format!("beanstalkd has no users and no passwords; leave the {member} out"),
                        );
                    }
                }
                if self.addresses.len() > 1 {
                    let why = "each beanstalkd has jobs of its own; write one address, and a connection for each of the others";
                    fault("addresses", why.to_owned());
                }
            }
            Kafka | Amqp | Redis | Nats | Webhook => {}
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::plan::{Sasl, SecretText};

    /// Returns the members with a mistake in a connection of this kind that `change` has changed.
    fn members(kind: TargetKind, change: impl FnOnce(&mut ConnectionPlan)) -> Vec<&'static str> {
        let mut plan = ConnectionPlan::new(kind, vec!["a:1".to_owned()]);
        change(&mut plan);
        plan.faults().iter().map(|fault| fault.member).collect()
    }

    fn brokers() -> impl Iterator<Item = TargetKind> {
        TargetKind::ALL.into_iter().filter(|kind| *kind != TargetKind::Webhook)
    }

    #[test]
    fn a_member_of_another_kind_is_a_fault() {
        for kind in brokers() {
            let of =
                |member: &'static str, other: TargetKind| if kind == other { vec![] } else { vec![member] };
            let vhost = members(kind, |plan| plan.vhost = Some("shop".to_owned()));
            assert_eq!(vhost, of("vhost", TargetKind::Amqp), "{kind:?}");
            let database = members(kind, |plan| plan.database = Some(0));
            assert_eq!(database, of("database", TargetKind::Redis), "{kind:?}");
            let sasl = members(kind, |plan| {
                plan.sasl = Some(Sasl::Plain);
                if kind == TargetKind::Kafka {
                    plan.user = Some("shop".to_owned());
                    plan.password = Some(SecretText("hunter2".to_owned()));
                }
            });
            assert_eq!(sasl, of("sasl", TargetKind::Kafka), "{kind:?}");
        }
    }

    #[test]
    fn half_a_login_is_a_fault_where_no_broker_takes_it() {
        use TargetKind::{Amqp, Beanstalk, Kafka, Nats, Redis};

        for kind in brokers() {
            let user = members(kind, |plan| plan.user = Some("shop".to_owned()));
            let password = members(kind, |plan| plan.password = Some(SecretText("hunter2".to_owned())));
            let both = members(kind, |plan| {
                plan.user = Some("shop".to_owned());
                plan.password = Some(SecretText("hunter2".to_owned()));
            });
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
        assert_eq!(members(Kafka, |plan| plan.sasl = Some(Sasl::ScramSha512)), ["sasl"]);
    }

    #[test]
    fn one_kind_alone_has_one_address() {
        for kind in brokers() {
            let several = members(kind, |plan| plan.addresses.push("b:1".to_owned()));
            let is_one = kind == TargetKind::Beanstalk;
            assert_eq!(several, if is_one { vec!["addresses"] } else { vec![] }, "{kind:?}");
        }
    }
}
