//! [`Tables`]: the rows of the database, and the meaning of each statement.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tickwheel_engine::{Key, QueueName};
use tickwheel_postgres::database::{
    Acquire, Acquisition, BatchRow, Claim, Doubt, Holder, NodeEntry, PutRow, Refusal, Resolution, Rollup,
    RuleRow, ShardBatch, Snapshot,
};

use super::fault::Wrong;
use super::inbox::InboxRows;

/// The steps of an epoch: from owner to owner, and for each timeline that was lost in between.
const EPOCH_STEP: i64 = 1;
const EPOCH_STEP_AFTER_LOSS: i64 = 1_024;

/// All rows. A clone costs little: the rows of a shard are copied when they change.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    pub(super) nodes: BTreeMap<String, NodeRow>,
    pub(super) shards: BTreeMap<u32, Arc<ShardRows>>,
    pub(super) inbox: InboxRows,
}

/// The row of an incarnation.
#[derive(Clone, Debug)]
pub(super) struct NodeRow {
    pub(super) entry: NodeEntry,
    pub(super) beat: i64,
    pub(super) ended: bool,
}

/// The rows of one shard.
#[derive(Clone, Debug, Default)]
pub(super) struct ShardRows {
    pub(super) epoch: i64,
    pub(super) owner: Option<String>,
    pub(super) failover: i64,
    pub(super) secret: [u8; 16],
    rules: BTreeMap<(i16, String, String), Vec<u8>>,
    pub(super) tasks: BTreeMap<i64, Arc<Row>>,
    /// The index that makes (queue, key) unique.
    pub(super) keys: BTreeMap<(QueueName, Key), i64>,
    pub(super) batches: BTreeMap<i64, Arc<Logged>>,
    pub(super) rollups: BTreeMap<i64, Arc<BatchRow>>,
}

/// A row of the table of batches.
#[derive(Clone, Debug)]
pub(super) struct Logged {
    pub(super) epoch: i64,
    pub(super) row: BatchRow,
}

/// A task.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) queue: QueueName,
    pub(super) key: Option<Key>,
    pub(super) due_at: i64,
    pub(super) put_seq: i64,
    pub(super) seq: i64,
    pub(super) dead: bool,
    pub(super) leased: bool,
    pub(super) record: Vec<u8>,
    pub(super) body: Vec<u8>,
}

/// One transaction that changes rows.
#[derive(Clone, Debug)]
pub(super) enum Write {
    Join(NodeEntry),
    Heartbeat(String),
    End { incarnation: String, beat: i64 },
    Leave(String),
    Commit(Vec<ShardBatch>),
    Resolve(Doubt),
    Acquire(Acquire),
    Release(Claim),
    Rollup(Rollup),
    Refuse(Vec<Refusal>),
}

/// The answer of a transaction.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Done {
    Joined,
    /// The clock of the database when it took the heartbeat (ns since the Unix epoch); `None`: the incarnation has ended.
    Heartbeat(Option<i128>),
    Ended(bool),
    Committed(Vec<u32>),
    Resolved(Resolution),
    Acquisition(Acquisition),
    Released,
    RolledUp,
    /// The rows that these owners refused were moved.
    Moved(Vec<Claim>),
}

/// A row that a transaction locks until it ends.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Lock {
    Node(String),
    Shard(u32),
    /// The lock of the acquisitions.
    Acquisitions,
}

impl Write {
    /// Returns the rows that the transaction locks.
    pub(super) fn locks(&self) -> Vec<Lock> {
        match self {
            Self::Join(entry) => vec![Lock::Node(entry.incarnation.clone())],
            Self::Heartbeat(incarnation) | Self::End { incarnation, .. } | Self::Leave(incarnation) => {
                vec![Lock::Node(incarnation.clone())]
            }
            Self::Commit(batches) => batches.iter().map(|batch| Lock::Shard(batch.claim.shard)).collect(),
            Self::Resolve(Doubt { claim, .. }) | Self::Release(claim) => vec![Lock::Shard(claim.shard)],
            Self::Acquire(take) => vec![Lock::Shard(take.shard), Lock::Acquisitions],
            Self::Rollup(rollup) => vec![Lock::Shard(rollup.claim.shard)],
            Self::Refuse(refusals) => {
                let shards: BTreeSet<u32> = refusals.iter().map(|refusal| refusal.claim.shard).collect();
                shards.into_iter().map(Lock::Shard).collect()
            }
        }
    }
}

