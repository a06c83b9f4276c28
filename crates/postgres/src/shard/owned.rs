//! [`Owned`]: the state of a shard that this process owns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tickwheel_engine::{
    Acquired, AcquiredPage, Batch, EngineState, Epoch, Found, Key, Population, QueueName, Reply, RequestId,
    Seq, ShardId, TaskEffect, Timestamp, Wanted,
};
use tickwheel_store::records::{RecordError, RecordReader};
use tickwheel_store::{HistoryLimits, Table};

use crate::database::{BatchRow, Claim, Read, ReadResult, Rollup, Snapshot, TaskRow};
use crate::shard::counts;
use crate::shard::known_keys::KnownKeys;
use crate::shard::shard_inbox::ShardInbox;

/// Batches are rolled up once their ends have this many bytes, even if they are few.
const ROLLUP_BYTES: usize = 8 << 20;
/// Rollups may have twice the ends that are remembered, and this many more. Then a rollup with the whole history replaces them.
const ROLLUP_ENDS_MORE: usize = 10_000;
/// After a loss, the numbers of changes and the ids go on this much higher for each fail-over, so that no number that was seen comes again.
/// Each fail-over counts, because also an owner between two of them may be lost.
const AFTER_LOSS: u64 = 1 << 24;

/// The state of a shard that this process owns.
#[derive(Debug)]
pub(crate) struct Owned {
    pub(crate) incarnation: String,
    pub(crate) claim: Claim,
    pub(crate) shard: ShardId,
    /// The number of the last batch that was answered.
    pub(crate) last_no: i64,
    pub(crate) last_seq: Seq,
    pub(crate) last_wall: Timestamp,
    pub(crate) committing: Option<Committing>,
    pub(crate) populations: BTreeMap<QueueName, Population>,
    pub(crate) keys: KnownKeys,
    /// A page of keys whose snapshot has a batch that was not answered yet, with the number of its reading.
    pub(crate) early_keys: Option<(u64, ReadResult)>,
    pub(crate) leased: BTreeSet<u64>,
    /// The leased tasks of the page that is being read, with the page and the request.
    pub(crate) paging: Option<(RequestId, Paging)>,
    /// The rules, the ends that are remembered and the engine state. No task is in the table.
    pub(crate) table: Table,
    /// Whether the ends in all rollups were read.
    pub(crate) history_read: bool,
    /// Answers to reads whose snapshot has a batch that was not answered yet.
    pub(crate) early: Vec<(PendingRead, ReadResult)>,
    /// Look-ups that wait for the history.
    pub(crate) unanswered: Vec<(PendingRead, Vec<Option<TaskRow>>)>,
    pub(crate) not_rolled_up: NotRolledUp,
    /// The number of ends in all rollups.
    pub(crate) rolled_up: usize,
    pub(crate) rolling_up: Option<RollingUp>,
    pub(crate) inbox: ShardInbox,
}

#[derive(Debug)]
pub(crate) struct Committing {
    pub(crate) request: RequestId,
    pub(crate) seq: Seq,
    pub(crate) wall: Timestamp,
    pub(crate) batch: Batch,
    pub(crate) counts: Vec<u8>,
    pub(crate) ended: Vec<u8>,
}

/// The batches since the last rollup.
#[derive(Debug, Default)]
pub(crate) struct NotRolledUp {
    pub(crate) batches: u64,
    pub(crate) ended: Vec<u8>,
    pub(crate) ends: usize,
}

/// The rollup under way.
#[derive(Debug)]
pub(crate) struct RollingUp {
    pub(crate) not_rolled_up: NotRolledUp,
    /// The number of ends in all rollups once this rollup is there.
    pub(crate) rolled_up: usize,
}

/// A question of the engine.
#[derive(Clone, Debug)]
pub(crate) struct PendingRead {
    pub(crate) request: RequestId,
    pub(crate) read: Read,
}

#[derive(Debug)]
pub(crate) enum Paging {
    First(Box<Acquired>),
    Next(AcquiredPage),
}

