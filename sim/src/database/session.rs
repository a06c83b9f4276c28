//! [`SimSession`]: one session with the database, and the faults on its way.

use tickwheel_postgres::database::{
    Acquire, Acquisition, Claim, Doubt, Failure, Heartbeat, InboxPage, NodeEntry, Read, ReadResult, Refusal,
    Resolution, Rollup, Session, ShardBatch,
};

use super::fault::Wrong;
use super::tables::{Done, Lock, Write};
use super::{COUNTED_MAX, SimDatabase, State};

/// The longest wait for a lock (ns).
const LOCK_TIMEOUT_NS: u64 = 1_000_000_000;
/// The time after which a client gives up a session that is cut off, and the time between two looks (ns).
const CUT_TIMEOUT_NS: u64 = 5_000_000_000;
const CUT_LOOK_NS: u64 = 250_000_000;

/// A session with a [`SimDatabase`].
#[derive(Debug)]
pub struct SimSession {
    database: SimDatabase,
    id: u64,
}

impl SimSession {
    pub(super) fn new(database: SimDatabase, id: u64) -> Self {
        Self { database, id }
    }

    fn gone<T>(&self, why: &str) -> Result<T, Failure> {
        self.database.lock().sessions.remove(&self.id);
        Err(Failure::Gone { why: why.to_owned() })
    }

    /// Lets a message go its way.
    fn travel(&self) -> Result<(), Failure> {
        let way_ns = self.database.lock().way_ns();
        self.database.pass(way_ns);
        let mut cut_ns = 0;
        while self.database.lock().cut.contains(&self.database.place) {
            if cut_ns >= CUT_TIMEOUT_NS {
                return self.gone("the database does not answer");
            }
            cut_ns += CUT_LOOK_NS;
            self.database.pass(CUT_LOOK_NS);
        }
        if !self.database.lock().sessions.contains_key(&self.id) {
            return self.gone("the session has ended");
        }
        Ok(())
    }

    /// Lets an answer go its way.
    fn answer(&self) -> Result<(), Failure> {
        let slow_ns = self.database.lock().slow_ns();
        self.database.pass(slow_ns);
        self.travel()
    }

    fn request(&self) -> Result<(), Failure> {
        {
            let mut state = self.database.lock();
            let permille = state.faults.die_permille;
            if state.happens(permille) {
                state.met.deaths += 1;
                state.sessions.remove(&self.id);
            }
        }
        self.travel()
    }

    /// Waits until no other transaction has one of the locks.
    fn wait_for(&self, locks: &[Lock], since_ns: u64) -> Result<(), Failure> {
        loop {
            let (wait_ns, is_over) = {
                let mut state = self.database.lock();
                state.settle();
                if !state.sessions.contains_key(&self.id) {
                    drop(state);
                    return self.gone("the session was ended");
                }
                let Some(until_ns) = state.locked_until(locks) else { return Ok(()) };
                state.met.waits += 1;
                let timeout_ns = since_ns + LOCK_TIMEOUT_NS;
                (until_ns.min(timeout_ns).saturating_sub(state.now_ns), state.now_ns >= timeout_ns)
            };
            if is_over {
                self.database.lock().met.refused += 1;
                let why = "canceling statement due to lock timeout".to_owned();
                return Err(Failure::Refused { why, again: true });
            }
            self.database.pass(wait_ns);
        }
    }

    fn refuses(state: &mut State) -> bool {
        let faults = state.faults;
        if state.happens(faults.refuse_permille) {
            let outage_ns = state.rng.below(faults.outage_ns.max(1));
            state.refuses_until_ns = state.refuses_until_ns.max(state.now_ns + outage_ns);
        }
        state.met.refused += u64::from(state.now_ns < state.refuses_until_ns);
        state.now_ns < state.refuses_until_ns
    }

