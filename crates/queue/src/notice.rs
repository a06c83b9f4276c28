//! [`Notice`]: an event that a queue tells its operator while it runs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tickwheel_engine::Timestamp;

use crate::panics::Panics;

/// An event that an operator should know. [`Options::on_notice`](crate::Options::on_notice) sets the listener.
///
/// Notices about the wall clock measure the real clock of the computer (ms). No notice has a key, a payload or a token in it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Notice {
    /// The wall clock was set, or a doubted step of the wall clock is believed now.
    Clock(ClockChange),
    /// The store has too little room: puts are refused, or may soon be refused. Acks and cancels go on.
    RoomShort {
        /// The free bytes by which tasks may still grow.
        room_bytes: u64,
    },
    /// The process gets no file descriptor for the next file of the store: puts are refused. Acks and cancels go on.
    NoDescriptors,
    /// There is enough room again, or there are descriptors again.
    RoomAgain {
        /// The free bytes by which tasks may grow now.
        room_bytes: u64,
        /// How long there was too little room, or no descriptor.
        after: Duration,
    },
    /// The queue takes no changes any more, because its store has failed.
    ReadOnly {
        /// The failure, with its file.
        why: Arc<str>,
    },
    /// A commit is under way that has taken as long as the threshold, or longer.
    CommitWaits {
        /// How long the commit has taken until now.
        took: Duration,
    },
    /// A commit took as long as the threshold, or longer. If several commits ended in one turn, the notice is about the longest.
    CommitSlow {
        /// The time from the request to the store until the store reported the commit as done.
        took: Duration,
    },
    /// A checkpoint is late. The log grows until the checkpoint is done. Until then, an opening of the queue would take long, because the
    /// opening would have to read this log.
    CheckpointLate {
        /// The bytes of log that wait for the checkpoint.
        log_bytes: u64,
    },
    /// The checkpoint that was late is done.
    CheckpointDone,
    /// The rules of a time zone have changed, and the next instants of the cron schedules in it are found anew.
    ZoneChanged {
        /// The IANA name of the zone.
        zone: Arc<str>,
    },
    /// A schedule has a time zone that neither the machine nor this build has.
    ZoneMissing {
        /// The IANA name of the zone.
        zone: Arc<str>,
        /// Whether the rules that were known before stay in force. If not, the schedules in the zone have no next instant.
        is_kept: bool,
    },
    /// No task could be made of a row in the inbox of the store. The store keeps the row with the reason, and a person has to decide about
    /// it.
    RowRefused {
        /// The id of the row.
        row: u64,
        /// The reason, as a part of a sentence.
        why: Arc<str>,
    },
}

/// How the believed wall clock changed, or did not change, when the wall clock was set.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ClockChange {
    /// The wall clock stepped, and the step is believed at once: a step back, a small step forward, or a return to where the wall clock was
    /// believed before.
    Stepped {
        /// How far the wall clock stepped (ms); less than 0 is a step back.
        by_ms: i64,
    },
    /// The wall clock stepped far ahead, and the step is not believed yet. The believed wall clock goes on as before.
    Doubted {
        /// How far the wall clock is ahead of the believed wall clock (ms).
        ahead_ms: i64,
    },
    /// At a start, the wall clock is far ahead of the last time in the data, and another boot of the machine, or another machine, wrote that time.
    /// Nothing tells a clock that was set wrong from a machine that was off. The wall clock is believed, but what fell due since the last time in
    /// the data is held back until the clock has stood for a minute.
    AheadAtStart {
        /// How far the wall clock is ahead of the last time in the data (ms).
        ahead_ms: i64,
        /// The last time in the data.
        written: Timestamp,
    },
    /// No further step came within one minute of a doubted step, so the doubted step is believed now. Or no step came within one minute of
    /// [`AheadAtStart`](Self::AheadAtStart), so nothing is held back any more.
    Believed {
        /// How far the time moved by which tasks fall due (ms).
        by_ms: i64,
    },
    /// The wall clock went back before its step, or a clock far ahead at a start, was believed. No task fell due by it.
    GoneBack {
        /// How far the wall clock was ahead of the time by which tasks fall due when it came back (ms); less than 0 is behind. That time moves by
        /// this.
        by_ms: i64,
    },
}

/// The function that gets the notices, if there is one. It is code of the program, and so is the drop of its values: panics of both are
/// caught and counted.
#[derive(Clone, Default)]
pub(crate) struct Listener {
    listen: Option<Arc<dyn Fn(Notice) + Send + Sync>>,
    panics: Panics,
}

impl Listener {
    pub(crate) fn new(listen: impl Fn(Notice) + Send + Sync + 'static) -> Self {
        Self { listen: Some(Arc::new(listen)), panics: Panics::default() }
    }

    /// Returns the same listener, whose panics are counted by `panics`.
    pub(crate) fn counted_by(&self, panics: Panics) -> Self {
        Self { listen: self.listen.clone(), panics }
    }

    pub(crate) fn tell(&self, notice: Notice) {
        if let Some(listen) = &self.listen {
            self.panics.catch(|| listen(notice));
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let listen = self.listen.take();
        self.panics.catch(|| drop(listen));
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener").field(&self.listen.is_some()).finish()
    }
}
