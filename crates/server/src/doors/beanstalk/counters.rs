//! Counts of commands and refusals since the start, and the number of clients.

use std::sync::atomic::{AtomicU64, Ordering};

use tickwheel_api::beanstalk::{Command, Reply};

/// Refusing answers, and refused connections.
const REFUSALS: [&str; 8] = [
    "BAD_FORMAT",
    "UNKNOWN_COMMAND",
    "JOB_TOO_BIG",
    "EXPECTED_CRLF",
    "DRAINING",
    "OUT_OF_MEMORY",
    "INTERNAL_ERROR",
    // A connection above the limit, which was closed.
    "closed",
];

/// The counts of all connections together.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// A count for each verb of [`Command::COUNTED`], and one for all other commands.
    verbs: [AtomicU64; Command::COUNTED.len() + 1],
    refusals: [AtomicU64; REFUSALS.len()],
    pub(super) connections: AtomicU64,
    pub(super) connections_total: AtomicU64,
    pub(super) producers: AtomicU64,
    pub(super) workers: AtomicU64,
    pub(super) waiting: AtomicU64,
}

/// Counts one thing until this is dropped.
#[derive(Debug)]
pub(super) struct Counted<'a>(&'a AtomicU64);

impl<'a> Counted<'a> {
    pub(super) fn new(count: &'a AtomicU64) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Counters {
    /// Counts a command with this verb.
    pub(super) fn count(&self, verb: &str) {
        let known = Command::COUNTED.iter().position(|known| *known == verb);
        self.verbs[known.unwrap_or(Command::COUNTED.len())].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an answer, if it is a refusal.
    pub(super) fn count_reply(&self, reply: &Reply<'_>) {
        if let Some(refusal) = REFUSALS.iter().position(|word| *word == reply.word()) {
            self.refusals[refusal].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a connection that was closed because of the limit.
    pub(super) fn turn_away(&self) {
        self.refusals[REFUSALS.len() - 1].fetch_add(1, Ordering::Relaxed);
    }

    /// The commands of beanstalkd and their counts.
    pub(super) fn verbs(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.all_verbs().take(Command::COUNTED.len())
    }

    /// The commands of beanstalkd and their counts, and at the end the sum of the others.
    pub(crate) fn all_verbs(&self) -> impl Iterator<Item = (&'static str, u64)> {
        named(Command::COUNTED.iter().chain(&["other"]), &self.verbs)
    }

    /// Each refusing answer and its count.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = (&'static str, u64)> {
        named(REFUSALS.iter(), &self.refusals)
    }

    /// The number of open connections.
    pub(crate) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }
}

fn named(
    names: impl Iterator<Item = &'static &'static str>,
    counts: &[AtomicU64],
) -> impl Iterator<Item = (&'static str, u64)> {
    names.zip(counts).map(|(name, count)| (*name, count.load(Ordering::Relaxed)))
}

#[cfg(test)]
mod tests {
    use tickwheel_api::beanstalk::Fault;

    use super::*;

    #[test]
    fn each_refusal_has_its_own_count() {
        let counters = Counters::default();
        let faults = [Fault::BadFormat, Fault::UnknownCommand, Fault::JobTooBig, Fault::ExpectedCrlf]
            .map(Reply::Fault);
        for reply in faults.into_iter().chain([Reply::Draining, Reply::OutOfMemory, Reply::InternalError]) {
            let mut word = Vec::new();
            reply.write(&mut word);
            let before: Vec<u64> = counters.refusals().map(|(_, count)| count).collect();
            counters.count_reply(&reply);
            let counted: Vec<&str> = counters
                .refusals()
                .zip(before)
                .filter(|((_, now), before)| now > before)
                .map(|((word, _), _)| word)
                .collect();
            assert_eq!(counted, [String::from_utf8(word).expect("text").trim_end()]);
        }
        counters.count_reply(&Reply::NotFound);
        assert_eq!(counters.refusals().map(|(_, count)| count).sum::<u64>(), 7, "that is an answer");
    }
}
