//! [`List`]: the records of a slot, in blocks of one cache line. A record is the place of one entry.

use alloc::vec::Vec;

use super::id::{NIL, Place, Seat, SlotId, at};

/// The number of records in a block.
pub(super) const BLOCK_RECORDS: usize = 16;

/// One cache line of records.
#[repr(align(64))]
struct Block([Place; BLOCK_RECORDS]);

/// The fields of a block besides its records.
struct Link {
    /// The next block of the list, which was filled before this one. In an unused block: the next unused block.
    next: u32,
    /// The slot that owns the list of this block.
    owner: SlotId,
}

/// The head of one list. All blocks except the newest are full.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    newest: u32,
    len: u32,
}

impl List {
    pub(super) const EMPTY: Self = Self { newest: NIL, len: 0 };

    #[inline]
    pub(super) fn len(&self) -> usize {
        at(self.len)
    }
}

/// The memory of all lists.
pub(super) struct Blocks {
    blocks: Vec<Block>,
    links: Vec<Link>,
    unused: u32,
}

impl Blocks {
    pub(super) const fn new() -> Self {
        Self { blocks: Vec::new(), links: Vec::new(), unused: NIL }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Block>() + self.links.capacity() * size_of::<Link>()
    }

    /// The slot that owns the list of the record at `seat`.
    pub(super) fn owner(&self, seat: Seat) -> SlotId {
        self.links[at(seat) / BLOCK_RECORDS].owner
    }

    /// Whether a seat is the first of its block.
    #[inline]
    pub(super) const fn is_first(seat: Seat) -> bool {
        at(seat).is_multiple_of(BLOCK_RECORDS)
    }

    /// Adds a record to the list of `owner` and returns its seat.
    #[inline]
    pub(super) fn push(&mut self, list: &mut List, owner: SlotId, place: Place) -> Seat {
        let position = at(list.len) % BLOCK_RECORDS;
        if position == 0 {
            list.newest = self.add(list.newest, owner);
        }
        list.len += 1;
        self.blocks[at(list.newest)].0[position] = place;
        list.newest * BLOCK_RECORDS as u32 + position as u32
    }

    /// Removes the newest record and returns it.
    pub(super) fn pop(&mut self, list: &mut List) -> Option<Place> {
        list.len = list.len.checked_sub(1)?;
        let position = at(list.len) % BLOCK_RECORDS;
        let place = self.blocks[at(list.newest)].0[position];
        if position == 0 {
            list.newest = self.give_back(list.newest);
        }
        Some(place)
    }

    /// Removes the record at `seat` and moves the newest record to this seat. Returns the moved record; `None` if the removed record was
    /// the newest.
    pub(super) fn remove(&mut self, list: &mut List, seat: Seat) -> Option<Place> {
        let newest = self.pop(list)?;
        let record = &mut self.blocks[at(seat) / BLOCK_RECORDS].0[at(seat) % BLOCK_RECORDS];
        if *record == newest {
            return None;
        }
        *record = newest;
        Some(newest)
    }

    /// The records of the newest block. These are all records if the list has at most one block.
    pub(super) fn newest(&self, list: &List) -> &[Place] {
        match at(list.len).checked_sub(1) {
            None => &[],
            Some(last) => &self.blocks[at(list.newest)].0[..=last % BLOCK_RECORDS],
        }
    }

    /// Removes all records, and calls `each` with the index and the value of each record.
    #[inline]
    pub(super) fn drain(&mut self, list: &mut List, mut each: impl FnMut(usize, Place)) {
        while list.len > 0 {
            let first = (at(list.len) - 1) / BLOCK_RECORDS * BLOCK_RECORDS;
            for (index, &place) in (first..at(list.len)).zip(&self.blocks[at(list.newest)].0) {
                each(index, place);
            }
            list.len = first as u32;
            list.newest = self.give_back(list.newest);
        }
    }

    /// Takes a block into use; `next` is the block after it in the list.
    fn add(&mut self, next: u32, owner: SlotId) -> u32 {
        let link = Link { next, owner };
        match self.unused {
            NIL => {
                self.blocks.push(Block([NIL; BLOCK_RECORDS]));
                self.links.push(link);
                (self.links.len() - 1) as u32
            }
            unused => {
                self.unused = self.links[at(unused)].next;
                self.links[at(unused)] = link;
                unused
            }
        }
    }

    /// Makes a block unused and returns the block after it.
    fn give_back(&mut self, block: u32) -> u32 {
        let link = &mut self.links[at(block)];
        let next = link.next;
        link.next = self.unused;
        self.unused = block;
        next
    }
}

/// For tests only.
#[cfg(test)]
impl Blocks {
    /// The record at a seat.
    pub(super) fn at(&self, seat: Seat) -> Place {
        self.blocks[at(seat) / BLOCK_RECORDS].0[at(seat) % BLOCK_RECORDS]
    }

    /// Panics if a block is in more than one list, in no list, or in a list of another owner.
    pub(super) fn check<'a>(&self, lists: impl Iterator<Item = &'a List>) {
        let mut count = 0;
        for (id, list) in (0..).zip(lists) {
            let mut block = list.newest;
            for _ in 0..list.len().div_ceil(BLOCK_RECORDS) {
                assert_eq!(self.links[at(block)].owner, id, "the owner of block {block}");
                block = self.links[at(block)].next;
                count += 1;
            }
            assert_eq!(block, NIL, "the end of the list of slot {id}");
        }
        let mut unused = self.unused;
        while unused != NIL && count <= self.blocks.len() {
            unused = self.links[at(unused)].next;
            count += 1;
        }
        assert_eq!(count, self.blocks.len(), "blocks in use and not");
    }
}
