//! [`Number`]: which insertion an entry is.

use core::num::NonZeroU32;

/// The number of an insertion. The order of numbers is the order of insertions.
///
/// The low word is the generation of the handle, so numbers whose low word is 0 are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number(u64);

impl Number {
    pub(super) const FIRST: Self = Self(1);

    pub(super) const fn new(high: u32, generation: NonZeroU32) -> Self {
        Self((high as u64) << 32 | generation.get() as u64)
    }

    /// The next number. 2^64 insertions, one each nanosecond, take 584 years.
    #[inline]
    pub(super) const fn next(self) -> Self {
        let next = self.0 + 1;
        Self(if next as u32 == 0 { next + 1 } else { next })
    }

    #[inline]
    pub(super) const fn high(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    pub(super) const fn generation(self) -> NonZeroU32 {
        match NonZeroU32::new(self.0 as u32) {
            Some(generation) => generation,
            None => NonZeroU32::MIN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_is_never_zero_and_the_order_goes_on() {
        let last = Number::new(6, NonZeroU32::MAX);
        let next = last.next();
        assert!(last < next);
        assert_eq!((next.high(), next.generation().get()), (7, 1));
        assert_eq!((Number::FIRST.high(), Number::FIRST.generation().get()), (0, 1));
    }
}
