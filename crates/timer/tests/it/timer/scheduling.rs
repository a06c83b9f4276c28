//! When tasks run: never early, in order, once.

use std::future::{Future, pending};
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use tickwheel::{Clock, Monotonic, Timeout, TimeoutState};

use super::stage::{Dice, Stage, at_ms, ms};

#[test]
fn t1_what_is_due_already_runs_at_once() {
    let stage = Stage::starting_at(100, |builder| builder);
    for early in 1..=5 {
        let log = stage.log();
        stage.timer.schedule_at(at_ms(100 - early), move || log.write(early)).unwrap();
    }
    assert_eq!(stage.ran(), [(100, 1), (100, 2), (100, 3), (100, 4), (100, 5)]);
    // A deadline at the present reading is due at once. A nanosecond later is the next tick.
    let log = stage.log();
    stage.timer.schedule_at(at_ms(100), move || log.write(6)).unwrap();
    assert_eq!(stage.ran(), [(100, 6)]);
    stage.schedule(Duration::from_nanos(1), 7);
    assert_eq!(stage.ran(), []);
    stage.advance(1);
    assert_eq!(stage.ran(), [(101, 7)]);
}

#[test]
fn t2_no_delay_is_the_next_turn_and_once() {
    let stage = Stage::new();
    let timeout = stage.schedule(Duration::ZERO, 1);
    assert_eq!(timeout.deadline(), stage.clock.now());
    assert_eq!(stage.ran(), [(0, 1)]);
    // In the middle of a tick the task runs at the next tick, because a deadline is rounded up.
    stage.clock.advance(Duration::from_micros(500));
    stage.schedule(Duration::ZERO, 2);
    assert_eq!(stage.ran(), []);
    stage.clock.advance(Duration::from_micros(499));
    assert_eq!(stage.ran(), []);
    stage.clock.advance(Duration::from_micros(1));
    assert_eq!(stage.ran(), [(1, 2)]);
    stage.advance(10_000);
    assert_eq!(stage.ran(), []);
}

#[test]
fn t4_a_task_waits_for_its_own_deadline_and_not_for_others() {
    let stage = Stage::new();
    let long = stage.schedule(ms(10_000), 10);
    let short = stage.schedule(ms(2_000), 2);
    stage.advance(1_999);
    assert_eq!(stage.ran(), []);
    stage.advance(1_001);
    assert_eq!(stage.ran(), [(3_000, 2)]);
    assert_eq!((long.state(), short.state()), (TimeoutState::Pending, TimeoutState::Fired));
    stage.advance(6_999);
    assert_eq!(stage.ran(), []);
    stage.advance(1);
    assert_eq!(stage.ran(), [(10_000, 10)]);
}

#[test]
fn t5_a_nanosecond_beyond_a_tick_is_the_next_tick() {
    for (nanos, fires_at) in [(999_984, 1), (1_000_000, 1), (1_000_001, 2), (1_999_999, 2), (2_000_000, 2)] {
        for start in [0, 16, 500_000, 999_999] {
            let stage = Stage::new();
            stage.clock.advance(Duration::from_nanos(start));
            stage.schedule(Duration::from_nanos(nanos), 1);
            // The clock is moved to the last nanosecond before the tick of start + delay.
            let deadline = (start + nanos).div_ceil(1_000_000) * 1_000_000;
            if start == 0 {
                assert_eq!(deadline, fires_at * 1_000_000);
            }
            stage.clock.advance(Duration::from_nanos(deadline - start - 1));
            assert_eq!(stage.ran(), [], "{nanos} ns from {start}");
            stage.clock.advance(Duration::from_nanos(1));
            assert_eq!(stage.ran().len(), 1, "{nanos} ns from {start}");
        }
    }
}

#[test]
fn t6_the_longest_delay_is_not_the_past() {
    for delay in [ms(i64::MAX as u64), Duration::MAX, Duration::from_nanos(u64::MAX)] {
        let stage = Stage::starting_at(5, |builder| builder);
        let timeout = stage.schedule(delay, 1);
        assert!(timeout.deadline() > stage.clock.now());
        stage.advance(1_000);
        assert_eq!((stage.ran(), timeout.state()), (vec![], TimeoutState::Pending));
        assert_eq!(stage.timer.pending(), 1);
        assert!(timeout.cancel());
        assert_eq!(stage.timer.pending(), 0);
    }
}

