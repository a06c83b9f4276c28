//! The rules of the state word, and the driver's sleep. If several threads race for a task, exactly one wins. The
//! driver never sleeps past a deadline.

use std::sync::{Arc, Weak};
use std::time::Duration;

use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::sync::mpsc;
use shuttle::thread;
use tickwheel::{
    Clock, Executor, Follower, Job, ManualClock, Missed, Monotonic, Motion, OnClose, Timeout, TimeoutState,
    Timer,
};

use crate::shuttle::explore;

const MS: Duration = Duration::from_millis(1);

/// Holds jobs until the test runs them.
#[derive(Clone, Default)]
struct Held(Arc<Mutex<Vec<Job>>>);

impl Executor for Held {
    fn execute(&self, job: Job) {
        self.0.lock().expect("no panic").push(job);
    }
}

impl Held {
    fn run(&self) {
        let jobs = std::mem::take(&mut *self.0.lock().expect("no panic"));
        jobs.into_iter().for_each(Job::run);
    }
}

struct ByHand {
    clock: ManualClock,
    timer: Timer,
    ran: Arc<AtomicUsize>,
}

impl ByHand {
    fn with(executor: impl Executor + 'static) -> Arc<Self> {
        let clock = ManualClock::new();
        let timer = Timer::builder().clock(clock.clone()).executor(executor).build().expect("a timer");
        Arc::new(Self { clock, timer, ran: Arc::default() })
    }

    fn new() -> Arc<Self> {
        Self::with(Job::run)
    }

    fn schedule(&self, delay: Duration) -> Option<Timeout> {
        let ran = Arc::clone(&self.ran);
        self.timer
            .schedule(delay, move || {
                ran.fetch_add(1, Ordering::SeqCst);
            })
            .ok()
    }

    fn ran(&self) -> usize {
        self.ran.load(Ordering::SeqCst)
    }

    fn spawn<R: Send + 'static>(
        self: &Arc<Self>,
        body: impl FnOnce(&Self) -> R + Send + 'static,
    ) -> thread::JoinHandle<R> {
        let shared = Arc::clone(self);
        thread::spawn(move || body(&shared))
    }

    /// Checks the counters when no other thread runs.
    fn balanced(&self) {
        let metrics = self.timer.metrics();
        assert_eq!(metrics.accepted, metrics.fired + metrics.cancelled + metrics.returned + metrics.pending);
    }
}

fn join<R>(thread: thread::JoinHandle<R>) -> R {
    thread.join().expect("no panic")
}

#[test]
fn t16_a_body_a_cancel_and_a_shutdown_race() {
    for filed in [false, true] {
        explore(move || {
            let by_hand = ByHand::new();
            let timeout = by_hand.schedule(2 * MS).expect("it is open");
            if filed {
                by_hand.clock.advance(MS);
            }
            let clock = by_hand.spawn(|by_hand| by_hand.clock.advance(2 * MS));
            let same = timeout.clone();
            let cancel = by_hand.spawn(move |_| usize::from(same.cancel()));
            let returned = by_hand.timer.shutdown().len();
            join(clock);
            let cancelled = join(cancel);
            assert_eq!(by_hand.ran() + cancelled + returned, 1);
            let ended = match timeout.state() {
                TimeoutState::Fired => (1, 0, 0),
                TimeoutState::Cancelled => (0, 1, 0),
                TimeoutState::Returned => (0, 0, 1),
                open => panic!("it ended as {open:?}"),
            };
            assert_eq!((by_hand.ran(), cancelled, returned), ended);
            assert_eq!(by_hand.timer.pending(), 0);
            by_hand.balanced();
        });
    }
}

#[test]
fn t16_two_cancels_and_an_executor_race() {
    explore(|| {
        let held = Held::default();
        let by_hand = ByHand::with(held.clone());
        let timeout = by_hand.schedule(MS).expect("it is open");
        by_hand.clock.advance(MS);
        let runs = by_hand.spawn(move |_| held.run());
        let same = timeout.clone();
        let first = by_hand.spawn(move |_| usize::from(same.cancel()));
        let second = usize::from(timeout.cancel());
        join(runs);
        assert_eq!(join(first) + second + by_hand.ran(), 1);
        by_hand.balanced();
    });
}

