//! [`SimDatabase`]: a database in memory, with the faults of a real one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard};

use tickwheel_postgres::database::{ConnectFailure, Database, Failure};

mod fault;
mod inbox;
mod reads;
mod session;
mod tables;

pub use self::fault::{Faults, Wrong};
use self::inbox::Change;
pub use self::inbox::RowState;
pub use self::session::SimSession;
use self::tables::{Done, Lock, NodeRow, ShardRows, Tables, Write};
use crate::fibers;
use crate::rng::Rng;

/// The number of commits that a fail-over may lose.
const LOST_MAX: usize = 12;
/// How many due times one answer counts at most.
const COUNTED_MAX: usize = 16_384;

/// A database that one place, such as a machine, reaches. All places of one database share its state.
///
/// # Transactions
/// A transaction locks its rows, carries out its statements, and ends some time later: it commits or not. Until then other transactions that
/// want one of its rows wait, and reads do not see it. The client may have left long before. So the outcome of a commit whose answer was lost
/// is known only to one who waits for the lock.
///
/// # Time
/// A call that takes time lets the fiber sleep. Outside of a fiber, the call moves the clock of the database itself.
#[derive(Clone, Debug)]
pub struct SimDatabase {
    state: Arc<Mutex<State>>,
    place: usize,
}

/// The number of situations that a run met.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Met {
    /// Transactions that committed.
    pub commits: u64,
    /// Answers that were lost although the transaction had taken effect.
    pub lost_done: u64,
    /// Answers that were lost, and the transaction took no effect.
    pub lost_undone: u64,
    /// Transactions that went on without their client.
    pub orphans: u64,
    /// Transactions that waited for a lock.
    pub waits: u64,
    /// Answers that took 0.5 to 5 s.
    pub slow: u64,
    /// Transactions that were refused.
    pub refused: u64,
    /// Sessions that died.
    pub deaths: u64,
    /// Batches whose outcome was found out: they were there, absent, of an owner before, or lost.
    pub resolved: [u64; 4],
    /// Shards that were taken.
    pub taken: u64,
    /// Batches that dropped out of a commit.
    pub dropped: u64,
    /// Standbys that were promoted.
    pub fail_overs: u64,
    /// Commits that a fail-over lost.
    pub lost_commits: u64,
    /// Commits that were visible, and that a fail-over lost before the standby had them.
    pub lost_unreplicated: u64,
    /// Folds.
    pub rollups: u64,
    /// Incarnations that another one ended.
    pub ended: u64,
    /// Rows of the inbox that were refused.
    pub rows_refused: u64,
}

/// A transaction that committed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The instant (simulated, ns).
    pub at_ns: u64,
    /// The timeline.
    pub failover: i64,
    /// The statements, in short.
    pub text: String,
}

#[derive(Debug)]
struct State {
    now_ns: u64,
    /// The clock of the database less `now_ns` (ns since the Unix epoch).
    wall_ns: i128,
    failover: i64,
    tables: Tables,
    /// The tables before each of the last commits, if replication is asynchronous.
    past: VecDeque<Tables>,
    /// Until when the standby lacks what stands here (ns), and the tables that it has.
    unreplicated: Option<(u64, Tables)>,
    open: BTreeMap<u64, Open>,
    /// Whether a transaction committed whose client waits.
    ended: BTreeMap<u64, bool>,
    /// The sessions, each with its place and its incarnation.
    sessions: BTreeMap<u64, (usize, String)>,
    /// The number of the last session or transaction, and the id of the last row of the inbox.
    last: u64,
    last_row: i64,
    /// The last row of the inbox that each owner has read: its shard and its epoch.
    cursors: BTreeMap<(u32, i64), i64>,
    rng: Rng,
    faults: Faults,
    wrong: Wrong,
    /// Until when no session can be made, and until when transactions are refused.
    down_until_ns: u64,
    refuses_until_ns: u64,
    /// Places that do not reach the database.
    cut: BTreeSet<usize>,
    /// The first batch that stands in the wrong place.
    disorder: Option<String>,
    journal: Vec<Entry>,
    met: Met,
}

/// A transaction that has locks.
#[derive(Debug)]
struct Open {
    locks: Vec<Lock>,
    incarnation: String,
    ends_ns: u64,
    commits: bool,
    /// Whether a client waits for the outcome.
    is_watched: bool,
    text: String,
    /// The rows that the transaction changed.
    nodes: Vec<(String, NodeRow)>,
    shards: Vec<(u32, Arc<ShardRows>)>,
    inbox: Vec<Change>,
}

