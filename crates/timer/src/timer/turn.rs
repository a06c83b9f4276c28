//! [`Turn`]: the wheel, and one turn of the timer: what came in is filed, what is due goes out.
//!
//! Pure: it takes the time as an argument, runs nothing and wakes nobody; it gives a [`Handout`] to
//! whoever holds its lock, who delivers it after letting go.

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

/// So many entries are filed in one turn, which takes 0.4 ms: a flood of them does not keep what is
/// due from going out. Each shard has its share of them: a flood in one does not keep the others waiting.
const FILED_AT_MOST: usize = 4_096;

/// A list that was longer gives its memory back when it is short again.
const KEPT: usize = 2 * FILED_AT_MOST;

/// So many entries go out in one turn: a flood of them does not keep others from being filed.
const HANDED_AT_MOST: usize = 1_024;

/// So many that executors have are looked at in a turn, beside two for each that goes out: what has run is let go soon, and
/// those that wait are never looked at all together.
const LET_GO_AT_LEAST: usize = 16;

/// See the module.
pub(super) struct Turn {
    wheel: Wheel<Arc<AnyEntry>>,
    tick_nanos: NonZeroU64,
    /// From each shard, not looked at yet.
    incoming: Box<[VecDeque<Arc<AnyEntry>>]>,
    /// Keeps its memory from shard to shard.
    collected: Vec<Option<Arc<AnyEntry>>>,
    /// Out of the wheel, in the order in which they go out.
    due: VecDeque<Arc<AnyEntry>>,
    /// What executors have, for `shutdown` to find, in no order; some of it has run.
    handed: VecDeque<Arc<AnyEntry>>,
}

/// How much a turn does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// A share of each kind, so that none waits long for another.
    Bounded,
    /// All that is there when it begins.
    All,
}

/// What a turn found due, to be delivered without the lock.
#[derive(Default)]
pub(super) struct Handout {
    pub(super) jobs: Vec<Job>,
    pub(super) wakers: Vec<Waker>,
    /// There is more to do at once.
    pub(super) more: bool,
}

/// The tick of deadlines that never come: no clock reaches it, since a tick has 1 us or more.
const NEVER: u64 = u64::MAX - 1;

/// How long the driver may sleep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// When to wake up; `None` if nothing is pending.
    pub(super) wake: Option<Monotonic>,
    /// A deadline before this one needs an earlier wake-up.
    pub(super) until: Monotonic,
}

impl Turn {
    pub(super) fn new(now: Monotonic, tick_nanos: NonZeroU64, shards: usize) -> Self {
        Self {
            wheel: Wheel::new(now.floor_ticks(tick_nanos)),
            tick_nanos,
            incoming: (0..shards).map(|_| VecDeque::new()).collect(),
            collected: Vec::new(),
            due: VecDeque::new(),
            handed: VecDeque::new(),
        }
    }

    /// Files what came in and takes out what is due.
    pub(super) fn run(&mut self, shards: &[Arc<Shard>], now: Monotonic, pace: Pace) -> Handout {
        let until = self.rest().until.max(now.just_after());
        self.collect(shards, until, pace);
        let most = if pace == Pace::All { usize::MAX } else { FILED_AT_MOST / shards.len() };
        self.file(most);
        self.advance(now, pace);
        let most = if pace == Pace::All { usize::MAX } else { HANDED_AT_MOST };
        let mut handout = self.hand_out(now, most);
        handout.more = !self.due.is_empty() || self.incoming.iter().any(|incoming| !incoming.is_empty());
        ease(&mut self.due);
        ease(&mut self.handed);
        handout
    }

    /// When something is due next, of all that was ever left in the shards: it files what it did not know.
    pub(super) fn next(&mut self, shards: &[Arc<Shard>]) -> Option<Monotonic> {
        self.collect(shards, Monotonic::MAX, Pace::All);
        self.file(usize::MAX);
        if self.due.is_empty() { self.rest().wake } else { Some(Monotonic::ZERO) }
    }

