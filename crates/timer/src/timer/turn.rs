//! [`Turn`]: the wheel, and one turn of the timer, which files new entries and takes out due ones.
//!
//! This module is pure: it takes the time as an argument, runs no body and wakes no thread. It returns a [`Handout`] to the thread that
//! holds the lock of the turn, and this thread delivers it after it has released the lock.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::task::Waker;

use tickwheel_core::{TimerQueue, Wheel};

use super::entry::AnyEntry;
use super::job::Job;
use super::shard::Shard;
use super::word::{HandOver, Phase};
use crate::Monotonic;

/// The largest number of new entries that one turn files, which takes 0.4 ms: many new entries at once must not delay due entries. Each shard
/// has an equal share of it, so that many entries in one shard do not delay the other shards.
///
/// A shard with an entry that may be due already has all of it: entries that are due go out in the order of their ticks, so all of them have
/// to be filed before the first one goes out.
const FILED_AT_MOST: usize = 4_096;

/// A list with a larger capacity frees memory when it has become short.
const KEPT: usize = 2 * FILED_AT_MOST;

/// The largest number of entries that go out in one turn: many due entries at once must not delay the filing of new ones.
const HANDED_AT_MOST: usize = 1_024;

/// The number of handed entries that are checked in one turn, in addition to two for each entry that goes out. So entries that have run are
/// dropped soon, and waiting entries are never checked all at once.
const LET_GO_AT_LEAST: usize = 16;

/// The wheel and the lists around it; see the module.
pub(super) struct Turn {
    wheel: Wheel<Arc<AnyEntry>>,
    tick_nanos: NonZeroU64,
    /// The latest reading that a turn was given.
    now: Monotonic,
    /// The entries from each shard that the turn has not looked at.
    incoming: Box<[VecDeque<Arc<AnyEntry>>]>,
    /// For each shard a lower bound of the deadlines of these entries.
    earliest: Box<[Monotonic]>,
    /// A buffer that is kept between turns to reuse its memory.
    collected: Vec<Option<Arc<AnyEntry>>>,
    /// Entries that left the wheel, in the order in which they go out.
    due: VecDeque<Arc<AnyEntry>>,
    /// Entries that executors have, in no order, so that `shutdown` can find them; some of them have run.
    handed: VecDeque<Arc<AnyEntry>>,
}

/// How much work one turn does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// A limited part of each kind of work, so that no kind waits long.
    Bounded,
    /// All work that exists when the turn begins.
    All,
}

/// Due entries of a turn, to be delivered after the lock is released.
#[derive(Default)]
pub(super) struct Handout {
    pub(super) jobs: Vec<Job>,
    pub(super) wakers: Vec<Waker>,
    /// Whether more work is waiting already.
    pub(super) more: bool,
}

/// The tick for deadlines that are never due: no clock reaches it, because a tick is at least 1 us.
const NEVER: u64 = u64::MAX - 1;

/// How long the driver may sleep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// The reading at which to wake up; `None` if no entry will become due.
    pub(super) wake: Option<Monotonic>,
    /// A new deadline before this reading needs an earlier wake-up.
    pub(super) until: Monotonic,
}

impl Turn {
    pub(super) fn new(now: Monotonic, tick_nanos: NonZeroU64, shards: usize) -> Self {
        Self {
            wheel: Wheel::new(now.floor_ticks(tick_nanos)),
            tick_nanos,
            now,
            incoming: (0..shards).map(|_| VecDeque::new()).collect(),
            earliest: (0..shards).map(|_| Monotonic::MAX).collect(),
            collected: Vec::new(),
            due: VecDeque::new(),
            handed: VecDeque::new(),
        }
    }

    /// Files new entries and takes out due ones.
    pub(super) fn run(&mut self, shards: &[Arc<Shard>], now: Monotonic, pace: Pace) -> Handout {
        self.now = self.now.max(now);
        let until = self.rest().until.max(now.just_after());
        self.collect(shards, until, pace);
        self.file(pace);
        self.advance(now, pace);
        let most = if pace == Pace::All { usize::MAX } else { HANDED_AT_MOST };
        let mut handout = self.hand_out(now, most);
        handout.more = !self.due.is_empty() || self.incoming.iter().any(|incoming| !incoming.is_empty());
        ease(&mut self.due);
        ease(&mut self.handed);
        handout
    }

    /// The next deadline of all entries in the timer. New entries in the shards are filed first.
    pub(super) fn next(&mut self, shards: &[Arc<Shard>], now: Monotonic) -> Option<Monotonic> {
        self.now = self.now.max(now);
        self.collect(shards, Monotonic::MAX, Pace::All);
        self.file(Pace::All);
        if self.due.is_empty() { self.rest().wake } else { Some(Monotonic::ZERO) }
    }

