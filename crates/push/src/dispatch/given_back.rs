//! [`GivenBack`]: how often each task was given back because of its target, and how long it waits.

use std::collections::{BTreeMap, BTreeSet};

use super::breaker::BreakerPlan;

/// A task that was given back this number of times counts one attempt, so that a task that itself makes the target fail ends at some time.
const TIMES_MAX: u32 = 1_000;
/// A task that was first given back this long ago counts one attempt (ms): 24 h. So an outage costs at most one attempt a day.
const MS_MAX: u64 = 24 * 3_600_000;
/// At most this many tasks are remembered. The task that was given back first is forgotten first: its count begins anew.
const TASKS_MAX: usize = 10_000;

/// The tasks that were given back since they were last sent without a failure of the target. After a restart the counts begin anew.
#[derive(Clone, Debug)]
pub(crate) struct GivenBack {
    /// A task waits as long as the breaker would be open.
    plan: BreakerPlan,
    by_id: BTreeMap<u64, Count>,
    /// The same tasks in the order in which they were first given back.
    by_time: BTreeSet<(u64, u64)>,
}

#[derive(Copy, Clone, Debug)]
struct Count {
    times: u32,
    since_ms: u64,
    /// When the task may be sent again (ms).
    wait_until_ms: u64,
}

impl GivenBack {
    /// Returns no tasks.
    pub(crate) fn new(plan: BreakerPlan) -> Self {
        Self { plan, by_id: BTreeMap::new(), by_time: BTreeSet::new() }
    }

    /// Counts that the task is given back. Returns whether the task is to count an attempt instead: it was given back too often or for too
    /// long. Its count then begins anew.
    pub(crate) fn count(&mut self, id: u64, now_ms: u64) -> bool {
        let count = self.by_id.entry(id).or_insert(Count { times: 0, since_ms: now_ms, wait_until_ms: 0 });
        let first_ms = self.plan.open_ms.max(1);
        let doubled_ms = first_ms.saturating_mul(2_u64.saturating_pow(count.times));
        count.wait_until_ms = now_ms.saturating_add(doubled_ms.min(self.plan.open_max_ms.max(first_ms)));
        count.times += 1;
        self.by_time.insert((count.since_ms, id));
        let is_over = count.times >= TIMES_MAX || now_ms.saturating_sub(count.since_ms) >= MS_MAX;
        if is_over {
            self.forget(id);
        } else if self.by_id.len() > TASKS_MAX
            && let Some(&(_, oldest)) = self.by_time.first()
        {
            self.forget(oldest);
        }
        is_over
    }

    /// Returns when a task may be sent again (ms); `None`: it was not given back.
    pub(crate) fn wait_until(&self, id: u64) -> Option<u64> {
        self.by_id.get(&id).map(|count| count.wait_until_ms)
    }

    /// Lets all tasks be sent at once. Their counts go on.
    pub(crate) fn end_waits(&mut self) {
        self.by_id.values_mut().for_each(|count| count.wait_until_ms = 0);
    }

    /// Forgets the count of a task, because the target answered for it.
    pub(crate) fn forget(&mut self, id: u64) {
        if let Some(count) = self.by_id.remove(&id) {
            self.by_time.remove(&(count.since_ms, id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thousandth_time_counts_an_attempt_and_then_it_begins_anew() {
        let mut given = GivenBack::new(BreakerPlan::default());
        let times = (1..=2_500).filter(|time| given.count(7, *time)).collect::<Vec<_>>();
        assert_eq!(times, [1_000, 2_000]);
    }

    #[test]
    fn a_day_counts_an_attempt_and_an_answer_in_between_begins_another_day() {
        let mut given = GivenBack::new(BreakerPlan::default());
        assert!(!given.count(7, 0));
        assert!(!given.count(7, MS_MAX - 1));
        assert!(given.count(7, MS_MAX));
        assert!(!given.count(8, 0));
        given.forget(8);
        assert!(!given.count(8, MS_MAX));
        assert!(!given.count(8, MS_MAX + 1));
    }

    #[test]
    fn the_oldest_counts_are_forgotten_and_the_two_maps_agree() {
        let mut given = GivenBack::new(BreakerPlan::default());
        (0..TASKS_MAX as u64 + 10).for_each(|id| assert!(!given.count(id, id)));
        assert_eq!((given.by_id.len(), given.by_time.len()), (TASKS_MAX, TASKS_MAX));
        assert!(!given.by_id.contains_key(&9) && given.by_id.contains_key(&10));
    }
}
