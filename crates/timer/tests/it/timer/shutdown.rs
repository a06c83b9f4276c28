//! The end of a timer: no task starts afterwards, and none is lost.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

use tickwheel::{Clock, Fate, Job, Monotonic, OnClose, Refusal, SystemClock, Timeout, TimeoutState, Timer};

use super::queued::Queued;
use super::stage::{Stage, at_ms, ms};

#[test]
fn t23_what_did_not_run_is_given_back_and_what_ran_is_not() {
    let stage = Stage::new();
    let timeouts: Vec<Timeout> = (0..3).map(|name| stage.schedule(ms(1), name)).collect();
    stage.advance(1);
    stage.ran();
    assert!(stage.timer.shutdown().is_empty());
    assert!(timeouts.iter().all(|timeout| timeout.state() == TimeoutState::Fired));
    let metrics = stage.timer.metrics();
    assert_eq!((metrics.fired, metrics.returned, metrics.pending), (3, 0, 0));

    // Some tasks are in the wheel, and others are where no turn has looked yet.
    let stage = Stage::new();
    let mut timeouts: Vec<Timeout> = [4, 3].map(|name| stage.schedule(ms(5_000 + name), name)).into();
    stage.advance(1);
    timeouts.extend([2, 1, 0].map(|name| stage.schedule(ms(4_999 + name), name)));
    let unfired = stage.timer.shutdown();
    assert_eq!(unfired.len(), 5);
    for timeout in &timeouts {
        assert_eq!(timeout.state(), TimeoutState::Returned);
        assert!(timeout.is_cancelled() && !timeout.cancel() && !timeout.reschedule(ms(1)));
    }
    stage.advance(10_000);
    assert_eq!(stage.ran(), []);
    // The tasks come back in the order of their deadlines, and the caller can run them.
    let deadlines: Vec<_> = unfired
        .into_iter()
        .map(|task| {
            let deadline = task.deadline();
            task.run();
            deadline
        })
        .collect();
    assert_eq!(deadlines, (5_000..5_005).map(at_ms).collect::<Vec<_>>());
    assert_eq!(stage.ran(), (0..5).map(|name| (10_001, name)).collect::<Vec<_>>());
    let metrics = stage.timer.metrics();
    assert_eq!((metrics.accepted, metrics.returned, metrics.pending), (5, 5, 0));
}

#[test]
fn t24_a_timer_that_ended_refuses_and_counts_nothing_for_it() {
    let stage = Stage::with(|builder| builder.max_pending(1));
    stage.schedule(ms(1), 1);
    assert_eq!(stage.timer.shutdown().len(), 1);
    for _ in 0..3 {
        let refused = stage.timer.schedule(ms(1), || ()).unwrap_err();
        assert_eq!(refused.why, Refusal::ShutDown);
        assert_eq!(stage.timer.every(ms(1)).start(|| ()).unwrap_err().why, Refusal::ShutDown);
    }
    let metrics = stage.timer.metrics();
    assert_eq!((metrics.pending, metrics.accepted, metrics.refused), (0, 1, 6));
    assert!(stage.timer.shutdown().is_empty());
    // A timer that never had a task.
    assert!(Timer::new().unwrap().shutdown().is_empty());
}

/// Ten tasks are due together, and the first one ends the timer. None of the others begins, and all are given back.
#[test]
fn t25_shutdown_inside_a_body_lets_none_begin_after_it() {
    let stage = Stage::new();
    let returned = Arc::new(AtomicUsize::new(0));
    let (inner, count) = (stage.clone(), Arc::clone(&returned));
    stage
        .timer
        .schedule(ms(1), move || {
            count.store(inner.timer.shutdown().len(), Ordering::Relaxed);
        })
        .unwrap();
    for name in 0..9 {
        stage.schedule(ms(1 + name % 2), name);
    }
    stage.advance(5);
    assert_eq!((stage.ran(), returned.load(Ordering::Relaxed)), (vec![], 9));
    assert_eq!(stage.timer.pending(), 0);
}

/// The same test with a body that runs on the driver's thread.
#[test]
fn t25_shutdown_on_the_driver_itself_does_not_hang() {
    let timer = Timer::builder().executor(Job::run).build().unwrap();
    let (sender, receiver) = mpsc::channel();
    let inner = timer.clone();
    timer.schedule(ms(50), || panic!("it runs after the end")).unwrap();
    timer.schedule(Duration::ZERO, move || sender.send(inner.shutdown().len()).unwrap()).unwrap();
    assert_eq!(receiver.recv(), Ok(1));
    assert_eq!(timer.metrics().panicked, 0);
}

