//! The timer on the system's clock: a thread drives it. These tests wait for events.

use std::num::NonZeroUsize;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tickwheel::{Executor, Job, Monotonic, Pool, Timeout, TimeoutState, Timer};

use super::stage::ms;

#[test]
fn t3_nobody_has_to_drive_it() {
    let timer = Timer::new().unwrap();
    let (sender, receiver) = mpsc::channel();
    for delay in [3, 1, 2] {
        let (sender, inner) = (sender.clone(), timer.clone());
        let scheduled = timer.now().saturating_add(ms(delay));
        timer
            .schedule_at(scheduled, move || sender.send((delay, inner.now() >= scheduled)).unwrap())
            .unwrap();
    }
    drop(sender);
    let mut ran: Vec<(u64, bool)> = receiver.iter().collect();
    // Two threads run the bodies, so neighbours may change places.
    ran.sort_unstable();
    assert_eq!(ran, [(1, true), (2, true), (3, true)]);
}

/// The driver sleeps for an hour when a much earlier task comes, and then another earlier one.
#[test]
fn t27_an_earlier_deadline_wakes_the_driver() {
    let timer = Timer::new().unwrap();
    let (sender, receiver) = mpsc::channel();
    let send = |name: &'static str| {
        let sender = sender.clone();
        move || sender.send(name).unwrap()
    };
    let far = timer.schedule(Duration::from_secs(3_600), send("hour")).unwrap();
    timer.schedule(ms(2), send("soon")).unwrap();
    assert_eq!(receiver.recv(), Ok("soon"));
    // The task is moved closer while the driver sleeps until its deadline.
    assert!(far.reschedule(ms(1)));
    assert_eq!(receiver.recv(), Ok("hour"));
}

#[test]
fn t19_bodies_run_on_the_executor_and_never_on_the_driver() {
    let (sender, receiver) = mpsc::channel();
    let timer = Timer::new().unwrap();
    for _ in 0..10 {
        let sender = sender.clone();
        let name = move || sender.send(std::thread::current().name().map(String::from)).unwrap();
        timer.schedule(ms(1), name).unwrap();
    }
    for name in receiver.iter().take(10) {
        assert_eq!(name.as_deref(), Some("tickwheel-pool"));
    }
    // An executor of the caller's own.
    let (jobs, queue) = mpsc::channel::<Job>();
    let timer = Timer::builder().executor(move |job| jobs.send(job).unwrap()).build().unwrap();
    timer
        .schedule(ms(1), move || sender.send(std::thread::current().name().map(String::from)).unwrap())
        .unwrap();
    queue.recv().unwrap().run();
    assert_eq!(receiver.recv().unwrap().as_deref(), std::thread::current().name());
}

/// An executor around a pool. It looks at each job before the pool gets it, and at the pool.
#[test]
fn t19_a_pool_takes_jobs_from_an_iterator_that_looks_at_it() {
    struct Looks(Pool);
    impl Executor for Looks {
        fn execute(&self, job: Job) {
            self.0.execute(job);
        }
        fn execute_all(&self, jobs: &mut dyn Iterator<Item = Job>) {
            self.0.execute_all(&mut jobs.inspect(|_| assert!(format!("{:?}", self.0).contains("waiting"))));
        }
    }
    let timer = Timer::builder().executor(Looks(Pool::default())).build().unwrap();
    let (sender, receiver) = mpsc::channel();
    timer.schedule(ms(1), move || sender.send(()).unwrap()).unwrap();
    receiver.recv_timeout(tickwheel_testing::HANG_TIME).expect("the pool does not wait for itself");
}

#[test]
fn t19_a_body_that_blocks_delays_nobody() {
    let timer = Timer::builder().executor(Pool::new(NonZeroUsize::new(2).unwrap())).build().unwrap();
    let (release, blocked) = mpsc::channel::<()>();
    let (sender, receiver) = mpsc::channel();
    timer.schedule(Duration::ZERO, move || assert!(blocked.recv().is_err())).unwrap();
    for number in 0..100 {
        let sender = sender.clone();
        timer.schedule(Duration::from_micros(number * 50), move || sender.send(number).unwrap()).unwrap();
    }
    let mut ran: Vec<u64> = receiver.iter().take(100).collect();
    ran.sort_unstable();
    assert_eq!(ran, (0..100).collect::<Vec<_>>());
    drop(release);
}

/// A body schedules itself without delay, for ever, on a pool. Other bodies still run.
#[test]
fn t9_a_restless_body_starves_nobody() {
    fn again(timer: &Timer) {
        let next = timer.clone();
        // The schedule is refused when the timer is shut down, which ends the loop.
        let _ = timer.schedule(Duration::ZERO, move || again(&next));
    }
    let timer = Timer::new().unwrap();
    again(&timer);
    let (sender, receiver) = mpsc::channel();
    for number in 0..50 {
        let sender = sender.clone();
        timer.schedule(ms(number % 5), move || sender.send(()).unwrap()).unwrap();
    }
    assert_eq!(receiver.iter().take(50).count(), 50);
    let _ = timer.shutdown();
}

