//! [`Model`]: a slow queue that is simple enough to be obviously correct.

use alloc::collections::BTreeMap;
use core::fmt;
use core::num::NonZeroU32;

use crate::{Handle, Refusal, Refused, RescheduleError, TimerQueue};

/// A [`TimerQueue`] that is a sorted map from (deadline, number of insertion) to value.
///
/// The model is the oracle of the tests: every wheel is compared with it, step by step. The queue to use is [`Wheel`](crate::Wheel).
///
/// [`next_wake`](TimerQueue::next_wake) is always exact. `now` and `len` are O(1), all other operations are O(log n). A handle is the
/// number of the insertion, so two entries of one model never have the same handle.
///
/// ```
/// use tickwheel_core::{Model, TimerQueue};
///
/// let mut model = Model::new(0);
/// model.insert(5, 'b').unwrap();
/// model.insert(3, 'a').unwrap();
/// let mut fired = vec![];
/// model.advance(5, &mut |deadline, value| fired.push((deadline, value)));
/// assert_eq!(fired, [(3, 'a'), (5, 'b')]);
/// ```
pub struct Model<T> {
    now: u64,
    inserted: u64,
    pending: BTreeMap<(u64, u64), T>,
    /// The deadline of each pending entry by its insertion number; `pending` has the same pairs as keys.
    deadlines: BTreeMap<u64, u64>,
}

impl<T> Model<T> {
    /// An empty model whose time is `start`.
    #[must_use]
    pub const fn new(start: u64) -> Self {
        Self { now: start, inserted: 0, pending: BTreeMap::new(), deadlines: BTreeMap::new() }
    }
}

impl<T> fmt::Debug for Model<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model")
            .field("now", &self.now)
            .field("len", &self.pending.len())
            .finish_non_exhaustive()
    }
}

impl<T> TimerQueue<T> for Model<T> {
    fn now(&self) -> u64 {
        self.now
    }

    fn len(&self) -> usize {
        self.pending.len()
    }

    fn insert(&mut self, deadline: u64, value: T) -> Result<Handle, Refused<T>> {
        let why = if deadline == u64::MAX {
            Refusal::TooFar
        } else if deadline <= self.now {
            Refusal::Elapsed
        } else if let Some(handle) = handle_of(self.inserted) {
            let seq = self.inserted;
            self.inserted += 1;
            self.deadlines.insert(seq, deadline);
            self.pending.insert((deadline, seq), value);
            return Ok(handle);
        } else {
            Refusal::Full
        };
        Err(Refused { value, why })
    }

    fn cancel(&mut self, handle: Handle) -> Option<T> {
        let seq = seq_of(handle);
        let deadline = self.deadlines.remove(&seq)?;
        self.pending.remove(&(deadline, seq))
    }

    fn reschedule(&mut self, handle: Handle, deadline: u64) -> Result<Handle, RescheduleError> {
        let seq = seq_of(handle);
        let Some(old) = self.deadlines.get_mut(&seq) else {
            return Err(RescheduleError::Stale);
        };
        if deadline == u64::MAX {
            return Err(RescheduleError::TooFar);
        }
        if deadline <= self.now {
            return Err(RescheduleError::Elapsed);
        }
        if let Some(value) = self.pending.remove(&(*old, seq)) {
            self.pending.insert((deadline, seq), value);
        }
        *old = deadline;
        Ok(handle)
    }

    fn deadline(&self, handle: Handle) -> Option<u64> {
        self.deadlines.get(&seq_of(handle)).copied()
    }

    fn next_wake(&self) -> Option<u64> {
        self.pending.first_key_value().map(|(key, _)| key.0)
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(u64, T)) -> usize {
        let mut fired = 0;
        while let Some(first) = self.pending.first_entry()
            && first.key().0 <= now
        {
            let ((deadline, seq), value) = first.remove_entry();
            self.deadlines.remove(&seq);
            // While entries with this deadline are handed out, time stands just before the deadline. So after a panic in `fire`, the
            // entries that were not handed out yet are still in the future.
            self.now = deadline - 1;
            fired += 1;
            fire(deadline, value);
        }
        self.now = self.now.max(now);
        fired
    }
}

/// The handle of the insertion with the number `seq`; `None` for the last 2^32 numbers, which do not fit into a handle.
fn handle_of(seq: u64) -> Option<Handle> {
    let place = (seq & u64::from(u32::MAX)) as u32;
    let generation = ((seq >> 32) as u32).checked_add(1)?;
    Some(Handle::new(place, NonZeroU32::new(generation)?))
}

/// The number of the insertion that got `handle`.
fn seq_of(handle: Handle) -> u64 {
    u64::from(handle.generation().get() - 1) << 32 | u64::from(handle.place())
}
