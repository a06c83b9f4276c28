//! Limits of queues: no more tasks are in flight than the settings allow, and no task that they allow is kept back.

use std::collections::{BTreeMap, BTreeSet};

use super::call::{Answer, CallId, Delivery, Pause, group_of};
use super::clock::{Clock, Moment};
use super::key::{Excuse, Key};
use super::world::Op;
use super::{Oracle, Verdict};

/// A pause, and the moments between which it was set.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Hold {
    pub(super) pause: Pause,
    pub(super) from: Moment,
    pub(super) to: Moment,
}

impl Hold {
    /// Whether no delivery is allowed from `op.from` to `op.to`. If the wall clock has shown the end of the pause since
    /// it was set, the server may have forgotten the pause, even if the clock was set back later.
    fn holds(&self, op: &Op, clock: &Clock) -> bool {
        let ms = match self.pause {
            Pause::Off => return false,
            Pause::On => return true,
            Pause::For(ms) => ms,
        };
        let (low, high) = clock.walls(self.from, op.to);
        high < low.saturating_add_unsigned(ms)
    }

    /// Whether the pause may keep a task from delivery at some moment from `op.from` to `op.to`.
    fn may_hold(&self, op: &Op, clock: &Clock) -> bool {
        let ms = match self.pause {
            Pause::Off => return false,
            Pause::On => return true,
            Pause::For(ms) => ms,
        };
        let last = clock.walls(self.from, self.to).1.saturating_add_unsigned(ms).saturating_add(1);
        clock.surely_due(op.from, op.to) <= last
    }
}

impl Oracle {
    /// Checks that nothing was delivered during a pause, and not more than the rate and the in-flight limits allow.
    pub(super) fn within_limits(&self, op: &Op, found: &[Delivery]) -> Verdict {
        let Some(first) = found.first() else { return Ok(()) };
        let (name, queue) = (&op.call.queue, &self.queues[&op.call.queue]);
        let broken = |what| Err(self.broken(name, Some(&first.key), ("limits", what)));
        if queue.paused.since(op.called).all(|hold| hold.holds(op, &self.clock)) {
            return broken(format!("handed out while the queue was paused: {found:?}"));
        }
        queue.handed.within_rate(op, &queue.limits, &self.clock).or_else(broken)?;
        // If another wide call, such as a lease, was open during this one, the number in flight is unknown: no check.
        if !queue.wide.is_empty() || queue.wide_closed[0] >= op.called {
            return Ok(());
        }
        let here: BTreeSet<&String> = found.iter().map(|one| &one.key).collect();
        let others = queue.keys.iter().filter(|(key, book)| {
            let bound = !here.contains(key) && book.quiet() && !book.may_be_taken_by_id();
            bound && book.states(&self.clock, Excuse::None) == 8
        });
        let others: Vec<_> = others.collect();
        let in_flight = found.len() + others.len();
        let most = queue.limits.since(op.called).map(|limits| limits.in_flight.unwrap_or(usize::MAX)).max();
        if most.is_some_and(|most| in_flight > most) {
            let held: Vec<_> = others.iter().map(|(key, _)| key).collect();
            return broken(format!("{in_flight} in flight, {most:?} allowed: {held:?} and {found:?}"));
        }
        let most = queue.limits.since(op.called).map(|limits| limits.per_group.unwrap_or(usize::MAX)).max();
        let others = others.iter().filter_map(|(_, book)| book.certain(&self.clock)).map(|task| task.payload);
        // A group may have more tasks in flight than a limit that was set later, but then it may get no further task.
        // So only groups that got a task here are checked.
        let given: BTreeSet<u64> = found.iter().filter_map(|one| group_of(one.payload)).collect();
        let mut groups: BTreeMap<u64, usize> = BTreeMap::new();
        let all = found.iter().map(|one| one.payload).chain(others).filter_map(group_of);
        for group in all.filter(|group| given.contains(group)) {
            *groups.entry(group).or_default() += 1;
        }
        match groups.iter().find(|(_, count)| most.is_some_and(|most| **count > most)) {
            Some((group, count)) => {
                broken(format!("{count} of group {group} in flight, {most:?} allowed: {found:?}"))
            }
            None => Ok(()),
        }
    }

    /// Checks that no expired task was delivered, unless the disk had no space to write the expiry down.
    pub(super) fn in_its_time(&self, op: &Op, found: &[Delivery]) -> Verdict {
        let queue = &self.queues[&op.call.queue];
        let late = found
            .iter()
            .find(|one| queue.keys.get(&one.key).is_some_and(|book| book.had_expired(op, &self.clock)));
        match late.filter(|_| !self.lacks_room) {
            None => Ok(()),
            Some(one) => {
                let what = format!("handed out after it had expired: {one:?}");
                Err(self.broken(&op.call.queue, Some(&one.key), ("limits", what)))
            }
        }
    }