impl Owned {
    /// Makes the state of a shard that was taken. Also returns the secret of the shard, and the wall clock of the last batch before the
    /// acquisition.
    pub(crate) fn new(
        shard: ShardId,
        incarnation: String,
        snapshot: Snapshot,
        history: HistoryLimits,
        keys: KnownKeys,
        reader: &mut RecordReader,
    ) -> Result<(Self, [u8; 16], Timestamp), String> {
        let Snapshot { epoch, secret, rollup, batches, rules, leased } = snapshot;
        let mut owned = Self {
            incarnation,
            claim: Claim { shard: shard.number(), epoch },
            shard,
            last_no: 0,
            last_seq: Seq::ZERO,
            last_wall: Timestamp::EPOCH,
            committing: None,
            populations: BTreeMap::new(),
            keys,
            early_keys: None,
            leased: leased.into_iter().map(i64::cast_unsigned).collect(),
            paging: None,
            table: Table::with_history(secret, history),
            history_read: false,
            early: Vec::new(),
            unanswered: Vec::new(),
            not_rolled_up: NotRolledUp::default(),
            rolled_up: 0,
            rolling_up: None,
            inbox: ShardInbox::default(),
        };
        u32::try_from(epoch).map_err(|_| format!("the epoch {epoch} is beyond 2^32"))?;
        for rule in rules {
            owned.table.apply_rule(reader.rule(&rule).map_err(|error| error.to_string())?);
        }
        if let Some(rollup) = rollup {
            let no = rollup.no;
            owned.apply(rollup, reader).map_err(|error| format!("rollup {no}: {error}"))?;
            owned.not_rolled_up = NotRolledUp::default();
        }
        let mut last_wall = owned.last_wall;
        for batch in batches {
            // The last batch is that of the acquisition. Its wall clock is that of the new owner, who wants to know an earlier one.
            last_wall = owned.last_wall;
            let no = batch.no;
            owned.apply(batch, reader).map_err(|error| format!("batch {no}: {error}"))?;
        }
        Ok((owned, secret, last_wall))
    }

    pub(crate) fn apply(&mut self, row: BatchRow, reader: &mut RecordReader) -> Result<(), String> {
        let BatchRow { no, seq, wall, counters, counts, ended, failovers_passed } = row;
        self.last_no = no;
        self.last_seq = self.last_seq.max(Seq(seq.cast_unsigned()));
        self.last_wall = self.last_wall.max(Timestamp::from_ms(wall).ok_or("the wall clock is negative")?);
        if let Some(counters) = counters {
            let state = EngineState::from_bytes(&counters).map_err(|error| error.to_string())?;
            self.table.join_state(state);
        }
        if let Some(failovers) = u64::try_from(failovers_passed).ok().filter(|failovers| *failovers > 0) {
            let passed = AFTER_LOSS.saturating_mul(failovers);
            let mut state = self.table.state();
            state.pass_ids(0, passed.saturating_mul(self.shard.count().into()));
            self.table.join_state(state);
            self.last_seq.0 = self.last_seq.0.saturating_add(passed);
        }
        counts::add(&mut self.populations, &counts).map_err(|error| error.to_string())?;
        self.not_rolled_up.batches += 1;
        self.not_rolled_up.ends += self.remember(&ended, reader).map_err(|error| error.to_string())?;
        self.not_rolled_up.ended.extend_from_slice(&ended);
        Ok(())
    }

    /// Takes in the records of ends. Returns their number.
    pub(crate) fn remember(&mut self, ended: &[u8], reader: &mut RecordReader) -> Result<usize, RecordError> {
        let mut ends = 0;
        reader.ends(ended, |ended| {
            ends += 1;
            self.table.apply(&TaskEffect::Ended(ended));
        })?;
        Ok(ends)
    }

    pub(crate) fn epoch(&self) -> Epoch {
        // The opening has checked the range.
        Epoch(u32::try_from(self.claim.epoch).unwrap_or(u32::MAX))
    }

    pub(crate) fn is_paging(&self, request: RequestId) -> bool {
        self.paging.as_ref().is_some_and(|(paging, _)| *paging == request)
    }

    /// Returns the requests under way, except reads that the database has not answered.
    pub(crate) fn requests(&self) -> impl Iterator<Item = RequestId> {
        let paging = self.paging.as_ref().map(|(request, _)| *request);
        let committing = self.committing.as_ref().map(|committing| committing.request);
        let early = self.early.iter().map(|(asked, _)| asked.request);
        let unanswered = self.unanswered.iter().map(|(asked, _)| asked.request);
        let all: BTreeSet<RequestId> =
            paging.into_iter().chain(committing).chain(early).chain(unanswered).collect();
        all.into_iter()
    }

    pub(crate) fn committed(&mut self, committing: Committing, last: i64) {
        let Committing { request: _, seq, wall, batch, counts, ended } = committing;
        self.last_no = last;
        self.last_seq = seq;
        self.last_wall = self.last_wall.max(wall);
        // The engine counts its tasks itself, so the numbers cannot be below 0.
        let counted = counts::add(&mut self.populations, &counts);
        debug_assert_eq!(counted, Ok(()), "the engine knows the state of each task before a batch");
        self.keys.committed(&batch.effects);
        for effect in &batch.effects {
            if let TaskEffect::Ended(_) = effect {
                self.not_rolled_up.ends += 1;
                self.table.apply(effect);
            }
        }
        if let Some(state) = batch.state {
            self.table.join_state(state);
        }
        batch.rules.into_iter().for_each(|rule| self.table.apply_rule(rule));
        self.table.forget_until(wall);
        self.not_rolled_up.batches += 1;
        self.not_rolled_up.ended.extend_from_slice(&ended);
    }

