//! Counts of commands and refusals since the start, and the number of clients.

use std::sync::atomic::{AtomicU64, Ordering};

use tickwheel_api::beanstalk::{Command, Fault, Reply};

/// The counted commands, in the order of `stats`.
const VERBS: [&str; 23] = [
    "put",
    "peek",
    "peek-ready",
    "peek-delayed",
    "peek-buried",
    "reserve",
    "reserve-with-timeout",
    "delete",
    "release",
    "use",
    "watch",
    "ignore",
    "bury",
    "kick",
    "touch",
    "stats",
    "stats-job",
    "stats-tube",
    "list-tubes",
    "list-tube-used",
    "list-tubes-watched",
    "pause-tube",
    // All commands that beanstalkd does not count.
    "other",
];

/// The index of `put`.
const PUT: usize = 0;

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
    verbs: [AtomicU64; VERBS.len()],
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
    /// Counts a command.
    pub(super) fn count(&self, command: &Command) {
        self.verbs[verb(command)].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a put that was refused while it was read.
    pub(super) fn count_put(&self) {
        self.verbs[PUT].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an answer, if it is a refusal.
    pub(super) fn count_reply(&self, reply: &Reply<'_>) {
        let refusal = match reply {
            Reply::Fault(Fault::BadFormat) => 0,
            Reply::Fault(Fault::UnknownCommand | Fault::Http) => 1,
            Reply::Fault(Fault::JobTooBig) => 2,
            Reply::Fault(Fault::ExpectedCrlf) => 3,
            Reply::Draining => 4,
            Reply::OutOfMemory => 5,
            Reply::InternalError => 6,
            _ => return,
        };
        self.refusals[refusal].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection that was closed because of the limit.
    pub(super) fn turn_away(&self) {
        self.refusals[REFUSALS.len() - 1].fetch_add(1, Ordering::Relaxed);
    }

    /// The commands of beanstalkd and their counts.
    pub(super) fn verbs(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.all_verbs().take(VERBS.len() - 1)
    }

    /// The commands of beanstalkd and their counts, and at the end the sum of the others.
    pub(crate) fn all_verbs(&self) -> impl Iterator<Item = (&'static str, u64)> {
        named(&VERBS, &self.verbs)
    }

    /// Each refusing answer and its count.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = (&'static str, u64)> {
        named(&REFUSALS, &self.refusals)
    }

    /// The number of open connections.
    pub(crate) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }
}

fn named(names: &'static [&'static str], counts: &[AtomicU64]) -> impl Iterator<Item = (&'static str, u64)> {
    names.iter().zip(counts).map(|(name, count)| (*name, count.load(Ordering::Relaxed)))
}

/// The index at which a command is counted.
fn verb(command: &Command) -> usize {
    let name = match command {
        Command::Put { .. } => "put",
        Command::Peek(_) => "peek",
        Command::PeekReady => "peek-ready",
        Command::PeekDelayed => "peek-delayed",
        Command::PeekBuried => "peek-buried",
        Command::Reserve { timeout_s: None } => "reserve",
        Command::Reserve { timeout_s: Some(_) } => "reserve-with-timeout",
        Command::Delete(_) => "delete",
        Command::Release { .. } => "release",
        Command::Use(_) => "use",
        Command::Watch(_) => "watch",
        Command::Ignore(_) => "ignore",
        Command::Bury { .. } => "bury",
        Command::Kick(_) => "kick",
        Command::Touch(_) => "touch",
        Command::Stats => "stats",
        Command::StatsJob(_) => "stats-job",
        Command::StatsTube(_) => "stats-tube",
        Command::ListTubes => "list-tubes",
        Command::ListTubeUsed => "list-tube-used",
        Command::ListTubesWatched => "list-tubes-watched",
        Command::PauseTube { .. } => "pause-tube",
        Command::PutKey { .. }
        | Command::ReserveBatch { .. }
        | Command::ReserveJob(_)
        | Command::DeleteKey(_)
        | Command::DelayKey { .. }
        | Command::PeekKey(_)
        | Command::KickJob(_)
        | Command::StatsKey(_)
        | Command::Quit => "other",
    };
    VERBS.iter().position(|known| *known == name).expect("each verb has its place")
}

#[cfg(test)]
mod tests {
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