    /// Empties the inboxes that have an entry that is due before `until`, or too many entries. A shard whose last entries are not all filed
    /// is skipped, unless `pace` is `All`.
    fn collect(&mut self, shards: &[Arc<Shard>], until: Monotonic, pace: Pace) {
        let lists = self.incoming.iter_mut().zip(&mut self.earliest);
        for (shard, (incoming, earliest)) in shards.iter().zip(lists) {
            if incoming.is_empty() || pace == Pace::All {
                let before = if incoming.is_empty() { Monotonic::MAX } else { *earliest };
                *earliest = before.min(shard.collect(until, &mut self.collected));
                incoming.extend(self.collected.drain(..).flatten());
            }
        }
        if self.collected.capacity() > KEPT {
            self.collected.shrink_to(KEPT);
        }
    }

    /// Looks at the entries of each shard, as many as `pace` allows.
    fn file(&mut self, pace: Pace) {
        let share = FILED_AT_MOST / self.incoming.len();
        for shard in 0..self.incoming.len() {
            let most = match pace {
                Pace::All => usize::MAX,
                Pace::Bounded if self.earliest[shard] <= self.now => FILED_AT_MOST,
                Pace::Bounded => share,
            };
            for _ in 0..most.min(self.incoming[shard].len()) {
                if let Some(entry) = self.incoming[shard].pop_front() {
                    self.look(entry);
                }
            }
            ease(&mut self.incoming[shard]);
        }
    }

    /// Handles an entry from an inbox. It is new, or was moved to an earlier deadline, or was cancelled.
    fn look(&mut self, entry: Arc<AnyEntry>) {
        entry.answer();
        let seen = entry.word.look();
        match seen.phase() {
            Phase::Pending if seen.is_filed() => {
                let tick = self.tick_of(&entry, seen.deadline());
                let Some(handle) = entry.place() else { return };
                // If the wheel has no deadline for the entry, the entry has left the wheel, and the turn looks at it when it goes out.
                if self.wheel.deadline(handle).is_some_and(|filed| tick < filed) {
                    match self.wheel.reschedule(handle, tick) {
                        Ok(handle) => entry.set_place(handle),
                        Err(_) => self.due.extend(self.wheel.cancel(handle)),
                    }
                }
            }
            Phase::Pending => {
                if let Some(deadline) = entry.word.file() {
                    self.place(entry, deadline);
                }
            }
            Phase::Fired | Phase::Cancelled | Phase::Returned => {
                if let Some(handle) = entry.place()
                    && let Some(found) = self.wheel.cancel(handle)
                    && !Arc::ptr_eq(&found, &entry)
                {
                    found.clear_place();
                    // The entry's handle is from the wheel before `drain`; another entry may have this handle in the new wheel.
                    self.restore(found);
                }
            }
            // An entry that was moved twice may be in the inbox twice, and the other look has handled it.
            Phase::Due | Phase::Firing | Phase::Stopping => {}
        }
    }

    /// Puts an entry that is marked as filed into the wheel.
    fn place(&mut self, entry: Arc<AnyEntry>, deadline: Monotonic) {
        let tick = self.tick_of(&entry, deadline);
        if tick <= self.wheel.now() {
            entry.clear_place();
            self.due.push_back(entry);
            return;
        }
        let handle = self.wheel.insert(tick, Arc::clone(&entry));
        // The wheel accepts deadlines up to `u64::MAX` - 1 ticks, and 2^32 entries do not fit into memory.
        entry.set_place(handle.expect("a deadline after now has a place in the wheel"));
    }

    /// The tick of a deadline in the wheel. It is the tick that has begun if the deadline has come and the task begins at once.
    fn tick_of(&self, entry: &AnyEntry, deadline: Monotonic) -> u64 {
        if deadline.has_come(self.now) && entry.body.begins_at_once() {
            return deadline.ceil_ticks(self.tick_nanos).min(self.now.floor_ticks(self.tick_nanos));
        }
        if deadline == Monotonic::MAX { NEVER } else { deadline.ceil_ticks(self.tick_nanos) }
    }

    fn advance(&mut self, now: Monotonic, pace: Pace) {
        let tick = now.floor_ticks(self.tick_nanos);
        let Self { wheel, due, .. } = self;
        if pace == Pace::Bounded {
            // The wheel advances by single wakes until enough entries are due.
            while let Some(wake) = wheel.next_wake().filter(|wake| *wake <= tick) {
                if due.len() >= HANDED_AT_MOST {
                    return;
                }
                wheel.advance_with(wake, |_, entry| due.push_back(entry));
            }
        }
        wheel.advance_with(tick, |_, entry| due.push_back(entry));
    }

    fn hand_out(&mut self, now: Monotonic, most: usize) -> Handout {
        let mut handout = Handout::default();
        for _ in 0..most.min(self.due.len()) {
            let Some(entry) = self.due.pop_front() else { break };
            let waits = entry.body.waiter().is_some();
            let next = if waits { Phase::Fired } else { Phase::Due };
            match entry.word.hand_over(now, next) {
                HandOver::Yes if waits => {
                    let deadline = entry.word.look().deadline();
                    entry.home.count_woken(now.saturating_since(deadline));
                    handout.wakers.extend(entry.body.waiter().and_then(|waiter| waiter.take_waker()));
                }
                HandOver::Yes => {
                    self.handed.push_back(Arc::clone(&entry));
                    handout.jobs.push(Job::new(entry));
                }
                HandOver::Later => {
                    let deadline = entry.word.look().deadline();
                    self.place(entry, deadline);
                }
                HandOver::Gone => {}
            }
        }
        self.let_go(LET_GO_AT_LEAST + 2 * handout.jobs.len());
        handout
    }

