//! Counts on the command line.

/// A handle of a wheel has 32 bits for the place, and nothing here is measured with more.
const COUNT_MAX: u64 = 1_000_000_000;

/// Reads a whole number, or digits and a power of ten: 1e6, 25e5.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let (digits, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let number: Option<u64> = digits.replace('_', "").parse().ok();
    let power: Option<u32> = power.parse().ok();
    let n = number.zip(power).and_then(|(number, power)| number.checked_mul(10_u64.checked_pow(power)?));
    match n {
        Some(n) if (1..=COUNT_MAX).contains(&n) => Ok(n),
        Some(n) => Err(format!("{n} are too few or too many; from 1 to {COUNT_MAX}")),
        None => Err(format!("{text:?} is no count; write it like 250000 or 1e6")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_in_both_ways_of_writing() {
        let good = [
            ("1", 1),
            ("250000", 250_000),
            ("1e6", 1_000_000),
            ("25E5", 2_500_000),
            ("1_000", 1_000),
            ("1e0", 1),
        ];
        for (text, n) in good {
            assert_eq!(parse(text), Ok(n), "{text}");
        }
        for bad in ["", "e6", "1e", "1.5e6", "-1", "1e-3", "1e6x", "x"] {
            let error = parse(bad).expect_err(bad);
            assert!(error.contains("write it like"), "{error}");
        }
        for far in ["0", "0e9", "2e9", "1e19"] {
            assert!(parse(far).expect_err(far).contains("too few or too many"), "{far}");
        }
        assert!(parse("1e99").is_err());
    }
}
