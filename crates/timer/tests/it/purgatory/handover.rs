//! Checks that come as often as a look takes: the thread that looks leaves the next look to the executor.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tickwheel::{Job, Submitted};

use crate::purgatory::probe::{Probe, SECOND, World, hook};

/// An executor that keeps its jobs until the test runs them.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Job>>>);

impl Kept {
    fn world(&self) -> Arc<World> {
        let kept = self.clone();
        Arc::new(World::with_executor(move |job| kept.0.lock().expect("no poison").push(job)))
    }

    fn len(&self) -> usize {
        self.0.lock().expect("no poison").len()
    }

    fn run(&self) {
        let jobs = std::mem::take(&mut *self.0.lock().expect("no poison"));
        jobs.into_iter().for_each(Job::run);
    }
}

/// A probe that waits on k1. During each of some looks, another thread checks k1.
fn disturbed(world: &Arc<World>, looks: RangeInclusive<usize>) -> Arc<Probe> {
    let probe = Probe::new();
    let (inside, this) = (Arc::clone(world), Arc::downgrade(&probe));
    hook(&probe.on_try, move || {
        if this.upgrade().is_some_and(|probe| looks.contains(&probe.tries())) {
            thread::scope(|scope| {
                scope.spawn(|| assert_eq!(inside.purgatory.check("k1"), 0));
            });
        }
    });
    probe
}

/// A submit makes two looks of its own, and any other call one.
#[test]
fn g28_a_call_makes_one_look_more_than_its_own_although_others_check() {
    let kept = Kept::default();
    let world = kept.world();
    let probe = disturbed(&world, 1..=9);
    let waiting = world.wait(&probe, ["k1"]);
    assert_eq!((probe.tries(), kept.len()), (3, 1));
    assert_eq!(world.purgatory.check("k1"), 0);
    assert_eq!((probe.tries(), kept.len()), (5, 1), "one handover is under way");
    assert!(!waiting.check());
    assert_eq!((probe.tries(), kept.len()), (7, 1));
    kept.run();
    assert_eq!((probe.tries(), kept.len()), (9, 1), "the executor has other work, too");
    probe.set_ready();
    kept.run();
    assert_eq!((probe.tries(), probe.ends(), kept.len()), (10, (0, 1), 0));
    world.assert_empty();
}

/// The check takes the look, so the handover finds nothing.
#[test]
fn g28_a_check_does_not_wait_for_the_executor() {
    let kept = Kept::default();
    let world = kept.world();
    let probe = disturbed(&world, 1..=3);
    world.wait(&probe, ["k1"]);
    probe.set_ready();
    assert_eq!(world.purgatory.check("k1"), 1);
    world.assert_empty();
    drop(world);
    kept.run();
    assert_eq!((probe.tries(), probe.ends()), (4, (0, 1)));
}

/// The look was requested before the end, and the condition has come true. A look comes before the expiry, as during a look.
#[test]
fn g13_a_look_that_is_handed_over_comes_before_the_expiry() {
    for way in ["time", "shutdown", "force", "cancel"] {
        for ready in [false, true] {
            let kept = Kept::default();
            let world = kept.world();
            let probe = disturbed(&world, 1..=3);
            let waiting = world.wait(&probe, ["k1", "k2"]);
            assert_eq!(kept.len(), 1);
            if ready {
                probe.set_ready();
            }
            match way {
                "time" => {
                    let handover = std::mem::take(&mut *kept.0.lock().unwrap());
                    world.clock.advance(SECOND);
                    kept.run();
                    kept.0.lock().unwrap().extend(handover);
                }
                "shutdown" => assert_eq!(world.purgatory.shutdown(), usize::from(!ready)),
                "force" => assert!(waiting.complete() && !waiting.complete()),
                _ => assert_eq!(world.purgatory.cancel_key("k2").len(), 1),
            }
            let (looks, ends) = match way {
                "cancel" => (3, (0, 0)),
                "force" => (3, (0, 1)),
                _ => (4, (usize::from(!ready), 1)),
            };
            assert_eq!((probe.tries(), probe.ends()), (looks, ends), "{way}, {ready}");
            world.assert_empty();
            kept.run();
            assert_eq!((probe.tries(), probe.ends()), (looks, ends), "the handover after {way}, {ready}");
        }
    }
}

