//! Tasks that run again and again.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

use tickwheel::{Missed, Monotonic, Refusal, Timeout, TimeoutState, Timer};

use super::cancel::quietly;
use super::stage::{Dice, Stage, at_ms, ms};

#[test]
fn pt1_a_period_of_zero_is_refused() {
    let stage = Stage::new();
    assert_eq!(stage.timer.every(Duration::ZERO).start(|| ()).unwrap_err().why, Refusal::NoPeriod);
    assert_eq!(stage.timer.fixed_delay(Duration::ZERO).start(|| ()).unwrap_err().why, Refusal::NoPeriod);
    assert_eq!(stage.timer.pending(), 0);
    // A nanosecond is a valid period: the task runs on every tick.
    let log = stage.log();
    stage.timer.every(Duration::from_nanos(1)).start(move || log.write(1)).unwrap();
    for _ in 0..3 {
        stage.advance(1);
    }
    assert_eq!(stage.ran(), [(1, 1), (2, 1), (3, 1)]);
}

#[test]
fn pt2_a_fixed_delay_counts_from_the_end() {
    let stage = Stage::new();
    let (log, clock) = (stage.log(), stage.clock.clone());
    let mut took = 0;
    let start = stage.timer.fixed_delay(ms(10)).start(move || {
        log.write(1);
        took += 7;
        clock.advance(ms(took));
    });
    start.unwrap();
    let mut expected = Vec::new();
    let mut begins = 10;
    for cycle in 1..=8 {
        expected.push((begins, 1));
        begins += 7 * cycle + 10;
    }
    while stage.timer.now().as_nanos() < 400_000_000 {
        stage.advance(1);
    }
    let ran = stage.ran();
    assert_eq!(ran[..8], expected);
}

#[test]
fn pt2_the_first_run_may_have_a_delay_of_its_own() {
    let stage = Stage::new();
    let (rate, delay) = (stage.log(), stage.log());
    stage.timer.every(ms(10)).first(ms(3)).start(move || rate.write(1)).unwrap();
    stage.timer.fixed_delay(ms(10)).first(Duration::ZERO).start(move || delay.write(2)).unwrap();
    assert_eq!(stage.ran(), [(0, 2)]);
    for _ in 0..25 {
        stage.advance(1);
    }
    assert_eq!(stage.ran(), [(3, 1), (10, 2), (13, 1), (20, 2), (23, 1)]);
}

/// A period of 1.5 ms is not a multiple of the tick of 1 ms. Single runs are up to a tick late. After a thousand
/// runs the lateness is not larger.
#[test]
fn pt3_a_fixed_rate_does_not_drift() {
    let stage = Stage::new();
    let log = stage.log();
    stage.timer.every(Duration::from_micros(1_500)).start(move || log.write(1)).unwrap();
    for _ in 0..1_500 {
        stage.advance(1);
    }
    let ran = stage.ran();
    assert_eq!(ran.len(), 1_000);
    for (number, (at, _)) in ran.into_iter().enumerate() {
        let scheduled = 1_500 * (number as u64 + 1);
        assert_eq!(at, scheduled.div_ceil(1_000), "run {number}");
    }
}

/// A test on the system's clock and a pool: runs of a body that takes longer than its period do not overlap.
#[test]
fn pt3_runs_of_one_task_never_overlap() {
    let timer = Timer::new().unwrap();
    let (sender, receiver) = mpsc::channel();
    let running = AtomicBool::new(false);
    let task = timer.every(Duration::from_micros(100)).missed(Missed::Burst).start(move || {
        let alone = !running.swap(true, Ordering::SeqCst);
        for _ in 0..2_000 {
            std::hint::spin_loop();
        }
        running.store(false, Ordering::SeqCst);
        let _ = sender.send(alone);
    });
    let task = task.unwrap();
    assert!(receiver.iter().take(200).all(|alone| alone));
    assert!(task.cancel());
}

