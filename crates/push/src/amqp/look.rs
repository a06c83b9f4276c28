//! [`Returned`]: which messages the broker returned.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use lapin::BasicProperties;
use lapin::message::BasicReturnMessage;
use lapin::types::FieldTable;

use super::properties::{encoded, with_headers};

/// The header that the broker takes off a message.
const BLIND_COPY: &str = "BCC";

/// The look of a message. Messages that look the same go the same way, so that one stands for the other.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Look(u64);

/// The messages that the broker returned, and whose confirms are still to come.
///
/// AMQP returns a message before it confirms it, and names it by its content alone. The client crate hands a return to the next confirm that
/// it sees, and one confirm of the broker may stand for many messages in no order. So the message that was returned is found by its look.
#[derive(Default)]
pub(super) struct Returned {
    reasons: HashMap<Look, Vec<String>>,
}

impl Look {
    pub(super) fn of(routing_key: &str, properties: &BasicProperties, body: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        routing_key.hash(&mut hasher);
        match properties.headers() {
            Some(headers) if headers.contains_key(BLIND_COPY) => {
                let kept = headers.into_iter().filter(|(name, _)| name.as_str() != BLIND_COPY);
                let kept = kept
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect::<std::collections::BTreeMap<_, _>>();
                encoded(&with_headers(properties, Some(FieldTable::from(kept)))).hash(&mut hasher);
            }
            _ => encoded(properties).hash(&mut hasher),
        }
        body.hash(&mut hasher);
        Self(hasher.finish())
    }
}

impl Returned {
    /// Takes in a return.
    pub(super) fn add(&mut self, message: &BasicReturnMessage) {
        let look = Look::of(message.routing_key.as_str(), &message.properties, &message.data);
        let reason = format!("returned: {} {}", message.reply_code, message.reply_text);
        self.reasons.entry(look).or_default().push(reason);
    }

    /// Returns why a message was returned, and forgets it; `None`: it was not.
    pub(super) fn take(&mut self, look: Look) -> Option<String> {
        if self.reasons.is_empty() {
            return None;
        }
        let reasons = self.reasons.get_mut(&look)?;
        let reason = reasons.pop();
        if reasons.is_empty() {
            self.reasons.remove(&look);
        }
        reason
    }
}

#[cfg(test)]
mod tests {
    use super::super::properties::text;
    use super::*;

    #[test]
    fn a_message_that_the_broker_changed_looks_the_same() {
        let mut headers = FieldTable::default();
        headers.insert("a".into(), text("b"));
        let properties = BasicProperties::default().with_headers(headers.clone());
        let back = Look::of("key", &properties, b"body");
        headers.insert(BLIND_COPY.into(), text("c"));
        let sent = BasicProperties::default().with_headers(headers);
        assert_eq!(Look::of("key", &sent, b"body"), back);
        assert_ne!(Look::of("other", &sent, b"body"), back);
        assert_ne!(Look::of("key", &BasicProperties::default(), b"body"), back);
        assert_ne!(Look::of("key", &sent, b"bodz"), back);
    }
}
