//! What the clients saw.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Instant, SystemTime};

/// Calls and their answers, by key. All clients write into it.
#[derive(Debug, Default)]
pub(crate) struct History {
    keys: Mutex<BTreeMap<String, Story>>,
    in_flight: AtomicUsize,
}

/// What was seen of one key: puts in their order (a second one reschedules), then at most one cancel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Story {
    pub(crate) puts: Vec<PutSeen>,
    pub(crate) cancel: Cancel,
    pub(crate) deliveries: Vec<Delivery>,
}

/// A put. No two of one key name the same instant, so a delivery tells which put it is of.
#[derive(Clone, Debug)]
pub(crate) struct PutSeen {
    pub(crate) due_at_ms: i64,
    pub(crate) answer: PutAnswer,
    /// An answer was lost, so the put was sent again: it may have made a second task after the first was worked off.
    pub(crate) retried: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PutAnswer {
    /// Not there yet.
    None,
    Acknowledged {
        answered: Instant,
        answered_ms: i64,
    },
    /// A worker had the task of the put before. With a lost answer on the way, it may have been this put's.
    Leased,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Cancel {
    #[default]
    None,
    /// Sent, and not answered: it may have taken effect.
    Sent,
    /// `cancelled`, definite.
    Cancelled { answered: Instant, answered_ms: i64 },
    /// `not_found` after a lost answer: the first attempt did it.
    CancelledUnseen,
    /// `leased` or `done`: a delivery began first.
    TooLate,
}

#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    /// When the lease was asked for.
    pub(crate) asked: Instant,
    /// When its answer was there, by the wall clock.
    pub(crate) received_ms: i64,
    pub(crate) due_at_ms: i64,
    pub(crate) payload: Vec<u8>,
    pub(crate) ack: Ack,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ack {
    /// Not answered, or the lease had ended: the task comes again.
    None,
    Acked {
        answered: Instant,
    },
    /// `expired` after a lost answer: the first attempt did it, or another worker got the task and acks it.
    AckedUnseen,
}

impl History {
    pub(crate) fn note<T>(&self, key: &str, write: impl FnOnce(&mut Story) -> T) -> T {
        write(self.lock().entry(key.to_owned()).or_default())
    }

    pub(crate) fn stories(&self) -> BTreeMap<String, Story> {
        self.lock().clone()
    }

    /// Keys that still have to be delivered and acked.
    pub(crate) fn open(&self) -> usize {
        let is_open = |story: &&Story| story.owed().is_some_and(|due_at_ms| !story.is_settled(due_at_ms));
        self.lock().values().filter(is_open).count()
    }

    /// Makes a call that changes something and counts it as under way as long as it is.
    pub(crate) fn call<T>(&self, call: impl FnOnce() -> T) -> T {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let answer = call();
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
        answer
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Story>> {
        self.keys.lock().expect("no thread panics while it writes a story")
    }
}

impl Story {
    /// The instant of the task that the server owes a delivery of: it took the put, and no cancel can have ended it.
    pub(crate) fn owed(&self) -> Option<i64> {
        if !matches!(self.cancel, Cancel::None | Cancel::TooLate) {
            return None;
        }
        let last = self.puts.last()?;
        match last.answer {
            PutAnswer::Acknowledged { .. } => Some(last.due_at_ms),
            PutAnswer::None => None,
            // The one before, then, unless a lost answer leaves open which of the two.
            PutAnswer::Leased if last.retried => None,
            PutAnswer::Leased => self.puts.iter().rev().nth(1).map(|put| put.due_at_ms),
        }
    }

    /// Whether the task of this instant is worked off.
    fn is_settled(&self, due_at_ms: i64) -> bool {
        let mut of_it = self.deliveries.iter().filter(|delivery| delivery.due_at_ms == due_at_ms);
        of_it.any(|delivery| delivery.ack != Ack::None)
    }
}

/// The wall clock, ms since 1970.
pub(crate) fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("the clock is set");
    i64::try_from(since.as_millis()).expect("a sane clock")
}
