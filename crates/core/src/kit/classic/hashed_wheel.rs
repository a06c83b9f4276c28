//! [`HashedWheel`]: one ring of slots for all deadlines. Entries of later turns wait for several rounds.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use super::deadline::accept;
use super::list::List;
use super::slab::Slab;
use crate::{Handle, Refused, RescheduleError, TimerQueue};

/// One ring of s slots. The hand visits one slot per tick and goes round and round. An entry waits in its slot until the hand has passed
/// over it the right number of times.
///
/// Ticks are numbered from the start. The entry of tick k is in slot k mod s. If tick i is the next that the hand visits, the entry has
/// (k - i) / s *rounds* to wait. A visit fires the entries of its slot that have no round left and passes over the others. This is scheme 6 of
/// Varghese and Lauck (1987), and the timer of Netty (version 3.1, 2009) and of Dubbo.
///
/// Netty and Dubbo store the rounds and count them down at each visit. This wheel does not store them, because they follow from the
/// deadline. So after a long jump all entries have the right number of rounds without any work.
///
/// # Cost
/// n is the number of entries, s the number of slots.
///
/// | operation | cost |
/// |---|---|
/// | `now`, `len`, `deadline` | O(1) |
/// | `insert`, `cancel`, `reschedule` | O(1) |
/// | `next_wake` | O(slots and entries the hand passes until then), so O(s + n) |
/// | `advance` | O(1) for each slot visited, at most s of them, and for each entry there, due or not; O(k log k) for the k that fire |
///
/// A jump visits each slot at most once, even if the jump is many turns long. `next_wake` is always exact. If the wheel woke at each visit
/// instead, each turn of waiting would have a wake at which nothing fires.
///
/// # Slots and tick
/// The number of slots may be any positive number; Netty and Dubbo round it up to a power of two. The hand meets n / s entries per visit on
/// average, so s should be about n.
///
/// With a tick of more than 1, the insertion rounds a deadline up to a multiple of the tick. The rounded value is the entry's
/// deadline from then on: [`deadline`](TimerQueue::deadline) and `fire` report it, and entries with equal rounded deadlines fire in order
/// of insertion. So an entry is late by less than a tick, and never early. (Netty visits a slot after the slot's tick has *passed*. There an
/// entry is late by more than 0 and at most one tick.) A deadline beyond `u64::MAX - 1` after rounding is
/// [`TooFar`](crate::Refusal::TooFar).
///
/// # What it is not
/// This wheel is not quick for delays of many turns: the hand meets such an entry once in each turn. The
/// [`HierarchicalWheel`](super::HierarchicalWheel) touches such an entry once in each level.
///
/// # The worked table: tick 1, three slots, start c
/// At now = c the hand visits c+1 next. Each cell has a deadline and its rounds:
///
/// | slot 0 | slot 1 | slot 2 |
/// |---|---|---|
/// | | c+1: 0 | c+2: 0 |
/// | c+3: 0 | c+4: 1 | c+5: 1 |
/// | c+6: 1 | c+7: 2 | c+8: 2 |
///
/// c+3 is in the slot of c itself. The hand visits that slot next at c+3, so there are no rounds to wait: (3 - 1) / 3 = 0. A count from
/// now, (3 - 0) / 3 = 1, would be wrong: the entry would fire a turn late. One tick later, at now = c+1, c+4 has no round left either, and
/// c+7 has one.
///
/// ```
/// use tickwheel_core::TimerQueue;
/// use tickwheel_core::classic::{HashedPlacement, HashedWheel};
///
/// for c in [0, 1, 1_000] {
///     let mut wheel = HashedWheel::new(c, 3);
///     let handles: Vec<_> = (1..=8).map(|k| wheel.insert(c + k, k).unwrap()).collect();
///     for (k, handle) in (1..=8).zip(&handles) {
///         let (slot, rounds) = (k % 3, (k as u64 - 1) / 3);
///         assert_eq!(wheel.look(*handle), Some(HashedPlacement { slot, rounds }));
///     }
///     let mut fired = vec![];
///     wheel.advance(c + 1, &mut |_, k| fired.push(k));
///     assert_eq!(fired, [1]);
///     assert_eq!(wheel.look(handles[3]), Some(HashedPlacement { slot: 1, rounds: 0 }));
///     assert_eq!(wheel.look(handles[6]), Some(HashedPlacement { slot: 1, rounds: 1 }));
/// }
/// ```
pub struct HashedWheel<T> {
    start: u64,
    now: u64,
    tick: u64,
    /// The entries of a slot are in no order; the entries that fire are sorted when they are taken out.
    slots: Vec<List>,
    slab: Slab<T>,
}

/// The position of an entry of a [`HashedWheel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashedPlacement {
    /// The slot, counted from 0.
    pub slot: usize,
    /// The number of visits of the slot that pass over the entry before the visit that fires it.
    pub rounds: u64,
}

impl<T> HashedWheel<T> {
    /// An empty wheel whose time is `start`, with a tick of 1.
    ///
    /// # Panics
    /// If `slots` is 0.
    #[must_use]
    pub fn new(start: u64, slots: usize) -> Self {
        Self::with_tick(start, 1, slots)
    }

