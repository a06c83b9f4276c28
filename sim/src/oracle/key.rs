//! All that is known about one key: its possible worlds, and the calls that are to be judged together.

use std::collections::BTreeSet;

use super::call::CallId;
use super::clock::Clock;
use super::world::{Broken, Down, Op, Phase, Task, World};

/// More worlds, or more calls in one knot, than this: give the key up instead of the run. A workload that meets it
/// leaves too many calls unsettled.
const WORLDS_MAX: usize = 4_096;
const KNOT_MAX: usize = 128;

/// One key.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) worlds: Vec<World>,
    /// Answered, and not judged yet because a call beside them is still open.
    pub(super) knot: Vec<Op>,
    /// Never answered, but they may take effect any time.
    pub(super) lost: Vec<Op>,
    /// Of these, the ones that have happened by now or never will.
    pub(super) settled: Vec<CallId>,
    pub(super) open: usize,
    /// When a call last began or ended on it.
    pub(super) touched: u64,
    pub(super) given_up: bool,
}

impl Key {
    /// A key that never had a task. `lost` leases may take what comes.
    pub(super) fn new(lost: Vec<Op>) -> Self {
        let worlds = vec![World::default()];
        Key { worlds, knot: vec![], lost, settled: vec![], open: 0, touched: 0, given_up: false }
    }

    /// Judges the knot, all calls of which have ended: some order of them, true to their intervals, with lost calls
    /// in between where they help, must explain every answer.
    pub(super) fn judge(&mut self, clock: &Clock) -> Result<(), Broken> {
        let knot = std::mem::take(&mut self.knot);
        self.given_up |= knot.len() > KNOT_MAX;
        let mut layer: Vec<(u128, World)> = self.worlds.drain(..).map(|world| (0, world)).collect();
        for _ in 0..knot.len() {
            let (mut next, mut seen, mut why) = (Vec::new(), BTreeSet::new(), None);
            for (done, world) in layer {
                let left = || knot.iter().enumerate().filter(move |(index, _)| done >> index & 1 == 0);
                // Nothing may go before a call that had ended when it began.
                let bound = left().map(|(_, op)| op.answered).min().unwrap_or(u64::MAX);
                for world in self.with_lost(vec![world], bound, clock) {
                    for (index, op) in left().filter(|(_, op)| op.called < bound) {
                        for step in world.step(op, clock) {
                            match step.map(|world| (done | 1 << index, world)) {
                                Ok(state) if seen.insert(state.clone()) => next.push(state),
                                Ok(_) => {}
                                Err(broken) => why = why.or(Some(broken)),
                            }
                        }
                    }
                }
                self.given_up |= next.len() > WORLDS_MAX;
                if self.given_up {
                    return Ok(());
                }
            }
            if let (true, Some(broken)) = (next.is_empty(), why) {
                return Err(broken);
            }
            layer = next;
        }
        let mut seen = BTreeSet::new();
        self.worlds =
            layer.into_iter().map(|(_, world)| world).filter(|world| seen.insert(world.clone())).collect();
        if !self.settled.is_empty() {
            self.settle(clock);
        }
        Ok(())
    }

    /// These calls have happened by now, or never will.
    fn settle(&mut self, clock: &Clock) {
        let settled = std::mem::take(&mut self.settled);
        let worlds = std::mem::take(&mut self.worlds);
        let worlds = self.with_lost(worlds, u64::MAX, clock);
        self.lost.retain(|op| !settled.contains(&op.id));
        let forget = |mut world: World| {
            world.used.retain(|(id, _)| !settled.contains(id));
            world
        };
        self.worlds = worlds.into_iter().map(forget).collect::<BTreeSet<_>>().into_iter().collect();
    }

    /// The server went down: what is lost happened before, or never.
    pub(super) fn restart(&mut self, down: Down, clock: &Clock) {
        let worlds = std::mem::take(&mut self.worlds);
        let worlds = self.with_lost(worlds, u64::MAX, clock);
        let expired: Vec<World> =
            worlds.iter().filter_map(|world| world.after_expiry(clock.now(), clock)).collect();
        let all = worlds.into_iter().chain(expired).flat_map(|world| world.restart(down, clock));
        self.worlds = all.collect::<BTreeSet<_>>().into_iter().collect();
        self.lost.clear();
        self.settled.clear();
    }

    /// Nothing happened here since `stamp`, and nothing can happen but a delivery.
    pub(super) fn quiet(&self, stamp: u64) -> bool {
        !self.given_up
            && self.open == 0
            && self.knot.is_empty()
            && self.lost.is_empty()
            && self.touched < stamp
    }

    /// The task, if there is only one possible.
    pub(super) fn certain(&self) -> Option<&Task> {
        let task = self.worlds.first()?.task.as_ref()?;
        self.worlds.iter().all(|world| world.task.as_ref() == Some(task)).then_some(task)
    }

    /// Bits of what a count may find: 1 nothing, 2 scheduled, 4 ready, 8 leased.
    pub(super) fn states(&self, clock: &Clock) -> u8 {
        self.worlds.iter().fold(0, |bits, world| {
            bits | match &world.task {
                None => 1,
                Some(Task { phase: Phase::Leased { .. }, .. }) => {
                    if world.after_expiry(clock.now(), clock).is_some() { 8 | 4 } else { 8 }
                }
                Some(task) => {
                    let scheduled =
                        if matches!(task.phase, Phase::Waiting { ready: Some(true), .. }) { 0 } else { 2 };
                    let ready = task.clone().become_ready(clock.now(), clock).map_or(0, |()| 4);
                    scheduled | ready
                }
            }
        })
    }

    /// Every world holds a task that should have been delivered, or taken back from its worker, by now.
    pub(super) fn overdue(&self, clock: &Clock) -> Option<&Task> {
        let (mono, wall) = clock.0[clock.now()];
        let late = |task: &Task| match task.phase {
            Phase::Waiting { ready, .. } => ready == Some(true) || task.due.1 <= wall,
            Phase::Leased { until, .. } => until < mono,
        };
        self.worlds
            .iter()
            .all(|world| world.task.as_ref().is_some_and(late))
            .then(|| self.worlds.first()?.task.as_ref())?
    }

    /// The worlds, and those in which lost calls that began before `bound` took effect too.
    fn with_lost(&mut self, mut worlds: Vec<World>, bound: u64, clock: &Clock) -> Vec<World> {
        let mut seen: BTreeSet<World> = worlds.iter().cloned().collect();
        let mut at = 0;
        while at < worlds.len() && !self.given_up {
            for op in self.lost.iter().filter(|op| op.called < bound) {
                if !worlds[at].used.contains(&(op.id, op.part)) {
                    let step = worlds[at].step(op, clock).into_iter().flatten();
                    worlds.extend(step.filter(|world| seen.insert(world.clone())));
                }
            }
            at += 1;
            self.given_up = worlds.len() > WORLDS_MAX;
        }
        worlds
    }
}
