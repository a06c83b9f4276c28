//! [`HierarchicalWheel`]: rings of ever coarser slots, as hours, minutes and seconds are.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::fmt;
use core::mem;

use super::deadline::accept;
use super::level::Level;
use super::list::List;
use super::slab::Slab;
use crate::refusal::Objection;
use crate::{Handle, Refused, RescheduleError, TimerQueue};

/// Several rings: a slot of each is as long as a whole turn of the ring below it.
///
/// A far deadline begins in a coarse slot and comes down, ring by ring, as it draws near: it
/// *cascades*. It is scheme 7 of Varghese and Lauck (1987), built as Kafka (2015) builds it.
///
/// # How it works
/// - Levels are numbered from 1. The tick of level 1 is u; with n slots to a level, level l has a
///   tick of u x n^(l - 1), and its *turn* is n of those.
/// - Each level has a *clock*: now, rounded down to its tick. A level covers the deadlines before
///   its clock + its turn, and an entry goes to the lowest level that covers its deadline. A level
///   is made when an entry first needs it.
/// - The entries of one slot are a *bucket*. Its *expiry* is its deadlines rounded down to the
///   level's tick, so a bucket is taken out at its **start**, not at its end. Entries that are due
///   then fire; the others are filed again, on a lower level.
/// - The buckets that hold entries stand in a queue, ordered by expiry, and that queue drives the
///   clock. So there are no ticks at which nothing happens, and an idle year costs nothing.
///
/// # Cost
/// l is the number of levels, which is log n of the farthest distance; b of the buckets in use,
/// which is l times n at most.
///
/// | operation | cost |
/// |---|---|
/// | `now`, `len`, `deadline` | O(1) |
/// | `next_wake` | O(log b) |
/// | `insert`, `reschedule` | O(l), and O(log b) if the bucket was empty |
/// | `cancel` | O(1), and O(log b) if the bucket becomes empty |
/// | `advance` | O(log b) for each bucket taken out, O(l) for each entry that moves, at most l times in its life; O(k log k) for the k entries of a tick; no cost for the ticks between |
///
/// `next_wake` is the expiry of the next bucket: exact for an entry on level 1, and a stop on the
/// way for one above. So each deadline is reached in l stops at most.
///
/// # The worked table: u = 1, n = 3, start c, a multiple of 9
/// | level | tick | turn | slot 0 | slot 1 | slot 2 |
/// |---|---|---|---|---|---|
/// | 1 | 1 | 3 | c | c+1 | c+2 |
/// | 2 | 3 | 9 | c .. c+2 | c+3 .. c+5 | c+6 .. c+8 |
/// | 3 | 9 | 27 | c .. c+8 | c+9 .. c+17 | c+18 .. c+26 |
///
/// One tick later slot 0 of level 1 means c+3, for its turn is now c+1 .. c+3, while levels 2 and
/// 3 still are as above: a clock moves only by its own tick. The current slot of level 1 is always
/// spent. Slot 0 of levels 2 and 3 stays empty until time passes, for the level below covers it.
///
/// ```
/// use tickwheel_core::TimerQueue;
/// use tickwheel_core::classic::{HierarchicalWheel, Placement};
///
/// for c in [0, 9, 900] {
///     let mut wheel = HierarchicalWheel::new(c, 1, 3);
///     for (level, tick, nearest) in [(1, 1, 1), (2, 3, 3), (3, 9, 9)] {
///         for ahead in nearest..tick * 3 {
///             let handle = wheel.insert(c + ahead, ()).unwrap();
///             let slot = ahead / tick;
///             let placement = Placement { level, slot: slot as usize, bucket_expiry: c + slot * tick };
///             assert_eq!(wheel.look(handle), Some(placement));
///         }
///     }
///     wheel.advance(c + 1, &mut |_, _| ());
///     let handle = wheel.insert(c + 3, ()).unwrap();
///     let placement = Placement { level: 1, slot: 0, bucket_expiry: c + 3 };
///     assert_eq!(wheel.look(handle), Some(placement));
/// }
/// ```
///
/// **Other starts.** If c is no multiple of the upper ticks, each upper clock starts at c rounded
/// *down* to its own tick, and the rows of levels 2 and 3 do not start at c. From c = 10:
///
/// | level | slot 0 | slot 1 | slot 2 |
/// |---|---|---|---|
/// | 1 | 10 | 11 | 12 |
/// | 2 | 9 .. 11 | 12 .. 14 | 15 .. 17 |
/// | 3 | 9 .. 17 | 18 .. 26 | 27 .. 35 |
///
/// So 12 is on level 1, though slot 1 of level 2 has it too, and 13 is on level 2. Slots are
/// counted from the start, so that the table reads the same for all starts; Kafka counts them from
/// time 0, which is another name for the same buckets.
///
/// # What is often told otherwise
/// "At clock 1, a wheel of twenty 1 ms slots can take 21 in slot 0." It cannot. Its turn is 1 to
/// 20: 20 goes to slot 0 of level 1, and 21 to level 2, into the bucket that is taken out at 20. A
/// level covers `deadline < clock + turn`, and no more.
///
/// ```
/// use tickwheel_core::TimerQueue;
/// use tickwheel_core::classic::{HierarchicalWheel, Placement};
///
/// let mut wheel = HierarchicalWheel::new(0, 1, 20);
/// wheel.advance(1, &mut |_, _| ());
/// let (a, b) = (wheel.insert(20, ()).unwrap(), wheel.insert(21, ()).unwrap());
/// assert_eq!(wheel.look(a), Some(Placement { level: 1, slot: 0, bucket_expiry: 20 }));
/// assert_eq!(wheel.look(b), Some(Placement { level: 2, slot: 1, bucket_expiry: 20 }));
/// wheel.advance(20, &mut |_, _| ());
/// assert_eq!(wheel.look(b), Some(Placement { level: 1, slot: 1, bucket_expiry: 21 }));
/// ```
///
/// # Where it differs from Kafka's
/// - **Never early.** With u above 1, Kafka's deadlines are in effect rounded down: for u = 10, 35
///   runs at 30. Here a deadline is rounded *up* to a multiple of u when it comes in, and that is
///   the entry's deadline from then on: [`deadline`](TimerQueue::deadline) and `fire` report it,
///   and equal ones fire in order of insertion. So an entry is late by less than u. What is beyond
///   `u64::MAX - 1` after rounding is [`TooFar`](crate::Refusal::TooFar).
/// - **In order.** Equal deadlines that come from different levels fire in order of insertion.
/// - **The clock follows `advance`**, also when nothing is pending. Kafka's clock stands until a
///   bucket expires, so that after an idle day the next entry goes to a level it does not need.
/// - **A bucket that was emptied by a cancel leaves the queue** and asks for no wake.
///
/// # What it is not
/// The wheel to use: that is [`Wheel`](crate::Wheel).
pub struct HierarchicalWheel<T> {
    start: u64,
    now: u64,
    slab: Slab<T>,
    /// An entry's `home` is the index of its level here.
    levels: Vec<Level>,
    /// The buckets that hold entries: expiry and index of the level, from which the slot follows.
    buckets: BTreeSet<(u64, usize)>,
    /// The slots of the levels to come, if more are made on demand.
    size: Option<usize>,
    taken_out: u64,
}

