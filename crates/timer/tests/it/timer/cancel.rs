//! Which one wins: the body, `cancel` or `shutdown`. It is exactly one.

use std::sync::{Arc, OnceLock};

use tickwheel::{Timeout, TimeoutState};

use super::queued::Queued;
use super::stage::{Stage, ms};

#[test]
fn t15_cancel_says_yes_once_and_only_before_the_body() {
    let stage = Stage::new();
    let cancelled = stage.schedule(ms(5), 1);
    assert!(cancelled.cancel());
    assert!(!cancelled.cancel());
    assert_eq!(cancelled.state(), TimeoutState::Cancelled);
    assert!(cancelled.is_cancelled());

    let fired = stage.schedule(ms(5), 2);
    stage.advance(5);
    assert_eq!(stage.ran(), [(5, 2)]);
    assert!(!fired.cancel());
    assert_eq!((fired.state(), fired.is_cancelled()), (TimeoutState::Fired, false));

    let own: Arc<OnceLock<Timeout>> = Arc::default();
    let (seen, log) = (Arc::clone(&own), stage.log());
    let running = stage.timer.schedule(ms(5), move || {
        let own: &Timeout = seen.get().unwrap();
        assert_eq!(own.state(), TimeoutState::Firing);
        log.write(u64::from(own.cancel()));
        assert!(!own.reschedule(ms(1)));
    });
    own.set(running.unwrap()).unwrap();
    stage.advance(5);
    assert_eq!(stage.ran(), [(10, 0)]);
    assert_eq!(stage.timer.metrics().panicked, 0);
}

#[test]
fn t15_a_filed_task_is_cancelled_as_well_as_one_that_is_not() {
    let stage = Stage::new();
    let filed = stage.schedule(ms(50), 1);
    stage.advance(1);
    stage.schedule(ms(1), 2);
    let unfiled = stage.schedule(ms(50), 3);
    stage.advance(1);
    stage.ran();
    assert!(filed.cancel() && unfiled.cancel());
    assert!(!filed.cancel() && !unfiled.cancel());
    stage.advance(100);
    assert_eq!((stage.ran(), stage.timer.pending()), (vec![], 0));
}

#[test]
fn t15_what_an_executor_has_and_has_not_begun_can_be_cancelled() {
    let queued = Queued::default();
    let stage = Stage::with(|builder| builder.executor(queued.clone()));
    let cancelled = stage.schedule(ms(1), 1);
    let runs = stage.schedule(ms(1), 2);
    stage.advance(1);
    assert_eq!((queued.len(), stage.timer.pending()), (2, 2));
    assert!(cancelled.cancel());
    assert_eq!(stage.timer.pending(), 1);
    queued.run_all();
    assert_eq!(stage.ran(), [(1, 2)]);
    assert!(!runs.cancel());
}

#[test]
fn a_task_that_an_executor_has_can_still_be_moved() {
    let queued = Queued::default();
    let stage = Stage::with(|builder| builder.executor(queued.clone()));
    let timeout = stage.schedule(ms(1), 1);
    stage.advance(1);
    assert!(timeout.reschedule(ms(10)));
    queued.run_all();
    assert_eq!((stage.ran(), timeout.state()), (vec![], TimeoutState::Pending));
    stage.advance(9);
    assert_eq!(queued.len(), 0);
    stage.advance(1);
    queued.run_all();
    assert_eq!(stage.ran(), [(11, 1)]);
}

/// Tries all three acts on a task, in every order, at each stage of its life.
#[test]
fn t16_exactly_one_of_ran_cancelled_and_returned() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Act {
        Run,
        Cancel,
        Shutdown,
    }
    use Act::{Cancel, Run, Shutdown};
    let orders = [
        [Run, Cancel, Shutdown],
        [Run, Shutdown, Cancel],
        [Cancel, Run, Shutdown],
        [Cancel, Shutdown, Run],
        [Shutdown, Run, Cancel],
        [Shutdown, Cancel, Run],
    ];
    // 0: no turn has seen the task; 1: it is filed; 2: it was handed to the executor before the
    // first act.
    for life in 0..3 {
        for order in orders {
            let queued = Queued::default();
            let stage = Stage::with(|builder| builder.executor(queued.clone()));
            let timeout = stage.schedule(ms(10), 1);
            match life {
                1 => {
                    stage.advance(1);
                }
                2 => stage.advance(10),
                _ => {}
            }
            let (mut ran, mut cancelled, mut returned) = (0, 0, 0);
            for act in order {
                match act {
                    Run => {
                        stage.advance(10);
                        queued.run_all();
                        ran += stage.ran().len();
                    }
                    Cancel => cancelled += usize::from(timeout.cancel()),
                    Shutdown => returned += stage.timer.shutdown().len(),
                }
                let metrics = stage.timer.metrics();
                assert_eq!(
                    metrics.accepted,
                    metrics.fired + metrics.cancelled + metrics.returned + metrics.pending
                );
            }
            assert_eq!(ran + cancelled + returned, 1, "life {life}, {order:?}");
            let first = match order[0] {
                Run => (1, 0, 0),
                Cancel => (0, 1, 0),
                Shutdown => (0, 0, 1),
            };
            assert_eq!((ran, cancelled, returned), first, "life {life}, {order:?}: the first one wins");
            assert_eq!(stage.timer.pending(), 0);
        }
    }
}

