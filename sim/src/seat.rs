//! [`Seat`]: one node's access to a store that several nodes share, as nodes share a database.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use tickwheel_engine::{Reply, Request, RequestId, ShardStore, Validity};
use tickwheel_store::DiskStore;

use crate::disk::SimDisk;
use crate::io::SimIo;

type Store = DiskStore<SimDisk, SimIo>;

/// The number of nodes: one owns the shard, and the other one owned it before or takes it next.
const NODES: usize = 2;

/// One node's access to the store.
///
/// The store is the one that ships, with its real epochs and fences. What the seat adds is what a database would tell its node: how long the
/// node owns the shard.
#[derive(Debug)]
pub(crate) struct Seat {
    table: Rc<RefCell<Table>>,
    node: usize,
    /// Why the store failed. Kept here, because the store is behind a cell.
    failure: Option<String>,
}

#[derive(Debug)]
struct Table {
    store: Store,
    replies: [VecDeque<(RequestId, Reply)>; NODES],
    validity: [Validity; NODES],
    /// The node that asked for the shard last.
    owner: usize,
}

impl Seat {
    /// The first node's access to a store that was just opened.
    pub(crate) fn first(store: Store) -> Self {
        let table =
            Table { store, replies: Default::default(), validity: [Validity::Valid; NODES], owner: 0 };
        Self { table: Rc::new(RefCell::new(table)), node: 0, failure: None }
    }

    /// The other node's access to the same store.
    pub(crate) fn other(&self) -> Self {
        Self { table: Rc::clone(&self.table), node: (self.node + 1) % NODES, failure: None }
    }

    /// Looks at the store.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Store) -> T) -> T {
        look(&self.table.borrow().store)
    }

    /// Tells the node how long it owns the shard.
    pub(crate) fn set_validity(&self, validity: Validity) {
        self.table.borrow_mut().validity[self.node] = validity;
    }
}

impl ShardStore for Seat {
    fn submit(&mut self, id: RequestId, request: Request) {
        // Each node numbers its requests by itself.
        let id = RequestId(id.0 * NODES as u64 + self.node as u64);
        let mut table = self.table.borrow_mut();
        if matches!(request, Request::Acquire { .. }) {
            table.owner = self.node;
        }
        table.store.submit(id, request);
    }

    fn poll(&mut self, replies: &mut Vec<(RequestId, Reply)>) {
        let mut table = self.table.borrow_mut();
        let mut all = Vec::new();
        table.store.poll(&mut all);
        for (id, reply) in all {
            let node = (id.0 % NODES as u64) as usize;
            let is_read = matches!(reply, Reply::Found(_) | Reply::Page(_) | Reply::Counts { .. });
            // A database reads the epoch in the statement of the read.
            let reply = if is_read && node != table.owner { Reply::Fenced } else { reply };
            table.replies[node].push_back((RequestId(id.0 / NODES as u64), reply));
        }
        replies.extend(table.replies[self.node].drain(..));
        self.failure = table.store.failure().map(str::to_owned);
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn validity(&self) -> Validity {
        self.table.borrow().validity[self.node]
    }
}
