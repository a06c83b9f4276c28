//! [`HierarchicalWheel`]: several rings; the slots of each ring are coarser than those of the ring before it, as with seconds, minutes and
//! hours.

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

/// Several rings of slots. One slot of a ring is as long as a whole turn of the next finer ring.
///
/// An entry with a far deadline begins in a coarse slot. As its deadline comes nearer, it moves to finer rings, one after the other: it
/// *cascades*. This is scheme 7 of Varghese and Lauck (1987), in the form of Kafka (2015).
///
/// # How it works
/// - Levels are numbered from 1. The tick of level 1 is u; with n slots to a level, level l has a
///   tick of u x n^(l - 1), and its *turn* is n of those.
/// - Each level has a *clock*: now, rounded down to its tick. A level covers the deadlines before its clock plus its turn, and an entry
///   goes to the lowest level that covers its deadline. A level is made when an entry first needs it.
/// - The entries of one slot are a *bucket*. Its *expiry* is its deadlines rounded down to the
///   level's tick, so a bucket is taken out at its **start**, not at its end. Entries that are due
///   then fire; the others are filed again, on a lower level.
/// - The buckets that hold entries are in a queue, ordered by expiry, and that queue drives the clock. So no time is spent on ticks at
///   which nothing expires, and an idle year costs nothing.
///
/// # Cost
/// l is the number of levels, which is log n of the farthest distance for n slots per level. b is the number of buckets in use, which is at
/// most l times n.
///
/// | operation | cost |
/// |---|---|
/// | `now`, `len`, `deadline` | O(1) |
/// | `next_wake` | O(log b) |
/// | `insert`, `reschedule` | O(l), and O(log b) if the bucket was empty |
/// | `cancel` | O(1), and O(log b) if the bucket becomes empty |
/// | `advance` | O(log b) for each bucket taken out, O(l) for each entry that moves, at most l times in its life; O(k log k) for the k entries of a tick; no cost for the ticks between |
///
/// `next_wake` is the expiry of the next bucket. It is exact if the entry is on level 1; for an entry on a higher level it is an earlier
/// stop. So each deadline is reached in at most l stops.
///
/// # The worked table: u = 1, n = 3, start c, a multiple of 9
/// | level | tick | turn | slot 0 | slot 1 | slot 2 |
/// |---|---|---|---|---|---|
/// | 1 | 1 | 3 | c | c+1 | c+2 |
/// | 2 | 3 | 9 | c .. c+2 | c+3 .. c+5 | c+6 .. c+8 |
/// | 3 | 9 | 27 | c .. c+8 | c+9 .. c+17 | c+18 .. c+26 |
///
/// One tick later, slot 0 of level 1 means c+3, because the turn of level 1 is now c+1 .. c+3. Levels 2 and 3 are still as above, because a
/// level's clock moves only by its own tick. The current slot of level 1 is always empty, because its tick has passed. Slot 0 of levels 2
/// and 3 is empty until time passes, because the level below covers its deadlines.
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
/// **Other starts.** If c is no multiple of the upper ticks, the clock of each upper level starts at c rounded *down* to the level's tick,
/// and the rows of levels 2 and 3 do not start at c. From c = 10:
///
/// | level | slot 0 | slot 1 | slot 2 |
/// |---|---|---|---|
/// | 1 | 10 | 11 | 12 |
/// | 2 | 9 .. 11 | 12 .. 14 | 15 .. 17 |
/// | 3 | 9 .. 17 | 18 .. 26 | 27 .. 35 |
///
/// So 12 is on level 1, although slot 1 of level 2 spans it too, and 13 is on level 2. Slots are counted from the start, so that the table
/// has the same form for all starts. Kafka counts them from time 0; only the numbers of the slots differ.
///
/// # A common error
/// Some texts say: "At clock 1, a wheel of twenty 1 ms slots can take 21 in slot 0." That is wrong. At clock 1, level 1 covers the deadlines
/// 1 to 20, so deadline 20 goes to slot 0 of level 1. Deadline 21 goes to level 2, into the bucket that expires at 20. A level covers exactly
/// the deadlines with `deadline < clock + turn`.
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
/// - **Never early.** With u above 1, Kafka in effect rounds deadlines down: for u = 10, 35 runs at 30. Here a deadline is rounded *up* to
///   a multiple of u at the insertion. The rounded value is the entry's deadline from then on: [`deadline`](TimerQueue::deadline) and
///   `fire` report it, and entries with equal rounded deadlines fire in order of insertion. So an entry is late by less than u. A deadline
///   beyond `u64::MAX - 1` after rounding is [`TooFar`](crate::Refusal::TooFar).
/// - **In order.** Equal deadlines that come from different levels fire in order of insertion.
/// - **The clock follows `advance`**, also when nothing is pending. Kafka's clock stands still until a bucket expires, so after an idle day
///   the next entry goes to a higher level than necessary.
/// - **A bucket that a cancel empties leaves the queue** and causes no wake.
///
/// # What it is not
/// This type is not the wheel to use: that is [`Wheel`](crate::Wheel).
pub struct HierarchicalWheel<T> {
    start: u64,
    now: u64,
    slab: Slab<T>,
    /// The levels, from the finest. An entry's `home` is the index of its level in this vector.
    levels: Vec<Level>,
    /// The buckets that hold entries: expiry and index of the level. The slot follows from these.
    buckets: BTreeSet<(u64, usize)>,
    /// The number of slots of each new level, if levels are made on demand; `None` if all levels exist from the start.
    size: Option<usize>,
    taken_out: u64,
}

