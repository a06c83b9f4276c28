//! The header `x-delay`, read as the delayed message plugin of RabbitMQ reads it.

use lapin::types::{AMQPValue, FieldTable};

/// The header with the delay (ms).
pub const DELAY_HEADER: &str = "x-delay";

/// Returns the delay that a message asks for (ms); `None`: it asks for none.
///
/// Integers of each size count. Texts are converted if they are whole numbers, and floats are cut. Other values are no delay. A number that
/// does not fit is the nearest that does.
#[must_use]
pub fn delay_of(headers: &FieldTable) -> Option<i64> {
    match headers.inner().get(DELAY_HEADER)? {
        AMQPValue::LongString(text) => whole(std::str::from_utf8(text.as_bytes()).ok()?),
        AMQPValue::ShortString(text) => whole(text.as_str()),
        // A cast of a float cuts, and keeps to the range.
        AMQPValue::Float(ms) => (!ms.is_nan()).then_some(*ms as i64),
        AMQPValue::Double(ms) => (!ms.is_nan()).then_some(*ms as i64),
        value => integer(value),
    }
}

/// Returns the value of an integer of any size; `None`: the value is no integer.
pub(crate) fn integer(value: &AMQPValue) -> Option<i64> {
    match *value {
        AMQPValue::ShortShortInt(number) => Some(number.into()),
        AMQPValue::ShortShortUInt(number) => Some(number.into()),
        AMQPValue::ShortInt(number) => Some(number.into()),
        AMQPValue::ShortUInt(number) => Some(number.into()),
        AMQPValue::LongInt(number) => Some(number.into()),
        AMQPValue::LongUInt(number) => Some(number.into()),
        AMQPValue::LongLongInt(number) => Some(number),
        _ => None,
    }
}

/// Negates the delay of a message that was delayed, as the plugin does, so that its receiver sees the delay and no other exchange delays the
/// message again.
pub(super) fn negated(headers: FieldTable) -> FieldTable {
    let Some(ms) = delay_of(&headers).filter(|ms| *ms > 0) else { return headers };
    let ms = ms.saturating_neg();
    let value = i32::try_from(ms).map_or(AMQPValue::LongLongInt(ms), AMQPValue::LongInt);
    let mut headers = headers;
    headers.insert(DELAY_HEADER.into(), value);
    headers
}

/// Reads a whole number as Erlang does: digits with or without a sign.
fn whole(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nearest = if text.starts_with('-') { i64::MIN } else { i64::MAX };
    Some(text.parse().unwrap_or(nearest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(value: AMQPValue) -> FieldTable {
        let mut headers = FieldTable::default();
        headers.insert(DELAY_HEADER.into(), value);
        headers
    }

    #[test]
    fn a_delay_is_read_as_the_plugin_reads_it() {
        for (value, ms) in [
            (AMQPValue::ShortShortInt(-1), Some(-1)),
            (AMQPValue::ShortShortUInt(200), Some(200)),
            (AMQPValue::ShortInt(5), Some(5)),
            (AMQPValue::ShortUInt(60_000), Some(60_000)),
            (AMQPValue::LongInt(5_000), Some(5_000)),
            (AMQPValue::LongUInt(u32::MAX), Some(4_294_967_295)),
            (AMQPValue::LongLongInt(8_640_000_000), Some(8_640_000_000)),
            (AMQPValue::LongString("5000".into()), Some(5_000)),
            (AMQPValue::LongString("+7".into()), Some(7)),
            (AMQPValue::LongString("-7".into()), Some(-7)),
            (AMQPValue::LongString("99999999999999999999".into()), Some(i64::MAX)),
            (AMQPValue::LongString("-99999999999999999999".into()), Some(i64::MIN)),
            (AMQPValue::LongString(" 5".into()), None),
            (AMQPValue::LongString("5.5".into()), None),
            (AMQPValue::LongString("".into()), None),
            (AMQPValue::LongString("+-5".into()), None),
            (AMQPValue::LongString(vec![0xff].into()), None),
            (AMQPValue::Float(5.9), Some(5)),
            (AMQPValue::Double(-5.9), Some(-5)),
            (AMQPValue::Double(f64::INFINITY), Some(i64::MAX)),
            (AMQPValue::Double(f64::NAN), None),
            (AMQPValue::Boolean(true), None),
            (AMQPValue::Timestamp(5), None),
            (AMQPValue::Void, None),
        ] {
            assert_eq!(delay_of(&headers(value.clone())), ms, "{value:?}");
        }
        assert_eq!(delay_of(&FieldTable::default()), None);
    }

    #[test]
    fn a_delay_that_was_waited_for_is_negated() {
        let after = |value| negated(headers(value)).inner().get(DELAY_HEADER).cloned();
        assert_eq!(after(AMQPValue::LongInt(5)), Some(AMQPValue::LongInt(-5)));
        assert_eq!(after(AMQPValue::LongString("5".into())), Some(AMQPValue::LongInt(-5)));
        assert_eq!(after(AMQPValue::LongLongInt(i64::MAX)), Some(AMQPValue::LongLongInt(-i64::MAX)));
        for unchanged in [AMQPValue::LongInt(0), AMQPValue::LongInt(-5), AMQPValue::Boolean(true)] {
            assert_eq!(after(unchanged.clone()), Some(unchanged));
        }
    }
}
