//! [`Histogram`]: latenesses (ms).

/// The upper bounds of the buckets (ms). One more bucket is beyond the last.
pub(super) const BOUNDS_MS: [i64; 9] = [1, 2, 5, 10, 20, 50, 100, 250, 1_000];

/// Counts of latenesses, and the values themselves for exact percentiles.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    values_ms: Vec<i64>,
}

impl Histogram {
    pub(super) fn add(&mut self, lateness_ms: i64) {
        self.values_ms.push(lateness_ms);
    }

    pub(super) fn count(&self) -> usize {
        self.values_ms.len()
    }

    pub(super) fn max_ms(&self) -> Option<i64> {
        self.values_ms.iter().copied().max()
    }

    /// The value that this percentage of the values does not exceed (nearest rank).
    pub(super) fn percentile_ms(&self, percent: usize) -> Option<i64> {
        let mut sorted = self.values_ms.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).copied()
    }

    /// One line for each bucket up to the last that is not empty: its name and its count.
    pub(super) fn buckets(&self) -> Vec<(String, usize)> {
        let mut lower = i64::MIN;
        let mut buckets = Vec::new();
        for bound in BOUNDS_MS.into_iter().chain([i64::MAX]) {
            let count = self.values_ms.iter().filter(|value| (lower..bound).contains(*value)).count();
            let name = if bound == i64::MAX { format!(">= {lower} ms") } else { format!("< {bound} ms") };
            buckets.push((name, count));
            lower = bound;
        }
        let used = buckets.iter().rposition(|(_, count)| *count > 0).map_or(0, |last| last + 1);
        buckets.truncate(used);
        buckets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_one_bucket() {
        let mut histogram = Histogram::default();
        for value in [0, 1, 1, 4, 999, 1_000, 70_000] {
            histogram.add(value);
        }
        let buckets = histogram.buckets();
        assert_eq!(buckets.iter().map(|(_, count)| count).sum::<usize>(), histogram.count());
        assert_eq!(buckets[0], ("< 1 ms".to_owned(), 1));
        assert_eq!(buckets[1], ("< 2 ms".to_owned(), 2));
        assert_eq!(buckets[9], (">= 1000 ms".to_owned(), 2));
        assert_eq!((histogram.percentile_ms(50), histogram.percentile_ms(99)), (Some(4), Some(70_000)));
        assert_eq!(Histogram::default().buckets(), []);
        assert_eq!(Histogram::default().percentile_ms(50), None);
    }
}
