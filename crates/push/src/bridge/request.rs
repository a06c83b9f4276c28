//! [`Request`]: the wish of a message, read from its headers.

use std::time::Duration;

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable};
use tickwheel_queue::{Due, Key, Timestamp};

use super::plan::KeySource;
use crate::amqp::{Packed, delay_of, integer, with_headers};

/// The header with the key of the task.
pub const KEY_HEADER: &str = "tickwheel-key";
/// The header that makes a message with the delay -1 a cancellation.
pub const CANCEL_HEADER: &str = "tickwheel-cancel";
/// The header in which a broker notes when it got a message (ms since 1970), if it is told to.
const STAMP_HEADER: &str = "timestamp_in_ms";
/// The headers that a quorum queue adds. They say nothing about the message.
const QUEUE_HEADERS: [&str; 2] = ["x-delivery-count", "x-acquired-count"];

/// A message that is to be kept until it is due.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delayed {
    /// The key of its task; `None`: the task gets a key of its own.
    pub key: Option<Key>,
    /// When it is due.
    pub due: Due,
    /// The message, packed: a payload of the type [`CONTENT_TYPE_PACKED`](crate::amqp::CONTENT_TYPE_PACKED).
    pub payload: Vec<u8>,
}

/// The wish of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Request {
    /// To be published when it is due.
    Delay { key: Option<Key>, when: When },
    /// To forget the message of this key.
    Cancel(Key),
}

/// When a message is due.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum When {
    Now,
    At(Timestamp),
    /// This long after the bridge got it (ms).
    AfterReceipt(u64),
}

impl When {
    /// Returns the due time for a call that is made this long after the receipt.
    pub(super) fn due(self, since_receipt: Duration) -> Due {
        match self {
            Self::Now => Due::Now,
            Self::At(at) => Due::At(at),
            // The time since the receipt is rounded down, so that the message is never early.
            Self::AfterReceipt(ms) => {
                let gone_ms = u64::try_from(since_receipt.as_millis()).unwrap_or(u64::MAX);
                Due::After { ms: ms.saturating_sub(gone_ms) }
            }
        }
    }
}

impl Request {
    /// Reads what a message asks for. The error is the reason for which it cannot be kept.
    pub(super) fn read(properties: &BasicProperties, source: KeySource) -> Result<Self, String> {
        let none = FieldTable::default();
        let headers = properties.headers().as_ref().unwrap_or(&none);
        let delay_ms = delay_of(headers);
        let key = key(headers, properties, source)?;
        if delay_ms == Some(-1) && is_true(headers.inner().get(CANCEL_HEADER)) {
            return key.map(Self::Cancel).ok_or_else(|| {
                format!("a message with the header `{CANCEL_HEADER}` needs the header `{KEY_HEADER}`")
            });
        }
        let when = match u64::try_from(delay_ms.unwrap_or(0)) {
            Err(_) | Ok(0) => When::Now,
            Ok(delay_ms) => match headers.inner().get(STAMP_HEADER).and_then(integer) {
                Some(stamp_ms) => {
                    let stamp = Timestamp::from_ms(stamp_ms).unwrap_or(Timestamp::EPOCH);
                    When::At(stamp.plus_ms(delay_ms).unwrap_or(Timestamp::MAX))
                }
                None => When::AfterReceipt(delay_ms),
            },
        };
        Ok(Self::Delay { key, when })
    }
}

fn key(headers: &FieldTable, properties: &BasicProperties, source: KeySource) -> Result<Option<Key>, String> {
    let text = match headers.inner().get(KEY_HEADER) {
        Some(AMQPValue::LongString(text)) => std::str::from_utf8(text.as_bytes()).ok().map(str::to_owned),
        Some(AMQPValue::ShortString(text)) => Some(text.as_str().to_owned()),
        Some(value) => integer(value).map(|number| number.to_string()),
        None => match (source, properties.message_id()) {
            (KeySource::MessageId, Some(id)) if !id.as_str().is_empty() => Some(id.as_str().to_owned()),
            _ => return Ok(None),
        },
    };
    let text = text.ok_or_else(|| format!("the header `{KEY_HEADER}` is no text"))?;
    Key::new(&text).map(Some).map_err(|error| error.to_string())
}

fn is_true(value: Option<&AMQPValue>) -> bool {
    match value {
        Some(AMQPValue::Boolean(value)) => *value,
        Some(AMQPValue::LongString(text)) => text.as_bytes() == b"true",
        _ => false,
    }
}

