//! The decoder of commands. The bytes of a connection may arrive in pieces of any size.

use super::command::{Command, Event, Fault};
use super::line::{self, Ending, Line};
use super::terms::JobTerms;
use super::{LINE_BYTES_MAX, LONG_LINE_BYTES_MAX};

/// Memory that is reserved for a body before its bytes arrive (64 KiB). A client that announces a large body and does not send it takes no
/// more than this.
const BODY_BYTES_AT_FIRST: usize = 64 << 10;

const END: &[u8] = b"\r\n";

/// Reads one connection. The decoder holds the line, or the body of a put, that is still incomplete; a body has at most the bytes given to
/// [`Decoder::new`].
#[derive(Debug)]
pub struct Decoder {
    job_bytes_max: u32,
    state: State,
}

#[derive(Debug)]
enum State {
    /// An incomplete line.
    Line(Vec<u8>),
    /// The rest of a line that is too long. `cr`: the last byte was CR, so a following LF would end the line.
    Dropped {
        cr: bool,
        ending: Option<Ending>,
    },
    Body(Body),
    /// A refused body: the bytes to skip, and the fault to report after them.
    Skipped {
        left: u64,
        fault: Fault,
    },
}

#[derive(Debug)]
struct Body {
    terms: JobTerms,
    /// The bytes so far, CR LF at the end included.
    bytes: Vec<u8>,
    left: usize,
}

impl Decoder {
    /// The decoder of a new connection. The body of a job may have at most `job_bytes_max` bytes.
    pub fn new(job_bytes_max: u32) -> Self {
        Self { job_bytes_max, state: State::Line(Vec::new()) }
    }

    /// Length of the incomplete body, CR LF included (bytes); 0 if there is none, or if it is skipped.
    pub fn body_bytes(&self) -> usize {
        match &self.state {
            State::Body(body) => body.bytes.len() + body.left,
            State::Line(_) | State::Dropped { .. } | State::Skipped { .. } => 0,
        }
    }

    /// Reserves the memory for the whole incomplete body. A buffer that grows step by step would be copied many times. The last copy of a
    /// body of 16 MiB would be 8 MiB at once.
    pub fn make_room(&mut self) {
        if let State::Body(body) = &mut self.state {
            body.bytes.reserve_exact(body.left);
        }
    }

    /// Takes the next event off the front of `input`. `None`: all of `input` is read, and no event is complete.
    ///
    /// Costs one copy of a body, into the memory of the event.
    pub fn next(&mut self, input: &mut &[u8]) -> Option<Event> {
        loop {
            match std::mem::replace(&mut self.state, State::Line(Vec::new())) {
                State::Line(begun) => {
                    if let Some(event) = self.line(begun, input)? {
                        return Some(event);
                    }
                }
                State::Dropped { cr, ending } => {
                    if let Some(event) = self.dropped(cr, ending, input)? {
                        return Some(event);
                    }
                }
                State::Body(body) => return self.body(body, input),
                State::Skipped { left, fault } => return self.skipped(left, fault, input),
            }
        }
    }

    /// Reads a line. `None`: the line is incomplete. `Some(None)`: the next state goes on.
    fn line(&mut self, mut begun: Vec<u8>, input: &mut &[u8]) -> Option<Option<Event>> {
        let event = if begun.is_empty()
            && let Some(ends) = end_of(&input[..input.len().min(LINE_BYTES_MAX)])
        {
            let (line, rest) = input.split_at(ends);
            *input = &rest[END.len()..];
            self.said(line)
        } else {
            let most = if line::may_be_long(&begun) { LONG_LINE_BYTES_MAX } else { LINE_BYTES_MAX };
            let looked = begun.len().saturating_sub(1);
            let (more, rest) = input.split_at(input.len().min(most - begun.len()));
            begun.extend_from_slice(more);
            if let Some(ends) = end_of(&begun[looked..]).map(|at| looked + at) {
                // The bytes after the end of the line stay in the input.
                let taken = more.len() - (begun.len() - ends - END.len());
                *input = &input[taken..];
                begun.truncate(ends);
                self.said(&begun)
            } else {
                *input = rest;
                let longer = begun.len() == LINE_BYTES_MAX && line::may_be_long(&begun);
                if begun.len() < most || longer {
                    let goes_on = !input.is_empty();
                    self.state = State::Line(begun);
                    return goes_on.then_some(None);
                }
                let line = begun.strip_suffix(b"\r").unwrap_or(&begun);
                let mut ending = Ending::of(line);
                ending.iter_mut().for_each(|ending| ending.read(line));
                self.state = State::Dropped { cr: line.len() < begun.len(), ending };
                return Some(None);
            }
        };
        Some(event)
    }

