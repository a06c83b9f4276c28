//! Payloads of tasks, made from the key and a number, so that a mix-up shows.

use std::fmt::Write;

/// The payload of this key with this number. Keys that begin with `b` in their queue have large ones.
pub(crate) fn payload_of(key: &str, number: u32) -> Vec<u8> {
    let sum = key.bytes().fold(number as usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let large = key.split_once(':').is_some_and(|(_, name)| name.starts_with('b'));
    let filling = if large { 8_192 + sum % 8_192 } else { sum % 300 };
    let mut text = format!("{{\"key\":\"{key}\",\"number\":{number},\"filling\":\"");
    for at in 0..filling {
        // The letters vary, so that a part of it at another position is another text.
        let letter = b'a' + u8::try_from((sum + at * at / 7) % 26).expect("below 26");
        text.write_char(letter.into()).expect("text grows");
    }
    text.push_str("\"}");
    text.into_bytes()
}

/// The number of a payload of this key; `None` if it is no payload of this key.
pub(crate) fn number_of(key: &str, payload: &[u8]) -> Option<u32> {
    let json: serde_json::Value = serde_json::from_slice(payload).ok()?;
    let number = u32::try_from(json.get("number")?.as_u64()?).ok()?;
    (payload_of(key, number) == payload).then_some(number)
}
