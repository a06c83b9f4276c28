//! [`PostgresSession`]: one session with PostgreSQL.

use super::link::Link;
use super::{commit, inbox, nodes, read, shards};
use crate::database::{
    Acquire, Acquisition, Claim, Doubt, Failure, Heartbeat, InboxPage, NodeEntry, Read, ReadResult, Refusal,
    Resolution, Rollup, Session, ShardBatch,
};

/// One session with PostgreSQL, through one connection.
#[derive(Debug)]
pub struct PostgresSession {
    link: Link,
}

impl PostgresSession {
    pub(super) fn new(link: Link) -> Self {
        Self { link }
    }
}

impl Session for PostgresSession {
    fn join(&mut self, node: &NodeEntry) -> Result<(), Failure> {
        nodes::join(&mut self.link, node)
    }

    fn heartbeat(&mut self, incarnation: &str) -> Result<Heartbeat, Failure> {
        nodes::heartbeat(&mut self.link, incarnation)
    }

    fn end(&mut self, incarnation: &str, beat: i64) -> Result<bool, Failure> {
        nodes::end(&mut self.link, incarnation, beat)
    }

    fn leave(&mut self, incarnation: &str) -> Result<(), Failure> {
        nodes::leave(&mut self.link, incarnation)
    }

    fn commit(&mut self, batches: &[&ShardBatch]) -> Result<Vec<u32>, Failure> {
        commit::commit(&mut self.link, batches)
    }

    fn resolve(&mut self, doubt: &Doubt) -> Result<Resolution, Failure> {
        shards::resolve(&mut self.link, doubt)
    }

    fn acquire(&mut self, wanted: &Acquire) -> Result<Acquisition, Failure> {
        shards::acquire(&mut self.link, wanted)
    }

    fn release(&mut self, claim: Claim) -> Result<(), Failure> {
        shards::release(&mut self.link, claim)
    }

    fn roll_up(&mut self, rollup: &Rollup) -> Result<(), Failure> {
        shards::roll_up(&mut self.link, rollup)
    }

    fn read(&mut self, shard: u32, read: &Read) -> Result<ReadResult, Failure> {
        read::read(&mut self.link, shard, read)
    }

    fn inbox(&mut self, claims: &[Claim], rows_max: usize, but: &[i64]) -> Result<Vec<InboxPage>, Failure> {
        inbox::read(&mut self.link, claims, rows_max, but)
    }

    fn refuse(&mut self, refusals: &[Refusal]) -> Result<(), Failure> {
        inbox::refuse(&mut self.link, refusals)
    }
}