#[test]
fn t26_a_schedule_and_a_shutdown_race() {
    explore(|| {
        let by_hand = ByHand::new();
        let producer = by_hand.spawn(|by_hand| {
            let delays = [Duration::ZERO, MS];
            delays.into_iter().filter(|delay| by_hand.schedule(*delay).is_some()).count()
        });
        let clock = by_hand.spawn(|by_hand| by_hand.clock.advance(MS));
        let returned = by_hand.timer.shutdown().len();
        let accepted = join(producer);
        join(clock);
        assert_eq!(accepted, by_hand.ran() + returned);
        assert_eq!(by_hand.timer.pending(), 0);
        by_hand.balanced();
    });
}

/// After `reschedule` returned true, the old deadline does not fire. If it returned false, the body has begun.
#[test]
fn t30_a_move_and_a_turn_race() {
    for to in [3 * MS, 10 * MS] {
        explore(move || {
            let by_hand = ByHand::new();
            let timeout = by_hand.schedule(5 * MS).expect("it is open");
            let clock = by_hand.spawn(|by_hand| by_hand.clock.advance(5 * MS));
            let moved = timeout.reschedule_at(Monotonic::ZERO.saturating_add(to));
            join(clock);
            by_hand.clock.advance(Duration::ZERO);
            let due = !moved || to <= 5 * MS;
            assert_eq!(by_hand.ran(), usize::from(due), "moved: {moved}");
            by_hand.clock.advance(5 * MS);
            assert_eq!(by_hand.ran(), 1);
            by_hand.balanced();
        });
    }
}

/// Two threads move the task to earlier deadlines while the turn looks. The driver is told of the last move in any
/// order.
#[test]
fn t30_two_moves_to_earlier_and_a_turn_race() {
    explore(|| {
        let by_hand = ByHand::new();
        let timeout = by_hand.schedule(50 * MS).expect("it is open");
        by_hand.clock.advance(MS);
        let clock = by_hand.spawn(|by_hand| by_hand.clock.advance(MS));
        let same = timeout.clone();
        let other = by_hand.spawn(move |_| same.reschedule_at(Monotonic::ZERO.saturating_add(30 * MS)));
        assert!(timeout.reschedule_at(Monotonic::ZERO.saturating_add(20 * MS)));
        join(clock);
        assert!(join(other));
        let due = timeout.deadline();
        by_hand.clock.advance(due.saturating_since(by_hand.clock.now()));
        assert_eq!((by_hand.ran(), timeout.state()), (1, TimeoutState::Fired));
        by_hand.balanced();
    });
}

/// Two threads move a task that is filed far ahead, one of them to now. The turn that this move causes has to find the
/// task.
#[test]
fn t30_a_move_to_now_overtakes_another() {
    explore(|| {
        let by_hand = ByHand::new();
        let timeout = by_hand.schedule(60 * MS).expect("it is open");
        by_hand.timer.schedule(10 * MS, || ()).map_err(|refused| refused.why).expect("it is open");
        by_hand.clock.advance(MS);
        let same = timeout.clone();
        let other = by_hand.spawn(move |_| same.reschedule(30 * MS));
        assert!(timeout.reschedule(Duration::ZERO));
        join(other);
        // The last reschedule decides the deadline. If the deadline is now, the task has run without a further step.
        let due = timeout.deadline() <= by_hand.clock.now();
        assert_eq!(by_hand.ran(), usize::from(due), "{timeout:?}");
        by_hand.clock.advance(30 * MS);
        assert_eq!(by_hand.ran(), 1);
    });
}

#[test]
fn t30_a_move_of_what_an_executor_has_races_with_its_body() {
    explore(|| {
        let held = Held::default();
        let by_hand = ByHand::with(held.clone());
        let timeout = by_hand.schedule(MS).expect("it is open");
        by_hand.clock.advance(MS);
        let same = held.clone();
        let runs = by_hand.spawn(move |_| same.run());
        let moved = timeout.reschedule(9 * MS);
        join(runs);
        assert_eq!(by_hand.ran(), usize::from(!moved));
        by_hand.clock.advance(9 * MS);
        held.run();
        assert_eq!((by_hand.ran(), by_hand.timer.pending()), (1, 0));
        by_hand.balanced();
    });
}