    /// Takes the inboxes in which something is due before `until`, or which have too much; one whose last load is not done
    /// waits for its turn, unless it is all to be done.
    fn collect(&mut self, shards: &[Arc<Shard>], until: Monotonic, pace: Pace) {
        for (shard, incoming) in shards.iter().zip(&mut self.incoming) {
            if incoming.is_empty() || pace == Pace::All {
                shard.collect(until, &mut self.collected);
                incoming.extend(self.collected.drain(..).flatten());
            }
        }
        if self.collected.capacity() > KEPT {
            self.collected.shrink_to(KEPT);
        }
    }

    /// Looks at so many of each shard.
    fn file(&mut self, most: usize) {
        for shard in 0..self.incoming.len() {
            for _ in 0..most.min(self.incoming[shard].len()) {
                if let Some(entry) = self.incoming[shard].pop_front() {
                    self.look(entry);
                }
            }
            ease(&mut self.incoming[shard]);
        }
    }

    /// Does what an entry that came in needs: it is new, or to be looked at earlier, or cancelled.
    fn look(&mut self, entry: Arc<AnyEntry>) {
        entry.answer();
        let seen = entry.word.look();
        match seen.phase() {
            Phase::Pending if seen.is_filed() => {
                let tick = self.tick_of(seen.deadline());
                let Some(handle) = entry.place() else { return };
                // No deadline: it is out of the wheel, and will be looked at when it goes out.
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
                    // The place was of a wheel before `drain`, and by now it is another's.
                    self.restore(found);
                }
            }
            // Moved twice, it came in twice, and the other visit did it all.
            Phase::Due | Phase::Firing | Phase::Stopping => {}
        }
    }

    /// Puts an entry that is marked as filed where its deadline belongs.
    fn place(&mut self, entry: Arc<AnyEntry>, deadline: Monotonic) {
        let tick = self.tick_of(deadline);
        if tick <= self.wheel.now() {
            entry.clear_place();
            self.due.push_back(entry);
            return;
        }
        let handle = self.wheel.insert(tick, Arc::clone(&entry));
        // The wheel has a place up to `u64::MAX` ticks, and 2^32 entries do not fit into memory.
        entry.set_place(handle.expect("a deadline after now has a place in the wheel"));
    }

    /// Where a deadline stands in the wheel.
    fn tick_of(&self, deadline: Monotonic) -> u64 {
        if deadline == Monotonic::MAX { NEVER } else { deadline.ceil_ticks(self.tick_nanos) }
    }

    fn advance(&mut self, now: Monotonic, pace: Pace) {
        let tick = now.floor_ticks(self.tick_nanos);
        let Self { wheel, due, .. } = self;
        if pace == Pace::Bounded {
            // Tick by tick, until there is enough to do.
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

    /// Forgets those whose body has begun, among so many of what executors have.
    fn let_go(&mut self, most: usize) {
        for _ in 0..most.min(self.handed.len()) {
            let Some(entry) = self.handed.pop_front() else { break };
            if entry.word.look().phase() == Phase::Due {
                self.handed.push_back(entry);
            }
        }
    }

    /// How long nothing has to be done, as far as the wheel knows.
    pub(super) fn rest(&self) -> Rest {
        match self.wheel.next_wake() {
            // What never comes needs no wake-up.
            None | Some(NEVER..) => Rest { wake: None, until: Monotonic::MAX },
            Some(tick) => {
                // A deadline on the tick before is the last one that needs an earlier wake-up.
                let before = Monotonic::from_tick(tick - 1, self.tick_nanos);
                Rest { wake: Some(Monotonic::from_tick(tick, self.tick_nanos)), until: before.just_after() }
            }
        }
    }

    /// Takes out everything that it knows of: what executors have, then the rest in the order in which it would go out.
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

    /// Takes an entry in again that [`drain`](Self::drain) gave out, which may be more than once.
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

/// Gives the memory of a flood back when it has passed.
fn ease(list: &mut VecDeque<Arc<AnyEntry>>) {
    if list.capacity() > KEPT && list.capacity() / 4 > list.len() {
        list.shrink_to(KEPT.max(2 * list.len()));
    }
}