#[test]
fn t25_what_an_executor_has_not_begun_is_given_back() {
    let queued = Queued::default();
    let stage = Stage::with(|builder| builder.executor(queued.clone()));
    for name in 0..3 {
        stage.schedule(ms(1), name);
    }
    stage.advance(1);
    assert_eq!(queued.len(), 3);
    let unfired = stage.timer.shutdown();
    assert_eq!(unfired.len(), 3);
    queued.run_all();
    assert_eq!(stage.ran(), []);
}

/// Threads schedule while another one ends the timer. Every task is refused, is given back, or has run.
#[test]
fn t26_a_task_that_races_with_the_end_does_not_vanish() {
    for round in 0..200 {
        let timer = Timer::new().unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        let start = Barrier::new(4);
        let (accepted, returned) = std::thread::scope(|scope| {
            let producers: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        (0..50)
                            .filter(|number| {
                                let ran = Arc::clone(&ran);
                                let delay = Duration::from_micros(number % 3 * 600);
                                let body = move || {
                                    ran.fetch_add(1, Ordering::SeqCst);
                                };
                                timer.schedule(delay, body).is_ok()
                            })
                            .count()
                    })
                })
                .collect();
            start.wait();
            for _ in 0..round {
                std::hint::spin_loop();
            }
            let returned = timer.shutdown().len();
            (producers.into_iter().map(|producer| producer.join().unwrap()).sum::<usize>(), returned)
        });
        // A body that began just before the end may not be counted yet.
        while timer.pending() > 0 {
            std::thread::yield_now();
        }
        let metrics = timer.metrics();
        assert_eq!(metrics.returned as usize, returned, "round {round}");
        assert_eq!(metrics.accepted as usize, accepted, "round {round}");
        while (ran.load(Ordering::SeqCst) as u64) < metrics.fired {
            std::thread::yield_now();
        }
        assert_eq!(ran.load(Ordering::SeqCst) + returned, accepted, "round {round}");
    }
}

/// A system clock that meets the test at the driver's first two readings. The first is for its first turn, the second before it
/// sleeps until a deadline.
struct Meets {
    clock: SystemClock,
    readings: AtomicUsize,
    test: Arc<Barrier>,
}

impl Clock for Meets {
    fn now(&self) -> Monotonic {
        let driver = std::thread::current().name() == Some("tickwheel-timer");
        if driver && self.readings.fetch_add(1, Ordering::Relaxed) < 2 {
            self.test.wait();
        }
        self.clock.now()
    }
}

