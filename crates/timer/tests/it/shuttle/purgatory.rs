//! The purgatory: every race between two ways to end an operation.

use std::sync::Arc;
use std::time::Duration;

use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use shuttle::thread;
use tickwheel::{Executor, Job, ManualClock, Operation, Purgatory, Submitted, Timer, Waiting};

use crate::shuttle::explore;

const SECOND: Duration = Duration::from_secs(1);

/// Completes when it is ready. Checks that none of its methods overlap.
#[derive(Default)]
struct Probe {
    ready: AtomicBool,
    busy: AtomicBool,
    expired: AtomicUsize,
    completed: AtomicUsize,
}

impl Probe {
    fn alone<R>(&self, act: impl FnOnce() -> R) -> R {
        assert!(!self.busy.swap(true, Ordering::SeqCst), "two at once");
        let result = act();
        self.busy.store(false, Ordering::SeqCst);
        result
    }

    fn ends(&self) -> (usize, usize) {
        (self.expired.load(Ordering::SeqCst), self.completed.load(Ordering::SeqCst))
    }
}

impl Operation for Probe {
    fn try_complete(&self) -> bool {
        self.alone(|| {
            assert_eq!(self.completed.load(Ordering::SeqCst), 0, "a look after the end");
            self.ready.load(Ordering::SeqCst)
        })
    }

    fn on_expire(&self) {
        self.alone(|| self.expired.fetch_add(1, Ordering::SeqCst));
    }

    fn on_complete(&self) {
        self.alone(|| self.completed.fetch_add(1, Ordering::SeqCst));
    }
}

#[derive(Clone)]
struct World {
    clock: ManualClock,
    timer: Timer,
    purgatory: Purgatory<u32, Probe>,
    probe: Arc<Probe>,
    /// The jobs of a world that keeps them.
    jobs: Arc<Mutex<Vec<Job>>>,
}

impl World {
    fn new() -> Self {
        Self::with(Arc::default(), Job::run)
    }

    /// A world whose executor keeps its jobs until a test runs them.
    fn that_keeps_jobs() -> Self {
        let jobs = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&jobs);
        Self::with(jobs, move |job| kept.lock().expect("no poison").push(job))
    }

    fn with(jobs: Arc<Mutex<Vec<Job>>>, executor: impl Executor + 'static) -> Self {
        let clock = ManualClock::new();
        let timer = Timer::builder().clock(clock.clone()).executor(executor).build().expect("a timer");
        let purgatory = Purgatory::new(&timer);
        Self { clock, timer, purgatory, probe: Arc::default(), jobs }
    }

    /// A world, and a waiting operation on the keys 1 and 2.
    fn waiting() -> (Self, Waiting<Probe>) {
        let world = Self::new();
        let waiting = world.wait();
        (world, waiting)
    }

    /// Submits the probe, which has to wait.
    fn wait(&self) -> Waiting<Probe> {
        match self.submit() {
            Some(Submitted::Waiting(waiting)) => waiting,
            other => panic!("it does not wait: {other:?}"),
        }
    }

    /// Runs the jobs that the executor has now.
    fn run_jobs(&self) {
        let jobs = std::mem::take(&mut *self.jobs.lock().expect("no poison"));
        jobs.into_iter().for_each(Job::run);
    }

    /// The other threads have ended: runs jobs until there are no more.
    fn run_all_jobs(&self) {
        while !self.jobs.lock().expect("no poison").is_empty() {
            self.run_jobs();
        }
    }

    /// Some threads check: the last one after the condition came true.
    fn crowd(&self) -> Vec<thread::JoinHandle<usize>> {
        let mut checking: Vec<_> =
            [1, 2].into_iter().map(|key| self.spawn(move |world| world.purgatory.check(&key))).collect();
        checking.push(self.spawn(|world| {
            world.purgatory.check(&1);
            world.set_ready();
            world.purgatory.check(&2)
        }));
        checking
    }

    fn submit(&self) -> Option<Submitted<Probe>> {
        self.purgatory.submit(Arc::clone(&self.probe), [1, 2], SECOND).ok()
    }

    fn set_ready(&self) {
        self.probe.ready.store(true, Ordering::SeqCst);
    }

    /// Runs `act` with a clone of the world in a thread.
    fn spawn<R: Send + 'static>(
        &self,
        act: impl FnOnce(Self) -> R + Send + 'static,
    ) -> thread::JoinHandle<R> {
        let world = self.clone();
        thread::spawn(move || act(world))
    }

    fn assert_empty(&self) {
        assert_eq!((self.purgatory.delayed(), self.purgatory.watched(), self.timer.pending()), (0, 0, 0));
    }
}