impl Tables {
    /// Carries out a transaction. `wall_ns`: the clock of the database (ns since the Unix epoch).
    ///
    /// # Errors
    /// The error of the database. Then the tables must not be used.
    pub(super) fn carry_out(
        &mut self,
        write: &Write,
        (failover, wall_ns): (i64, i128),
        wrong: Wrong,
    ) -> Result<Done, String> {
        match write {
            Write::Join(entry) => {
                let row = NodeRow { entry: entry.clone(), beat: 0, ended: false };
                match self.nodes.insert(entry.incarnation.clone(), row) {
                    None => Ok(Done::Joined),
                    Some(_) => Err(format!("duplicate key value: node {}", entry.incarnation)),
                }
            }
            Write::Heartbeat(incarnation) => {
                let row = self.nodes.get_mut(incarnation).filter(|row| !row.ended);
                Ok(Done::Heartbeat(row.map(|row| {
                    row.beat += 1;
                    wall_ns
                })))
            }
            Write::Leave(incarnation) => {
                if let Some(row) = self.nodes.get_mut(incarnation) {
                    row.ended = true;
                }
                Ok(Done::Ended(true))
            }
            Write::End { incarnation, beat } => {
                let Some(row) = self.nodes.get_mut(incarnation) else { return Ok(Done::Ended(true)) };
                row.ended |= row.beat == *beat || wrong == Wrong::EndWithoutBeat;
                Ok(Done::Ended(row.ended))
            }
            Write::Commit(batches) => {
                let mut took_part = Vec::new();
                for batch in batches {
                    if self.shard(batch.claim.shard)?.commit(batch, wrong)? {
                        took_part.push(batch.claim.shard);
                    }
                }
                Ok(Done::Committed(took_part))
            }
            Write::Resolve(doubt) => Ok(Done::Resolved(self.shard(doubt.claim.shard)?.resolve(doubt))),
            Write::Acquire(take) => self.acquire(take, failover, wrong).map(Done::Acquisition),
            Write::Release(claim) => {
                let rows = self.shard(claim.shard)?;
                if rows.epoch == claim.epoch {
                    rows.owner = None;
                }
                Ok(Done::Released)
            }
            Write::Rollup(rollup) => {
                self.shard(rollup.claim.shard)?.roll_up(rollup);
                Ok(Done::RolledUp)
            }
            Write::Refuse(refusals) => {
                let claims = refusals.iter().map(|refusal| refusal.claim);
                let is_owner = |claim: &Claim| {
                    self.shards.get(&claim.shard).is_some_and(|rows| rows.epoch == claim.epoch)
                };
                Ok(Done::Moved(claims.filter(is_owner).collect()))
            }
        }
    }

    fn shard(&mut self, number: u32) -> Result<&mut ShardRows, String> {
        self.shards.get_mut(&number).map(Arc::make_mut).ok_or_else(|| format!("there is no shard {number}"))
    }

    /// Says which incarnations have shards, if there are several.
    pub(super) fn shared(&self, after: &str) -> Option<String> {
        let is_alive = |owner: &&String| self.nodes.get(*owner).is_some_and(|node| !node.ended);
        let owners: BTreeSet<&String> =
            self.shards.values().filter_map(|rows| rows.owner.as_ref()).filter(is_alive).collect();
        (owners.len() > 1).then(|| format!("{owners:?} share the shards, after {after}"))
    }

