//! Room in the store: whether there is enough of it, and when to ask for more.

use super::Engine;
use super::dead::ROOM_MIN;

/// With less room than this the machine wants to be told when there is more (bytes). No call needs as much, so a call is not refused
/// for room that has come back meanwhile.
const ROOM_LOW: u64 = 4 * ROOM_MIN;

/// Whether growth is refused.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Shortage {
    /// Growth is refused, or the next growth may be.
    is_on: bool,
    /// The most that was refused since it began (bytes).
    refused: u64,
}

impl Shortage {
    /// A call needed this much (bytes), and there was less.
    pub(super) fn refused(&mut self, needed: u64) {
        self.is_on = true;
        self.refused = self.refused.max(needed);
    }

    /// The store said how much room there is (bytes). The shortage ends only when there is clearly enough, so that it does not begin and end
    /// with every commit.
    pub(super) fn told(&mut self, room: u64) {
        if room < ROOM_MIN {
            self.is_on = true;
        } else if room >= ROOM_LOW.max(self.refused) {
            *self = Self::default();
        }
    }
}

impl Engine {
    /// The room that is left (bytes), while there is so little that growth is refused or may be; `None` while there is enough.
    #[must_use]
    pub fn shortage(&self) -> Option<u64> {
        self.shortage.is_on.then(|| self.room_left())
    }

    /// Whether the machine wants to know again and again how much room there is. A driver then gives it
    /// [`Input::LookForRoom`](crate::Input::LookForRoom) several times a second, for nothing else tells it that space has come back.
    #[must_use]
    pub fn asks_for_room(&self) -> bool {
        let is_low = self.shortage.is_on || self.room_left() < ROOM_LOW;
        is_low && self.refuses_changes().is_none() && !self.stopping
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

    #[test]
    fn a_shortage_ends_when_there_is_enough_for_what_was_refused() {
        let mut shortage = Shortage::default();
        shortage.told(ROOM_MIN);
        assert!(!shortage.is_on, "there is room for what comes");
        shortage.told(ROOM_MIN - 1);
        shortage.told(ROOM_LOW - 1);
        assert!(shortage.is_on, "a little more room is no end of it");
        shortage.refused(2 * ROOM_LOW);
        shortage.told(ROOM_LOW);
        assert!(shortage.is_on, "what was refused would be refused again");
        shortage.told(2 * ROOM_LOW);
        assert_eq!(shortage, Shortage::default());
    }
}
