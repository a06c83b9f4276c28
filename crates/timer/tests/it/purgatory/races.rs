//! Tests with many threads. The clock stands still unless a test moves it, so no timeout hides a completion that was
//! missed.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex, mpsc};
use std::thread::{self, ThreadId};
use std::time::Duration;

use tickwheel::{Operation, Purgatory, Submitted};

use crate::purgatory::probe::{Probe, SECOND, World, hook};

/// The end comes exactly once, and all threads agree on the thread that decided it.
#[test]
fn g7_one_end_under_expiry_check_force_and_cancel() {
    for round in 0..300 {
        let world = World::new();
        let probe = Probe::new();
        let waiting = world.wait(&probe, ["k1", "k2"]);
        let start = Barrier::new(4);
        let together = |act: &dyn Fn() -> usize| {
            start.wait();
            act()
        };
        let (checked, forced, cancelled) = thread::scope(|scope| {
            let checking = scope.spawn(|| {
                probe.set_ready();
                together(&|| world.purgatory.check("k1"))
            });
            let forcing = scope.spawn(|| together(&|| usize::from(waiting.complete())));
            let cancelling = scope.spawn(|| {
                together(&|| if round % 2 == 0 { world.purgatory.cancel_key("k2").len() } else { 0 })
            });
            together(&|| world.clock.advance(SECOND).as_nanos() as usize);
            (checking.join().unwrap(), forcing.join().unwrap(), cancelling.join().unwrap())
        });
        let (expired, completed) = probe.ends();
        assert_eq!(expired + checked + forced + cancelled, 1, "round {round}");
        assert_eq!(completed, 1 - cancelled, "round {round}");
        assert_eq!(waiting.is_complete(), cancelled == 0);
        world.assert_empty();
    }
}

/// One thread submits while another makes the condition true and checks. In 2,000 rounds the two meet at every step.
#[test]
fn g10_no_submit_misses_a_condition_that_is_checked() {
    let world = World::new();
    let probes: Vec<_> = (0..2_000).map(|_| Probe::new()).collect();
    let start = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            for probe in &probes {
                start.wait();
                probe.set_ready();
                world.purgatory.check("k2");
            }
        });
        for probe in &probes {
            start.wait();
            world.purgatory.submit(Arc::clone(probe), ["k1", "k2"], SECOND).unwrap();
        }
    });
    assert_eq!(world.gauges(), (0, 0), "missed");
    assert!(probes.iter().all(|probe| probe.ends() == (0, 1)));
}

/// A lock that its owner may take again. Locks of callers are often of this kind.
#[derive(Default)]
struct Reentrant {
    owner: Mutex<(Option<ThreadId>, usize)>,
    freed: Condvar,
}

impl Reentrant {
    fn with<R>(&self, act: impl FnOnce() -> R) -> R {
        let me = thread::current().id();
        let theirs = |owner: &mut (Option<ThreadId>, usize)| owner.0.is_some_and(|owner| owner != me);
        let mut owner =
            self.freed.wait_while(self.owner.lock().expect("no poison"), theirs).expect("no poison");
        *owner = (Some(me), owner.1 + 1);
        drop(owner);
        let result = act();
        let mut owner = self.owner.lock().expect("no poison");
        owner.1 -= 1;
        if owner.1 == 0 {
            owner.0 = None;
            self.freed.notify_one();
        }
        result
    }
}

/// Complete when enough threads have counted.
struct Counted {
    needed: usize,
    count: AtomicUsize,
    completed: AtomicUsize,
    /// Every look takes this lock, while a caller may hold it.
    lock: Option<Arc<Reentrant>>,
}

impl Operation for Counted {
    fn try_complete(&self) -> bool {
        let look = || self.count.load(Ordering::Relaxed) >= self.needed;
        self.lock.as_ref().map_or_else(look, |lock| lock.with(look))
    }

    fn on_complete(&self) {
        self.completed.fetch_add(1, Ordering::Relaxed);
    }
}

/// The lock that a thread holds while it counts and checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    Nothing,
    ItsOwn,
    TheOperations,
}