/// Takes away what the queue of the bridge has added to a message.
pub(super) fn as_published(message: Packed) -> Packed {
    let Some(headers) = message.properties.headers() else { return message };
    if !QUEUE_HEADERS.iter().any(|name| headers.contains_key(name)) {
        return message;
    }
    let kept = headers.into_iter().filter(|(name, _)| !QUEUE_HEADERS.contains(&name.as_str()));
    let kept: std::collections::BTreeMap<_, _> =
        kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    let headers = (!kept.is_empty()).then(|| FieldTable::from(kept));
    Packed { properties: with_headers(&message.properties, headers), ..message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amqp::{DELAY_HEADER, text};

    fn message(headers: &[(&str, AMQPValue)]) -> BasicProperties {
        let mut table = FieldTable::default();
        for (name, value) in headers {
            table.insert((*name).into(), value.clone());
        }
        BasicProperties::default().with_headers(table)
    }

    fn read(headers: &[(&str, AMQPValue)]) -> Result<Request, String> {
        Request::read(&message(headers), KeySource::Header)
    }

    fn delay(when: When) -> Result<Request, String> {
        Ok(Request::Delay { key: None, when })
    }

    fn at(ms: i64) -> When {
        When::At(Timestamp::from_ms(ms).expect("an instant"))
    }

    #[test]
    fn a_message_is_due_after_its_delay() {
        let delays = |ms| (DELAY_HEADER, AMQPValue::LongLongInt(ms));
        let stamp = |ms| ("timestamp_in_ms", AMQPValue::LongLongInt(ms));
        assert_eq!(Request::read(&BasicProperties::default(), KeySource::Header), delay(When::Now));
        assert_eq!(read(&[]), delay(When::Now));
        assert_eq!(read(&[delays(0)]), delay(When::Now));
        assert_eq!(read(&[delays(-5), stamp(1)]), delay(When::Now));
        assert_eq!(read(&[delays(5)]), delay(When::AfterReceipt(5)));
        // The plugin sends such a message at once.
        assert_eq!(read(&[delays(1 << 40)]), delay(When::AfterReceipt(1 << 40)));
        assert_eq!(read(&[delays(5), stamp(1_795_000_000_000)]), delay(at(1_795_000_000_005)));
        assert_eq!(read(&[delays(i64::MAX), stamp(1)]), delay(When::At(Timestamp::MAX)));
        assert_eq!(read(&[delays(5), stamp(-1)]), delay(at(5)));
        assert_eq!(read(&[delays(5), ("timestamp_in_ms", text("soon"))]), delay(When::AfterReceipt(5)));
    }

    #[test]
    fn a_call_that_comes_late_asks_for_the_rest_of_the_delay() {
        let due = |ms| When::AfterReceipt(1_000).due(Duration::from_micros(ms));
        assert_eq!(due(0), Due::After { ms: 1_000 });
        assert_eq!(due(1_999), Due::After { ms: 999 });
        assert_eq!(due(5_000_000), Due::After { ms: 0 });
    }

    #[test]
    fn a_key_is_that_of_the_header_or_the_id_of_the_message() {
        let key = |result: Result<Request, String>| match result {
            Ok(Request::Delay { key, .. }) => Ok(key.map(|key| key.as_str().to_owned())),
            Ok(other) => panic!("{other:?}"),
            Err(reason) => Err(reason),
        };
        assert_eq!(key(read(&[(KEY_HEADER, text("order:1"))])), Ok(Some("order:1".to_owned())));
        assert_eq!(key(read(&[(KEY_HEADER, AMQPValue::LongInt(7))])), Ok(Some("7".to_owned())));
        for bad in [text(""), text("a\n"), text(vec![0xff]), AMQPValue::Boolean(true), text("a".repeat(257))]
        {
            assert!(key(read(&[(KEY_HEADER, bad.clone())])).is_err(), "{bad:?}");
        }
        let with_id = message(&[]).with_message_id("m".into());
        assert_eq!(key(Request::read(&with_id, KeySource::Header)), Ok(None));
        assert_eq!(key(Request::read(&with_id, KeySource::MessageId)), Ok(Some("m".to_owned())));
        let both = message(&[(KEY_HEADER, text("k"))]).with_message_id("m".into());
        assert_eq!(key(Request::read(&both, KeySource::MessageId)), Ok(Some("k".to_owned())));
    }

    #[test]
    fn a_cancellation_has_a_key_and_the_delay_minus_one() {
        let minus = (DELAY_HEADER, AMQPValue::LongInt(-1));
        let cancel = (CANCEL_HEADER, AMQPValue::Boolean(true));
        let key = (KEY_HEADER, text("k"));
        let expected = Request::Cancel(Key::new("k").expect("a key"));
        assert_eq!(read(&[minus.clone(), cancel.clone(), key.clone()]), Ok(expected.clone()));
        assert_eq!(read(&[minus.clone(), (CANCEL_HEADER, text("true")), key.clone()]), Ok(expected));
        assert!(read(&[minus.clone(), cancel.clone()]).is_err());
        for other in [
            vec![cancel, key.clone()],
            vec![minus.clone(), key.clone()],
            vec![minus, (CANCEL_HEADER, AMQPValue::Boolean(false)), key],
        ] {
            assert!(matches!(read(&other), Ok(Request::Delay { when: When::Now, .. })), "{other:?}");
        }
    }

    #[test]
    fn what_the_queue_added_is_taken_away() {
        let packed = |properties| Packed {
            exchange: "orders".into(),
            routing_key: "eu".into(),
            properties,
            body: b"body".to_vec(),
        };
        let count = ("x-delivery-count", AMQPValue::LongLongInt(3));
        let shop = ("shop", text("eu"));
        let one = packed(message(&[count.clone(), shop.clone()]));
        assert_eq!(as_published(one), packed(message(&[shop])));
        assert_eq!(as_published(packed(message(&[count]))), packed(BasicProperties::default()));
        assert_eq!(as_published(packed(message(&[]))), packed(message(&[])));
    }
}
