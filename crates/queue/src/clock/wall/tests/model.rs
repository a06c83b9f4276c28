//! Compares the guard with a model that keeps the whole history: which times the guard may believe, and which times it has to believe.

use super::*;

const MS: i128 = 1_000_000;
const MINUTE: i128 = 60 * SECOND;
const HOUR: i128 = 60 * MINUTE;
/// How far a clock may be slewed on one line (ns): once when the line is left, and once when the clock returns to the line.
const SLEWED: i128 = 2 * 500 * MS;

/// A small random generator (xorshift) with a fixed seed, so that a failure can be repeated.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn pick(&mut self, of: &[i128]) -> i128 {
        of[usize::try_from(self.below(of.len() as u64)).expect("it is small")]
    }
}

/// One reading of the clocks: the age of the guard, the monotonic time, the wall time that was shown, and the wall time that was believed.
/// Both wall times are offsets against the age of the guard.
#[derive(Copy, Clone, Debug)]
struct Look {
    age_ns: i128,
    mono_ns: i128,
    shown_ns: i128,
    believed_ns: i128,
}

/// Returns how long the clock was believed at about this offset or ahead of it, and the age of the guard when this was last so.
fn trusted(history: &[Look], offset_ns: i128) -> Option<(i128, i128)> {
    let is_on = |look: &Look| look.believed_ns + SLEWED >= offset_ns;
    let spans = history.windows(2).filter(|pair| is_on(&pair[0]));
    let held_ns = spans.map(|pair| pair[1].age_ns - pair[0].age_ns).sum();
    let last = history.iter().rev().find(|look| is_on(look))?;
    Some((held_ns, last.age_ns))
}

/// Whether a clock that returns to exactly this offset has to be believed: the clock was at this offset, without a break, for at least as
/// long as it was away. Meanwhile an hour passed at most, and the believed offset changed fewer than 16 times.
fn must_return(history: &[Look], offset_ns: i128, age_ns: i128) -> bool {
    let is_on = |look: &Look| look.believed_ns == offset_ns && look.shown_ns == offset_ns;
    let Some(last) = history.iter().rposition(is_on) else { return false };
    let first = history[..last].iter().rposition(|look| !is_on(look)).map_or(0, |before| before + 1);
    let held_ns = history[last].age_ns - history[first].age_ns;
    let steps = history[last..].windows(2).filter(|pair| pair[0].believed_ns != pair[1].believed_ns).count();
    age_ns - history[last].age_ns <= held_ns.min(HOUR) && steps < 16
}

/// Returns how long the wall clock has gone at the same pace as the other clocks, without a step (monotonic ns).
fn stood_ns(history: &[Look], now: Look) -> i128 {
    let mut since = now;
    for look in history.iter().rev() {
        if (look.shown_ns - since.shown_ns).abs() > 500 * MS {
            break;
        }
        since = *look;
    }
    now.mono_ns - since.mono_ns
}

fn next_offset(draw: &mut Draw, shown_ns: i128, history: &[Look]) -> i128 {
    match draw.below(20) {
        0..3 => shown_ns - draw.pick(&[SECOND, MINUTE, 6 * MINUTE, HOUR, 24 * HOUR]),
        3..6 => {
            let at = draw.below(history.len() as u64);
            history[usize::try_from(at).expect("it is small")].believed_ns
                + draw.pick(&[0, 0, 0, 400 * MS, -SECOND])
        }
        6 => shown_ns + draw.pick(&[SECOND, 4 * MINUTE, 6 * MINUTE, HOUR]),
        7 => shown_ns + draw.pick(&[1, -1, 100 * MS, -100 * MS, 499 * MS]),
        _ => shown_ns,
    }
}

#[test]
fn it_believes_what_it_may_and_what_it_has_to() {
    let (mut returns, mut doubts, mut stands) = (0_u32, 0_u32, 0_u32);
    for seed in 1..4_000_u64 {
        let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let start_ns = 1_000_000 * HOUR;
        let mut guard = WallGuard::new(Reading { mono_ns: 0, boot_ns: 0, wall_ns: start_ns, width_ns: 0 });
        let first = Look { age_ns: 0, mono_ns: 0, shown_ns: start_ns, believed_ns: start_ns };
        let mut history = vec![first];
        for _ in 0..60 {
            let last = *history.last().expect("it has begun");
            let passed_ns =
                draw.pick(&[MS, SECOND, SECOND, SECOND, 5 * SECOND, 30 * SECOND, 61 * SECOND, HOUR / 2]);
            let ran_ns = if draw.below(20) == 0 { 0 } else { passed_ns };
            let shown_ns = next_offset(&mut draw, last.shown_ns, &history);
            let (age_ns, mono_ns) = (last.age_ns + passed_ns, last.mono_ns + ran_ns);
            let ns = |ns: i128| u64::try_from(ns).expect("it fits");
            let reading = Reading {
                mono_ns: ns(mono_ns),
                boot_ns: ns(age_ns),
                wall_ns: shown_ns + age_ns,
                width_ns: 0,
            };
            let believed_ns = guard.observe(reading) - age_ns;
            let now = Look { age_ns, mono_ns, shown_ns, believed_ns };

            let told = || format!("seed {seed}: {now:?} after {history:#?}");
            let is_ahead = shown_ns - last.believed_ns > 5 * MINUTE;
            let stood = stood_ns(&history, now) >= MINUTE;
            assert!(
                believed_ns == shown_ns || believed_ns == last.believed_ns,
                "it makes times up; {}",
                told()
            );
            if !is_ahead {
                assert_eq!(believed_ns, shown_ns, "nothing was to be doubted; {}", told());
            } else if believed_ns == shown_ns && !stood {
                let trusted = trusted(&history, shown_ns);
                let (held_ns, left_ns) = trusted.unwrap_or_else(|| panic!("never believed; {}", told()));
                assert!(age_ns - left_ns <= held_ns.min(HOUR), "too long ago; {}", told());
                returns += 1;
            } else if believed_ns != shown_ns {
                assert!(!must_return(&history, shown_ns, age_ns), "a return is doubted; {}", told());
                doubts += 1;
            } else {
                stands += 1;
            }
            history.push(now);
        }
    }
    assert!(
        returns > 1_000 && doubts > 1_000 && stands > 1_000,
        "{returns} {doubts} {stands}: each has to be met"
    );
}
