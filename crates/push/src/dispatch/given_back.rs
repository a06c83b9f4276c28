//! [`GivenBack`]: how often each task was given back because of its target.

use std::collections::{BTreeMap, BTreeSet};

/// A task that was given back this number of times counts one attempt, so that a task that itself makes the target fail ends at some time.
const TIMES_MAX: u32 = 1_000;
/// A task that was first given back this long ago counts one attempt (ms): 24 h. So an outage costs at most one attempt a day.
const MS_MAX: u64 = 24 * 3_600_000;
/// At most this many tasks are remembered. The task that was given back first is forgotten first: its count begins anew.
const TASKS_MAX: usize = 10_000;

/// The tasks that were given back since they were last sent without a failure of the target. After a restart the counts begin anew.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenBack {
    by_id: BTreeMap<u64, Count>,
    /// The same tasks in the order in which they were first given back.
    by_time: BTreeSet<(u64, u64)>,
}

#[derive(Copy, Clone, Debug)]
struct Count {
    times: u32,
    since_ms: u64,
}

impl GivenBack {
    /// Counts that the task is given back. Returns whether the task is to count an attempt instead: it was given back too often or for too
    /// long. Its count then begins anew.
    pub(crate) fn count(&mut self, id: u64, now_ms: u64) -> bool {
        let count = self.by_id.entry(id).or_insert(Count { times: 0, since_ms: now_ms });
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
        let mut given = GivenBack::default();
        let times = (1..=2_500).filter(|time| given.count(7, *time)).collect::<Vec<_>>();
        assert_eq!(times, [1_000, 2_000]);
    }

    #[test]
    fn a_day_counts_an_attempt_and_an_answer_in_between_begins_another_day() {
        let mut given = GivenBack::default();
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
        let mut given = GivenBack::default();
        (0..TASKS_MAX as u64 + 10).for_each(|id| assert!(!given.count(id, id)));
        assert_eq!((given.by_id.len(), given.by_time.len()), (TASKS_MAX, TASKS_MAX));
        assert!(!given.by_id.contains_key(&9) && given.by_id.contains_key(&10));
    }
}
