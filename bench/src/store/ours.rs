//! Ours: `DiskStore`, through the seam of the engine.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use tickwheel_engine::{
    Batch, DueKey, Ended, EngineState, Found, Key, LeaseNo, Outcome, Ownership, QueueName, Reply, Request,
    RequestId, Seq, ShardId, ShardStore, Task, TaskEffect, Timestamp, Wanted,
};
use tickwheel_store::{DiskStore, FsDisk, StoreOptions, ThreadIo};

use super::record::{QUEUE, Record, number};
use super::subject::{End, Keeper, Pending};

/// The store and what its owner has to know. The engine has the same.
#[derive(Debug)]
pub(crate) struct Ours {
    store: DiskStore<FsDisk, ThreadIo>,
    woken: Receiver<()>,
    ownership: Ownership,
    queue: QueueName,
    /// The last change.
    seq: Seq,
    ids_reserved: u64,
    requests: u64,
    replies: Vec<(RequestId, Reply)>,
}

/// Ids are reserved in blocks, as the engine does it.
const ID_BLOCK: u64 = 1 << 20;
/// A store that was not heard of for so long is polled all the same.
const POLL: Duration = Duration::from_millis(5);
/// Quiet for so long is at rest.
const QUIET: Duration = Duration::from_millis(300);
/// Whoever is still busy then is measured as it is.
const PATIENCE: Duration = Duration::from_secs(120);
/// No answer takes as long.
const ANSWER: Duration = Duration::from_secs(600);

impl Ours {
    fn ask(&mut self, request: Request) -> anyhow::Result<Reply> {
        let id = self.submit(request);
        self.answer(id)
    }

    fn submit(&mut self, request: Request) -> RequestId {
        let id = RequestId(self.requests);
        self.requests += 1;
        self.store.submit(id, request);
        id
    }

    fn answer(&mut self, id: RequestId) -> anyhow::Result<Reply> {
        let begun = Instant::now();
        loop {
            self.store.poll(&mut self.replies);
            if let Some(at) = self.replies.iter().position(|(of, _)| *of == id) {
                return Ok(self.replies.swap_remove(at).1);
            }
            if let Some(why) = self.store.failure() {
                bail!("the store failed: {why}");
            }
            ensure!(begun.elapsed() < ANSWER, "the store does not answer");
            if self.woken.recv_timeout(POLL).is_ok() {
                while self.woken.try_recv().is_ok() {}
            }
        }
    }

    fn submit_commit(&mut self, wall: Timestamp, mut changes: Vec<TaskEffect>) -> anyhow::Result<RequestId> {
        let mut id_max = 0;
        for change in &mut changes {
            self.seq = Seq(self.seq.0 + 1);
            match change {
                TaskEffect::Stored { task, .. } => {
                    let task = Arc::get_mut(task).context("a new task is not shared")?;
                    (task.seq, task.put_seq, task.version) = (self.seq, self.seq, self.seq);
                    id_max = id_max.max(task.id);
                }
                TaskEffect::Ended(ended) => ended.seq = self.seq,
            }
        }
        let mut batch = Batch { effects: changes, ..Batch::default() };
        if id_max >= self.ids_reserved {
            self.ids_reserved = (id_max + 1).next_multiple_of(ID_BLOCK);
            batch.state = Some(EngineState::from_parts(self.ids_reserved, 0));
        }
        Ok(self.submit(Request::Commit { ownership: self.ownership, seq: self.seq, wall, batch }))
    }

    fn committed(&mut self, id: RequestId) -> anyhow::Result<()> {
        match self.answer(id)? {
            Reply::Done { .. } => Ok(()),
            other => bail!("a commit was answered with {other:?}"),
        }
    }
}

impl Keeper for Ours {
    type Change = TaskEffect;

