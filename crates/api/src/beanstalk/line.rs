//! The parser of one line, without its CR LF.

use super::command::{Command, Fault, VERBS};
use super::terms::JobTerms;
use super::words::{Argument, Words};

/// The meaning of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Command),
    /// A put. Its body follows: `bytes` bytes, and CR LF.
    BodyFollows {
        terms: JobTerms,
        bytes: u32,
    },
    /// A refused `put-key`. Its body follows (`bytes` bytes, and CR LF) and is skipped, so that it is not read as commands. Beanstalkd has
    /// no such verb, so we can choose this rule.
    Refused {
        bytes: u32,
    },
}

/// Whether the line may be longer than a line of beanstalkd: its verb takes a key, and beanstalkd has no such verb.
pub(super) fn may_be_long(line: &[u8]) -> bool {
    let verb = line.split(|byte| *byte == b' ').next().unwrap_or_default();
    verb.len() < line.len()
        && verb.ends_with(b"-key")
        && matches!(verb, b"put-key" | b"delete-key" | b"delay-key" | b"peek-key" | b"stats-key")
}

pub(super) fn read(line: &[u8]) -> Result<Line, Fault> {
    match read_whole(line) {
        Err(fault) => body_of_refused(line).map(|bytes| Line::Refused { bytes }).ok_or(fault),
        read => read,
    }
}

fn body_of_refused(line: &[u8]) -> Option<u32> {
    let mut ending = Ending::of(line)?;
    ending.read(line);
    ending.body_bytes()
}

/// The end of a `put-key` line that is otherwise wrong. Keys are often made of user input. A bad key must not lead to a body that is read as
/// commands, so the last word of the line is taken as the length of the body.
#[derive(Debug)]
pub(super) struct Ending {
    /// Number of spaces before the last word.
    spaces: usize,
    /// Number of spaces after the last word.
    trailing: usize,
    /// The last word, if it is a number that fits into 32 bits.
    last: Option<u32>,
}

impl Ending {
    /// The ending of the line that begins with `begins`; `None`: the line is not a `put-key`.
    pub(super) fn of(begins: &[u8]) -> Option<Self> {
        begins.starts_with(b"put-key ").then_some(Self { spaces: 0, trailing: 0, last: None })
    }

    /// Reads the next bytes of the line.
    pub(super) fn read(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == b' ' {
                self.trailing += 1;
                continue;
            }
            if self.trailing > 0 {
                self.spaces += std::mem::take(&mut self.trailing);
                self.last = Some(0);
            }
            let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'));
            self.last =
                self.last.zip(digit).and_then(|(last, digit)| last.checked_mul(10)?.checked_add(digit));
        }
    }

    /// Length of the body (bytes); `None`: the line has too few words, or its last word is not a number.
    pub(super) fn body_bytes(&self) -> Option<u32> {
        self.last.filter(|_| self.spaces >= PUT_KEY_WORDS)
    }
}

/// `put-key` has five arguments: key, priority, time, ttr and length of the body.
const PUT_KEY_WORDS: usize = 5;

fn read_whole(line: &[u8]) -> Result<Line, Fault> {
    if line.contains(&0) {
        return Err(Fault::BadFormat);
    }
    // Beanstalkd compares only the beginning of this verb.
    if line.starts_with(b"quit") {
        return Ok(Line::Whole(Command::Quit));
    }
    let verb_ends = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
    let (verb, rest) = line.split_at(verb_ends);
    let mut words = Words(rest);
    let body_follows = |(terms, bytes)| Line::BodyFollows { terms, bytes };
    let read = match verb {
        b"put" => words.job(None).map(body_follows),
        b"put-key" => String::read(&mut words).and_then(|key| words.job(Some(key))).map(body_follows),
        _ => {
            if verb == b"pause-tube" {
                // The only verb that allows several spaces before the name of a tube.
                words.skip_spaces();
            }
            Command::read(verb, &mut words).filter(|_| words.0.is_empty()).map(Line::Whole)
        }
    };
    let is_known = || VERBS.iter().any(|known| known.as_bytes() == verb);
    read.ok_or_else(|| if !rest.is_empty() && is_known() { Fault::BadFormat } else { unknown(line) })
}

