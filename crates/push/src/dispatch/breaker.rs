//! [`Breaker`]: how many messages may be under way to a target that fails.
//!
//! ```text
//! closed ── failures in a row, or a wish for silence ─▶ open ── its time is over ─▶ half open ── 3 successes, or one ─▶ closed, slowly
//!                                                        ▲                             │          and then a quiet time
//!                                                        └── a failure: twice as long ─┘
//! ```
//!
//! The pattern is from M. Nygard, *Release It!* (2007). The slow start after a close doubles as that of TCP does, so a target that has just
//! come back is not hit by the whole backlog at once.

/// The number of successes in a row that close a half-open breaker.
const SUCCESSES_TO_CLOSE: u32 = 3;

/// When a breaker opens, and for how long.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BreakerPlan {
    /// The breaker opens after this number of failures in a row, at least 1.
    pub failures: u32,
    /// How long the breaker is open the first time (ms), at least 1.
    pub open_ms: u64,
    /// The longest time for which the breaker is open (ms). The time doubles with each probe that fails.
    pub open_max_ms: u64,
}

impl Default for BreakerPlan {
    /// Returns the plan that opens after 10 failures, for 1 s to 60 s.
    fn default() -> Self {
        Self { failures: 10, open_ms: 1_000, open_max_ms: 60_000 }
    }
}

/// The state of a breaker.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum BreakerState {
    /// Messages are sent.
    Closed,
    /// Nothing is sent until the time is over.
    Open,
    /// One message at a time is sent, to see whether the target works again.
    HalfOpen,
}

/// The breaker of one target. Times are milliseconds of one monotonic clock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Breaker {
    plan: BreakerPlan,
    /// The largest number of messages under way, as the target's settings say.
    concurrency: usize,
    state: State,
    /// How long the breaker is open the next time.
    next_open_ms: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum State {
    Closed {
        failures: u32,
        /// The number of messages that may be under way now.
        limit: usize,
        /// Successes since `limit` was set.
        successes: usize,
    },
    Open {
        until_ms: u64,
    },
    HalfOpen {
        successes: u32,
    },
}

impl Breaker {
    /// Returns a closed breaker that lets `concurrency` messages be under way, at least 1.
    #[must_use]
    pub fn new(plan: BreakerPlan, concurrency: usize) -> Self {
        let concurrency = concurrency.max(1);
        let state = State::Closed { failures: 0, limit: concurrency, successes: 0 };
        Self { plan, concurrency, state, next_open_ms: plan.open_ms.max(1) }
    }

