//! [`Bits`]: a set of slots of a fan, by their index.

/// A set of numbers below 256, in 32 bytes. Every operation reads at most four words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bits([u64; 4]);

impl Bits {
    pub(super) const EMPTY: Self = Self([0; 4]);

    pub(super) fn set(&mut self, index: u8) {
        self.0[usize::from(index >> 6)] |= 1 << (index & 63);
    }

    pub(super) fn clear(&mut self, index: u8) {
        self.0[usize::from(index >> 6)] &= !(1 << (index & 63));
    }

    #[cfg(test)]
    pub(super) fn contains(&self, index: u8) -> bool {
        self.0[usize::from(index >> 6)] & 1 << (index & 63) != 0
    }

    /// The smallest member.
    pub(super) fn first(&self) -> Option<u8> {
        let word = self.0.iter().position(|&word| word != 0)?;
        Some((word << 6) as u8 | self.0[word].trailing_zeros() as u8)
    }

    pub(super) fn words(self) -> [u64; 4] {
        self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::EMPTY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_member_is_the_smallest_across_words() {
        let mut bits = Bits::EMPTY;
        assert_eq!(bits.first(), None);
        for index in [255, 192, 191, 128, 127, 64, 63, 1, 0] {
            bits.set(index);
            assert_eq!(bits.first(), Some(index));
        }
        for index in [0, 1, 63, 64, 127, 128, 191, 192, 255] {
            assert_eq!(bits.first(), Some(index));
            bits.clear(index);
        }
        assert!(bits.is_empty());
    }
}