#[test]
fn t15_a_periodic_task_is_cancelled_while_it_comes_and_goes() {
    explore(|| {
        let by_hand = ByHand::new();
        let ran = Arc::clone(&by_hand.ran);
        let body = move || {
            ran.fetch_add(1, Ordering::SeqCst);
        };
        let task = by_hand.timer.every(MS).missed(Missed::Burst).start(body).expect("it is open");
        let clock = by_hand.spawn(|by_hand| {
            by_hand.clock.advance(MS);
            by_hand.clock.advance(MS);
        });
        assert!(task.cancel(), "there is always a next run to cancel");
        assert!(!task.cancel());
        join(clock);
        let before = by_hand.ran();
        by_hand.clock.advance(5 * MS);
        assert_eq!(by_hand.ran(), before, "it ran after it was cancelled");
        assert_eq!(task.state(), TimeoutState::Cancelled);
        assert_eq!(by_hand.timer.pending(), 0);
        by_hand.balanced();
    });
}

#[test]
fn t25_a_periodic_task_and_a_shutdown_race() {
    explore(|| {
        let by_hand = ByHand::new();
        let ran = Arc::clone(&by_hand.ran);
        let body = move || {
            ran.fetch_add(1, Ordering::SeqCst);
        };
        let task = by_hand.timer.every(MS).start(body).expect("it is open");
        let clock = by_hand.spawn(|by_hand| {
            by_hand.clock.advance(MS);
            by_hand.clock.advance(MS);
        });
        let returned = by_hand.timer.shutdown().len();
        let ran = by_hand.ran();
        join(clock);
        // A body may have been running already, but no body began.
        assert!(by_hand.ran() <= ran + 1);
        let ended = if returned == 1 { TimeoutState::Returned } else { TimeoutState::Fired };
        assert_eq!((task.state(), by_hand.timer.pending()), (ended, 0));
        by_hand.balanced();
    });
}

/// Two threads move the clock, and one schedules a task. When all have ended, every due task has run without a further
/// step.
#[test]
fn t1_what_is_due_when_all_is_quiet_has_run() {
    explore(|| {
        let by_hand = ByHand::new();
        let first = by_hand.spawn(|by_hand| by_hand.clock.advance(MS));
        let second = by_hand.spawn(|by_hand| by_hand.clock.advance(MS));
        let timeout = by_hand.timer.schedule_at(Monotonic::ZERO.saturating_add(MS), {
            let ran = Arc::clone(&by_hand.ran);
            move || {
                ran.fetch_add(1, Ordering::SeqCst);
            }
        });
        join(first);
        join(second);
        assert_eq!(by_hand.ran(), 1, "{timeout:?}");
        by_hand.schedule(Duration::ZERO);
        assert_eq!(by_hand.ran(), 2, "one more, which is due already");
    });
}

/// The counters are read while tasks are scheduled and cancelled. They are never below zero, and never count a task
/// that does not exist.
#[test]
fn t22_the_count_is_read_while_tasks_come_and_go() {
    explore(|| {
        let by_hand = ByHand::new();
        let producer = by_hand.spawn(|by_hand| {
            for _ in 0..2 {
                assert!(by_hand.schedule(MS).expect("it is open").cancel());
            }
        });
        let metrics = by_hand.timer.metrics();
        assert!(metrics.accepted >= metrics.fired + metrics.cancelled + metrics.returned, "{metrics:?}");
        join(producer);
        assert_eq!(by_hand.timer.pending(), 0);
        by_hand.balanced();
    });
}