/// Verbs of which beanstalkd compares only the beginning. It answers `BAD_FORMAT` if the rest of the line is wrong.
const BEGINNINGS: [&[u8]; 8] = [
    b"reserve",
    b"peek-ready",
    b"peek-delayed",
    b"peek-buried",
    b"stats",
    b"list-tubes",
    b"list-tube-used",
    b"pause-tube",
];

fn unknown(line: &[u8]) -> Fault {
    let host = line.get(..5).is_some_and(|begins| begins.eq_ignore_ascii_case(b"host:"));
    if host || line.ends_with(b" HTTP/1.1") || line.ends_with(b" HTTP/1.0") {
        return Fault::Http;
    }
    match BEGINNINGS.iter().any(|verb| line.starts_with(verb)) {
        true => Fault::BadFormat,
        false => Fault::UnknownCommand,
    }
}

#[cfg(test)]
mod tests {
    use super::super::terms::{Tube, When};
    use super::*;

    fn fault(line: &str) -> Option<Fault> {
        read(line.as_bytes()).err()
    }

    fn command(line: &str) -> Command {
        match read(line.as_bytes()) {
            Ok(Line::Whole(command)) => command,
            other => panic!("{line}: {other:?}"),
        }
    }

    /// Each answer was compared with beanstalkd 1.12.
    #[test]
    fn what_beanstalkd_refuses_is_refused_by_the_same_word() {
        for line in [
            "reservex",
            "reserve ",
            "stats x",
            "statsfoo",
            "stats-jobx 1",
            "list-tubesx",
            "list-tube-usedx",
            "peek-readyx",
            "peek-ready x",
            "pause-tubex",
            "pause-tube default",
            "pause-tube default 1 ",
            "use a b",
            "use  a",
            "use -a",
            "use a ",
            "watch ",
            "delete 1 ",
            "delete 1 2",
            "delete x",
            "delete -1",
            "delete +1",
            "delete 18446744073709551616",
            "touch 1 1",
            "release 1 0",
            "release 1 0 0 ",
            "bury 1",
            "bury 1 0 0",
            "put 0 0 1 1 ",
            "put 0 0 1",
            "put 0 0 1 -1",
            "put 0 0 1 0x",
            "put 4294967296 0 1 1",
            "put 1 2 3 4 5",
            "put 0 0 1 1\n",
            "ignore x y",
            "reserve-with-timeout",
            "reserve-job",
            "reserve-job 5 ",
            "stats-tube",
            "stats-tube ",
            "stats-tube x y",
            "stats-tube -x",
            "stats-job",
            "stats-job x",
            "list-tubes ",
            "use a\nb",
            "use a\0b",
        ] {
            assert_eq!(fault(line), Some(Fault::BadFormat), "{line:?}");
        }
        for line in [
            "watch",
            "use",
            "ignore",
            "put",
            "delete",
            "release",
            "bury",
            "touch",
            "peek",
            "kick",
            "kick-job",
            "PUT 0 0 1 1",
            " stats",
            "",
            "peekx",
            "delete\t1",
            "put\t0 0 1 0",
        ] {
            assert_eq!(fault(line), Some(Fault::UnknownCommand), "{line:?}");
        }
    }

    /// A web page can make a browser send a request, but not without a request line and a `Host` header.
    #[test]
    fn http_is_known_by_its_lines() {
        for line in ["POST / HTTP/1.1", "GET /x?y HTTP/1.0", "Host: 127.0.0.1:11300", "host:a"] {
            assert_eq!(fault(line), Some(Fault::Http), "{line}");
        }
        assert_eq!(fault("POST /"), Some(Fault::UnknownCommand));
    }

    #[test]
    fn where_beanstalkd_is_lax_by_mistake_it_is_not_followed() {
        for line in [
            "kick +1",
            "kick 1x",
            "kick 99999999999",
            "reserve-with-timeout 0x",
            "reserve-with-timeout -1x",
            "reserve-with-timeout 0 ",
        ] {
            assert_eq!(fault(line), Some(Fault::BadFormat), "{line:?}");
        }
    }