    fn open(dir: &Path, wall: Timestamp) -> anyhow::Result<Self> {
        let (wake, woken) = channel();
        let notify = Box::new(move || {
            // Nobody listens any more while the store is dropped.
            let _ = wake.send(());
        });
        let store = DiskStore::open_dir(dir, StoreOptions::new([7; 16]), notify)?;
        let ownership =
            Ownership { shard: ShardId::ONLY, epoch: tickwheel_engine::Epoch(0), last_seq: Seq::ZERO };
        let mut ours = Self {
            store,
            woken,
            ownership,
            queue: QueueName::new(QUEUE)?,
            seq: Seq::ZERO,
            ids_reserved: 0,
            requests: 0,
            replies: Vec::new(),
        };
        match ours.ask(Request::Acquire { shard: ShardId::ONLY, wall })? {
            Reply::Acquired(acquired) => {
                ours.ownership = acquired.ownership;
                ours.seq = acquired.ownership.last_seq;
                ours.ids_reserved = acquired.state.parts().0;
                Ok(ours)
            }
            other => bail!("the shard was not given: {other:?}"),
        }
    }

    fn put(record: Record) -> TaskEffect {
        TaskEffect::Stored { task: Arc::new(record.task()), body_known: false }
    }

    fn end(&self, pending: Pending, end: End, at: Timestamp) -> TaskEffect {
        let outcome = match end {
            End::Done => Outcome::Done(LeaseNo(9)),
            End::Cancelled => Outcome::Cancelled,
        };
        let Pending { id, key, .. } = pending;
        TaskEffect::Ended(Ended { id, queue: self.queue.clone(), key, seq: Seq::ZERO, at, outcome })
    }

    fn commit(&mut self, wall: Timestamp, changes: Vec<TaskEffect>) -> anyhow::Result<()> {
        let id = self.submit_commit(wall, changes)?;
        self.committed(id)
    }

    fn commit_and_page(
        &mut self,
        wall: Timestamp,
        changes: Vec<TaskEffect>,
        (after, until, max): (DueKey, Timestamp, usize),
    ) -> anyhow::Result<Vec<Pending>> {
        let id = self.submit_commit(wall, changes)?;
        let page = self.page(after, until, max)?;
        self.committed(id)?;
        Ok(page)
    }

    fn page(&mut self, mut after: DueKey, until: Timestamp, max: usize) -> anyhow::Result<Vec<Pending>> {
        loop {
            let page = match self.ask(Request::ScanDue { after, until, max })? {
                Reply::Page(page) => page,
                other => bail!("a scan was answered with {other:?}"),
            };
            match page.next {
                // A page may be empty and go on all the same.
                Some(next) if page.tasks.is_empty() => after = next,
                _ => return Ok(page.tasks.iter().map(|task| pending(task)).collect()),
            }
        }
    }

    fn get(&mut self, keys: &[Key]) -> anyhow::Result<Vec<Option<Pending>>> {
        let wanted = keys.iter().map(|key| Wanted::Key(self.queue.clone(), key.clone())).collect();
        match self.ask(Request::GetMany(wanted))? {
            Reply::Found(found) => Ok(found
                .iter()
                .map(|found| match found {
                    Found::Live(task) => Some(pending(task)),
                    Found::Ended(_) | Found::Absent => None,
                })
                .collect()),
            other => bail!("a look-up was answered with {other:?}"),
        }
    }

    fn rest(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            self.store.poll(&mut self.replies);
            match self.woken.recv_timeout(QUIET) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => bail!("the store's thread ended"),
            }
        }
        eprintln!("  the store is still at work after {PATIENCE:?}");
        Ok(())
    }

    fn close(mut self) -> anyhow::Result<()> {
        match self.ask(Request::Release { ownership: self.ownership })? {
            Reply::Released => Ok(()),
            other => bail!("a release was answered with {other:?}"),
        }
    }
}

fn pending(task: &Task) -> Pending {
    Pending {
        place: DueKey::of(task),
        id: task.id,
        key: task.key.clone(),
        number: number(&task.body.payload),
    }
}
