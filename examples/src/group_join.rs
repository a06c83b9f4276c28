//! A group of consumers that comes together, shares its work, and does so again when somebody joins or is missing: the join and
//! sync of Kafka's coordinator.
//!
//! | phase | who is awaited | how long | when time is up |
//! |---|---|---|---|
//! | empty | nobody | | |
//! | joining, from empty | whoever comes | the initial delay, and again while somebody came, at most the rebalance time in all | those who came are the group |
//! | joining, again | all members, to join again | the rebalance time | who did not is no member any more |
//! | syncing | the leader's plan, and everybody's question for it | the rebalance time | who is missing is no member any more, the others join again |
//! | stable | nobody | | |
//!
//! Each waiting phase is one operation in the purgatory, with the number of its phase: an operation that ends after its phase did
//! has nothing left to do. So no phase can be waited in without a timeout, nor ended twice.
//!
//! Ground rule: `state` is locked for moments, and never while the purgatory is called: it asks operations, and they lock it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tickwheel::{Operation, Purgatory, SubmitError, Timer};

/// How long a group waits.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// For company, after the first member came to an empty group and after each delay in which somebody else did.
    pub initial_delay: Duration,
    /// For its members, in any one phase.
    pub rebalance: Duration,
}

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
    /// It is no member.
    Unknown,
    /// Members are being awaited, or were missing.
    Rebalance,
}

/// What a member has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// Its work.
    Fine,
    /// Join again.
    Rebalance,
    /// Join as a new member.
    Unknown,
}

/// A group. Clones are the same group.
#[derive(Clone)]
pub struct Group {
    inner: Arc<Inner>,
}

struct Inner {
    rules: Rules,
    purgatory: Purgatory<Phase, Wait>,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Empty,
    Joining,
    Syncing,
    Stable,
}

struct State {
    phase: Phase,
    /// Counts the phases, so that a wait knows its own.
    number: u64,
    generation: u32,
    /// Whether somebody came in this part of the initial delay.
    came: bool,
    plan: Option<Plan>,
    leader: String,
    members: BTreeMap<String, Member>,
}

/// Who asks is answered by its sender. One who asks twice is answered the second time.
#[derive(Default)]
struct Member {
    joining: Option<Sender<Joined>>,
    synced: bool,
    syncing: Option<Sender<Result<String, SyncError>>>,
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
        let state = State {
            phase: Phase::Empty,
            number: 0,
            generation: 0,
            came: false,
            plan: None,
            leader: String::new(),
            members: BTreeMap::new(),
        };
        let inner = Inner { rules, purgatory: Purgatory::new(timer), state: Mutex::new(state) };
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
        // Somebody less is missing; and a sync that was waited for is over.
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
}

impl Inner {
    /// Waits for the end of a phase that has just begun.
    fn wait(self: &Arc<Self>, number: u64, kind: Kind, delay: Duration) {
        let key = if matches!(kind, Kind::Sync) { Phase::Syncing } else { Phase::Joining };
        let wait = Arc::new(Wait { group: Arc::clone(self), number, kind });
        if let Err(SubmitError { operation, .. }) = self.purgatory.submit(wait, [key], delay) {
            // Nobody would end the phase: it ends now, and in the end the group is empty.
            operation.on_complete();
        }
    }

    /// The wait is over: by time, or because nobody is missing.
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Another phase begins. Returns its number.
    fn enter(&mut self, phase: Phase) -> u64 {
        self.phase = phase;
        self.number += 1;
        self.came = false;
        self.number
    }

    /// Everybody has to join again. Who waits for the plan is told so.
    fn rejoin(&mut self) -> u64 {
        for member in self.members.values_mut() {
            member.synced = false;
            if let Some(sender) = member.syncing.take() {
                answer(&sender, Err(SyncError::Rebalance));
            }
        }
        self.enter(Phase::Joining)
    }

