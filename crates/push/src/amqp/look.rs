//! [`Look`]: by which a message that the broker returned is found again.

use std::hash::{DefaultHasher, Hash, Hasher};

use lapin::BasicProperties;

use super::properties::encoded;

/// The look of a message.
///
/// A broker returns a message before it confirms the message, and a return names no number, only the content. The client crate hands a return to
/// the next confirm, which may be of another message. One confirm may also stand for many messages. So the returned message is found by its look.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Look {
    /// The routing key, the body and the id.
    near: u64,
    /// All properties with their headers.
    properties: u64,
}

/// How much two messages look the same.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Match {
    /// Other messages, unless the broker changed the key, the body or the id.
    None,
    /// Their routing keys, bodies and ids are the same. The broker takes the header `BCC` off, and its interceptors add headers.
    Near,
    /// All is the same.
    Whole,
}

impl Look {
    pub(super) fn of(routing_key: &str, properties: &BasicProperties, body: &[u8]) -> Self {
        let id = properties.message_id().as_ref().map(|id| id.as_str());
        Self { near: hash_of(&(routing_key, body, id)), properties: hash_of(&encoded(properties)) }
    }

    pub(super) fn matches(self, other: Self) -> Match {
        match (self.near == other.near, self.properties == other.properties) {
            (true, true) => Match::Whole,
            (true, false) => Match::Near,
            (false, _) => Match::None,
        }
    }
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use lapin::types::FieldTable;

    use super::super::properties::text;
    use super::*;

    #[test]
    fn a_message_that_the_broker_changed_looks_nearly_the_same() {
        let sent = BasicProperties::default().with_message_id("7".into());
        let mut headers = FieldTable::default();
        headers.insert("timestamp_in_ms".into(), text("1"));
        let changed = sent.clone().with_headers(headers);
        let look = Look::of("key", &sent, b"body");
        assert_eq!(look.matches(Look::of("key", &sent, b"body")), Match::Whole);
        assert_eq!(look.matches(Look::of("key", &changed, b"body")), Match::Near);
        assert_eq!(look.matches(Look::of("other", &sent, b"body")), Match::None);
        assert_eq!(look.matches(Look::of("key", &sent, b"bodz")), Match::None);
        let another = sent.clone().with_message_id("8".into());
        assert_eq!(look.matches(Look::of("key", &another, b"body")), Match::None);
    }
}
