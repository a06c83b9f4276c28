//! Room in the store: whether there is enough of it, and when to ask for more.

use super::Engine;
use super::dead::ROOM_MIN;
use crate::Now;

/// With less room than this (bytes) a shortage goes on: so it does not begin and end with every commit.
const ROOM_LOW: u64 = 4 * ROOM_MIN;
/// With less room than this (bytes) the machine wants to be told when there is more. The calls of one turn need less in sum: they are in memory,
/// all of them, and a driver bounds that. So none is refused for room that has come back meanwhile.
const ROOM_WATCHED: u64 = 1 << 30;
/// A call that was refused keeps a shortage on for this long (ms), if the room is not enough for it.
const REFUSED_MS: u64 = 5 * 60 * 1_000;

/// Whether growth is refused.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Shortage {
    /// Growth is refused, or the next growth may be.
    is_on: bool,
    /// The most that was refused since it began (bytes).
    refused: u64,
    /// When the store spoke first after the last refusal (monotonic ms); `None`: it has not spoken since.
    refused_ms: Option<u64>,
}

impl Shortage {
    /// A call needed this much (bytes), and there was less.
    pub(super) fn refused(&mut self, needed: u64) {
        self.is_on = true;
        self.refused = self.refused.max(needed);
        self.refused_ms = None;
    }

    /// The store said how much room there is (bytes).
    pub(super) fn told(&mut self, room: u64, now: Now) {
        let now_ms = now.mono_ns / 1_000_000;
        let since_ms = *self.refused_ms.get_or_insert(now_ms);
        // One call that needs very much does not keep the shortage on for ever.
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
    /// Once a second: there is room for what comes, and not for very much of it.
    Slow,
    /// Several times a second: growth is refused, or may be with the next call.
    Fast,
}

impl Engine {
    /// The room that is left (bytes), while there is so little that growth is refused or may be; `None` while there is enough.
    #[must_use]
    pub fn shortage(&self) -> Option<u64> {
        self.shortage.is_on.then(|| self.room_left())
    }

    /// Whether growth is refused, or may be with the next call. A driver then gives the machine
    /// [`Input::LookForRoom`](crate::Input::LookForRoom) several times a second, for nothing else tells it that space has come back. See
    /// [`room_pace`](Self::room_pace).
    #[must_use]
    pub fn asks_for_room(&self) -> bool {
        self.room_pace() == Some(RoomPace::Fast)
    }

    /// How often the machine wants [`Input::LookForRoom`](crate::Input::LookForRoom); `None`: there is enough room, or it does not matter any more.
    #[must_use]
    pub fn room_pace(&self) -> Option<RoomPace> {
        if self.refuses_changes().is_some() || self.stopping {
            return None;
        }
        let room = self.room_left();
        if self.shortage.is_on || room < ROOM_LOW {
            return Some(RoomPace::Fast);
        }
        (room < ROOM_WATCHED).then_some(RoomPace::Slow)
    }

    /// What growth may still take (bytes), as far as the store has said.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.room_left()
    }

    pub(super) fn room_left(&self) -> u64 {
        self.room.saturating_sub(self.filling.growth())
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
        shortage.told(ROOM_MIN, at(0));
        assert!(!shortage.is_on, "there is room for what comes");
        shortage.told(ROOM_MIN - 1, at(0));
        shortage.told(ROOM_LOW - 1, at(0));
        assert!(shortage.is_on, "a little more room is no end of it");
        shortage.refused(2 * ROOM_LOW);
        shortage.told(ROOM_LOW, at(0));
        assert!(shortage.is_on, "what was refused would be refused again");
        shortage.told(2 * ROOM_LOW, at(0));
        assert_eq!(shortage, Shortage::default());
    }

    /// The story: one client that wanted far too much kept the server degraded for all others until a restart.
    #[test]
    fn a_call_that_is_too_big_is_forgotten_after_five_minutes() {
        let mut shortage = Shortage::default();
        shortage.refused(u64::MAX);
        shortage.told(ROOM_LOW, at(1_000));
        shortage.refused(1);
        shortage.told(ROOM_LOW, at(2_000));
        shortage.told(100 * ROOM_LOW, at(2_000 + REFUSED_MS - 1));
        assert!(shortage.is_on);
        shortage.told(ROOM_LOW - 1, at(2_000 + REFUSED_MS));
        assert!(shortage.is_on, "there is too little for anything");
        shortage.told(ROOM_LOW, at(2_000 + REFUSED_MS));
        assert_eq!(shortage, Shortage::default());
    }
}
