//! Room in the store: whether there is enough of it, and when to ask for more.

use super::Ledger;
use crate::calls::Unavailable;
use crate::time::Now;

/// With less room than this (bytes) in the store, time neither changes nor makes a task: tasks that expired and instants of schedules wait.
pub(crate) const ROOM_MIN: u64 = 1 << 20;

/// With less room than this (bytes) a shortage goes on, so that it does not begin and end with every commit.
const ROOM_LOW: u64 = 4 * ROOM_MIN;
/// With less room than this (bytes) the engine wants to be told when there is more. The calls of one turn need less in sum: all of them are
/// in memory, and a driver bounds that. So no call is refused for lack of room that has come back meanwhile.
const ROOM_WATCHED: u64 = 1 << 30;
/// A call that was refused keeps a shortage on for this long (ms), if the room is not enough for it.
const REFUSED_MS: u64 = 5 * 60 * 1_000;

/// Whether growth is refused.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
struct Shortage {
    /// Growth is refused, or the next growth may be.
    is_on: bool,
    /// The largest need that was refused since the shortage began (bytes).
    refused: u64,
    /// When the store first told its room after the last refusal (monotonic ms); `None`: it has not told it since.
    refused_ms: Option<u64>,
}

impl Shortage {
    /// A call needed this many bytes, and there was less room.
    fn refused(&mut self, needed: u64) {
        self.is_on = true;
        self.refused = self.refused.max(needed);
        self.refused_ms = None;
    }

    /// The store said how much room there is (bytes).
    fn reported(&mut self, room: u64, now: Now) {
        let now_ms = now.mono_ns / 1_000_000;
        let since_ms = *self.refused_ms.get_or_insert(now_ms);
        // A single call with a very large need does not keep the shortage on for ever.
        if now_ms.saturating_sub(since_ms) >= REFUSED_MS {
            self.refused = 0;
        }
        if room < ROOM_MIN {
            self.is_on = true;
        } else if room >= ROOM_LOW.max(self.refused) {
            *self = Self::default();
        }
    }
}

/// How often the store is to be asked for its room.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RoomPace {
    /// Once a second: there is room for the next calls, but not for very much growth.
    Slow,
    /// Several times a second: growth is refused, or may be with the next call.
    Fast,
}

/// How much growth the store can take, as far as it has said.
#[derive(Debug)]
pub(crate) struct Room {
    /// Bytes, without the growth of the batches that are not on their way.
    left: u64,
    /// The next turn asks how much there is now.
    asks: bool,
    shortage: Shortage,
}

impl Room {
    pub(super) fn new(left: u64) -> Self {
        Self { left, asks: false, shortage: Shortage::default() }
    }

    /// Whether the store is to be asked with this commit.
    pub(super) fn take_question(&mut self) -> bool {
        core::mem::take(&mut self.asks)
    }

    /// A commit that brings this growth (bytes) is on its way.
    pub(super) fn reserve(&mut self, growth: u64) {
        self.left = self.left.saturating_sub(growth);
    }

    /// The store said how much room there is. `growth`: the growth that waits for later commits. Both in bytes.
    pub(super) fn reported(&mut self, left: u64, growth: u64, now: Now) {
        self.left = left;
        self.shortage.reported(left.saturating_sub(growth), now);
    }
}

impl Ledger {
    /// The room that growth may still take (bytes), as far as the store has said.
    pub(crate) fn room_left(&self) -> u64 {
        self.room.left.saturating_sub(self.batch.growth())
    }

    /// Takes room for growth (bytes).
    ///
    /// # Errors
    /// [`Unavailable::Full`]: there is less room.
    pub(crate) fn take_room(&mut self, needed: u64) -> Result<(), Unavailable> {
        let room = self.room_left();
        if needed > room {
            // Space may have come back since the last commit said how much there is.
            self.room.asks = true;
            self.room.shortage.refused(needed);
            return Err(Unavailable::Full { needed, room });
        }
        self.batch.grow(needed);
        Ok(())
    }

    /// The next turn asks the store how much room there is.
    pub(crate) fn ask_for_room(&mut self) {
        self.room.asks = true;
    }

    /// The room that is left (bytes), while growth is refused or may be.
    pub(crate) fn shortage(&self) -> Option<u64> {
        self.room.shortage.is_on.then(|| self.room_left())
    }

    /// How often the store is to be asked for its room; `None`: there is enough, or it does not matter any more.
    pub(crate) fn room_pace(&self) -> Option<RoomPace> {
        if !self.takes_changes() || self.is_stopping() {
            return None;
        }
        let room = self.room_left();
        if self.room.shortage.is_on || room < ROOM_LOW {
            return Some(RoomPace::Fast);
        }
        (room < ROOM_WATCHED).then_some(RoomPace::Slow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Now {
        Now { mono_ns: ms * 1_000_000, wall: crate::Timestamp::EPOCH, wall_sub_ns: 0 }
    }

    #[test]
    fn a_shortage_ends_when_there_is_enough_for_what_was_refused() {
        let mut shortage = Shortage::default();
        shortage.reported(ROOM_MIN, at(0));
        assert!(!shortage.is_on, "there is room for what comes");
        shortage.reported(ROOM_MIN - 1, at(0));
        shortage.reported(ROOM_LOW - 1, at(0));
        assert!(shortage.is_on, "a little more room is no end of it");
        shortage.refused(2 * ROOM_LOW);
        shortage.reported(ROOM_LOW, at(0));
        assert!(shortage.is_on, "what was refused would be refused again");
        shortage.reported(2 * ROOM_LOW, at(0));
        assert_eq!(shortage, Shortage::default());
    }

    /// The case behind this test: one client that wanted far too much kept the server degraded for all others until a restart.
    #[test]
    fn a_call_that_is_too_big_is_forgotten_after_five_minutes() {
        let mut shortage = Shortage::default();
        shortage.refused(u64::MAX);
        shortage.reported(ROOM_LOW, at(1_000));
        shortage.refused(1);
        shortage.reported(ROOM_LOW, at(2_000));
        shortage.reported(100 * ROOM_LOW, at(2_000 + REFUSED_MS - 1));
        assert!(shortage.is_on);
        shortage.reported(ROOM_LOW - 1, at(2_000 + REFUSED_MS));
        assert!(shortage.is_on, "there is too little for anything");
        shortage.reported(ROOM_LOW, at(2_000 + REFUSED_MS));
        assert_eq!(shortage, Shortage::default());
    }
}