impl SimDatabase {
    /// Makes a database with shards 0 to `shards` - 1, without faults. `wall_ms`: its clock at the start (ms).
    #[must_use]
    pub fn new(seed: u64, shards: u32, secret: [u8; 16], wall_ms: i64) -> Self {
        let mut tables = Tables::default();
        for shard in 0..shards {
            tables.shards.insert(shard, Arc::new(ShardRows::new(secret, 1)));
        }
        let state = State {
            now_ns: 0,
            wall_ns: i128::from(wall_ms) * 1_000_000,
            failover: 1,
            tables,
            past: VecDeque::new(),
            unreplicated: None,
            open: BTreeMap::new(),
            ended: BTreeMap::new(),
            sessions: BTreeMap::new(),
            last: 0,
            last_row: 0,
            cursors: BTreeMap::new(),
            rng: Rng::new(seed),
            faults: Faults::default(),
            wrong: Wrong::Nothing,
            down_until_ns: 0,
            refuses_until_ns: 0,
            cut: BTreeSet::new(),
            disorder: None,
            journal: Vec::new(),
            met: Met::default(),
        };
        Self { state: Arc::new(Mutex::new(state)), place: 0 }
    }

    /// The same database, as another place reaches it.
    #[must_use]
    pub fn at(&self, place: usize) -> Self {
        Self { state: Arc::clone(&self.state), place }
    }

    /// Sets which faults happen from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    /// Makes a statement wrong from now on.
    pub fn set_wrong(&self, wrong: Wrong) {
        self.lock().wrong = wrong;
    }

    /// Returns the simulated time (ns).
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.lock().now_ns
    }

    /// Lets time pass until this instant (simulated, ns).
    pub fn set_now(&self, now_ns: u64) {
        let mut state = self.lock();
        state.now_ns = state.now_ns.max(now_ns);
        state.settle();
    }

    /// Returns the clock of the database (ns since the Unix epoch).
    #[must_use]
    pub fn wall_ns(&self) -> i128 {
        self.lock().clock_ns()
    }

    /// Sets the clock of the database forward or, below 0, back (ms).
    pub fn step_clock(&self, by_ms: i64) {
        self.lock().wall_ns += i128::from(by_ms) * 1_000_000;
    }

    /// Cuts a place off, or connects it again.
    pub fn cut(&self, place: usize, is_cut: bool) {
        let mut state = self.lock();
        if is_cut {
            state.cut.insert(place)
        } else {
            state.cut.remove(&place)
        };
    }

    /// Ends all sessions of a place, as the end of its process does. Transactions that are under way may still commit.
    pub fn end_sessions(&self, place: usize) {
        let mut state = self.lock();
        let ended: Vec<u64> = state.sessions_where(|(of, _)| *of == place);
        for session in ended {
            state.sessions.remove(&session);
            state.met.deaths += 1;
        }
    }

    /// Promotes a standby. All sessions end. If replication is asynchronous, up to `lost` of the last commits are lost. For the time `down_ns`
    /// no session can be made. Returns how many commits were lost.
    pub fn fail_over(&self, lost: usize, down_ns: u64) -> usize {
        let mut state = self.lock();
        state.settle();
        if let Some((_, tables)) = state.unreplicated.take() {
            // Other transactions that are under way stand behind those that the standby lacks.
            state.met.lost_unreplicated += 1;
            state.open.clear();
            state.tables = tables;
        }
        state.end_open(|_| true);
        state.sessions.clear();
        state.failover += 1;
        state.met.fail_overs += 1;
        state.down_until_ns = state.now_ns + down_ns;
        let lost = lost.min(state.past.len());
        let kept = state.past.len() - lost;
        if lost > 0
            && let Some(tables) = state.past.get(kept).cloned()
        {
            state.tables = tables;
            state.past.truncate(kept);
            state.met.lost_commits += lost as u64;
        }
        lost
    }

    /// Returns the epoch of a shard and the incarnation that owns it, as committed.
    ///
    /// # Panics
    /// If there is no such shard.
    #[must_use]
    pub fn owner(&self, shard: u32) -> (i64, Option<String>) {
        let state = self.lock();
        let rows = &state.tables.shards[&shard];
        (rows.epoch, rows.owner.clone())
    }

    /// Returns the records of all tasks of a shard with their bodies, as committed, in the order of their ids.
    ///
    /// # Panics
    /// If there is no such shard.
    #[must_use]
    pub fn tasks(&self, shard: u32) -> Vec<(Vec<u8>, Vec<u8>)> {
        let state = self.lock();
        state.tables.shards[&shard].tasks.values().map(|row| (row.record.clone(), row.body.clone())).collect()
    }

    /// Returns the latest due time of all tasks (ms since the Unix epoch), as committed; 0: there are none.
    #[must_use]
    pub fn latest_due_ms(&self) -> i64 {
        let state = self.lock();
        let rows = state.tables.shards.values().flat_map(|shard| shard.tasks.values());
        rows.map(|row| row.due_at).max().unwrap_or(0)
    }

    /// Returns the first task of a shard, for people.
    #[must_use]
    pub fn first_task(&self, shard: u32) -> Option<String> {
        let state = self.lock();
        state.tables.shards[&shard]
            .tasks
            .iter()
            .next()
            .map(|(id, row)| format!("shard {shard}, task {id}, {row:?}"))
    }

    /// Returns the first batch that followed a missing one, or that was committed under the epoch of a former owner, or the first taking of a shard
    /// beside an owner of other shards.
    #[must_use]
    pub fn disorder(&self) -> Option<String> {
        self.lock().disorder.clone()
    }

    /// Returns all transactions that committed, in their order. Those that a fail-over lost are in it.
    #[must_use]
    pub fn journal(&self) -> Vec<Entry> {
        self.lock().journal.clone()
    }

    /// Returns the situations that were met.
    #[must_use]
    pub fn met(&self) -> Met {
        self.lock().met
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the database")
    }

    /// Lets time pass during a call.
    fn pass(&self, ns: u64) {
        if ns > 0 && !fibers::sleep(ns) {
            let mut state = self.lock();
            state.now_ns += ns;
            state.settle();
        }
    }
}

