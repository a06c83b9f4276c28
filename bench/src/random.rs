//! The random sequence: the same for every implementation.

/// SplitMix64, by Steele, Lea and Flood (2014): one addition, two multiplications, and every seed is good.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// All 64 bits.
    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `first` and one below `second`, both at most 2^32, out of one step.
    #[inline]
    pub(crate) fn two_below(&mut self, first: u64, second: u64) -> (u64, u64) {
        let bits = self.bits();
        (scaled(bits >> 32, first), scaled(bits & 0xffff_ffff, second))
    }

    /// A number below `limit`, which is at most 2^32.
    #[inline]
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        scaled(self.bits() >> 32, limit)
    }
}

/// The share of `limit` that `bits` are of 2^32.
#[inline]
const fn scaled(bits: u64, limit: u64) -> u64 {
    (bits * limit) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of seed 1234567, as the generator's authors published them.
    #[test]
    fn the_sequence_is_the_published_one() {
        let mut random = Random::new(1_234_567);
        let first = [random.bits(), random.bits(), random.bits()];
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn numbers_stay_below_their_limits_and_reach_them() {
        let mut random = Random::new(1);
        let mut seen = [[false; 3]; 2];
        for _ in 0..1_000 {
            let (first, second) = random.two_below(3, 2);
            seen[0][first as usize] = true;
            assert!(second < 2, "{second}");
            seen[1][random.below(3) as usize] = true;
        }
        assert_eq!(seen, [[true; 3]; 2]);
        assert_eq!(random.two_below(1, 1), (0, 0));
    }
}
