//! Edges of time: instants and distances at which errors of programs are likely.

use crate::rng::Rng;

/// A minute, an hour, a day, thirty days, a year, a hundred years (ms).
const SPANS_MS: [u64; 6] = [60_000, 3_600_000, 86_400_000, 2_592_000_000, 31_536_000_000, 3_153_600_000_000];

/// Instants at which programs have made errors (ms since the Unix epoch).
const INSTANTS_MS: [i64; 5] = [
    0,
    2_147_483_647_000, // the last second of 32 bits
    4_294_967_295_000, // the same without a sign
    1_490_490_000_000, // 2017-03-26T01:00Z: clocks go forward in Europe
    1_509_238_800_000, // 2017-10-29T01:00Z: clocks go back
];

/// The first readings of the wall clock that a run may have (ms since the Unix epoch).
pub(crate) const STARTS_MS: [u64; 6] = [
    1_500_000_000_000,         // a Friday in 2017
    1_503_238_553_600 - 2_000, // just before the low 32 bits of milliseconds are all 0
    2_147_483_647_000 - 5_000, // 2038
    1_490_489_999_000,         // a second before a change of clocks
    1_709_164_800_000 - 500,   // the last half second before a 29 February
    1_483_228_799_000,         // a second before a leap second
];

/// An instant close to the next begin of a slot, on a random level of a wheel with 256 slots.
pub(crate) fn slot_edge(rng: &mut Rng, wall_ms: i64) -> i64 {
    let bits = 8 * rng.below(5);
    let edge = ((wall_ms.max(0) as u64 >> bits) + rng.between(1, 2)) << bits;
    around(rng, i64::try_from(edge).unwrap_or(i64::MAX))
}

/// An instant close to the next multiple, since the Unix epoch, of a minute, an hour, a day, 30 days, a year or 100 years.
pub(crate) fn calendar_edge(rng: &mut Rng, wall_ms: i64) -> i64 {
    let span = rng.pick(&SPANS_MS);
    let edge = (wall_ms.max(0) as u64 / span + rng.between(1, 2)) * span;
    around(rng, i64::try_from(edge).unwrap_or(i64::MAX))
}

/// An instant close to one at which programs have made errors.
pub(crate) fn known_instant(rng: &mut Rng) -> i64 {
    let instant = rng.pick(&INSTANTS_MS);
    around(rng, instant)
}

/// A distance up to an hour, a day, 30 days, a year or 100 years (ms), often close to that bound.
pub(crate) fn far(rng: &mut Rng) -> u64 {
    let most = rng.pick(&SPANS_MS[1..]);
    if rng.chance(30) { most - 1 + rng.below(3) } else { rng.between(1, most) }
}

/// A distance from 1 ms to about ten years (ms). Each power of ten is as likely as the others.
pub(crate) fn any_length(rng: &mut Rng) -> u64 {
    let most = 10_u64.pow(rng.between(0, 11) as u32);
    rng.between(1, most * 3)
}

/// How far the wall clock is inside a millisecond when the monotonic clock begins one (ns).
pub(crate) fn part_of_a_millisecond(rng: &mut Rng) -> u64 {
    let any = rng.below(1_000_000);
    rng.pick(&[0, 0, 1, 999_999, any, any])
}

fn around(rng: &mut Rng, instant_ms: i64) -> i64 {
    instant_ms.saturating_add(rng.below(3) as i64 - 1).max(0)
}