/// The driver has the executor, so the executor is dropped when the driver has ended. The driver slept until a task that was due in
/// an hour.
#[test]
fn t27_the_end_wakes_the_driver_at_once() {
    struct Tells(mpsc::Sender<()>);
    impl tickwheel::Executor for Tells {
        fn execute(&self, job: Job) {
            job.run();
        }
    }
    impl Drop for Tells {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let (sender, receiver) = mpsc::channel();
    let driver = Arc::new(Barrier::new(2));
    let clock = Meets { clock: SystemClock::new(), readings: AtomicUsize::new(0), test: Arc::clone(&driver) };
    let timer = Timer::builder().clock(clock).executor(Tells(sender)).build().unwrap();
    let timeout = timer.schedule(Duration::from_secs(3_600), || ()).unwrap();
    driver.wait();
    driver.wait();
    drop(timer);
    receiver.recv_timeout(Duration::from_secs(60)).expect("the driver ends long before the hour");
    assert_eq!(timeout.state(), TimeoutState::Returned);
}

#[test]
fn t28_what_a_closed_timer_still_runs_is_said_when_it_closes() {
    let both = [Fate::Run, Fate::Return];
    for one_shots in both {
        for periodic in both {
            let stage = Stage::new();
            stage.schedule(ms(10), 1);
            stage.advance(1);
            stage.schedule(ms(20), 2);
            let log = stage.log();
            stage.timer.every(ms(10)).start(move || log.write(3)).unwrap();
            let unfired = stage.timer.close(OnClose { one_shots, periodic });
            let kept = |fate, count| if fate == Fate::Run { 0 } else { count };
            assert_eq!(unfired.len(), kept(one_shots, 2) + kept(periodic, 1));
            assert_eq!(stage.timer.schedule(ms(1), || ()).unwrap_err().why, Refusal::ShutDown);
            stage.advance(10);
            stage.advance(11);
            let mut expected = Vec::new();
            if one_shots == Fate::Run {
                expected.extend([(11, 1), (22, 2)]);
            }
            if periodic == Fate::Run {
                expected.extend([(11, 3), (22, 3)]);
            }
            let mut ran = stage.ran();
            ran.sort_unstable();
            expected.sort_unstable();
            assert_eq!(ran, expected, "one-shots {one_shots:?}, periodic {periodic:?}");
        }
    }
}

#[test]
fn t28_the_policy_can_be_changed_afterwards() {
    let stage = Stage::new();
    stage.schedule(ms(10), 1);
    let log = stage.log();
    let periodic = stage.timer.every(ms(10)).start(move || log.write(3)).unwrap();
    let all = OnClose { one_shots: Fate::Run, periodic: Fate::Run };
    assert!(stage.timer.close(all).is_empty());
    stage.advance(10);
    assert_eq!(stage.ran(), [(10, 1), (10, 3)]);
    assert_eq!(stage.timer.close(OnClose::default()).len(), 1);
    assert_eq!(periodic.state(), TimeoutState::Returned);
    assert_eq!(stage.timer.pending(), 0);
    assert!(stage.timer.shutdown().is_empty());
}

/// After a `close` for periodic tasks, a later `close` does not accept them again, also if the task is running at that moment.
#[test]
fn t28_what_was_ended_by_a_close_is_not_kept_by_the_next() {
    let stage = Stage::new();
    let inner = stage.clone();
    let body = move || {
        inner.log().write(1);
        for periodic in [Fate::Return, Fate::Run] {
            assert!(inner.timer.close(OnClose { one_shots: Fate::Run, periodic }).is_empty());
        }
    };
    let task = stage.timer.every(ms(10)).start(body).unwrap();
    stage.advance(10);
    stage.advance(10);
    assert_eq!((stage.ran(), task.state(), stage.timer.pending()), (vec![(10, 1)], TimeoutState::Fired, 0));
}

/// The driver is about to sleep, after its last turn, when `close` files an entry again that the turn had not seen.
#[test]
fn t28_what_a_body_on_the_driver_keeps_by_close_still_runs() {
    let timer = Timer::builder().executor(Job::run).build().unwrap();
    let (sender, receiver) = mpsc::channel();
    let inner = timer.clone();
    let closes = move || {
        inner.schedule(ms(5), move || sender.send(()).unwrap()).unwrap();
        assert!(inner.close(OnClose::default()).is_empty());
        // This wait uses up the wake-up that was meant for the driver.
        std::thread::park_timeout(ms(1));
    };
    timer.schedule(Duration::ZERO, closes).unwrap();
    receiver.recv_timeout(tickwheel_testing::HANG_TIME).expect("what was kept runs");
}

/// A periodic task runs when its timer closes. `close` says whether that run is the last one.
#[test]
fn t28_a_run_that_is_under_way_may_be_the_last() {
    for periodic in [Fate::Run, Fate::Return] {
        let stage = Stage::new();
        let inner = stage.clone();
        let mut first = true;
        let body = move || {
            inner.log().write(3);
            if std::mem::take(&mut first) {
                assert!(inner.timer.close(OnClose { one_shots: Fate::Run, periodic }).is_empty());
            }
        };
        let task = stage.timer.every(ms(10)).start(body).unwrap();
        stage.advance(10);
        stage.advance(10);
        let (ran, state) = match periodic {
            Fate::Run => (vec![(10, 3), (20, 3)], TimeoutState::Pending),
            Fate::Return => (vec![(10, 3)], TimeoutState::Fired),
        };
        assert_eq!((stage.ran(), task.state()), (ran, state));
        assert_eq!(stage.timer.shutdown().len(), usize::from(periodic == Fate::Run));
    }
}

/// If a timer has closed for periodic tasks, or has ended, a later `close` does not accept them again.
#[test]
fn t28_a_second_close_takes_nothing_back() {
    let strict = OnClose::default();
    let mild = OnClose { one_shots: Fate::Run, periodic: Fate::Run };
    for first_shuts in [false, true] {
        let stage = Stage::new();
        let inner = stage.clone();
        let body = move || {
            inner.log().write(3);
            let first = if first_shuts { inner.timer.shutdown() } else { inner.timer.close(strict) };
            assert!(first.is_empty() && inner.timer.close(mild).is_empty());
        };
        let task = stage.timer.every(ms(10)).start(body).unwrap();
        stage.advance(10);
        stage.advance(10);
        assert_eq!((stage.ran(), task.state()), (vec![(10, 3)], TimeoutState::Fired));
        assert_eq!((stage.timer.metrics().panicked, stage.timer.pending()), (0, 0));
    }
}

/// A task that was moved to an earlier deadline just before the close can be moved earlier again.
#[test]
fn t28_a_task_that_was_moved_before_the_close_is_moved_again() {
    let stage = Stage::new();
    let timeout = stage.schedule(ms(500), 1);
    stage.advance(1);
    assert!(timeout.reschedule(ms(100)));
    assert!(stage.timer.close(OnClose::default()).is_empty());
    assert!(timeout.reschedule(ms(50)));
    stage.advance(50);
    assert_eq!(stage.ran(), [(51, 1)]);
}

/// A cancelled task that no turn has looked at since then still has its place in the wheel of before `close`. In the new wheel
/// another task has this place.
#[test]
fn t28_a_task_that_was_cancelled_before_the_close_takes_no_other_with_it() {
    let stage = Stage::new();
    let cancelled = stage.schedule(ms(10), 1);
    stage.schedule(ms(50), 2);
    stage.advance(1);
    assert!(cancelled.cancel());
    // The turn looks at the place of the cancelled task, which is gone.
    stage.advance(10);
    assert!(stage.timer.close(OnClose::default()).is_empty());
    stage.advance(39);
    assert_eq!((stage.ran(), stage.timer.pending()), (vec![(50, 2)], 0));
}

/// The handles of a task that `close` keeps stay valid: the task can be cancelled and moved, filed or not.
#[test]
fn t28_a_task_that_a_closed_timer_keeps_can_be_cancelled_and_moved() {
    let stage = Stage::new();
    let filed: Vec<Timeout> = (0..10).map(|name| stage.schedule(ms(10 + name), name)).collect();
    stage.advance(1);
    let unfiled: Vec<Timeout> = (10..20).map(|name| stage.schedule(ms(10 + name), name)).collect();
    assert!(filed[0].cancel() && unfiled[0].cancel());
    assert!(stage.timer.close(OnClose::default()).is_empty());
    assert!(filed[1].cancel() && unfiled[1].cancel());
    assert!(filed[2].reschedule(ms(1)) && unfiled[2].reschedule(ms(2)));
    stage.advance(1);
    stage.advance(1);
    assert_eq!(stage.ran(), [(2, 2), (3, 12)]);
    stage.advance(100);
    assert_eq!(stage.ran().len(), 14);
    assert_eq!(stage.timer.pending(), 0);
}

/// If a timer ends while a periodic task runs, the task does not run again.
#[test]
fn t25_a_periodic_task_may_end_its_own_timer() {
    let stage = Stage::new();
    let inner = stage.clone();
    let task = stage
        .timer
        .every(ms(10))
        .start(move || {
            inner.log().write(1);
            assert!(inner.timer.shutdown().is_empty());
        })
        .unwrap();
    stage.advance(10);
    stage.advance(10);
    assert_eq!(stage.ran(), [(10, 1)]);
    assert_eq!((task.state(), stage.timer.pending()), (TimeoutState::Fired, 0));
}

#[test]
fn dropping_the_last_timer_ends_it() {
    let stage = Stage::new();
    let timeout = stage.schedule(ms(10), 1);
    let clone = stage.timer.clone();
    let Stage { clock, timer, .. } = stage.clone();
    drop((stage, timer));
    clock.advance(ms(5));
    assert_eq!(timeout.state(), TimeoutState::Pending);
    drop(clone);
    assert_eq!(timeout.state(), TimeoutState::Returned);
    assert!(!timeout.cancel() && !timeout.reschedule(ms(1)));
}

/// An executor has the task, and its body has not begun. The JDK would run it.
#[test]
fn t28_a_task_that_is_due_and_has_not_begun_is_returned() {
    let (sender, jobs) = std::sync::mpsc::channel();
    let stage = Stage::with(|builder| builder.executor(move |job: Job| sender.send(job).unwrap()));
    stage.schedule(ms(1), 1);
    stage.advance(1);
    let job = jobs.try_recv().expect("it is due");
    let unfired = stage.timer.close(OnClose { one_shots: Fate::Return, periodic: Fate::Return });
    assert_eq!(unfired.len(), 1);
    job.run();
    assert_eq!(stage.ran(), [], "it was returned, and does not run");
}