/// A clock that counts its references.
struct Lent<C>(C, #[expect(dead_code, reason = "it is counted")] Arc<()>);

impl<C: Clock> Clock for Lent<C> {
    fn now(&self) -> Monotonic {
        self.0.now()
    }

    fn follow(&self, follower: Weak<dyn Follower>) -> Motion {
        self.0.follow(follower)
    }
}

/// If an entry was left in a timer that has ended, the entry and the timer would keep each other in memory for ever.
#[test]
fn t26_what_races_with_the_end_is_not_left_behind() {
    explore(|| {
        let (clock, lent, held) = (ManualClock::new(), Arc::new(()), Held::default());
        let builder = Timer::builder().clock(Lent(clock.clone(), Arc::clone(&lent)));
        let timer = builder.executor(held.clone()).build().expect("a timer");
        let [due, moved, cancelled] = [MS, 50 * MS, 60 * MS]
            .map(|delay| timer.schedule(delay, || ()).map_err(|refused| refused.why).expect("it is open"));
        clock.advance(MS);
        let thread = thread::spawn(move || {
            due.reschedule(9 * MS);
            moved.reschedule(5 * MS);
            cancelled.cancel();
        });
        drop(timer);
        join(thread);
        held.run();
        assert_eq!(Arc::strong_count(&lent), 1);
    });
}

/// To a driver this is a clock that runs by itself. It always shows one second.
struct Still;

impl Clock for Still {
    fn now(&self) -> Monotonic {
        Monotonic::ZERO.saturating_add(Duration::from_secs(1))
    }
}

/// The driver is about to sleep when `close` files again what the driver had not seen. If the task was left, that would
/// be a deadlock here.
#[test]
fn t28_what_a_close_keeps_while_the_driver_goes_to_sleep_runs() {
    explore(|| {
        let timer = Timer::builder().clock(Still).executor(Job::run).build().expect("a timer");
        let (sender, receiver) = mpsc::channel();
        let body = move || sender.send(()).expect("the test waits");
        timer.schedule(Duration::ZERO, body).map_err(|refused| refused.why).expect("it is open");
        assert!(timer.close(OnClose::default()).is_empty());
        receiver.recv().expect("the body runs");
        assert!(timer.shutdown().is_empty());
    });
}

/// The same test with a driver, which may not run another turn, and a due task that is moved.
#[test]
fn t26_what_an_executor_has_is_not_left_behind() {
    explore(|| {
        let lent = Arc::new(());
        let (sender, receiver) = mpsc::channel();
        let sender = Mutex::new(sender);
        let executor = move |job: Job| {
            let _ = sender.lock().expect("no panic").send(job);
        };
        let clock = Lent(Still, Arc::clone(&lent));
        let timer = Timer::builder().clock(clock).executor(executor).build().expect("a timer");
        let due = timer.schedule(Duration::ZERO, || ()).map_err(|refused| refused.why).expect("it is open");
        let job: Job = receiver.recv().expect("it is due");
        let thread = thread::spawn(move || due.reschedule(MS));
        drop(timer);
        join(thread);
        job.run();
        // The driver holds the clock until it has ended.
        while Arc::strong_count(&lent) > 1 {
            thread::yield_now();
        }
    });
}

/// The last timer is dropped while its driver is about to sleep until a task that is due in a minute.
#[test]
fn t27_the_end_is_not_slept_through() {
    explore(|| {
        let timer = Timer::builder().clock(Still).executor(Job::run).build().expect("a timer");
        let task = timer.schedule(Duration::from_secs(60), || ());
        let task = task.map_err(|refused| refused.why).expect("it is open");
        drop(timer);
        assert_eq!(task.state(), TimeoutState::Returned);
    });
}

/// The driver sleeps without limit, or is about to, when a due task comes. A missed wake-up is a deadlock here.
#[test]
fn t27_nobody_sleeps_past_a_deadline() {
    // With the shorter time, the due task is at the tick just before the driver's next wake-up.
    for far in [Duration::from_secs(60), MS] {
        explore(move || nobody_sleeps(far));
    }
}

fn nobody_sleeps(far: Duration) {
    let timer = Timer::builder().clock(Still).executor(Job::run).build().expect("a timer");
    let (sender, receiver) = mpsc::channel();
    let producers: Vec<_> = (0..2)
        .map(|_| {
            let (timer, sender) = (timer.clone(), sender.clone());
            thread::spawn(move || {
                let body = move || sender.send(()).expect("the test waits");
                timer.schedule(Duration::ZERO, body).map_err(|refused| refused.why).expect("it is open");
            })
        })
        .collect();
    // The task is moved to now, from a deadline that the driver would sleep for.
    let moved = timer.schedule(far, move || sender.send(()).expect("the test waits"));
    assert!(moved.map_err(|refused| refused.why).expect("it is open").reschedule(Duration::ZERO));
    for _ in 0..3 {
        receiver.recv().expect("three bodies run");
    }
    producers.into_iter().for_each(join);
    // The end must wake the driver, too. If the driver slept, shuttle would wait for its thread.
    assert!(timer.shutdown().is_empty());
}
