//! [`Shard`]: the place where a thread leaves its requests to a timer, mostly without sharing it with another thread.
//!
//! Each thread always uses the same shard, and there are several shards per core, so threads rarely share cache lines and locks. The driver
//! collects from a shard only when it must: before the earliest deadline in it, or when it has too many entries. Until then, an entry that
//! is cancelled costs the driver nothing: it leaves the inbox. So a timeout that is cancelled soon, as most are, never reaches the wheel.
//!
//! # Ground rules
//! - `inbox` is protected by its lock, which is held for a push, a look through the inbox or a swap, and never while a body, a waker or the
//!   drop of a task runs.
//! - Accepting and pushing an entry are one step under the lock. So `shutdown`, which closes the inbox under the same lock, either finds
//!   the entry or makes the shard refuse it.
//! - The counter of an end is raised after the counter of the acceptance. A thread that sums up the counters reads the ends of all shards
//!   first and the acceptances last, so `pending` is never negative.

use std::cell::Cell;
use std::sync::Arc;

use super::body::Body;
use super::common::Common;
use super::entry::{AnyEntry, Entry};
use super::metrics::Counts;
use super::refused::Refusal;
use crate::Monotonic;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard, lock};

/// The smallest number of slots at which the holes of an inbox are closed.
const LEAST_TO_CLOSE_UP: usize = 256;

/// The number of live entries above which the driver has to collect and file them. The driver needs 0.1 us for each, and must not find too
/// many at once when an entry is due.
const SPILL: usize = 4_096;

/// See the module. Aligned to 128 bytes against false sharing: processors fetch cache lines of 64 bytes in pairs.
#[repr(align(128))]
pub(crate) struct Shard {
    inbox: Mutex<Inbox>,
    ends: Ends,
    pub(crate) common: Arc<Common>,
}

/// The counters of ends. Threads that run a body raise them.
#[repr(align(128))]
#[derive(Default)]
struct Ends {
    fired: AtomicU64,
    panicked: AtomicU64,
    returned: AtomicU64,
}

#[derive(Default)]
struct Inbox {
    /// The entries in order of arrival, with a hole for each entry that was cancelled.
    entries: Vec<Option<Arc<AnyEntry>>>,
    /// A lower bound of the deadlines of the entries; `None` if no entry has one.
    earliest: Option<Monotonic>,
    close_up_at: usize,
    /// More than `SPILL` entries are alive, so the driver should collect them.
    spills: bool,
    accepted: u64,
    cancelled: u64,
    cancelled_unfiled: u64,
    door: Door,
}

/// The entries that a shard accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Door {
    /// All entries.
    #[default]
    Open,
    /// Only entries that were accepted earlier and are filed again.
    Closing,
    /// Like `Closing`, but no periodic entries.
    ClosingOnce,
    /// No entries.
    Shut,
}

impl Shard {
    pub(super) fn new(common: Arc<Common>) -> Self {
        Self { inbox: Mutex::default(), ends: Ends::default(), common }
    }

