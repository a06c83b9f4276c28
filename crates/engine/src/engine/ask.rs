//! Questions that a driver asks the engine between its turns.

use std::sync::Arc;

use super::Engine;
use crate::input::NextWake;
use crate::ledger::{ROOM_MIN, RoomPace};
use crate::ownership::Ownership;

impl Engine {
    /// The next instant at which time alone changes something.
    #[must_use]
    pub fn next_wake(&self) -> NextWake {
        // A change that cannot be written down any more does not wake the engine.
        let writes = self.ledger.takes_changes();
        let wall = [
            self.residence.next_wake(writes),
            self.dispatch.next_wake(writes),
            self.recurrence.next_wake(&self.ledger),
        ];
        NextWake { wall: wall.into_iter().flatten().min(), mono_ms: self.dispatch.next_wake_ms() }
    }

    /// Whether memory has all tasks inside the horizon, as far as the budget reaches. Until then, after a start, some due tasks are not
    /// ready yet.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.residence.is_loaded()
    }

    /// Whether nothing is under way: every call but the waiting ones is answered, and every applied change is durable.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let has_room = self.ledger.room_left() >= ROOM_MIN;
        self.ledger.is_idle()
            && self.residence.is_idle(has_room)
            && self.reads.is_idle()
            && self.recurrence.is_idle()
    }

    /// The right to commit that this engine holds.
    #[must_use]
    pub fn ownership(&self) -> Ownership {
        self.ledger.ownership()
    }

    /// Tasks that have become ready because their instant came, since the start.
    #[must_use]
    pub fn fired_total(&self) -> u64 {
        self.ledger.counters().fired_total
    }

    /// Why the engine makes no changes any more; `None`: all is well.
    #[must_use]
    pub fn failure(&self) -> Option<Arc<str>> {
        self.ledger.failure().cloned()
    }

    /// How many tasks are whole in memory, for tests and figures. Tasks that have ended and are not durable yet count, too.
    #[must_use]
    pub fn tasks_in_memory(&self) -> usize {
        self.residence.len()
    }

    /// How many other tasks have a stub in memory.
    #[must_use]
    pub fn stubs_in_memory(&self) -> u64 {
        self.residence.stubs()
    }

    /// Bytes that near memory takes (about): the tasks that are held whole, and 64 for each stub.
    #[must_use]
    pub fn near_bytes(&self) -> u64 {
        self.residence.bytes()
    }

    /// The room that is left (bytes), while growth is refused or may soon be refused; `None` while there is enough room.
    #[must_use]
    pub fn shortage(&self) -> Option<u64> {
        self.ledger.shortage()
    }

    /// How often the engine wants [`Input::LookForRoom`](crate::Input::LookForRoom); `None`: there is enough room, or room does not matter
    /// any more. A driver gives the input so, because nothing else tells the engine that space has come back.
    #[must_use]
    pub fn room_pace(&self) -> Option<RoomPace> {
        self.ledger.room_pace()
    }

    /// How many bytes growth may still take, by the last word of the store.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.ledger.room_left()
    }
}
