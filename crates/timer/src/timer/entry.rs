//! [`Entry`]: what waits for a deadline, with all that belongs to it in one allocation.
//!
//! Ground rules:
//! - `word` decides; see [`Word`].
//! - `place` is the turn's: it writes and reads it while it holds the wheel. An atomic because the
//!   entry is shared, `Relaxed` because the wheel's lock orders it.
//! - `slot` is the home shard's: where the entry stands in its inbox, under the inbox's lock.
//! - `told` is set by whoever moves it to an earlier deadline, after the word and under the inbox's lock, and cleared by the turn,
//!   before it looks at the word: so one visit answers any number of moves, and none is missed. Whoever finds it set knows the
//!   entry in the inbox, or on its way to the turn's look. Both are read-modify-writes that release and acquire.
//! - `body` is touched by whom the word gave the right to. Its own lock says so to the compiler and
//!   is never waited for, nor held while the body runs.

use std::num::NonZeroU32;
use std::sync::Arc;

use tickwheel_core::Handle;

use super::body::Body;
use super::shard::Shard;
use super::word::{Cancel, Word};
use crate::Monotonic;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// See the module. `B` is the kind of body; entries of any kind are [`AnyEntry`].
pub(crate) struct Entry<B: ?Sized> {
    pub(crate) word: Word,
    place: AtomicU64,
    slot: AtomicUsize,
    told: AtomicBool,
    pub(super) home: Arc<Shard>,
    pub(crate) body: B,
}

/// An entry whatever its body.
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
    /// Where the turn filed it last.
    pub(super) fn place(&self) -> Option<Handle> {
        let bits = self.place.load(Ordering::Relaxed);
        let generation = NonZeroU32::new(bits as u32)?;
        Some(Handle::new((bits >> 32) as u32, generation))
    }

    /// Where it was put into its shard's inbox last.
    pub(super) fn slot(&self) -> usize {
        self.slot.load(Ordering::Relaxed)
    }

    pub(super) fn set_slot(&self, slot: usize) {
        self.slot.store(slot, Ordering::Relaxed);
    }

    /// The turn is to look at it, and will. True if that is news.
    pub(super) fn tell(&self) -> bool {
        !self.told.swap(true, Ordering::AcqRel)
    }

    /// The turn is about to look at it.
    pub(super) fn answer(&self) {
        self.told.swap(false, Ordering::AcqRel);
    }

    /// It is in no wheel: it is due, or the wheel is gone.
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
                // Its next run counts as accepted, and as cancelled at once.
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
                    // Filed for later, the turn would look too late. Filed for earlier, it looks, sees and files it anew. Not filed,
                    // it is on its way to the turn, which must not sleep beyond the deadline.
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
