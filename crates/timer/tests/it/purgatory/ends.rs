//! Shutdowns and refusals, and their effect on waiting operations.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tickwheel::{Job, ManualClock, Purgatory, SubmitRefusal, Submitted, Timer};

use crate::purgatory::probe::{Probe, SECOND, World, hook};

#[test]
fn g16_a_shutdown_answers_everybody_in_order_and_takes_nobody() {
    let world = World::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let probes: [Arc<Probe>; 4] = std::array::from_fn(|number| {
        let (probe, told) = (Probe::new(), Arc::clone(&told));
        hook(&probe.on_end, move || told.lock().unwrap().push(number));
        probe
    });
    for (probe, key) in probes.iter().zip(["k1", "k2", "k3", "k4"]) {
        world.wait(probe, [key, "all"]);
    }
    assert_eq!(world.purgatory.shutdown(), 4);
    assert_eq!(*told.lock().unwrap(), [0, 1, 2, 3]);
    for probe in &probes {
        assert_eq!(probe.ends(), (1, 1));
    }
    world.assert_empty();

    assert_eq!(world.purgatory.shutdown(), 0);
    let late = Probe::new();
    late.set_ready();
    let error = world.purgatory.clone().submit(Arc::clone(&late), ["k1"], SECOND).unwrap_err();
    assert_eq!(error.why, SubmitRefusal::ShutDown);
    assert_eq!((late.tries(), late.ends()), (0, (0, 0)));
    world.clock.advance(SECOND);
    assert_eq!(probes[0].ends(), (1, 1));
}

#[test]
fn a_shutdown_may_come_out_of_a_completion() {
    let world = Arc::new(World::new());
    let (first, second) = (Probe::new(), Probe::new());
    let inside = Arc::clone(&world);
    hook(&first.on_end, move || assert_eq!(inside.purgatory.shutdown(), 1));
    let waiting = world.wait(&first, ["k1"]);
    world.wait(&second, ["k1"]);
    assert!(waiting.complete());
    assert_eq!((first.ends(), second.ends()), ((0, 1), (1, 1)));
    world.assert_empty();
}

#[test]
fn a_timer_without_a_place_refuses_and_leaves_no_trace() {
    let world = World::with_max_pending(1);
    let first = world.wait(&Probe::new(), ["k1"]);
    let probe = Probe::new();
    let error = world.purgatory.submit(Arc::clone(&probe), ["k1", "k2"], SECOND).unwrap_err();
    assert_eq!(error.why, SubmitRefusal::Full);
    assert!(error.to_string().contains("max_pending"), "{error}");
    assert!(Arc::ptr_eq(&error.operation, &probe));
    assert_eq!((probe.ends(), world.gauges()), ((0, 0), (1, 1)));
    drop(error);
    assert_eq!(Arc::strong_count(&probe), 1);

    assert!(first.complete());
    let waiting = world.wait(&probe, ["k1"]);
    probe.set_ready();
    assert!(waiting.check());
    world.assert_empty();
}

#[test]
fn a_timer_that_is_shut_down_refuses_unless_nothing_has_to_wait() {
    let world = World::new();
    drop(world.timer.shutdown());
    let probe = Probe::new();
    let error = world.purgatory.submit(Arc::clone(&probe), ["k1"], SECOND).unwrap_err();
    assert_eq!((error.why, probe.ends()), (SubmitRefusal::ShutDown, (0, 0)));
    probe.set_ready();
    let submitted = world.purgatory.submit(Arc::clone(&probe), ["k1"], SECOND).unwrap();
    assert!(matches!(submitted, Submitted::Completed(_)), "{submitted:?}");
    world.assert_empty();
}

/// An operation must not wait for ever for a timeout that will never come.
#[test]
fn a_timer_that_shuts_down_expires_those_who_wait() {
    let world = World::new();
    let probes = [Probe::new(), Probe::new()];
    let waiting = probes.each_ref().map(|probe| world.wait(probe, ["k1"]));
    let unfired = world.timer.shutdown();
    assert_eq!(unfired.len(), 2);
    assert_eq!(probes[0].ends(), (0, 0), "whoever has the bodies may still run them");
    assert!(waiting[0].complete(), "by force it ends as ever");
    drop(unfired);
    assert_eq!(probes.each_ref().map(|probe| probe.ends()), [(0, 1), (1, 1)]);
    world.assert_empty();
}