/// Where an entry of a [`HierarchicalWheel`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The level, counted from 1, the finest.
    pub level: usize,
    /// The slot, counted from 0, which is that of the start.
    pub slot: usize,
    /// When the bucket in that slot is taken out: a multiple of the level's tick.
    pub bucket_expiry: u64,
}

impl<T> HierarchicalWheel<T> {
    /// An empty wheel whose time is `start`, with levels of `size` slots, made on demand. It
    /// reaches to the end of time, with 64 levels at the most.
    ///
    /// Ticks and turns that do not fit into 64 bits are cut off there, and the level that has such
    /// a turn is the last.
    ///
    /// # Panics
    /// If `tick` is 0, or `size` is less than 2: a level of one slot turns no longer than its tick,
    /// so no level above it would ever reach farther.
    #[must_use]
    pub fn new(start: u64, tick: u64, size: usize) -> Self {
        Self { size: Some(size), ..Self::with_levels(start, tick, &[size]) }
    }

    /// An empty wheel whose time is `start`. `sizes` has the number of slots of each level, the
    /// finest first; there are no other levels. A deadline that the last level does not cover is
    /// [`TooFar`](crate::Refusal::TooFar).
    ///
    /// As the last level's clock is rounded down to its tick, the reach varies: between its turn
    /// less one tick, and its turn.
    ///
    /// # Panics
    /// If `tick` is 0, there is no level, or one has less than 2 slots.
    ///
    /// A clock of seconds, minutes and hours shows 23:40:20, and something is due in ten minutes and
    /// five seconds:
    ///
    /// ```
    /// use tickwheel_core::classic::{HierarchicalWheel, Placement};
    /// use tickwheel_core::{Refusal, TimerQueue};
    ///
    /// const MIN: u64 = 60;
    /// const HOUR: u64 = 60 * MIN;
    /// const DAY: u64 = 24 * HOUR;
    /// let mut clock = HierarchicalWheel::with_levels(0, 1, &[60, 60, 24]);
    /// let now = 23 * HOUR + 40 * MIN + 20;
    /// clock.advance(now, &mut |_, _: &str| ());
    ///
    /// // 23:50:25 waits under minute 50, then under second 25.
    /// let handle = clock.insert(now + 10 * MIN + 5, "ten to twelve").unwrap();
    /// let minute_50 = 23 * HOUR + 50 * MIN;
    /// let placement = Placement { level: 2, slot: 50, bucket_expiry: minute_50 };
    /// assert_eq!(clock.look(handle), Some(placement));
    /// assert_eq!(clock.next_wake(), Some(minute_50));
    /// assert_eq!(clock.advance(minute_50, &mut |_, _| ()), 0); // it only moves down
    /// let placement = Placement { level: 1, slot: 25, bucket_expiry: minute_50 + 25 };
    /// assert_eq!(clock.look(handle), Some(placement));
    /// assert_eq!(clock.advance(minute_50 + 25, &mut |_, _| ()), 1);
    ///
    /// // The hour hand has 24 slots, from 23:00 to 22:59:59 of the next day.
    /// assert!(clock.insert(DAY + 23 * HOUR - 1, "tomorrow").is_ok());
    /// let refused = clock.insert(DAY + 23 * HOUR, "too late").unwrap_err();
    /// assert_eq!(refused.why, Refusal::TooFar);
    /// ```
    #[must_use]
    pub fn with_levels(start: u64, tick: u64, sizes: &[usize]) -> Self {
        assert!(tick > 0, "the tick of a hierarchical wheel is at least 1, and was given as 0");
        assert!(!sizes.is_empty(), "a hierarchical wheel needs at least one level, and was given none");
        let mut levels = Vec::with_capacity(sizes.len());
        let mut tick = tick;
        for (&size, number) in sizes.iter().zip(1..) {
            assert!(
                size >= 2,
                "a level of a hierarchical wheel needs at least 2 slots; level {number} has {size}"
            );
            let level = Level::new(start, tick, size);
            tick = level.turn;
            levels.push(level);
        }
        let (slab, buckets) = (Slab::new(), BTreeSet::new());
        Self { start, now: start, slab, levels, buckets, size: None, taken_out: 0 }
    }

