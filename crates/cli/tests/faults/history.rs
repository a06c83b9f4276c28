//! What the clients sent and what came back, kept by the process that is not killed.

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

/// A task's key; its queue is part of it.
pub(crate) type Key = Arc<str>;

/// How a key ends that stands for every key of its queue: the one of a lease whose answer was lost.
pub(crate) const ANY: &str = ":*";

/// The queue of a key, which is what stands before its first colon.
pub(crate) fn queue_of(key: &str) -> &str {
    key.split_once(':').map_or(key, |(queue, _)| queue)
}

pub(crate) fn any_of(queue: &str) -> String {
    format!("{queue}{ANY}")
}

/// What was asked about one key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    /// An upsert of the payload with this number.
    Put {
        due_ms: i64,
        number: u32,
    },
    /// A new instant for the same payload.
    Patch {
        due_ms: i64,
    },
    Cancel,
    /// The task of a delivery is done.
    Ack(Delivery),
    /// A look, or a line of a list.
    Get,
    /// The key's share of a lease call.
    Lease,
}

/// One task in a worker's hands: which of all deliveries it was, and what it carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Delivery {
    pub(crate) serial: u64,
    pub(crate) due_ms: i64,
    pub(crate) number: u32,
}

/// What was answered about one key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Created {
        version: u64,
    },
    /// A put or a patch of a live task.
    Changed {
        version: u64,
    },
    Cancelled,
    /// A worker has it.
    Leased,
    NotFound,
    Done,
    Acked,
    Expired,
    /// It is live, and this is what it looks like.
    Live {
        due_ms: i64,
        number: u32,
        version: u64,
    },
    Delivered(Delivery),
    /// A definite refusal, or never sent: without any effect.
    Refused,
}

/// One call about one key.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) key: Key,
    pub(crate) call: Call,
    pub(crate) sent: u64,
    /// When and what; none if nobody knows whether it happened.
    pub(crate) answer: Option<(u64, Answer)>,
}

/// Where an open call of a [`History`] stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open(usize);

/// All calls since the last [`take`](History::take), with numbers that say what was before what. All clients write into it.
pub(crate) struct History {
    now: Box<dyn Fn() -> u64 + Send + Sync>,
    ops: Mutex<Vec<Op>>,
    /// Broken promises that one answer alone shows.
    broken: Mutex<Vec<String>>,
    deliveries: AtomicU64,
    in_flight: AtomicUsize,
    acknowledged: AtomicUsize,
    /// Cancels that were answered within 5 ms of the due time.
    close_cancels: AtomicUsize,
    /// What the server's wall clock shows beyond ours, ms.
    wall_offset_ms: AtomicI64,
}

impl Default for History {
    fn default() -> Self {
        let ticks = AtomicU64::new(0);
        Self::new(move || ticks.fetch_add(1, Ordering::SeqCst))
    }
}

impl History {
    /// With numbers from `now`, which never gives one twice and never goes back.
    pub(crate) fn new(now: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self {
            now: Box::new(now),
            ops: Mutex::default(),
            broken: Mutex::default(),
            deliveries: AtomicU64::default(),
            in_flight: AtomicUsize::default(),
            acknowledged: AtomicUsize::default(),
            close_cancels: AtomicUsize::default(),
            wall_offset_ms: AtomicI64::default(),
        }
    }

    pub(crate) fn now(&self) -> u64 {
        (self.now)()
    }

    /// Writes down what is about to be sent.
    pub(crate) fn open(&self, key: &Key, call: Call) -> Open {
        let mut ops = self.ops();
        ops.push(Op { key: Arc::clone(key), call, sent: self.now(), answer: None });
        Open(ops.len() - 1)
    }

    /// Writes down what came back.
    pub(crate) fn close(&self, open: Open, answer: Answer) {
        self.acknowledged.fetch_add(usize::from(answer != Answer::Refused), Ordering::Relaxed);
        let at = self.now();
        self.ops()[open.0].answer = Some((at, answer));
    }

    /// Writes down what is known only once it came back: a line of a list, a task of a lease.
    pub(crate) fn saw(&self, key: &Key, call: Call, sent: u64, answer: Answer) {
        let at = self.now();
        self.ops().push(Op { key: Arc::clone(key), call, sent, answer: Some((at, answer)) });
    }

    pub(crate) fn break_promise(&self, what: String) {
        self.broken.lock().expect("pushing does not panic").push(what);
    }

    pub(crate) fn delivery(&self) -> u64 {
        self.deliveries.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a call as under way as long as it is.
    pub(crate) fn during<T>(&self, call: impl FnOnce() -> T) -> T {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let answer = call();
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
        answer
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::SeqCst)
    }

    pub(crate) fn acknowledged(&self) -> usize {
        self.acknowledged.load(Ordering::Relaxed)
    }

    pub(crate) fn note_close_cancel(&self) {
        self.close_cancels.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn close_cancels(&self) -> usize {
        self.close_cancels.load(Ordering::Relaxed)
    }

    /// The wall clock that the server goes by, ms since 1970.
    pub(crate) fn wall_ms(&self) -> i64 {
        wall_ms() + self.wall_offset_ms.load(Ordering::SeqCst)
    }

    pub(crate) fn set_wall_offset_ms(&self, offset_ms: i64) {
        self.wall_offset_ms.store(offset_ms, Ordering::SeqCst);
    }

    /// Everything so far, and begins anew. No call may be under way.
    pub(crate) fn take(&self) -> Vec<Op> {
        assert_eq!(self.in_flight(), 0, "calls are under way");
        std::mem::take(&mut self.ops())
    }

    pub(crate) fn take_broken(&self) -> Vec<String> {
        std::mem::take(&mut self.broken.lock().expect("pushing does not panic"))
    }

    fn ops(&self) -> MutexGuard<'_, Vec<Op>> {
        self.ops.lock().expect("no thread panics while it writes")
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>8} {:?}", self.sent, self.call)?;
        match &self.answer {
            Some((at, answer)) => write!(f, " -> {at} {answer:?}"),
            None => f.write_str(" -> no answer"),
        }
    }
}

/// Our wall clock, ms since 1970.
pub(crate) fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("the clock is set");
    i64::try_from(since.as_millis()).expect("a sane clock")
}
