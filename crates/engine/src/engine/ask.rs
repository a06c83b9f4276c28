//! The questions that a driver asks an engine.

use std::sync::Arc;

use super::Engine;
use crate::acquired::Ownership;
use crate::input::NextWake;
use crate::ledger::{ROOM_MIN, RoomPace};

impl Engine {
    /// Returns the next instants at which time alone may change something, one for each of the two clocks.
    #[must_use]
    pub fn next_wake(&self) -> NextWake {
        // Once the engine takes no changes, no end of a pause, no expiry and no schedule wakes it.
        let writes = self.ledger.takes_changes();
        let wall = [
            self.residence.next_wake(writes),
            self.dispatch.next_wake(writes),
            self.recurrence.next_wake(&self.ledger),
        ];
        NextWake { wall: wall.into_iter().flatten().min(), mono_ms: self.dispatch.next_wake_ms() }
    }

    /// Whether the first scan after the start has ended, so that memory got all tasks inside the horizon, as far as the budget reached.
    /// Until the scan has ended, some due tasks may not be ready yet.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.residence.is_loaded()
    }

    /// Whether nothing is under way: every call except the waiting lease calls is answered, no question to the store or the driver is open,
    /// and every applied change is durable. Once the store has failed, changes that are not durable do not count. Without room, records
    /// that wait to be fetched for expired stubs do not count.
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

    /// Returns the instance number of the shard: 32 bits that follow from the shard's secret. The number never changes, also not across
    /// restarts, and tells nothing about the secret. A copy of a data directory has the same number. Two shards have different numbers,
    /// except by chance, once in 2^32.
    ///
    /// ```
    /// # use tickwheel_engine::*;
    /// # fn look(engine: &Engine) {
    /// let id_in_other_systems = format!("tw_{:08x}_{}", engine.instance(), 7);
    /// # }
    /// ```
    #[must_use]
    pub fn instance(&self) -> u32 {
        self.dispatch.instance()
    }

    /// Returns how often a task has become ready since the start because its instant came.
    #[must_use]
    pub fn fired_total(&self) -> u64 {
        self.ledger.counters().fired_total
    }

    /// Returns why the store has failed. Since the failure the engine makes no changes. `None`: the store has not failed.
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

    /// Returns how many bytes the tasks in memory take (about): the whole tasks, 64 bytes for each stub, and 72 bytes for each expiry that
    /// is watched.
    #[must_use]
    pub fn near_bytes(&self) -> u64 {
        self.residence.bytes()
    }

    /// Returns the room that is left (bytes) while growth is refused or may soon be refused. `None`: there is enough room.
    #[must_use]
    pub fn shortage(&self) -> Option<u64> {
        self.ledger.shortage()
    }

    /// Whether the store cannot grow because its process gets no file descriptor. The shortage is then of descriptors, not of bytes.
    #[must_use]
    pub fn lacks_descriptor(&self) -> bool {
        self.ledger.lacks_descriptor()
    }

    /// Returns how often the driver has to give [`Input::LookForRoom`](crate::Input::LookForRoom). Without this input, an engine that
    /// commits nothing may not learn that the store has space again. `None`: there is enough room, or the engine is stopping or takes no
    /// changes any more.
    #[must_use]
    pub fn room_pace(&self) -> Option<RoomPace> {
        self.ledger.room_pace()
    }

    /// Returns by how many bytes tasks may still grow: the last report of the store, minus the growth that is not in this report yet.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.ledger.room_left()
    }
}
