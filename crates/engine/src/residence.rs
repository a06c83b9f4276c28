//! [`Residence`]: which tasks are in memory, whole or as stubs, and when each of them is due.

mod entries;
mod expiries;
mod pins;
mod stub;
mod timers;
mod window;

use std::collections::VecDeque;
use std::sync::Arc;

use self::entries::Entries;
pub(crate) use self::entries::{At, BatchSlot, Entry, QueueNo, RunningLease, Slot, is_bulky};
pub(crate) use self::expiries::Expiry;
use self::expiries::{EXPIRY_BYTES, Expiries};
use self::pins::Pins;
use self::stub::STUB_BYTES;
pub(crate) use self::stub::WaitingStub;
use self::timers::Timers;
use self::window::Window;
use crate::acquired::Acquired;
use crate::config::EngineConfig;
use crate::ledger::Ledger;
use crate::name::{Key, QueueName};
use crate::runs::{Ordered, Runs};
use crate::seam::{Before, DueKey, TaskEffect};
use crate::task::{BURIED_FROM, Ended, Task};
use crate::time::{Now, Timestamp};

/// The tasks in memory: entries, which hold the whole record, and stubs, which only tell when a task is due and where in the line it
/// belongs.
///
/// # Invariants
/// - A task in memory is an entry or a stub, never both.
/// - A stub agrees with the store's record. A task has to be whole in memory to be changed, and a durable entry becomes a stub only when no
///   read under way can return an older record.
/// - Every durable task that is due inside the window is in memory.
#[derive(Debug)]
pub(crate) struct Residence {
    /// The configuration of the engine, with the horizon, the memory budget and the bounds.
    config: EngineConfig,
    entries: Entries,
    timers: Timers,
    /// Stubs of tasks that are not due yet.
    stubs: Runs<WaitingStub>,
    /// The number of stubs in the lines of all queues, parked ones included.
    ready_stubs: u64,
    /// Bytes of the entries whose tasks workers have. These entries stay in memory.
    leased_bytes: u64,
    /// The slot that was looked at last for eviction.
    visited: Slot,
    window: Window,
    pins: Pins,
    expiries: Expiries,
    /// The due time of the task that was buried last. Such a due time is never reached in practice: a buried task is not forgotten.
    last_buried: Timestamp,
    /// The stubs that have expired and whose records are to be fetched: the id of the task, and its queue.
    expired: VecDeque<(u64, QueueName)>,
    /// The ids of the dead tasks that are stubs, and are to be forgotten once their records are fetched.
    forgotten: VecDeque<u64>,
    /// The latest wall time that was written down in an earlier epoch. A task that was put and due by that time became ready in an earlier
    /// epoch.
    ready_before: Timestamp,
}

impl Residence {
    pub(crate) fn new(acquired: &Acquired, config: EngineConfig, now: Now) -> Self {
        Self {
            config,
            entries: Entries::new(acquired.secret),
            timers: Timers::new(now),
            stubs: Runs::default(),
            ready_stubs: 0,
            leased_bytes: 0,
            visited: 0,
            window: Window::default(),
            pins: Pins::default(),
            expiries: Expiries::default(),
            last_buried: Timestamp::EPOCH,
            expired: VecDeque::new(),
            forgotten: VecDeque::new(),
            ready_before: acquired.last_wall,
        }
    }

    /// Returns the entry in this slot. The slot must have one.
    pub(crate) fn get(&self, slot: Slot) -> &Entry {
        self.entries.get(slot)
    }

    /// Returns the entry in this slot, so that the caller can change it. The slot must have one.
    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut Entry {
        self.entries.get_mut(slot)
    }

    /// Whether the slot has an entry now. Only code that has kept the slot for a while needs to ask, because the entry may have left
    /// memory.
    pub(crate) fn has(&self, slot: Slot) -> bool {
        self.entries.has(slot)
    }

    /// Returns the record of the task in this slot.
    pub(crate) fn task(&self, slot: Slot) -> &Arc<Task> {
        &self.entries.get(slot).task
    }

    pub(crate) fn by_id(&self, id: u64) -> Option<Slot> {
        self.entries.by_id(id)
    }

