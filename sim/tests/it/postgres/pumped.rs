//! [`Pumped`]: a store whose node does its work when the store is polled, on one thread.

use std::collections::VecDeque;
use std::sync::Arc;

use tickwheel_engine::{Reply, Request, RequestId, ShardId, ShardStore, Validity};
use tickwheel_postgres::database::{Database, NodeEntry, Session};
use tickwheel_postgres::{CommitWorker, Event, Heartbeats, Node, PostgresStore, ReadRequest};
use tickwheel_sim::database::{Faults, SimDatabase, SimSession};
use tickwheel_store::HistoryLimits;

/// The lease of a node (ms).
const LEASE_MS: u32 = 5_000;

/// A store and its node. Each poll lets a short time pass, and does a part of the work.
pub(crate) struct Pumped {
    store: PostgresStore,
    node: Arc<Node>,
    database: Arc<SimDatabase>,
    commit_worker: CommitWorker<SimDatabase>,
    beats: Heartbeats<SimDatabase>,
    beat_ns: u64,
    reader: Option<SimSession>,
    reads: VecDeque<ReadRequest>,
    names: String,
    named: u64,
    /// The faults that begin once the shard was taken. A taking that is repeated shows its own wall clock to the next one.
    faults: Faults,
}

impl Pumped {
    /// Makes a node and the store of shard 0. `name` is different for each node of a database.
    pub(crate) fn new(
        database: &SimDatabase,
        name: &str,
        history_per_queue: usize,
        page: usize,
        faults: Faults,
    ) -> Self {
        let clock = database.clone();
        let node = Arc::new(Node::new(LEASE_MS, 1, 1, Box::new(move || clock.now_ns())));
        let news = node.register(0, Box::new(|| {}));
        let store = PostgresStore::new(ShardId::ONLY, Arc::clone(&node), news)
            .with_history(HistoryLimits::last(history_per_queue))
            .with_acquired_page(page);
        let entry = NodeEntry {
            incarnation: String::new(),
            name: name.to_owned(),
            address: "http://127.0.0.1".to_owned(),
            version: "1".to_owned(),
        };
        let database = Arc::new(database.clone());
        let mut pumped = Self {
            store,
            commit_worker: CommitWorker::new(Arc::clone(&database)),
            beats: Heartbeats::new(Arc::clone(&database), Arc::clone(&node), entry),
            node,
            database,
            beat_ns: 0,
            reader: None,
            reads: VecDeque::new(),
            names: name.to_owned(),
            named: 0,
            faults,
        };
        pumped.heartbeat();
        while pumped.node.incarnation().is_none() {
            pumped.pass(100);
        }
        pumped
    }

    /// Lets time pass, and beats meanwhile.
    pub(crate) fn pass(&mut self, ms: u64) {
        for _ in 0..ms.div_ceil(100) {
            self.database.set_now(self.database.now_ns() + 100_000_000);
            self.heartbeat();
        }
    }

    fn heartbeat(&mut self) {
        if self.database.now_ns() < self.beat_ns {
            return;
        }
        let (names, named) = (self.names.clone(), &mut self.named);
        let wait = self.beats.turn(|| {
            *named += 1;
            format!("{names}.{named}")
        });
        let wait = wait.expect("the database refuses no process");
        self.beat_ns = self.database.now_ns() + u64::try_from(wait.as_nanos()).expect("short");
    }

    fn work(&mut self) {
        self.heartbeat();
        self.node
            .commit_worker(0)
            .take_all()
            .into_iter()
            .for_each(|(shard, job)| self.commit_worker.push(shard, job));
        let mut outcomes = Vec::new();
        if let Some(incarnation) = self.node.incarnation() {
            let _rest = self.commit_worker.turn(&incarnation, &mut outcomes);
            self.reads.extend(self.node.reads(0).take_all());
            if let Some(ReadRequest { shard, no, read }) = self.reads.pop_front() {
                let session = self.reader.take().map_or_else(|| self.database.connect(&incarnation), Ok);
                let seen = session.ok().and_then(|mut session| {
                    let seen = session.read(shard, &read).ok();
                    self.reader = seen.is_some().then_some(session);
                    seen
                });
                match seen {
                    Some(seen) => self.node.tell(shard, Event::Read(no, Ok(seen))),
                    None => self.reads.push_front(ReadRequest { shard, no, read }),
                }
            }
        }
        for (shard, outcome) in outcomes {
            self.node.tell(shard, Event::Job(outcome));
        }
        self.database.set_now(self.database.now_ns() + 1_000_000);
    }
}

impl ShardStore for Pumped {
    fn submit(&mut self, id: RequestId, request: Request) {
        if !matches!(request, Request::Acquire { .. }) {
            self.database.set_faults(self.faults);
        }
        self.store.submit(id, request);
    }

    fn poll(&mut self, replies: &mut Vec<(RequestId, Reply)>) {
        self.work();
        self.store.poll(replies);
    }

    fn validity(&self) -> Validity {
        self.store.validity()
    }
}
