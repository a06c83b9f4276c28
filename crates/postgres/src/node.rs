//! [`Node`]: this process among those that share the database.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tickwheel_engine::Validity;

use crate::clock::DatabaseClock;
use crate::database::{Holder, InboxPage, Read, Seen};
use crate::inbox::Inbox;
use crate::known_keys::KeyRoom;
use crate::lane::{Job, Outcome};
use crate::mailbox::Mailbox;
use crate::pulse::Pulse;

/// Reads the boot-time clock of this machine (ns). The clock goes on while the machine sleeps.
pub type BootClock = Box<dyn Fn() -> u64 + Send + Sync>;

/// The parts that the stores of this process share: the work for the lanes and readers, the questions to the inbox, the news for each shard, and until when the process may answer.
///
/// A node has no threads. [`Threads`](crate::Threads) do its work; the simulator does it step by step.
pub struct Node {
    boot_clock: BootClock,
    pulse: Mutex<Pulse>,
    clock: Mutex<DatabaseClock>,
    lanes: Vec<Mailbox<(u32, Job)>>,
    reads: Vec<Mailbox<ReadJob>>,
    inbox: Inbox,
    key_room: Arc<KeyRoom>,
    shards: Mutex<BTreeMap<u32, Arc<News>>>,
    /// The other incarnations that beat, and the troubles of the threads.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    timeline: Option<Timeline>,
    /// Incarnations that were seen to beat within their lease.
    alive: Vec<String>,
    troubles: BTreeMap<String, String>,
    adoptions: u64,
}

/// The present timeline of the database. Each fail-over begins one.
#[derive(Debug)]
struct Timeline {
    number: i64,
    /// When this process first saw it (boot-time clock, ns).
    since_ns: u64,
    /// The incarnation of this process that ended with the timeline before, if no other process can have had its shards by then.
    unbroken: Option<String>,
}

/// A question of one shard.
#[derive(Debug)]
pub struct ReadJob {
    /// The shard.
    pub shard: u32,
    /// The number by which the shard knows the question.
    pub no: u64,
    /// The question.
    pub read: Read,
}

/// The shards of a process know at most this many keys together, which takes about 48 MB.
const KNOWN_KEYS: usize = 2_000_000;
/// At most this many reasons are told together.
const TROUBLES_MAX: usize = 3;

/// News for the store of one shard.
#[derive(Debug)]
pub enum Event {
    /// A job of a lane has an outcome.
    Job(Outcome),
    /// A question was answered; `Err`: it cannot be answered, for this reason.
    Read(u64, Result<Seen, String>),
    /// Rows of the inbox.
    Inbox(InboxPage),
}

/// The news that the store of one shard has not taken yet.
pub struct News {
    events: Mutex<Vec<Event>>,
    wake: tickwheel_store::Wake,
}

impl News {
    /// Takes out all news.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *lock(&self.events))
    }

    fn push(&self, event: Event) {
        lock(&self.events).push(event);
        (self.wake)();
    }
}

impl std::fmt::Debug for News {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("News").field("events", &self.events).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("pulse", &self.pulse).field("state", &self.state).finish_non_exhaustive()
    }
}

impl Node {
    /// Returns a node without an incarnation. `lease_ms`: how long the beat of a process must stand still before another process may take its
    /// shards (ms). `lanes`: how many sessions commit side by side, and `readers`:
    /// how many read, at least 1 each.
    #[must_use]
    pub fn new(lease_ms: u32, lanes: usize, readers: usize, boot_clock: BootClock) -> Self {
        Self {
            boot_clock,
            pulse: Mutex::new(Pulse::new(lease_ms)),
            clock: Mutex::new(DatabaseClock::default()),
            lanes: (0..lanes.max(1)).map(|_| Mailbox::default()).collect(),
            reads: (0..readers.max(1)).map(|_| Mailbox::default()).collect(),
            inbox: Inbox::default(),
            key_room: Arc::new(KeyRoom::new(KNOWN_KEYS)),
            shards: Mutex::new(BTreeMap::new()),
            state: Mutex::new(State::default()),
        }
    }