#[test]
fn g11_twenty_threads_on_a_hundred_operations_miss_nothing() {
    const THREADS: usize = 20;
    for hold in [Hold::Nothing, Hold::ItsOwn, Hold::TheOperations] {
        let world = World::new();
        let purgatory: Purgatory<usize, Counted> = Purgatory::new(&world.timer);
        let lock = Arc::new(Reentrant::default());
        let operations: Vec<_> = (0..100)
            .map(|_| {
                let lock = (hold == Hold::TheOperations).then(|| Arc::clone(&lock));
                let (count, completed) = (AtomicUsize::new(0), AtomicUsize::new(0));
                Arc::new(Counted { needed: THREADS, count, completed, lock })
            })
            .collect();
        let start = Barrier::new(THREADS);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (purgatory, operations, lock, start) = (&purgatory, &operations, &lock, &start);
                scope.spawn(move || {
                    let own = Reentrant::default();
                    start.wait();
                    for (number, operation) in operations.iter().enumerate() {
                        // Five operations share a key. Each is submitted while other threads already count for it.
                        if number % THREADS == thread {
                            let keys = [number / 5, 1_000 + number];
                            purgatory.submit(Arc::clone(operation), keys, SECOND).unwrap();
                        }
                        let count = || {
                            operation.count.fetch_add(1, Ordering::Relaxed);
                            purgatory.check(&if thread % 2 == 0 { number / 5 } else { 1_000 + number });
                        };
                        match hold {
                            Hold::Nothing => count(),
                            Hold::ItsOwn => own.with(count),
                            Hold::TheOperations => lock.with(count),
                        }
                    }
                });
            }
        });
        assert_eq!((purgatory.delayed(), purgatory.watched()), (0, 0), "missed while holding {hold:?}");
        assert!(operations.iter().all(|operation| operation.completed.load(Ordering::Relaxed) == 1));
    }
}

/// Two completions each check the key of the other one, from both sides at the same time. Each caller has a lock of
/// its own.
#[test]
fn g12_completions_that_check_each_others_keys_do_not_lock_up() {
    const ROUNDS: usize = 1_000;
    let world = Arc::new(World::new());
    let pairs: Vec<_> = (0..ROUNDS)
        .map(|_| {
            let pair = [Probe::new(), Probe::new()];
            for (probe, other) in pair.iter().zip(["b", "a"]) {
                let inside = Arc::clone(&world);
                hook(&probe.on_end, move || {
                    inside.purgatory.check(other);
                });
            }
            pair
        })
        .collect();
    let ready = Barrier::new(2);
    let rounds = |mine: usize, key: &'static str| {
        let lock = Mutex::new(());
        for (round, pair) in pairs.iter().enumerate() {
            // Both orders of submission.
            if mine == round % 2 {
                for index in [mine, 1 - mine] {
                    world.wait(&pair[index], [["a", "b"][index]]);
                    pair[index].set_ready();
                }
            }
            ready.wait();
            let held = lock.lock().unwrap();
            world.purgatory.check(key);
            drop(held);
            ready.wait();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| rounds(0, "a"));
        rounds(1, "b");
    });
    assert!(pairs.iter().flatten().all(|probe| probe.ends() == (0, 1)));
    world.assert_empty();
}

/// A probe whose third look, the first one after the submit, stops until it is told to go on. The scope of the threads
/// owns the sender, so a failed assertion drops the sender and the test ends.
fn stopped_at_the_third_look() -> (Arc<Probe>, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (entered, entry) = mpsc::channel();
    let (leave, left) = mpsc::channel();
    let (entered, left) = (Mutex::new(entered), Mutex::new(left));
    let probe = Probe::new();
    let this = Arc::downgrade(&probe);
    hook(&probe.on_try, move || {
        if this.upgrade().is_some_and(|probe| probe.tries() == 3) {
            entered.lock().expect("no poison").send(()).expect("a test that listens");
            left.lock().expect("no poison").recv().expect("a test that goes on");
        }
    });
    (probe, entry, leave)
}

