//! Operations that panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tickwheel::Submitted;

use crate::purgatory::probe::{Probe, SECOND, World, hook};

/// Runs a closure that must panic, and returns the message of the panic.
fn caught<R>(call: impl FnOnce() -> R) -> &'static str {
    let panic = catch_unwind(AssertUnwindSafe(call)).err().expect("it does not panic");
    panic.downcast_ref::<&str>().copied().expect("a literal")
}

/// A probe that panics at each of the given looks.
fn shaky(looks: impl Fn(usize) -> bool + Send + Sync + 'static) -> Arc<Probe> {
    let probe = Probe::new();
    let inside = Arc::downgrade(&probe);
    hook(&probe.on_try, move || {
        assert!(!inside.upgrade().is_some_and(|probe| looks(probe.tries())), "at a look");
    });
    probe
}

#[test]
fn a_look_that_panics_is_told_after_the_others_had_their_turn() {
    let world = World::new();
    let probes = [Probe::new(), shaky(|look| look == 3), Probe::new()];
    for probe in &probes {
        world.wait(probe, ["k1"]);
        probe.set_ready();
    }
    assert_eq!(caught(|| world.purgatory.check("k1")), "at a look");
    assert_eq!(probes.each_ref().map(|probe| probe.ends()), [(0, 1), (0, 0), (0, 1)]);
    assert_eq!(world.gauges(), (1, 1));
    assert_eq!(world.purgatory.check("k1"), 1, "it is not stuck");
    world.assert_empty();
}

#[test]
fn a_look_that_panics_does_not_keep_the_end_away() {
    let world = World::new();
    let probe = shaky(|look| look >= 3);
    let waiting = world.wait(&probe, ["k1"]);
    assert_eq!(caught(|| waiting.check()), "at a look");
    world.clock.advance(SECOND);
    assert_eq!(probe.ends(), (1, 1));
    world.assert_empty();
}

#[test]
fn what_was_asked_for_during_a_look_that_panics_is_done() {
    let world = Arc::new(World::new());
    let probe = Probe::new();
    let (inside, this) = (Arc::clone(&world), Arc::downgrade(&probe));
    hook(&probe.on_try, move || {
        if this.upgrade().unwrap().tries() == 3 {
            inside.clock.advance(SECOND);
            panic!("at a look");
        }
    });
    let waiting = world.wait(&probe, ["k1"]);
    assert_eq!(caught(|| waiting.check()), "at a look");
    assert_eq!((probe.tries(), probe.ends()), (3, (1, 1)));
    world.assert_empty();
}

/// The first look is before the operation is on any key. At the second look it is on all its keys. The third look
/// is for a check, after the timeout was set.
#[test]
fn a_submit_that_panics_has_not_submitted() {
    for turn in 1..=3 {
        let world = Arc::new(World::new());
        let probe = Probe::new();
        let (inside, this) = (Arc::clone(&world), Arc::downgrade(&probe));
        hook(&probe.on_try, move || {
            let look = this.upgrade().unwrap().tries();
            if look < turn {
                inside.purgatory.check("k1");
            }
            assert!(look != turn, "at a look");
        });
        let submit = || world.purgatory.submit(Arc::clone(&probe), ["k1", "k2"], SECOND);
        assert_eq!(caught(submit), "at a look");
        assert_eq!((probe.tries(), probe.ends()), (turn, (0, 0)));
        world.assert_empty();
        assert_eq!(Arc::strong_count(&probe), 1, "it is kept after look {turn}");
    }
}

#[test]
fn an_end_that_panics_is_an_end() {
    let world = World::new();
    let probes = [Probe::new(), Probe::new(), Probe::new()];
    for probe in &probes {
        hook(&probe.on_end, || panic!("at the end"));
    }
    let waiting = world.wait(&probes[0], ["k1"]);
    assert_eq!(caught(|| waiting.complete()), "at the end");
    assert!(waiting.is_complete());
    world.wait(&probes[1], ["k1"]);
    probes[1].set_ready();
    assert_eq!(caught(|| world.purgatory.check("k1")), "at the end");
    probes[2].set_ready();
    assert_eq!(caught(|| world.purgatory.submit(Arc::clone(&probes[2]), ["k1"], SECOND)), "at the end");
    assert_eq!(probes.each_ref().map(|probe| probe.ends()), [(0, 1); 3]);
    world.assert_empty();
}

/// In the body of the timeout, the timer catches the panic and goes on.
#[test]
fn an_expiry_that_panics_is_followed_by_the_end() {
    let world = World::new();
    let probes = [Probe::new(), Probe::new()];
    hook(&probes[0].on_expiry, || panic!("at the expiry"));
    for probe in &probes {
        world.wait(probe, ["k1"]);
    }
    world.clock.advance(SECOND);
    assert_eq!(probes.each_ref().map(|probe| probe.ends()), [(1, 1); 2]);
    world.assert_empty();
    let submitted = world.purgatory.submit(Probe::new(), ["k1"], SECOND).unwrap();
    assert!(matches!(submitted, Submitted::Waiting(_)), "{submitted:?}");
}

/// The operation that ends within a completion panics after it; the caller of the first one gets the panic, and the next completion is as the
/// first.
#[test]
fn a_panic_of_an_end_within_an_end_goes_to_the_outer_caller() {
    let world = Arc::new(World::new());
    let probes = [Probe::new(), Probe::new(), Probe::new()];
    let [first, second, third] = &probes;
    let inside = Arc::clone(&world);
    hook(&first.on_end, move || assert_eq!(inside.purgatory.check("k2"), 2));
    hook(&second.on_end, || panic!("at the inner end"));
    world.wait(first, ["k1"]);
    world.wait(second, ["k2"]);
    world.wait(third, ["k2"]);
    probes.iter().for_each(|probe| probe.set_ready());
    assert_eq!(caught(|| world.purgatory.check("k1")), "at the inner end");
    assert_eq!(probes.each_ref().map(|probe| probe.ends()), [(0, 1); 3]);
    world.assert_empty();
    let last = Probe::new();
    world.wait(&last, ["k1"]).complete();
    assert_eq!(last.ends(), (0, 1));
}

#[test]
fn a_shutdown_answers_all_although_one_panics() {
    let world = World::new();
    let probes = [Probe::new(), Probe::new(), Probe::new()];
    hook(&probes[0].on_expiry, || panic!("at the expiry"));
    for probe in &probes {
        world.wait(probe, ["k1"]);
    }
    assert_eq!(caught(|| world.purgatory.shutdown()), "at the expiry");
    assert_eq!(probes.each_ref().map(|probe| probe.ends()), [(1, 1); 3]);
    world.assert_empty();
}