    fn acquire(&mut self, wanted: &Acquire, failover: i64, wrong: Wrong) -> Result<Acquisition, String> {
        // One process has all shards.
        let of_shard = self.shards.get(&wanted.shard);
        let of_all = self.shards.values().filter(|_| wrong != Wrong::TakeBesideOthers);
        let owners = of_shard.into_iter().chain(of_all).filter_map(|rows| rows.owner.as_ref());
        let others = owners.filter(|owner| **owner != wanted.incarnation);
        let holder = others.filter_map(|owner| self.nodes.get(owner)).find(|node| !node.ended);
        if let Some(NodeRow { entry: NodeEntry { incarnation, name, address, .. }, .. }) = holder.cloned() {
            return Ok(Acquisition::Held(Holder { incarnation, name, address }));
        }
        let rows = self.shard(wanted.shard)?;
        if failover > rows.failover && wanted.after_loss != Some(failover) {
            return Ok(Acquisition::TooSoon);
        }
        let failovers = if wrong == Wrong::SmallStep { 0 } else { failover - rows.failover };
        rows.epoch += if failovers > 0 { EPOCH_STEP_AFTER_LOSS * failovers } else { EPOCH_STEP };
        rows.owner = Some(wanted.incarnation.clone());
        rows.failover = failover;
        rows.log_empty(wanted.wall, failovers);
        Ok(Acquisition::Acquired(Box::new(rows.snapshot())))
    }
}

impl ShardRows {
    /// Returns the rows of a new shard.
    pub(super) fn new(secret: [u8; 16], failover: i64) -> Self {
        Self { secret, failover, ..Self::default() }
    }

    pub(super) fn last_no(&self) -> i64 {
        let last = |no: Option<&i64>| no.copied().unwrap_or(0);
        last(self.batches.keys().next_back()).max(last(self.rollups.keys().next_back()))
    }

    /// Looks at the last two batches: their numbers are consecutive, and the epoch never falls.
    pub(super) fn disorder(&self) -> Option<String> {
        let mut last = self.batches.iter().rev();
        let (no, batch) = last.next()?;
        if batch.epoch != self.epoch {
            return Some(format!("batch {no} has epoch {}, and the shard {}", batch.epoch, self.epoch));
        }
        let (before, _) = last.next()?;
        (before + 1 != *no).then(|| format!("batch {no} follows batch {before}"))
    }

    /// Writes an empty batch behind all others.
    fn log_empty(&mut self, wall: i64, failovers_passed: i64) {
        let no = self.last_no() + 1;
        let seq = self.batches.values().next_back().map_or(0, |batch| batch.row.seq);
        let (counts, ended) = (Vec::new(), Vec::new());
        let row = BatchRow { no, seq, wall, counters: None, counts, ended, failovers_passed };
        self.batches.insert(no, Arc::new(Logged { epoch: self.epoch, row }));
    }

    /// Returns whether the batch took part.
    fn commit(&mut self, batch: &ShardBatch, wrong: Wrong) -> Result<bool, String> {
        let is_fenced = self.epoch != batch.claim.epoch && wrong != Wrong::NoFence;
        let has_before = self.batches.contains_key(&(batch.no - 1)) || wrong == Wrong::NoNumberBefore;
        if is_fenced || !has_before || self.batches.contains_key(&batch.no) {
            return Ok(false);
        }
        let row = BatchRow {
            no: batch.no,
            seq: batch.seq,
            wall: batch.wall,
            counters: batch.counters.map(|counters| counters.to_vec()),
            counts: batch.counts.clone(),
            ended: batch.ended.clone(),
            failovers_passed: 0,
        };
        self.batches.insert(batch.no, Arc::new(Logged { epoch: batch.claim.epoch, row }));
        for id in &batch.ends {
            if let Some(row) = self.tasks.remove(id) {
                self.free_key(&row);
            }
        }
        for id in &batch.keyless {
            if let Some(row) = self.tasks.get(id).cloned() {
                self.free_key(&row);
                self.tasks.insert(*id, Arc::new(Row { key: None, ..Row::clone(&row) }));
            }
        }
        for put in &batch.puts {
            self.put(put)?;
        }
        for RuleRow { kind, queue, name, record } in &batch.rules {
            let rule = (*kind, queue.clone(), name.clone());
            match record {
                Some(record) => drop(self.rules.insert(rule, record.clone())),
                None => drop(self.rules.remove(&rule)),
            }
        }
        Ok(true)
    }

