//! Answers to commands.

use std::io::Write;

use super::command::{Fault, Tube};

/// One answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply<'a> {
    /// A job was put. The number is its id.
    Inserted(u64),
    /// The live job with the key has new terms and a new body. The number is its id.
    Replaced(u64),
    /// The used tube.
    Using(&'a Tube),
    /// A job for a worker.
    Reserved {
        /// The id of the job.
        id: u64,
        /// The body of the job.
        body: &'a [u8],
    },
    /// The number of jobs that follow, each as [`Reserved`](Self::Reserved).
    ReservedBatch(usize),
    /// A worker has the job.
    IsReserved,
    /// One of the connection's own jobs has less than a second left.
    DeadlineSoon,
    /// No job became ready in time.
    TimedOut,
    /// The job is removed.
    Deleted,
    /// The job has its new due time.
    Delayed,
    /// The job was given back.
    Released,
    /// The job is buried.
    Buried,
    /// The worker has more time for the job.
    Touched,
    /// The number of watched tubes.
    Watching(usize),
    /// The tube is the last watched one, so it stays watched.
    NotIgnored,
    /// The job that a `peek` found.
    Found {
        /// The id of the job.
        id: u64,
        /// The body of the job.
        body: &'a [u8],
    },
    /// The number of jobs that were kicked.
    Kicked(u64),
    /// The job was kicked.
    KickedOne,
    /// The tube is paused.
    Paused,
    /// There is no such job or tube.
    NotFound,
    /// YAML text with figures or names.
    Ok(&'a [u8]),
    /// The server or the tube takes no new jobs.
    Draining,
    /// The disk, the tube or a limit of the server is full.
    OutOfMemory,
    /// The server made a mistake.
    InternalError,
    /// The client sent bytes that are not a command.
    Fault(Fault),
}

impl Reply<'_> {
    /// Appends the answer to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        if let Some(body) = self.write_head(out) {
            ended(out, body);
        }
    }

    /// Appends the answer without its body. Returns the body, if there is one; the caller writes it after the head, followed by CR LF.
    #[must_use]
    pub fn write_head(&self, out: &mut Vec<u8>) -> Option<&[u8]> {
        match *self {
            Self::Reserved { id, body } => {
                line(out, format_args!("RESERVED {id} {}", body.len()));
                return Some(body);
            }
            Self::Found { id, body } => {
                line(out, format_args!("FOUND {id} {}", body.len()));
                return Some(body);
            }
            Self::Ok(text) => {
                line(out, format_args!("OK {}", text.len()));
                return Some(text);
            }
            Self::Inserted(id) => line(out, format_args!("INSERTED {id}")),
            Self::Replaced(id) => line(out, format_args!("REPLACED {id}")),
            Self::Using(tube) => line(out, format_args!("USING {tube}")),
            Self::ReservedBatch(count) => line(out, format_args!("RESERVED-BATCH {count}")),
            Self::IsReserved => word(out, "RESERVED"),
            Self::DeadlineSoon => word(out, "DEADLINE_SOON"),
            Self::TimedOut => word(out, "TIMED_OUT"),
            Self::Deleted => word(out, "DELETED"),
            Self::Delayed => word(out, "DELAYED"),
            Self::Released => word(out, "RELEASED"),
            Self::Buried => word(out, "BURIED"),
            Self::Touched => word(out, "TOUCHED"),
            Self::Watching(count) => line(out, format_args!("WATCHING {count}")),
            Self::NotIgnored => word(out, "NOT_IGNORED"),
            Self::Kicked(count) => line(out, format_args!("KICKED {count}")),
            Self::KickedOne => word(out, "KICKED"),
            Self::Paused => word(out, "PAUSED"),
            Self::NotFound => word(out, "NOT_FOUND"),
            Self::Draining => word(out, "DRAINING"),
            Self::OutOfMemory => word(out, "OUT_OF_MEMORY"),
            Self::InternalError => word(out, "INTERNAL_ERROR"),
            Self::Fault(Fault::BadFormat) => word(out, "BAD_FORMAT"),
            Self::Fault(Fault::UnknownCommand | Fault::Http) => word(out, "UNKNOWN_COMMAND"),
            Self::Fault(Fault::JobTooBig) => word(out, "JOB_TOO_BIG"),
            Self::Fault(Fault::ExpectedCrlf) => word(out, "EXPECTED_CRLF"),
        }
        None
    }
}

fn word(out: &mut Vec<u8>, word: &str) {
    ended(out, word.as_bytes());
}

fn line(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("memory takes all");
    ended(out, b"");
}

fn ended(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_lines_and_some_have_a_body() {
        let mut out = Vec::new();
        Reply::Reserved { id: 7, body: b"a\r\nb" }.write(&mut out);
        Reply::Ok(b"---\n").write(&mut out);
        Reply::Kicked(3).write(&mut out);
        Reply::KickedOne.write(&mut out);
        Reply::Fault(Fault::ExpectedCrlf).write(&mut out);
        assert_eq!(
            out,
            b"RESERVED 7 4\r\na\r\nb\r\nOK 4\r\n---\n\r\nKICKED 3\r\nKICKED\r\nEXPECTED_CRLF\r\n"
        );
    }
}
