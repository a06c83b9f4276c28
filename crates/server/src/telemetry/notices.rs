//! Notices of the queue, written as log lines.
//!
//! The queue sends them on its own thread, which must not wait for the log. So they go through a short list. If the
//! log is too slow, the list drops notices that later ones of the same kind replace, and counts them. The latest
//! notice of each kind is always written.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tickwheel_queue::{ClockChange, Notice, Options};
use tokio::sync::Notify;

use crate::events;

/// The longest list of waiting notices. There are fewer kinds than this.
const WAITING_MAX: usize = 256;

/// The list that the queue's thread fills and the log empties. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Notices(Arc<Shared>);

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    came: Notify,
}

#[derive(Default)]
struct Waiting {
    notices: VecDeque<Notice>,
    left_out: u64,
}

impl Waiting {
    /// Adds a notice. If there are too many, drops one that a later one replaces: first a notice with a
    /// measurement, then the oldest.
    fn push(&mut self, notice: Notice) {
        self.notices.push_back(notice);
        if self.notices.len() <= WAITING_MAX {
            return;
        }
        let kinds: Vec<Kind> = self.notices.iter().map(kind).collect();
        let is_stale = |at: &usize| kinds[at + 1..].contains(&kinds[*at]);
        let measures = |at: &usize| matches!(kinds[*at], Kind::CommitWaits | Kind::CommitSlow);
        let stale: Vec<usize> = (0..kinds.len()).filter(is_stale).collect();
        let at = stale.iter().copied().find(measures).or_else(|| stale.first().copied());
        if at.and_then(|at| self.notices.remove(at)).is_some() {
            self.left_out += 1;
        }
    }
}

/// The subject of a notice: a later notice of one kind replaces an earlier one.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Kind {
    Clock,
    Room,
    ReadOnly,
    CommitWaits,
    CommitSlow,
    Checkpoint,
    RowRefused,
    Unknown,
}

fn kind(notice: &Notice) -> Kind {
    match notice {
        Notice::Clock(_) => Kind::Clock,
        Notice::RoomShort { .. } | Notice::NoDescriptors | Notice::RoomAgain { .. } => Kind::Room,
        Notice::ReadOnly { .. } => Kind::ReadOnly,
        Notice::CommitWaits { .. } => Kind::CommitWaits,
        Notice::CommitSlow { .. } => Kind::CommitSlow,
        Notice::CheckpointLate { .. } | Notice::CheckpointDone => Kind::Checkpoint,
        Notice::RowRefused { .. } => Kind::RowRefused,
        _ => Kind::Unknown,
    }
}

impl Notices {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// Adds to the options that the queue sends its notices to this list.
    pub(crate) fn of(&self, options: Options) -> Options {
        let shared = Arc::clone(&self.0);
        options.on_notice(move |notice| {
            lock(&shared).push(notice);
            shared.came.notify_one();
        })
    }

    /// Writes notices when they come, for ever.
    pub(crate) async fn write(self) {
        loop {
            self.write_rest();
            self.0.came.notified().await;
        }
    }

    /// Writes the notices that wait.
    pub(crate) fn write_rest(&self) {
        let Waiting { notices, left_out } = std::mem::take(&mut *lock(&self.0));
        notices.into_iter().for_each(write);
        if left_out > 0 {
            tracing::warn!(
                event = events::LINES_LOST,
                lines = left_out,
                "the log did not keep up: lines are missing that later lines of the same kind made stale"
            );
        }
    }
}

