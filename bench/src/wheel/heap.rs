//! A peer everybody can write: the standard library's binary heap, with cancelled entries left in it until they are the
//! larger part.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::slab::{Claim, Slab};
use super::subject::{Fired, Jump, Store, Subject, by_next_wake};

/// An entry of the heap: when, and whose. Only the deadline orders.
#[derive(Clone, Copy, Debug)]
struct Entry {
    deadline: u64,
    claim: Claim,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.deadline == other.deadline
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.deadline.cmp(&other.deadline)
    }
}

/// A heap of 16-byte entries and a slab of values. An entry whose claim is stale is garbage.
#[derive(Debug)]
pub(crate) struct LazyHeap {
    heap: BinaryHeap<Reverse<Entry>>,
    values: Slab<u64>,
    garbage: usize,
}

impl LazyHeap {
    /// Counts one more piece of garbage; throws all of it away when it is more than half.
    #[inline]
    fn litter(&mut self) {
        self.garbage += 1;
        if self.garbage > self.heap.len() / 2 {
            self.heap.retain(|Reverse(entry)| self.values.get(entry.claim).is_some());
            self.garbage = 0;
        }
    }
}

impl Store for LazyHeap {
    type Handle = Claim;

    fn new() -> Self {
        Self { heap: BinaryHeap::new(), values: Slab::new(), garbage: 0 }
    }

    #[inline]
    fn insert(&mut self, deadline: u64, value: u64) -> Claim {
        let claim = self.values.insert(value);
        self.heap.push(Reverse(Entry { deadline, claim }));
        claim
    }

    #[inline]
    fn cancel(&mut self, claim: Claim) -> u64 {
        let value = self.values.remove(claim).expect("it is pending");
        self.litter();
        value
    }

    #[inline]
    fn replace(&mut self, claim: &mut Claim, deadline: u64, value: u64) -> u64 {
        let cancelled = self.cancel(*claim);
        *claim = self.insert(deadline, value);
        cancelled
    }

    #[inline]
    fn release(&mut self, _: Claim) {}
}

impl Subject for LazyHeap {
    #[inline]
    fn reschedule(&mut self, claim: &mut Claim, deadline: u64) {
        let value = self.cancel(*claim);
        *claim = self.insert(deadline, value);
    }

    #[inline]
    fn advance(&mut self, now: u64) -> Fired {
        let mut fired = Fired::default();
        while let Some(Reverse(entry)) = self.heap.peek().copied()
            && entry.deadline <= now
        {
            self.heap.pop();
            match self.values.remove(entry.claim) {
                Some(value) => fired.one(value),
                None => self.garbage -= 1,
            }
        }
        fired
    }

    fn next(&mut self) -> Jump {
        by_next_wake(self, |this| {
            while let Some(Reverse(entry)) = this.heap.peek() {
                if this.values.get(entry.claim).is_some() {
                    return Some(entry.deadline);
                }
                this.heap.pop();
                this.garbage -= 1;
            }
            None
        })
    }
}