/// Blocks the driver's thread at each job until the test lets it go on. When the test drops its sender, the driver runs
/// freely.
struct Keeps {
    reached: Sender<()>,
    go: Mutex<Receiver<()>>,
}

impl Executor for Keeps {
    fn execute(&self, job: Job) {
        let _ = self.reached.send(());
        let _ = self.go.lock().unwrap().recv();
        job.run();
    }
}

/// A timer whose driver is blocked at its first job.
fn kept() -> (Timer, Sender<()>, Receiver<()>) {
    let (reached, at_job) = mpsc::channel();
    let (let_go, go) = mpsc::channel();
    let timer = Timer::builder().executor(Keeps { reached, go: Mutex::new(go) }).build().unwrap();
    timer.schedule(Duration::ZERO, || ()).unwrap();
    at_job.recv().unwrap();
    (timer, let_go, at_job)
}

/// More tasks are due than go out in one turn, and no later task comes that would wake the driver.
#[test]
fn t10_a_driver_that_comes_late_does_not_sleep_before_all_is_out() {
    const DUE: usize = 10_000;
    let (timer, let_go, _at_job) = kept();
    let (sender, receiver) = mpsc::channel();
    for number in 0..DUE {
        let sender = sender.clone();
        timer.schedule(Duration::ZERO, move || sender.send(number).unwrap()).unwrap();
    }
    drop(let_go);
    assert!(receiver.iter().take(DUE).eq(0..DUE));
}

/// The timer ends between two turns. The first turn collected more tasks than it could file.
#[test]
fn t23_what_waits_to_be_filed_is_given_back() {
    const FAR: usize = 10_000;
    let (timer, let_go, at_job) = kept();
    timer.schedule(Duration::ZERO, || panic!("it has not begun")).unwrap();
    let captured = Arc::new(());
    let far: Vec<Timeout> = (0..FAR)
        .map(|_| {
            let captured = Arc::clone(&captured);
            timer.schedule(Duration::from_secs(3_600), move || drop(captured)).unwrap()
        })
        .collect();
    let_go.send(()).unwrap();
    at_job.recv().unwrap();
    assert_eq!(timer.shutdown().len(), FAR + 1);
    assert!(far.iter().all(|timeout| timeout.state() == TimeoutState::Returned));
    assert_eq!((timer.pending(), Arc::strong_count(&captured)), (0, 1));
}

/// Many tasks that are due at once, and many new ones at the same time. Both groups get through.
#[test]
fn a_flood_of_either_kind_does_not_starve_the_other() {
    let timer = Timer::new().unwrap();
    let (sender, receiver) = mpsc::channel();
    let due = timer.now().saturating_add(ms(20));
    for _ in 0..50_000 {
        let sender = sender.clone();
        timer.schedule_at(due, move || sender.send(0).unwrap()).unwrap();
    }
    for _ in 0..50_000 {
        let sender = sender.clone();
        timer.schedule(ms(1), move || sender.send(1).unwrap()).unwrap();
    }
    drop(sender);
    let ran: Vec<u32> = receiver.iter().collect();
    assert_eq!((ran.len(), ran.iter().sum::<u32>()), (100_000, 50_000));
    assert_eq!(timer.pending(), 0);
}

/// A thread moves one task a little earlier, as fast as it can. Other tasks do not wait because of that, and the driver is
/// not told of each move.
#[test]
fn a_storm_of_moves_is_one_visit_for_the_driver() {
    let timer = Timer::new().unwrap();
    let hour = timer.now().saturating_add(Duration::from_secs(3_600));
    let moved = timer.schedule_at(hour, || ()).unwrap();
    let (sender, receiver) = mpsc::channel();
    let other = sender.clone();
    // When this task has run, the driver has filed the task that is moved.
    timer.schedule(ms(1), move || other.send(0).unwrap()).unwrap();
    assert_eq!(receiver.recv(), Ok(0));
    for step in 0..300_000 {
        assert!(moved.reschedule_at(Monotonic::from_nanos(hour.as_nanos() - step * 32)));
        if step == 200_000 {
            let sender = sender.clone();
            timer.schedule(ms(1), move || sender.send(1).unwrap()).unwrap();
        }
    }
    assert_eq!(receiver.recv(), Ok(1));
    assert!(moved.reschedule(Duration::ZERO));
    while moved.state() != tickwheel::TimeoutState::Fired {
        std::thread::yield_now();
    }
}

/// A body is never early by the timer's own clock, for any delay.
#[test]
fn no_body_begins_before_its_deadline() {
    let timer = Timer::builder().tick(Duration::from_micros(100)).build().unwrap();
    let (sender, receiver) = mpsc::channel();
    for number in 0..2_000_u64 {
        let (sender, inner) = (sender.clone(), timer.clone());
        let deadline = timer.now().saturating_add(Duration::from_nanos(number * 7_919 % 5_000_000));
        let body = move || {
            let begun: Monotonic = inner.now();
            sender.send(begun >= deadline).unwrap();
        };
        timer.schedule_at(deadline, body).unwrap();
    }
    drop(sender);
    let ran: Vec<bool> = receiver.iter().collect();
    assert_eq!(ran.len(), 2_000);
    assert!(ran.into_iter().all(|on_time| on_time), "a body began early");
}
