//! Everything that the oracle knows of one key: its possible worlds, and the calls that are to be judged together.

use std::collections::BTreeSet;
use std::mem::take;

use super::call::CallId;
use super::clock::Clock;
use super::task::{Lease, Task};
use super::world::{Broken, Down, Op, World};

/// The oracle gives up a key, but not the run, if the key has more worlds than this or a knot has more calls than
/// `KNOT_MAX`. A workload that reaches one of these limits leaves too many calls unsettled.
const WORLDS_MAX: usize = 4_096;
const KNOT_MAX: usize = 128;
/// The number of refused calls that are remembered.
const REFUSED_MAX: usize = 8;

/// A fault of the server. If no correct history explains the counts of an answer, the oracle tries these faults. The first one that
/// explains the counts names the broken promise.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Excuse {
    /// No fault.
    None,
    /// Leases end by the wall clock.
    LeaseByWall,
    /// A task is ready at an instant that its owner has replaced.
    OldInstant,
    /// A task is ready before its time.
    Early,
}

/// The knowledge of the oracle about one key.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) worlds: Vec<World>,
    /// The knot: answered calls that are not judged yet, because another call that may concern the key is still open.
    pub(super) knot: Vec<Op>,
    /// Calls that got no answer and may still take effect.
    pub(super) lost: Vec<Op>,
    /// Lost calls that took effect before now, or never will.
    pub(super) settled: BTreeSet<CallId>,
    pub(super) open: usize,
    /// The latest calls that were refused: a refused call must change nothing.
    refused: Vec<Op>,
    pub(super) given_up: bool,
}

impl Key {
    /// A key that never had a task. A lost lease may still take a task that the key gets later.
    pub(super) fn new(lost: Vec<Op>, settled: BTreeSet<CallId>) -> Self {
        let worlds = vec![World::default()];
        Key { worlds, knot: vec![], lost, settled, open: 0, refused: vec![], given_up: false }
    }

    /// A call on this key was refused.
    pub(super) fn refuse(&mut self, op: Op) {
        if self.refused.len() == REFUSED_MAX {
            self.refused.remove(0);
        }
        self.refused.push(op);
    }

    /// Judges the knot, as [`judge_knot`](Self::judge_knot) does. If no order of its calls explains the answers, this
    /// tries whether the effect of a refused call explains them.
    pub(super) fn judge(&mut self, clock: &Clock) -> Result<(), Broken> {
        let before = (!self.refused.is_empty() && !self.knot.is_empty()).then(|| self.clone());
        let broken = match (self.judge_knot(clock), before) {
            (Err(broken), Some(mut other)) => {
                other.lost.append(&mut other.refused);
                match other.judge_knot(clock) {
                    Ok(()) => ("P8", format!("a refused call left a trace: {}", broken.1)),
                    Err(_) => broken,
                }
            }
            (judged, _) => return judged,
        };
        Err(broken)
    }