    pub(crate) fn by_key(&self, queue: &QueueName, key: &Key) -> Option<Slot> {
        self.entries.by_key(queue, key)
    }

    /// Returns the slot of the task of this key, live or dead, if the task is whole in memory.
    pub(crate) fn kept(&self, queue: &QueueName, key: &Key) -> Option<Slot> {
        self.by_key(queue, key).filter(|&slot| {
            let entry = self.get(slot);
            entry.state().is_some() && entry.task.is_keyed()
        })
    }

    /// Returns the slot of the dead task of this key, if the task is whole in memory.
    pub(crate) fn dead(&self, queue: &QueueName, key: &Key) -> Option<Slot> {
        self.kept(queue, key).filter(|&slot| self.get(slot).is_dead())
    }

    /// Returns the slot of the live task of this key, if the task is whole in memory.
    pub(crate) fn live(&self, queue: &QueueName, key: &Key) -> Option<Slot> {
        self.by_key(queue, key).filter(|&slot| self.get(slot).is_live())
    }

    /// Takes a whole task into memory. The caller then places the entry in the wheel, in a line or under a lease.
    pub(crate) fn insert(&mut self, entry: Entry) -> Slot {
        self.entries.insert(entry)
    }

    /// Takes an entry out of memory. The entry must not be in the wheel, in a line or under a lease.
    pub(crate) fn remove(&mut self, slot: Slot) {
        self.entries.remove(slot);
    }

    /// Puts this entry into the index by key. If the index has another entry for the key, whose task has ended or is dead, replaces it.
    pub(crate) fn index_key(&mut self, slot: Slot) {
        self.entries.index_key(slot);
    }

    /// Gives a task a new record, which `change` makes from the old one, and puts the record into the write batch. The entry stays in the
    /// index that it is in.
    pub(crate) fn record(&mut self, ledger: &mut Ledger, slot: Slot, change: impl FnOnce(&mut Task)) {
        let seq = ledger.next_seq();
        let entry = self.entries.get(slot);
        let mut task = Task::clone(&entry.task);
        change(&mut task);
        task.seq = seq;
        let is_sealed = is_sealed(entry, ledger);
        let body_known = is_sealed && Arc::ptr_eq(&entry.task.body, &task.body);
        let task = Arc::new(task);
        self.note(ledger, slot, TaskEffect::Stored { task: Arc::clone(&task), body_known });
        self.entries.set_task(slot, task);
        self.entries.get_mut(slot).body_sealed = body_known;
    }

    /// Puts the end of the task in this slot into the write batch. The entry leaves memory once the end is durable.
    pub(crate) fn end(&mut self, ledger: &mut Ledger, slot: Slot, ended: Ended) {
        let outcome = ended.outcome;
        self.note(ledger, slot, TaskEffect::Ended(ended));
        self.entries.get_mut(slot).at = At::Ended(outcome);
    }

    /// Puts an effect into the write batch, and remembers that the entry is not durable yet.
    fn note(&mut self, ledger: &mut Ledger, slot: Slot, effect: TaskEffect) {
        let entry = self.entries.get_mut(slot);
        let before = match entry.task.dead() {
            _ if !is_sealed(entry, ledger) => Before::Absent,
            Some(_) => Before::Dead,
            None => Before::Live,
        };
        entry.dirty = Some(effect.seq());
        entry.batch_slot = Some(ledger.note(slot, entry.batch_slot, effect, before));
    }

    /// Notes that an effect of this entry is durable. Returns whether the entry is durable and should leave memory or become a stub, if
    /// possible: no index has it, its body is big, or memory is full.
    pub(crate) fn made_durable(&mut self, ledger: &Ledger, slot: Slot) -> bool {
        if !self.has(slot) {
            return false;
        }
        let entry = self.entries.get_mut(slot);
        if entry.dirty.is_some_and(|seq| seq > ledger.durable()) {
            return false;
        }
        entry.dirty = None;
        let may_stay = matches!(entry.at, At::Waiting(_) | At::Rewound | At::Ready { .. } | At::Leased(_));
        !may_stay || entry.bulky || self.is_full()
    }