    /// Whether there are enough batches for a rollup.
    fn has_enough(&self, batches: u64) -> bool {
        self.not_rolled_up.batches >= batches || self.not_rolled_up.ended.len() >= ROLLUP_BYTES
    }

    /// Whether a rollup is to be made as soon as the history was read.
    pub(crate) fn waits_for_history(&self, batches: u64) -> bool {
        self.has_enough(batches) && !self.history_read
    }

    /// Returns the rollup that is to be made, if there are enough batches for one and no rollup is under way.
    pub(crate) fn next_rollup(&mut self, batches: u64) -> Option<Rollup> {
        if !self.has_enough(batches) || self.rolling_up.is_some() || !self.history_read {
            return None;
        }
        let not_rolled_up = std::mem::take(&mut self.not_rolled_up);
        let ends = self.rolled_up + not_rolled_up.ends;
        let replaces_history = ends > 2 * self.table.ended_len() + ROLLUP_ENDS_MORE;
        let mut ended = not_rolled_up.ended.clone();
        if replaces_history {
            ended.clear();
            for end in self.table.ended_after(None) {
                tickwheel_store::records::put_ended(&mut ended, end);
            }
        }
        let rollup = Rollup {
            claim: self.claim,
            no: self.last_no,
            // The encoding of each batch has checked the range.
            seq: self.last_seq.0.cast_signed(),
            wall: self.last_wall.as_ms(),
            counters: self.table.state().to_bytes(),
            counts: counts::totals(&self.populations),
            ended,
            replaces_history,
        };
        let rolled_up = if replaces_history { self.table.ended_len() } else { ends };
        self.rolling_up = Some(RollingUp { not_rolled_up, rolled_up });
        Some(rollup)
    }

    pub(crate) fn was_rolled_up(&mut self, done: bool) {
        let Some(RollingUp { not_rolled_up, rolled_up }) = self.rolling_up.take() else { return };
        if done {
            self.rolled_up = rolled_up;
        } else {
            // The batches are still there. They are rolled up with the later ones.
            self.not_rolled_up.batches += not_rolled_up.batches;
            self.not_rolled_up.ends += not_rolled_up.ends;
            let later = std::mem::replace(&mut self.not_rolled_up.ended, not_rolled_up.ended);
            self.not_rolled_up.ended.extend_from_slice(&later);
        }
    }

    /// Answers look-ups without the database, if no task has any of the keys.
    pub(crate) fn absent(&self, wanted: &[Wanted]) -> Option<Vec<Found>> {
        let lacks = |wanted: &Wanted| match wanted {
            Wanted::Key(queue, key) => self.keys.lacks(queue, key) && !self.may_be_id(key),
            Wanted::Id(_) => false,
        };
        // A look-up that is answered before the ones under way would change the order of the puts. And the history says how a task ended.
        let is_first = self.early.is_empty() && self.unanswered.is_empty();
        (is_first && self.history_read && wanted.iter().all(lacks))
            .then(|| wanted.iter().map(|wanted| self.table.find(wanted)).collect())
    }

    /// Whether the key may be the decimal form of the id of a task of this shard.
    fn may_be_id(&self, key: &Key) -> bool {
        let id = key.as_str().parse().ok().filter(|id| *key == Key::from_id(*id));
        id.is_some_and(|id| self.shard.has_id(id) && self.table.state().may_have_given_out(id))
    }

    pub(crate) fn found(
        &self,
        wanted: &[Wanted],
        rows: Vec<Option<TaskRow>>,
        reader: &mut RecordReader,
    ) -> Result<Vec<Found>, RecordError> {
        wanted
            .iter()
            .zip(rows)
            .map(|(wanted, row)| match row {
                Some(row) => Ok(Found::Live(Arc::new(reader.task(&row.record, &row.body)?))),
                None => Ok(self.table.find(wanted)),
            })
            .collect()
    }
}

impl Paging {
    pub(crate) fn page(&mut self) -> &mut AcquiredPage {
        match self {
            Self::First(acquired) => &mut acquired.page,
            Self::Next(page) => page,
        }
    }

    pub(crate) fn reply(self) -> Reply {
        match self {
            Self::First(acquired) => Reply::Acquired(*acquired),
            Self::Next(page) => Reply::AcquiredPage(page),
        }
    }
}
