//! [`Notice`]: an event that a queue tells its operator while it runs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// An event that an operator should know. [`Options::on_notice`](crate::Options::on_notice) sets the listener.
///
/// Milliseconds are those of the machine's clocks. No notice has a key, a payload or a token in it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Notice {
    /// The wall clock was set.
    Clock(ClockChange),
    /// Growth is refused from now on, or may be: there is not enough room for it in the store. Acks and cancels go on.
    RoomShort {
        /// How much growth may still take (bytes).
        room_bytes: u64,
    },
    /// There is enough room again.
    RoomAgain {
        /// How much growth may take (bytes).
        room_bytes: u64,
        /// How long there was too little room.
        after: Duration,
    },
    /// Nothing is changed any more: the store has failed.
    ReadOnly {
        /// The failure, with its file.
        why: Arc<str>,
    },
    /// A commit takes longer than the threshold, and is still under way.
    CommitWaits {
        /// How long so far.
        took: Duration,
    },
    /// A commit took longer than the threshold.
    CommitSlow {
        /// How long it took, from its handing over until it was durable.
        took: Duration,
    },
    /// The log grows, and no checkpoint shortens it: a start would take long.
    CheckpointLate {
        /// How much log there is (bytes).
        log_bytes: u64,
    },
    /// A checkpoint that was late is there.
    CheckpointDone,
}

/// How the queue's believed time changed when the wall clock was set.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ClockChange {
    /// The clock stepped, and the step is believed at once: a step back, a small step, or a return to where the clock was believed before.
    Stepped {
        /// How far; less than 0 is back (ms).
        by_ms: i64,
    },
    /// The clock stepped far ahead, and is not believed yet. Time goes on as before.
    Doubted {
        /// How far it is ahead of what is believed (ms).
        ahead_ms: i64,
    },
    /// A doubted step has stood for long enough, and is believed now.
    Believed {
        /// How far believed time moved (ms).
        by_ms: i64,
    },
    /// The clock went back before its step was believed. The step had no effect.
    GoneBack {
        /// How far the clock is ahead of the time that was believed by then; less than 0 is behind (ms).
        by_ms: i64,
    },
}

/// The function that gets the notices, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Listener(Option<Arc<dyn Fn(Notice) + Send + Sync>>);

impl Listener {
    pub(crate) fn new(listen: impl Fn(Notice) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listen)))
    }

    pub(crate) fn tell(&self, notice: Notice) {
        if let Some(listen) = &self.0 {
            listen(notice);
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener").field(&self.0.is_some()).finish()
    }
}
