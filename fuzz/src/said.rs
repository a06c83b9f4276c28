//! Bytes as what a client of beanstalkd says, cut into packets.

use tickwheel_api::beanstalk::{Decoder, Event, Fault, LINE_BYTES_MAX, LONG_LINE_BYTES_MAX};

/// A job may have so many bytes.
const JOB_BYTES_MAX: u32 = 40;

/// The verbs whose lines may be longer.
const LONG: [&[u8]; 5] = [b"put-key ", b"delete-key ", b"delay-key ", b"peek-key ", b"stats-key "];

/// What is said, and how it is cut.
#[derive(Debug)]
pub struct Said {
    packets: Vec<Vec<u8>>,
}

impl Said {
    /// The first byte says how the others are cut.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let (first, mut rest) = bytes.split_first().unwrap_or((&0, &[]));
        let mut state = u32::from(*first) + 1;
        let mut packets = Vec::new();
        while !rest.is_empty() {
            // Xorshift; a third of the packets has only a few bytes.
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            let bytes = if state.is_multiple_of(3) { state / 3 % 4 } else { state / 3 % 300 };
            let (packet, behind) = rest.split_at(rest.len().min(bytes as usize + 1));
            packets.push(packet.to_vec());
            rest = behind;
        }
        Self { packets }
    }

    /// However it is cut, the same is heard, and that is what stands there when all of it is looked at as a whole.
    ///
    /// # Panics
    /// If that does not hold.
    pub fn replay(&self) {
        let whole = self.packets.concat();
        let heard = decode([&whole[..]]);
        assert_eq!(decode(self.packets.iter().map(Vec::as_slice)), heard, "cut into packets");
        assert_eq!(decode(whole.chunks(1)), heard, "byte by byte");
        assert_eq!(heard, look(&whole), "looked at as a whole");
    }
}

fn decode<'a>(packets: impl IntoIterator<Item = &'a [u8]>) -> Vec<Event> {
    let (mut decoder, mut events) = (Decoder::new(JOB_BYTES_MAX), Vec::new());
    for mut packet in packets {
        while let Some(event) = decoder.next(&mut packet) {
            events.push(event);
        }
        assert!(packet.is_empty(), "all of it is read");
    }
    events
}

/// How long a body is by the last of at least five words, or spaces, behind the verb.
fn announced(line: &[u8]) -> Option<usize> {
    let ends = line.iter().rposition(|byte| *byte != b' ')? + 1;
    let line = &line[..ends];
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let last = words.last().filter(|_| words.len() > 5)?;
    let number: u32 = std::str::from_utf8(last).ok().filter(|last| !last.starts_with('+'))?.parse().ok()?;
    usize::try_from(number).ok()
}

/// Where lines and bodies end, in the plainest way; what one alone says is the decoder's to tell.
fn look(mut text: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(ends) = text.windows(2).position(|two| two == b"\r\n") {
        let (line, behind) = text.split_at(ends + 2);
        let is_long = LONG.iter().any(|verb| line.starts_with(verb));
        text = behind;
        if line.len() > if is_long { LONG_LINE_BYTES_MAX } else { LINE_BYTES_MAX } {
            // Of a put-key its body goes with it.
            let bytes = if line.starts_with(b"put-key ") { announced(&line[..ends]) } else { None };
            match bytes.map(|bytes| behind.get(bytes + 2..)) {
                Some(None) => break,
                Some(Some(behind)) => text = behind,
                None => {}
            }
            events.push(Err(Fault::BadFormat));
            continue;
        }
        if let [alone] = &decode([line])[..] {
            events.push(alone.clone());
            continue;
        }
        // It is followed by a body, of as many bytes as its last word says.
        let last = line[..ends].split(|byte| *byte == b' ').rfind(|word| !word.is_empty());
        let last = last.expect("the verb is one");
        let bytes: usize =
            std::str::from_utf8(last).ok().and_then(|word| word.parse().ok()).expect("a number");
        if behind.len() < bytes + 2 {
            break;
        }
        let (body, behind) = behind.split_at(bytes + 2);
        text = behind;
        // Whether the line is good shows where nothing stands in the way of its body.
        let at = line[..ends].iter().rposition(|byte| *byte != b' ').map_or(0, |at| at + 1) - last.len();
        let empty = [&line[..at], b"0", &line[at + last.len()..]].concat();
        if let [Err(fault)] = decode([&empty[..], b"\r\n"])[..] {
            events.push(Err(fault));
        } else if bytes > JOB_BYTES_MAX as usize {
            events.push(Err(Fault::JobTooBig));
        } else if body.ends_with(b"\r\n") {
            events.extend(decode([line, body]));
        } else {
            events.push(Err(Fault::ExpectedCrlf));
        }
    }
    events
}
