//! W3: requests with a time-out of 30 s, of which 99 in 100 are answered after 1 to 50 ms.
//!
//! In each tick what is due fires, the requests that were answered are cancelled, and new ones are started. For each of the
//! next 50 ticks there is a list of the handles to cancel then; that is part of the work for everybody.

use super::effort::Effort;
use super::subject::{Fired, Subject};
use crate::cpu::CpuTime;
use crate::random::Random;
use crate::sample::Sample;

const TIMEOUT: u64 = 30_000;
const ANSWER_MAX: usize = 50;
/// Beyond the first time-outs, so that as many leave as come.
const WARM_UP: u64 = TIMEOUT + 2_000;
const MEASURED: u64 = 10_000;

/// A server with requests in flight.
struct Requests<S: Subject> {
    subject: S,
    answers: [Vec<S::Handle>; ANSWER_MAX + 1],
    random: Random,
    per_tick: u64,
    next_value: u64,
    fired: Fired,
    cancelled: Fired,
}

impl<S: Subject> Requests<S> {
    fn tick(&mut self, now: u64) {
        self.fired += self.subject.advance(now);
        let slot = now as usize % self.answers.len();
        let mut answered = std::mem::take(&mut self.answers[slot]);
        for handle in answered.drain(..) {
            self.cancelled.one(self.subject.cancel(handle));
        }
        // The memory of the list is used again.
        self.answers[slot] = answered;
        for value in self.next_value..self.next_value + self.per_tick {
            let handle = self.subject.insert(now + TIMEOUT, value);
            let (fate, wait) = self.random.two_below(100, ANSWER_MAX as u64);
            if fate == 0 {
                self.subject.release(handle);
            } else {
                let slot = (now as usize + 1 + wait as usize) % self.answers.len();
                self.answers[slot].push(handle);
            }
        }
        self.next_value += self.per_tick;
    }
}

/// Measures 10,000 ticks, after 32,000 to warm up, with so many requests in each that about `n` time-outs wait for their
/// end: `n / 300` of them.
pub(crate) fn sample<S: Subject>(n: u64, effort: Effort) -> Sample {
    let mut requests: Requests<S> = Requests {
        subject: S::new(),
        answers: std::array::from_fn(|_| Vec::new()),
        random: Random::new(3),
        per_tick: (n / 300).max(1),
        next_value: 0,
        fired: Fired::default(),
        cancelled: Fired::default(),
    };
    (1..=WARM_UP).for_each(|now| requests.tick(now));
    let begun = CpuTime::now();
    let mut measured = 0;
    let mut nanos = 0.0;
    while measured < MEASURED && nanos < effort.nanos_max() {
        for _ in 0..100 {
            measured += 1;
            requests.tick(WARM_UP + measured);
        }
        nanos = begun.elapsed_nanos();
    }
    let timers = measured * requests.per_tick;
    let mut sample = Sample { measured: timers, ..Sample::default() };
    sample.figure("timer_ns", nanos / timers as f64);
    if measured == MEASURED {
        sample.check("fired", requests.fired.count);
        sample.check("answered", requests.cancelled.count);
        sample.check("answered_sum", requests.cancelled.sum);
        if S::KNOWS_VALUES {
            sample.check("fired_sum", requests.fired.sum);
        }
    }
    for handle in requests.answers.into_iter().flatten() {
        requests.subject.release(handle);
    }
    sample
}