/// A body that records 0 and schedules itself anew, again and again.
fn again(stage: &Stage, delay: Duration) {
    let next = stage.clone();
    let scheduled = stage.timer.schedule(delay, move || {
        next.log().write(0);
        again(&next, delay);
    });
    scheduled.unwrap();
}

#[test]
fn t8_a_body_may_schedule_itself() {
    let stage = Stage::with(|builder| builder.tick(ms(100)));
    again(&stage, ms(100));
    for _ in 0..50 {
        stage.advance(100);
    }
    let ran = stage.ran();
    assert_eq!(
        ran.iter().map(|(at, _)| *at).collect::<Vec<_>>(),
        (1..=50).map(|n| n * 100).collect::<Vec<_>>()
    );
    assert_eq!(stage.timer.shutdown().len(), 1);
    stage.advance(1_000);
    assert_eq!(stage.ran(), []);
}

#[test]
fn t9_a_body_that_schedules_without_delay_keeps_nobody_from_running() {
    let stage = Stage::new();
    // The task runs in this call, and the task that it schedules waits for the next.
    again(&stage, Duration::ZERO);
    assert_eq!(stage.ran(), [(0, 0)]);
    stage.schedule(ms(1), 1);
    stage.schedule(ms(2), 2);
    stage.ran();
    stage.advance(1);
    assert_eq!(stage.ran(), [(1, 0), (1, 1)]);
    stage.clock.advance(Duration::ZERO);
    assert_eq!(stage.ran(), [(1, 0)]);
    stage.advance(1);
    assert_eq!(stage.ran(), [(2, 0), (2, 2)]);
    assert_eq!(stage.timer.shutdown().len(), 1);
}

#[test]
fn t10_a_late_turn_fires_what_is_due_and_nothing_else() {
    let stage = Stage::new();
    for deadline in (1..=20).rev() {
        stage.schedule(ms(deadline), deadline);
    }
    stage.clock.advance(Duration::from_micros(7_999));
    assert_eq!(stage.ran(), (1..=7).map(|name| (7, name)).collect::<Vec<_>>());
    stage.clock.advance(Duration::ZERO);
    assert_eq!(stage.ran(), []);
    stage.clock.advance(Duration::from_micros(1));
    assert_eq!(stage.ran(), [(8, 8)]);
    stage.advance(100);
    assert_eq!(stage.ran(), (9..=20).map(|name| (108, name)).collect::<Vec<_>>());
}

#[test]
fn t30_a_moved_task_runs_at_its_last_deadline_alone() {
    let stage = Stage::new();
    let timeout = stage.schedule(ms(10), 1);
    let other = stage.schedule(ms(30), 2);
    for _ in 0..100 {
        stage.advance(5);
        assert!(timeout.reschedule(ms(10)));
    }
    assert_eq!(stage.ran(), [(30, 2)]);
    assert!(!other.reschedule(ms(1)), "it has run");
    // The task is moved earlier, later and earlier again, before and after the timer has looked at it.
    assert!(timeout.reschedule(ms(3)) && timeout.reschedule(ms(50)) && timeout.reschedule(ms(7)));
    stage.advance(6);
    assert_eq!(stage.ran(), []);
    stage.advance(1);
    assert_eq!(stage.ran(), [(507, 1)]);
    assert!(!timeout.reschedule(ms(1)));
    // The task is far ahead in the wheel, and the next look at its slot is long after the new deadline.
    for delays in [&[7][..], &[3, 50, 7]] {
        let timeout = stage.schedule(ms(500), 3);
        stage.advance(1);
        assert!(delays.iter().all(|&delay| timeout.reschedule(ms(delay))));
        stage.advance(6);
        assert_eq!(stage.ran(), []);
        stage.advance(1);
        assert_eq!(stage.ran().len(), 1, "moved to {delays:?}");
    }
    stage.advance(1_000);
    assert_eq!((stage.ran(), stage.timer.pending()), (vec![], 0));
}

/// The timer is told of each move to an earlier deadline, after any number of earlier moves.
#[test]
fn t30_a_task_may_be_moved_to_earlier_again_and_again() {
    let stage = Stage::new();
    let timeout = stage.schedule(ms(1_000), 1);
    stage.advance(1);
    for earlier in [500, 400, 300, 200, 100] {
        assert!(timeout.reschedule_at(at_ms(earlier)));
        stage.advance(1);
    }
    stage.advance(93);
    assert_eq!(stage.ran(), []);
    stage.advance(1);
    assert_eq!(stage.ran(), [(100, 1)]);
}