    /// Sets how many keys of tasks the stores of all shards keep in memory together. The default is 2,000,000, which takes about 48 MB. A put of
    /// a key that no task has needs no question to the database then.
    #[must_use]
    pub fn with_known_keys(mut self, keys: usize) -> Self {
        self.key_room = Arc::new(KeyRoom::new(keys));
        self
    }

    /// Registers the store of a shard. Returns its news; `wake` is called when there are new ones.
    #[must_use]
    pub fn register(&self, shard: u32, wake: tickwheel_store::Wake) -> Arc<News> {
        let news = Arc::new(News { events: Mutex::new(Vec::new()), wake });
        lock(&self.shards).insert(shard, Arc::clone(&news));
        news
    }

    /// Gives a job to the lane of the shard.
    pub fn submit(&self, shard: u32, job: Job) {
        self.lanes[shard as usize % self.lanes.len()].push((shard, job));
    }

    /// Gives a question to a reader. The look-ups and the scans for near tasks of a shard have one reader, so they are answered in their order, and puts of new keys keep
    /// the order of their calls. The first reader has all other questions, which may take long, unless it is the only one.
    pub fn ask(&self, job: ReadJob) {
        let finders = self.reads.len() - 1;
        let index = match &job.read {
            Read::Find(_) | Read::ScanDue { .. } if finders > 0 => 1 + job.shard as usize % finders,
            _ => 0,
        };
        self.reads[index].push(job);
    }

    /// Returns the jobs of one lane.
    #[must_use]
    pub fn lane(&self, index: usize) -> &Mailbox<(u32, Job)> {
        &self.lanes[index]
    }

    /// Returns the number of lanes.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// Returns the questions for one reader.
    #[must_use]
    pub fn reads(&self, index: usize) -> &Mailbox<ReadJob> {
        &self.reads[index]
    }

    /// Returns the number of readers.
    #[must_use]
    pub fn readers(&self) -> usize {
        self.reads.len()
    }

    /// Returns the shards that wait for rows of the inbox.
    #[must_use]
    pub fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// Returns the room for the keys that are kept in memory.
    pub(crate) fn key_room(&self) -> Arc<KeyRoom> {
        Arc::clone(&self.key_room)
    }

    /// Tells a shard its news.
    pub fn tell(&self, shard: u32, event: Event) {
        let news = lock(&self.shards).get(&shard).cloned();
        if let Some(news) = news {
            news.push(event);
        }
    }

    /// Wakes the stores of all shards, because the validity changed.
    pub fn wake_all(&self) {
        let all: Vec<Arc<News>> = lock(&self.shards).values().cloned().collect();
        all.iter().for_each(|news| (news.wake)());
    }

