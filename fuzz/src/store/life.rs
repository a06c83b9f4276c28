//! [`Life`]: a store, its owner, and what must be in it.

use std::sync::Arc;

use tickwheel_engine::{
    Batch, Body, DueKey, Ended, EngineState, Epoch, Extra, Found, Group, Key, LeaseNo, Outcome, Ownership,
    QueueName, Reply, Request, RequestId, Seq, ShardId, ShardStore, StoredLease, Tag, Task, TaskEffect,
    Timestamp, Wanted,
};
use tickwheel_store::salvage::{Report, read, write_as};
use tickwheel_store::{DiskStore, HistoryLimits, InlineIo, OpenError, RecoveryReport, StoreOptions, Table};

use super::disk::{Files, MemDisk};

/// The secret of every sample: a stamp needs it.
pub(super) const SECRET: [u8; 16] = *b"known to stamps.";

/// Ended tasks remembered for each queue.
pub(super) const HISTORY: usize = 5;

/// An answer takes a few polls, and a checkpoint of a sample some hundred.
const POLLS_MAX: usize = 20_000;

/// Pages of a sample, many times over.
const PAGES_MAX: usize = 10_000;

const DAY_MS: u64 = 86_400_000;
const START_MS: i64 = 1_700_000_000_000;

/// Due so long after its put: overdue, this hour, some hours on, some days on, in months.
const AHEAD_MS: [u64; 6] = [0, 600_000, 5 * 3_600_000, 20 * DAY_MS, 70 * DAY_MS, 200 * DAY_MS];

/// Everything as small as it can be, so that each kind of file and section is there after a few commits.
fn options() -> StoreOptions {
    let mut options = StoreOptions::new(SECRET);
    options.log_file_bytes = 8 << 10;
    options.checkpoint_after_bytes = 4 << 10;
    options.background_step_bytes = 4 << 10;
    options.segment_bytes = 1 << 10;
    options.block_bytes = 256;
    options.history = HistoryLimits::last(HISTORY);
    options
}

/// A store that is open.
pub(super) struct Life {
    store: DiskStore<MemDisk, InlineIo<MemDisk>>,
    ownership: Option<Ownership>,
    /// The last change.
    pub(super) seq: u64,
    pub(super) wall: Timestamp,
}

impl Life {
    pub(super) fn open(disk: &MemDisk) -> Result<Self, OpenError> {
        let store = DiskStore::open(disk.clone(), InlineIo::new(), options())?;
        let start = Timestamp::from_ms(START_MS).expect("after 1970");
        Ok(Self { wall: store.last_wall().max(start), store, ownership: None, seq: 0 })
    }

