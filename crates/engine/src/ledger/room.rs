//! The room in the store: whether there is enough of it, and how often to ask the store.

use super::Ledger;
use crate::calls::Unavailable;
use crate::time::Now;

/// With less room than this (bytes), the instants of schedules wait for their tasks, and the records of stubs that expired are not fetched.
pub(crate) const ROOM_MIN: u64 = 1 << 20;

/// A shortage ends only when there is at least this much room (bytes). So a shortage does not begin and end with every commit.
const ROOM_LOW: u64 = 4 * ROOM_MIN;
/// With less room than this (bytes), the store is asked for its room at least once a second. The calls of one turn need less than this in
/// sum, because all of them are in memory and a driver bounds them. So the room is up to date before a call could be refused.
const ROOM_WATCHED: u64 = 1 << 30;
/// A refused call keeps a shortage on for at most this time (ms), while there is less room than the call needed.
const REFUSED_MS: u64 = 5 * 60 * 1_000;

/// Whether the store is short of room, and how much room the refused calls needed.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
struct Shortage {
    /// Whether growth is refused, or may be refused soon.
    is_on: bool,
    /// The largest growth that was refused since the shortage began (bytes). 0: none was, or [`REFUSED_MS`] have passed since.
    refused: u64,
    /// When the store first reported its room after the last refusal (monotonic ms). `None`: there was no report since that refusal.
    /// Without a refusal the value has no meaning.
    refused_ms: Option<u64>,
}

impl Shortage {
    /// Notes that a call was refused, because it needed this much room (bytes) and there was less.
    fn refused(&mut self, needed: u64) {
        self.is_on = true;
        self.refused = self.refused.max(needed);
        self.refused_ms = None;
    }

    /// Notes how much room there is (bytes). Begins a shortage below [`ROOM_MIN`]. Ends the shortage if there is at least [`ROOM_LOW`], and
    /// as much as the refused calls needed.
    fn reported(&mut self, room: u64, now: Now) {
        let now_ms = now.mono_ns / 1_000_000;
        let since_ms = *self.refused_ms.get_or_insert(now_ms);
        // One call that needs very much must not keep the shortage on for ever.
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

/// How often the driver has to give [`Input::LookForRoom`](crate::Input::LookForRoom), so that the engine asks the store for its room.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RoomPace {
    /// Once a second: there is room for the next calls, but not for much growth.
    Slow,
    /// Several times a second: growth is refused, or the next call may be refused.
    Fast,
}

/// The room in the store, according to its last report.
#[derive(Debug)]
pub(crate) struct Room {
    /// The bytes by which the store may still grow. Batches that were not handed to the store are not subtracted.
    left: u64,
    /// Whether the next commit asks the store for its room, even if there is nothing to commit.
    asks: bool,
    /// Whether the store cannot grow because its process gets no file descriptor, according to the last report.
    lacks_descriptor: bool,
    shortage: Shortage,
}

impl Room {
    pub(super) fn new(left: u64) -> Self {
        Self { left, asks: false, lacks_descriptor: false, shortage: Shortage::default() }
    }

    /// Returns whether the next commit has to ask the store for its room. After this call the answer is no, until the question is asked for
    /// again.
    pub(super) fn take_question(&mut self) -> bool {
        core::mem::take(&mut self.asks)
    }

    /// Subtracts the growth of a commit (bytes) that is being sent to the store.
    pub(super) fn reserve(&mut self, growth: u64) {
        self.left = self.left.saturating_sub(growth);
    }

    /// Takes in the room that the store has reported; `None`: it lacks a file descriptor. `growth`: the growth of the batches that wait for
    /// later commits. Both in bytes.
    pub(super) fn reported(&mut self, left: Option<u64>, growth: u64, now: Now) {
        self.lacks_descriptor = left.is_none();
        let left = left.unwrap_or(0);
        self.left = left;
        self.shortage.reported(left.saturating_sub(growth), now);
    }
}

impl Ledger {
    /// Returns how many bytes of room are left for growth: the last report of the store, minus the growth of all batches that are not in
    /// this report.
    pub(crate) fn room_left(&self) -> u64 {
        self.room.left.saturating_sub(self.batch.growth())
    }

    /// Takes room for `needed` bytes of growth.
    ///
    /// # Errors
    /// [`Unavailable::Full`]: less room is left. [`Unavailable::NoDescriptors`]: the store lacks a file descriptor. The call is noted as
    /// refused, and the next turn asks the store for its room.
    pub(crate) fn take_room(&mut self, needed: u64) -> Result<(), Unavailable> {
        let room = self.room_left();
        if needed > room {
            // The store may have more room by now than it last reported.
            self.room.asks = true;
            self.room.shortage.refused(needed);
            return Err(match self.room.lacks_descriptor {
                true => Unavailable::NoDescriptors,
                false => Unavailable::Full { needed, room },
            });
        }
        self.batch.grow(needed);
        Ok(())
    }

    /// Takes room for `needed` bytes of growth, also if less room is left.
    pub(crate) fn take_room_owed(&mut self, needed: u64) {
        self.batch.grow(needed);
    }

    /// Has the next commit ask the store for its room, even if there is nothing to commit.
    pub(crate) fn ask_for_room(&mut self) {
        self.room.asks = true;
    }

    /// Returns the room that is left (bytes) while growth is refused or may be refused soon. `None`: there is no shortage.
    pub(crate) fn shortage(&self) -> Option<u64> {
        self.room.shortage.is_on.then(|| self.room_left())
    }

    /// Whether the store lacks a file descriptor, according to its last report.
    pub(crate) fn lacks_descriptor(&self) -> bool {
        self.room.lacks_descriptor
    }

    /// Returns how often the driver has to give [`Input::LookForRoom`](crate::Input::LookForRoom). `None`: there is enough room, or the
    /// engine is stopping or takes no changes any more.
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
        Now {
            mono_ns: ms * 1_000_000,
            wall: crate::Timestamp::EPOCH,
            wall_sub_ns: 0,
            wall_width_ns: 0,
            held_ms: 0,
        }
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

    /// Guards against an old fault: one client that asked for far too much kept the server degraded for all others until a restart.
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
