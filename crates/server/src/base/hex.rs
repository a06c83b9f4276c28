//! Bytes as hex digits.

/// Two lower-case digits for each byte.
pub(crate) fn write(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of these digits, in either case; `None`: they are not pairs of digits.
pub(crate) fn read(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let digit = |at: usize| char::from(*pair.get(at)?).to_digit(16);
        u8::try_from(digit(0)? << 4 | digit(1)?).ok()
    };
    pairs.map(byte).collect()
}
