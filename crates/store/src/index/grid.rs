//! [`Grid`]: a hash table that grows in small steps.

use core::fmt;

/// A small entry of a [`Grid`], which computes its own hash.
pub(crate) trait Cell: Copy + PartialEq + fmt::Debug {
    /// Returns the hash: equal for equal keys, and evenly spread. The upper 10 bits choose the table, the next 32 bits the home in the
    /// table.
    fn hash(&self) -> u64;
    /// The value of an empty place. No entry may have this value.
    const EMPTY: Self;
}

/// How many upper bits of a hash choose the table.
const TABLE_BITS: u32 = 10;

/// A set of entries, found by their hash, in 1,024 tables that grow one at a time.
///
/// With 10 million entries, an insertion sometimes moves the entries of one table, about 10,000. A single table would move all of them.
/// Each table is open-addressed with linear probing. A large table that only grows is between about 5/8 and 4/5 full, so an entry takes
/// about 1.4 times its size. A removal closes the gap that it makes, so the cost of a look-up does not depend on earlier removals: it reads
/// about 10 neighbouring places.
///
/// Several entries may have one hash. The caller decides which of these entries is the right one.
#[derive(Clone, PartialEq)]
pub(crate) struct Grid<C> {
    tables: Vec<Table<C>>,
    len: usize,
}

#[derive(Clone, PartialEq)]
struct Table<C> {
    places: Vec<C>,
    len: usize,
}