/// Nothing is written while the lock is held, because the queue's thread must not wait for the log.
fn lock(shared: &Shared) -> MutexGuard<'_, Waiting> {
    shared.waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write(notice: Notice) {
    match notice {
        Notice::Clock(change) => write_clock(change),
        Notice::RoomShort { room_bytes } => tracing::warn!(
            event = events::DISK_FULL,
            room_bytes,
            "there is little space for new tasks: puts that need more than `room_bytes` are refused (507); acks, cancels and leases go on"
        ),
        Notice::NoDescriptors => tracing::warn!(
            event = events::NO_DESCRIPTORS,
            "the store gets no file descriptor for its next file: puts are refused (503); acks, cancels and leases go on; raise the limit of open files (`ulimit -n`, `LimitNOFILE=` of systemd)"
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
            "the store has failed: nothing is changed until the cause is mended, and reads go on; a data directory needs a new start of the server then, a database is tried again without one"
        ),
        Notice::CommitWaits { took } => tracing::warn!(
            event = events::COMMIT_WAITS,
            took_ms = ms(took),
            "a commit is not finished yet: the disk, or the database, is slow or does not answer"
        ),
        Notice::CommitSlow { took } => {
            tracing::warn!(
                event = events::COMMIT_SLOW,
                took_ms = ms(took),
                "a commit took long: the disk, or the database, is slow"
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
        Notice::ZoneChanged { zone } => tracing::info!(
            event = events::ZONE_CHANGED,
            zone = &*zone,
            "the time zone has new rules, and its cron schedules have their next instants by them"
        ),
        Notice::ZoneMissing { zone, is_kept: true } => tracing::warn!(
            event = events::ZONE_MISSING,
            zone = &*zone,
            "the time zone is no longer on this machine: the rules that were known stay in force until the next start"
        ),
        Notice::ZoneMissing { zone, is_kept: false } => tracing::warn!(
            event = events::ZONE_MISSING,
            zone = &*zone,
            "a schedule has a time zone that neither this machine nor this build has, so it has no next instant: install the zone (Debian: tzdata-legacy), or put the schedule with another zone"
        ),
        Notice::RowRefused { row, why } => tracing::warn!(
            event = events::INBOX_ROW_REFUSED,
            row,
            why = &*why,
            "no task could be made of a row in the inbox; the row moves to the table tickwheel.inbox_refused"
        ),
        // A notice that a later version of the queue may add is not written yet.
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
        ClockChange::AheadAtStart { ahead_ms, written } => tracing::warn!(
            event = events::CLOCK_AHEAD,
            ahead_ms,
            written = written.to_utc(),
            now = written.saturating_plus_ms(ahead_ms.unsigned_abs()).to_utc(),
            "the clock is far ahead of the last time in the data, which another boot of the machine wrote, or another machine; what fell due in between is held back for a minute, so correct the clock now if it is wrong (--clock-max-ahead refuses such a start)"
        ),
        ClockChange::Believed { by_ms } => tracing::warn!(
            event = events::CLOCK_BELIEVED,
            by_ms,
            "the wall clock has stood for a minute, and the server goes by it: tasks that fell due meanwhile are ready"
        ),
        ClockChange::GoneBack { by_ms } => tracing::warn!(
            event = events::CLOCK_GONE_BACK,
            by_ms,
            "the wall clock was set back before the server accepted the jump; no task was affected"
        ),
    }
}

/// The time in whole milliseconds.
pub(crate) fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(ms: u64) -> Notice {
        Notice::CommitSlow { took: Duration::from_millis(ms) }
    }

    /// A bug that was found: 256 slow commits filled the list, and the notice of a failed store was dropped.
    #[test]
    fn a_change_of_state_is_not_lost_behind_slow_commits() {
        let mut waiting = Waiting::default();
        waiting.push(Notice::RoomShort { room_bytes: 1 });
        (0..300).for_each(|ms| waiting.push(slow(ms)));
        waiting.push(Notice::ReadOnly { why: "the disk".into() });
        waiting.push(Notice::RoomAgain { room_bytes: 9, after: Duration::ZERO });
        (300..1_000).for_each(|ms| waiting.push(slow(ms)));
        let Waiting { notices, left_out } = waiting;
        assert_eq!(
            (notices.len(), left_out),
            (WAITING_MAX, 1_003 - WAITING_MAX as u64),
            "the rest is counted"
        );
        assert_eq!(notices.front(), Some(&Notice::RoomShort { room_bytes: 1 }));
        assert!(notices.contains(&Notice::ReadOnly { why: "the disk".into() }), "{notices:?}");
        assert!(notices.contains(&Notice::RoomAgain { room_bytes: 9, after: Duration::ZERO }), "{notices:?}");
        assert_eq!(notices.back(), Some(&slow(999)), "the latest wins");
    }

    #[test]
    fn the_latest_notice_of_each_kind_is_kept() {
        let mut waiting = Waiting::default();
        waiting.push(Notice::ReadOnly { why: "the disk".into() });
        for n in 0..1_000 {
            waiting.push(Notice::RoomShort { room_bytes: n });
            waiting.push(Notice::RoomAgain { room_bytes: n, after: Duration::ZERO });
        }
        assert_eq!(waiting.notices.len(), WAITING_MAX);
        assert_eq!(waiting.notices.front(), Some(&Notice::ReadOnly { why: "the disk".into() }));
        assert_eq!(
            waiting.notices.back(),
            Some(&Notice::RoomAgain { room_bytes: 999, after: Duration::ZERO })
        );
    }
}
