//! [`Spread`]: how late many were, in a few figures.

use crate::sample::Sample;

const SHARES: [(&str, f64); 3] = [("p50_us", 0.5), ("p99_us", 0.99), ("max_us", 1.0)];

/// Lateness, sorted, in nanoseconds; negative is early.
#[derive(Debug)]
pub(crate) struct Spread(Vec<i64>);

impl Spread {
    pub(crate) fn new(mut lateness: Vec<i64>) -> Self {
        lateness.sort_unstable();
        Self(lateness)
    }

    /// The value that `share` of all are not above; zero if there are none.
    fn quantile_us(&self, share: f64) -> f64 {
        let place = (self.0.len() as f64 * share).ceil() as usize;
        let place = place.clamp(1, self.0.len().max(1)) - 1;
        self.0.get(place).map_or(0.0, |&nanos| nanos as f64 / 1e3)
    }

    /// How many were early.
    pub(crate) fn early(&self) -> usize {
        self.0.partition_point(|&nanos| nanos < 0)
    }

    /// The middle, the 99th of a hundred, and the latest.
    pub(crate) fn figures(&self, sample: &mut Sample, prefix: &str) {
        for (name, share) in SHARES {
            sample.figure(&format!("{prefix}{name}"), self.quantile_us(share));
        }
    }

    /// The ratios of the same three to those of another.
    pub(crate) fn ratios(&self, other: &Self, sample: &mut Sample, prefix: &str, divisor: &str) {
        for (name, share) in SHARES {
            let by = other.quantile_us(share);
            if by > 0.0 {
                sample.figure(&format!("{prefix}{name}/{divisor}"), self.quantile_us(share) / by);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_those_of_the_sorted_values() {
        let spread = Spread::new((-2..98).rev().map(|micros| micros * 1_000).collect());
        let mut sample = Sample::default();
        spread.figures(&mut sample, "a_");
        let expected = [("a_p50_us", 47.0), ("a_p99_us", 96.0), ("a_max_us", 97.0)];
        assert_eq!(sample.figures, expected.map(|(name, value)| (name.to_owned(), value)));
        assert_eq!(spread.early(), 2);

        let mut sample = Sample::default();
        spread.ratios(&Spread::new(vec![-1_000, 0, 94_000]), &mut sample, "a_", "b");
        // Nothing is divided by nothing.
        let expected = [("a_p99_us/b", 96.0 / 94.0), ("a_max_us/b", 97.0 / 94.0)];
        assert_eq!(sample.figures, expected.map(|(name, value)| (name.to_owned(), value)));
    }

    #[test]
    fn one_and_none_have_figures_too() {
        assert_eq!(Spread::new(vec![5_000]).quantile_us(0.99), 5.0);
        let none = Spread::new(Vec::new());
        assert_eq!((none.quantile_us(0.5), none.early()), (0.0, 0));
    }
}