#[test]
fn t18_a_panic_is_caught_and_counted_and_all_goes_on() {
    let stage = Stage::new();
    let panics = stage.timer.schedule(ms(1), || panic!("a body that panics on purpose")).unwrap();
    stage.schedule(ms(1), 1);
    stage.schedule(ms(2), 2);
    quietly(|| stage.advance(1));
    assert_eq!(stage.ran(), [(1, 1)]);
    assert!(!panics.cancel());
    assert_eq!(panics.state(), TimeoutState::Fired);
    let metrics = stage.timer.metrics();
    assert_eq!((metrics.panicked, metrics.fired, metrics.pending), (1, 2, 1));
    stage.advance(1);
    assert_eq!(stage.ran(), [(2, 2)]);
}

/// A payload that panics when it is dropped is contained, as a panic of the body is.
#[test]
fn t18_even_a_payload_that_panics_is_contained() {
    struct Payload;
    impl Drop for Payload {
        fn drop(&mut self) {
            panic!("a payload that panics on purpose");
        }
    }
    let stage = Stage::new();
    stage.timer.schedule(ms(1), || std::panic::panic_any(Payload)).unwrap();
    stage.schedule(ms(1), 1);
    quietly(|| stage.advance(1));
    assert_eq!((stage.ran(), stage.timer.metrics().panicked), (vec![(1, 1)], 1));
}

/// The messages of panics that belong to a test are not printed.
pub(crate) fn quietly(call: impl FnOnce()) {
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let said = info.payload_as_str().unwrap_or("on purpose");
            if !said.contains("on purpose") {
                before(info);
            }
        }));
    });
    call();
}

#[test]
fn t30_a_task_in_the_queue_can_be_removed_once() {
    let stage = Stage::new();
    let timeouts: Vec<Timeout> = (0..5).map(|name| stage.schedule(ms(10), name)).collect();
    assert!(timeouts[1].cancel() && timeouts[3].cancel());
    assert_eq!(stage.timer.pending(), 3);
    assert!(!timeouts[1].cancel() && !timeouts[3].cancel());
    assert_eq!(stage.timer.pending(), 3);
    stage.advance(10);
    assert_eq!(stage.ran(), [(10, 0), (10, 2), (10, 4)]);
}

#[test]
fn a_cancelled_task_is_dropped_before_cancel_returns() {
    let stage = Stage::new();
    for filed in [false, true] {
        let held = Arc::new(());
        let captured = Arc::clone(&held);
        let timeout = stage.timer.schedule(ms(100), move || drop(captured)).unwrap();
        if filed {
            stage.advance(1);
        }
        assert_eq!(Arc::strong_count(&held), 2);
        assert!(timeout.cancel());
        assert_eq!(Arc::strong_count(&held), 1, "filed: {filed}");
    }
}

/// The drop of a task is user code, so it may call the timer.
#[test]
fn a_task_may_call_the_timer_when_it_is_dropped() {
    struct Calls(Stage);
    impl Drop for Calls {
        fn drop(&mut self) {
            self.0.schedule(ms(1), 9);
            assert!(self.0.timer.pending() > 0);
        }
    }
    let stage = Stage::new();
    let calls = Calls(stage.clone());
    let timeout = stage.timer.schedule(ms(5), move || drop(calls)).unwrap();
    assert!(timeout.cancel());
    stage.advance(1);
    assert_eq!(stage.ran(), [(1, 9)]);
    let _ = stage.timer.shutdown();
}

#[test]
fn a_job_that_an_executor_drops_comes_again() {
    let queued = Queued::default();
    let stage = Stage::with(|builder| builder.executor(queued.clone()));
    let timeout = stage.schedule(ms(1), 1);
    stage.advance(1);
    queued.drop_all();
    assert_eq!((timeout.state(), stage.timer.pending()), (TimeoutState::Pending, 1));
    stage.advance(99);
    assert_eq!(queued.len(), 0);
    stage.advance(1);
    queued.run_all();
    assert_eq!(stage.ran(), [(101, 1)]);
    // Also one that panics over it.
    let stage = Stage::with(|builder| builder.executor(|_job| panic!("an executor that panics on purpose")));
    let timeout = stage.schedule(ms(1), 1);
    quietly(|| stage.advance(1));
    assert_eq!((timeout.state(), stage.timer.pending()), (TimeoutState::Pending, 1));
    assert!(timeout.cancel());
}

/// The memory of the task is freed with the task, and not with the entry that the timer still has.
#[test]
fn a_large_task_comes_back_whole_and_runs() {
    let stage = Stage::with(|builder| builder.max_pending(1));
    let log = stage.log();
    let large = [7_u8; 4_096];
    stage.timer.schedule(ms(1), move || log.write(large.iter().map(|byte| u64::from(*byte)).sum())).unwrap();
    let log = stage.log();
    let refused = stage.timer.schedule(ms(1), move || log.write(u64::from(large[4_095]))).unwrap_err();
    (refused.task)();
    stage.advance(1);
    assert_eq!(stage.ran(), [(0, 7), (1, 7 * 4_096)]);
}

/// The last timer is dropped with two tasks that panic when they are dropped. Both panics are
/// contained.
#[test]
fn tasks_that_panic_when_the_timer_drops_them_are_contained() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("a drop that panics on purpose");
        }
    }
    let stage = Stage::new();
    for _ in 0..2 {
        let panics = Panics;
        stage.timer.schedule(ms(1), move || std::mem::forget(panics)).unwrap();
    }
    let pending = stage.schedule(ms(1), 1);
    quietly(|| drop(stage));
    assert_eq!(pending.state(), TimeoutState::Returned);
}
