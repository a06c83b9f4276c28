//! [`Handle`]: the caller's claim on one pending entry.

use core::num::NonZeroU32;

/// A claim on one pending entry: where it is, and which tenant of that place it is.
///
/// [`insert`](crate::TimerQueue::insert) returns a handle, and
/// [`reschedule`](crate::TimerQueue::reschedule) returns the one to use from then on. A handle
/// goes *stale* when its entry fires or is cancelled. A stale handle finds nothing: it never
/// reaches the entry that took the place afterwards.
///
/// A handle belongs to the queue that made it. Another queue may find one of its own entries
/// under the same numbers, so do not mix them.
///
/// It is 8 bytes and `Copy`, and so is `Option<Handle>` without growing, because a generation is
/// never 0. The order of handles has no meaning; it is there so that a handle can be the key of a
/// `BTreeMap`.
///
/// ```
/// use tickwheel_core::Handle;
/// assert_eq!(size_of::<Handle>(), 8);
/// assert_eq!(size_of::<Option<Handle>>(), 8);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle {
    place: u32,
    generation: NonZeroU32,
}

const _: () = assert!(size_of::<Handle>() == 8, "a handle is 8 bytes");
const _: () = assert!(size_of::<Option<Handle>>() == 8, "no handle costs no more than a handle");

impl Handle {
    /// Makes a handle out of its parts. For those who implement
    /// [`TimerQueue`](crate::TimerQueue); a handle made up by a caller is only a stale one, or a
    /// guess.
    #[must_use]
    pub const fn new(place: u32, generation: NonZeroU32) -> Self {
        Self { place, generation }
    }

    /// Where the entry is. The meaning of the number belongs to the queue that made the handle.
    #[must_use]
    pub const fn place(self) -> u32 {
        self.place
    }

    /// Which tenant of the place the entry is. Never 0.
    #[must_use]
    pub const fn generation(self) -> NonZeroU32 {
        self.generation
    }
}
