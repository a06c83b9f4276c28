//! [`Rows`]: the rows of the inbox, from the transactions of their users to their ends.

use tickwheel_postgres::database::InboxEntry;
use tickwheel_queue::Body;

use super::{Step, World, violation};
use crate::database::RowState;
use crate::oracle::CallId;

/// The promise that each committed row becomes a task exactly once, or is refused with a reason.
pub(super) const INBOX: &str = "inbox";
/// The ledger knows rows as calls, with numbers of their own.
const ROWS_FROM: u64 = 1 << 50;

/// The action of a row.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum RowAct {
    /// Put a task: the number of its payload, and its due time (ms).
    Put(u64, i64),
    Cancel,
    /// The row was made by hand, and means nothing.
    Nonsense,
}

/// A row that a user writes.
#[derive(Clone, Debug)]
pub(super) struct UserRow {
    pub(super) shard: u32,
    pub(super) queue: String,
    pub(super) key: String,
    pub(super) act: RowAct,
    /// How long the transaction of the user lasts (ns), and whether it commits.
    pub(super) lasts_ns: u64,
    pub(super) commits: bool,
}

/// The rows that users wrote.
#[derive(Debug, Default)]
pub(super) struct Rows {
    all: Vec<Tracked>,
}

#[derive(Debug)]
struct Tracked {
    id: i64,
    row: UserRow,
    phase: Phase,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Phase {
    /// The transaction of the user is under way.
    Open,
    Waiting,
    /// The row has ended. Calls of the key that began before the end may still be answered as if they had come first, and the last of them
    /// is this one.
    Ending {
        was_refused: bool,
        behind: CallId,
    },
    Ended,
    /// The transaction did not commit.
    RolledBack,
}

impl Tracked {
    fn call(&self) -> CallId {
        CallId(ROWS_FROM + self.id.cast_unsigned())
    }

    fn place(&self) -> (String, String) {
        (self.row.queue.clone(), self.row.key.clone())
    }
}

impl Rows {
    /// The number of rows of a key that have not ended.
    pub(super) fn open_of(&self, queue: &str, key: &str) -> usize {
        let is_it = |one: &&Tracked| one.row.queue == queue && one.row.key == key;
        let rows = self.all.iter().filter(is_it);
        rows.filter(|one| !matches!(one.phase, Phase::Ended | Phase::RolledBack)).count()
    }

    pub(super) fn are_over(&self) -> bool {
        self.all.iter().all(|one| matches!(one.phase, Phase::Ended | Phase::RolledBack))
    }
}

impl World {
    /// Lets users write rows.
    pub(super) fn write_rows(&mut self) {
        while self.workload.is_row_due(self.now_ns) {
            let wall_ms = i64::try_from(self.database.wall_ns() / 1_000_000).expect("runs are short");
            let row = self.workload.row(self.now_ns, wall_ms);
            // The ledger tries all orders of what may still take effect, so a key has few rows at a time.
            if self.rows.open_of(&row.queue, &row.key) >= 2 {
                continue;
            }
            let Some(id) = self.database.put_row(row.shard, entry(&row, wall_ms), row.lasts_ns, row.commits)
            else {
                continue;
            };
            self.trace.event(format_args!("{} ns: row {id}: {row:?}", self.now_ns));
            self.seen.rows += 1;
            self.rows.all.push(Tracked { id, row, phase: Phase::Open });
        }
    }

    /// Looks what became of the rows.
    pub(super) fn look_at_rows(&mut self) -> Step {
        for index in 0..self.rows.all.len() {
            let one = &self.rows.all[index];
            let next = match one.phase {
                Phase::Ended | Phase::RolledBack => continue,
                Phase::Open | Phase::Waiting => match self.database.row(one.row.shard, one.id) {
                    RowState::Open => Phase::Open,
                    RowState::Waiting => Phase::Waiting,
                    RowState::Gone if one.phase == Phase::Open => Phase::RolledBack,
                    RowState::Gone if one.row.act == RowAct::Nonsense => {
                        return Err(violation(INBOX, format!("a row that means nothing was taken: {one:?}")));
                    }
                    RowState::Gone => Phase::Ending { was_refused: false, behind: CallId(self.last_call) },
                    RowState::Refused(why) => {
                        let is_right = match one.row.act {
                            RowAct::Put(..) => why.contains("a worker has the task"),
                            RowAct::Cancel => false,
                            RowAct::Nonsense => why.contains("the op is"),
                        };
                        if !is_right {
                            return Err(violation(INBOX, format!("{one:?} was refused: {why}")));
                        }
                        Phase::Ending { was_refused: true, behind: CallId(self.last_call) }
                    }
                },
                Phase::Ending { was_refused, behind } => {
                    if self.workload.waits_for(&one.place(), behind) {
                        continue;
                    }
                    self.ledger.row_ended(one.call(), &one.place(), was_refused)?;
                    Phase::Ended
                }
            };
            if next != one.phase {
                self.trace.event(format_args!("{} ns: row {} is {next:?}", self.now_ns, one.id));
                self.seen.rows_ended += u64::from(next == Phase::Ended);
                if one.phase == Phase::Open && next == Phase::Waiting {
                    self.ledger.row_came(one.call(), &one.place(), one.row.act);
                }
                self.rows.all[index].phase = next;
            }
        }
        Ok(())
    }

    /// A fail-over lost commits: rows that had ended may be back, and others are lost with the transactions of their users.
    pub(super) fn lose_rows(&mut self) {
        for one in &mut self.rows.all {
            let is_there = matches!(self.database.row(one.row.shard, one.id), RowState::Waiting);
            match one.phase {
                Phase::Open | Phase::RolledBack => {}
                Phase::Waiting if is_there => {}
                Phase::Waiting => {
                    self.ledger.row_lost(one.call());
                    one.phase = Phase::Ended;
                }
                Phase::Ending { .. } | Phase::Ended => {
                    if is_there {
                        self.ledger.row_came(one.call(), &one.place(), one.row.act);
                        one.phase = Phase::Waiting;
                    }
                }
            }
        }
    }
}

fn entry(row: &UserRow, wall_ms: i64) -> InboxEntry {
    let (op, payload, due_at) = match row.act {
        RowAct::Put(payload, due_ms) => (1, Some(payload.to_be_bytes().to_vec()), Some(due_ms)),
        RowAct::Cancel => (2, None, None),
        RowAct::Nonsense => (3, None, None),
    };
    InboxEntry {
        id: 0,
        op,
        queue: row.queue.clone(),
        key: row.key.clone(),
        due_at,
        payload_bytes: payload.as_ref().map_or(0, |payload| payload.len() as u64),
        content_type: payload.is_some().then(|| Body::bytes([]).content_type.to_string()),
        payload,
        put_at: wall_ms,
    }
}