impl<C: Cell> Grid<C> {
    pub(crate) fn new() -> Self {
        Self { tables: vec![Table { places: Vec::new(), len: 0 }; 1 << TABLE_BITS], len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Makes space for `more` entries whose hashes are evenly spread.
    pub(crate) fn reserve(&mut self, more: u64) {
        let each = usize::try_from(more >> TABLE_BITS).expect("as many as memory has space for");
        for table in &mut self.tables {
            let wanted = (table.len + each) * 3 / 2 + 8;
            if wanted > table.places.len() {
                table.resize(wanted);
            }
        }
    }

    fn table_of(hash: u64) -> usize {
        (hash >> (u64::BITS - TABLE_BITS)) as usize
    }

    /// Reads the first place that a look-up of this hash will read, so that the place is in the processor's cache. Several of these calls
    /// in a row wait for memory at the same time. Several look-ups in a row wait one after another.
    pub(crate) fn touch(&self, hash: u64) {
        let table = &self.tables[Self::table_of(hash)];
        if !table.places.is_empty() {
            core::hint::black_box(table.places[table.home(hash)]);
        }
    }

    /// Returns all entries with this hash, and possibly some with other hashes.
    pub(crate) fn candidates(&self, hash: u64) -> impl Iterator<Item = &C> {
        let table = &self.tables[Self::table_of(hash)];
        table.from(hash).map(|at| &table.places[at])
    }

    /// Returns the first of the [`candidates`](Self::candidates) of this hash for which `is` holds.
    pub(crate) fn find_mut(&mut self, hash: u64, is: impl Fn(&C) -> bool) -> Option<&mut C> {
        let table = &mut self.tables[Self::table_of(hash)];
        let at = table.from(hash).find(|&at| is(&table.places[at]))?;
        table.places.get_mut(at)
    }

    pub(crate) fn insert(&mut self, cell: C) {
        debug_assert_ne!(cell, C::EMPTY, "the empty value was to be kept");
        let table = &mut self.tables[Self::table_of(cell.hash())];
        // In a table that is more than 4/5 full, a look-up reads many places.
        if (table.len + 1) * 5 > table.places.len() * 4 {
            table.grow();
        }
        table.put(cell);
        table.len += 1;
        self.len += 1;
    }

    /// Takes out the first of the [`candidates`](Self::candidates) of this hash for which `is` holds, and returns it.
    pub(crate) fn remove(&mut self, hash: u64, is: impl Fn(&C) -> bool) -> Option<C> {
        let table = &mut self.tables[Self::table_of(hash)];
        let at = table.from(hash).find(|&at| is(&table.places[at]))?;
        let removed = table.take(at);
        self.len -= 1;
        Some(removed)
    }
}

impl<C: Cell> Table<C> {
    /// Returns the place of an entry with this hash if no other entry is in the way.
    fn home(&self, hash: u64) -> usize {
        let low = (hash << TABLE_BITS) >> 32;
        ((low * self.places.len() as u64) >> 32) as usize
    }

    /// Returns the used places from the home of this hash on, up to the first empty place.
    fn from(&self, hash: u64) -> impl Iterator<Item = usize> {
        let len = self.places.len();
        let home = if len == 0 { 0 } else { self.home(hash) };
        (home..len).chain(0..home).take_while(|&at| self.places[at] != C::EMPTY)
    }

    fn put(&mut self, cell: C) {
        let mut at = self.home(cell.hash());
        while self.places[at] != C::EMPTY {
            at = self.after(at);
        }
        self.places[at] = cell;
    }

    fn after(&self, at: usize) -> usize {
        if at + 1 == self.places.len() { 0 } else { at + 1 }
    }

    /// Empties a place. Moves entries behind it back, so that a look-up still finds each of them. Makes a table of more than 64 places
    /// smaller if less than a quarter of them is used.
    fn take(&mut self, at: usize) -> C {
        let removed = core::mem::replace(&mut self.places[at], C::EMPTY);
        self.len -= 1;
        let len = self.places.len();
        let (mut hole, mut next) = (at, self.after(at));
        while self.places[next] != C::EMPTY {
            let home = self.home(self.places[next].hash());
            // The distance of a place from the home of the entry in `next`.
            let distance = |to: usize| if to >= home { to - home } else { to + len - home };
            if distance(hole) < distance(next) {
                self.places[hole] = core::mem::replace(&mut self.places[next], C::EMPTY);
                hole = next;
            }
            next = self.after(next);
        }
        if self.len * 4 < len && len > 64 {
            self.resize(self.len * 8 / 5 + 8);
        }
        removed
    }

    fn grow(&mut self) {
        self.resize(self.places.len() * 5 / 4 + 8);
    }

    fn resize(&mut self, places: usize) {
        let before = core::mem::replace(&mut self.places, vec![C::EMPTY; places]);
        for cell in before.into_iter().filter(|cell| *cell != C::EMPTY) {
            self.put(cell);
        }
    }
}

impl<C> fmt::Debug for Grid<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Grid of {}", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Entries with few different hashes, so that they meet, wrap around the end of a table, and are moved back.
    #[derive(Copy, Clone, PartialEq, Debug)]
    struct Crowded(u64);

    impl Cell for Crowded {
        fn hash(&self) -> u64 {
            (self.0 % 7).wrapping_mul(u64::MAX / 7) >> (TABLE_BITS + self.0 as u32 % 3)
        }
        const EMPTY: Self = Self(0);
    }

    #[test]
    fn it_has_what_was_put_in_and_not_taken_out() {
        let mut grid = Grid::new();
        let mut model = BTreeSet::new();
        let mut state = 7_u64;
        for step in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let cell = Crowded(1 + (state >> 40) % if step < 10_000 { 400 } else { 40 });
            let found = grid.candidates(cell.hash()).any(|other| *other == cell);
            assert_eq!(found, model.contains(&cell.0), "step {step}, {cell:?}");
            if found {
                assert_eq!(grid.remove(cell.hash(), |other| *other == cell), Some(cell));
                model.remove(&cell.0);
            } else {
                grid.insert(cell);
                model.insert(cell.0);
            }
            assert_eq!(grid.len(), model.len());
        }
        for cell in &model {
            let cell = Crowded(*cell);
            assert!(grid.candidates(cell.hash()).any(|other| *other == cell), "{cell:?} is lost");
        }
    }
}