    /// Where an entry is. `None` if the handle is stale. O(1).
    #[must_use]
    pub fn look(&self, handle: Handle) -> Option<Placement> {
        let entry = &self.slab[self.slab.find(handle)?];
        let level = &self.levels[entry.home];
        Some(Placement {
            level: entry.home + 1,
            slot: level.slot(entry.deadline),
            bucket_expiry: level.expiry(entry.deadline),
        })
    }

    /// How many levels have been made. O(1).
    #[must_use]
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// The clock of a level, counted from 1: now, rounded down to its tick. `None` if there is no
    /// such level, or not yet. O(1).
    #[must_use]
    pub fn clock(&self, level: usize) -> Option<u64> {
        let level = self.levels.get(level.checked_sub(1)?)?;
        Some(level.clock(self.now))
    }

    /// The expiries of the buckets that hold entries, from the next, with their levels, counted
    /// from 1.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, usize)> + use<'_, T> {
        self.buckets.iter().map(|&(expiry, level)| (expiry, level + 1))
    }

    /// How often an entry was taken out of a bucket because time had come to it: to be filed on a
    /// lower level, or to fire. It is the work the wheel has done besides inserting. O(1).
    #[must_use]
    pub fn taken_out(&self) -> u64 {
        self.taken_out
    }

    fn accept(&self, deadline: u64) -> Result<u64, Objection> {
        let deadline = accept(deadline, self.now, self.levels[0].tick)?;
        let last = &self.levels[self.levels.len() - 1];
        if self.size.is_none() && !last.covers(self.now, deadline) {
            return Err(Objection::TooFar);
        }
        Ok(deadline)
    }

    /// Puts an entry into the bucket it belongs to: on the lowest level that covers its deadline.
    fn file(&mut self, place: u32) {
        let deadline = self.slab[place].deadline;
        let home = self.level_for(deadline);
        let level = &mut self.levels[home];
        let bucket = level.bucket_mut(deadline);
        let first = bucket.is_empty();
        bucket.push_back(&mut self.slab, place);
        self.slab[place].home = home;
        if first {
            self.buckets.insert((level.expiry(deadline), home));
        }
    }

    /// The index of the lowest level that covers a deadline, which is made if it is not there.
    ///
    /// The search ends: each level turns at least twice as long as the one below, and a level whose
    /// turn is cut off at the end of time covers everything.
    fn level_for(&mut self, deadline: u64) -> usize {
        let mut index = 0;
        loop {
            let level = &self.levels[index];
            if level.covers(self.now, deadline) {
                return index;
            }
            index += 1;
            if index == self.levels.len() {
                let Some(size) = self.size else {
                    panic!("deadline {deadline} was accepted, but is beyond the last turn");
                };
                self.levels.push(Level::new(self.start, level.turn, size));
            }
        }
    }

    fn unlink(&mut self, place: u32) {
        let (deadline, home) = (self.slab[place].deadline, self.slab[place].home);
        let level = &mut self.levels[home];
        let bucket = level.bucket_mut(deadline);
        bucket.unlink(&mut self.slab, place);
        if bucket.is_empty() {
            self.buckets.remove(&(level.expiry(deadline), home));
        }
    }

    /// The entries that are due at `expiry`, the nearest of all buckets, in the order in which they
    /// fire. Buckets of several levels may expire together, and each may hold some of them.
    fn due(&self, expiry: u64) -> Vec<u32> {
        let mut due = Vec::new();
        for &(_, home) in self.buckets.range((expiry, 0)..=(expiry, usize::MAX)) {
            let places = self.levels[home].bucket(expiry).places(&self.slab);
            due.extend(places.filter(|&place| self.slab[place].deadline == expiry));
        }
        due.sort_unstable_by_key(|&place| self.slab[place].seq);
        due
    }

    /// Empties the buckets that expire at `expiry`, which is now, and files their entries again.
    /// Now is inside the span of these coarse slots, so finer levels cover the entries.
    fn cascade(&mut self, expiry: u64) {
        while let Some(&(first, home)) = self.buckets.first()
            && first == expiry
        {
            self.buckets.pop_first();
            let mut bucket = mem::replace(self.levels[home].bucket_mut(expiry), List::EMPTY);
            while let Some(place) = bucket.first() {
                bucket.unlink(&mut self.slab, place);
                self.taken_out += 1;
                self.file(place);
            }
        }
    }
}

