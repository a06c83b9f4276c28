//! The properties of a message of AMQP.

use lapin::BasicProperties;
use lapin::protocol::basic::{gen_properties, parse_properties};
use lapin::types::{AMQPValue, FieldTable, ShortString};

/// The header that keeps the property `user_id` of a message of another user.
const USER_HEADER: &str = "tickwheel-user-id";
/// The header that keeps the property `expiration` of a message that may not expire.
#[cfg(feature = "bridge")]
const EXPIRATION_HEADER: &str = "tickwheel-expiration";

/// Returns the properties as AMQP writes them in a content header: the flags, and the properties that are set.
pub(super) fn encoded(properties: &BasicProperties) -> Vec<u8> {
    let written = gen_properties(properties)(Vec::new().into());
    written.expect("a vector takes all bytes").into_inner().0
}

/// Reads properties; `None`: the bytes are none, or there is more behind them.
pub(super) fn decoded(bytes: &[u8]) -> Option<BasicProperties> {
    let (rest, properties) = parse_properties(bytes).ok()?;
    rest.is_empty().then_some(properties)
}

/// Returns a text as the value of a header.
pub(crate) fn text(value: impl Into<Vec<u8>>) -> AMQPValue {
    AMQPValue::LongString(value.into().into())
}

/// Returns these headers as a field table. Their names have at most 255 bytes.
pub(super) fn table_of(headers: Vec<(String, String)>) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in headers {
        table.insert(ShortString::from(name), text(value));
    }
    table
}

/// Returns the properties with these headers in place of theirs.
pub(crate) fn with_headers(properties: &BasicProperties, headers: Option<FieldTable>) -> BasicProperties {
    copied(properties, headers, true, true)
}

/// Returns the properties as this user may publish them. The broker closes the channel of a message that names another user, so such a
/// property becomes a header.
pub(crate) fn published_by(user: &str, properties: BasicProperties) -> BasicProperties {
    match properties.user_id() {
        Some(other) if other.as_str() != user => {
            let mut headers = properties.headers().clone().unwrap_or_default();
            headers.insert(USER_HEADER.into(), text(other.as_str()));
            copied(&properties, Some(headers), false, true)
        }
        _ => properties,
    }
}

#[cfg(feature = "bridge")]
/// Returns the properties of a message that does not expire. The time to live becomes a header.
pub(crate) fn everlasting(properties: BasicProperties) -> BasicProperties {
    let Some(expiration) = properties.expiration() else { return properties };
    let mut headers = properties.headers().clone().unwrap_or_default();
    headers.insert(EXPIRATION_HEADER.into(), text(expiration.as_str()));
    copied(&properties, Some(headers), true, false)
}

