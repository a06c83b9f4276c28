//! The limit of a timer, and its counters.

use std::error::Error;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tickwheel::{BuildError, ManualClock, Refusal, Timeout, Timer};

use super::queued::Queued;
use super::stage::{Dice, Stage, ms};

#[test]
fn t20_beyond_the_limit_a_task_comes_back() {
    let stage = Stage::with(|builder| builder.max_pending(2));
    stage.schedule(ms(5_000), 1);
    stage.schedule(ms(5_000), 2);
    let log = stage.log();
    let refused = stage.timer.schedule(ms(5_000), move || log.write(3)).unwrap_err();
    assert_eq!(refused.why, Refusal::Full);
    assert_eq!(stage.timer.metrics().refused, 1);
    // The same task comes back.
    (refused.task)();
    assert_eq!(stage.ran(), [(0, 3)]);
    stage.advance(5_000);
    assert_eq!(stage.ran(), [(5_000, 1), (5_000, 2)]);
}

#[test]
fn t21_a_task_that_has_run_makes_room() {
    let stage = Stage::with(|builder| builder.max_pending(2).tick(ms(25)));
    stage.schedule(ms(100), 1);
    stage.schedule(ms(200), 2);
    assert!(stage.timer.schedule(ms(1), || ()).is_err());
    stage.advance(100);
    stage.schedule(ms(100), 3);
    assert!(stage.timer.schedule(ms(1), || ()).is_err());
    stage.advance(100);
    assert_eq!(stage.ran(), [(100, 1), (200, 2), (200, 3)]);
    // A cancelled task also makes a place free, filed or not.
    let filed = stage.schedule(ms(500), 4);
    stage.advance(25);
    let unfiled = stage.schedule(ms(500), 5);
    assert!(stage.timer.schedule(ms(1), || ()).is_err());
    assert!(filed.cancel() && unfiled.cancel());
    stage.schedule(ms(500), 6);
    stage.schedule(ms(500), 7);
    assert!(stage.timer.schedule(ms(1), || ()).is_err());
}

#[test]
fn t21_what_an_executor_has_not_begun_takes_room() {
    let queued = Queued::default();
    let stage = Stage::with(|builder| builder.executor(queued.clone()).max_pending(2));
    stage.schedule(ms(1), 1);
    let second = stage.schedule(ms(1), 2);
    stage.advance(1);
    assert!(stage.timer.schedule(ms(1), || ()).is_err());
    assert!(second.cancel());
    stage.schedule(ms(1), 3);
    assert!(stage.timer.schedule(ms(1), || ()).is_err());
    queued.run_all();
    stage.schedule(ms(1), 4);
}

#[test]
fn t21_a_periodic_task_keeps_its_place_until_it_ends() {
    let stage = Stage::with(|builder| builder.max_pending(1));
    let task = stage.timer.every(ms(10)).start(|| ()).unwrap();
    for _ in 0..5 {
        stage.advance(10);
        assert_eq!(stage.timer.schedule(ms(1), || ()).unwrap_err().why, Refusal::Full);
    }
    assert!(task.cancel());
    // The same for a task that its own run cancels.
    let own: Arc<OnceLock<Timeout>> = Arc::default();
    let seen = Arc::clone(&own);
    let task = stage.timer.every(ms(10)).start(move || assert!(seen.get().unwrap().cancel()));
    own.set(task.unwrap()).unwrap();
    assert_eq!(stage.timer.schedule(ms(1), || ()).unwrap_err().why, Refusal::Full);
    stage.advance(10);
    stage.schedule(ms(1), 1);
    assert_eq!(stage.timer.metrics().panicked, 0);
}

/// After every step the count equals the number of pending handles. A filed task that is cancelled is counted once, also in the
/// tick in which it is due.
#[test]
fn t22_the_count_is_that_of_a_scan() {
    for seed in 0..100 {
        let mut dice = Dice(seed);
        let queued = Queued::default();
        let stage = Stage::with(|builder| builder.executor(queued.clone()));
        let mut handles = Vec::new();
        for step in 0..300 {
            match dice.below(6) {
                0 | 1 => handles.push(stage.schedule(ms(dice.below(20)), step)),
                2 if !handles.is_empty() => {
                    let index = dice.below(handles.len() as u64) as usize;
                    handles[index].cancel();
                }
                3 if !handles.is_empty() => {
                    let index = dice.below(handles.len() as u64) as usize;
                    handles[index].reschedule(ms(dice.below(20)));
                }
                4 => stage.advance(dice.below(5)),
                _ => queued.run_all(),
            }
            let scan = handles.iter().filter(|handle| handle.state() == tickwheel::TimeoutState::Pending);
            assert_eq!(stage.timer.pending(), scan.count(), "seed {seed}, step {step}");
        }
    }
}

#[test]
fn t31_a_timer_that_cannot_be_is_refused_by_name() {
    let tick = |tick| Timer::builder().clock(ManualClock::new()).tick(tick).build().map(|_| ());
    for wrong in [Duration::ZERO, Duration::from_nanos(999), Duration::from_secs(3_601), Duration::MAX] {
        let error = tick(wrong).unwrap_err();
        assert!(matches!(error, BuildError::Tick { tick } if tick == wrong), "{error:?}");
        assert!(error.to_string().contains("1 ms suits most"), "{error}");
    }
    for right in [Duration::from_micros(1), ms(1), Duration::from_secs(3_600)] {
        tick(right).unwrap();
    }
    let error = Timer::builder().clock(ManualClock::new()).max_pending(0).build().unwrap_err();
    assert!(matches!(error, BuildError::NoRoom), "{error:?}");
    assert!(error.source().is_none() && error.to_string().contains("max_pending"));
}

/// Each timer runs a task, on the system's clock.
#[test]
fn t32_many_timers_are_no_trouble() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let timers: Vec<Timer> = (0..128).map(|_| Timer::new().unwrap()).collect();
    for (number, timer) in timers.iter().enumerate() {
        let sender = sender.clone();
        timer.schedule(ms(1), move || sender.send(number).unwrap()).unwrap();
    }
    drop(sender);
    let mut numbers: Vec<usize> = receiver.iter().collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..128).collect::<Vec<_>>());
}

#[test]
fn lateness_is_measured_when_asked_for() {
    let stage = Stage::new();
    stage.schedule(ms(1), 1);
    stage.advance(1);
    assert_eq!(stage.timer.metrics().lateness, None);
    let stage = Stage::with(|builder| builder.measure_lateness());
    stage.schedule(ms(1), 1);
    stage.schedule(ms(5), 2);
    stage.advance(4);
    stage.advance(1);
    let lateness = stage.timer.metrics().lateness.unwrap();
    assert_eq!((lateness.count(), lateness.max()), (2, ms(3)));
    assert_eq!(lateness.buckets().next(), Some((Duration::ZERO, 1)));
}
