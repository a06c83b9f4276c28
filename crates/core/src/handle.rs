//! [`Handle`]: the caller's claim on one pending entry.

use core::fmt;
use core::num::{NonZeroU32, NonZeroU64};

/// A claim on one pending entry: the place of the entry, and the generation, which distinguishes it from other entries at this place.
///
/// [`insert`](crate::TimerQueue::insert) returns a handle, and [`reschedule`](crate::TimerQueue::reschedule) returns the handle to use from
/// then on. A handle becomes *stale* when its entry fires or is cancelled, and possibly when the entry is rescheduled. A stale handle finds
/// nothing, also if another entry has taken the place. A queue may use a generation again after a stated number of insertions;
/// [`Wheel`](crate::Wheel) does.
///
/// A handle is valid only in the queue that made it. Another queue may have an entry with the same numbers and would find that entry.
///
/// A handle is 8 bytes and `Copy`. `Option<Handle>` is 8 bytes too, because a generation is never
/// 0. The order of handles has no meaning; it exists so that a handle can be the key of a
/// `BTreeMap`.
///
/// ```
/// use tickwheel_core::Handle;
/// assert_eq!(size_of::<Handle>(), 8);
/// assert_eq!(size_of::<Option<Handle>>(), 8);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(
    /// The generation is the high word, the place is the low word. They are one number, because a processor stalls if it loads together two
    /// halves that were stored separately.
    NonZeroU64,
);

const _: () = assert!(size_of::<Handle>() == 8, "a handle is 8 bytes");
const _: () = assert!(size_of::<Option<Handle>>() == 8, "no handle costs no more than a handle");

impl Handle {
    /// Makes a handle from its parts, for implementations of [`TimerQueue`](crate::TimerQueue). A handle that a caller makes is either
    /// stale or finds an entry by chance.
    #[must_use]
    #[inline]
    pub const fn new(place: u32, generation: NonZeroU32) -> Self {
        let Some(both) = NonZeroU64::new((generation.get() as u64) << 32 | place as u64) else {
            unreachable!()
        };
        Self(both)
    }

    /// The place of the entry. The queue that made the handle decides what the number means.
    #[must_use]
    #[inline]
    pub const fn place(self) -> u32 {
        self.0.get() as u32
    }

    /// The generation of the entry. It distinguishes the entry from earlier and later entries at the same place. Never 0.
    #[must_use]
    #[inline]
    pub const fn generation(self) -> NonZeroU32 {
        let Some(generation) = NonZeroU32::new((self.0.get() >> 32) as u32) else { unreachable!() };
        generation
    }
}

impl Handle {
    /// Whether this handle names the entry with this generation.
    #[inline]
    pub(crate) const fn is_of(self, generation: NonZeroU32) -> bool {
        (self.0.get() >> 32) as u32 == generation.get()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("place", &self.place())
            .field("generation", &self.generation())
            .finish()
    }
}
