//! [`Entry`]: a body that waits for a deadline, with all its data in one allocation.
//!
//! Ground rules:
//! - `word` decides; see [`Word`].
//! - `place` belongs to the turn, which reads and writes it while it holds the wheel. It is an atomic because the entry is shared.
//!   `Relaxed` is enough because the lock of the turn orders the accesses.
//! - `slot` belongs to the home shard: it is the index of the entry in the inbox, protected by the lock of the inbox.
//! - `told` is set by a thread that moves the entry to an earlier deadline, after it changed the word and under the lock of the inbox. The
//!   turn clears it before it reads the word. So one look of the turn handles any number of moves, and none is missed. A thread that finds
//!   it set knows that the entry is in the inbox, or that the turn will still read its word. Setting and clearing are read-modify-writes
//!   that release and acquire.
//! - `body` is used by the thread that got the right from the word. Its lock exists only because the compiler needs it: no thread ever
//!   waits for it, and it is not held while the body runs.

use std::num::NonZeroU32;
use std::sync::Arc;

use tickwheel_core::Handle;

use super::body::Body;
use super::shard::Shard;
use super::word::{Cancel, Word};
use crate::Monotonic;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// An entry; see the module. `B` is the type of the body; [`AnyEntry`] is an entry with any body.
pub(crate) struct Entry<B: ?Sized> {
    pub(crate) word: Word,
    place: AtomicU64,
    slot: AtomicUsize,
    told: AtomicBool,
    pub(super) home: Arc<Shard>,
    pub(crate) body: B,
}

/// An entry with any body.
pub(crate) type AnyEntry = Entry<dyn Body>;

impl<B> Entry<B> {
    pub(super) fn new(deadline: Monotonic, home: Arc<Shard>, body: B) -> Self {
        Self {
            word: Word::new(deadline),
            place: AtomicU64::new(0),
            slot: AtomicUsize::new(0),
            told: AtomicBool::new(false),
            home,
            body,
        }
    }
}

impl AnyEntry {
    /// The handle that the entry got when the turn last filed it in the wheel.
    pub(super) fn place(&self) -> Option<Handle> {
        let bits = self.place.load(Ordering::Relaxed);
        let generation = NonZeroU32::new(bits as u32)?;
        Some(Handle::new((bits >> 32) as u32, generation))
    }

    /// The index that the entry got when it was last put into the inbox of its shard.
    pub(super) fn slot(&self) -> usize {
        self.slot.load(Ordering::Relaxed)
    }

    pub(super) fn set_slot(&self, slot: usize) {
        self.slot.store(slot, Ordering::Relaxed);
    }

    /// Asks the turn to look at the entry. True if no such request was open.
    pub(super) fn tell(&self) -> bool {
        !self.told.swap(true, Ordering::AcqRel)
    }

    /// Closes the request: the turn will look at the entry now.
    pub(super) fn answer(&self) {
        self.told.swap(false, Ordering::AcqRel);
    }

    /// Records that the entry is in no wheel: it is due, or the wheel is gone.
    pub(super) fn clear_place(&self) {
        self.place.store(0, Ordering::Relaxed);
    }

    pub(super) fn set_place(&self, handle: Handle) {
        let bits = u64::from(handle.place()) << 32 | u64::from(handle.generation().get());
        self.place.store(bits, Ordering::Relaxed);
    }

    /// See [`Timeout::cancel`](crate::Timeout::cancel).
    pub(crate) fn cancel(self: &Arc<Self>) -> bool {
        match self.word.cancel(self.body.is_periodic()) {
            Cancel::No => false,
            Cancel::Stopping => {
                // The cancel prevents the next run of a periodic task. This run is counted as accepted and as cancelled.
                self.home.count_stopped();
                true
            }
            Cancel::Cancelled { filed } => {
                self.home.forget(self, filed);
                self.body.give_up();
                true
            }
        }
    }

    /// See [`Timeout::reschedule`](crate::Timeout::reschedule).
    pub(crate) fn reschedule(self: &Arc<Self>, deadline: Monotonic) -> bool {
        loop {
            match self.word.reschedule(deadline) {
                Ok(before) => {
                    // If the entry was filed for an earlier tick, the turn looks at it in time, sees the new deadline and files it again.
                    // If it was filed for a later tick, the turn would look too late. If it was not filed, it is in an inbox, and the
                    // driver must not sleep beyond the new deadline.
                    if deadline < before.deadline() {
                        self.home.hurry(self, before.is_filed(), deadline);
                    }
                    return true;
                }
                Err(seen) if seen.is_open() => match self.home.revive(self, deadline) {
                    Some(revived) => return revived,
                    None => continue,
                },
                Err(_) => return false,
            }
        }
    }
}
