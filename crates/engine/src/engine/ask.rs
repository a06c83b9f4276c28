//! What a driver asks the engine between its turns.

use std::sync::Arc;

use super::Engine;
use crate::input::NextWake;
use crate::ledger::{ROOM_MIN, RoomPace};
use crate::ownership::Ownership;

impl Engine {
    /// When time alone will next change something.
    #[must_use]
    pub fn next_wake(&self) -> NextWake {
        // What cannot be written down any more does not wake the engine.
        let writes = self.ledger.takes_changes();
        let wall = [
            self.residence.next_wake(writes),
            self.dispatch.next_wake(writes),
            self.recurrence.next_wake(&self.ledger),
        ];
        NextWake { wall: wall.into_iter().flatten().min(), mono_ms: self.dispatch.next_wake_ms() }
    }

    /// Whether all tasks inside the horizon, as far as the budget reaches, are in memory. Until then, after a start, not all
    /// that is due is ready.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.residence.is_loaded()
    }

    /// Whether nothing is under way: every call is answered but the waiting ones, everything applied is durable.
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

    /// Why nothing is changed any more; `None` while all is well.
    #[must_use]
    pub fn failure(&self) -> Option<Arc<str>> {
        self.ledger.failure().cloned()
    }

    /// How many tasks are in memory, whole, for tests and figures. Those that have ended and are not durable yet count, too.
    #[must_use]
    pub fn tasks_in_memory(&self) -> usize {
        self.residence.len()
    }

    /// How many tasks more have a stub in memory.
    #[must_use]
    pub fn stubs_in_memory(&self) -> u64 {
        self.residence.stubs()
    }

    /// Bytes that near memory takes, about: tasks that are held whole, and 64 for each stub.
    #[must_use]
    pub fn near_bytes(&self) -> u64 {
        self.residence.bytes()
    }

    /// The room that is left (bytes), while there is so little that growth is refused or may be; `None` while there is enough.
    #[must_use]
    pub fn shortage(&self) -> Option<u64> {
        self.ledger.shortage()
    }

    /// Whether growth is refused, or may be with the next call. A driver then gives the engine
    /// [`Input::LookForRoom`](crate::Input::LookForRoom) several times a second, for nothing else tells it that space has come back. See
    /// [`room_pace`](Self::room_pace).
    #[must_use]
    pub fn asks_for_room(&self) -> bool {
        self.room_pace() == Some(RoomPace::Fast)
    }

    /// How often the engine wants [`Input::LookForRoom`](crate::Input::LookForRoom); `None`: there is enough room, or it does not matter any more.
    #[must_use]
    pub fn room_pace(&self) -> Option<RoomPace> {
        self.ledger.room_pace()
    }

    /// What growth may still take (bytes), as far as the store has said.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.ledger.room_left()
    }
}