    /// Carries out a transaction.
    fn write(&self, write: &Write) -> Result<Done, Failure> {
        self.request()?;
        let since_ns = self.database.now_ns();
        let is_careless = self.database.lock().wrong == Wrong::ResolveWithoutLock;
        if let Write::Resolve(doubt) = write
            && is_careless
            && let Some(resolution) = self.resolve_carelessly(doubt)
        {
            self.answer()?;
            return Ok(Done::Resolved(resolution));
        }
        self.wait_for(&write.locks(), since_ns)?;
        let (no, done, commit_ns) = {
            let mut state = self.database.lock();
            if Self::refuses(&mut state) {
                let why = "could not extend file: no space left on device".to_owned();
                return Err(Failure::Refused { why, again: true });
            }
            let Some((_, incarnation)) = state.sessions.get(&self.id).cloned() else {
                drop(state);
                return self.gone("the session was ended");
            };
            let (no, done) = state.begin(&incarnation, write)?;
            let faults = state.faults;
            if state.happens(faults.lost_permille) {
                let wrong = state.wrong;
                let outcome = state.lose(no, self.id);
                drop(state);
                let is_commit = matches!(write, Write::Commit(_));
                let claims = match wrong {
                    Wrong::UnknownIsDone => true,
                    Wrong::RollbackIsDone => outcome == Some(false),
                    _ => false,
                };
                if is_commit && claims {
                    return Ok(done);
                }
                let way_ns = self.database.lock().way_ns();
                self.database.pass(way_ns);
                return self.gone("the connection was reset");
            }
            let commit_ns = state.way_ns();
            let ends_ns = state.now_ns + commit_ns;
            if let Some(open) = state.open.get_mut(&no) {
                open.ends_ns = ends_ns;
            }
            let ends_ns = state.open.get(&no).map_or(ends_ns, |open| state.end_of(open));
            (no, done, ends_ns - state.now_ns)
        };
        let mut wait_ns = commit_ns;
        let committed = loop {
            self.database.pass(wait_ns);
            let mut state = self.database.lock();
            state.settle();
            match state.open.get(&no).map(|open| state.end_of(open)) {
                Some(ends_ns) => wait_ns = ends_ns - state.now_ns,
                None => break state.ended.remove(&no),
            }
        };
        if committed != Some(true) {
            return self.gone("the session was ended while it committed");
        }
        self.count(&done);
        self.answer()?;
        Ok(done)
    }

    fn count(&self, done: &Done) {
        let met = &mut self.database.lock().met;
        match done {
            Done::Resolved(resolution) => {
                let kind = match resolution {
                    Resolution::Done { .. } => 0,
                    Resolution::Absent => 1,
                    Resolution::Moved => 2,
                    Resolution::Lost => 3,
                };
                met.resolved[kind] += 1;
            }
            Done::Acquisition(Acquisition::Acquired(_)) => met.taken += 1,
            Done::RolledUp => met.rollups += 1,
            Done::Ended(true) => met.ended += 1,
            Done::Joined
            | Done::Heartbeat(_)
            | Done::Ended(false)
            | Done::Committed(_)
            | Done::Acquisition(Acquisition::Held(_) | Acquisition::TooSoon | Acquisition::Outdated)
            | Done::Released => {}
            Done::Moved(claims) => met.rows_refused += claims.len() as u64,
        }
    }

    /// Reads the outcome of a batch. A right statement would wait for the transaction that holds the shard, and for the standby.
    fn resolve_carelessly(&self, doubt: &Doubt) -> Option<Resolution> {
        let mut state = self.database.lock();
        state.settle();
        let done = state.tables.clone().carry_out(
            &Write::Resolve(*doubt),
            (state.failover, state.clock_ns()),
            state.wrong,
        );
        match done {
            Ok(Done::Resolved(Resolution::Done { last })) => Some(Resolution::Done { last: last - 1 }),
            Ok(Done::Resolved(resolution)) => Some(resolution),
            _ => None,
        }
    }
}

impl State {
    /// The client of a transaction leaves. Returns whether the transaction took effect; `None`: it is still under way.
    fn lose(&mut self, no: u64, session: u64) -> Option<bool> {
        self.sessions.remove(&session);
        let (kind, commits) = (self.rng.below(3), self.rng.chance(50));
        let goes_on_ns = self.rng.below(self.faults.orphan_ns.max(1));
        let is_shown_early = self.rng.chance(50);
        let outcome = match kind {
            0 => Some(true),
            1 => Some(false),
            _ => None,
        };
        if let Some(open) = self.open.get_mut(&no) {
            open.is_watched = false;
            open.commits = outcome.unwrap_or(commits);
            if outcome.is_none() {
                open.ends_ns = self.now_ns + goes_on_ns;
            }
        }
        self.met.lost_done += u64::from(outcome == Some(true));
        self.met.lost_undone += u64::from(outcome == Some(false));
        self.met.orphans += u64::from(outcome.is_none());
        if outcome.is_none() && is_shown_early && commits {
            // The client learns nothing, as with every other orphan.
            self.show_early(no, self.now_ns + goes_on_ns);
        }
        self.settle();
        outcome
    }
}