    /// Returns the number of tasks that are whole in memory. A task that has ended is included until its end is durable.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the number of stubs in memory, of scheduled, dead and ready tasks.
    pub(crate) fn stubs(&self) -> u64 {
        self.stubs.len() as u64 + self.ready_stubs
    }

    /// Whether any line has a stub, parked stubs included.
    pub(crate) fn has_ready_stubs(&self) -> bool {
        self.ready_stubs > 0
    }

    /// Counts a stub that has joined a line.
    pub(crate) fn stub_joined(&mut self) {
        self.ready_stubs += 1;
    }

    /// Takes a stub that has left its line out of the count.
    pub(crate) fn stub_left(&mut self) {
        self.ready_stubs -= 1;
    }

    /// Notes that a worker has the task in this slot under `lease`, and adds the bytes of the entry to the leased bytes.
    pub(crate) fn lease_begins(&mut self, slot: Slot, lease: RunningLease) {
        self.leased_bytes += self.entries.bytes_of(slot);
        self.entries.get_mut(slot).at = At::Leased(lease);
    }

    /// Takes the bytes of this entry out of the leased bytes, because the lease has ended. The caller sets the new state of the entry.
    pub(crate) fn lease_ends(&mut self, slot: Slot) {
        self.leased_bytes -= self.entries.bytes_of(slot);
    }

    /// Returns the memory in use (bytes), about: the whole tasks, 64 for each stub, and 48 for each task that expires.
    pub(crate) fn bytes(&self) -> u64 {
        self.entries.bytes() + self.stubs() * STUB_BYTES + self.expiries.len() as u64 * EXPIRY_BYTES
    }

    /// Returns the memory budget (bytes).
    pub(crate) fn bytes_max(&self) -> u64 {
        self.config.near_bytes_max
    }

    /// Whether more than three quarters of the budget are in use. Then a scan loads only tasks that have to be in memory, and durable tasks
    /// behind the window leave memory, unless they are due within the lead time.
    pub(crate) fn is_full(&self) -> bool {
        let max = self.config.near_bytes_max;
        self.bytes() > max - max / 4
    }

    /// Whether whole tasks have to become stubs: memory is full, and the whole tasks that no worker has take more than an eighth of the
    /// budget. This eighth is for the heads of the lines, however much memory the stubs take.
    pub(crate) fn sheds(&self) -> bool {
        self.is_full() && self.entries.bytes() - self.leased_bytes > self.config.near_bytes_max / 8
    }

    /// Moves to the next slot to look at for eviction, in a round over all slots, and returns the slot. `None`: no whole task has to become
    /// a stub.
    pub(crate) fn next_visited(&mut self) -> Option<Slot> {
        let next = self.entries.next_slot(self.visited).filter(|_| self.sheds())?;
        self.visited = next;
        Some(next)
    }

    /// If memory is short, drops the stubs that are due last, at most `shed_drops` of them. Stubs in a line, and stubs that are due within
    /// the lead time, stay.
    pub(crate) fn drop_last_stubs(&mut self, now: Now) {
        // Stubs are dropped only while they take more than three quarters of the budget. Loading ahead stops at three quarters, so that
        // dropped stubs are not loaded again at once.
        let max = self.config.near_bytes_max;
        let mut drops = self.config.bounds.shed_drops;
        while drops > 0
            && self.bytes() > max - max / 8
            && self.stubs() * STUB_BYTES > max - max / 4
            && let Some(last) = self.stubs.last().map(Ordered::key)
            && last.due_at > self.must_until(now)
        {
            drops -= 1;
            self.stubs.pop_last();
            self.left(last);
        }
    }

    /// Adds the stub of a task that is not due yet.
    pub(crate) fn add_stub(&mut self, stub: WaitingStub) {
        self.stubs.insert(stub);
    }

    /// Whether memory has a stub at this due key, of a task that is not due yet.
    pub(crate) fn has_stub(&self, place: DueKey) -> bool {
        self.stubs.get(place).is_some()
    }