/// The run of 300 takes 650 ms. After it, each turn of the timer is an advance by zero, as turns of a driver's
/// thread would be.
fn after_a_stall(missed: Missed) -> Vec<u64> {
    let stage = Stage::new();
    let (log, clock) = (stage.log(), stage.clock.clone());
    let mut first = true;
    let body = move || {
        log.write(1);
        if std::mem::take(&mut first) {
            clock.advance(ms(650));
        }
    };
    stage.timer.every(ms(300)).missed(missed).start(body).unwrap();
    stage.advance(300);
    while stage.timer.now().as_nanos() < 1_900_000_000 {
        for _ in 0..3 {
            stage.clock.advance(Duration::ZERO);
        }
        stage.advance(1);
    }
    stage.ran().into_iter().map(|(at, _)| at).collect()
}

#[test]
fn pt5_a_burst_catches_up() {
    assert_eq!(after_a_stall(Missed::Burst), [300, 950, 950, 1_200, 1_500, 1_800]);
}

#[test]
fn pt6_a_delay_begins_a_new_grid() {
    assert_eq!(after_a_stall(Missed::Delay), [300, 950, 1_250, 1_550, 1_850]);
}

#[test]
fn pt7_a_skip_keeps_the_old_grid() {
    assert_eq!(after_a_stall(Missed::Skip), [300, 950, 1_200, 1_500, 1_800]);
}

/// The story: a period of 1 ns comes out of a division, and the task used half a processor with runs that were due at once. A period below
/// the tick is one tick. The timer does not refuse it, because the tick is the builder's choice, which a library that is given a timer does
/// not know.
#[test]
fn pt16_a_period_below_the_tick_is_one_tick() {
    for period in [Duration::from_nanos(1), Duration::from_micros(999), ms(1)] {
        for missed in [Missed::Burst, Missed::Delay, Missed::Skip] {
            let stage = Stage::new();
            let log = stage.log();
            stage.timer.every(period).missed(missed).start(move || log.write(1)).unwrap();
            let log = stage.log();
            stage.timer.fixed_delay(period).start(move || log.write(2)).unwrap();
            for _ in 0..100 {
                stage.clock.advance(Duration::from_micros(100));
            }
            let ran = stage.ran();
            let of = |name| ran.iter().filter(|run| run.1 == name).map(|run| run.0).collect::<Vec<_>>();
            let each_tick = (1..=10).collect::<Vec<_>>();
            assert_eq!((of(1), of(2)), (each_tick.clone(), each_tick), "{period:?}, {missed:?}");
            // A stall of four ticks, which is below the tolerance of 5 ms.
            stage.advance(4);
            for _ in 0..20 {
                stage.clock.advance(Duration::from_micros(100));
            }
            let ran: Vec<_> = stage.ran().into_iter().filter(|run| run.1 == 1).map(|run| run.0).collect();
            if missed == Missed::Burst {
                assert_eq!(ran, [14, 14, 14, 14, 15, 16]);
            } else {
                assert_eq!(ran, [14, 15, 16], "{period:?}, {missed:?}");
            }
        }
    }
}

#[test]
fn pt9_a_periodic_task_lives_on_after_a_panic() {
    for fixed_delay in [false, true] {
        let stage = Stage::new();
        let log = stage.log();
        let mut run = 0;
        let body = move || {
            run += 1;
            log.write(run);
            assert!(run % 2 == 0, "a run that panics on purpose");
        };
        let task = match fixed_delay {
            true => stage.timer.fixed_delay(ms(10)).start(body).unwrap(),
            false => stage.timer.every(ms(10)).start(body).unwrap(),
        };
        quietly(|| {
            for _ in 0..4 {
                stage.advance(10);
            }
        });
        assert_eq!(stage.ran(), [(10, 1), (20, 2), (30, 3), (40, 4)]);
        let metrics = stage.timer.metrics();
        assert_eq!((metrics.panicked, metrics.fired, metrics.pending), (2, 4, 1));
        assert!(task.cancel());
    }
}

/// After ten minutes of suspend, each policy makes its number of runs.
#[test]
fn pt10_a_long_halt_is_answered_by_the_policy() {
    for (missed, runs) in [(Missed::Skip, 1), (Missed::Delay, 1), (Missed::Burst, 600)] {
        let stage = Stage::new();
        let log = stage.log();
        stage.timer.every(ms(1_000)).missed(missed).start(move || log.write(1)).unwrap();
        stage.advance(600_000);
        for _ in 0..1_000 {
            stage.clock.advance(Duration::ZERO);
        }
        assert_eq!(stage.ran().len(), runs, "{missed:?}");
    }
}

