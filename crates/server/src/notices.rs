//! What the queue tells, as lines of the log.
//!
//! The queue tells it on its own thread, which must not wait for the log. So it goes through a short list; if the log does not keep up, the
//! rest is left out.

use std::time::Duration;

use tickwheel_queue::{ClockChange, Notice, Options};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::events;

/// Notices that wait to be written.
const WAITING_MAX: usize = 256;

/// Both ends of the list.
pub(crate) struct Notices {
    sender: Sender<Notice>,
    receiver: Receiver<Notice>,
}

impl Notices {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = channel(WAITING_MAX);
        Self { sender, receiver }
    }

    /// Has a queue with these options tell this list.
    pub(crate) fn of(&self, options: Options) -> Options {
        let sender = self.sender.clone();
        options.on_notice(move |notice| {
            // A log that takes nothing must not hold up the queue.
            let _left_out = sender.try_send(notice);
        })
    }

    /// Writes what comes, for ever.
    pub(crate) async fn write(&mut self) {
        // This holds a sender itself, so the list does not end.
        while let Some(notice) = self.receiver.recv().await {
            write(notice);
        }
    }

    /// Writes what is there.
    pub(crate) fn write_rest(&mut self) {
        while let Ok(notice) = self.receiver.try_recv() {
            write(notice);
        }
    }
}

fn write(notice: Notice) {
    match notice {
        Notice::Clock(change) => write_clock(change),
        Notice::RoomShort { room_bytes } => tracing::warn!(
            event = events::DISK_FULL,
            room_bytes,
            "there is little space for new tasks: puts that need more than `room_bytes` are refused (507); acks, cancels and leases go on"
        ),
        Notice::RoomAgain { room_bytes, after } => tracing::info!(
            event = events::DISK_ROOM_AGAIN,
            room_bytes,
            after_ms = ms(after),
            "there is enough space for new tasks again"
        ),
        Notice::ReadOnly { why } => tracing::error!(
            event = events::READ_ONLY,
            why = &*why,
            "the store has failed: nothing is changed any more, and reads go on; mend the cause, then start the server again"
        ),
        Notice::CommitWaits { took } => tracing::warn!(
            event = events::COMMIT_WAITS,
            took_ms = ms(took),
            "a commit is not finished yet: the disk is slow or does not answer"
        ),
        Notice::CommitSlow { took } => {
            tracing::warn!(
                event = events::COMMIT_SLOW,
                took_ms = ms(took),
                "a commit took long: the disk is slow"
            );
        }
        Notice::CheckpointLate { log_bytes } => tracing::warn!(
            event = events::CHECKPOINT_LATE,
            log_bytes,
            "the checkpoint is late, and `log_bytes` of log are not covered by one: the disk is full or slow, and the next start will take long"
        ),
        Notice::CheckpointDone => {
            tracing::info!(event = events::CHECKPOINT_DONE, "the late checkpoint is complete");
        }
        // What a later version of the queue tells is told here, too, when it does.
        _ => {}
    }
}

fn write_clock(change: ClockChange) {
    match change {
        ClockChange::Stepped { by_ms } => {
            tracing::warn!(
                event = events::CLOCK_STEPPED,
                by_ms,
                "the wall clock jumped; the server uses the new time"
            );
        }
        ClockChange::Doubted { ahead_ms } => tracing::warn!(
            event = events::CLOCK_DOUBTED,
            ahead_ms,
            "the wall clock jumped far ahead; the server goes on with the old time until the jump has stood for a minute"
        ),
        ClockChange::Believed { by_ms } => tracing::warn!(
            event = events::CLOCK_BELIEVED,
            by_ms,
            "the jump of the wall clock has stood for a minute, and the server uses the new time: tasks that fell due meanwhile are ready"
        ),
        ClockChange::GoneBack { by_ms } => tracing::warn!(
            event = events::CLOCK_GONE_BACK,
            by_ms,
            "the wall clock was set back before the server accepted the jump; no task was affected"
        ),
    }
}

/// Whole milliseconds.
pub(crate) fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