    /// Reads a complete line; `None`: a body follows.
    fn said(&mut self, line: &[u8]) -> Option<Event> {
        match line::read(line) {
            Ok(Line::Whole(command)) => Some(Ok(command)),
            Err(fault) => Some(Err(fault)),
            Ok(Line::BodyFollows { bytes, .. }) if bytes > self.job_bytes_max => {
                self.skip(bytes, Fault::JobTooBig);
                None
            }
            Ok(Line::Refused { bytes }) => {
                self.skip(bytes, Fault::BadFormat);
                None
            }
            Ok(Line::BodyFollows { terms, bytes }) => {
                let left = usize::try_from(bytes).expect("a limit fits into memory") + END.len();
                let bytes = Vec::with_capacity(left.min(BODY_BYTES_AT_FIRST));
                self.state = State::Body(Body { terms, bytes, left });
                None
            }
        }
    }

    /// Skips the rest of a line that is too long. `None`: the line is incomplete. `Some(None)`: a body follows.
    fn dropped(&mut self, cr: bool, mut ending: Option<Ending>, input: &mut &[u8]) -> Option<Option<Event>> {
        let mut more = |bytes: &[u8]| ending.iter_mut().for_each(|ending| ending.read(bytes));
        if let Some(rest) = input.strip_prefix(b"\n").filter(|_| cr) {
            *input = rest;
        } else {
            if cr && !input.is_empty() {
                more(b"\r");
            }
            let Some(ends) = end_of(input) else {
                let line = input.strip_suffix(b"\r").unwrap_or(input);
                more(line);
                let cr = if input.is_empty() { cr } else { line.len() < input.len() };
                *input = &[];
                self.state = State::Dropped { cr, ending };
                return None;
            };
            more(&input[..ends]);
            *input = &input[ends + END.len()..];
        }
        match ending.and_then(|ending| ending.body_bytes()) {
            Some(bytes) => self.skip(bytes, Fault::BadFormat),
            None => return Some(Some(Err(Fault::BadFormat))),
        }
        Some(None)
    }

    fn body(&mut self, mut body: Body, input: &mut &[u8]) -> Option<Event> {
        let (come, rest) = input.split_at(input.len().min(body.left));
        *input = rest;
        body.bytes.extend_from_slice(come);
        body.left -= come.len();
        if body.left > 0 {
            self.state = State::Body(body);
            return None;
        }
        let Body { terms, bytes: mut body, .. } = body;
        if !body.ends_with(END) {
            return Some(Err(Fault::ExpectedCrlf));
        }
        body.truncate(body.len() - END.len());
        Some(Ok(Command::Put { terms, body }))
    }

    fn skip(&mut self, bytes: u32, fault: Fault) {
        self.state = State::Skipped { left: u64::from(bytes) + END.len() as u64, fault };
    }

    fn skipped(&mut self, left: u64, fault: Fault, input: &mut &[u8]) -> Option<Event> {
        let come = usize::try_from(left).map_or(input.len(), |left| input.len().min(left));
        *input = &input[come..];
        let left = left - come as u64;
        if left > 0 {
            self.state = State::Skipped { left, fault };
            return None;
        }
        Some(Err(fault))
    }
}