#[test]
fn a_task_moved_to_now_runs_at_once() {
    let stage = Stage::new();
    let timeout = stage.schedule(ms(10), 1);
    stage.advance(1);
    assert!(timeout.reschedule(Duration::ZERO));
    assert_eq!(stage.ran(), [(1, 1)]);
    let timeout = stage.schedule(ms(10), 2);
    stage.advance(1);
    assert!(timeout.reschedule_at(at_ms(0)));
    assert_eq!(stage.ran(), [(2, 2)]);
}

#[test]
fn k7_a_task_fires_at_its_deadline_and_not_one_tick_later() {
    let stage = Stage::new();
    stage.schedule(ms(100), 1);
    stage.advance(100);
    assert_eq!(stage.ran(), [(100, 1)]);
}

#[test]
fn a_clock_that_goes_through_stops_where_something_is_due() {
    let stage = Stage::new();
    for (delay, name) in [(30, 3), (10, 1), (20, 2), (50, 5)] {
        stage.schedule(ms(delay), name);
    }
    let inner = stage.clone();
    stage.timer.schedule(ms(15), move || drop(inner.schedule(ms(10), 25))).unwrap();
    stage.clock.advance_through(ms(40));
    assert_eq!(stage.ran(), [(10, 1), (20, 2), (25, 25), (30, 3)]);
    assert_eq!(stage.clock.now(), at_ms(40));
    stage.clock.advance_through(ms(10));
    assert_eq!(stage.ran(), [(50, 5)]);
    // The timer does not stop at the old deadline of a task that was moved later, or it stops and finds no due task.
    let moved = stage.schedule(ms(10), 6);
    stage.advance(1);
    assert!(moved.reschedule(ms(19)));
    stage.clock.advance_through(ms(100));
    assert_eq!((stage.ran(), stage.clock.now()), (vec![(70, 6)], at_ms(151)));
}

/// Time passes even if a body schedules itself again and again.
#[test]
fn t9_a_restless_body_does_not_hold_a_clock_that_goes_through() {
    let stage = Stage::new();
    again(&stage, Duration::ZERO);
    stage.clock.advance_through(ms(10));
    let ran = stage.ran().len();
    assert!((10..=25).contains(&ran), "it ran {ran} times in ten ticks");
    assert_eq!(stage.timer.shutdown().len(), 1);
}

/// Many tasks that stay pending are filed long before they are due, even if no other event wakes the driver. So they need not all be
/// filed at their deadline.
#[test]
fn a_crowd_is_filed_ahead_of_time() {
    let stage = Stage::new();
    stage.schedule(ms(10), 0);
    stage.advance(1);
    let crowd: Vec<Timeout> = (0..10_000).map(|name| stage.schedule(ms(3_600_000), name)).collect();
    assert!(crowd.iter().all(Timeout::cancel));
    let unfiled = stage.timer.metrics().cancelled_unfiled;
    assert!(unfiled < 5_000, "{unfiled} of them were never looked at");
}