    /// A new directory of what can be read of a damaged one.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn salvage(damaged: &mut MemDisk) -> Result<(MemDisk, Report), String> {
        let found = read(damaged, &mut |_| {}).map_err(|error| error.to_string())?;
        let out = MemDisk::of(Files::new());
        let report = write_as(found, damaged, out.clone(), options(), &mut |_| {});
        report.map(|report| (out, report)).map_err(|error| error.to_string())
    }

    pub(super) fn report(&self) -> &RecoveryReport {
        self.store.recovery_report()
    }

    /// Takes the shard.
    ///
    /// # Errors
    /// Why it is not to be had.
    pub(super) fn acquire(&mut self) -> Result<(), String> {
        match self.ask(Request::Acquire { shard: ShardId::ONLY, wall: self.wall }) {
            Reply::Acquired(acquired) => {
                self.seq = acquired.ownership.last_seq.0;
                self.ownership = Some(acquired.ownership);
                Ok(())
            }
            Reply::Failed { why } => Err(why),
            other => panic!("Acquire was answered {other:?}"),
        }
    }

    pub(super) fn release(&mut self) {
        let ownership = self.ownership.take().expect("it was acquired");
        let reply = self.ask(Request::Release { ownership });
        assert!(matches!(reply, Reply::Released), "Release was answered {reply:?}");
    }

    /// Commits effects up to the last change.
    ///
    /// # Errors
    /// Why nothing is committed any more.
    pub(super) fn commit(
        &mut self,
        effects: Vec<TaskEffect>,
        state: Option<EngineState>,
    ) -> Result<(), String> {
        let ownership = self.ownership.expect("it was acquired");
        let batch = Batch { effects, state, ..Batch::default() };
        match self.ask(Request::Commit { ownership, seq: Seq(self.seq), wall: self.wall, batch }) {
            Reply::Done { .. } => Ok(()),
            Reply::Failed { why } => Err(why),
            other => panic!("a commit was answered {other:?}"),
        }
    }

    /// Polls until nothing is under way in the background.
    pub(super) fn rest(&mut self) {
        let mut quiet = 0;
        for _ in 0..POLLS_MAX {
            let mut replies = Vec::new();
            self.store.poll(&mut replies);
            assert!(replies.is_empty(), "nobody asked: {replies:?}");
            quiet = if self.store.is_working() { 0 } else { quiet + 1 };
            if quiet == 20 {
                return;
            }
        }
        panic!("the background never comes to an end");
    }

    /// Every live task, read through pages, and each once more by its id and its key.
    ///
    /// # Errors
    /// Why the store could not read it.
    pub(super) fn tasks(&mut self) -> Result<Vec<Arc<Task>>, String> {
        let mut tasks = Vec::new();
        let mut after = DueKey::START;
        for _ in 0..PAGES_MAX {
            let page = match self.ask(Request::ScanDue { after, until: Timestamp::MAX, max: 7 }) {
                Reply::Page(page) => page,
                Reply::Failed { why } => return Err(why),
                other => panic!("ScanDue was answered {other:?}"),
            };
            let wanted = page
                .tasks
                .iter()
                .flat_map(|task| [Wanted::Id(task.id), Wanted::Key(task.queue.clone(), task.key.clone())]);
            match self.ask(Request::GetMany(wanted.collect())) {
                Reply::Found(_) => {}
                Reply::Failed { why } => return Err(why),
                other => panic!("GetMany was answered {other:?}"),
            }
            tasks.extend(page.tasks);
            match page.next {
                Some(next) => after = next,
                None => return Ok(tasks),
            }
        }
        panic!("the pages never come to an end");
    }

    /// All that is there, by the seam.
    ///
    /// # Errors
    /// Why the store could not read it.
    pub(super) fn table(&mut self) -> Result<Table, String> {
        let tasks = self.tasks()?;
        assert_eq!(tasks.len(), self.store.len(), "tasks in pages, and tasks in all");
        let mut table = Table::new([0; 16], HISTORY);
        for task in tasks {
            let found = self.ask(Request::GetMany(vec![Wanted::Key(task.queue.clone(), task.key.clone())]));
            let is_it =
                matches!(&found, Reply::Found(found) if found[..] == [Found::Live(Arc::clone(&task))]);
            assert!(
                is_it || matches!(found, Reply::Failed { .. }),
                "{task:?} is not found by its key: {found:?}"
            );
            table.apply(&TaskEffect::Stored { task, body_known: false });
        }
        self.store.ended().for_each(|ended| table.apply(&TaskEffect::Ended(ended.clone())));
        table.join_state(self.store.state());
        Ok(table)
    }

    /// A new task, with all members that a task can have now and then.
    pub(super) fn make(&mut self, id: u64) -> Task {
        self.seq += 1;
        let seq = Seq(self.seq);
        let own_key = !id.is_multiple_of(4);
        let mut task = Task {
            id,
            queue: queue(id),
            key: Key::new(&if own_key { format!("k{id}") } else { id.to_string() }).expect("a key"),
            seq,
            put_seq: seq,
            version: seq,
            due_at: self.wall.saturating_plus_ms(AHEAD_MS[(id % 6) as usize]),
            put_at: self.wall,
            priority: if id.is_multiple_of(3) { 7 } else { tickwheel_engine::PRIORITY_DEFAULT },
            attempts: (id % 2) as u32,
            lease_fence: LeaseNo(id % 5),
            revoked: (id % 8 == 1).then_some(LeaseNo(id)),
            lease: None,
            body: Arc::new(Body::bytes(vec![id as u8; if id.is_multiple_of(13) { 1_500 } else { 20 }])),
            extra: None,
        };
        if id.is_multiple_of(5) {
            let until = self.wall.saturating_plus_ms(30_000);
            task.lease = Some(StoredLease { no: LeaseNo(id), until, left_ms: 30_000, written_in: Epoch(1) });
        }
        if id.is_multiple_of(7) {
            let (group, trace) = (Group::new("g").ok(), Some("00-ab".into()));
            let expire_at = Some(self.wall.saturating_plus_ms(DAY_MS));
            task.extra = Some(Box::new(Extra {
                group,
                ttr_ms: Some(5),
                origin: 1,
                expire_at,
                trace,
                ..Extra::default()
            }));
            let body = Body {
                tags: ["a", "b"].map(|tag| Tag::new(tag).expect("a tag")).to_vec(),
                ..(*task.body).clone()
            };
            task.body = Arc::new(body);
        }
        task
    }

    /// The same task, later and with a body that is known.
    pub(super) fn change(&mut self, task: &Task) -> TaskEffect {
        self.seq += 1;
        let due_at = task.due_at.saturating_plus_ms(DAY_MS);
        let task = Task {
            seq: Seq(self.seq),
            due_at,
            attempts: task.attempts.wrapping_add(1),
            lease: None,
            ..task.clone()
        };
        TaskEffect::Stored { task: Arc::new(task), body_known: true }
    }

    pub(super) fn end(&mut self, task: &Task) -> TaskEffect {
        self.seq += 1;
        let outcome = match task.id % 3 {
            0 => Outcome::Done(LeaseNo(9)),
            1 => Outcome::Cancelled,
            _ => Outcome::Revoked(LeaseNo(task.id)),
        };
        let (queue, key) = (task.queue.clone(), task.key.clone());
        TaskEffect::Ended(Ended { id: task.id, queue, key, seq: Seq(self.seq), at: self.wall, outcome })
    }

    fn ask(&mut self, request: Request) -> Reply {
        self.store.submit(RequestId(1), request);
        let mut replies = Vec::new();
        for _ in 0..POLLS_MAX {
            self.store.poll(&mut replies);
            if let Some((_, reply)) = replies.pop() {
                assert!(replies.is_empty(), "more than one answer: {reply:?} and {replies:?}");
                return reply;
            }
        }
        panic!("a request was never answered");
    }
}

fn queue(id: u64) -> QueueName {
    QueueName::new(["shop/close", "mail", "q"][(id % 3) as usize]).expect("a name")
}
