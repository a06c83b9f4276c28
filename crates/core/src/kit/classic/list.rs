//! [`List`]: a doubly linked list of entries. Each slot of a wheel is such a list, and so is a sorted list.

use core::iter;

use super::slab::Slab;

/// The first and the last entry of a list; the links are in the entries. So an entry can leave any position in O(1), which makes a cancel
/// cheap.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct List {
    first: Option<u32>,
    last: Option<u32>,
}

impl List {
    pub(super) const EMPTY: Self = Self { first: None, last: None };

    pub(super) fn first(self) -> Option<u32> {
        self.first
    }

    pub(super) fn is_empty(self) -> bool {
        self.first.is_none()
    }

    /// The places in the list, from the first to the last.
    pub(super) fn places<T>(self, slab: &Slab<T>) -> impl Iterator<Item = u32> + use<'_, T> {
        iter::successors(self.first, |&place| slab[place].next)
    }

    /// Appends an entry. O(1).
    pub(super) fn push_back<T>(&mut self, slab: &mut Slab<T>, place: u32) {
        self.insert_after(slab, self.last, place);
    }

    /// Puts an entry before the entries that fire later than it. The list has to be in order.
    ///
    /// The search starts at the end, so an entry with the latest deadline is inserted in O(1).
    pub(super) fn insert_in_order<T>(&mut self, slab: &mut Slab<T>, place: u32) {
        let mut before = self.last;
        while let Some(other) = before
            && slab[other].order() > slab[place].order()
        {
            before = slab[other].prev;
        }
        self.insert_after(slab, before, place);
    }

    /// Takes an entry out of this list. O(1).
    pub(super) fn unlink<T>(&mut self, slab: &mut Slab<T>, place: u32) {
        let (prev, next) = (slab[place].prev.take(), slab[place].next.take());
        match prev {
            Some(prev) => slab[prev].next = next,
            None => self.first = next,
        }
        match next {
            Some(next) => slab[next].prev = prev,
            None => self.last = prev,
        }
    }

    /// Puts an entry after `prev`, or at the front if `prev` is `None`.
    fn insert_after<T>(&mut self, slab: &mut Slab<T>, prev: Option<u32>, place: u32) {
        let next = match prev {
            Some(prev) => slab[prev].next.replace(place),
            None => self.first.replace(place),
        };
        match next {
            Some(next) => slab[next].prev = Some(place),
            None => self.last = Some(place),
        }
        slab[place].prev = prev;
        slab[place].next = next;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// The deadlines in the list. Checks the links in both directions.
    fn deadlines(list: List, slab: &Slab<()>) -> Vec<u64> {
        let forth: Vec<u32> = list.places(slab).collect();
        let back = iter::successors(list.last, |&place| slab[place].prev);
        let mut back: Vec<u32> = back.collect();
        back.reverse();
        assert_eq!(forth, back);
        assert_eq!(list.is_empty(), forth.is_empty());
        forth.into_iter().map(|place| slab[place].deadline).collect()
    }

    #[test]
    fn entries_come_and_go_at_the_ends_and_in_the_middle() {
        let mut slab = Slab::new();
        let mut list = List::EMPTY;
        let mut places = Vec::new();
        for deadline in [30, 10, 40, 20, 10] {
            let place = slab.insert(deadline, ()).expect("there is room").place();
            list.insert_in_order(&mut slab, place);
            places.push(place);
        }
        assert_eq!(deadlines(list, &slab), [10, 10, 20, 30, 40]);
        assert_eq!(list.first(), Some(places[1]), "the first inserted of the two");
        for (leaving, left) in [
            (places[3], &[10, 10, 30, 40][..]),
            (places[2], &[10, 10, 30]),
            (places[1], &[10, 30]),
            (places[4], &[30]),
            (places[0], &[]),
        ] {
            list.unlink(&mut slab, leaving);
            assert_eq!(deadlines(list, &slab), left);
        }
        list.push_back(&mut slab, places[2]);
        list.push_back(&mut slab, places[0]);
        assert_eq!(deadlines(list, &slab), [40, 30]);
    }
}