impl<T> TimerQueue<T> for HierarchicalWheel<T> {
    fn now(&self) -> u64 {
        self.now
    }

    fn len(&self) -> usize {
        self.slab.len()
    }

    fn insert(&mut self, deadline: u64, value: T) -> Result<Handle, Refused<T>> {
        match self.accept(deadline) {
            Ok(deadline) => {
                let handle = self.slab.insert(deadline, value)?;
                self.file(handle.place());
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
        let deadline = self.accept(deadline)?;
        self.unlink(place);
        self.slab[place].deadline = deadline;
        self.file(place);
        Ok(handle)
    }

    fn deadline(&self, handle: Handle) -> Option<u64> {
        Some(self.slab[self.slab.find(handle)?].deadline)
    }

    fn next_wake(&self) -> Option<u64> {
        self.buckets.first().map(|&(expiry, _)| expiry)
    }

    fn advance(&mut self, now: u64, fire: &mut dyn FnMut(u64, T)) -> usize {
        let mut fired = 0;
        while let Some(&(expiry, _)) = self.buckets.first()
            && expiry <= now
        {
            // Time stands just before the expiry while its entries are handed out, so that a panic
            // leaves the others in the future, and in their buckets.
            self.now = expiry - 1;
            for place in self.due(expiry) {
                self.unlink(place);
                let value = self.slab.remove(place);
                self.taken_out += 1;
                fired += 1;
                fire(expiry, value);
            }
            self.now = expiry;
            self.cascade(expiry);
        }
        self.now = self.now.max(now);
        fired
    }
}

impl<T> fmt::Debug for HierarchicalWheel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HierarchicalWheel")
            .field("now", &self.now)
            .field("len", &self.slab.len())
            .field("levels", &self.levels.len())
            .field("next_wake", &self.next_wake())
            .finish_non_exhaustive()
    }
}
