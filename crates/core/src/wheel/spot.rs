//! [`Spot`]: the content of one place, an entry or a hole.

use core::mem;
use core::num::NonZeroU32;

use super::id::Place;
use crate::Handle;

/// A value with the low words of its insertion number and of its deadline. The high words are stored once in the slot for all its entries,
/// or on the entry's card.
pub(super) struct Entry<T> {
    /// The low word of the insertion number, never 0.
    pub(super) generation: NonZeroU32,
    pub(super) deadline_low: u32,
    pub(super) value: T,
}

/// An entry, or a hole. The holes of a home are a doubly linked list.
pub(super) enum Spot<T> {
    Taken(Entry<T>),
    Hole {
        /// The previous hole in the list. In the first hole it has no meaning.
        prev: Place,
        /// The next hole in the list.
        next: Place,
    },
}

const _: () = assert!(size_of::<Spot<u64>>() == 16, "an entry with a u64 is 16 bytes, and so is a hole");
const _: () = assert!(size_of::<Spot<u32>>() == 12, "an entry with a u32 is 12 bytes, and so is a hole");

impl<T> Spot<T> {
    pub(super) const fn hole(prev: Place, next: Place) -> Self {
        Self::Hole { prev, next }
    }

    /// Whether the spot holds the entry that a handle names.
    #[inline]
    pub(super) fn is_of(&self, handle: Handle) -> bool {
        matches!(self, Self::Taken(entry) if handle.is_of(entry.generation))
    }

    pub(super) fn is_hole(&self) -> bool {
        matches!(self, Self::Hole { .. })
    }

    /// The generation of the entry. `None` for a hole.
    #[inline]
    pub(super) fn generation(&self) -> Option<NonZeroU32> {
        match self {
            Self::Taken(entry) => Some(entry.generation),
            Self::Hole { .. } => None,
        }
    }

    /// The low word of the deadline of the entry. `None` for a hole.
    #[inline]
    pub(super) fn deadline_low(&self) -> Option<u32> {
        match self {
            Self::Taken(entry) => Some(entry.deadline_low),
            Self::Hole { .. } => None,
        }
    }

    /// Sets the low word of the deadline of the entry.
    pub(super) fn set_deadline_low(&mut self, deadline_low: u32) {
        match self {
            Self::Taken(entry) => entry.deadline_low = deadline_low,
            Self::Hole { .. } => panic!("a hole has no deadline"),
        }
    }

    /// Sets the low word of the deadline, if the new one is not nearer. Returns whether it was set.
    #[inline]
    pub(super) fn postpone(&mut self, deadline_low: u32) -> bool {
        match self {
            Self::Taken(entry) if deadline_low >= entry.deadline_low => {
                entry.deadline_low = deadline_low;
                true
            }
            _ => false,
        }
    }

    /// Puts an entry into the hole. Returns the next hole.
    #[inline]
    pub(super) fn fill(&mut self, entry: Entry<T>) -> Place {
        let Self::Hole { next, .. } = *self else { panic!("an entry would be lost") };
        *self = Self::Taken(entry);
        next
    }

    /// Takes the value of the entry. The spot becomes the first hole of the list; `next` is the hole after it.
    #[inline]
    pub(super) fn take(&mut self, next: Place) -> Option<T> {
        match mem::replace(self, Self::Hole { prev: next, next }) {
            Self::Taken(entry) => Some(entry.value),
            hole @ Self::Hole { .. } => {
                *self = hole;
                None
            }
        }
    }

    /// The holes before and after this one. `None` if the spot is not a hole.
    pub(super) fn neighbours(&self) -> Option<(Place, Place)> {
        match *self {
            Self::Taken(_) => None,
            Self::Hole { prev, next } => Some((prev, next)),
        }
    }

    /// Sets the previous hole, if this is a hole.
    #[inline]
    pub(super) fn set_prev(&mut self, place: Place) {
        if let Self::Hole { prev, .. } = self {
            *prev = place;
        }
    }

    /// Sets the next hole, if this is a hole.
    pub(super) fn set_next(&mut self, place: Place) {
        if let Self::Hole { next, .. } = self {
            *next = place;
        }
    }
}