    /// Takes the stub of a task that is not due yet out of memory. Returns whether there was one.
    pub(crate) fn take_stub(&mut self, place: DueKey) -> bool {
        self.stubs.remove(place).is_some()
    }

    /// Takes out the next stub that is due by now.
    pub(crate) fn pop_due_stub(&mut self, now: Now) -> Option<WaitingStub> {
        let stub = self.stubs.first().copied().filter(|stub| stub.due_at <= now.falls_due())?;
        self.stubs.pop_first();
        Some(stub)
    }

    /// Returns the latest wall time that was written down in an earlier epoch. A task that was put and due by that time became ready then,
    /// and its lateness was counted then.
    pub(crate) fn ready_before(&self) -> Timestamp {
        self.ready_before
    }

    /// Returns the earliest instant at which the wheel has work, a stub falls due, a task expires or a scan has to begin. `writes`: changes
    /// are taken, so that tasks that expire can be given up.
    pub(crate) fn next_wake(&self, writes: bool) -> Option<Timestamp> {
        let expiry = self.expiries.next().filter(|_| writes);
        let stub = self.stubs.first().map(|stub| stub.due_at);
        [self.timers.next(), expiry, stub, self.load_at()].into_iter().flatten().min()
    }

    /// Adds a stub to those whose records are to be fetched. `expired`: the queue in which the stub has expired; `None`: the stub's dead
    /// task is to be forgotten.
    pub(crate) fn want_overdue(&mut self, id: u64, expired: Option<QueueName>) {
        match expired {
            Some(queue) => self.expired.push_back((id, queue)),
            None => self.forgotten.push_back(id),
        }
    }

    /// Takes out the next stub whose record is to be fetched. `has_room`: the store has room for a change. Without room, a stub that has
    /// expired stays. A dead task that is to be forgotten comes first, because its end needs no room.
    pub(crate) fn pop_overdue(&mut self, has_room: bool) -> Option<(u64, Option<QueueName>)> {
        if let Some(id) = self.forgotten.pop_front() {
            return Some((id, None));
        }
        self.expired.pop_front_if(|_| has_room).map(|(id, queue)| (id, Some(queue)))
    }

    /// Drops the list of stubs whose records are to be fetched, because no change is taken any more.
    pub(crate) fn clear_overdue(&mut self) {
        self.expired.clear();
        self.forgotten.clear();
    }

    /// Whether no scan is under way, and no record of a stub is still to be fetched. `has_room`: the store has room for a change; without
    /// room, the records of expired stubs do not count.
    pub(crate) fn is_idle(&self, has_room: bool) -> bool {
        !self.is_scanning() && self.forgotten.is_empty() && (self.expired.is_empty() || !has_room)
    }

    /// Returns the due time of a task that is buried now. The due time is about 1,000 years ahead, because a buried task is not forgotten.
    /// The due time is later than that of each task buried before since the start, even in the same millisecond or after the clock has
    /// stepped back.
    pub(crate) fn next_buried(&mut self, now: Now) -> Timestamp {
        let after_last = self.last_buried.saturating_plus_ms(1);
        self.last_buried = BURIED_FROM.saturating_plus_ms(now.wall.as_tick()).max(after_last);
        self.last_buried
    }

    /// Returns the tasks that expire, to change the list.
    pub(crate) fn expiries(&mut self) -> &mut Expiries {
        &mut self.expiries
    }
}

