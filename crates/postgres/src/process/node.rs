//! [`Node`]: this process among those that share the database.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tickwheel_engine::Validity;

use crate::database::{Holder, InboxPage, Read, ReadResult};
use crate::process::clock::DatabaseClock;
use crate::process::commit_worker::{Job, Outcome};
use crate::process::inbox::Inbox;
use crate::process::key_room::KeyRoom;
use crate::process::lease_term::LeaseTerm;
use crate::process::mailbox::Mailbox;

/// Reads the boot-time clock of this machine (ns). The clock goes on while the machine sleeps.
pub type BootClock = Box<dyn Fn() -> u64 + Send + Sync>;

/// The parts that the stores of this process share: the work for the commit workers and readers, the questions to the inbox, the completions for each shard, and until when the process may answer.
///
/// A node has no threads of its own. [`Threads`](crate::Threads) do its work; the simulator does it step by step.
pub struct Node {
    boot_clock: BootClock,
    lease_term: Mutex<LeaseTerm>,
    clock: Mutex<DatabaseClock>,
    commit_workers: Vec<Mailbox<(u32, Job)>>,
    reads: Vec<Mailbox<ReadRequest>>,
    inbox: Inbox,
    key_room: Arc<KeyRoom>,
    shards: Mutex<BTreeMap<u32, Arc<Completions>>>,
    /// The other incarnations that send heartbeats, and the troubles of the threads.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failover: Option<Failover>,
    /// Incarnations whose heartbeat was seen within their lease.
    alive: Vec<String>,
    troubles: BTreeMap<String, String>,
    adoptions: u64,
}

/// The last fail-over of the database, or the state before the first one.
#[derive(Debug)]
struct Failover {
    number: i64,
    /// When this process first saw it (boot-time clock, ns).
    since_ns: u64,
    /// The incarnation of this process that ended with the fail-over, if no other process can have had its shards by then.
    unbroken: Option<String>,
}

/// A question of one shard.
#[derive(Debug)]
pub struct ReadRequest {
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

/// Completions for the store of one shard.
#[derive(Debug)]
pub enum Event {
    /// A job of a commit worker has an outcome.
    Job(Outcome),
    /// A question was answered; `Err`: it cannot be answered, for this reason.
    Read(u64, Result<ReadResult, String>),
    /// Rows of the inbox.
    Inbox(InboxPage),
}

/// The completions that the store of one shard has not taken yet.
pub struct Completions {
    events: Mutex<Vec<Event>>,
    wake: tickwheel_store::Wake,
}

impl Completions {
    /// Takes out all completions.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *lock(&self.events))
    }

    fn push(&self, event: Event) {
        lock(&self.events).push(event);
        (self.wake)();
    }
}

