//! [`Bucket`]: the token bucket that limits how fast a queue hands its tasks out.

use crate::settings::Rate;

/// A token bucket: tells how many deliveries may begin now. The bucket counts time in units: one nanosecond has `rate.tasks` units. So one
/// token is a whole number of units, and the count of tokens is exact. Beside the rate, the bucket stores one number: the instant from
/// which on the bucket is full if no token is taken (the generic cell rate algorithm, ITU-T I.371).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Bucket {
    rate: Rate,
    full_at: u128,
}

const NS_PER_MS: u128 = 1_000_000;

impl Bucket {
    fn full(rate: Rate) -> Self {
        Self { rate, full_at: 0 }
    }

    /// Makes a bucket with `tokens` tokens in it, or a full bucket if `tokens` is more than the burst.
    pub(super) fn holding(rate: Rate, tokens: u64, mono_ns: u64) -> Self {
        let bucket = Self::full(rate);
        let missing = u128::from(rate.burst.saturating_sub(tokens)).saturating_mul(bucket.token());
        Self { full_at: bucket.at(mono_ns).saturating_add(missing), ..bucket }
    }

    /// Makes an empty bucket. An engine that starts does not know how many deliveries began before the start. So the new bucket allows no
    /// burst.
    pub(super) fn empty(rate: Rate, mono_ns: u64) -> Self {
        Self::holding(rate, 0, mono_ns)
    }

    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    fn at(&self, mono_ns: u64) -> u128 {
        u128::from(mono_ns) * u128::from(self.rate.tasks)
    }

    fn token(&self) -> u128 {
        u128::from(self.rate.per_ms) * NS_PER_MS
    }

    /// Returns the units of a full bucket. The product saturates, but only for rates far beyond every real rate.
    fn whole(&self) -> u128 {
        u128::from(self.rate.burst).saturating_mul(self.token())
    }

    /// Returns how many tokens are in the bucket now.
    pub(super) fn tokens(&self, mono_ns: u64) -> u64 {
        let missing = self.full_at.saturating_sub(self.at(mono_ns));
        u64::try_from(self.whole().saturating_sub(missing) / self.token()).unwrap_or(u64::MAX)
    }

    /// Returns when the bucket has at least one token (monotonic ms, rounded up). If the bucket has a token now, the result is at most the
    /// present time, rounded up.
    pub(super) fn next_ms(&self) -> u64 {
        let spare = self.whole() - self.token();
        let ns = self.full_at.saturating_sub(spare).div_ceil(u128::from(self.rate.tasks));
        u64::try_from(ns.div_ceil(NS_PER_MS)).unwrap_or(u64::MAX)
    }

    /// Takes `tokens` tokens out of the bucket. The bucket must have at least `tokens` tokens.
    pub(super) fn take(&mut self, tokens: u64, mono_ns: u64) {
        debug_assert!(tokens <= self.tokens(mono_ns), "{tokens} of {} tokens", self.tokens(mono_ns));
        let taken = u128::from(tokens).saturating_mul(self.token());
        self.full_at = self.full_at.max(self.at(mono_ns)).saturating_add(taken);
    }

    /// Puts one token back, because the delivery that took the token reached no worker.
    pub(super) fn put_back(&mut self) {
        self.full_at = self.full_at.saturating_sub(self.token());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> u64 {
        ms * 1_000_000
    }

    #[test]
    fn it_never_gives_more_than_the_burst_and_what_has_come_back() {
        let rate = Rate { tasks: 3, per_ms: 1_000, burst: 5 };
        let mut bucket = Bucket::full(rate);
        assert_eq!(bucket.tokens(0), 5);
        bucket.take(5, 0);
        assert_eq!((bucket.tokens(0), bucket.next_ms()), (0, 334));
        assert_eq!((bucket.tokens(ms(333)), bucket.tokens(ms(334))), (0, 1));
        assert_eq!(
            bucket.tokens(ms(1_000)),
            3,
            "a third of a second is no whole number of ns, and nothing is lost"
        );
        assert_eq!(bucket.tokens(ms(100_000)), 5);
        bucket.take(1, ms(100_000));
        bucket.put_back();
        assert_eq!(bucket.tokens(ms(100_000)), 5);
    }

    #[test]
    fn an_empty_one_fills_as_one_that_was_emptied() {
        let rate = Rate { tasks: 5, per_ms: 1_000, burst: 2 };
        let bucket = Bucket::empty(rate, ms(70));
        assert_eq!((bucket.tokens(ms(70)), bucket.next_ms()), (0, 270));
        assert_eq!((bucket.tokens(ms(269)), bucket.tokens(ms(270)), bucket.tokens(ms(470))), (0, 1, 2));
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        for rate in [
            Rate { tasks: u64::MAX, per_ms: u64::MAX, burst: u64::MAX },
            Rate { tasks: 1, per_ms: u64::MAX, burst: 1 },
            Rate { tasks: u64::MAX, per_ms: 1, burst: 1 },
        ] {
            let mut bucket = Bucket::empty(rate, u64::MAX);
            bucket.put_back();
            bucket.take(bucket.tokens(u64::MAX), u64::MAX);
            assert!(bucket.next_ms() > 0, "{bucket:?}");
        }
    }

    /// Makes many pseudo-random steps. Then adds up, for each step, the tokens that the bucket gave in this step and in the next steps, one
    /// by one up to 39.
    #[test]
    fn over_any_stretch_it_stays_below_rate_and_burst() {
        let rate = Rate { tasks: 7, per_ms: 300, burst: 4 };
        let (mut bucket, mut now, mut state, mut given) = (Bucket::full(rate), 0_u64, 5_u64, Vec::new());
        for _ in 0..5_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            now += (state >> 40) % 90_000_000;
            let tokens = bucket.tokens(now).min(1 + (state >> 60));
            bucket.take(tokens, now);
            given.push((now, tokens));
        }
        for (index, &(start, _)) in given.iter().enumerate() {
            let mut sum = 0;
            for &(at, tokens) in given[index..].iter().take(40) {
                sum += tokens;
                let most = u128::from(rate.burst)
                    + u128::from(at - start) * u128::from(rate.tasks) / (u128::from(rate.per_ms) * NS_PER_MS)
                    + 1;
                assert!(u128::from(sum) <= most, "{sum} between {start} and {at}, at most {most}");
            }
        }
    }
}
