//! The order of the tasks of the memtable.

use tickwheel_engine::DueKey;

/// A due key, and the slot of the task that has this due key or once had it.
pub(super) type Entry = (DueKey, u32);

/// The due keys of the tasks in the memtable, with their slots. Some entries may be dead: their task has left the slot, or has another due
/// key. The entries are in sorted runs, each at least twice as long as the next (the logarithmic method: Bentley and Saxe, 1980). Only the
/// newest entries are in no run yet.
///
/// To add an entry costs O(log n) comparisons of neighbours in memory on average. In a tree, each comparison would go to a different part
/// of memory. At worst, when the largest runs are merged, to add an entry costs O(n): 10 ms for 300,000 entries. Single entries are not
/// removed: a reader skips the dead ones. Once more than `tail_max` entries and more than a quarter of all entries are dead, all dead
/// entries are swept, which also costs about O(n). If the task of a slot gets a former due key again, the dead entry of that due key is
/// live again, and there are two equal entries.
#[derive(Clone, Debug)]
pub(super) struct Order {
    runs: Vec<Vec<Entry>>,
    /// The newest entries, which are not sorted yet.
    tail: Vec<Entry>,
    tail_max: usize,
    dead: usize,
}

impl Order {
    pub(super) fn new(tail_max: usize) -> Self {
        Self { runs: Vec::new(), tail: Vec::new(), tail_max, dead: 0 }
    }

    pub(super) fn enter(&mut self, place: DueKey, slot: u32) {
        self.tail.push((place, slot));
        if self.tail.len() < self.tail_max {
            return;
        }
        let mut run = core::mem::take(&mut self.tail);
        run.sort_unstable();
        self.runs.push(run);
        while let [.., before, last] = &self.runs[..]
            && before.len() < 2 * last.len()
            && let (Some(last), Some(before)) = (self.runs.pop(), self.runs.last_mut())
        {
            before.extend(last);
            // `sort` finds the two sorted runs and merges them.
            before.sort();
        }
    }

    /// Counts one more dead entry. Sweeps all dead entries if there are too many. `is_live` says whether the slot of an entry has a task
    /// with the entry's due key.
    pub(super) fn died(&mut self, is_live: impl Fn(Entry) -> bool) {
        self.dead += 1;
        let len = self.tail.len() + self.runs.iter().map(Vec::len).sum::<usize>();
        if self.dead > self.tail_max && self.dead * 4 > len {
            *self = Self { runs: vec![self.sorted(is_live)], ..Self::new(self.tail_max) };
        }
    }

    /// Returns all live entries in order, each of them once.
    pub(super) fn sorted(&self, is_live: impl Fn(Entry) -> bool) -> Vec<Entry> {
        let all = self.runs.iter().flatten().chain(&self.tail).copied();
        let mut live: Vec<Entry> = all.filter(|entry| is_live(*entry)).collect();
        live.sort();
        live.dedup();
        live
    }

    /// Returns all entries behind `after` in order. Dead entries are among them, and some entries come twice.
    pub(super) fn behind(&self, after: DueKey) -> Behind<'_> {
        let from = |run: &Vec<Entry>| run.partition_point(|(place, _)| *place <= after);
        let mut tail: Vec<Entry> = self.tail.iter().copied().filter(|(place, _)| *place > after).collect();
        tail.sort_unstable_by(|a, b| b.cmp(a));
        Behind { runs: self.runs.iter().map(|run| &run[from(run)..]).collect(), tail }
    }
}

/// An iterator over the entries behind a due key, in order.
#[derive(Debug)]
pub(super) struct Behind<'a> {
    runs: Vec<&'a [Entry]>,
    /// The entries of the tail in falling order, so that the next entry is at the end.
    tail: Vec<Entry>,
}

impl Iterator for Behind<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let heads = self.runs.iter().enumerate().filter_map(|(run, left)| Some((*left.first()?, run)));
        let first = heads.min();
        match (first, self.tail.last()) {
            (Some((entry, run)), tail) if tail.is_none_or(|tail| entry <= *tail) => {
                self.runs[run] = &self.runs[run][1..];
                Some(entry)
            }
            _ => self.tail.pop(),
        }
    }
}
