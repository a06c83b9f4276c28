//! The questions that a driver asks an engine between turns.

use std::sync::Arc;

use super::Engine;
use crate::input::NextWake;
use crate::ledger::{ROOM_MIN, RoomPace};
use crate::ownership::Ownership;

impl Engine {
    /// Returns the next instants at which time alone changes something, one for each of the two clocks.
    #[must_use]
    pub fn next_wake(&self) -> NextWake {
        // Once the engine takes no changes, the end of a pause and the expiry of a task do not wake it.
        let writes = self.ledger.takes_changes();
        let wall = [
            self.residence.next_wake(writes),
            self.dispatch.next_wake(writes),
            self.recurrence.next_wake(&self.ledger),
        ];
        NextWake { wall: wall.into_iter().flatten().min(), mono_ms: self.dispatch.next_wake_ms() }
    }

    /// Whether all tasks inside the horizon are in memory, as far as the budget reaches. After a start, until this is so, some due tasks
    /// are not ready yet.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.residence.is_loaded()
    }

    /// Whether nothing is under way: every call except the waiting lease calls is answered, and every applied change is durable. Once the
    /// store has failed, changes that are not durable do not matter any more.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let has_room = self.ledger.room_left() >= ROOM_MIN;
        self.ledger.is_idle()
            && self.residence.is_idle(has_room)
            && self.reads.is_idle()
            && self.recurrence.is_idle()
    }

    /// Returns the right to commit that this engine holds.
    #[must_use]
    pub fn ownership(&self) -> Ownership {
        self.ledger.ownership()
    }

    /// Returns how many tasks have become ready since the start because their instant came.
    #[must_use]
    pub fn fired_total(&self) -> u64 {
        self.ledger.counters().fired_total
    }

    /// Returns why the engine makes no changes any more. `None`: the engine makes changes.
    #[must_use]
    pub fn failure(&self) -> Option<Arc<str>> {
        self.ledger.failure().cloned()
    }

    /// Returns how many tasks are whole in memory, for tests and figures. The number includes tasks that have ended while their end is not
    /// durable.
    #[must_use]
    pub fn tasks_in_memory(&self) -> usize {
        self.residence.len()
    }

    /// Returns how many tasks have only a stub in memory.
    #[must_use]
    pub fn stubs_in_memory(&self) -> u64 {
        self.residence.stubs()
    }

    /// Returns how many bytes the tasks in memory take (about): the whole tasks, 64 bytes for each stub, and 48 bytes for each task that
    /// can expire.
    #[must_use]
    pub fn near_bytes(&self) -> u64 {
        self.residence.bytes()
    }

    /// Returns the room that is left (bytes) while growth is refused or may soon be refused. `None`: there is enough room.
    #[must_use]
    pub fn shortage(&self) -> Option<u64> {
        self.ledger.shortage()
    }

    /// Returns how often the driver has to give [`Input::LookForRoom`](crate::Input::LookForRoom). Without this input the engine does not
    /// learn that the store has space again. `None`: there is enough room, or the engine is stopping or takes no changes any more.
    #[must_use]
    pub fn room_pace(&self) -> Option<RoomPace> {
        self.ledger.room_pace()
    }

    /// Returns by how many bytes tasks may still grow, according to the last report of the store.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.ledger.room_left()
    }
}