/// The offset of CR LF. An LF without a CR is part of a line.
fn end_of(bytes: &[u8]) -> Option<usize> {
    bytes.windows(END.len()).position(|two| two == END)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(decoder: &mut Decoder, mut input: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = decoder.next(&mut input) {
            events.push(event);
        }
        assert_eq!(input, b"", "all of it is read");
        events
    }

    fn of(text: &[u8]) -> Vec<Event> {
        all(&mut Decoder::new(8), text)
    }

    fn put(body: &[u8]) -> Event {
        let terms = JobTerms { key: None, priority: 1, when: super::super::When::AfterMs(0), ttr_s: 9 };
        Ok(Command::Put { terms, body: body.to_vec() })
    }

    #[test]
    fn bodies_are_bytes() {
        assert_eq!(of(b"put 1 0 9 3\r\n\r\n\0\r\n"), [put(b"\r\n\0")]);
        assert_eq!(of(b"put 1 0 9 0\r\n\r\nquit\r\n"), [put(b""), Ok(Command::Quit)]);
        assert_eq!(of(b"put 1 0 9 8\r\n12345678\r\n"), [put(b"12345678")], "as big as may be");
    }

    #[test]
    fn after_a_fault_the_next_command_is_read() {
        let stats = Ok(Command::Stats);
        assert_eq!(of(b"put 1 0 9 9\r\n123456789\r\nstats\r\n"), [Err(Fault::JobTooBig), stats.clone()]);
        // The announced bytes and two more are skipped; a command follows.
        assert_eq!(of(b"put 1 0 9 2\r\n1234stats\r\n"), [Err(Fault::ExpectedCrlf), stats.clone()]);
        // The body of a put that was refused is read as commands.
        let read = of(b"put 1 0 9 x\r\nstats\r\n\r\n");
        assert_eq!(read, [Err(Fault::BadFormat), stats.clone(), Err(Fault::UnknownCommand)]);
        // The body of a put with a key is skipped.
        assert_eq!(
            of(b"put-key a b 1 0 9 7\r\nstats\r\n\r\nquit\r\n"),
            [Err(Fault::BadFormat), Ok(Command::Quit)]
        );
        assert_eq!(of(b"a\nb\r\nstats\r\n"), [Err(Fault::UnknownCommand), stats]);
    }

    #[test]
    fn a_line_is_long_enough_or_too_long_by_one_byte() {
        let line = |verb: &str, bytes: usize| format!("{verb}{}\r\n", "x".repeat(bytes - verb.len() - 2));
        let faults = |text: String| of(text.as_bytes());
        assert_eq!(faults(line("", 224)), [Err(Fault::UnknownCommand)]);
        for bytes in [225, 226, 227, 5_000] {
            let then = line("", bytes) + "stats\r\n";
            let wanted = [Err(Fault::BadFormat), Ok(Command::Stats)];
            assert_eq!(faults(then), wanted, "{bytes} bytes");
        }
        // A line of a verb with a key may be longer. A key may not, which is another fault. The body of a put-key is never read as
        // commands, even if its line is too long.
        let key =
            |bytes: usize, rest: &str| format!("put-key {}{rest}\r\nquit\r\nstats\r\n", "k ".repeat(bytes));
        let then = [Err(Fault::BadFormat), Ok(Command::Stats)];
        for keys in [500, 508, 511, 512, 3_000] {
            assert_eq!(faults(key(keys, "0 0 60 4")), then, "{keys} keys");
            assert_eq!(faults(key(keys, "0 0 60 4x"))[1], Ok(Command::Quit), "{keys} keys");
        }
        let spaces = |bytes: usize| format!("delay-key k{}1s\r\n", " ".repeat(bytes - 15));
        assert_eq!(spaces(1_024).len(), 1_024);
        assert!(matches!(faults(spaces(1_024))[..], [Ok(Command::DelayKey { .. })]));
        assert_eq!(faults(spaces(1_025)), [Err(Fault::BadFormat)]);
    }

    #[test]
    fn a_body_that_is_only_announced_takes_little_memory() {
        let mut decoder = Decoder::new(16 << 20);
        assert_eq!(all(&mut decoder, b"put 1 0 9 16777216\r\nabc"), []);
        assert_eq!(decoder.body_bytes(), (16 << 20) + 2);
        let State::Body(body) = &decoder.state else { panic!("{decoder:?}") };
        assert!(body.bytes.capacity() <= BODY_BYTES_AT_FIRST);
    }

    #[test]
    fn a_body_that_has_room_is_not_moved() {
        let mut decoder = Decoder::new(16 << 20);
        decoder.make_room();
        assert_eq!(all(&mut decoder, b"put 1 0 9 1000000\r\nabc"), []);
        decoder.make_room();
        for _ in 0..9 {
            assert_eq!(all(&mut decoder, &[b'x'; 100_000]), []);
        }
        let events = all(&mut decoder, &[&[b'x'; 99_997][..], b"\r\n"].concat());
        let [Ok(Command::Put { body, .. })] = &events[..] else { panic!("{events:?}") };
        assert_eq!((body.len(), body.capacity()), (1_000_000, 1_000_002));
    }

    /// Lines that are commands, lines that are nearly commands, and bodies of allowed and of wrong lengths.
    fn said() -> impl Strategy<Value = Vec<u8>> {
        let word = prop::sample::select(vec![
            "put 1 0 9 3\r\nabc\r\n",
            "put 1 0 9 3\r\nabcd\r\n",
            "put 1 0 9 9\r\n123456789\r\n",
            "put 1 0 9 0\r\n\r\n",
            "put 1",
            "put-key k 1 1s 9 2\r\nab\r\n",
            "put-key k k 1 1s 9 2\r\nab\r\n",
            "put-key ü 4",
            "delay-key k 5",
            "stats",
            "reserve",
            "quit",
            "delete 7",
            "\r",
            "\n",
            "\r\n",
            "\r\r\n",
            " ",
            "\0",
            "use a",
            "peek-ready",
        ]);
        let word = word.prop_map(|text| text.as_bytes().to_vec());
        let long = (200_usize..1_100).prop_map(|bytes| vec![b'x'; bytes]);
        let long_key =
            (200_usize..1_100).prop_map(|bytes| [b"peek-key ".to_vec(), vec![b'x'; bytes]].concat());
        let long_put = (200_usize..1_100).prop_map(|bytes| {
            [b"put-key ".to_vec(), vec![b' '; bytes], b"1 2 3\r 4 5 2\r\nabc".to_vec()].concat()
        });
        let any = prop::collection::vec(any::<u8>(), 0..20);
        let part = prop_oneof![8 => word, 2 => Just(b"\r\n".to_vec()), 1 => long, 1 => long_key, 1 => long_put, 1 => any];
        prop::collection::vec(part, 0..30).prop_map(|parts| parts.concat())
    }

    proptest! {
        /// The events do not depend on how the bytes are cut into packets, and no input panics.
        #[test]
        fn packets_make_no_difference(text in said(), cuts in prop::collection::vec(0_usize..300, 0..40)) {
            let whole = of(&text);
            let (mut decoder, mut rest, mut events) = (Decoder::new(8), &text[..], Vec::new());
            for cut in cuts {
                let (packet, after) = rest.split_at(cut.min(rest.len()));
                events.extend(all(&mut decoder, packet));
                rest = after;
            }
            events.extend(all(&mut decoder, rest));
            prop_assert_eq!(&events, &whole);
            let (mut decoder, mut events) = (Decoder::new(8), Vec::new());
            for byte in &text {
                events.extend(all(&mut decoder, &[*byte]));
            }
            prop_assert_eq!(events, whole);
        }
    }
}
