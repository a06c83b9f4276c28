//! The invariants of the chunks that hold between any two calls.

use alloc::vec;

use super::super::home::{COMMONS, DRAIN, Home};
use super::super::id::{CHUNK_PLACES, ChunkId, NIL, SlotId, at};
use super::super::tree::Slot;
use super::{Chunks, chunk_of};

impl<T> Chunks<T> {
    /// Panics in three cases: a chunk is not in exactly one home, that of its owner; a place has no entry and is not a hole of its home; an
    /// empty chunk is not unused.
    pub(in super::super) fn check(&self, slots: &[Slot]) {
        let mut owners = vec![None; self.chunks.len()];
        let mut claim = |id: ChunkId, owner| {
            assert_eq!(owners[at(id)].replace(owner), None, "chunk {id} is in two homes");
        };
        let homes = (0..).zip(slots.iter().map(|slot| &slot.home));
        for (owner, home) in homes.chain([(COMMONS, &self.commons), (DRAIN, &self.drain)]) {
            if home.count() == 0 {
                assert_eq!(home.hole, NIL, "holes of {owner}, which has no chunk");
            }
            for id in home.chunks(&self.links) {
                claim(id, owner);
                assert_eq!(self.chunks[at(id)].owner, owner, "the owner of chunk {id}");
                assert!(self.chunks[at(id)].taken > 0, "chunk {id} of {owner} is empty");
            }
            self.check_holes(owner, home);
        }
        let mut unused = self.unused;
        while unused != NIL {
            claim(unused, NIL);
            assert_eq!(self.chunks[at(unused)].taken, 0, "chunk {unused} is not in use");
            unused = self.links[at(unused)].next;
        }
        assert!(owners.iter().all(Option::is_some), "chunks without an owner");
        let filed = (0..).zip(&self.chunks).filter(|(_, chunk)| chunk.taken > 0 && chunk.owner >= DRAIN);
        self.cards.check(filed.map(|(id, chunk)| (id, chunk.owner == COMMONS)));
    }

    fn check_holes(&self, owner: SlotId, home: &Home) {
        let taken = |id: ChunkId| at(self.chunks[at(id)].taken);
        let mut free: usize = home.chunks(&self.links).into_iter().map(|id| CHUNK_PLACES - taken(id)).sum();
        if owner == DRAIN {
            // The holes of a chunk in the drain are in no list.
            free = 0;
        }
        let (mut before, mut place) = (NIL, home.hole);
        while place != NIL {
            let Some((prev, next)) = self.spots[at(place)].neighbours() else {
                panic!("place {place} is no hole")
            };
            assert!(before == NIL || prev == before, "the link back from hole {place}");
            assert_eq!(self.chunks[at(chunk_of(place))].owner, owner, "the owner of hole {place}");
            assert!(free > 0, "more holes than places of {owner}");
            free -= 1;
            (before, place) = (place, next);
        }
        assert_eq!(free, 0, "places of {owner} that are neither taken nor holes");
    }
}