/// Returns a copy with other headers, and without some properties. The client crate has no way to take a property away.
fn copied(
    from: &BasicProperties,
    headers: Option<FieldTable>,
    keeps_user: bool,
    keeps_expiration: bool,
) -> BasicProperties {
    type Set<T> = fn(BasicProperties, T) -> BasicProperties;
    fn set<T: Clone>(to: BasicProperties, value: &Option<T>, set: Set<T>) -> BasicProperties {
        match value {
            Some(value) => set(to, value.clone()),
            None => to,
        }
    }
    let to = set(BasicProperties::default(), &headers, BasicProperties::with_headers);
    let to = set(to, from.content_type(), BasicProperties::with_content_type);
    let to = set(to, from.content_encoding(), BasicProperties::with_content_encoding);
    let to = set(to, from.delivery_mode(), BasicProperties::with_delivery_mode);
    let to = set(to, from.priority(), BasicProperties::with_priority);
    let to = set(to, from.correlation_id(), BasicProperties::with_correlation_id);
    let to = set(to, from.reply_to(), BasicProperties::with_reply_to);
    let to = if keeps_expiration { set(to, from.expiration(), BasicProperties::with_expiration) } else { to };
    let to = set(to, from.message_id(), BasicProperties::with_message_id);
    let to = set(to, from.timestamp(), BasicProperties::with_timestamp);
    let to = set(to, from.kind(), BasicProperties::with_type);
    let to = if keeps_user { set(to, from.user_id(), BasicProperties::with_user_id) } else { to };
    let to = set(to, from.app_id(), BasicProperties::with_app_id);
    set(to, from.cluster_id(), BasicProperties::with_cluster_id)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    fn short() -> impl Strategy<Value = ShortString> {
        ".{0,20}".prop_map(ShortString::from)
    }

    /// A value of any type that a field table can have.
    fn value() -> impl Strategy<Value = AMQPValue> {
        use lapin::types::DecimalValue;
        let leaf = prop_oneof![
            any::<bool>().prop_map(AMQPValue::Boolean),
            any::<i8>().prop_map(AMQPValue::ShortShortInt),
            any::<u8>().prop_map(AMQPValue::ShortShortUInt),
            any::<i16>().prop_map(AMQPValue::ShortInt),
            any::<u16>().prop_map(AMQPValue::ShortUInt),
            any::<i32>().prop_map(AMQPValue::LongInt),
            any::<u32>().prop_map(AMQPValue::LongUInt),
            any::<i64>().prop_map(AMQPValue::LongLongInt),
            any::<f32>().prop_map(AMQPValue::Float),
            any::<f64>().prop_map(AMQPValue::Double),
            (any::<u8>(), any::<u32>())
                .prop_map(|(scale, value)| AMQPValue::DecimalValue(DecimalValue { scale, value })),
            any::<Vec<u8>>().prop_map(|bytes| AMQPValue::LongString(bytes.into())),
            any::<u64>().prop_map(AMQPValue::Timestamp),
            any::<Vec<u8>>().prop_map(|bytes| AMQPValue::ByteArray(bytes.into())),
            Just(AMQPValue::Void),
        ];
        leaf.prop_recursive(3, 24, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6)
                    .prop_map(|values| AMQPValue::FieldArray(values.into())),
                prop::collection::btree_map(short(), inner, 0..6)
                    .prop_map(|values| AMQPValue::FieldTable(values.into())),
            ]
        })
    }

    /// Any properties.
    pub(in crate::amqp) fn properties() -> impl Strategy<Value = BasicProperties> {
        fn with<T>(
            to: BasicProperties,
            value: Option<T>,
            set: fn(BasicProperties, T) -> BasicProperties,
        ) -> BasicProperties {
            match value {
                Some(value) => set(to, value),
                None => to,
            }
        }
        let some = || prop::option::of(short());
        let headers = prop::collection::btree_map(short(), value(), 0..6).prop_map(FieldTable::from);
        let first = (some(), some(), prop::option::of(headers), any::<Option<u8>>(), any::<Option<u8>>());
        let second = (some(), some(), some(), some(), any::<Option<u64>>());
        (first, second, (some(), some(), some(), some())).prop_map(|(first, second, third)| {
            let to = with(BasicProperties::default(), first.0, BasicProperties::with_content_type);
            let to = with(to, first.1, BasicProperties::with_content_encoding);
            let to = with(to, first.2, BasicProperties::with_headers);
            let to = with(to, first.3, BasicProperties::with_delivery_mode);
            let to = with(to, first.4, BasicProperties::with_priority);
            let to = with(to, second.0, BasicProperties::with_correlation_id);
            let to = with(to, second.1, BasicProperties::with_reply_to);
            let to = with(to, second.2, BasicProperties::with_expiration);
            let to = with(to, second.3, BasicProperties::with_message_id);
            let to = with(to, second.4, BasicProperties::with_timestamp);
            let to = with(to, third.0, BasicProperties::with_type);
            let to = with(to, third.1, BasicProperties::with_user_id);
            let to = with(to, third.2, BasicProperties::with_app_id);
            with(to, third.3, BasicProperties::with_cluster_id)
        })
    }

    proptest! {
        #[test]
        fn a_copy_with_the_same_headers_is_the_same(properties in properties()) {
            let copy = with_headers(&properties, properties.headers().clone());
            // The bytes are compared, because a float may be no number.
            prop_assert_eq!(encoded(&copy), encoded(&properties));
        }
    }

    #[test]
    fn the_name_of_another_user_becomes_a_header() {
        let properties = BasicProperties::default().with_user_id("shop".into()).with_app_id("a".into());
        assert_eq!(published_by("shop", properties.clone()), properties);
        let mut headers = FieldTable::default();
        headers.insert(USER_HEADER.into(), text("shop"));
        let expected = BasicProperties::default().with_app_id("a".into()).with_headers(headers);
        assert_eq!(published_by("tickwheel", properties), expected);
    }

    #[cfg(feature = "bridge")]
    #[test]
    fn a_time_to_live_becomes_a_header() {
        let mut headers = FieldTable::default();
        headers.insert(EXPIRATION_HEADER.into(), text("60000"));
        let properties = BasicProperties::default().with_expiration("60000".into());
        assert_eq!(everlasting(properties), BasicProperties::default().with_headers(headers));
    }
}