/// With an executor that runs jobs at once, all looks are on the thread of the caller, one after the other: 20,000 that were nested would
/// need more than the stack.
#[test]
fn g28_handovers_do_not_nest() {
    const LOOKS: usize = 20_000;
    let world = Arc::new(World::new());
    let probe = Probe::new();
    let (inside, this) = (Arc::clone(&world), Arc::downgrade(&probe));
    hook(&probe.on_try, move || {
        let probe = this.upgrade().unwrap();
        if probe.tries() == LOOKS {
            probe.set_ready();
        }
        if probe.tries() <= LOOKS {
            assert_eq!(inside.purgatory.check("k1"), 0);
        }
    });
    let submitted = world.purgatory.submit(Arc::clone(&probe), ["k1"], SECOND).unwrap();
    assert!(submitted.is_complete());
    assert_eq!((probe.tries(), probe.ends()), (LOOKS + 1, (0, 1)));
    world.assert_empty();
}

/// An executor that refuses its first job, by dropping it or by a panic, gets the look again 100 ms later.
#[test]
fn g28_a_look_that_the_executor_refuses_comes_again() {
    for panics in [false, true] {
        let jobs = AtomicUsize::new(0);
        let world = Arc::new(World::with_executor(move |job: Job| {
            if jobs.fetch_add(1, Ordering::Relaxed) > 0 {
                job.run();
            } else {
                assert!(!panics, "at a job");
            }
        }));
        let probe = disturbed(&world, 1..=3);
        world.wait(&probe, ["k1"]);
        probe.set_ready();
        world.clock.advance(Duration::from_millis(99));
        assert_eq!((probe.tries(), probe.ends()), (3, (0, 0)));
        world.clock.advance(Duration::from_millis(2));
        assert_eq!((probe.tries(), probe.ends()), (4, (0, 1)));
        world.assert_empty();
    }
}

/// The timer is shut down, so it cannot hand the look over again. The look takes place where it is dropped.
#[test]
fn g28_a_look_is_not_lost_if_executor_and_timer_refuse_it() {
    let world = Arc::new(World::with_executor(drop));
    let probe = disturbed(&world, 1..=9);
    let waiting = world.wait(&probe, ["k1"]);
    assert_eq!(probe.tries(), 3);
    let unfired = world.timer.shutdown();
    assert_eq!(unfired.len(), 2, "the timeout, and the look");
    assert!(!waiting.check());
    assert_eq!(probe.tries(), 5, "the look that comes again is still to come");
    let tasks: Vec<_> = unfired.into_iter().collect();
    let (look, timeout) =
        tasks.into_iter().partition::<Vec<_>, _>(|task| task.deadline().as_nanos() < 500_000_000);
    drop(look);
    assert_eq!((probe.tries(), probe.ends()), (10, (0, 0)));
    drop(timeout);
    assert_eq!((probe.tries(), probe.ends()), (10, (1, 1)));

    let world = Arc::new(World::with_executor(drop));
    let probe = disturbed(&world, 3..=9);
    let waiting = world.wait(&probe, ["k1"]);
    let unfired = world.timer.shutdown();
    assert!(!waiting.check());
    assert_eq!((probe.tries(), probe.ends(), unfired.len()), (10, (0, 0), 1));
}

#[test]
fn g28_an_attempt_that_panics_on_the_executor_is_counted() {
    let kept = Kept::default();
    let world = kept.world();
    let probe = Probe::new();
    let (inside, this) = (Arc::clone(&world), Arc::downgrade(&probe));
    hook(&probe.on_try, move || {
        let tries = this.upgrade().unwrap().tries();
        if tries <= 3 {
            inside.purgatory.check("k1");
        }
        assert!(tries != 4, "at a look");
    });
    let submitted = world.purgatory.submit(Arc::clone(&probe), ["k1"], SECOND).unwrap();
    assert!(matches!(submitted, Submitted::Waiting(_)), "{submitted:?}");
    probe.set_ready();
    kept.run();
    assert_eq!((probe.tries(), probe.ends(), world.timer.metrics().panicked), (4, (0, 0), 1));
    assert_eq!(world.purgatory.check("k1"), 1);
    world.assert_empty();
}
