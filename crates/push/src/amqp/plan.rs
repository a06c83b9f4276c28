//! [`AmqpPlan`]: the settings of a target at an exchange.

use std::time::Duration;

use lapin::types::ShortString;

use crate::broker::{Address, AddressError, Alphabet, Content, ContentError, ContentForm};

/// The longest name that AMQP allows (bytes).
const NAME_BYTES_MAX: usize = 255;

const ROUTING_KEY: Alphabet = Alphabet {
    noun: "routing key",
    allows: |c| !c.is_control(),
    words: "characters that are no control characters",
    bytes_max: NAME_BYTES_MAX,
};

/// The form in which a task is published.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum AmqpForm {
    /// The body is the payload.
    #[default]
    Payload,
    /// The body is a JSON object with the payload and the facts of the task.
    Envelope,
    /// The payload is a message of AMQP that was packed ([`Packed`](super::Packed)), and it is published as it was: body, properties,
    /// headers and routing key. The header `x-delay` is negated. A task with another payload is refused.
    Unpacked,
}

/// The settings of a target at an exchange.
#[derive(Clone, Debug)]
pub struct AmqpPlan {
    /// The exchange. The empty name is that of the default exchange, which takes the routing key for the name of a queue.
    pub(super) exchange: ShortString,
    pub(super) content: AmqpContent,
    /// Whether a message fails that no queue takes.
    pub mandatory: bool,
    /// Whether the broker stores messages on disk. A packed message is stored as its properties say.
    pub persistent: bool,
    /// The time for one attempt.
    pub timeout: Duration,
}

/// The content of a message and its routing key.
#[derive(Clone, Debug)]
pub(super) enum AmqpContent {
    /// The routing key; `None`: the empty one.
    Task(Content, Option<Address>),
    Unpacked,
}

/// Why a target cannot have these settings.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AmqpPlanError {
    /// The name of the exchange is too long, or has control characters.
    #[error(
        "the exchange may have at most {NAME_BYTES_MAX} bytes of characters that are no control characters"
    )]
    Exchange,
    /// The routing key is no template, or can never be one of the broker's.
    #[error(transparent)]
    RoutingKey(#[from] AddressError),
    /// The headers are wrong.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// The broker gives a header another meaning.
    #[error("the header `{0}` cannot be set, because the broker takes it for routing keys")]
    Header(String),
    /// A packed message has its own routing key and headers.
    #[error(
        "a target with the body `unpacked` has no routing key and no headers; those of the message are used"
    )]
    Unpacked,
    /// There is no routing key, so that the default exchange has no queue.
    #[error("the default exchange needs a routing key, which is the name of a queue")]
    NoQueue,
}

impl AmqpPlan {
    /// Returns the settings of a target at an exchange, with the templates of the routing key and of the headers. Messages are mandatory and
    /// persistent, and each has 10 s.
    ///
    /// # Errors
    /// [`AmqpPlanError`].
    pub fn new(
        exchange: &str,
        routing_key: &str,
        form: AmqpForm,
        headers: &[(String, String)],
    ) -> Result<Self, AmqpPlanError> {
        if exchange.chars().any(char::is_control) {
            return Err(AmqpPlanError::Exchange);
        }
        let exchange = ShortString::try_new(exchange).map_err(|_| AmqpPlanError::Exchange)?;
        let content = match form {
            AmqpForm::Payload | AmqpForm::Envelope => {
                let is_broker = |name: &str| ["cc", "bcc"].contains(&name.to_ascii_lowercase().as_str());
                if let Some((name, _)) = headers.iter().find(|(name, _)| is_broker(name)) {
                    return Err(AmqpPlanError::Header(name.clone()));
                }
                let form = match form {
                    AmqpForm::Envelope => ContentForm::Envelope,
                    _ => ContentForm::Payload,
                };
                let content = Content::new(form, headers)?;
                if routing_key.is_empty() && exchange.as_str().is_empty() {
                    return Err(AmqpPlanError::NoQueue);
                }
                let routing_key = match routing_key {
                    "" => None,
                    text => Some(Address::parse(text, ROUTING_KEY)?),
                };
                AmqpContent::Task(content, routing_key)
            }
            AmqpForm::Unpacked if routing_key.is_empty() && headers.is_empty() => AmqpContent::Unpacked,
            AmqpForm::Unpacked => return Err(AmqpPlanError::Unpacked),
        };
        Ok(Self { exchange, content, mandatory: true, persistent: true, timeout: Duration::from_secs(10) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(
        exchange: &str,
        routing_key: &str,
        form: AmqpForm,
        headers: &[(&str, &str)],
    ) -> Result<AmqpPlan, AmqpPlanError> {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        AmqpPlan::new(exchange, routing_key, form, &headers)
    }

    #[test]
    fn a_plan_has_the_documented_defaults() {
        let plan = plan("orders", "{tag.0}", AmqpForm::Payload, &[("shop", "eu")]).expect("a plan");
        assert_eq!((plan.mandatory, plan.persistent, plan.timeout), (true, true, Duration::from_secs(10)));
        for (exchange, routing_key, form) in [
            ("orders", "", AmqpForm::Payload),
            ("", "queue", AmqpForm::Envelope),
            ("", "", AmqpForm::Unpacked),
        ] {
            super::tests::plan(exchange, routing_key, form, &[]).expect(exchange);
        }
    }

    #[test]
    fn settings_that_can_never_work_are_refused() {
        let long = "a".repeat(256);
        let key =
            |result: Result<AmqpPlan, AmqpPlanError>| matches!(result, Err(AmqpPlanError::RoutingKey(_)));
        assert_eq!(plan(&long, "a", AmqpForm::Payload, &[]).err(), Some(AmqpPlanError::Exchange));
        assert_eq!(plan("a\n", "a", AmqpForm::Payload, &[]).err(), Some(AmqpPlanError::Exchange));
        assert!(key(plan("a", &long, AmqpForm::Payload, &[])));
        assert!(key(plan("a", "{nothing}", AmqpForm::Payload, &[])));
        assert!(key(plan("a", "a\tb", AmqpForm::Payload, &[])));
        assert_eq!(plan("", "", AmqpForm::Payload, &[]).err(), Some(AmqpPlanError::NoQueue));
        for name in ["CC", "bcc"] {
            let header = plan("a", "a", AmqpForm::Payload, &[(name, "x")]).err();
            assert_eq!(header, Some(AmqpPlanError::Header(name.to_owned())));
        }
        let own = plan("a", "a", AmqpForm::Payload, &[("tickwheel-id", "x")]).err();
        assert!(matches!(own, Some(AmqpPlanError::Content(_))));
        assert_eq!(plan("a", "a", AmqpForm::Unpacked, &[]).err(), Some(AmqpPlanError::Unpacked));
        assert_eq!(plan("a", "", AmqpForm::Unpacked, &[("a", "b")]).err(), Some(AmqpPlanError::Unpacked));
    }
}