    /// Returns the boot-time clock now (ns).
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        (self.boot_clock)()
    }

    /// Returns the present incarnation.
    #[must_use]
    pub fn incarnation(&self) -> Option<String> {
        self.pulse().incarnation().map(str::to_owned)
    }

    /// Returns whether shards that were taken by this incarnation may answer now. Reads the clock.
    #[must_use]
    pub fn validity(&self, incarnation: &str) -> Validity {
        let pulse = self.pulse();
        // The clock is read last, so that a wait for the lock counts.
        pulse.validity(incarnation, self.now_ns())
    }

    /// Returns the pulse.
    pub fn pulse(&self) -> MutexGuard<'_, Pulse> {
        lock(&self.pulse)
    }

    /// Returns the clock of the database.
    pub fn clock(&self) -> MutexGuard<'_, DatabaseClock> {
        lock(&self.clock)
    }

    /// Notes which other incarnations beat within their lease.
    pub fn set_alive(&self, alive: Vec<String>) {
        lock(&self.state).alive = alive;
    }

    /// Whether the holder of a shard is known to beat, so that it makes no sense to ask for the shard.
    #[must_use]
    pub fn is_alive(&self, holder: &Holder) -> bool {
        lock(&self.state).alive.contains(&holder.incarnation)
    }

    /// Notes that the database is on a new timeline. `unbroken`: the incarnation of this process that ended with the timeline before, if no
    /// other process can have had its shards by then.
    pub fn begin_timeline(&self, number: i64, since_ns: u64, unbroken: Option<String>) {
        lock(&self.state).timeline = Some(Timeline { number, since_ns, unbroken });
    }

    /// Returns the timeline on which a shard may be taken although the fail-over before it may have lost the entry of the owner. After a whole
    /// lease, no owner of before is valid any more. `last`: the incarnation of this process that had the shard last. If it had the shard until
    /// the fail-over, no other owner can be lost.
    #[must_use]
    pub fn may_take_after_loss(&self, last: Option<&str>) -> Option<i64> {
        let (now_ns, lease_ns) = (self.now_ns(), self.pulse().lease_ns());
        let state = lock(&self.state);
        let Timeline { number, since_ns, unbroken } = state.timeline.as_ref()?;
        let is_safe =
            now_ns.saturating_sub(*since_ns) >= lease_ns || (last.is_some() && unbroken.as_deref() == last);
        is_safe.then_some(*number)
    }

    /// Notes why one of the threads does not get on; `None`: it does.
    pub fn set_trouble(&self, thread: &str, why: Option<&str>) {
        let mut state = lock(&self.state);
        match why {
            Some(why) => drop(state.troubles.insert(thread.to_owned(), why.to_owned())),
            None => drop(state.troubles.remove(thread)),
        }
    }

    /// Counts that an operator has adopted the tables, and so ended an incarnation of this process.
    pub fn count_adoption(&self) {
        lock(&self.state).adoptions += 1;
    }

    /// Returns how often incarnations of this process ended because an operator has adopted the tables.
    #[must_use]
    pub fn adoptions(&self) -> u64 {
        lock(&self.state).adoptions
    }

    /// Returns why the process does not get on, as a part of a sentence; `None`: everything is in order.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        // Several threads mostly have the same reason.
        let reasons: BTreeSet<String> = lock(&self.state).troubles.values().cloned().collect();
        let reasons: Vec<String> = reasons.into_iter().take(TROUBLES_MAX).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Returns that the database is silent, as a part of a sentence; `None`: it has answered a beat in time.
    #[must_use]
    pub fn silence(&self) -> Option<String> {
        let pulse = self.pulse();
        let is_silent = pulse.left_ns(self.now_ns()) == Some(0);
        is_silent.then(|| "the database does not answer".to_owned())
    }

    /// Ends all work: the threads end once they have no more jobs.
    pub fn close(&self) {
        self.lanes.iter().for_each(Mailbox::close);
        self.reads.iter().for_each(Mailbox::close);
        self.inbox.close();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No method leaves a value half changed, so a panic of another thread does no harm here.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn after_a_fail_over_a_shard_waits_for_a_lease() {
        let clock = Arc::new(AtomicU64::new(7));
        let of_node = Arc::clone(&clock);
        let node = Node::new(1_000, 1, 1, Box::new(move || of_node.load(Ordering::Relaxed)));
        let at_ms = |ms: u64| clock.store(ms * 1_000_000, Ordering::Relaxed);
        let may_take = |last| node.may_take_after_loss(last);
        assert_eq!(may_take(None), None, "no beat was answered");
        node.begin_timeline(7, 2_000_000_000, Some("one".to_owned()));
        at_ms(2_999);
        assert_eq!(may_take(None), None, "this process has not had the shard");
        assert_eq!(may_take(Some("zero")), None, "another process may have had the shard since");
        assert_eq!(may_take(Some("one")), Some(7), "this process had the shard until the fail-over");
        at_ms(3_000);
        assert_eq!((may_take(None), may_take(Some("zero"))), (Some(7), Some(7)));
        node.begin_timeline(8, 3_000_000_000, None);
        assert_eq!((may_take(None), may_take(Some("one"))), (None, None));
    }
}
