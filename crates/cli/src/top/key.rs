//! Keys, as a terminal sends them.

/// A key that was pressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Key {
    /// A character, or a control character such as `\u{3}` for Ctrl-C.
    Char(char),
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Escape,
}

/// Decodes bytes to keys. A terminal sends one byte for a letter and an escape sequence for an arrow (`ESC [ A`). A sequence may come in
/// parts. A single ESC byte is either the Esc key or the beginning of a sequence, and only the time until the next byte shows which. So
/// the caller tells the decoder when no byte follows ([`end`](Self::end)).
#[derive(Default, Debug)]
pub(crate) struct Decoder {
    /// The beginning of an incomplete sequence.
    open: Vec<u8>,
}

const ESC: u8 = 0x1b;
/// The longest sequences of real keys have 8 bytes. A sequence above this limit is no key.
const SEQUENCE_BYTES_MAX: usize = 32;

impl Decoder {
    /// The keys that `bytes` complete. Sequences of unknown keys are ignored.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<Key> {
        bytes.iter().flat_map(|byte| self.byte(*byte)).flatten().collect()
    }

    /// Whether a sequence has begun and not ended.
    pub(crate) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Ends an open sequence because no byte follows: a single ESC is the Esc key.
    pub(crate) fn end(&mut self) -> Option<Key> {
        let alone = self.open == [ESC];
        self.open.clear();
        alone.then_some(Key::Escape)
    }

    fn byte(&mut self, byte: u8) -> [Option<Key>; 2] {
        match (&self.open[..], byte) {
            ([], ESC) => self.open.push(ESC),
            ([], byte) => return [plain(byte), None],
            // ESC [ and ESC O begin a sequence.
            ([_], b'[' | b'O') => self.open.push(byte),
            // The Esc key, followed by another key within a short time.
            ([_], ESC) => return [Some(Key::Escape), None],
            ([_], byte) => {
                self.open.clear();
                return [Some(Key::Escape), plain(byte)];
            }
            // A new sequence begins before the last one is complete; the incomplete one is dropped.
            (_, ESC) => self.open = vec![ESC],
            // Parameters: digits and semicolons.
            (open, b' '..=b'?') if open.len() < SEQUENCE_BYTES_MAX => self.open.push(byte),
            (open, last) => {
                let key = named(&open[2..], last);
                self.open.clear();
                return [key, None];
            }
        }
        [None, None]
    }
}

/// The key of a byte outside of any sequence. All keys with a meaning here are ASCII.
fn plain(byte: u8) -> Option<Key> {
    byte.is_ascii().then_some(Key::Char(char::from(byte)))
}

/// The key of a sequence. A second parameter says which of Shift, Ctrl and Alt was held; it is ignored.
fn named(parameters: &[u8], last: u8) -> Option<Key> {
    let first = parameters.split(|byte| *byte == b';').next().unwrap_or_default();
    Some(match (last, first) {
        (b'A', _) => Key::Up,
        (b'B', _) => Key::Down,
        (b'H', _) | (b'~', b"1" | b"7") => Key::Home,
        (b'F', _) | (b'~', b"4" | b"8") => Key::End,
        (b'~', b"5") => Key::PageUp,
        (b'~', b"6") => Key::PageDown,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_usual_terminals() {
        for (bytes, key) in [
            ("q", Key::Char('q')),
            ("\u{3}", Key::Char('\u{3}')),
            ("\u{1b}[A", Key::Up),
            ("\u{1b}OA", Key::Up),
            ("\u{1b}[B", Key::Down),
            ("\u{1b}[1;5B", Key::Down),
            ("\u{1b}[5~", Key::PageUp),
            ("\u{1b}[6~", Key::PageDown),
            ("\u{1b}[6;2~", Key::PageDown),
            ("\u{1b}[H", Key::Home),
            ("\u{1b}OH", Key::Home),
            ("\u{1b}[1~", Key::Home),
            ("\u{1b}[7~", Key::Home),
            ("\u{1b}[F", Key::End),
            ("\u{1b}[4~", Key::End),
        ] {
            let mut decoder = Decoder::default();
            assert_eq!(decoder.take(bytes.as_bytes()), [key], "{bytes:?}");
            assert!(!decoder.is_open());
            let by_bytes: Vec<Key> = bytes.bytes().flat_map(|byte| decoder.take(&[byte])).collect();
            assert_eq!(by_bytes, [key], "{bytes:?} in parts");
        }
    }

    #[test]
    fn esc_is_a_key_once_nothing_follows() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.take(b"\x1b"), []);
        assert!(decoder.is_open());
        assert_eq!((decoder.end(), decoder.is_open()), (Some(Key::Escape), false));
        assert_eq!(decoder.end(), None);
        assert_eq!(decoder.take(b"\x1bx"), [Key::Escape, Key::Char('x')]);
        assert_eq!(decoder.take(b"\x1b\x1b[A"), [Key::Escape, Key::Up]);
    }

    #[test]
    fn sequences_of_other_keys_are_ignored() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.take(b"\x1b[15~\x1bOP\x1b[3~\x1b[Zj"), [Key::Char('j')], "F5, F1, Del, Shift-Tab");
        assert_eq!(decoder.take("ü€".as_bytes()), []);
        assert_eq!(
            decoder.take(b"\x1b[1;\x1b[Bk"),
            [Key::Down, Key::Char('k')],
            "a sequence that was cut off"
        );
        let long = [b"\x1b[".as_slice(), &[b'1'; 10_000]].concat();
        decoder.take(&long);
        assert!(decoder.open.len() <= SEQUENCE_BYTES_MAX);
        decoder.end();
        assert_eq!(decoder.take(b"q"), [Key::Char('q')]);
    }
}