impl std::fmt::Debug for Completions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Completions").field("events", &self.events).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node")
            .field("lease_term", &self.lease_term)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Node {
    /// Returns a node without an incarnation. `lease_ms`: how long the heartbeat of a process must stand still before another process may take its
    /// shards (ms). `commit_workers`: how many sessions commit side by side, and `readers`:
    /// how many read, at least 1 each.
    #[must_use]
    pub fn new(lease_ms: u32, commit_workers: usize, readers: usize, boot_clock: BootClock) -> Self {
        Self {
            boot_clock,
            lease_term: Mutex::new(LeaseTerm::new(lease_ms)),
            clock: Mutex::new(DatabaseClock::default()),
            commit_workers: (0..commit_workers.max(1)).map(|_| Mailbox::default()).collect(),
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

    /// Registers the store of a shard. Returns its completions; `wake` is called when there are new ones.
    #[must_use]
    pub fn register(&self, shard: u32, wake: tickwheel_store::Wake) -> Arc<Completions> {
        let completions = Arc::new(Completions { events: Mutex::new(Vec::new()), wake });
        lock(&self.shards).insert(shard, Arc::clone(&completions));
        completions
    }

    /// Gives a job to the commit worker of the shard.
    pub fn submit(&self, shard: u32, job: Job) {
        self.commit_workers[shard as usize % self.commit_workers.len()].push((shard, job));
    }

    /// Gives a question to a reader. The look-ups and the scans for near tasks of a shard have one reader, so they are answered in their order, and puts of new keys keep
    /// the order of their calls. The first reader has all other questions, which may take long, unless it is the only one.
    pub fn ask(&self, job: ReadRequest) {
        let finders = self.reads.len() - 1;
        let index = match &job.read {
            Read::Find(_) | Read::ScanDue { .. } if finders > 0 => 1 + job.shard as usize % finders,
            _ => 0,
        };
        self.reads[index].push(job);
    }

    /// Returns the jobs of one commit worker.
    #[must_use]
    pub fn commit_worker(&self, index: usize) -> &Mailbox<(u32, Job)> {
        &self.commit_workers[index]
    }

    /// Returns the number of commit workers.
    #[must_use]
    pub fn commit_workers(&self) -> usize {
        self.commit_workers.len()
    }

    /// Returns the questions for one reader.
    #[must_use]
    pub fn reads(&self, index: usize) -> &Mailbox<ReadRequest> {
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

    /// Tells a shard its completions.
    pub fn tell(&self, shard: u32, event: Event) {
        let completions = lock(&self.shards).get(&shard).cloned();
        if let Some(completions) = completions {
            completions.push(event);
        }
    }

    /// Wakes the stores of all shards, because the validity changed.
    pub fn wake_all(&self) {
        let all: Vec<Arc<Completions>> = lock(&self.shards).values().cloned().collect();
        all.iter().for_each(|completions| (completions.wake)());
    }

    /// Returns the boot-time clock now (ns).
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        (self.boot_clock)()
    }

    /// Returns the present incarnation.
    #[must_use]
    pub fn incarnation(&self) -> Option<String> {
        self.lease_term().incarnation().map(str::to_owned)
    }

    /// Returns whether shards that were taken by this incarnation may answer now. Reads the clock.
    #[must_use]
    pub fn validity(&self, incarnation: &str) -> Validity {
        let lease_term = self.lease_term();
        // The clock is read last, so that a wait for the lock counts.
        lease_term.validity(incarnation, self.now_ns())
    }

    /// Returns the lease term.
    pub fn lease_term(&self) -> MutexGuard<'_, LeaseTerm> {
        lock(&self.lease_term)
    }

    /// Returns the clock of the database.
    pub fn clock(&self) -> MutexGuard<'_, DatabaseClock> {
        lock(&self.clock)
    }

    /// Notes which other incarnations send heartbeats within their lease.
    pub fn set_alive(&self, alive: Vec<String>) {
        lock(&self.state).alive = alive;
    }

    /// Whether the holder of a shard is known to send heartbeats, so that it makes no sense to ask for the shard.
    #[must_use]
    pub fn is_alive(&self, holder: &Holder) -> bool {
        lock(&self.state).alive.contains(&holder.incarnation)
    }

    /// Notes that the database has another failover number. `unbroken`: the incarnation of this process that ended with the fail-over, if no
    /// other process can have had its shards by then.
    pub fn begin_failover(&self, number: i64, since_ns: u64, unbroken: Option<String>) {
        lock(&self.state).failover = Some(Failover { number, since_ns, unbroken });
    }

    /// Returns the failover number with which a shard may be taken although the fail-over before it may have lost the entry of the owner. After a whole
    /// lease, no earlier owner is valid any more. `last`: the incarnation of this process that had the shard last. If it had the shard until
    /// the fail-over, no other owner can be lost.
    #[must_use]
    pub fn may_take_after_loss(&self, last: Option<&str>) -> Option<i64> {
        let (now_ns, lease_ns) = (self.now_ns(), self.lease_term().lease_ns());
        let state = lock(&self.state);
        let Failover { number, since_ns, unbroken } = state.failover.as_ref()?;
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

    /// Returns that the database is silent, as a part of a sentence; `None`: it has answered a heartbeat in time.
    #[must_use]
    pub fn silence(&self) -> Option<String> {
        let lease_term = self.lease_term();
        let is_silent = lease_term.left_ns(self.now_ns()) == Some(0);
        is_silent.then(|| "the database does not answer".to_owned())
    }

    /// Ends all work: the threads end once they have no more jobs.
    pub fn close(&self) {
        self.commit_workers.iter().for_each(Mailbox::close);
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
        node.begin_failover(7, 2_000_000_000, Some("one".to_owned()));
        at_ms(2_999);
        assert_eq!(may_take(None), None, "this process has not had the shard");
        assert_eq!(may_take(Some("zero")), None, "another process may have had the shard since");
        assert_eq!(may_take(Some("one")), Some(7), "this process had the shard until the fail-over");
        at_ms(3_000);
        assert_eq!((may_take(None), may_take(Some("zero"))), (Some(7), Some(7)));
        node.begin_failover(8, 3_000_000_000, None);
        assert_eq!((may_take(None), may_take(Some("one"))), (None, None));
    }
}