    /// Accepts a body for a deadline, or gives it back.
    pub(crate) fn accept<B: Body + 'static>(
        self: &Arc<Self>,
        deadline: Monotonic,
        body: B,
    ) -> Result<Arc<AnyEntry>, (B, Refusal)> {
        self.accept_below_limit(deadline, deadline, body)
    }

    /// Like [`accept`](Self::accept), but the driver looks at the entry now, and not at the next tick.
    pub(super) fn accept_at_once<B: Body + 'static>(
        self: &Arc<Self>,
        deadline: Monotonic,
        body: B,
    ) -> Result<Arc<AnyEntry>, (B, Refusal)> {
        self.accept_below_limit(deadline, Monotonic::ZERO, body)
    }

    /// Like [`accept`](Self::accept), but also above the limit. It is for the alarm of a delay queue, because the waiters of the queue
    /// would sleep for ever without it.
    pub(crate) fn accept_anyway<B: Body + 'static>(
        self: &Arc<Self>,
        deadline: Monotonic,
        body: B,
    ) -> Result<Arc<AnyEntry>, (B, Refusal)> {
        self.common.limit.take_anyway();
        self.accept_with_place(deadline, deadline, body)
    }

    /// Takes a place below the limit, and accepts the body.
    fn accept_below_limit<B: Body + 'static>(
        self: &Arc<Self>,
        deadline: Monotonic,
        look_before: Monotonic,
        body: B,
    ) -> Result<Arc<AnyEntry>, (B, Refusal)> {
        if !self.common.limit.take() {
            return Err((body, self.common.refuse(Refusal::Full)));
        }
        self.accept_with_place(deadline, look_before, body)
    }

    /// The driver looks at the entry before `look_before`.
    fn accept_with_place<B: Body + 'static>(
        self: &Arc<Self>,
        deadline: Monotonic,
        look_before: Monotonic,
        body: B,
    ) -> Result<Arc<AnyEntry>, (B, Refusal)> {
        let entry = Arc::new(Entry::new(deadline, Arc::clone(self), body));
        if self.push_new(Arc::clone(&entry) as Arc<AnyEntry>, look_before) {
            return Ok(entry);
        }
        self.common.limit.release();
        let entry = Arc::into_inner(entry).expect("an entry that was refused has one owner");
        Err((entry.body, self.common.refuse(Refusal::ShutDown)))
    }

    /// Pushes a new entry. False if the door is closed.
    fn push_new(&self, entry: Arc<AnyEntry>, look_before: Monotonic) -> bool {
        let mut inbox = lock(&self.inbox);
        if inbox.door != Door::Open {
            return false;
        }
        inbox.accepted += 1;
        self.leave(inbox, entry, look_before);
        true
    }

    /// After an entry was moved to an earlier deadline: makes the driver act before this deadline. If the entry was filed for a later tick,
    /// asks the driver to look at it.
    pub(super) fn hurry(&self, entry: &Arc<AnyEntry>, filed: bool, deadline: Monotonic) {
        let mut inbox = lock(&self.inbox);
        if inbox.door == Door::Shut {
            return;
        }
        // The flag is set under the lock. If two threads move the entry, the thread that finds the flag set must not call the driver before
        // the other thread has put the entry here, because the driver would not find it.
        let spills = if filed && entry.tell() {
            inbox.push(Arc::clone(entry), Some(deadline))
        } else {
            inbox.expect(deadline);
            false
        };
        drop(inbox);
        self.call(spills, Some(deadline));
    }

    /// Counts an entry as cancelled. Removes it from the inbox, or asks the driver to remove it from the wheel.
    pub(super) fn forget(&self, entry: &Arc<AnyEntry>, filed: bool) {
        let mut inbox = lock(&self.inbox);
        inbox.cancelled += 1;
        let mut spills = false;
        if !filed {
            inbox.cancelled_unfiled += 1;
            inbox.take_out(entry);
        } else if inbox.door != Door::Shut {
            spills = inbox.push(Arc::clone(entry), None);
        }
        drop(inbox);
        self.call(spills, None);
        self.common.limit.release();
    }

    /// Makes a due entry whose body has not begun pending again. False after a shutdown; `None` if the entry is not due any more.
    pub(super) fn revive(&self, entry: &Arc<AnyEntry>, deadline: Monotonic) -> Option<bool> {
        let inbox = lock(&self.inbox);
        if inbox.door == Door::Shut {
            return Some(false);
        }
        if !entry.word.take_back(deadline) {
            return None;
        }
        self.leave(inbox, Arc::clone(entry), deadline);
        Some(true)
    }

    /// Accepts the next run of a periodic entry after its run. False if there is no further run.
    pub(super) fn again(&self, entry: &Arc<AnyEntry>, deadline: Monotonic) -> bool {
        let mut inbox = lock(&self.inbox);
        let open = matches!(inbox.door, Door::Open | Door::Closing);
        if !open || !entry.word.again(deadline) {
            return false;
        }
        inbox.accepted += 1;
        self.leave(inbox, Arc::clone(entry), deadline);
        true
    }

    /// Puts an entry into the inbox, and releases the lock before it calls the driver.
    fn leave(&self, mut inbox: MutexGuard<'_, Inbox>, entry: Arc<AnyEntry>, deadline: Monotonic) {
        let spills = inbox.push(entry, Some(deadline));
        drop(inbox);
        self.call(spills, Some(deadline));
    }

    fn call(&self, spills: bool, deadline: Option<Monotonic>) {
        if spills {
            self.common.nap.wake();
        } else if let Some(deadline) = deadline {
            self.common.nap.wake_before(deadline);
        }
    }

    /// Moves all entries to `into` if an entry is due before `until`, or if there are too many entries. Returns a lower bound of their
    /// deadlines.
    pub(super) fn collect(&self, until: Monotonic, into: &mut Vec<Option<Arc<AnyEntry>>>) -> Monotonic {
        let mut inbox = lock(&self.inbox);
        if !inbox.needs_the_driver(until) {
            return Monotonic::MAX;
        }
        let earliest = inbox.earliest.unwrap_or(Monotonic::MAX);
        inbox.empty(into);
        earliest
    }

    /// Whether [`collect`](Self::collect) would move anything.
    pub(super) fn needs_the_driver(&self, until: Monotonic) -> bool {
        lock(&self.inbox).needs_the_driver(until)
    }

    /// From this call on, accepts only the entries that `door` allows. A door never opens again.
    pub(super) fn close(&self, door: Door) {
        let mut inbox = lock(&self.inbox);
        inbox.door = inbox.door.max(door);
    }

    /// Moves all entries to `into`.
    pub(super) fn empty(&self, into: &mut Vec<Option<Arc<AnyEntry>>>) {
        lock(&self.inbox).empty(into);
    }

    /// Counts the next run of a periodic entry as accepted and cancelled, because it will not take place.
    pub(super) fn count_stopped(&self) {
        let mut inbox = lock(&self.inbox);
        inbox.accepted += 1;
        inbox.cancelled += 1;
    }

    pub(super) fn count_fired(&self) {
        self.ends.fired.fetch_add(1, Ordering::Release);
    }

    /// Counts a future that was woken, and its lateness.
    pub(super) fn count_woken(&self, late: std::time::Duration) {
        self.count_fired();
        self.common.limit.release();
        if let Some(lateness) = &self.common.lateness {
            lateness.record(late);
        }
    }

    pub(super) fn count_panicked(&self) {
        self.ends.panicked.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_returned(&self) {
        self.ends.returned.fetch_add(1, Ordering::Release);
        self.common.limit.release();
    }

    /// Adds the ends that this shard counted to `counts`.
    pub(super) fn add_ends(&self, counts: &mut Counts) {
        counts.fired += self.ends.fired.load(Ordering::Acquire);
        counts.returned += self.ends.returned.load(Ordering::Acquire);
        let inbox = lock(&self.inbox);
        counts.cancelled += inbox.cancelled;
        counts.cancelled_unfiled += inbox.cancelled_unfiled;
        counts.panicked += self.ends.panicked.load(Ordering::Relaxed);
    }

    /// Adds the acceptances that this shard counted to `counts`.
    pub(super) fn add_accepted(&self, counts: &mut Counts) {
        counts.accepted += lock(&self.inbox).accepted;
    }
}