/// The test tries each way to end an operation while a look is running. It then checks the result, for both orders of
/// the end and the look.
#[test]
fn g13_no_end_overlaps_a_look() {
    for way in ["time", "force", "shutdown", "cancel"] {
        for ready in [false, true] {
            let world = World::new();
            let (probe, entry, leave) = stopped_at_the_third_look();
            let waiting = world.wait(&probe, ["k1", "k2"]);
            thread::scope(|scope| {
                let leave = leave;
                let checking = scope.spawn(|| {
                    if ready {
                        probe.set_ready();
                    }
                    world.purgatory.check("k1")
                });
                entry.recv_timeout(tickwheel_testing::HANG_TIME).expect("a third look");
                match way {
                    "time" => drop(world.clock.advance(SECOND)),
                    "force" => assert!(waiting.complete() && !waiting.complete()),
                    "shutdown" => {
                        assert_eq!(world.purgatory.shutdown(), 0, "it is left to the thread that looks")
                    }
                    _ => assert_eq!(world.purgatory.cancel_key("k2").len(), 1),
                }
                assert_eq!(probe.ends(), (0, 0), "{way} overlaps a look");
                leave.send(()).unwrap();
                let by_check = ready && matches!(way, "time" | "shutdown");
                assert_eq!(checking.join().unwrap(), usize::from(by_check), "{way}, {ready}");
            });
            let ends = match way {
                "cancel" => (0, 0),
                "force" => (0, 1),
                _ => (usize::from(!ready), 1),
            };
            assert_eq!((probe.ends(), probe.tries()), (ends, 3), "{way}, {ready}");
            world.assert_empty();
        }
    }
}

/// A change during a look is not lost. The check that reports it returns at once, and the thread that looks will look
/// again.
#[test]
fn g11_a_check_during_a_look_is_one_more_look() {
    let world = World::new();
    let (probe, entry, leave) = stopped_at_the_third_look();
    world.wait(&probe, ["k1", "k2"]);
    thread::scope(|scope| {
        let leave = leave;
        let checking = scope.spawn(|| world.purgatory.check("k1"));
        entry.recv_timeout(tickwheel_testing::HANG_TIME).expect("a third look");
        probe.set_ready();
        for key in ["k1", "k2", "k1"] {
            assert_eq!(world.purgatory.check(key), 0);
        }
        // The look was requested in time, so it counts, although the timeout comes before it.
        world.clock.advance(SECOND);
        leave.send(()).unwrap();
        assert_eq!(checking.join().unwrap(), 1);
    });
    assert_eq!((probe.tries(), probe.ends()), (4, (0, 1)));
    world.assert_empty();
}

/// A slow look blocks neither another key nor another operation on its own key.
#[test]
fn g16_a_look_that_blocks_is_in_nobodys_way() {
    let world = World::new();
    let (slow, entry, leave) = stopped_at_the_third_look();
    world.wait(&slow, ["k1"]);
    let (near, far) = (Probe::new(), Probe::new());
    world.wait(&near, ["k1"]);
    world.wait(&far, ["k2"]);
    thread::scope(|scope| {
        let leave = leave;
        scope.spawn(|| world.purgatory.check("k1"));
        entry.recv_timeout(tickwheel_testing::HANG_TIME).expect("a third look");
        for (probe, key) in [(&near, "k1"), (&far, "k2")] {
            probe.set_ready();
            assert_eq!(world.purgatory.check(key), 1);
        }
        leave.send(()).unwrap();
    });
    assert_eq!(world.gauges(), (1, 1));
}

/// Each operation is refused or ends, and no operation waits afterwards.
#[test]
fn g16_a_submit_that_races_with_a_shutdown_is_refused_or_answered() {
    for _ in 0..200 {
        let world = World::new();
        let stopped = AtomicBool::new(false);
        let start = Barrier::new(3);
        thread::scope(|scope| {
            for key in ["k1", "k2"] {
                let (world, stopped, start) = (&world, &stopped, &start);
                scope.spawn(move || {
                    start.wait();
                    while !stopped.load(Ordering::Relaxed) {
                        let probe = Probe::new();
                        match world.purgatory.submit(Arc::clone(&probe), [key, "all"], Duration::MAX) {
                            Ok(Submitted::Waiting(_)) => {}
                            Ok(Submitted::Completed(_)) => assert_eq!(probe.ends(), (1, 1)),
                            Err(_) => assert_eq!(probe.ends(), (0, 0)),
                        }
                    }
                });
            }
            start.wait();
            world.purgatory.shutdown();
            stopped.store(true, Ordering::Relaxed);
        });
        world.assert_empty();
    }
}