fn join<R>(thread: thread::JoinHandle<R>) -> R {
    thread.join().expect("a thread that does not panic")
}

#[test]
fn g10_submit_against_condition_and_check() {
    explore(|| {
        let world = World::new();
        let checking = world.spawn(|world| {
            world.set_ready();
            world.purgatory.check(&2)
        });
        let submitted = world.submit().expect("it is taken");
        join(checking);
        assert!(submitted.is_complete(), "missed");
        assert_eq!(world.probe.ends(), (0, 1));
        world.assert_empty();
    });
}

#[test]
fn g11_check_against_check() {
    explore(|| {
        let (world, _) = World::waiting();
        let other = world.spawn(|world| world.purgatory.check(&1));
        let checking = world.spawn(|world| {
            world.set_ready();
            world.purgatory.check(&2)
        });
        assert_eq!(join(other) + join(checking), 1, "missed, or twice");
        assert_eq!(world.probe.ends(), (0, 1));
        world.assert_empty();
    });
}

/// Four checks during the same looks, so some looks are handed over. The clock stands still.
#[test]
fn g11_checks_against_a_look_that_is_handed_over() {
    explore(|| {
        let world = World::that_keeps_jobs();
        let waiting = world.wait();
        let checking = world.crowd();
        let executor = world.spawn(|world| world.run_jobs());
        checking.into_iter().for_each(|thread| drop(join(thread)));
        join(executor);
        world.run_all_jobs();
        assert!(waiting.is_complete(), "missed");
        assert_eq!(world.probe.ends(), (0, 1));
        world.assert_empty();
    });
}

#[test]
fn g10_submit_against_checks_that_make_it_hand_over() {
    explore(|| {
        let world = World::that_keeps_jobs();
        let checking = world.crowd();
        let submitted = world.submit().expect("it is taken");
        checking.into_iter().for_each(|thread| drop(join(thread)));
        world.run_all_jobs();
        assert!(submitted.is_complete(), "missed");
        assert_eq!(world.probe.ends(), (0, 1));
        world.assert_empty();
    });
}

/// The executor has a look and the expiry, in an order that nothing decides.
#[test]
fn g13_expiry_against_a_look_that_is_handed_over() {
    explore(|| {
        let world = World::that_keeps_jobs();
        let waiting = world.wait();
        let checking = world.crowd();
        let executor = world.spawn(|world| world.run_jobs());
        world.clock.advance(SECOND);
        world.run_jobs();
        checking.into_iter().for_each(|thread| drop(join(thread)));
        join(executor);
        world.run_all_jobs();
        assert!(waiting.is_complete());
        let (expired, completed) = world.probe.ends();
        assert!(expired <= 1 && completed == 1, "{expired} and {completed}");
        world.assert_empty();
    });
}

#[test]
fn g6_cancel_against_a_look_that_is_handed_over() {
    explore(|| {
        let world = World::that_keeps_jobs();
        world.wait();
        let checking = world.crowd();
        let cancelled = world.purgatory.cancel_key(&2).len();
        checking.into_iter().for_each(|thread| drop(join(thread)));
        world.run_all_jobs();
        assert_eq!(world.probe.ends(), (0, 1 - cancelled));
        world.assert_empty();
    });
}