/// Whether a sealed batch, or the store, has a record of the task with the present body.
fn is_sealed(entry: &Entry, ledger: &Ledger) -> bool {
    entry.body_sealed || entry.batch_slot.is_some_and(|batch_slot| ledger.is_sealed(batch_slot))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::Bounds;
    use crate::seam::RequestId;

    fn residence(near_bytes_max: u64) -> Residence {
        let config =
            EngineConfig { horizon_ms: 10_000, near_bytes_max, scan_max: 10, ..EngineConfig::default() };
        Residence::new(&Acquired::of_new_shard(), config, Now::at_ms(0))
    }

    fn task(id: u64, due_ms: u64) -> Task {
        let queue = QueueName::new("orders").expect("a name");
        let due_at = Timestamp::EPOCH.saturating_plus_ms(due_ms);
        Task {
            id,
            due_at,
            put_seq: crate::time::Seq(id),
            ..Task::new(queue, Key::from_id(id), Arc::default())
        }
    }

    fn held(residence: &mut Residence, now: Now, id: u64, due_ms: u64) -> Slot {
        let slot = residence.insert(Entry::new(Arc::new(task(id, due_ms)), true));
        residence.start_timer(slot, now);
        slot
    }

    /// The story: the store was out of room, and a stub expired. Its death could not be written down, so it waited, and so did the dead tasks
    /// behind it, whose removal needs no room.
    #[test]
    fn a_stub_that_waits_for_room_holds_up_no_dead_task() {
        let mut residence = residence(1 << 20);
        let queue = QueueName::new("orders").expect("a name");
        residence.want_overdue(1, Some(queue.clone()));
        residence.want_overdue(2, None);
        assert_eq!(residence.pop_overdue(false), Some((2, None)));
        assert_eq!(residence.pop_overdue(false), None);
        assert_eq!(residence.pop_overdue(true), Some((1, Some(queue))));
    }

    #[test]
    fn what_is_due_comes_once_and_in_time_also_when_the_wall_clock_steps_back() {
        let mut residence = residence(1 << 20);
        let (late, early) =
            (held(&mut residence, Now::at_ms(0), 1, 900), held(&mut residence, Now::at_ms(0), 2, 500));
        let far = held(&mut residence, Now::at_ms(0), 3, 10_001);
        assert!(matches!(residence.get(far).at, At::Far), "it is due beyond the horizon");
        assert_eq!(residence.next_wake(true), Some(Timestamp::EPOCH.saturating_plus_ms(500)));
        assert!(residence.pop_due(Now::at_ms(499)).is_empty());
        assert_eq!(residence.pop_due(Now::at_ms(700)), [early]);
        let rewound = held(&mut residence, Now::at_ms(300), 4, 600);
        assert!(matches!(residence.get(rewound).at, At::Rewound), "the wheel has passed it");
        assert!(residence.pop_due(Now::at_ms(599)).is_empty());
        assert_eq!(residence.pop_due(Now::at_ms(600)), [rewound]);
        assert_eq!(residence.pop_due(Now::at_ms(900)), [late]);
    }

    #[test]
    fn a_task_is_pinned_until_the_reads_that_were_under_way_are_answered() {
        let mut residence = residence(1 << 20);
        let slots = [1, 2].map(|id| held(&mut residence, Now::at_ms(0), id, 500));
        residence.begin_read(RequestId(3));
        residence.pin(slots[0]);
        residence.begin_read(RequestId(4));
        residence.pin(slots[1]);
        residence.end_read(RequestId(4));
        assert_eq!(residence.pop_unpinned(), None, "the oldest read may still bring older records of both");
        residence.end_read(RequestId(3));
        assert_eq!([residence.pop_unpinned(), residence.pop_unpinned()], slots.map(Some));
        assert!(residence.pop_unpinned().is_none() && !residence.has_reads());
    }

    #[test]
    fn a_pin_that_is_renewed_lasts_until_the_later_read_is_answered() {
        let mut residence = residence(1 << 20);
        let slot = held(&mut residence, Now::at_ms(0), 1, 500);
        residence.begin_read(RequestId(1));
        residence.pin(slot);
        residence.begin_read(RequestId(2));
        residence.pin(slot);
        residence.end_read(RequestId(1));
        assert_eq!(residence.pop_unpinned(), None);
        residence.end_read(RequestId(2));
        assert_eq!((residence.pop_unpinned(), residence.pop_unpinned()), (Some(slot), None));
    }

    #[test]
    fn stubs_that_are_due_last_leave_first_when_memory_is_short() {
        let mut residence = residence(64 * 100);
        for id in 1..=99 {
            residence.add_stub(WaitingStub::of(&task(id, 5_000 + id), 0));
        }
        residence.drop_last_stubs(Now::at_ms(0));
        assert!(
            !residence.has_stub(DueKey::of(&task(99, 5_099)))
                && residence.has_stub(DueKey::of(&task(1, 5_001)))
        );
        assert!(
            residence.stubs() >= 75,
            "{} are left: three quarters of the budget are theirs",
            residence.stubs()
        );
        assert!(!residence.has_what_is_due(Now::at_ms(5_099)), "what has left is not known any more");
        assert_eq!(residence.pop_due_stub(Now::at_ms(5_000)), None);
        assert_eq!(residence.pop_due_stub(Now::at_ms(5_001)).map(|stub| stub.id), Some(1));
    }

    #[test]
    fn a_record_brings_its_body_until_a_closed_batch_has_brought_it() {
        let (mut residence, mut ledger) =
            (residence(1 << 20), Ledger::new(&Acquired::of_new_shard(), &Bounds::default()));
        let slot = residence.insert(Entry::new(Arc::new(task(1, 500)), false));
        let mut out = Vec::new();
        let bodies_known = |out: &mut Vec<crate::Effect>| -> Vec<bool> {
            let batches = out.drain(..).filter_map(|effect| match effect {
                crate::Effect::Request { request: crate::Request::Commit { batch, .. }, .. } => Some(batch),
                _ => None,
            });
            let known = batches.flat_map(|batch| batch.effects).map(|effect| match effect {
                TaskEffect::Stored { body_known, .. } => body_known,
                TaskEffect::Ended(_) => unreachable!("no task ends here"),
            });
            known.collect()
        };
        residence.record(&mut ledger, slot, |task| task.attempts = 1);
        residence.record(&mut ledger, slot, |task| task.attempts = 2);
        ledger.commit(Now::at_ms(0), &mut out);
        assert_eq!(bodies_known(&mut out), [false], "one record for both changes, with its body");
        residence.record(&mut ledger, slot, |task| task.attempts = 3);
        let slots = ledger.committed(Now::at_ms(0), RequestId(1), Some(1 << 30));
        assert_eq!(slots, [slot]);
        assert!(!residence.made_durable(&ledger, slot), "a later change is not durable yet");
        ledger.commit(Now::at_ms(0), &mut out);
        assert_eq!(bodies_known(&mut out), [true], "the batch before has brought it");
    }

    #[test]
    fn a_batch_knows_the_state_of_each_task_before_it() {
        let (mut residence, mut ledger) =
            (residence(1 << 20), Ledger::new(&Acquired::of_new_shard(), &Bounds::default()));
        let slots = [1, 2].map(|id| residence.insert(Entry::new(Arc::new(task(id, 500)), id == 2)));
        let mut out = Vec::new();
        let mut requests = 0;
        let mut committed = |ledger: &mut Ledger| {
            ledger.commit(Now::at_ms(0), &mut out);
            requests += 1;
            ledger.committed(Now::at_ms(0), RequestId(requests), Some(1 << 30));
            let request = out.drain(..).find_map(|effect| match effect {
                crate::Effect::Request { request: crate::Request::Commit { batch, .. }, .. } => Some(batch),
                _ => None,
            });
            let batch = request.expect("there is something to commit");
            let queue = batch.growth().values().next().copied().unwrap_or_default();
            (batch.before, (queue.live, queue.dead))
        };
        let die = |task: &mut Task| {
            let (at, due_at) = (Timestamp::EPOCH, task.due_at);
            let dead = crate::task::Dead { at, due_at, why: crate::task::Death::Expired, keyless: false };
            task.extra_mut().dead = Some(dead);
        };
        for slot in slots {
            residence.record(&mut ledger, slot, |task| task.attempts = 1);
            residence.record(&mut ledger, slot, die);
        }
        assert_eq!(committed(&mut ledger), (vec![Before::Absent, Before::Live], (-1, 2)));
        residence.record(&mut ledger, slots[0], |task| task.extra_mut().dead = None);
        assert_eq!(committed(&mut ledger), (vec![Before::Dead], (1, -1)));
        residence.record(&mut ledger, slots[0], |task| task.attempts = 0);
        assert_eq!(committed(&mut ledger), (vec![Before::Live], (0, 0)));
    }
}
