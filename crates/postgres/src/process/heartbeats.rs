//! [`Heartbeats`]: keeps the incarnation of this process alive, and ends those that send no more heartbeats.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tickwheel_engine::Validity;

use crate::database::{ConnectFailure, Database, Failure, NodeEntry, Session};
use crate::process::clock::ClockAnswer;
use crate::process::node::Node;

/// The time before the next try, while the database does not answer.
const AGAIN: Duration = Duration::from_millis(200);

/// Sends the heartbeats of this process, on a session of its own.
#[derive(Debug)]
pub struct Heartbeats<D: Database> {
    database: Arc<D>,
    node: Arc<Node>,
    /// The entry of the process. Each incarnation has a name of its own.
    entry: NodeEntry,
    session: Option<D::Session>,
    /// When the last heartbeat was sent (boot-time clock, ns).
    sent_ns: u64,
    /// The heartbeats of the others, and since when each was seen (boot-time clock, ns).
    others: BTreeMap<String, (i64, u64)>,
    failover: Option<i64>,
    /// Whether the clock of the database has to begin anew, because the database has failed over.
    is_clock_over: bool,
}

impl<D: Database> Heartbeats<D> {
    /// Returns the heartbeats of a process without an incarnation.
    #[must_use]
    pub fn new(database: Arc<D>, node: Arc<Node>, entry: NodeEntry) -> Self {
        Self {
            database,
            node,
            entry,
            session: None,
            sent_ns: 0,
            others: BTreeMap::new(),
            failover: None,
            is_clock_over: false,
        }
    }

    /// Sends one heartbeat. Begins an incarnation before, if there is none; `name` makes a random name for it. Returns the time until the next
    /// call.
    ///
    /// # Errors
    /// The database refuses this process. A later call may succeed.
    pub fn turn(&mut self, name: impl FnOnce() -> String) -> Result<Duration, String> {
        match self.heartbeat(name) {
            Ok(()) => {
                self.node.set_trouble("beat", None);
                // The validity counts from the sending, so a slow answer takes nothing from the next heartbeat.
                let passed_ns = self.node.now_ns().saturating_sub(self.sent_ns);
                Ok(Duration::from_nanos(self.node.lease_term().interval_ns().saturating_sub(passed_ns)))
            }
            Err(Trouble::Refused(why)) => {
                self.session = None;
                self.node.set_trouble("beat", Some(&why));
                Err(why)
            }
            Err(Trouble::Later(why)) => {
                self.session = None;
                self.node.set_trouble("beat", Some(&why));
                let interval = Duration::from_nanos(self.node.lease_term().interval_ns());
                Ok(AGAIN.min(interval))
            }
        }
    }

    fn heartbeat(&mut self, name: impl FnOnce() -> String) -> Result<(), Trouble> {
        let incarnation = match self.node.incarnation() {
            Some(incarnation) => incarnation,
            None => self.join(name())?,
        };
        let mut session = match self.session.take() {
            Some(session) => session,
            None => self.database.connect(&incarnation)?,
        };
        let was_valid = self.node.validity(&incarnation) == Validity::Valid;
        let sent_ns = self.node.now_ns();
        self.sent_ns = sent_ns;
        let beat = session.heartbeat(&incarnation)?;
        let arrived_ns = self.node.now_ns();
        let before = self.failover.replace(beat.failover);
        let has_failed_over = before.is_some_and(|before| before != beat.failover);
        if before != Some(beat.failover) {
            let is_unbroken = has_failed_over && !self.node.lease_term().was_perhaps_ended(arrived_ns);
            let unbroken = Some(incarnation.clone()).filter(|_| is_unbroken);
            self.node.begin_failover(beat.failover, arrived_ns, unbroken);
        }
        if has_failed_over {
            // A heartbeat that stood still before a fail-over, and stands still after it, was perhaps lost in between.
            self.others.clear();
            self.is_clock_over = true;
        }
        let answer = beat.wall_ns.map(|wall_ns| ClockAnswer { wall_ns, sent_ns, arrived_ns });
        if let Some(answer) = answer
            && std::mem::take(&mut self.is_clock_over)
        {
            self.node.clock().begin(answer);
        }
        if has_failed_over {
            // The database may have lost the acquisitions of this process. So each shard is taken anew.
            let _unanswered = session.leave(&incarnation);
            self.node.lease_term().end();
            self.node.wake_all();
            return Err(Trouble::Later("the database has failed over".to_owned()));
        }
        let Some(answer) = answer else {
            // Another process has ended this incarnation, and may have its shards. The next call begins a new one.
            self.node.lease_term().end();
            let why = if beat.adopted {
                self.node.count_adoption();
                "`tickwheel cluster adopt` has taken the shards from this process"
            } else {
                "another process has taken over, because this one did not beat for a lease"
            };
            self.node.wake_all();
            return Err(Trouble::Later(why.to_owned()));
        };
        self.node.clock().note(answer);
        self.node.lease_term().answered(sent_ns);
        if !was_valid {
            self.node.wake_all();
        }
        self.watch(&mut session, beat.others, arrived_ns)?;
        self.session = Some(session);
        Ok(())
    }

    /// Ends the incarnation, so that another process can take the shards at once. Without an answer of the database, the incarnation ends
    /// once its heartbeat stood still for a lease.
    pub fn leave(&mut self) {
        let Some(incarnation) = self.node.incarnation() else { return };
        // First, this process stops to answer.
        self.node.lease_term().end();
        if let Some(mut session) = self.session.take() {
            let _unanswered = session.leave(&incarnation);
        }
    }

    fn join(&mut self, incarnation: String) -> Result<String, Trouble> {
        if incarnation.is_empty() {
            return Err(Trouble::Later("the operating system has no random bytes for a name".to_owned()));
        }
        self.entry.incarnation.clone_from(&incarnation);
        let mut session = self.database.connect(&incarnation)?;
        session.join(&self.entry)?;
        self.session = Some(session);
        self.node.lease_term().begin(incarnation.clone());
        Ok(incarnation)
    }

    /// Ends each incarnation whose heartbeat stood still for a whole lease.
    fn watch(
        &mut self,
        session: &mut D::Session,
        others: Vec<(String, i64)>,
        now_ns: u64,
    ) -> Result<(), Trouble> {
        let lease_ns = self.node.lease_term().lease_ns();
        self.others.retain(|name, _| others.iter().any(|(other, _)| other == name));
        let mut alive = Vec::new();
        for (name, beat) in others {
            let (seen, since_ns) = self.others.entry(name.clone()).or_insert((beat, now_ns));
            if *seen != beat {
                (*seen, *since_ns) = (beat, now_ns);
            }
            if now_ns.saturating_sub(*since_ns) < lease_ns {
                alive.push(name);
            } else if session.end(&name, beat)? {
                self.others.remove(&name);
            }
        }
        self.node.set_alive(alive);
        Ok(())
    }
}

enum Trouble {
    Refused(String),
    Later(String),
}

impl From<ConnectFailure> for Trouble {
    fn from(failure: ConnectFailure) -> Self {
        match failure {
            ConnectFailure::Unreachable(why) => Self::Later(why),
            ConnectFailure::Refused(why) => Self::Refused(why),
        }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused { why, .. } | Failure::Gone { why } => Self::Later(why),
        }
    }
}
