//! Answers to commands.

use std::fmt;
use std::io::Write;

use super::command::Fault;
use super::terms::Tube;

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
            out.extend_from_slice(body);
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Appends the answer without its body. Returns the body, if there is one; the caller writes it after the head, followed by CR LF.
    #[must_use]
    pub fn write_head(&self, out: &mut Vec<u8>) -> Option<&[u8]> {
        let mut write = |rest: fmt::Arguments<'_>| {
            out.write_fmt(format_args!("{}{rest}\r\n", self.word())).expect("memory takes all");
        };
        match *self {
            Self::Reserved { id, body } | Self::Found { id, body } => {
                write(format_args!(" {id} {}", body.len()));
                return Some(body);
            }
            Self::Ok(text) => {
                write(format_args!(" {}", text.len()));
                return Some(text);
            }
            Self::Inserted(number) | Self::Replaced(number) | Self::Kicked(number) => {
                write(format_args!(" {number}"));
            }
            Self::ReservedBatch(count) | Self::Watching(count) => write(format_args!(" {count}")),
            Self::Using(tube) => write(format_args!(" {tube}")),
            _ => write(format_args!("")),
        }
        None
    }

    /// The first word of the answer.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Inserted(_) => "INSERTED",
            Self::Replaced(_) => "REPLACED",
            Self::Using(_) => "USING",
            Self::Reserved { .. } | Self::IsReserved => "RESERVED",
            Self::ReservedBatch(_) => "RESERVED-BATCH",
            Self::DeadlineSoon => "DEADLINE_SOON",
            Self::TimedOut => "TIMED_OUT",
            Self::Deleted => "DELETED",
            Self::Delayed => "DELAYED",
            Self::Released => "RELEASED",
            Self::Buried => "BURIED",
            Self::Touched => "TOUCHED",
            Self::Watching(_) => "WATCHING",
            Self::NotIgnored => "NOT_IGNORED",
            Self::Found { .. } => "FOUND",
            Self::Kicked(_) | Self::KickedOne => "KICKED",
            Self::Paused => "PAUSED",
            Self::NotFound => "NOT_FOUND",
            Self::Ok(_) => "OK",
            Self::Draining => "DRAINING",
            Self::OutOfMemory => "OUT_OF_MEMORY",
            Self::InternalError => "INTERNAL_ERROR",
            Self::Fault(Fault::BadFormat) => "BAD_FORMAT",
            Self::Fault(Fault::UnknownCommand | Fault::Http) => "UNKNOWN_COMMAND",
            Self::Fault(Fault::JobTooBig) => "JOB_TOO_BIG",
            Self::Fault(Fault::ExpectedCrlf) => "EXPECTED_CRLF",
        }
    }
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
