//! W5: of N pending timers a random one is moved, again and again, while no time passes.
//!
//! First to a random time, which is as often earlier as later. Then always to a later time than any timer has yet, as a
//! connection's time-out is when something was heard from it. An implementation may put work off until the old deadline, so
//! in the end time passes until all have fired, and that is a figure too.

use super::effort::{DELAY_MAX, Effort};
use super::subject::{Fired, Subject};
use crate::cpu::CpuTime;
use crate::random::Random;
use crate::sample::Sample;

/// What moves.
struct Moves<'a, S: Subject> {
    subject: &'a mut S,
    handles: &'a mut [S::Handle],
    random: &'a mut Random,
}

impl<S: Subject> Moves<'_, S> {
    /// Moves one after the other to the deadline made of the step and a random delay. Returns how many, and nanoseconds.
    fn run(&mut self, effort: Effort, moves: u64, deadline: impl Fn(u64, u64) -> u64) -> (u64, f64) {
        let n = self.handles.len() as u64;
        let mut step = 0;
        effort.measure(moves, |block| {
            for _ in 0..block {
                let (index, delay) = self.random.two_below(n, DELAY_MAX);
                self.subject.reschedule(&mut self.handles[index as usize], deadline(step, delay));
                step += 1;
            }
        })
    }
}

/// Measures `2 n` moves of each kind, or at least 2,000,000. The random ones are preceded by half as many to warm up.
pub(crate) fn sample<S: Subject>(n: u64, effort: Effort) -> Sample {
    let moves = effort.operations(2 * n);
    let mut subject = S::new();
    let mut random = Random::new(5);
    let mut handles: Vec<S::Handle> =
        (0..n).map(|value| subject.insert(1 + random.below(DELAY_MAX), value)).collect();
    let anywhere = |_: u64, delay: u64| 1 + delay;
    // Over all moves the last deadline goes as far out again as it was.
    let later = |step: u64, _: u64| DELAY_MAX + 1 + step * DELAY_MAX / moves;
    let mut timed = Moves { subject: &mut subject, handles: &mut handles, random: &mut random };
    timed.run(effort, moves / 2, anywhere);
    let (randomly, random_nanos) = timed.run(effort, moves, anywhere);
    let (later, later_nanos) = timed.run(effort, moves, later);

    let begun = CpuTime::now();
    let mut fired = Fired::default();
    for tick in 1..=2 * DELAY_MAX + 1 {
        fired += subject.advance(tick);
    }
    let drain_ns = begun.elapsed_nanos() / n as f64;
    assert_eq!(fired.count, n, "every timer fires once");
    handles.into_iter().for_each(|handle| subject.release(handle));

    let mut sample = Sample { measured: randomly + later, ..Sample::default() };
    sample.figure("random_ns", random_nanos / randomly as f64);
    sample.figure("later_ns", later_nanos / later as f64);
    sample.figure("drain_ns", drain_ns);
    sample.check("fired", fired.count);
    if S::KNOWS_VALUES {
        sample.check("sum", fired.sum);
    }
    sample
}