    /// Those who have joined are the group. Returns the number of the phase in which they are awaited; `None` if there are none.
    fn come_together(&mut self) -> Option<u64> {
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
    fn hand_out(&mut self) {
        let Some(plan) = &self.plan else { return };
        for (name, member) in &mut self.members {
            if let Some(sender) = member.syncing.take() {
                answer(&sender, Ok(plan.get(name).cloned().unwrap_or_default()));
            }
        }
    }
}

/// Whoever has gone does not need it.
fn answer<T>(sender: &Sender<T>, answer: T) {
    let _ = sender.send(answer);
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

#[cfg(test)]
mod tests {
    use tickwheel::{Job, ManualClock};

    use super::*;
    use crate::story::pass;

    const RULES: Rules = Rules { initial_delay: s(3), rebalance: s(10) };

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn world() -> (ManualClock, Timer, Group) {
        let clock = ManualClock::new();
        let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build().expect("a timer");
        let group = Group::new(&timer, RULES);
        (clock, timer, group)
    }

    /// A group of a, b and c that has just come together; a leads.
    fn three() -> (ManualClock, Timer, Group) {
        let (clock, timer, group) = world();
        let joins = ["a", "b", "c"].map(|name| group.join(name));
        pass(&clock, s(6));
        let members = ["a", "b", "c"].map(str::to_owned).to_vec();
        let expected = Joined { generation: 1, leader: "a".to_owned(), members };
        for join in joins {
            assert_eq!(join.try_iter().collect::<Vec<_>>(), std::slice::from_ref(&expected));
        }
        (clock, timer, group)
    }

    fn plan() -> Option<Plan> {
        let part = |name: &str| (name.to_owned(), format!("work of {name}"));
        Some(Plan::from(["a", "b", "c"].map(part)))
    }

    fn beats(group: &Group) -> [Beat; 3] {
        ["a", "b", "c"].map(|name| group.heartbeat(name))
    }

    #[test]
    fn g24_the_first_member_waits_for_company_and_no_longer() {
        let (clock, timer, group) = world();
        let join = group.join("a");
        clock.advance(s(3) / 2);
        assert_eq!(join.try_iter().count(), 0, "at half of the initial delay");
        clock.advance(s(3) / 2 - Duration::from_millis(1));
        assert_eq!(join.try_iter().count(), 0, "just before its end");
        clock.advance(Duration::from_millis(1));
        assert_eq!(join.try_iter().count(), 1);
        assert_eq!(timer.pending(), 1, "the sync is awaited now");
    }

    #[test]
    fn g24_company_extends_the_wait_up_to_the_rebalance_time() {
        // It looks at 3, 6, 9 and, at the latest, at 10: did somebody come since the last look?
        let comers: [(&[u64], u64); 7] = [
            (&[], 3),
            (&[1], 6),
            (&[4], 3),
            (&[1, 2], 6),
            (&[1, 4], 9),
            (&[1, 4, 7], 10),
            (&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 10),
        ];
        for (seconds, end) in comers {
            let (clock, _timer, group) = world();
            let first = group.join("first");
            let answered = (0..12).find(|second| {
                if seconds.contains(second) {
                    drop(group.join(&format!("of second {second}")));
                }
                clock.advance(s(1));
                first.try_recv().is_ok()
            });
            assert_eq!(answered, Some(end - 1), "when they come at {seconds:?}");
        }
    }

    #[test]
    fn g24_who_asks_again_is_no_company_and_is_answered_the_second_time() {
        let (clock, _timer, group) = world();
        let first = group.join("a");
        clock.advance(s(2));
        let second = group.join("a");
        clock.advance(s(1));
        assert!(first.try_recv().is_err());
        assert_eq!(second.try_recv().map(|joined| joined.members.len()), Ok(1));
    }

    #[test]
    fn g25_members_who_do_not_sync_are_fine_for_a_while_and_then_unknown() {
        let (clock, timer, group) = three();
        pass(&clock, s(5));
        assert_eq!(beats(&group), [Beat::Fine; 3]);
        pass(&clock, s(5));
        assert_eq!(beats(&group), [Beat::Unknown; 3]);
        assert_eq!(timer.pending(), 0, "the group is empty");
        assert_eq!(group.sync("a", plan()).err(), Some(SyncError::Unknown));
    }

    #[test]
    fn g25_if_only_the_leader_syncs_the_others_go_and_it_joins_again() {
        let (clock, _timer, group) = three();
        let part = group.sync("a", plan()).expect("it is a member");
        assert_eq!(part.try_recv(), Ok(Ok("work of a".to_owned())));
        pass(&clock, s(10));
        assert_eq!(beats(&group), [Beat::Rebalance, Beat::Unknown, Beat::Unknown]);
        assert_eq!(group.sync("a", None).err(), Some(SyncError::Rebalance));
        let again = group.join("a").try_recv().expect("it waits for nobody");
        assert_eq!((again.generation, again.members), (2, vec!["a".to_owned()]));
    }

    #[test]
    fn g25_if_only_the_leader_is_missing_it_goes_and_the_others_join_again() {
        for leader_asks in [false, true] {
            let (clock, _timer, group) = three();
            let parts = ["b", "c"].map(|name| group.sync(name, None).expect("it is a member"));
            // A leader that asks and brings no plan is as good as missing.
            let asked = leader_asks.then(|| group.sync("a", None).expect("it is a member"));
            pass(&clock, s(10));
            assert_eq!(beats(&group), [Beat::Unknown, Beat::Rebalance, Beat::Rebalance]);
            for part in parts {
                assert_eq!(part.try_recv(), Ok(Err(SyncError::Rebalance)));
            }
            assert!(asked.is_none_or(|asked| asked.try_recv().is_err()));
            let (b, c) = (group.join("b"), group.join("c"));
            assert_eq!(b.try_recv().map(|joined| joined.leader), Ok("b".to_owned()));
            assert!(c.try_recv().is_ok());
        }
    }

    #[test]
    fn a_group_that_has_its_plan_waits_for_nothing() {
        let (clock, timer, group) = three();
        let parts = [("a", plan()), ("b", None), ("c", None)]
            .map(|(name, plan)| group.sync(name, plan).expect("it is a member"));
        for (part, name) in parts.iter().zip(["a", "b", "c"]) {
            assert_eq!(part.try_recv(), Ok(Ok(format!("work of {name}"))));
        }
        assert_eq!((timer.pending(), group.inner.purgatory.delayed()), (0, 0));
        pass(&clock, s(100));
        assert_eq!(beats(&group), [Beat::Fine; 3]);

        // Another one comes: all join again, and who does not is out.
        let joins = ["d", "b", "c"].map(|name| group.join(name));
        assert_eq!(beats(&group), [Beat::Rebalance; 3]);
        pass(&clock, s(10));
        assert_eq!(beats(&group), [Beat::Unknown, Beat::Fine, Beat::Fine]);
        for join in joins {
            assert_eq!(join.try_recv().map(|joined| joined.leader), Ok("b".to_owned()));
        }
        // The plan of the generation before is not theirs.
        let part = group.sync("c", None).expect("it is a member");
        assert!(part.try_recv().is_err());
        drop(group.sync("b", Some(Plan::from([("c".to_owned(), "other work".to_owned())]))));
        assert_eq!(part.try_recv(), Ok(Ok("other work".to_owned())));
    }

    /// Whatever members do: a group that waits has one timeout, one that does not has none, and silence ends every wait.
    #[test]
    fn g26_every_phase_that_waits_has_a_timeout() {
        // Numbers that look drawn and are the same in each run: Knuth's generator, its high bits.
        let mut seed = 26_u64;
        let mut below = |end: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % end
        };
        let mut waits = [0; 4];
        for _ in 0..300 {
            let (clock, timer, group) = world();
            for _ in 0..below(40) {
                let name = ["a", "b", "c", "d"][usize::try_from(below(4)).expect("small")];
                match below(4) {
                    0 => drop(group.join(name)),
                    1 => drop(group.sync(name, None)),
                    2 => drop(group.sync(name, plan())),
                    _ => drop(clock.advance(Duration::from_millis(below(4_000)))),
                }
                let phase = group.inner.state().phase;
                let expected = usize::from(matches!(phase, Phase::Joining | Phase::Syncing));
                assert_eq!(
                    (timer.pending(), group.inner.purgatory.delayed()),
                    (expected, expected),
                    "{group:?}"
                );
                waits[phase as usize] += 1;
            }
            for _ in 0..4 {
                clock.advance(RULES.rebalance);
            }
            let state = group.inner.state();
            assert!(matches!(state.phase, Phase::Empty | Phase::Stable), "{:?}", state.phase);
            assert_eq!(timer.pending(), 0);
            let unanswered = |member: &Member| member.joining.is_some() || member.syncing.is_some();
            assert!(!state.members.values().any(unanswered));
        }
        assert!(waits.iter().all(|&seen| seen > 50), "each phase was there: {waits:?}");
    }

    #[test]
    fn a_group_whose_timer_is_gone_is_soon_empty() {
        let (_clock, timer, group) = world();
        let join = group.join("a");
        drop(timer.shutdown());
        assert!(join.try_recv().is_ok(), "it was alone");
        assert_eq!(group.heartbeat("a"), Beat::Unknown);
        assert_eq!(group.join("b").try_recv().map(|joined| joined.members), Ok(vec!["b".to_owned()]));
        assert_eq!(group.heartbeat("b"), Beat::Unknown);
    }
}