#[test]
fn a_purgatory_that_is_dropped_leaves_operations_their_timeouts() {
    let World { clock, timer, purgatory } = World::new();
    let (timed, forced) = (Probe::new(), Probe::new());
    let [_, waiting] = [&timed, &forced].map(|probe| {
        let submitted = purgatory.submit(Arc::clone(probe), ["k1", "k2"], SECOND).unwrap();
        let Submitted::Waiting(waiting) = submitted else { panic!("it completed") };
        waiting
    });
    drop(purgatory);
    assert_eq!((timed.ends(), timer.pending()), ((0, 0), 2));
    assert!(waiting.complete());
    clock.advance(SECOND);
    assert_eq!((timed.ends(), forced.ends()), ((1, 1), (0, 1)));
    assert_eq!(timer.pending(), 0);
}

/// The purgatory has the last handle of the timer.
#[test]
fn what_waits_when_everything_is_dropped_expires() {
    let World { clock, timer, purgatory } = World::new();
    let probe = Probe::new();
    drop(purgatory.submit(Arc::clone(&probe), ["k1"], SECOND).unwrap());
    drop(timer);
    assert_eq!(probe.ends(), (0, 0));
    drop(purgatory);
    assert_eq!(probe.ends(), (1, 1));
    clock.advance(SECOND);
    assert_eq!((probe.ends(), Arc::strong_count(&probe)), ((1, 1), 1));
}

#[test]
fn no_time_at_all_is_an_expiry_at_the_next_turn() {
    let world = World::new();
    let probe = Probe::new();
    let submitted = world.purgatory.submit(Arc::clone(&probe), ["k1"], Duration::ZERO).unwrap();
    world.clock.advance(Duration::ZERO);
    assert!(submitted.is_complete());
    assert_eq!((probe.tries(), probe.ends()), (2, (1, 1)));
    world.assert_empty();
}

#[test]
fn the_longest_timeout_is_as_good_as_none() {
    let world = World::new();
    let probe = Probe::new();
    let submitted = world.purgatory.submit(Arc::clone(&probe), ["k1"], Duration::MAX).unwrap();
    world.clock.advance(Duration::from_secs(10 * 365 * 86_400));
    assert!(!submitted.is_complete());
    probe.set_ready();
    assert_eq!(world.purgatory.check("k1"), 1);
    world.assert_empty();
}

/// The executor runs expiries. Until an expiry has begun, the condition may still become true.
#[test]
fn an_expiry_that_waits_in_an_executor_can_be_overtaken() {
    let (clock, jobs) = (ManualClock::new(), Arc::new(Mutex::new(Vec::new())));
    let keep = Arc::clone(&jobs);
    let executor = move |job: Job| keep.lock().expect("no poison").push(job);
    let timer = Timer::builder().clock(clock.clone()).executor(executor).build().unwrap();
    let purgatory = Purgatory::new(&timer);
    let (early, late) = (Probe::new(), Probe::new());
    for (probe, key) in [(&early, "k1"), (&late, "k2")] {
        purgatory.submit(Arc::clone(probe), [key], SECOND).unwrap();
        probe.set_ready();
    }
    clock.advance(SECOND);
    assert_eq!((early.ends(), late.ends()), ((0, 0), (0, 0)));
    assert_eq!(purgatory.check("k1"), 1);
    let jobs = std::mem::take(&mut *jobs.lock().unwrap());
    assert_eq!(jobs.len(), 2);
    jobs.into_iter().for_each(Job::run);
    assert_eq!((early.ends(), late.ends()), ((0, 1), (1, 1)));
    assert_eq!((purgatory.check("k2"), purgatory.delayed(), purgatory.watched()), (0, 0, 0));
}