    /// A task was added, or a dead task is live again: checks that the queue was not drained during the whole call.
    pub(super) fn may_be_live(&self, op: &Op, key: &str) -> Verdict {
        let (name, queue) = (&op.call.queue, &self.queues[&op.call.queue]);
        match queue.drained.since(op.called).all(|drained| drained) {
            true => {
                let what = "a task became live while the queue was drained".to_owned();
                Err(self.broken(name, Some(key), ("limits", what)))
            }
            false => Ok(()),
        }
    }

    /// A task was added: checks that the queue was not drained during the whole call, and had not reached its largest backlog.
    pub(super) fn may_be_added(&self, op: &Op, key: &str) -> Verdict {
        self.may_be_live(op, key)?;
        let (name, queue) = (&op.call.queue, &self.queues[&op.call.queue]);
        let broken = |what| Err(self.broken(name, Some(key), ("limits", what)));
        let most = queue.limits.since(op.called).map(|limits| limits.max_backlog.unwrap_or(usize::MAX)).max();
        // If another call was open at the same time, the order of both is unknown: no check.
        let others = || queue.keys.iter().filter(|(other, _)| *other != key).map(|(_, book)| book);
        if !op.alone || !queue.wide.is_empty() || !others().all(Key::quiet) {
            return Ok(());
        }
        let live = others().filter(|book| book.states(&self.clock, Excuse::None) & 1 == 0).count();
        match most {
            Some(most) if live >= most => {
                broken(format!("a task was added to {live}, and {most} are allowed"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that a refusal has its reason: a drain, a limit of the backlog, or tasks in the queue.
    /// [`Answer::Refused`] needs no reason here.
    pub(super) fn refused_by_right(&self, op: &Op, said: &Answer) -> Verdict {
        if let Answer::NotEmpty { live, dead, schedules } = *said {
            return self.not_empty(op, live, dead, schedules);
        }
        let Some(queue) = self.queues.get(&op.call.queue) else { return Ok(()) };
        let right = match said {
            Answer::Draining => queue.drained.since(op.called).any(|drained| drained),
            Answer::BacklogFull => queue.limits.since(op.called).any(|limits| limits.max_backlog.is_some()),
            _ => true,
        };
        match right {
            true => Ok(()),
            false => {
                let what = format!("{said:?}, and nothing of the kind was laid down");
                Err(self.broken(&op.call.queue, op.call.key.as_deref(), ("limits", what)))
            }
        }
    }

    /// Whether the limits allowed one more delivery. `None`: this is uncertain, because the settings may have
    /// changed, groups have a limit, the queue may be paused, or a put without a key was lost.
    pub(super) fn room_for_more(&self, op: &Op, found: &[Delivery]) -> Option<bool> {
        let queue = &self.queues[&op.call.queue];
        let mut limits = queue.limits.since(op.called);
        let (only, more) = (limits.next()?, limits.next());
        let paused = queue.paused.since(op.called).any(|hold| hold.may_hold(op, &self.clock));
        if more.is_some() || only.per_group.is_some() || paused {
            return None;
        }
        if let Some(rate) = only.rate {
            // A lost lease may still take effect, and take ready tasks.
            let there = queue.handed.at_least(rate, self.clock.mono(op.from));
            if !queue.lost_leases.is_empty() || there <= found.len() as u64 {
                return Some(false);
            }
        }
        let Some(most) = only.in_flight else { return Some(true) };
        if queue.lost_keys > 0 {
            return None;
        }
        let may_be_leased = queue.keys.iter().filter(|(key, book)| {
            let here = found.iter().any(|one| one.key == **key);
            !here && (!book.quiet() || book.states(&self.clock, Excuse::None) & 8 != 0)
        });
        Some(found.len() + may_be_leased.count() < most)
    }

    /// Checks a server that has nothing under way and sleeps while the lease calls `waiting` wait in it.
    ///
    /// Returns queue and key of a task that one of these calls should have got, if there is one.
    #[must_use]
    pub fn keeps_waiting(&self, waiting: &BTreeSet<CallId>) -> Option<(&str, &str)> {
        let now = self.clock.now();
        for (name, queue) in self.queues.iter().filter(|(_, queue)| queue.wide.is_subset(waiting)) {
            let Some(waits) = queue.wide.first() else { continue };
            // Treats the waiting lease as one that comes now.
            let op = Op { from: now, to: now, called: self.stamp + 1, ..self.open[waits].0.clone() };
            if self.room_for_more(&op, &[]) != Some(true) {
                continue;
            }
            let mut books = queue.keys.iter();
            if let Some((key, _)) = books.find(|(_, book)| book.must_be_ready(&self.clock)) {
                return Some((name, key));
            }
        }
        None
    }
}
