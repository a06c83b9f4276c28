//! [`Number`]: the number of an insertion.

use core::num::NonZeroU32;

/// The number of an insertion. Later insertions have higher numbers.
///
/// The low word is the generation of the handle. Numbers whose low word is 0 are skipped, because a generation is never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number {
    pub(super) high: u32,
    pub(super) generation: NonZeroU32,
}

impl Number {
    pub(super) const FIRST: Self = Self { high: 0, generation: NonZeroU32::MIN };

    /// The next number. It cannot overflow: 2^64 insertions, at one per nanosecond, take 584 years.
    #[inline]
    pub(super) const fn next(self) -> Self {
        match self.generation.checked_add(1) {
            Some(generation) => Self { high: self.high, generation },
            None => Self { high: self.high + 1, generation: NonZeroU32::MIN },
        }
    }

    /// The number as one word, which sorts faster.
    #[inline]
    pub(super) const fn key(self) -> u64 {
        (self.high as u64) << 32 | self.generation.get() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_is_never_zero_and_the_order_goes_on() {
        let last = Number { high: 6, generation: NonZeroU32::MAX };
        let next = last.next();
        assert!(last.key() < next.key());
        assert_eq!((next.high, next.generation.get()), (7, 1));
        assert_eq!(Number::FIRST.next().generation.get(), 2);
    }
}
