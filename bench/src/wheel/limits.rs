//! The limits: what the memory of this machine allows, whatever the structure.

use super::effort::Effort;
use super::subject::Store;
use super::workload::Workload;
use crate::cpu::CpuTime;
use crate::sample::Sample;

/// A deadline and a value: 16 bytes, four of them in a line of the cache.
const ENTRIES_PER_LINE: usize = 4;

/// One line of 64 bytes is read and changed for each pair: the places are known, nothing is checked and nothing is free.
#[derive(Debug)]
pub(crate) struct Lines {
    lines: Vec<Line>,
    len: usize,
}

/// A line of the cache.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Line([(u64, u64); ENTRIES_PER_LINE]);

impl Store for Lines {
    type Handle = usize;

    fn new() -> Self {
        Self { lines: Vec::new(), len: 0 }
    }

    #[inline]
    fn insert(&mut self, deadline: u64, value: u64) -> usize {
        let place = self.len;
        self.len += 1;
        if place.is_multiple_of(ENTRIES_PER_LINE) {
            self.lines.push(Line::default());
        }
        self.lines[place / ENTRIES_PER_LINE].0[place % ENTRIES_PER_LINE] = (deadline, value);
        place
    }

    #[inline]
    fn cancel(&mut self, place: usize) -> u64 {
        self.lines[place / ENTRIES_PER_LINE].0[place % ENTRIES_PER_LINE].1
    }

    #[inline]
    fn replace(&mut self, place: &mut usize, deadline: u64, value: u64) -> u64 {
        let entry = &mut self.lines[*place / ENTRIES_PER_LINE].0[*place % ENTRIES_PER_LINE];
        std::mem::replace(entry, (deadline, value)).1
    }

    #[inline]
    fn release(&mut self, _: usize) {}
}

/// The limit of insertion: 24 bytes for each timer, one after the other, into memory that is warm.
pub(crate) fn append(workload: Workload, n: u64, effort: Effort) -> Option<Sample> {
    if workload != Workload::W2 {
        return None;
    }
    let passes = effort.operations(n).div_ceil(n);
    let mut entries: Vec<[u64; 3]> = Vec::new();
    let mut nanos = 0.0;
    for pass in 0..=passes {
        entries.clear();
        let begun = CpuTime::now();
        for value in 0..n {
            entries.push([pass, value, n]);
        }
        if pass > 0 {
            nanos += begun.elapsed_nanos();
        }
        std::hint::black_box(&mut entries);
    }
    let mut sample = Sample { measured: passes * n, ..Sample::default() };
    sample.figure("insert_ns", nanos / (passes * n) as f64);
    sample.check("fired", passes * n);
    Some(sample)
}
