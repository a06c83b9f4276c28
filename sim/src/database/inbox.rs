//! [`InboxRows`]: the rows that users write in transactions of their own.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwheel_postgres::database::{Claim, InboxEntry, InboxPage, Refusal};

use super::fault::Wrong;
use super::tables::{Done, Write};
use super::{Open, SimDatabase, State};

/// A row: its shard and its id.
type Place = (u32, i64);

/// The rows of the inbox, and those that were refused. Unlike other rows, they have no lock of their shard while a user writes them.
#[derive(Clone, Debug, Default)]
pub(super) struct InboxRows {
    waiting: BTreeMap<Place, Arc<InboxEntry>>,
    refused: BTreeMap<Place, String>,
}

/// A change of the inbox by one transaction.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Added(u32, Arc<InboxEntry>),
    Taken(Place),
    Moved(Place, String),
}

/// The state of a row that a user wrote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RowState {
    /// The transaction of the user is under way.
    Open,
    /// The row is in the inbox.
    Waiting,
    /// The row was refused, for this reason.
    Refused(String),
    /// The row was taken, or its transaction did not commit.
    Gone,
}

impl InboxRows {
    pub(super) fn apply(&mut self, change: Change) {
        match change {
            Change::Added(shard, entry) => drop(self.waiting.insert((shard, entry.id), entry)),
            Change::Taken(place) => drop(self.waiting.remove(&place)),
            Change::Moved(place, why) => {
                if self.waiting.remove(&place).is_some() {
                    self.refused.insert(place, why);
                }
            }
        }
    }

    /// The oldest rows of a shard behind this id, at most `max`, without the rows `but`.
    fn page(&self, claim: Claim, after: i64, max: usize, but: &[i64]) -> Option<InboxPage> {
        let rows = self.waiting.range((claim.shard, after.saturating_add(1))..=(claim.shard, i64::MAX));
        let rows = rows.filter(|((_, id), _)| !but.contains(id));
        let entries: Vec<InboxEntry> = rows.take(max).map(|(_, row)| InboxEntry::clone(row)).collect();
        let more = entries.len() >= max;
        (!entries.is_empty()).then_some(InboxPage { claim, entries, more })
    }
}

impl Write {
    /// Returns how the transaction changes the inbox.
    pub(super) fn inbox_changes(&self, done: &Done) -> Vec<Change> {
        match (self, done) {
            (Self::Commit(batches), Done::Committed(took_part)) => {
                let batches = batches.iter().filter(|batch| took_part.contains(&batch.claim.shard));
                let rows = batches.flat_map(|batch| batch.taken.iter().map(|row| (batch.claim.shard, *row)));
                rows.map(Change::Taken).collect()
            }
            (Self::Refuse(refusals), Done::Moved(owned)) => {
                let refusals = refusals.iter().filter(|refusal| owned.contains(&refusal.claim));
                let moved = |one: &Refusal| Change::Moved((one.claim.shard, one.row), one.why.clone());
                refusals.map(moved).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl State {
    /// Reads the rows of the shards whose epochs are those of their owners, without the rows `but`.
    pub(super) fn read_inbox(&mut self, owned: &[Claim], max: usize, but: &[i64]) -> Vec<InboxPage> {
        let mut pages = Vec::new();
        for claim in owned {
            let is_owner = self.tables.shards.get(&claim.shard).is_some_and(|rows| rows.epoch == claim.epoch);
            let after = match self.wrong {
                Wrong::InboxByCursor => self.cursors.get(&(claim.shard, claim.epoch)).copied().unwrap_or(0),
                _ => 0,
            };
            let page = if is_owner { self.tables.inbox.page(*claim, after, max, but) } else { None };
            if let Some(last) = page.as_ref().and_then(|page| page.entries.last()) {
                self.cursors.insert((claim.shard, claim.epoch), last.id);
            }
            if self.wrong == Wrong::RowDeletedAsRead {
                for entry in page.iter().flat_map(|page| &page.entries) {
                    self.tables.inbox.apply(Change::Taken((claim.shard, entry.id)));
                }
            }
            pages.extend(page);
        }
        pages
    }
}

impl SimDatabase {
    /// Begins a transaction of a user that writes a row, and returns the id of the row; `None`: the database takes no transactions. The
    /// transaction ends after `lasts_ns`. With `commits`, it commits then. So rows commit in another order than that of their ids.
    #[must_use]
    pub fn put_row(&self, shard: u32, entry: InboxEntry, lasts_ns: u64, commits: bool) -> Option<i64> {
        let mut state = self.lock();
        if state.now_ns < state.down_until_ns {
            return None;
        }
        state.last_row += 1;
        let id = state.last_row;
        let entry = InboxEntry { id, ..entry };
        let text = format!("row {id} of shard {shard}: {} {}/{}", entry.op, entry.queue, entry.key);
        let open = Open {
            locks: Vec::new(),
            incarnation: String::new(),
            ends_ns: state.now_ns + lasts_ns,
            commits,
            is_watched: false,
            text,
            nodes: Vec::new(),
            shards: Vec::new(),
            inbox: vec![Change::Added(shard, Arc::new(entry))],
        };
        let no = state.next();
        state.open.insert(no, open);
        Some(id)
    }

    /// Returns the state of a row, as committed.
    #[must_use]
    pub fn row(&self, shard: u32, id: i64) -> RowState {
        let state = self.lock();
        // A commit that the standby lacks was not acknowledged, and may be lost.
        let tables = state.unreplicated.as_ref().map_or(&state.tables, |(_, tables)| tables);
        let inbox = &tables.inbox;
        let adds = |change: &Change| matches!(change, Change::Added(_, entry) if entry.id == id);
        if state.open.values().any(|open| open.inbox.iter().any(adds)) {
            RowState::Open
        } else if inbox.waiting.contains_key(&(shard, id)) {
            RowState::Waiting
        } else if let Some(why) = inbox.refused.get(&(shard, id)) {
            RowState::Refused(why.clone())
        } else {
            RowState::Gone
        }
    }
}