    fn free_key(&mut self, row: &Row) {
        if let Some(key) = &row.key {
            self.keys.remove(&(row.queue.clone(), key.clone()));
        }
    }

    /// `INSERT … ON CONFLICT (shard, id) DO UPDATE … WHERE task.seq < excluded.seq`, and for a new task `INSERT` alone.
    fn put(&mut self, put: &PutRow) -> Result<(), String> {
        let before = self.tasks.get(&put.id).cloned();
        if put.is_new && before.is_some() {
            return Err(format!("duplicate key value: the id of task {}", put.id));
        }
        if before.as_ref().is_some_and(|row| row.seq >= put.seq) {
            return Ok(());
        }
        let known = before.as_ref().map(|row| &row.body);
        let Some(body) = put.body.as_ref().or(known).cloned() else {
            return Err(format!("null value in column \"body\" of task {}", put.id));
        };
        if let Some(row) = before {
            self.free_key(&row);
        }
        if let Some(key) = &put.key {
            let other = self.keys.insert((put.queue.clone(), key.clone()), put.id);
            if let Some(other) = other {
                return Err(format!("duplicate key value: {key} of tasks {other} and {}", put.id));
            }
        }
        let PutRow { id, is_new: _, queue, key, due_at, put_seq, seq, dead, leased, record, body: _ } =
            put.clone();
        self.tasks.insert(id, Arc::new(Row { queue, key, due_at, put_seq, seq, dead, leased, record, body }));
        Ok(())
    }

    fn resolve(&mut self, doubt: &Doubt) -> Resolution {
        if self.epoch != doubt.claim.epoch {
            return Resolution::Moved;
        }
        match self.batches.get(&doubt.no) {
            Some(batch) if batch.epoch == doubt.claim.epoch => {
                let wall = batch.row.wall;
                self.log_empty(wall, 0);
                Resolution::Done { last: self.last_no() }
            }
            None if self.batches.contains_key(&(doubt.no - 1)) => Resolution::Absent,
            Some(_) | None => Resolution::Lost,
        }
    }

    fn roll_up(&mut self, rollup: &Rollup) {
        // After a fail-over, the batch of the rollup may be lost.
        if self.epoch != rollup.claim.epoch || !self.batches.contains_key(&rollup.no) {
            return;
        }
        self.batches.retain(|no, _| *no >= rollup.no);
        if rollup.replaces_history {
            self.rollups.clear();
        }
        let row = BatchRow {
            no: rollup.no,
            seq: rollup.seq,
            wall: rollup.wall,
            counters: Some(rollup.counters.to_vec()),
            counts: rollup.counts.clone(),
            ended: rollup.ended.clone(),
            failovers_passed: 0,
        };
        self.rollups.insert(rollup.no, Arc::new(row));
    }

    fn snapshot(&self) -> Snapshot {
        let rollup = self.rollups.values().next_back();
        let rolled_up = rollup.map_or(0, |rollup| rollup.no);
        Snapshot {
            epoch: self.epoch,
            secret: self.secret,
            rollup: rollup.map(|rollup| BatchRow { ended: Vec::new(), ..BatchRow::clone(rollup) }),
            batches: self.batches.range(rolled_up + 1..).map(|(_, batch)| batch.row.clone()).collect(),
            rules: self.rules.values().cloned().collect(),
            leased: self.tasks.iter().filter(|(_, row)| row.leased).map(|(id, _)| *id).collect(),
        }
    }
}