    #[test]
    fn what_it_takes_is_taken() {
        let tube = |name: &str| Tube::new(name.as_bytes()).expect(name);
        for (line, wanted) in [
            ("reserve", Command::Reserve),
            ("reserve-with-timeout  0", Command::ReserveWithTimeout(Some(0))),
            ("reserve-with-timeout -1", Command::ReserveWithTimeout(None)),
            ("delete  01", Command::Delete(1)),
            ("delete 18446744073709551615", Command::Delete(u64::MAX)),
            ("release 1 4294967295 7", Command::Release { id: 1, priority: u32::MAX, delay_s: 7 }),
            ("bury  1  0", Command::Bury { id: 1, priority: 0 }),
            ("use a-+/;.$_()", Command::Use(tube("a-+/;.$_()"))),
            ("pause-tube  default  1", Command::PauseTube { tube: tube("default"), pause_s: 1 }),
            ("peek-buried", Command::PeekBuried),
            ("quit", Command::Quit),
            ("quit now", Command::Quit),
            ("quitx", Command::Quit),
            ("kick 5", Command::Kick(5)),
            ("stats", Command::Stats),
        ] {
            assert_eq!(command(line), wanted, "{line}");
        }
        let longest = "t".repeat(200);
        assert_eq!(command(&format!("watch {longest}")), Command::Watch(tube(&longest)));
        assert_eq!(fault(&format!("watch {longest}t")), Some(Fault::BadFormat));
        let put = read(b"put  0  1  0  65535");
        let terms = JobTerms { key: None, priority: 0, when: When::AfterMs(1_000), ttr_s: 1 };
        assert_eq!(put, Ok(Line::BodyFollows { terms, bytes: 65_535 }), "a ttr of 0 is 1");
    }

    #[test]
    fn a_put_key_that_is_refused_says_how_long_its_body_is() {
        let long = "k".repeat(257);
        for refused in [
            "a b 0 60 7",
            "a b 0 0 60 00000000000000007",
            "a b 0 0 60 7",
            "ü 0 0 60 7",
            "a\0b 0 0 60 7",
            " 0 0 60 7",
            "a 0 0 60  7 ",
            &format!("{long} 0 0 60 7"),
        ] {
            let read = read(format!("put-key {refused}").as_bytes());
            assert_eq!(read, Ok(Line::Refused { bytes: 7 }), "{refused}");
        }
        for nothing in [
            "put-key a",
            "put-key a 0 0 60 x",
            "put-key a 0 0 60 4294967296",
            "put-key a b 0 0 60 00000000001x",
            "put-key ",
            "delay-key a b 7",
            "put-key a 0 0 60",
        ] {
            assert_eq!(fault(nothing), Some(Fault::BadFormat), "{nothing}");
        }
    }

    #[test]
    fn verbs_with_a_key_take_times_of_every_form() {
        let when = |text: &str| match read(format!("put-key order:1 5 {text} 60 2").as_bytes()) {
            Ok(Line::BodyFollows { terms, bytes: 2 }) => {
                assert_eq!((terms.key.as_deref(), terms.priority, terms.ttr_s), (Some("order:1"), 5, 60));
                Some(terms.when)
            }
            Ok(Line::Refused { bytes: 2 }) => None,
            other => panic!("{other:?}"),
        };
        assert_eq!(when("3"), Some(When::AfterMs(3_000)));
        assert_eq!(when("250ms"), Some(When::AfterMs(250)));
        assert_eq!(when("1.5s"), Some(When::AfterMs(1_500)));
        assert_eq!(when("15d"), Some(When::AfterMs(15 * 86_400_000)));
        assert_eq!(when("@1893456000000"), Some(When::AtMs(1_893_456_000_000)));
        for text in ["", "-1", "@", "@-1", "@1s", "3x", "4294967296"] {
            assert_eq!(when(text), None, "{text}");
        }
        assert_eq!(
            command("delay-key k 1h"),
            Command::DelayKey { key: "k".to_owned(), when: When::AfterMs(3_600_000) }
        );
        assert_eq!(command("delete-key order:1"), Command::DeleteKey("order:1".to_owned()));
        let ten = std::num::NonZeroU32::new(10).expect("not zero");
        assert_eq!(command("reserve-batch 10 0"), Command::ReserveBatch { max: ten, timeout_s: 0 });
        assert_eq!(fault("delete-key ü"), Some(Fault::BadFormat));
        assert_eq!(fault(&format!("peek-key {}", "k".repeat(257))), Some(Fault::BadFormat));
        assert_eq!(fault("delete-key"), Some(Fault::UnknownCommand));
        assert!(may_be_long(b"put-key k"), "and its line may be longer");
        assert!(!may_be_long(b"put-key") && !may_be_long(b"put 0 0"));
    }
}
