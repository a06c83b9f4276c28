//! [`Handle`]: the caller's claim on one pending entry.

use core::fmt;
use core::num::{NonZeroU32, NonZeroU64};

/// A claim on one pending entry: where it is, and which tenant of that place it is.
///
/// [`insert`](crate::TimerQueue::insert) returns a handle, and
/// [`reschedule`](crate::TimerQueue::reschedule) returns the one to use from then on. A handle
/// goes *stale* when its entry fires or is cancelled, and may do so when it is rescheduled. A stale handle finds nothing: it does not
/// reach the entry that took the place afterwards. A queue may state after how many insertions a
/// generation comes again; [`Wheel`](crate::Wheel) does.
///
/// A handle belongs to the queue that made it. Another queue may find one of its own entries
/// under the same numbers, so do not mix them.
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
    /// The generation in the high word, the place in the low one. As one number they are stored and
    /// loaded at once; two halves that are stored apart and loaded together stall a processor.
    NonZeroU64,
);

const _: () = assert!(size_of::<Handle>() == 8, "a handle is 8 bytes");
const _: () = assert!(size_of::<Option<Handle>>() == 8, "no handle costs no more than a handle");

impl Handle {
    /// Makes a handle out of its parts. For those who implement
    /// [`TimerQueue`](crate::TimerQueue); a handle made up by a caller is only a stale one, or a
    /// guess.
    #[must_use]
    #[inline]
    pub const fn new(place: u32, generation: NonZeroU32) -> Self {
        let Some(both) = NonZeroU64::new((generation.get() as u64) << 32 | place as u64) else {
            unreachable!()
        };
        Self(both)
    }

    /// Where the entry is. The meaning of the number belongs to the queue that made the handle.
    #[must_use]
    #[inline]
    pub const fn place(self) -> u32 {
        self.0.get() as u32
    }

    /// Which tenant of the place the entry is. Never 0.
    #[must_use]
    #[inline]
    pub const fn generation(self) -> NonZeroU32 {
        let Some(generation) = NonZeroU32::new((self.0.get() >> 32) as u32) else { unreachable!() };
        generation
    }
}

impl Handle {
    /// Whether the tenant of the place with this generation is the one that is meant.
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
