//! The order of the tasks of the memtable.

use tickwheel_engine::DueKey;

/// A place, and the slot of the task that has it, or had it once.
pub(super) type Entry = (DueKey, u32);

/// Places that were entered. Some may be dead. They are in sorted runs, each about twice as long as the next (the logarithmic method:
/// Bentley and Saxe, 1980).
///
/// An entry costs O(log n) comparisons of neighbours in memory on average, where each comparison of a tree would go to a different part of
/// memory. At worst, when the largest runs are merged, an entry costs O(n): 10 ms for 300,000. Nothing is taken out: a reader skips the
/// dead entries, and once a quarter of the entries is dead, all dead ones are swept, also in O(n). A dead entry comes back to life if its
/// task comes back to its slot, and then stands twice.
#[derive(Clone, Debug)]
pub(super) struct Order {
    runs: Vec<Vec<Entry>>,
    /// The newest entries, in no order yet.
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
            // This sort finds the two runs and merges them.
            before.sort();
        }
    }

    /// Takes in that an entry is dead. `is_live` says whether the task of an entry is there.
    pub(super) fn died(&mut self, is_live: impl Fn(Entry) -> bool) {
        self.dead += 1;
        let len = self.tail.len() + self.runs.iter().map(Vec::len).sum::<usize>();
        if self.dead > self.tail_max && self.dead * 4 > len {
            *self = Self { runs: vec![self.sorted(is_live)], ..Self::new(self.tail_max) };
        }
    }

    /// All live entries, in order.
    pub(super) fn sorted(&self, is_live: impl Fn(Entry) -> bool) -> Vec<Entry> {
        let all = self.runs.iter().flatten().chain(&self.tail).copied();
        let mut live: Vec<Entry> = all.filter(|entry| is_live(*entry)).collect();
        live.sort();
        live.dedup();
        live
    }

    /// All entries behind `after` in order, the dead ones among them, and some twice.
    pub(super) fn behind(&self, after: DueKey) -> Behind<'_> {
        let from = |run: &Vec<Entry>| run.partition_point(|(place, _)| *place <= after);
        let mut tail: Vec<Entry> = self.tail.iter().copied().filter(|(place, _)| *place > after).collect();
        tail.sort_unstable_by(|a, b| b.cmp(a));
        Behind { runs: self.runs.iter().map(|run| &run[from(run)..]).collect(), tail }
    }
}

/// The entries behind a place.
#[derive(Debug)]
pub(super) struct Behind<'a> {
    runs: Vec<&'a [Entry]>,
    /// The last entry comes first.
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
