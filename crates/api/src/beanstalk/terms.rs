//! The values that commands name: tubes, times and the terms of a job.

use std::fmt;

use super::TUBE_BYTES_MAX;

/// The name of a tube: 1 to 200 bytes of `A-Z a-z 0-9 - + / ; . $ _ ( )`, where the first one is not `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tube(String);

impl Tube {
    /// The tube of this name; `None` if the name is not allowed.
    pub fn new(name: &[u8]) -> Option<Self> {
        let is_known = |byte: &u8| byte.is_ascii_alphanumeric() || b"-+/;.$_()".contains(byte);
        let fits = (1..=TUBE_BYTES_MAX).contains(&name.len());
        let is_name = fits && name[0] != b'-' && name.iter().all(is_known);
        is_name.then(|| Self(String::from_utf8(name.to_vec()).expect("it is ASCII")))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tube {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// When a job becomes ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// This many milliseconds after the command was read.
    AfterMs(u64),
    /// At this instant, milliseconds since 1970.
    AtMs(i64),
}

/// The terms of a job that is put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobTerms {
    /// The key, for `put-key`: a live job with that key is replaced.
    pub key: Option<String>,
    /// Among ready jobs, the one with the smallest number goes first.
    pub priority: u32,
    /// When the job becomes ready.
    pub when: When,
    /// How long a worker may hold the job (seconds, at least 1).
    pub ttr_s: u32,
}