/// The position of an entry of a [`HierarchicalWheel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The level, counted from 1, which is the finest.
    pub level: usize,
    /// The slot, counted from 0, which is the slot of the start.
    pub slot: usize,
    /// The time at which the bucket in that slot is taken out: a multiple of the level's tick.
    pub bucket_expiry: u64,
}

impl<T> HierarchicalWheel<T> {
    /// An empty wheel whose time is `start`, with levels of `size` slots, which are made on demand. It accepts deadlines up to the end of
    /// time, with at most 64 levels.
    ///
    /// A tick or a turn that does not fit into 64 bits is set to the largest value. A level with such a turn is the last one.
    ///
    /// # Panics
    /// If `tick` is 0, or if `size` is less than 2: the turn of a level with one slot is no longer than its tick, so higher levels would
    /// not cover more time.
    #[must_use]
    pub fn new(start: u64, tick: u64, size: usize) -> Self {
        Self { size: Some(size), ..Self::with_levels(start, tick, &[size]) }
    }

    /// An empty wheel whose time is `start`. `sizes` has the number of slots of each level, the
    /// finest first; there are no other levels. A deadline that the last level does not cover is
    /// [`TooFar`](crate::Refusal::TooFar).
    ///
    /// The clock of the last level is rounded down to its tick. So the farthest deadline that is accepted varies: its distance is between
    /// the turn less one tick, and the turn.
    ///
    /// # Panics
    /// If `tick` is 0, there is no level, or one has less than 2 slots.
    ///
    /// Example: a clock of seconds, minutes and hours shows 23:40:20, and an entry is due in ten minutes and five seconds:
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

    /// The position of an entry. `None` if the handle is stale. O(1).
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

    /// The number of levels that exist. O(1).
    #[must_use]
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// The clock of a level: now, rounded down to the level's tick. Levels are counted from 1. `None` if the level does not exist (yet).
    /// O(1).
    #[must_use]
    pub fn clock(&self, level: usize) -> Option<u64> {
        let level = self.levels.get(level.checked_sub(1)?)?;
        Some(level.clock(self.now))
    }

    /// The expiries of the buckets that hold entries, the next one first, each with its level, counted from 1.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, usize)> + use<'_, T> {
        self.buckets.iter().map(|&(expiry, level)| (expiry, level + 1))
    }

    /// How many times an entry was taken out of a bucket because the bucket expired: the entry was then filed on a lower level, or fired.
    /// This number is the work of the wheel besides insertions. O(1).
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

    /// Puts an entry into its bucket, on the lowest level that covers its deadline.
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

    /// The index of the lowest level that covers a deadline. If no level covers it, levels are made.
    ///
    /// The search ends: the turn of each level is at least twice the turn of the level below, and a level whose turn is limited to 64 bits
    /// covers all deadlines.
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

    /// The places of the entries that are due at `expiry`, in the order in which they fire. `expiry` is the earliest expiry of all buckets.
    /// Buckets of several levels may have this expiry, and each such bucket may hold some of these entries.
    fn due(&self, expiry: u64) -> Vec<u32> {
        let mut due = Vec::new();
        for &(_, home) in self.buckets.range((expiry, 0)..=(expiry, usize::MAX)) {
            let places = self.levels[home].bucket(expiry).places(&self.slab);
            due.extend(places.filter(|&place| self.slab[place].deadline == expiry));
        }
        due.sort_unstable_by_key(|&place| self.slab[place].seq);
        due
    }

    /// Empties the buckets that expire at `expiry`, and files their entries again. Now is `expiry`, so it is inside the span of these
    /// coarse slots, and finer levels cover the entries.
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
            // While entries are handed out, time stands just before the expiry. So after a panic in `fire`, the entries that were not
            // handed out yet are still in the future, and in their buckets.
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
