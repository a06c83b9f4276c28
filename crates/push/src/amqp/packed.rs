//! [`Packed`]: a message of AMQP as the payload of a task.

use lapin::BasicProperties;
use lapin::types::ShortString;

use super::cbor::{Kind, head, string, take_head, take_string};
use super::properties::{decoded, encoded};

/// The content type of a packed message.
pub const CONTENT_TYPE_PACKED: &str = "application/vnd.tickwheel.amqp";

/// The version of the form.
const VERSION: u64 = 1;

/// A message of AMQP with its properties, its headers and the place to which it was published.
///
/// The packed form is one map of CBOR with five members in this order:
///
/// | name | value |
/// |---|---|
/// | `v` | 1 |
/// | `exchange` | the exchange, a text |
/// | `routing_key` | the routing key, a text |
/// | `properties` | the properties and headers, a byte string in the encoding of AMQP 0-9-1 |
/// | `body` | the body, a byte string |
///
/// The encoding of AMQP keeps all types of a header's value, and each value bit for bit. The headers are in the order of their names.
#[derive(Clone, PartialEq, Debug)]
pub struct Packed {
    /// The exchange to which the message was published.
    pub exchange: ShortString,
    /// Its routing key.
    pub routing_key: ShortString,
    /// Its properties and headers.
    pub properties: BasicProperties,
    /// Its body.
    pub body: Vec<u8>,
}

/// A payload is no packed message.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the payload is no message of AMQP in the form `{CONTENT_TYPE_PACKED}`, version {VERSION}")]
pub struct UnpackError;

impl Packed {
    /// Returns the packed form.
    #[must_use]
    pub fn pack(&self) -> Vec<u8> {
        let properties = encoded(&self.properties);
        let mut bytes = Vec::with_capacity(self.body.len() + properties.len() + 600);
        head(&mut bytes, Kind::Map, 5);
        string(&mut bytes, Kind::Text, b"v");
        head(&mut bytes, Kind::Number, VERSION);
        string(&mut bytes, Kind::Text, b"exchange");
        string(&mut bytes, Kind::Text, self.exchange.as_str().as_bytes());
        string(&mut bytes, Kind::Text, b"routing_key");
        string(&mut bytes, Kind::Text, self.routing_key.as_str().as_bytes());
        string(&mut bytes, Kind::Text, b"properties");
        string(&mut bytes, Kind::Bytes, &properties);
        string(&mut bytes, Kind::Text, b"body");
        string(&mut bytes, Kind::Bytes, &self.body);
        bytes
    }

    /// Reads the packed form.
    ///
    /// # Errors
    /// [`UnpackError`].
    pub fn unpack(bytes: &[u8]) -> Result<Self, UnpackError> {
        unpack(bytes).ok_or(UnpackError)
    }
}

fn unpack(mut bytes: &[u8]) -> Option<Packed> {
    let from = &mut bytes;
    let is_ours = take_head(from, Kind::Map)? == 5
        && take_string(from, Kind::Text)? == b"v"
        && take_head(from, Kind::Number)? == VERSION;
    if !is_ours {
        return None;
    }
    let exchange = short(member(from, b"exchange", Kind::Text)?)?;
    let routing_key = short(member(from, b"routing_key", Kind::Text)?)?;
    let properties = decoded(member(from, b"properties", Kind::Bytes)?)?;
    let body = member(from, b"body", Kind::Bytes)?.to_vec();
    from.is_empty().then_some(Packed { exchange, routing_key, properties, body })
}

fn member<'a>(from: &mut &'a [u8], name: &[u8], kind: Kind) -> Option<&'a [u8]> {
    if take_string(from, Kind::Text)? != name {
        return None;
    }
    take_string(from, kind)
}

fn short(bytes: &[u8]) -> Option<ShortString> {
    ShortString::try_new(std::str::from_utf8(bytes).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::properties::tests::properties;
    use super::*;

    fn packed() -> impl Strategy<Value = Packed> {
        (".{0,40}", ".{0,40}", properties(), any::<Vec<u8>>()).prop_map(
            |(exchange, routing_key, properties, body)| Packed {
                exchange: exchange.into(),
                routing_key: routing_key.into(),
                properties,
                body,
            },
        )
    }

    proptest! {
        #[test]
        fn a_message_comes_back_bit_for_bit(message in packed()) {
            let bytes = message.pack();
            let back = Packed::unpack(&bytes).expect("packed just now");
            // Equal bytes mean equal values. Values are not compared, because a float may be no number.
            prop_assert_eq!(encoded(&back.properties), encoded(&message.properties));
            prop_assert_eq!(back.properties.headers().is_some(), message.properties.headers().is_some());
            prop_assert_eq!(back.pack(), bytes);
            prop_assert_eq!((back.exchange, back.routing_key, back.body), (message.exchange, message.routing_key, message.body));
        }

        #[test]
        fn a_message_that_is_cut_off_or_goes_on_is_refused(message in packed(), cut in any::<prop::sample::Index>()) {
            let mut bytes = message.pack();
            prop_assert_eq!(Packed::unpack(&bytes[..cut.index(bytes.len())]), Err(UnpackError));
            bytes.push(0);
            prop_assert_eq!(Packed::unpack(&bytes), Err(UnpackError));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in any::<Vec<u8>>(), message in packed(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let _ = Packed::unpack(&bytes);
            let mut bytes = message.pack();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = Packed::unpack(&bytes);
        }
    }

    #[test]
    fn the_form_is_the_documented_one() {
        let message = Packed {
            exchange: "orders".into(),
            routing_key: "eu".into(),
            properties: BasicProperties::default().with_priority(7),
            body: b"{}".to_vec(),
        };
        let expected = [
            b"\xa5\x61v\x01\x68exchange\x66orders\x6brouting_key\x62eu\x6aproperties\x43\x08\x00\x07"
                .as_slice(),
            b"\x64body\x42{}",
        ]
        .concat();
        assert_eq!(message.pack(), expected);
    }
}