impl Inbox {
    /// Pushes an entry. True if the driver should collect the entries.
    fn push(&mut self, entry: Arc<AnyEntry>, deadline: Option<Monotonic>) -> bool {
        entry.set_slot(self.entries.len());
        self.entries.push(Some(entry));
        if let Some(deadline) = deadline {
            self.expect(deadline);
        }
        self.entries.len() >= self.close_up_at.max(LEAST_TO_CLOSE_UP) && self.close_up()
    }

    /// Records that an entry in this inbox is due at `deadline`.
    fn expect(&mut self, deadline: Monotonic) {
        self.earliest = Some(self.earliest.map_or(deadline, |earliest| earliest.min(deadline)));
    }

    /// Replaces the entry by a hole. An entry that was moved may be in the inbox a second time; that reference is removed when the holes
    /// are closed.
    fn take_out(&mut self, entry: &Arc<AnyEntry>) {
        if let Some(slot) = self.entries.get_mut(entry.slot())
            && slot.as_ref().is_some_and(|found| Arc::ptr_eq(found, entry))
        {
            // The caller has another reference, so no user value is dropped under the lock.
            *slot = None;
        }
    }

    /// Closes the holes. It is called when the inbox has three times the number of entries that were alive at the last time, so on average
    /// each push pays for half a look.
    #[cold]
    fn close_up(&mut self) -> bool {
        let mut alive = 0;
        self.entries.retain(|entry| {
            let Some(entry) = entry else { return false };
            let seen = entry.word.look();
            let stays = !seen.is_over() || seen.is_filed();
            if stays {
                entry.set_slot(alive);
                alive += 1;
            }
            stays
        });
        self.close_up_at = 3 * alive;
        // The memory is freed after many entries were cancelled.
        if self.entries.capacity() > 2 * SPILL && self.entries.capacity() / 8 > alive {
            self.entries.shrink_to(SPILL.max(4 * alive));
        }
        self.spills = alive > SPILL;
        self.spills
    }

    fn needs_the_driver(&self, until: Monotonic) -> bool {
        self.spills || self.earliest.is_some_and(|earliest| earliest < until)
    }

    fn empty(&mut self, into: &mut Vec<Option<Arc<AnyEntry>>>) {
        self.earliest = None;
        self.spills = false;
        self.close_up_at = 0;
        if into.is_empty() {
            std::mem::swap(&mut self.entries, into);
        } else {
            into.append(&mut self.entries);
        }
    }
}

/// The shard of the calling thread; it is the same one in each call.
pub(super) fn of_this_thread(shards: &[Arc<Shard>]) -> &Arc<Shard> {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    let number = NUMBER.try_with(|cell| {
        if cell.get() == usize::MAX {
            cell.set(THREADS.fetch_add(1, Ordering::Relaxed));
        }
        cell.get()
    });
    // A thread that is ending may have no number any more; it uses shard 0.
    &shards[number.unwrap_or(0) & (shards.len() - 1)]
}