#[test]
fn g13_expiry_against_check() {
    explore(|| {
        let (world, _) = World::waiting();
        let checking = world.spawn(|world| {
            world.set_ready();
            world.purgatory.check(&1)
        });
        world.clock.advance(SECOND);
        let checked = join(checking);
        assert_eq!(world.probe.ends(), (1 - checked, 1));
        world.assert_empty();
    });
}

#[test]
fn g13_expiry_against_a_look_that_says_no() {
    explore(|| {
        let (world, waiting) = World::waiting();
        let checking = world.spawn(move |_| waiting.check());
        world.clock.advance(SECOND);
        assert!(!join(checking));
        assert_eq!(world.probe.ends(), (1, 1));
        world.assert_empty();
    });
}

#[test]
fn g6_cancel_against_check() {
    explore(|| {
        let (world, waiting) = World::waiting();
        let checking = world.spawn(|world| {
            world.set_ready();
            world.purgatory.check(&1)
        });
        let cancelled = world.purgatory.cancel_key(&2).len();
        let checked = join(checking);
        assert_eq!(cancelled + checked, 1);
        assert_eq!((world.probe.ends(), waiting.is_complete()), ((0, checked), checked == 1));
        world.assert_empty();
    });
}

#[test]
fn g6_cancel_against_submit() {
    explore(|| {
        let world = World::new();
        let cancelling = world.spawn(|world| world.purgatory.cancel_key(&1).len());
        let submitted = world.submit().expect("it is taken");
        let cancelled = join(cancelling);
        assert!(!submitted.is_complete());
        assert_eq!((world.purgatory.delayed(), world.timer.pending()), (1 - cancelled, 1 - cancelled));
        assert_eq!(world.purgatory.shutdown(), 1 - cancelled);
        assert_eq!(world.probe.ends(), (1 - cancelled, 1 - cancelled));
        world.assert_empty();
    });
}

/// The gauge may be too low for a moment, but never below zero.
#[test]
fn g4_the_gauge_of_keys_against_submit_and_cancel() {
    explore(|| {
        let world = World::new();
        let submitting = world.spawn(|world| drop(world.submit()));
        let cancelled = world.purgatory.cancel_key(&1).len();
        let watched = world.purgatory.watched();
        assert!(watched <= 2, "{watched} keys are watched, {cancelled} cancelled");
        join(submitting);
    });
}

#[test]
fn g7_force_against_check_and_expiry() {
    explore(|| {
        let (world, waiting) = World::waiting();
        let checking = world.spawn(|world| {
            world.set_ready();
            world.purgatory.check(&1)
        });
        let forcing = world.spawn(move |_| usize::from(waiting.complete()));
        world.clock.advance(SECOND);
        let (checked, forced) = (join(checking), join(forcing));
        let (expired, completed) = world.probe.ends();
        assert_eq!((expired + checked + forced, completed), (1, 1));
        world.assert_empty();
    });
}

#[test]
fn g16_shutdown_against_submit() {
    explore(|| {
        let world = World::new();
        let submitting = world.spawn(|world| {
            let submitted = world.submit();
            if matches!(submitted, Some(Submitted::Completed(_))) {
                assert_eq!(world.probe.ends(), (1, 1), "it is not over yet");
            }
            submitted.is_some()
        });
        let answered = world.purgatory.shutdown();
        let taken = usize::from(join(submitting));
        assert!(answered <= taken);
        assert_eq!(world.probe.ends(), (taken, taken));
        world.assert_empty();
    });
}

#[test]
fn g16_the_timers_shutdown_against_submit() {
    explore(|| {
        let world = World::new();
        let submitting = world.spawn(|world| world.submit().is_some());
        drop(world.timer.shutdown());
        let taken = usize::from(join(submitting));
        assert_eq!(world.probe.ends(), (taken, taken));
        world.assert_empty();
    });
}
