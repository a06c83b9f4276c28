//! W2: N timers are started, and then time passes tick by tick until all of them have fired.
//!
//! The array of handles is written by everybody and read by nobody.

use super::effort::{DELAY_MAX, Effort};
use super::subject::{Fired, Subject};
use crate::cpu::CpuTime;
use crate::random::Random;
use crate::sample::Sample;

/// Measures passes of N timers each, until there were 2,000,000 timers, after one pass to warm up.
pub(crate) fn sample<S: Subject>(n: u64, effort: Effort) -> Sample {
    let mut subject = S::new();
    let mut handles = Vec::with_capacity(n as usize);
    let mut random = Random::new(2);
    let (mut inserted, mut expired, mut fired) = (0.0, 0.0, Fired::default());
    let passes = effort.operations(n).div_ceil(n);
    let mut measured = 0;
    for pass in 0..=passes {
        let start = pass * (DELAY_MAX + 1);
        let begun = CpuTime::now();
        for value in pass * n..(pass + 1) * n {
            handles.push(subject.insert(start + 1 + random.below(DELAY_MAX), value));
        }
        let insertion = begun.elapsed_nanos();
        let begun = CpuTime::now();
        let mut in_pass = Fired::default();
        for tick in start + 1..=start + DELAY_MAX {
            in_pass += subject.advance(tick);
        }
        let expiry = begun.elapsed_nanos();
        assert_eq!(in_pass.count, n, "every timer fires in its pass");
        subject.advance(start + DELAY_MAX + 1);
        handles.drain(..).for_each(|handle| subject.release(handle));
        if pass > 0 {
            inserted += insertion;
            expired += expiry;
            measured += n;
            fired += in_pass;
        }
        if inserted + expired > effort.nanos_max() {
            break;
        }
    }
    let mut sample = Sample { measured, ..Sample::default() };
    sample.figure("insert_ns", inserted / measured as f64);
    sample.figure("expire_ns", expired / measured as f64);
    sample.figure("sum_ns", (inserted + expired) / measured as f64);
    if measured == passes * n {
        sample.check("fired", fired.count);
        if S::KNOWS_VALUES {
            sample.check("sum", fired.sum);
        }
    }
    sample
}