    /// Judges the knot, unless a call on the key is still open. One order of its calls must explain every answer: a
    /// call that ended before another one began comes first, and lost calls may have taken effect in between.
    fn judge_knot(&mut self, clock: &Clock) -> Result<(), Broken> {
        if self.open > 0 || self.knot.is_empty() && self.settled.is_empty() {
            return Ok(());
        }
        let knot = take(&mut self.knot);
        self.given_up |= knot.len() > KNOT_MAX;
        let mut layer: Vec<(u128, World)> =
            take(&mut self.worlds).into_iter().map(|world| (0, world)).collect();
        for _ in 0..knot.len() {
            let (mut next, mut seen, mut why) = (Vec::new(), BTreeSet::new(), None);
            for (done, world) in layer {
                let left = || knot.iter().enumerate().filter(|(at, _)| done >> at & 1 == 0);
                // A call that ended before another one began comes before it.
                let bound = left().map(|(_, op)| op.answered).min().unwrap_or(u64::MAX);
                for world in self.with_lost(vec![world], bound, clock) {
                    for (at, op) in left().filter(|(_, op)| op.called < bound) {
                        for step in world.step(op, clock) {
                            match step.map(|world| (done | 1 << at, world)) {
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
                // The first error is the best one to report, because it comes from the order of the answers.
                return Err(broken);
            }
            layer = next;
        }
        self.merge(layer.into_iter().map(|(_, world)| world));
        self.settle(clock);
        Ok(())
    }

    /// The server went down: each lost call took effect before that, or never will.
    pub(super) fn restart(&mut self, down: Down, clock: &Clock) {
        self.settled.extend(self.lost.iter().map(|op| op.id.0));
        self.settle(clock);
        let worlds = take(&mut self.worlds);
        let worlds: Vec<World> = worlds.iter().flat_map(|world| world.in_time(clock.now(), clock)).collect();
        self.merge(worlds.into_iter().flat_map(|world| world.restart(down, clock)));
    }

    /// Whether every call on this key is judged, so that only time can change its task. A check of a lease or a count
    /// needs this, because it runs before the other calls of the moment are judged.
    pub(super) fn quiet(&self) -> bool {
        !self.given_up && self.open == 0 && self.knot.is_empty() && self.lost.is_empty()
    }

    /// The task of a quiet key, if only one is possible.
    pub(super) fn certain(&self, clock: &Clock) -> Option<&Task> {
        let task = self.worlds.first().filter(|_| self.quiet())?.task.as_ref()?;
        let is_it = |world: &World| {
            world.task.as_ref() == Some(task) && world.after_death(clock.now(), clock).is_none()
        };
        self.worlds.iter().all(is_it).then_some(task)
    }

    /// Whether its task may be leased by a call that named the task by its id.
    pub(super) fn may_be_taken_by_id(&self) -> bool {
        self.worlds.iter().filter_map(|world| world.task.as_ref()).any(Task::is_taken_by_id)
    }

    /// The states that a count may find, as bits: 1 nothing, 2 scheduled, 4 ready, 8 leased.
    pub(super) fn states(&self, clock: &Clock, excuse: Excuse) -> u8 {
        let states = |world: &World| match &world.task {
            None => 1,
            Some(task) if task.leased => {
                let by_wall = excuse == Excuse::LeaseByWall && task.ended_by_wall(clock.now(), clock);
                if by_wall { 8 | 4 } else { 8 }
            }
            Some(task) => {
                let ready = match (task.clone().become_ready(clock.now(), clock), excuse) {
                    (Ok(()), _) | (_, Excuse::Early) => 4,
                    (Err(("P5", _)), Excuse::OldInstant) => 4,
                    (Err(_), _) => 0,
                };
                ready | if task.ready == Some(true) { 0 } else { 2 }
            }
        };
        let worlds = self.worlds.iter().flat_map(|world| world.in_time(clock.now(), clock));
        worlds.fold(0, |bits, world| bits | states(&world))
    }

    /// The smallest or the largest number of dead tasks of this key that a count may find.
    pub(super) fn graves(&self, clock: &Clock, most: bool) -> usize {
        let latest = |world: &World| world.in_time(clock.now(), clock).iter().map(World::graves).max();
        let of = self.worlds.iter().map(|world| match most {
            true => latest(world).unwrap_or(0),
            false => world.graves(),
        });
        let found = if most { of.max() } else { of.min() };
        found.unwrap_or(0)
    }

    /// The task of this key, if it certainly falls due before the server wakes at `wall_ms` (`None`: the server has no wake-up).
    pub(super) fn overslept(&self, wall_ms: Option<i64>, clock: &Clock) -> Option<&Task> {
        let task = self.certain(clock).filter(|task| task.waits_for_certain(clock))?;
        wall_ms.is_none_or(|wake| wake > task.due.1).then_some(task)
    }

    /// Whether the task of this key is certainly leased now, and its lease has to end before the server wakes at `mono_ms` (`None`: the server has
    /// no wake-up).
    pub(super) fn outlasts(&self, mono_ms: Option<u64>, clock: &Clock) -> bool {
        let lease = self.certain(clock).filter(|task| task.leased).and_then(|task| task.lease.as_ref());
        let goes_on = |world: &World| world.after_expiry(clock.now(), clock).is_none();
        let is_late = |lease: &Lease| mono_ms.map_or(lease.latest < u64::MAX, |wake| wake > lease.latest);
        lease.is_some_and(is_late) && self.worlds.iter().all(goes_on)
    }

    /// Whether the key certainly has a task that is ready or due now.
    pub(super) fn must_be_ready(&self, clock: &Clock) -> bool {
        let wall = clock.surely_due(clock.now(), clock.now());
        let is_ready = |task: &Task| !task.leased && (task.ready == Some(true) || task.due.1 <= wall);
        self.certain(clock).is_some_and(is_ready)
    }

    /// Whether the task of this key, held by no worker, had certainly expired before `op` took effect.
    pub(super) fn had_expired(&self, op: &Op, clock: &Clock) -> bool {
        let low = clock.surely_due(op.from, op.to);
        let over = |world: &World| {
            let task = world.task.as_ref().filter(|task| !task.leased);
            task.and_then(|task| task.expires).is_some_and(|(_, last)| last <= low)
        };
        self.quiet() && self.worlds.iter().all(over)
    }

    /// Whether the key has a task that is due between these instants, both included. The first answer: certainly; the second: possibly.
    pub(super) fn due_within(&self, low: i64, high: i64, clock: &Clock) -> (bool, bool) {
        if !self.quiet() {
            return (false, true);
        }
        let due = |world: &World| world.task.as_ref().map(|task| task.due);
        let may = |world: &World| due(world).is_some_and(|(first, last)| first <= high && low <= last);
        // The answer is not certain if time alone may have made the task dead: its last allowed lease ran out, or it expired.
        let must = |world: &World| {
            due(world).is_some_and(|(first, last)| low <= first && last <= high)
                && world.in_time(clock.now(), clock).len() == 1
        };
        (self.worlds.iter().all(must), self.worlds.iter().any(may))
    }

    /// The task of this key, if in every world it should have been delivered before now, or its lease should have run out.
    pub(super) fn overdue(&self, clock: &Clock) -> Option<&Task> {
        let wall = clock.surely_due(clock.now(), clock.now());
        let late = |world: &World| match &world.task {
            Some(task) if task.leased => world.after_expiry(clock.now(), clock).is_some(),
            Some(task) => task.ready == Some(true) || task.due.1 <= wall,
            None => false,
        };
        self.worlds.iter().all(late).then(|| self.worlds.first()?.task.as_ref())?
    }

    /// Ends the doubt about the settled calls: each has taken effect in the worlds that used it, and takes no effect in the others.
    fn settle(&mut self, clock: &Clock) {
        let settled = take(&mut self.settled);
        if !settled.is_empty() {
            let worlds = take(&mut self.worlds);
            let worlds = self.with_lost(worlds, u64::MAX, clock);
            self.lost.retain(|op| !settled.contains(&op.id.0));
            self.merge(worlds.into_iter().map(|mut world| {
                world.used.retain(|(id, _)| !settled.contains(id));
                world
            }));
        }
    }

    fn merge(&mut self, worlds: impl Iterator<Item = World>) {
        self.worlds = worlds.collect::<BTreeSet<_>>().into_iter().collect();
    }

    /// These worlds, and the worlds that result if lost calls that began before `bound` took effect, too.
    fn with_lost(&mut self, mut worlds: Vec<World>, bound: u64, clock: &Clock) -> Vec<World> {
        let mut seen: BTreeSet<World> = worlds.iter().cloned().collect();
        let mut at = 0;
        while at < worlds.len() && !self.given_up {
            for op in self.lost.iter().filter(|op| op.called < bound) {
                if !worlds[at].used.contains(&op.id) {
                    let next = worlds[at].step(op, clock).into_iter().flatten();
                    worlds.extend(next.filter(|world| seen.insert(world.clone())));
                }
            }
            at += 1;
            self.given_up = worlds.len() > WORLDS_MAX;
        }
        worlds
    }
}
