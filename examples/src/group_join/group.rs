//! [`Group`]: the state and its waits.
//!
//! Ground rule: `state` is locked for moments, and never while the purgatory is called: it asks operations, and they lock it.

use std::fmt;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tickwheel::{Operation, Purgatory, SubmitError, Timer};

use super::state::{Beat, Joined, Phase, Plan, State, SyncError};

/// How long a group waits.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// For company, after the first member came to an empty group and after each delay in which another member came.
    pub initial_delay: Duration,
    /// For its members, in any one phase.
    pub rebalance: Duration,
}

/// A group. Clones are the same group.
#[derive(Clone)]
pub struct Group {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    rules: Rules,
    purgatory: Purgatory<Phase, Wait>,
    state: Mutex<State>,
}

/// The end of a phase.
struct Wait {
    group: Arc<Inner>,
    number: u64,
    kind: Kind,
}

enum Kind {
    /// For company; so much of the rebalance time is left.
    Company { left: Duration },
    /// For members to join again.
    Rejoin,
    /// For members to sync.
    Sync,
}

impl Operation for Wait {
    fn try_complete(&self) -> bool {
        let state = self.group.state();
        state.number != self.number
            || match self.kind {
                Kind::Company { .. } => false,
                Kind::Rejoin => state.members.values().all(|member| member.joining.is_some()),
                Kind::Sync => state.members.values().all(|member| member.synced),
            }
    }

    fn on_complete(&self) {
        self.group.end(self);
    }
}

impl Group {
    /// An empty group.
    #[must_use]
    pub fn new(timer: &Timer, rules: Rules) -> Self {
        let inner = Inner { rules, purgatory: Purgatory::new(timer), state: Mutex::new(State::empty()) };
        Self { inner: Arc::new(inner) }
    }

    /// A member wants to be in the next generation. The answer comes when the group has come together.
    pub fn join(&self, name: &str) -> Receiver<Joined> {
        let (sender, receiver) = channel();
        let Rules { initial_delay, rebalance } = self.inner.rules;
        let begin = {
            let mut state = self.inner.state();
            let is_new = !state.members.contains_key(name);
            state.members.entry(name.to_owned()).or_default().joining = Some(sender);
            match state.phase {
                Phase::Empty => {
                    let left = rebalance.saturating_sub(initial_delay);
                    Some((state.enter(Phase::Joining), Kind::Company { left }, initial_delay))
                }
                Phase::Joining => {
                    state.came |= is_new;
                    None
                }
                Phase::Syncing | Phase::Stable => Some((state.rejoin(), Kind::Rejoin, rebalance)),
            }
        };
        if let Some((number, kind, delay)) = begin {
            self.inner.wait(number, kind, delay);
        }
        // One member less is missing; and a sync that was waited for is over.
        self.inner.purgatory.check(&Phase::Joining);
        self.inner.purgatory.check(&Phase::Syncing);
        receiver
    }

    /// A member asks for its part of the plan, and the leader brings it. The answer comes with the plan.
    ///
    /// # Errors
    /// [`SyncError`], also as an answer, if the group is to come together again instead.
    pub fn sync(
        &self,
        name: &str,
        plan: Option<Plan>,
    ) -> Result<Receiver<Result<String, SyncError>>, SyncError> {
        let (sender, receiver) = channel();
        {
            let mut state = self.inner.state();
            if !matches!(state.phase, Phase::Syncing | Phase::Stable) {
                return Err(if state.members.contains_key(name) {
                    SyncError::Rebalance
                } else {
                    SyncError::Unknown
                });
            }
            if state.leader == name && state.plan.is_none() {
                state.plan = plan;
            }
            // A leader without a plan is still awaited.
            let synced = state.leader != name || state.plan.is_some();
            let member = state.members.get_mut(name).ok_or(SyncError::Unknown)?;
            member.synced = synced;
            member.syncing = Some(sender);
            state.hand_out();
        }
        self.inner.purgatory.check(&Phase::Syncing);
        Ok(receiver)
    }

    /// A member asks whether all is well.
    #[must_use]
    pub fn heartbeat(&self, name: &str) -> Beat {
        let state = self.inner.state();
        match state.phase {
            _ if !state.members.contains_key(name) => Beat::Unknown,
            Phase::Joining => Beat::Rebalance,
            Phase::Empty | Phase::Syncing | Phase::Stable => Beat::Fine,
        }
    }

    /// How many waits there are: one while a member is awaited, and otherwise none.
    #[must_use]
    pub fn waits(&self) -> usize {
        self.inner.purgatory.delayed()
    }
}

impl Inner {
    /// Waits for the end of a phase that has just begun.
    fn wait(self: &Arc<Self>, number: u64, kind: Kind, delay: Duration) {
        let key = if matches!(kind, Kind::Sync) { Phase::Syncing } else { Phase::Joining };
        let wait = Arc::new(Wait { group: Arc::clone(self), number, kind });
        if let Err(SubmitError { operation, .. }) = self.purgatory.submit(wait, [key], delay) {
            // No check would end the phase: it ends now, and in the end the group is empty.
            operation.on_complete();
        }
    }

    /// The wait is over: by time, or because no member is missing.
    fn end(self: &Arc<Self>, wait: &Wait) {
        let Rules { initial_delay, rebalance } = self.rules;
        let mut state = self.state();
        if state.number != wait.number {
            return;
        }
        let (number, kind, delay) = match wait.kind {
            Kind::Company { left } if state.came && !left.is_zero() => {
                let delay = initial_delay.min(left);
                (state.enter(Phase::Joining), Kind::Company { left: left - delay }, delay)
            }
            Kind::Company { .. } | Kind::Rejoin => {
                state.members.retain(|_, member| member.joining.is_some());
                let Some(number) = state.come_together() else { return };
                (number, Kind::Sync, rebalance)
            }
            Kind::Sync => {
                let all = state.members.len();
                state.members.retain(|_, member| member.synced);
                if state.members.len() == all {
                    state.enter(Phase::Stable);
                    return;
                }
                (state.rejoin(), Kind::Rejoin, rebalance)
            }
        };
        drop(state);
        self.wait(number, kind, delay);
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.inner.state();
        f.debug_struct("Group")
            .field("phase", &state.phase)
            .field("generation", &state.generation)
            .field("members", &state.members.len())
            .finish_non_exhaustive()
    }
}
