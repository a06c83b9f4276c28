//! What one more task costs, from what many cost: all that a store holds besides its tasks falls out.

/// The slope of the straight line that is nearest to these points. Nothing for fewer than two sizes.
pub(crate) fn slope(points: &[(u64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let mean_n = points.iter().map(|(n, _)| *n as f64).sum::<f64>() / count;
    let mean = points.iter().map(|(_, value)| value).sum::<f64>() / count;
    let (mut together, mut square) = (0.0, 0.0);
    for (n, value) in points {
        let from_mean = *n as f64 - mean_n;
        together += from_mean * (value - mean);
        square += from_mean * from_mean;
    }
    (square > 0.0).then(|| together / square)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_have_in_common_falls_out() {
        assert_eq!(slope(&[(1_000, 5_000.0), (7_500, 31_000.0), (10_000, 41_000.0)]), Some(4.0));
        assert_eq!(slope(&[(1, 1.0), (2, 3.0), (3, 5.0)]), Some(2.0));
        assert_eq!(slope(&[(7, 1.0), (7, 2.0)]), None);
        assert_eq!(slope(&[]), None);
    }
}