    /// An empty wheel whose time is `start` and whose hand moves by `tick`.
    ///
    /// # Panics
    /// If `tick` or `slots` is 0.
    ///
    /// ```
    /// use tickwheel_core::TimerQueue;
    /// use tickwheel_core::classic::HashedWheel;
    ///
    /// let mut wheel = HashedWheel::with_tick(0, 10, 3);
    /// let handle = wheel.insert(15, "rounded up").unwrap();
    /// assert_eq!(wheel.deadline(handle), Some(20));
    /// assert_eq!(wheel.advance(19, &mut |_, _| ()), 0);
    /// assert_eq!(wheel.advance(20, &mut |deadline, _| assert_eq!(deadline, 20)), 1);
    /// ```
    #[must_use]
    pub fn with_tick(start: u64, tick: u64, slots: usize) -> Self {
        assert!(tick > 0, "the tick of a hashed wheel is at least 1, and was given as 0");
        assert!(slots > 0, "a hashed wheel needs at least one slot, and was given 0");
        Self { start, now: start, tick, slots: vec![List::EMPTY; slots], slab: Slab::new() }
    }

    /// The slot of an entry and the rounds it has to wait. `None` if the handle is stale. O(1).
    #[must_use]
    pub fn look(&self, handle: Handle) -> Option<HashedPlacement> {
        let index = self.index(self.deadline(handle)?);
        let next_visited = self.index(self.now) + 1;
        let rounds = (index - next_visited) / self.slots.len() as u64;
        Some(HashedPlacement { slot: self.slot(index), rounds })
    }

    /// The number of the tick that `time` is in, counted from the tick of the start.
    fn index(&self, time: u64) -> u64 {
        time / self.tick - self.start / self.tick
    }

    fn slot(&self, index: u64) -> usize {
        (index % self.slots.len() as u64) as usize
    }

    fn link(&mut self, place: u32) {
        let slot = self.slot(self.index(self.slab[place].deadline));
        self.slots[slot].push_back(&mut self.slab, place);
    }

    fn unlink(&mut self, place: u32) {
        let slot = self.slot(self.index(self.slab[place].deadline));
        self.slots[slot].unlink(&mut self.slab, place);
    }

    /// The places of the entries that are due by `now`, in the order in which they fire.
    fn due(&self, now: u64) -> Vec<u32> {
        let mut due = Vec::new();
        let (last_visited, current) = (self.index(self.now), self.index(now));
        let visits = (current - last_visited).min(self.slots.len() as u64);
        for index in last_visited + 1..=last_visited + visits {
            let places = self.slots[self.slot(index)].places(&self.slab);
            due.extend(places.filter(|&place| self.slab[place].deadline <= now));
        }
        due.sort_unstable_by_key(|&place| self.slab[place].order());
        due
    }
}

impl<T> TimerQueue<T> for HashedWheel<T> {
    fn now(&self) -> u64 {
        self.now
    }

    fn len(&self) -> usize {
        self.slab.len()
    }

    fn insert(&mut self, deadline: u64, value: T) -> Result<Handle, Refused<T>> {
        match accept(deadline, self.now, self.tick) {
            Ok(deadline) => {
                let handle = self.slab.insert(deadline, value)?;
                self.link(handle.place());
                Ok(handle)
            }
            Err(objection) => Err(objection.refuse(value)),
        }
    }

    fn cancel(&mut self, handle: Handle) -> Option<T> {
        let place = self.slab.find(handle)?;
        self.unlink(place);
        Some(self.slab.remove(place))
    }

    fn reschedule(&mut self, handle: Handle, deadline: u64) -> Result<Handle, RescheduleError> {
        let place = self.slab.find(handle).ok_or(RescheduleError::Stale)?;
        let deadline = accept(deadline, self.now, self.tick)?;
        self.unlink(place);
        self.slab[place].deadline = deadline;
        self.link(place);
        Ok(handle)
    }

    fn deadline(&self, handle: Handle) -> Option<u64> {
        Some(self.slab[self.slab.find(handle)?].deadline)
    }

    fn next_wake(&self) -> Option<u64> {
        if self.len() == 0 {
            return None;
        }
        let mut nearest = u64::MAX;
        let here = self.index(self.now);
        for index in (1..=self.slots.len() as u64).map_while(|ahead| here.checked_add(ahead)) {
            for place in self.slots[self.slot(index)].places(&self.slab) {
                nearest = nearest.min(self.slab[place].deadline);
            }
            // The later slots have no entry that is due before `nearest`.
            if nearest < u64::MAX && self.index(nearest) <= index {
                break;
            }
        }
        Some(nearest)
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(u64, T)) -> usize {
        let mut fired = 0;
        if now > self.now && self.len() > 0 {
            for place in self.due(now) {
                let deadline = self.slab[place].deadline;
                // While entries with this deadline are handed out, time stands just before the deadline. So after a panic in `fire`, the
                // entries that were not handed out yet are still in the future.
                self.now = deadline - 1;
                self.unlink(place);
                let value = self.slab.remove(place);
                fired += 1;
                fire(deadline, value);
            }
        }
        self.now = self.now.max(now);
        fired
    }
}

impl<T> fmt::Debug for HashedWheel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HashedWheel")
            .field("now", &self.now)
            .field("len", &self.slab.len())
            .field("tick", &self.tick)
            .field("slots", &self.slots.len())
            .finish_non_exhaustive()
    }
}
