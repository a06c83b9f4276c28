//! The protocol of beanstalkd: reads commands from bytes and writes answers as bytes, without sockets or clocks.
//!
//! The protocol is that of beanstalkd 1.12. This parser is stricter only where beanstalkd accepts wrong input by mistake: `kick` takes no
//! sign, no text after the digits and no number beyond 32 bits, and `reserve-with-timeout` takes no text after the digits. The verbs with a
//! key are our own. Beanstalkd 1.12 refuses all of them, so a client can try one and use another verb if it is refused.
//!
//! ```
//! use tickwheel_api::beanstalk::{Command, Decoder, Reply};
//!
//! let mut decoder = Decoder::new(65_535);
//! let mut input = &b"put 10 0 60 5\r\nhello\r\nlist-tube-used\r\n"[..];
//! let Some(Ok(Command::Put { terms, body })) = decoder.next(&mut input) else { panic!("a put") };
//! assert_eq!((terms.priority, &body[..]), (10, &b"hello"[..]));
//! assert_eq!(decoder.next(&mut input), Some(Ok(Command::ListTubeUsed)));
//! assert_eq!(decoder.next(&mut input), None, "all of it is read");
//!
//! let mut answers = Vec::new();
//! Reply::Inserted(1).write(&mut answers);
//! assert_eq!(answers, b"INSERTED 1\r\n");
//! ```

mod command;
mod decoder;
mod line;
mod reply;
mod terms;
mod words;
mod yaml;

pub use command::{Command, Event, Fault};
pub use decoder::Decoder;
pub use reply::Reply;
pub use terms::{JobTerms, Tube, When};
pub use yaml::{YamlList, YamlMap};

/// Maximum length of a line, CR LF included (bytes).
pub const LINE_BYTES_MAX: usize = 224;
/// Maximum length of a line whose verb takes a key, CR LF included (bytes).
pub const LONG_LINE_BYTES_MAX: usize = 1_024;
/// Maximum length of the name of a tube (bytes).
pub const TUBE_BYTES_MAX: usize = 200;