/// Random scripts, compared with a list sorted by (tick, number), from several starts and with several ticks.
#[test]
fn tasks_fire_as_a_sorted_list_says() {
    for seed in 0..200 {
        let mut dice = Dice(seed);
        let tick_us = [1_000, 100, 7_000][dice.below(3) as usize];
        let start_ns = dice.below(50_000_000);
        let stage = Stage::with(|builder| builder.tick(Duration::from_micros(tick_us)));
        stage.clock.advance(Duration::from_nanos(start_ns));
        let tick = tick_us * 1_000;
        let mut model: Vec<(u64, u64)> = Vec::new();
        let mut handles = Vec::new();
        let mut now = start_ns;
        for name in 0..dice.below(200) {
            match dice.below(4) {
                0 | 1 => {
                    let delay = dice.below(40_000_000);
                    handles.push((name, stage.schedule(Duration::from_nanos(delay), name)));
                    // Deadlines are stored in steps of 16 ns, rounded up, and so are ticks.
                    model.push(((now + delay).next_multiple_of(16).div_ceil(tick), name));
                }
                2 if !handles.is_empty() => {
                    let (name, timeout) = &handles[dice.below(handles.len() as u64) as usize];
                    let pending = model.iter().any(|(_, pending)| pending == name);
                    assert_eq!(timeout.cancel(), pending, "seed {seed}");
                    model.retain(|(_, pending)| pending != name);
                }
                _ => {
                    let step = dice.below(20_000_000);
                    now += step;
                    stage.clock.advance(Duration::from_nanos(step));
                }
            }
            let mut due: Vec<(u64, u64)> = Vec::new();
            model.retain(|entry| {
                let waits = entry.0 > now / tick;
                if !waits {
                    due.push(*entry);
                }
                waits
            });
            due.sort_unstable();
            let ran: Vec<u64> = stage.ran().into_iter().map(|(_, name)| name).collect();
            assert_eq!(ran, due.into_iter().map(|(_, name)| name).collect::<Vec<_>>(), "seed {seed}");
            assert_eq!(stage.timer.pending(), model.len(), "seed {seed}");
        }
    }
}

/// A body is already in a turn, so nothing else is handed over while it moves the clock through a span. Tasks that became due by then
/// run after it, within the outer call that moved the clock.
#[test]
fn a_body_that_goes_through_a_span_gets_to_its_end() {
    let stage = Stage::new();
    let inner = stage.clone();
    stage.schedule(ms(20), 2);
    let goes = move || {
        inner.clock.advance_through(Duration::from_secs(3_600));
        inner.log().write(1);
    };
    stage.timer.schedule(ms(10), goes).unwrap();
    stage.advance(10);
    assert_eq!(stage.ran(), [(3_600_010, 1), (3_600_010, 2)]);
}

/// With a tick of 1,200 ns, the last instant that an entry can have is a multiple of the tick. With a tick of 1,285 ns, the end of
/// the clock is one.
#[test]
fn t33_the_end_of_the_clock_is_never() {
    for tick in [1_000, 1_200, 1_285, 1_000_000] {
        let near_the_end = |builder: tickwheel::TimerBuilder| builder.tick(Duration::from_nanos(tick));
        let stage = Stage::starting_at(u64::MAX / 1_000_000 - 1_000, near_the_end);
        let log = stage.log();
        let never = stage.timer.schedule_at(Monotonic::MAX, move || log.write(1)).unwrap();
        stage.schedule(Duration::MAX, 2);
        let put_off = stage.schedule(ms(10), 3);
        assert!(put_off.reschedule_at(Monotonic::MAX));
        let log = stage.log();
        stage.timer.every(ms(1)).first_at(Monotonic::MAX).start(move || log.write(4)).unwrap();
        let mut sleep = pin!(stage.timer.sleep_until(Monotonic::MAX));
        let mut limit = pin!(stage.timer.timeout(Duration::MAX, pending::<()>()));
        let mut context = Context::from_waker(Waker::noop());
        assert!(sleep.as_mut().poll(&mut context).is_pending());
        assert!(limit.as_mut().poll(&mut context).is_pending());
        stage.schedule(ms(500), 5);
        assert_eq!(stage.clock.advance_through(Duration::MAX), Monotonic::MAX);
        let ran: Vec<u64> = stage.ran().into_iter().map(|(_, name)| name).collect();
        assert_eq!(ran, [5], "tick {tick}");
        assert!(sleep.as_mut().poll(&mut context).is_pending(), "tick {tick}");
        assert!(limit.as_mut().poll(&mut context).is_pending(), "tick {tick}");
        let mut late = pin!(stage.timer.sleep_until(Monotonic::MAX));
        assert!(
            late.as_mut().poll(&mut context).is_pending(),
            "tick {tick}: it begins when the clock has ended"
        );
        stage.schedule(Duration::ZERO, 6);
        assert_eq!(stage.ran(), [], "now is never, too");
        assert_eq!(never.deadline(), Monotonic::MAX);
        assert!(never.reschedule_at(at_ms(1)));
        stage.advance(0);
        let ran: Vec<u64> = stage.ran().into_iter().map(|(_, name)| name).collect();
        assert_eq!(ran, [1], "tick {tick}");
        assert_eq!(stage.timer.shutdown().len(), 4, "tick {tick}: 2, 3, 4 and 6");
    }
}
