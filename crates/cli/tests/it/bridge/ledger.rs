//! [`Ledger`]: the messages that were published, and those that arrived.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The messages of a run. The publisher and the consumer write, and the judge reads.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    /// When each message was published first, and its delay.
    published: BTreeMap<u64, (Instant, Duration)>,
    /// The messages whose publication was confirmed.
    confirmed: BTreeSet<u64>,
    /// The messages that were published again, because no confirm came.
    again: BTreeSet<u64>,
    /// When each message arrived, and whether the broker marked it as delivered again.
    arrived: BTreeMap<u64, Vec<(Instant, bool)>>,
    strange: Vec<String>,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) published: usize,
    pub(crate) arrived: usize,
    pub(crate) early: usize,
    pub(crate) lost: usize,
    /// Copies that the broker delivered again, because the consumer could not ack them in time.
    pub(crate) of_consumer: usize,
    /// Copies of messages that the publisher sent again without an id.
    pub(crate) of_publisher: usize,
    /// All other copies. Each was on its way when a program was killed.
    pub(crate) of_kills: usize,
    pub(crate) strange: Vec<String>,
    late_p50: Duration,
    late_p99: Duration,
    late_max: Duration,
}

impl Ledger {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a message is about to be published.
    pub(crate) fn publish(&self, id: u64, delay: Duration) {
        let mut entries = self.entries();
        let entries = &mut *entries;
        match entries.published.entry(id) {
            Entry::Vacant(first) => {
                first.insert((Instant::now(), delay));
            }
            Entry::Occupied(_) => {
                entries.again.insert(id);
            }
        }
    }

    pub(crate) fn confirm(&self, id: u64) {
        self.entries().confirmed.insert(id);
    }

    pub(crate) fn arrive(&self, id: u64, redelivered: bool) {
        self.entries().arrived.entry(id).or_default().push((Instant::now(), redelivered));
    }

    /// Notes a message that is not one of the run, or is changed.
    pub(crate) fn strange(&self, text: String) {
        self.entries().strange.push(text);
    }

    /// Returns the numbers of messages that are confirmed and that arrived.
    pub(crate) fn so_far(&self) -> (usize, usize) {
        let entries = self.entries();
        (entries.confirmed.len(), entries.arrived.len())
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let entries = self.entries();
        let Entries { published, again, arrived, strange, .. } = &*entries;
        let (mut early, mut copies, mut late) = (0, [0; 3], Vec::new());
        for (id, times) in arrived {
            let (at, delay) = published[id];
            for (nth, (time, redelivered)) in times.iter().enumerate() {
                let took = time.duration_since(at);
                early += usize::from(took < delay);
                match (nth, redelivered) {
                    (0, _) => late.push(took.saturating_sub(delay)),
                    (_, true) => copies[0] += 1,
                    (_, false) if again.contains(id) => copies[1] += 1,
                    (_, false) => copies[2] += 1,
                }
            }
        }
        late.sort();
        let at = |percent: usize| late.get((late.len() * percent / 100).min(late.len().saturating_sub(1)));
        let [of_consumer, of_publisher, of_kills] = copies;
        Verdict {
            published: published.len(),
            arrived: arrived.len(),
            early,
            lost: published.keys().filter(|id| !arrived.contains_key(id)).count(),
            of_consumer,
            of_publisher,
            of_kills,
            strange: strange.clone(),
            late_p50: at(50).copied().unwrap_or_default(),
            late_p99: at(99).copied().unwrap_or_default(),
            late_max: late.last().copied().unwrap_or_default(),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { published, arrived, early, lost, of_consumer, of_publisher, of_kills, .. } = self;
        write!(
            f,
            "{published} published, {arrived} arrived, {early} early, {lost} lost, {} duplicates ({of_publisher} published again without a \
             confirm, {of_consumer} delivered again to the consumer, {of_kills} on their way when a program was killed); late: p50 {:?}, \
             p99 {:?}, most {:?}",
            of_consumer + of_publisher + of_kills,
            self.late_p50,
            self.late_p99,
            self.late_max,
        )
    }
}
