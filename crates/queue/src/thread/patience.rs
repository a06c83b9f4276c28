//! [`Patience`]: how long calls wait for a store that can stall.

use std::time::{Duration, Instant};

use tickwheel_engine::RequestId;
use tickwheel_store::QueueStore;

use crate::shard::Shard;

/// After this time of one commit, or without any reply to an open request, the store makes no progress. New changes are refused while a commit
/// is late: they would only wait behind it, and take memory meanwhile.
const LATE: Duration = Duration::from_secs(2);
/// While the store makes no progress, a call that has waited this long learns that its outcome is unknown. After this time of one commit, reads
/// are refused, too: their answers wait for the commit.
const CALL_WAITS: Duration = Duration::from_secs(5);
/// The time between two looks at all calls under way.
const LOOK: Duration = Duration::from_millis(250);
/// A shard has a turn at least this often. If the last one was longer ago, the thread itself stood still, and no time is counted against the
/// store.
const TURN_MAX: Duration = Duration::from_millis(1_500);

/// Watches what a store has to answer. The time is real, also if the queue has a virtual clock.
#[derive(Debug)]
pub(crate) struct Patience {
    can_stall: bool,
    /// The commit under way, and when it was seen first.
    commit: Option<(RequestId, Instant)>,
    /// The number of replies at the last turn, and since when it is the same although a request is open.
    replies: (u64, Option<Instant>),
    /// When the last turn was.
    turn: Option<Instant>,
    /// When the calls were looked at last.
    looked: Option<Instant>,
}

impl Patience {
    pub(crate) fn new<S: QueueStore>(shard: &Shard<S>) -> Self {
        let can_stall = shard.store().can_stall();
        Self { can_stall, commit: None, replies: (0, None), turn: None, looked: None }
    }

    /// Returns the time, if the store can stall. Other stores cost no look at the clock.
    pub(crate) fn now(&self) -> Option<Instant> {
        self.can_stall.then(Instant::now)
    }

    /// Notes after a turn which requests are open.
    pub(crate) fn look<S: QueueStore>(&mut self, shard: &Shard<S>, now: Instant) {
        let is_late_turn = self.turn.is_none_or(|turn| now.saturating_duration_since(turn) > TURN_MAX);
        self.turn = Some(now);
        let under_way = shard.committing();
        let commit = self.commit.filter(|(request, _)| !is_late_turn && under_way == Some(*request));
        self.commit = commit.or_else(|| under_way.map(|request| (request, now)));
        let (count, since) = self.replies;
        let silent = since.filter(|_| !is_late_turn && count == shard.replied());
        self.replies = (shard.replied(), shard.has_open_requests().then(|| silent.unwrap_or(now)));
    }

    /// Returns how long the commit under way has waited, if it is too late for this call.
    pub(crate) fn late(&self, changes: bool, now: Instant) -> Option<Duration> {
        let waited = now.saturating_duration_since(self.commit?.1);
        let is_late = waited >= if changes { LATE } else { CALL_WAITS };
        (is_late && now.saturating_duration_since(self.turn?) <= TURN_MAX).then_some(waited)
    }

    /// Returns the longest time of a call, if it is time to look at all calls, and the store makes no progress.
    pub(crate) fn of_calls(&mut self, in_doubt: bool, now: Instant) -> Option<Duration> {
        let looks = self.looked.is_none_or(|looked| now.saturating_duration_since(looked) >= LOOK);
        if !looks {
            return None;
        }
        self.looked = Some(now);
        let silent = self.replies.1.map(|since| now.saturating_duration_since(since));
        let stalls =
            in_doubt || self.late(true, now).is_some() || silent.is_some_and(|silent| silent >= LATE);
        stalls.then_some(CALL_WAITS)
    }
}