impl Session for SimSession {
    fn join(&mut self, node: &NodeEntry) -> Result<(), Failure> {
        self.write(&Write::Join(node.clone())).map(|_| ())
    }

    fn heartbeat(&mut self, incarnation: &str) -> Result<Heartbeat, Failure> {
        let Done::Heartbeat(wall_ns) = self.write(&Write::Heartbeat(incarnation.to_owned()))? else {
            unreachable!("a beat is answered as one")
        };
        let state = self.database.lock();
        let nodes = state.tables.nodes.iter().filter(|(name, row)| !row.ended && *name != incarnation);
        let others = nodes.map(|(name, row)| (name.clone(), row.beat)).collect();
        Ok(Heartbeat { wall_ns, adopted: false, failover: state.failover, others })
    }

    fn end(&mut self, incarnation: &str, beat: i64) -> Result<bool, Failure> {
        let late_ns = {
            let mut state = self.database.lock();
            let longest_ns = state.faults.late_end_ns;
            if longest_ns > 0 && state.rng.chance(50) { state.rng.below(longest_ns) } else { 0 }
        };
        self.database.pass(late_ns);
        let end = Write::End { incarnation: incarnation.to_owned(), beat };
        let Done::Ended(has_ended) = self.write(&end)? else { unreachable!("an end is answered as one") };
        if has_ended {
            let mut state = self.database.lock();
            for session in state.sessions_where(|(_, of)| of == incarnation) {
                state.sessions.remove(&session);
            }
            state.end_open(|open| open.incarnation == incarnation);
        }
        Ok(has_ended)
    }

    fn inbox(&mut self, owned: &[Claim], max: usize, but: &[i64]) -> Result<Vec<InboxPage>, Failure> {
        self.request()?;
        let pages = {
            let mut state = self.database.lock();
            state.settle();
            state.read_inbox(owned, max, but)
        };
        self.answer()?;
        Ok(pages)
    }

    fn refuse(&mut self, refusals: &[Refusal]) -> Result<(), Failure> {
        self.write(&Write::Refuse(refusals.to_vec())).map(drop)
    }

    fn leave(&mut self, incarnation: &str) -> Result<(), Failure> {
        self.write(&Write::Leave(incarnation.to_owned())).map(drop)
    }

    fn commit(&mut self, batches: &[&ShardBatch]) -> Result<Vec<u32>, Failure> {
        let write = Write::Commit(batches.iter().copied().cloned().collect());
        let Done::Committed(took_part) = self.write(&write)? else {
            unreachable!("a commit is answered as one")
        };
        self.database.lock().met.dropped += (batches.len() - took_part.len()) as u64;
        Ok(took_part)
    }

    fn resolve(&mut self, doubt: &Doubt) -> Result<Resolution, Failure> {
        let Done::Resolved(resolution) = self.write(&Write::Resolve(*doubt))? else {
            unreachable!("a doubt is answered as one")
        };
        Ok(resolution)
    }

    fn acquire(&mut self, wanted: &Acquire) -> Result<Acquisition, Failure> {
        let Done::Acquisition(taken) = self.write(&Write::Acquire(wanted.clone()))? else {
            unreachable!("a taking is answered as one")
        };
        Ok(taken)
    }

    fn release(&mut self, claim: Claim) -> Result<(), Failure> {
        self.write(&Write::Release(claim)).map(|_| ())
    }

    fn roll_up(&mut self, rollup: &Rollup) -> Result<(), Failure> {
        self.write(&Write::Rollup(rollup.clone())).map(|_| ())
    }

    fn read(&mut self, shard: u32, read: &Read) -> Result<ReadResult, Failure> {
        self.request()?;
        let seen = {
            let mut state = self.database.lock();
            state.settle();
            let rows = state.tables.shards.get(&shard).cloned();
            rows.map(|rows| rows.read(read, COUNTED_MAX))
        };
        self.answer()?;
        seen.ok_or_else(|| Failure::Refused { why: format!("there is no shard {shard}"), again: false })
    }
}
