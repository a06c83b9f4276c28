//! [`State`]: who is in the group and what is awaited. It knows no time.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

/// A member is in the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// How often the group has come together.
    pub generation: u32,
    /// Who makes the plan.
    pub leader: String,
    /// Everybody, in order.
    pub members: Vec<String>,
}

/// Who does what, by member.
pub type Plan = BTreeMap<String, String>;

/// The group is to come together again: join, and sync after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncError {
    /// The caller is no member.
    Unknown,
    /// Members are being awaited, or were missing.
    Rebalance,
}

/// The next step of a member, which a heartbeat is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// Its work.
    Fine,
    /// Join again.
    Rebalance,
    /// Join as a new member.
    Unknown,
}

/// The phase of the group; see the table of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Empty,
    Joining,
    Syncing,
    Stable,
}

pub(super) struct State {
    pub(super) phase: Phase,
    /// Counts the phases, so that a wait knows its own.
    pub(super) number: u64,
    pub(super) generation: u32,
    /// Whether a member came in this part of the initial delay.
    pub(super) came: bool,
    pub(super) plan: Option<Plan>,
    pub(super) leader: String,
    pub(super) members: BTreeMap<String, Member>,
}

/// Who asks is answered by its sender. One who asks twice is answered the second time.
#[derive(Default)]
pub(super) struct Member {
    pub(super) joining: Option<Sender<Joined>>,
    pub(super) synced: bool,
    pub(super) syncing: Option<Sender<Result<String, SyncError>>>,
}

impl State {
    pub(super) fn empty() -> Self {
        Self {
            phase: Phase::Empty,
            number: 0,
            generation: 0,
            came: false,
            plan: None,
            leader: String::new(),
            members: BTreeMap::new(),
        }
    }

    /// Another phase begins. Returns its number.
    pub(super) fn enter(&mut self, phase: Phase) -> u64 {
        self.phase = phase;
        self.number += 1;
        self.came = false;
        self.number
    }

    /// Everybody has to join again. Who waits for the plan is told so.
    pub(super) fn rejoin(&mut self) -> u64 {
        for member in self.members.values_mut() {
            member.synced = false;
            if let Some(sender) = member.syncing.take() {
                answer(&sender, Err(SyncError::Rebalance));
            }
        }
        self.enter(Phase::Joining)
    }

    /// The members who have joined are the group. Returns the number of the phase in which they are awaited; `None` if there are none.
    pub(super) fn come_together(&mut self) -> Option<u64> {
        self.plan = None;
        if self.members.is_empty() {
            self.enter(Phase::Empty);
            return None;
        }
        self.generation += 1;
        if !self.members.contains_key(&self.leader) {
            self.leader = self.members.keys().next().cloned().unwrap_or_default();
        }
        let members = self.members.keys().cloned().collect();
        let joined = Joined { generation: self.generation, leader: self.leader.clone(), members };
        for member in self.members.values_mut() {
            if let Some(sender) = member.joining.take() {
                answer(&sender, joined.clone());
            }
        }
        Some(self.enter(Phase::Syncing))
    }

    /// Once there is a plan, everybody who asked gets its part.
    pub(super) fn hand_out(&mut self) {
        let Some(plan) = &self.plan else { return };
        for (name, member) in &mut self.members {
            if let Some(sender) = member.syncing.take() {
                answer(&sender, Ok(plan.get(name).cloned().unwrap_or_default()));
            }
        }
    }
}

/// A caller that has gone does not need the answer.
fn answer<T>(sender: &Sender<T>, answer: T) {
    let _ = sender.send(answer);
}
