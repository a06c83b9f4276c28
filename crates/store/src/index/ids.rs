//! [`Ids`]: where the record of each task that has not ended is, by the task's id.

use super::grid::{Cell, Grid};

/// The place of a record in a segment.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Spot {
    /// The slot of the segment in the catalog. It is not the segment's generation.
    pub(crate) segment: u32,
    /// The offset of the record's first byte in the file (bytes).
    pub(crate) offset: u64,
}

/// Where the record of a task that has not ended is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Whereabouts {
    /// In the memtable, in the slot with this number.
    Memtable(u32),
    /// In a segment, at this place.
    Far(Spot),
}

/// How many upper bits of a packed place are for the segment. All of them are ones for a record in the memtable.
const SEGMENT_BITS: u32 = 20;
const OFFSET_BITS: u32 = 64 - SEGMENT_BITS;
const MEMTABLE: u64 = (1 << SEGMENT_BITS) - 1;

/// The slot of a segment is always below this number.
pub(crate) const SEGMENTS_MAX: u32 = MEMTABLE as u32;

impl Whereabouts {
    fn pack(self) -> u64 {
        match self {
            Self::Memtable(slot) => MEMTABLE << OFFSET_BITS | u64::from(slot),
            Self::Far(Spot { segment, offset }) => {
                assert!(segment < SEGMENTS_MAX, "segment {segment}: there are fewer than {SEGMENTS_MAX}");
                assert!(offset >> OFFSET_BITS == 0, "byte {offset} of a segment");
                u64::from(segment) << OFFSET_BITS | offset
            }
        }
    }

    fn unpack(packed: u64) -> Self {
        let low = packed & ((1 << OFFSET_BITS) - 1);
        match packed >> OFFSET_BITS {
            MEMTABLE => Self::Memtable(u32::try_from(low).expect("a slot was packed")),
            segment => Self::Far(Spot { segment: segment as u32, offset: low }),
        }
    }
}

/// Where the record of each task that has not ended is. An entry has 16 bytes, and takes about 23 bytes of memory with the empty places
/// between.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Ids {
    grid: Grid<IdCell>,
}

#[derive(Copy, Clone, PartialEq, Debug)]
struct IdCell {
    id: u64,
    at: u64,
}

impl Cell for IdCell {
    fn hash(&self) -> u64 {
        hash_id(self.id)
    }

    const EMPTY: Self = Self { id: u64::MAX, at: u64::MAX };
}

/// Returns the hash of an id. A simple mixing without a secret is enough, because the server chooses the ids of new tasks. Only an import
/// can bring ids that a user chose.
pub(crate) fn hash_id(id: u64) -> u64 {
    let mixed = (id ^ (id >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

impl Ids {
    pub(crate) fn new() -> Self {
        Self { grid: Grid::new() }
    }

    /// Makes space for `more` tasks.
    pub(crate) fn reserve(&mut self, more: u64) {
        self.grid.reserve(more);
    }

    pub(crate) fn len(&self) -> usize {
        self.grid.len()
    }

    /// Fetches the first place that a look-up of this id will read, see [`Grid::touch`].
    pub(crate) fn touch(&self, id: u64) {
        self.grid.touch(hash_id(id));
    }

    pub(crate) fn get(&self, id: u64) -> Option<Whereabouts> {
        let cell = self.grid.candidates(hash_id(id)).find(|cell| cell.id == id)?;
        Some(Whereabouts::unpack(cell.at))
    }

    /// Sets where a task's record is. Returns where the record was; `None` if the task was not in the index.
    pub(crate) fn set(&mut self, id: u64, at: Whereabouts) -> Option<Whereabouts> {
        let packed = at.pack();
        match self.grid.find_mut(hash_id(id), |cell| cell.id == id) {
            Some(cell) => Some(Whereabouts::unpack(core::mem::replace(&mut cell.at, packed))),
            None => {
                self.grid.insert(IdCell { id, at: packed });
                None
            }
        }
    }

    /// Adds a task that is not in the index yet, with the place of its record.
    pub(crate) fn add(&mut self, id: u64, at: Whereabouts) {
        debug_assert!(self.get(id).is_none(), "task {id} is there already");
        self.grid.insert(IdCell { id, at: at.pack() });
    }

    /// Passes the place of a task's record to `change`, and sets the place that `change` returns. Returns whether a place was set.
    pub(crate) fn change(
        &mut self,
        id: u64,
        change: impl FnOnce(Whereabouts) -> Option<Whereabouts>,
    ) -> bool {
        let Some(cell) = self.grid.find_mut(hash_id(id), |cell| cell.id == id) else { return false };
        let Some(at) = change(Whereabouts::unpack(cell.at)) else { return false };
        cell.at = at.pack();
        true
    }

    pub(crate) fn remove(&mut self, id: u64) -> Option<Whereabouts> {
        let cell = self.grid.remove(hash_id(id), |cell| cell.id == id)?;
        Some(Whereabouts::unpack(cell.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_packing() {
        let places = [
            Whereabouts::Memtable(0),
            Whereabouts::Memtable(u32::MAX),
            Whereabouts::Far(Spot { segment: 0, offset: 0 }),
            Whereabouts::Far(Spot { segment: SEGMENTS_MAX - 1, offset: (1 << OFFSET_BITS) - 1 }),
        ];
        for at in places {
            assert_eq!(Whereabouts::unpack(at.pack()), at);
        }
    }

    #[test]
    fn it_says_where_a_task_is_and_where_it_was() {
        let mut ids = Ids::new();
        let far = |offset| Whereabouts::Far(Spot { segment: 3, offset });
        for id in 0..5_000 {
            assert_eq!(ids.set(id, Whereabouts::Memtable(id as u32)), None);
        }
        for id in (0..5_000).step_by(2) {
            assert_eq!(ids.set(id, far(id)), Some(Whereabouts::Memtable(id as u32)));
        }
        for id in (0..5_000).step_by(3) {
            assert!(ids.remove(id).is_some());
            assert_eq!(ids.remove(id), None);
        }
        for id in 0..5_000 {
            let wanted = if id % 2 == 0 { far(id) } else { Whereabouts::Memtable(id as u32) };
            assert_eq!(ids.get(id), (id % 3 != 0).then_some(wanted), "task {id}");
        }
        assert_eq!(ids.len(), 5_000 - 1_667);
    }
}
