//! [`Slab`]: places that are reused, with generations, and nothing else. No queue with handles can do less.

use super::subject::Store;

/// The claim on a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    place: u32,
    generation: u32,
}

/// 16 bytes with a `u64`.
#[derive(Debug)]
struct Slot<V> {
    value: V,
    generation: u32,
    next_free: u32,
}

/// Values in places. The place that was freed last is taken first.
#[derive(Debug)]
pub(crate) struct Slab<V> {
    slots: Vec<Slot<V>>,
    first_free: u32,
}

/// The end of the list of free places.
const NONE: u32 = u32::MAX;

impl<V: Copy> Slab<V> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), first_free: NONE }
    }

    #[inline]
    pub(crate) fn insert(&mut self, value: V) -> Claim {
        if let Some(slot) = self.slots.get_mut(self.first_free as usize) {
            let claim = Claim { place: self.first_free, generation: slot.generation };
            self.first_free = slot.next_free;
            slot.value = value;
            return claim;
        }
        let place = u32::try_from(self.slots.len()).expect("fewer than 2^32 places");
        self.slots.push(Slot { value, generation: 1, next_free: NONE });
        Claim { place, generation: 1 }
    }

    /// The value, unless the claim is stale.
    #[inline]
    pub(crate) fn get(&self, claim: Claim) -> Option<&V> {
        let slot = self.slots.get(claim.place as usize)?;
        (slot.generation == claim.generation).then_some(&slot.value)
    }

    /// Takes the value and frees the place, unless the claim is stale.
    #[inline]
    pub(crate) fn remove(&mut self, claim: Claim) -> Option<V> {
        let slot = self.slots.get_mut(claim.place as usize)?;
        if slot.generation != claim.generation {
            return None;
        }
        slot.generation = slot.generation.wrapping_add(1);
        slot.next_free = self.first_free;
        self.first_free = claim.place;
        Some(slot.value)
    }
}

/// The limit of the pairs.
impl Store for Slab<u64> {
    type Handle = Claim;

    fn new() -> Self {
        Self::new()
    }

    #[inline]
    fn insert(&mut self, _: u64, value: u64) -> Claim {
        self.insert(value)
    }

    #[inline]
    fn cancel(&mut self, claim: Claim) -> u64 {
        self.remove(claim).expect("it is there")
    }

    #[inline]
    fn replace(&mut self, claim: &mut Claim, deadline: u64, value: u64) -> u64 {
        let cancelled = self.cancel(*claim);
        *claim = Store::insert(self, deadline, value);
        cancelled
    }

    #[inline]
    fn release(&mut self, _: Claim) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_claim_finds_nothing_and_places_are_reused() {
        let mut slab = Slab::new();
        let first = slab.insert('a');
        let second = slab.insert('b');
        assert_eq!(slab.remove(first), Some('a'));
        let third = slab.insert('c');
        assert_eq!((third.place, slab.slots.len()), (first.place, 2));
        assert_eq!((slab.remove(first), slab.get(first)), (None, None));
        assert_eq!(slab.get(second), Some(&'b'));
        assert_eq!(slab.remove(third), Some('c'));
    }
}