    /// Checks the next `most` entries that executors have, and drops those whose body has begun.
    fn let_go(&mut self, most: usize) {
        for _ in 0..most.min(self.handed.len()) {
            let Some(entry) = self.handed.pop_front() else { break };
            if entry.word.look().phase() == Phase::Due {
                self.handed.push_back(entry);
            }
        }
    }

    /// How long the timer may sleep, according to the wheel.
    pub(super) fn rest(&self) -> Rest {
        match self.wheel.next_wake() {
            // A deadline that is never due needs no wake-up.
            None | Some(NEVER..) => Rest { wake: None, until: Monotonic::MAX },
            Some(tick) => {
                // A new deadline needs an earlier wake-up if it is at this reading or before.
                let before = Monotonic::from_tick(tick - 1, self.tick_nanos);
                Rest { wake: Some(Monotonic::from_tick(tick, self.tick_nanos)), until: before.just_after() }
            }
        }
    }

    /// Takes out all entries: first those that executors have, then the others in the order in which they would go out.
    pub(super) fn drain(&mut self) -> Vec<Arc<AnyEntry>> {
        let mut all = Vec::from(std::mem::take(&mut self.handed));
        all.extend(self.due.drain(..));
        let now = self.wheel.now();
        self.wheel.advance_with(NEVER, |_, entry| all.push(entry));
        self.wheel = Wheel::new(now);
        all.extend(self.incoming.iter_mut().flat_map(|incoming| incoming.drain(..)));
        for entry in &all {
            entry.clear_place();
        }
        all
    }

    /// Files an entry again that [`drain`](Self::drain) returned. `drain` may have returned it twice.
    pub(super) fn restore(&mut self, entry: Arc<AnyEntry>) {
        entry.answer();
        let seen = entry.word.look();
        match seen.phase() {
            Phase::Pending if seen.is_filed() => {
                if entry.place().is_none() {
                    self.place(entry, seen.deadline());
                }
            }
            Phase::Due => self.handed.push_back(entry),
            _ => self.look(entry),
        }
    }
}

/// Frees memory of a list that has become short.
fn ease(list: &mut VecDeque<Arc<AnyEntry>>) {
    if list.capacity() > KEPT && list.capacity() / 4 > list.len() {
        list.shrink_to(KEPT.max(2 * list.len()));
    }
}

#[cfg(all(test, not(tickwheel_shuttle)))]
mod tests {
    use super::super::body::OneShot;
    use super::super::common::{Common, Source};
    use super::super::limit::Limit;
    use super::super::nap::Nap;
    use super::*;
    use crate::ManualClock;
    use crate::sync::atomic::AtomicU64;
    use crate::sync::{Mutex, lock};

    /// The story: the driver is late, and two threads have scheduled up to 4,096 tasks each, the last ones for the earliest ticks. The budget of
    /// a turn was divided by the number of shards, so on a machine with 16 cores already the 65th task of a thread ran out of order.
    #[test]
    fn t9_a_late_turn_runs_the_tasks_of_all_threads_in_the_order_of_their_ticks() {
        for (count, tasks) in [(2, 2_049), (8, 513), (8, 4_096), (64, 65), (64, 4_096)] {
            let tick_nanos = NonZeroU64::new(1_000_000).expect("not 0");
            let common = Arc::new(Common {
                clock: Source::Other(Arc::new(ManualClock::new())),
                tick_nanos,
                nap: Nap::new(),
                limit: Limit::new(None),
                refused: AtomicU64::new(0),
                lateness: None,
            });
            let shards: Vec<_> = (0..count).map(|_| Arc::new(Shard::new(Arc::clone(&common)))).collect();
            let mut turn = Turn::new(Monotonic::ZERO, tick_nanos, count);
            let ran = Arc::new(Mutex::new(Vec::new()));
            for shard in [0, count - 1] {
                for tick in (1..=tasks).rev() {
                    let ran = Arc::clone(&ran);
                    let task = OneShot::new(move || lock(&ran).push(tick));
                    let accepted = shards[shard].accept(Monotonic::from_tick(tick, tick_nanos), task);
                    assert!(accepted.is_ok(), "an open shard accepts");
                }
            }
            loop {
                let now = Monotonic::from_tick(10_000, tick_nanos);
                let Handout { jobs, more, .. } = turn.run(&shards, now, Pace::Bounded);
                let idle = jobs.is_empty() && !more;
                jobs.into_iter().for_each(Job::run);
                if idle {
                    break;
                }
            }
            let ran = lock(&ran);
            assert!(ran.len() as u64 == 2 * tasks && ran.is_sorted(), "{tasks} tasks, {count} shards");
        }
    }
}
