//! [`Runs`]: an ordered set for millions of small elements.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

/// An element that has a place in an order.
pub(crate) trait Ordered: Copy {
    /// The place in the order. No two elements of a set have the same place.
    type Key: Ord + Copy;

    fn key(&self) -> Self::Key;
}

/// The largest number of elements in a run. A longer run is split.
const RUN_MAX: usize = 128;

/// An ordered set that consists of runs of neighbours. To save memory, a run that grows at its end gets full before the next run begins,
/// and neighbours that have shrunk are joined. A split leaves two runs that are half full.
///
/// To find, add or remove an element costs O(log n). To add or remove an element also moves other elements of its run, unless the element
/// is at an end of the run.
#[derive(Debug)]
pub(crate) struct Runs<T: Ordered> {
    /// Each run by its lower bound. The elements of a run are at its bound or behind it, and the elements of all runs before are before it.
    runs: BTreeMap<T::Key, VecDeque<T>>,
    len: usize,
}

impl<T: Ordered> Default for Runs<T> {
    fn default() -> Self {
        Self { runs: BTreeMap::new(), len: 0 }
    }
}

impl<T: Ordered> Runs<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn first(&self) -> Option<&T> {
        self.runs.first_key_value().and_then(|(_, run)| run.front())
    }

    /// Returns the first element at this place or behind it.
    pub(crate) fn first_from(&self, key: T::Key) -> Option<&T> {
        let run = self.runs.range(..=key).next_back();
        let in_run = run.and_then(|(_, run)| run.get(run.partition_point(|one| one.key() < key)));
        in_run.or_else(|| self.runs.range((Bound::Excluded(key), Bound::Unbounded)).next()?.1.front())
    }

    pub(crate) fn last(&self) -> Option<&T> {
        self.runs.last_key_value().and_then(|(_, run)| run.back())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.runs.values().flatten()
    }

    pub(crate) fn get(&self, key: T::Key) -> Option<&T> {
        let (_, run) = self.runs.range(..=key).next_back()?;
        let at = run.binary_search_by_key(&key, Ordered::key).ok()?;
        run.get(at)
    }

    /// Adds `new`, at a place that no other element has.
    pub(crate) fn insert(&mut self, new: T) {
        let key = new.key();
        self.len += 1;
        let Some((&bound, run)) = self.runs.range_mut(..=key).next_back() else {
            // The new element is before all others. The first run takes the element, whose place becomes the lower bound of the run.
            let mut run = self.runs.pop_first().map_or_else(VecDeque::new, |(_, run)| run);
            run.push_front(new);
            self.runs.insert(key, run);
            return self.split(key);
        };
        let at = run.binary_search_by_key(&key, Ordered::key).expect_err("each place is taken once");
        if at == run.len() && at >= RUN_MAX {
            self.runs.insert(key, VecDeque::from([new]));
        } else {
            run.insert(at, new);
            self.split(bound);
        }
    }

    pub(crate) fn remove(&mut self, key: T::Key) -> Option<T> {
        let (&bound, run) = self.runs.range_mut(..=key).next_back()?;
        let at = run.binary_search_by_key(&key, Ordered::key).ok()?;
        let gone = run.remove(at);
        self.took_from(bound);
        gone
    }

    pub(crate) fn pop_first(&mut self) -> Option<T> {
        let (&bound, run) = self.runs.iter_mut().next()?;
        let gone = run.pop_front();
        self.took_from(bound);
        gone
    }

    pub(crate) fn pop_last(&mut self) -> Option<T> {
        let (&bound, run) = self.runs.iter_mut().next_back()?;
        let gone = run.pop_back();
        self.took_from(bound);
        gone
    }

    /// Splits the run at `bound` if it has more than [`RUN_MAX`] elements.
    fn split(&mut self, bound: T::Key) {
        let Some(run) = self.runs.get_mut(&bound).filter(|run| run.len() > RUN_MAX) else { return };
        let upper = run.split_off(RUN_MAX / 2);
        let first = upper.front().expect("half of a full run").key();
        self.runs.insert(first, upper);
    }

    /// Counts off an element that was taken out of the run at `bound`. Removes the run if it is empty. If the run has shrunk to a quarter
    /// of its largest length, joins it with a neighbour, if both together fill at most half a run.
    fn took_from(&mut self, bound: T::Key) {
        self.len -= 1;
        let left = self.runs[&bound].len();
        if left == 0 {
            self.runs.remove(&bound);
        } else if left <= RUN_MAX / 4 {
            let fits = |run: &VecDeque<T>| run.len() + left <= RUN_MAX / 2;
            let after = self.runs.range((Bound::Excluded(bound), Bound::Unbounded)).next();
            if let Some(after) = after.filter(|(_, run)| fits(run)).map(|(&after, _)| after) {
                return self.join(bound, after);
            }
            let before = self.runs.range(..bound).next_back();
            if let Some(before) = before.filter(|(_, run)| fits(run)).map(|(&before, _)| before) {
                self.join(before, bound);
            }
        }
    }

    fn join(&mut self, bound: T::Key, next: T::Key) {
        let mut upper = self.runs.remove(&next).expect("a run stands at its bound");
        self.runs.get_mut(&bound).expect("a run stands at its bound").append(&mut upper);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    impl Ordered for u32 {
        type Key = u32;

        fn key(&self) -> u32 {
            *self
        }
    }

    /// Returns the next number of a sequence that looks random. The sequence is the same each time the test runs.
    fn next(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 33
    }

    #[test]
    fn it_does_what_an_ordered_set_does() {
        for seed in 0..20 {
            let mut state = seed;
            let (mut runs, mut set) = (Runs::default(), BTreeSet::new());
            // The set grows, then it shrinks.
            for round in 0..8_000 {
                let n = next(&mut state) as u32 % 4_000;
                match next(&mut state) % if round < 4_000 { 8 } else { 24 } {
                    0 => assert_eq!(runs.pop_first(), set.pop_first()),
                    1 => assert_eq!(runs.pop_last(), set.pop_last()),
                    2 | 8.. => assert_eq!(runs.remove(n), set.take(&n)),
                    _ if set.insert(n) => runs.insert(n),
                    _ => assert_eq!(runs.get(n), Some(&n)),
                }
                assert_eq!((runs.first(), runs.last()), (set.first(), set.last()));
                assert_eq!(runs.len(), set.len());
                assert_eq!(runs.get(n), set.get(&n));
                assert_eq!(runs.first_from(n), set.range(n..).next());
            }
            assert!(runs.iter().eq(set.iter()));
        }
    }

    #[test]
    fn runs_stay_full_when_they_grow_at_the_end_and_are_joined_when_they_shrink() {
        let mut runs = Runs::default();
        (0..100_000).for_each(|n| runs.insert(n));
        assert_eq!(runs.runs.len(), 100_000_usize.div_ceil(RUN_MAX));
        // Only each hundredth element stays. Without joins, a run would be left for each one or two elements.
        (0..100_000).filter(|n| n % 100 != 0).for_each(|n| assert_eq!(runs.remove(n), Some(n)));
        assert_eq!(runs.len(), 1_000);
        assert!(runs.runs.len() <= 1_000 / (RUN_MAX / 4) + 1, "{} runs", runs.runs.len());
    }
}
