//! [`accept`]: the check of a deadline that every queue of this module makes first.

use crate::refusal::Objection;

/// The deadline that an entry gets: `deadline`, rounded up to a multiple of `tick`.
///
/// The deadline is rounded up, because an entry may fire late by less than a tick, but never early. A deadline that does not fit into 64
/// bits after rounding is refused as too far; a smaller deadline instead would fire too early.
pub(super) fn accept(deadline: u64, now: u64, tick: u64) -> Result<u64, Objection> {
    if deadline == u64::MAX {
        return Err(Objection::TooFar);
    }
    if deadline <= now {
        return Err(Objection::Elapsed);
    }
    match deadline.checked_next_multiple_of(tick) {
        Some(rounded) if rounded < u64::MAX => Ok(rounded),
        Some(_) | None => Err(Objection::TooFar),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_rounded_up_and_never_wraps() {
        assert_eq!(accept(8, 7, 10), Ok(10));
        assert_eq!(accept(10, 7, 10), Ok(10));
        assert_eq!(accept(11, 7, 10), Ok(20));
        assert_eq!(accept(u64::MAX - 1, 7, 1), Ok(u64::MAX - 1));
        // 2^64 - 1 is a multiple of 3, but it is not a valid deadline. The next multiple of 10 does not fit into 64 bits.
        assert_eq!(accept(u64::MAX - 1, 7, 3), Err(Objection::TooFar));
        assert_eq!(accept(u64::MAX - 1, 7, 10), Err(Objection::TooFar));
    }

    #[test]
    fn what_has_elapsed_is_told_by_the_deadline_that_was_asked_for() {
        // The deadline 5 is before now; rounded up to 10, it would be after now.
        assert_eq!(accept(5, 7, 10), Err(Objection::Elapsed));
        assert_eq!(accept(7, 7, 10), Err(Objection::Elapsed));
        assert_eq!(accept(u64::MAX, u64::MAX, 1), Err(Objection::TooFar));
    }
}