#[test]
fn pt11_the_longest_delay_does_not_turn_into_the_past() {
    for long in [Duration::from_nanos(i64::MAX as u64), Duration::MAX] {
        let stage = Stage::starting_at(7, |builder| builder);
        let (delay, rate) = (stage.log(), stage.log());
        stage.timer.fixed_delay(long).first(Duration::ZERO).start(move || delay.write(1)).unwrap();
        stage.timer.every(long).first(Duration::ZERO).start(move || rate.write(2)).unwrap();
        for _ in 0..100 {
            stage.advance(1_000);
        }
        assert_eq!(stage.ran(), [(7, 1), (7, 2)]);
        assert_eq!(stage.timer.pending(), 2);
    }
}

/// Ten thousand random timers, twice. Both runs give exactly the same list.
#[test]
fn pt12_a_clock_moved_by_hand_gives_the_same_run_twice() {
    let run = || {
        let stage = Stage::new();
        let mut dice = Dice(12);
        for name in 0..10_000 {
            stage.schedule(Duration::from_nanos(dice.below(3_600_000_000_000)), name);
        }
        while stage.timer.pending() > 0 {
            stage.clock.advance(Duration::from_nanos(dice.below(60_000_000_000)));
        }
        stage.ran()
    };
    let first = run();
    assert_eq!(first.len(), 10_000);
    assert_eq!(first, run());
}

#[test]
fn a_periodic_task_is_cancelled_between_runs_and_inside_one() {
    let stage = Stage::new();
    let log = stage.log();
    let task = stage.timer.every(ms(10)).start(move || log.write(1)).unwrap();
    stage.advance(10);
    assert!(task.cancel() && !task.cancel());
    stage.advance(100);
    assert_eq!(stage.ran(), [(10, 1)]);

    let own: Arc<OnceLock<Timeout>> = Arc::default();
    let (seen, said) = (Arc::clone(&own), Arc::new(AtomicU64::new(0)));
    let counted = Arc::clone(&said);
    let held = Arc::new(());
    let captured = Arc::clone(&held);
    let task = stage.timer.every(ms(10)).start(move || {
        let _ = &captured;
        let own: &Timeout = seen.get().unwrap();
        counted.fetch_add(u64::from(own.cancel()) + 10 * u64::from(own.cancel()), Ordering::Relaxed);
    });
    let task = task.unwrap();
    own.set(task.clone()).unwrap();
    stage.advance(10);
    stage.advance(100);
    assert_eq!(said.load(Ordering::Relaxed), 1, "it ran once, and cancel said yes once");
    assert_eq!((task.state(), stage.timer.pending()), (TimeoutState::Cancelled, 0));
    assert_eq!(Arc::strong_count(&held), 1, "what it captured is dropped");
    let metrics = stage.timer.metrics();
    assert_eq!(metrics.accepted, metrics.fired + metrics.cancelled);
}

#[test]
fn a_periodic_task_that_is_moved_goes_on_from_there() {
    let stage = Stage::new();
    let log = stage.log();
    let task = stage.timer.every(ms(10)).start(move || log.write(1)).unwrap();
    stage.advance(5);
    assert!(task.reschedule(ms(2)));
    for _ in 0..25 {
        stage.advance(1);
    }
    assert_eq!(stage.ran(), [(7, 1), (17, 1), (27, 1)]);
}

/// The first run is at 0 and the period is 300 ms, but the task is started at 950.
#[test]
fn pt14_a_task_may_begin_in_the_past() {
    let late = |missed| {
        let stage = Stage::starting_at(950, |builder| builder);
        let log = stage.log();
        stage.timer.every(ms(300)).first_at(at_ms(0)).missed(missed).start(move || log.write(1)).unwrap();
        stage.advance(0);
        let at_once = stage.ran().len();
        for _ in 950..1_900 {
            stage.advance(1);
        }
        (at_once, stage.ran().into_iter().map(|(at, _)| at).collect::<Vec<_>>())
    };
    // Each turn by hand runs one body of a burst.
    let (at_once, then) = late(Missed::Burst);
    assert_eq!(at_once + then.iter().filter(|at| **at < 960).count(), 4, "0, 300, 600, 900: {then:?}");
    assert_eq!(then.into_iter().filter(|at| *at >= 960).collect::<Vec<_>>(), [1_200, 1_500, 1_800]);
    assert_eq!(late(Missed::Delay), (1, vec![1_250, 1_550, 1_850]));
    assert_eq!(late(Missed::Skip), (1, vec![1_200, 1_500, 1_800]));
}