    /// Returns the state at `now_ms`.
    #[must_use]
    pub fn state(&self, now_ms: u64) -> BreakerState {
        match self.state {
            State::Closed { .. } => BreakerState::Closed,
            State::Open { until_ms } if now_ms < until_ms => BreakerState::Open,
            State::Open { .. } | State::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    /// Returns the number of messages that may be under way at `now_ms`.
    #[must_use]
    pub fn limit(&self, now_ms: u64) -> usize {
        match self.state(now_ms) {
            BreakerState::Open => 0,
            BreakerState::HalfOpen => 1,
            BreakerState::Closed => match self.state {
                State::Closed { limit, .. } => limit,
                State::Open { .. } | State::HalfOpen { .. } => unreachable!("the state is closed"),
            },
        }
    }

    /// Returns when an open breaker lets a message through again; `None`: the breaker is not open.
    #[must_use]
    pub fn opens_until(&self, now_ms: u64) -> Option<u64> {
        match self.state {
            State::Open { until_ms } if now_ms < until_ms => Some(until_ms),
            _ => None,
        }
    }

    /// Takes in that the other side answered a message well. A late answer to a message that was sent before the breaker opened does not
    /// close it.
    pub fn succeeded(&mut self, now_ms: u64) {
        if self.state(now_ms) == BreakerState::Open {
            return;
        }
        match &mut self.state {
            State::Closed { failures, limit, successes } => {
                *failures = 0;
                *successes += 1;
                if *successes >= *limit {
                    *limit = limit.saturating_mul(2).min(self.concurrency);
                    *successes = 0;
                }
            }
            State::Open { .. } => self.state = State::HalfOpen { successes: 1 },
            State::HalfOpen { successes } if *successes + 1 < SUCCESSES_TO_CLOSE => *successes += 1,
            State::HalfOpen { .. } => self.close(),
        }
    }

    /// Takes in that a lease call got no task in its time: nothing is ready, or the queue is paused or at a limit. If the last message to a half-open breaker was confirmed, the breaker closes:
    /// the target is shown as one that works, and it is still tried with one message first.
    pub fn quiet(&mut self) {
        if matches!(self.state, State::HalfOpen { .. }) {
            self.close();
        }
    }

    fn close(&mut self) {
        self.state = State::Closed { failures: 0, limit: 1, successes: 0 };
        self.next_open_ms = self.plan.open_ms.max(1);
    }

    /// Takes in a failure. `silence_ms`: the time for which the target asked for silence; the breaker then opens at once and at least for
    /// this time.
    pub fn failed(&mut self, now_ms: u64, silence_ms: Option<u64>) {
        let silence_end = silence_ms.map(|ms| now_ms.saturating_add(ms));
        match &mut self.state {
            // Late answers to messages that were sent before the breaker opened are no news, unless they ask for more silence.
            State::Open { until_ms } if now_ms < *until_ms => {
                *until_ms = (*until_ms).max(silence_end.unwrap_or(0));
            }
            State::Closed { failures, .. } if silence_ms.is_none() && *failures + 1 < self.plan.failures => {
                *failures += 1;
            }
            State::Closed { .. } | State::Open { .. } | State::HalfOpen { .. } => {
                let by_plan = now_ms.saturating_add(self.next_open_ms);
                self.state = State::Open { until_ms: by_plan.max(silence_end.unwrap_or(0)) };
                self.next_open_ms = self.next_open_ms.saturating_mul(2).min(self.plan.open_max_ms.max(1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: BreakerPlan = BreakerPlan { failures: 3, open_ms: 1_000, open_max_ms: 4_000 };

    fn opened(now_ms: u64) -> Breaker {
        let mut breaker = Breaker::new(PLAN, 8);
        (0..3).for_each(|_| breaker.failed(now_ms, None));
        breaker
    }

    #[test]
    fn failures_in_a_row_open_it_and_a_success_between_them_does_not() {
        let mut breaker = Breaker::new(PLAN, 8);
        breaker.failed(0, None);
        breaker.failed(0, None);
        breaker.succeeded(0);
        breaker.failed(0, None);
        breaker.failed(0, None);
        assert_eq!((breaker.state(0), breaker.limit(0)), (BreakerState::Closed, 8));
        breaker.failed(0, None);
        assert_eq!((breaker.state(999), breaker.limit(999)), (BreakerState::Open, 0));
        assert_eq!(breaker.opens_until(0), Some(1_000));
        assert_eq!((breaker.state(1_000), breaker.limit(1_000)), (BreakerState::HalfOpen, 1));
        assert_eq!(breaker.opens_until(1_000), None);
    }

    #[test]
    fn each_probe_that_fails_doubles_the_time_up_to_the_longest() {
        let mut breaker = opened(0);
        let mut now = 0;
        for wait in [1_000, 2_000, 4_000, 4_000] {
            assert_eq!(breaker.opens_until(now), Some(now + wait));
            now += wait;
            breaker.failed(now, None);
        }
    }

    #[test]
    fn three_successes_close_it_and_the_limit_then_doubles() {
        let mut breaker = opened(0);
        breaker.succeeded(1_000);
        breaker.succeeded(1_000);
        assert_eq!(breaker.state(1_000), BreakerState::HalfOpen);
        breaker.succeeded(1_000);
        assert_eq!((breaker.state(1_000), breaker.limit(1_000)), (BreakerState::Closed, 1));
        let limits: Vec<usize> = (0..16)
            .map(|_| {
                breaker.succeeded(1_000);
                breaker.limit(1_000)
            })
            .collect();
        assert_eq!(limits, [2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8]);
        (0..3).for_each(|_| breaker.failed(1_000, None));
        assert_eq!(breaker.opens_until(1_000), Some(2_000), "after a close the first time is the short one");
    }

    #[test]
    fn one_success_and_a_quiet_time_close_it_and_a_quiet_time_alone_does_not() {
        let mut breaker = opened(0);
        breaker.quiet();
        assert_eq!((breaker.state(0), breaker.state(1_000)), (BreakerState::Open, BreakerState::HalfOpen));
        breaker.quiet();
        assert_eq!(
            breaker.state(1_000),
            BreakerState::HalfOpen,
            "no message has shown that the target works"
        );
        breaker.succeeded(1_000);
        breaker.quiet();
        assert_eq!((breaker.state(1_000), breaker.limit(1_000)), (BreakerState::Closed, 1));
    }

    #[test]
    fn a_wish_for_silence_opens_it_at_once_and_a_late_one_makes_it_longer() {
        let mut breaker = Breaker::new(PLAN, 8);
        breaker.failed(0, Some(30_000));
        assert_eq!(breaker.opens_until(0), Some(30_000));
        breaker.failed(10, None);
        breaker.succeeded(20);
        assert_eq!(breaker.opens_until(20), Some(30_000), "late answers change nothing");
        breaker.failed(30, Some(60_000));
        assert_eq!(breaker.opens_until(30), Some(60_030));
        let mut short = Breaker::new(PLAN, 8);
        short.failed(0, Some(0));
        assert_eq!(short.opens_until(0), Some(1_000), "a wish for less than the plan is no reason to hurry");
    }

    #[test]
    fn it_always_comes_back() {
        use proptest::prelude::*;
        proptest!(|(events in proptest::collection::vec((0_u64..10_000, 0_u8..4), 0..200))| {
            let mut breaker = Breaker::new(PLAN, 5);
            let mut now = 0;
            for (later, what) in events {
                now += later;
                match what {
                    0 if later % 4 == 0 => breaker.quiet(),
                    0 => breaker.succeeded(now),
                    1 => breaker.failed(now, Some(later)),
                    _ => breaker.failed(now, None),
                }
                prop_assert!(breaker.limit(now) <= 5);
                let open = breaker.state(now) == BreakerState::Open;
                prop_assert_eq!(open, breaker.limit(now) == 0);
                prop_assert_eq!(open, breaker.opens_until(now).is_some());
                prop_assert!(breaker.opens_until(now).is_none_or(|until| until <= now + 10_000));
            }
            now += 10_000;
            (0..3 + 1 + 2 + 4).for_each(|_| breaker.succeeded(now));
            prop_assert_eq!((breaker.state(now), breaker.limit(now)), (BreakerState::Closed, 5));
        });
    }
}
