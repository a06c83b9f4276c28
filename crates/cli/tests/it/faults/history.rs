//! The calls and answers of the clients. The process that keeps them is not killed.

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

/// A task's key; its queue is part of it.
pub(crate) type Key = Arc<str>;

/// The end of a key that stands for every key of its queue. It is for a lease whose answer was lost.
pub(crate) const ANY: &str = ":*";

/// The queue of a key: its part before the first colon.
pub(crate) fn queue_of(key: &str) -> &str {
    key.split_once(':').map_or(key, |(queue, _)| queue)
}

pub(crate) fn any_of(queue: &str) -> String {
    format!("{queue}{ANY}")
}

/// A call about one key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    /// An upsert of the payload with this number.
    Put {
        due_ms: i64,
        number: u32,
    },
    /// A patch to a new instant with the same payload.
    Patch {
        due_ms: i64,
    },
    Cancel,
    /// The ack of a delivery.
    Ack(Delivery),
    /// A get, or a line of a list.
    Get,
    /// The part of a lease call that concerns the key.
    Lease,
}

/// One delivery of a task to a worker: its number among all deliveries, and its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Delivery {
    pub(crate) serial: u64,
    pub(crate) due_ms: i64,
    pub(crate) number: u32,
}

/// An answer about one key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Created {
        version: u64,
    },
    /// The put or patch changed a live task.
    Changed {
        version: u64,
    },
    Cancelled,
    /// A worker has the task.
    Leased,
    NotFound,
    Done,
    Acked,
    Expired,
    /// The task is live, with this content.
    Live {
        due_ms: i64,
        number: u32,
        version: u64,
    },
    Delivered(Delivery),
    /// A definite refusal, or a call that was never sent. It has no effect.
    Refused,
}

/// One call about one key.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) key: Key,
    pub(crate) call: Call,
    pub(crate) sent: u64,
    /// The moment and the answer; `None` if the outcome is unknown.
    pub(crate) answer: Option<(u64, Answer)>,
}

/// The index of an open call in a [`History`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open(usize);

/// All calls since the last [`take`](History::take), with numbers that give their order in time. All clients write into
/// it.
pub(crate) struct History {
    now: Box<dyn Fn() -> u64 + Send + Sync>,
    ops: Mutex<Vec<Op>>,
    /// Broken promises that a single answer proves.
    broken: Mutex<Vec<String>>,
    deliveries: AtomicU64,
    in_flight: AtomicUsize,
    acknowledged: AtomicUsize,
    /// Cancels that were answered within 5 ms of the due time.
    close_cancels: AtomicUsize,
    /// The offset of the server's wall clock to the test's (ms).
    wall_offset_ms: AtomicI64,
}

impl Default for History {
    fn default() -> Self {
        let ticks = AtomicU64::new(0);
        Self::new(move || ticks.fetch_add(1, Ordering::SeqCst))
    }
}

impl History {
    /// Makes a history with numbers from `now`, which must rise with each call.
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

    /// Records a call that is about to be sent.
    pub(crate) fn open(&self, key: &Key, call: Call) -> Open {
        let mut ops = self.ops();
        ops.push(Op { key: Arc::clone(key), call, sent: self.now(), answer: None });
        Open(ops.len() - 1)
    }

    /// Records the answer.
    pub(crate) fn close(&self, open: Open, answer: Answer) {
        self.acknowledged.fetch_add(usize::from(answer != Answer::Refused), Ordering::Relaxed);
        let at = self.now();
        self.ops()[open.0].answer = Some((at, answer));
    }

    /// Records a call that was sent at `sent`, and whose answer was lost.
    pub(crate) fn lost(&self, key: &Key, call: Call, sent: u64) {
        self.ops().push(Op { key: Arc::clone(key), call, sent, answer: None });
    }

    /// Records a call that is known only from its answer: a line of a list, a task of a lease.
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

    /// Counts a call as under way for its duration.
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

    /// The wall clock of the server (ms since 1970).
    pub(crate) fn wall_ms(&self) -> i64 {
        wall_ms() + self.wall_offset_ms.load(Ordering::SeqCst)
    }

    pub(crate) fn set_wall_offset_ms(&self, offset_ms: i64) {
        self.wall_offset_ms.store(offset_ms, Ordering::SeqCst);
    }

    /// Takes all calls so far, and begins anew. No call may be under way.
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

/// The wall clock of the test (ms since 1970).
pub(crate) fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("the clock is set");
    i64::try_from(since.as_millis()).expect("a sane clock")
}