#[test]
fn pt14_a_fixed_delay_may_begin_in_the_past_and_has_missed_nothing() {
    let stage = Stage::starting_at(950, |builder| builder);
    let log = stage.log();
    stage.timer.fixed_delay(ms(300)).first_at(at_ms(0)).start(move || log.write(1)).unwrap();
    stage.clock.advance_through(ms(700));
    assert_eq!(stage.ran(), [(950, 1), (1_250, 1), (1_550, 1)]);
}

/// The story: the timer's tick is an hour, and a report is to run now and then once a day. The first run waited for the next hour.
#[test]
fn pt14_a_first_run_at_once_does_not_wait_for_the_next_tick() {
    let second = Duration::from_secs;
    for (number, nanos) in [0, 1, 15, 16, 1_500_000_001].into_iter().enumerate() {
        for back in [0, 1, 500_000_000] {
            let stage = Stage::starting_at(0, |builder| builder.tick(second(3_600)));
            let now = stage.clock.advance(second(5_000) + Duration::from_nanos(nanos));
            let log = stage.log();
            let every = stage.timer.every(second(7_200));
            let past = Monotonic::from_nanos(now.as_nanos() - back);
            let every = if back == 0 { every.first(Duration::ZERO) } else { every.first_at(past) };
            let task = every.start(move || log.write(1)).unwrap();
            let log = stage.log();
            stage.timer.fixed_delay(second(7_200)).first_at(past).start(move || log.write(2)).unwrap();
            let (begun, later) = (stage.ran(), stage.schedule(Duration::ZERO, 3));
            assert_eq!(begun.len(), 2, "case {number}, {back} ns back: {begun:?}");
            // The grid begins at the instant that was asked for, to 15 ns.
            let next = past.saturating_add(second(7_200));
            let off = task.deadline().as_nanos().checked_sub(next.as_nanos());
            assert!(off.is_some_and(|off| off < 16), "{:?} for {next:?}", task.deadline());
            assert_eq!(later.deadline().saturating_since(now).as_nanos() / 16, 0);
            stage.clock.advance_through(second(7_200));
            assert_eq!(stage.ran().into_iter().map(|(_, name)| name).collect::<Vec<_>>(), [3]);
            stage.clock.advance_through(second(3_600));
            assert_eq!(stage.ran().len(), 2, "case {number}, {back} ns back");
        }
    }
}

/// The story: as above, with the clock of the system. The driver sleeps until an hour has passed, and is woken.
#[test]
fn pt14_a_first_run_at_once_wakes_the_driver() {
    let timer = Timer::builder().tick(Duration::from_secs(3_600)).build().unwrap();
    // The driver knows of a deadline at the next tick, so it would sleep until that.
    let _far = timer.schedule(Duration::from_secs(1), || ()).unwrap();
    for _ in 0..100 {
        let (sender, ran) = mpsc::channel();
        let task = timer.every(Duration::from_secs(3_600)).first(Duration::ZERO);
        let task = task.start(move || sender.send(()).unwrap()).unwrap();
        ran.recv_timeout(Duration::from_secs(60)).expect("it runs before the tick of an hour");
        task.cancel();
    }
}

#[test]
fn pt15_a_burst_that_is_moved_into_the_past_makes_up_for_all_from_there() {
    for (missed, expected) in [(Missed::Burst, 4), (Missed::Skip, 1), (Missed::Delay, 1)] {
        let stage = Stage::starting_at(950, |builder| builder);
        let log = stage.log();
        let task = stage.timer.every(ms(300)).missed(missed).start(move || log.write(1)).unwrap();
        assert!(task.reschedule_at(at_ms(0)));
        for _ in 0..10 {
            stage.advance(0);
        }
        assert_eq!(stage.ran(), vec![(950, 1); expected], "{missed:?}");
    }
}
