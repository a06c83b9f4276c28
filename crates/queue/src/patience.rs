//! [`Patience`]: how long calls wait for the commits of a store that can stall.

use std::time::{Duration, Instant};

use tickwheel_engine::RequestId;
use tickwheel_store::QueueStore;

use crate::shard::Shard;

/// After this time of one commit, new changes are refused. They would only wait behind it, and take memory meanwhile.
const LATE: Duration = Duration::from_secs(2);
/// A change waits this long at most, and each call while the store does not get on. Then its caller learns that the outcome is unknown.
const CHANGE_WAITS: Duration = Duration::from_secs(5);
/// A read waits this long at most: one page of a large list can take some seconds.
const READ_WAITS: Duration = Duration::from_secs(35);

/// The time between two looks at all calls under way.
const LOOK: Duration = Duration::from_millis(250);

/// Watches the commit under way. The time is real, also if the queue has a virtual clock.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    /// When the calls were looked at last.
    looked: Option<Instant>,
    /// The commit under way, and when it was seen first.
    commit: Option<(RequestId, Instant)>,
}

impl Patience {
    /// Notes the commit that is under way after a turn.
    pub(crate) fn look<S: QueueStore>(&mut self, shard: &Shard<S>, now: Instant) {
        let under_way = shard.committing().filter(|_| shard.store().can_stall());
        let seen = self.commit.filter(|(request, _)| under_way == Some(*request));
        self.commit = seen.or_else(|| under_way.map(|request| (request, now)));
    }

    /// Returns how long the commit under way has waited, if it is late.
    pub(crate) fn late(&self, now: Instant) -> Option<Duration> {
        let waited = now.saturating_duration_since(self.commit?.1);
        (waited >= LATE).then_some(waited)
    }

    /// Returns whether to look at all calls now. If so, notes that they are looked at.
    pub(crate) fn looks_at_calls(&mut self, now: Instant) -> bool {
        let looks = self.looked.is_none_or(|looked| now.saturating_duration_since(looked) >= LOOK);
        if looks {
            self.looked = Some(now);
        }
        looks
    }

    /// Returns the longest time of a call; `None`: the store cannot stall, so its calls wait until they are answered.
    pub(crate) fn of_call<S: QueueStore>(
        &self,
        shard: &Shard<S>,
        changes: bool,
        now: Instant,
    ) -> Option<Duration> {
        let does_not_get_on = self.late(now).is_some() || shard.is_in_doubt();
        let waits = if changes || does_not_get_on { CHANGE_WAITS } else { READ_WAITS };
        shard.store().can_stall().then_some(waits)
    }
}