impl Database for SimDatabase {
    type Session = SimSession;

    fn connect(&self, incarnation: &str) -> Result<SimSession, ConnectFailure> {
        let way_ns = self.lock().way_ns();
        self.pass(way_ns);
        let mut state = self.lock();
        let faults = state.faults;
        if state.happens(faults.connect_permille) {
            let outage_ns = state.rng.below(faults.outage_ns.max(1));
            state.down_until_ns = state.down_until_ns.max(state.now_ns + outage_ns);
        }
        if state.now_ns < state.down_until_ns || state.cut.contains(&self.place) {
            return Err(ConnectFailure::Unreachable("the database does not answer".to_owned()));
        }
        let id = state.next();
        state.sessions.insert(id, (self.place, incarnation.to_owned()));
        drop(state);
        Ok(SimSession::new(self.clone(), id))
    }
}

impl State {
    fn clock_ns(&self) -> i128 {
        self.wall_ns + i128::from(self.now_ns)
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn happens(&mut self, permille: u64) -> bool {
        permille > 0 && self.rng.below(1_000) < permille
    }

    /// Draws how long a request or an answer is on its way (ns).
    fn way_ns(&mut self) -> u64 {
        let Faults { lag_ns, stall_permille, stall_ns, .. } = self.faults;
        let longest = if self.happens(stall_permille) { stall_ns } else { lag_ns };
        if longest == 0 { 0 } else { self.rng.below(longest) + 1 }
    }

    /// Draws how much longer an answer takes (ns).
    fn slow_ns(&mut self) -> u64 {
        let slow_ns = self.faults.slow_ns(&mut self.rng);
        self.met.slow += u64::from(slow_ns.is_some());
        slow_ns.unwrap_or(0)
    }

    fn sessions_where(&self, wants: impl Fn(&(usize, String)) -> bool) -> Vec<u64> {
        self.sessions.iter().filter(|(_, session)| wants(session)).map(|(id, _)| *id).collect()
    }

    /// Ends the transactions whose time is over, in the order of their ends.
    fn settle(&mut self) {
        let now_ns = self.now_ns;
        self.unreplicated.take_if(|(until_ns, _)| *until_ns <= now_ns);
        loop {
            let ends = self.open.iter().map(|(no, open)| (self.end_of(open), *no));
            match ends.min() {
                Some((at_ns, no)) if at_ns <= self.now_ns => self.end_transaction(no, at_ns),
                _ => return,
            }
        }
    }

    /// Returns when a transaction ends: not before the standby has those that came before.
    fn end_of(&self, open: &Open) -> u64 {
        self.unreplicated.as_ref().map_or(open.ends_ns, |(until_ns, _)| open.ends_ns.max(*until_ns))
    }

    /// The backend of a transaction is terminated while the commit waits for its standby: the commit is visible from now on, and the standby
    /// gets it later.
    fn show_early(&mut self, no: u64, until_ns: u64) {
        if self.unreplicated.is_none() && !self.faults.asynchronous {
            let before = self.tables.clone();
            self.end_transaction(no, self.now_ns);
            self.unreplicated = Some((until_ns, before));
        }
    }

    /// Ends the transactions that `wants` names, now. Each commits or not.
    fn end_open(&mut self, wants: impl Fn(&Open) -> bool) {
        let ending: Vec<u64> = self.open.iter().filter(|(_, open)| wants(open)).map(|(no, _)| *no).collect();
        for no in ending {
            let commits = self.rng.chance(50);
            if let Some(open) = self.open.get_mut(&no) {
                open.commits &= commits;
                // The client does not learn the outcome.
                open.is_watched = false;
            }
            self.end_transaction(no, self.now_ns);
        }
    }

    fn end_transaction(&mut self, no: u64, at_ns: u64) {
        let Some(open) = self.open.remove(&no) else { return };
        if open.commits {
            if self.faults.asynchronous {
                self.past.push_back(self.tables.clone());
                if self.past.len() > LOST_MAX {
                    self.past.pop_front();
                }
            }
            for (shard, rows) in &open.shards {
                let found = rows.disorder().map(|what| format!("shard {shard}: {what}, after {}", open.text));
                self.disorder = self.disorder.take().or(found);
            }
            self.tables.nodes.extend(open.nodes);
            self.tables.shards.extend(open.shards);
            self.disorder = self.disorder.take().or(self.tables.shared(&open.text));
            open.inbox.into_iter().for_each(|change| self.tables.inbox.apply(change));
            self.met.commits += 1;
            self.journal.push(Entry { at_ns, failover: self.failover, text: open.text });
        }
        if open.is_watched {
            self.ended.insert(no, open.commits);
        }
    }

    /// Returns until when another transaction has one of these locks (ns).
    fn locked_until(&self, locks: &[Lock]) -> Option<u64> {
        let blocking = self.open.values().filter(|open| open.locks.iter().any(|lock| locks.contains(lock)));
        blocking.map(|open| self.end_of(open)).max()
    }

    /// Carries out the statements of a transaction, and returns its number and its answer. It has its locks until it ends.
    ///
    /// # Errors
    /// The error of the database.
    fn begin(&mut self, incarnation: &str, write: &Write) -> Result<(u64, Done), Failure> {
        let mut after = self.tables.clone();
        let done = after.carry_out(write, (self.failover, self.clock_ns()), self.wrong).map_err(|why| {
            self.met.refused += 1;
            Failure::Refused { why, again: false }
        })?;
        let locks = write.locks();
        let (mut nodes, mut shards) = (Vec::new(), Vec::new());
        for lock in &locks {
            match lock {
                Lock::Node(name) => {
                    nodes.extend(after.nodes.get(name).map(|row| (name.clone(), row.clone())));
                }
                Lock::Shard(shard) => {
                    shards.extend(after.shards.get(shard).map(|rows| (*shard, Arc::clone(rows))));
                }
                Lock::Acquisitions => {}
            }
        }
        let no = self.next();
        let mut text = format!("{incarnation}: ");
        let _always = match write {
            Write::Commit(batches) => batches.iter().try_for_each(|batch| {
                let (claim, no) = (batch.claim, batch.no);
                let ids: Vec<i64> = batch.puts.iter().map(|put| put.id).collect();
                let ends = &batch.ends;
                write!(text, "commit {claim:?} no {no} seq {} puts {ids:?} ends {ends:?}; ", batch.seq)
            }),
            Write::Join(entry) => write!(text, "join {}", entry.name),
            other => write!(text, "{other:?}"),
        };
        let open = Open {
            locks,
            incarnation: incarnation.to_owned(),
            ends_ns: self.now_ns,
            commits: true,
            is_watched: true,
            text,
            nodes,
            shards,
            inbox: write.inbox_changes(&done),
        };
        self.open.insert(no, open);
        Ok((no, done))
    }
}
