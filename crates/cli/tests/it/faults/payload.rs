//! Payloads of tasks. They are made from the key and a number, so that a mix-up is noticed.

use std::fmt::Write;

/// The payload of this key with this number. A key with a name that begins with `b` in its queue has
/// a large payload.
pub(crate) fn payload_of(key: &str, number: u32) -> Vec<u8> {
    let sum = key.bytes().fold(number as usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let large = key.split_once(':').is_some_and(|(_, name)| name.starts_with('b'));
    let filling = if large { 8_192 + sum % 8_192 } else { sum % 300 };
    let mut text = format!("{{\"key\":\"{key}\",\"number\":{number},\"filling\":\"");
    for at in 0..filling {
        // The letters vary, so that two parts of the payload have different texts.
        let letter = b'a' + u8::try_from((sum + at * at / 7) % 26).expect("below 26");
        text.write_char(letter.into()).expect("text grows");
    }
    text.push_str("\"}");
    text.into_bytes()
}

/// The number of a payload of this key; `None` if the payload does not belong to this key.
pub(crate) fn number_of(key: &str, payload: &[u8]) -> Option<u32> {
    let json: serde_json::Value = serde_json::from_slice(payload).ok()?;
    let number = u32::try_from(json.get("number")?.as_u64()?).ok()?;
    (payload_of(key, number) == payload).then_some(number)
}
