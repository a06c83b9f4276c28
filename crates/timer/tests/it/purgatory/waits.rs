//! Operations that wait on keys and complete, on one thread.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use tickwheel::{Operation, Purgatory, SubmitRefusal, Submitted, Waiting};

use crate::purgatory::probe::{Probe, SECOND, World, hook};

#[test]
fn g1_a_key_that_nobody_watches() {
    let world = World::new();
    assert_eq!(world.purgatory.check("k1"), 0);
    assert!(world.purgatory.cancel_key("k1").is_empty());
    world.assert_empty();
}

/// A link of a chain: its end makes the next link end, in one of the ways in which an operation can end.
struct Link {
    purgatory: Purgatory<usize, Link>,
    number: usize,
    next: Option<Arc<Link>>,
    way: usize,
    handle: OnceLock<Waiting<Link>>,
    ready: AtomicBool,
    told: Arc<Mutex<Vec<(usize, usize)>>>,
    depth: Arc<AtomicUsize>,
}

impl Operation for Link {
    fn try_complete(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }

    fn on_complete(&self) {
        let depth = self.depth.fetch_add(1, Ordering::Relaxed);
        self.told.lock().expect("no poison").push((self.number, depth));
        if let Some(next) = &self.next {
            match self.way {
                0 => {
                    next.ready.store(true, Ordering::Relaxed);
                    assert_eq!(self.purgatory.check(&next.number), 1);
                }
                1 => assert!(next.handle.get().expect("it waits").complete()),
                2 => {
                    next.ready.store(true, Ordering::Relaxed);
                    assert!(next.handle.get().expect("it waits").check());
                }
                _ => {
                    next.ready.store(true, Ordering::Relaxed);
                    let submitted =
                        self.purgatory.submit(Arc::clone(next), [next.number], SECOND).expect("room");
                    assert!(matches!(submitted, Submitted::Completed(_)));
                }
            }
        }
        self.depth.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The story: each answer lets the next one go, and 6,000 of them wait in a row. Each completion ran on the stack of the one before it, until
/// the stack of 2 MiB was used up and the process ended.
#[test]
fn g27_a_chain_of_completions_has_any_length() {
    const LENGTH: usize = 50_000;
    for way in 0..4 {
        let walk = move || {
            let world = World::new();
            let purgatory = Purgatory::new(&world.timer);
            let told = Arc::new(Mutex::new(Vec::new()));
            let depth = Arc::new(AtomicUsize::new(0));
            let mut links: Vec<Arc<Link>> = Vec::new();
            for number in (0..LENGTH).rev() {
                let link = Arc::new(Link {
                    purgatory: purgatory.clone(),
                    number,
                    next: links.last().cloned(),
                    way,
                    handle: OnceLock::new(),
                    ready: AtomicBool::new(false),
                    told: Arc::clone(&told),
                    depth: Arc::clone(&depth),
                });
                if way < 3 || number == 0 {
                    match purgatory.submit(Arc::clone(&link), [number], SECOND).unwrap() {
                        Submitted::Waiting(waiting) => assert!(link.handle.set(waiting).is_ok()),
                        Submitted::Completed(_) => panic!("it is not ready"),
                    }
                }
                links.push(link);
            }
            links.last().unwrap().ready.store(true, Ordering::Relaxed);
            assert_eq!(purgatory.check(&0), 1);
            let told = std::mem::take(&mut *told.lock().unwrap());
            assert_eq!(told, (0..LENGTH).map(|number| (number, 0)).collect::<Vec<_>>(), "way {way}");
            assert_eq!((purgatory.delayed(), world.timer.pending()), (0, 0));
            // The links own each other, and are dropped one by one.
            while let Some(link) = links.pop() {
                drop(link);
            }
        };
        thread::Builder::new().stack_size(2 << 20).spawn(walk).unwrap().join().unwrap();
    }
}

#[test]
fn g2_a_check_completes_what_has_come_true_and_once() {
    let world = World::new();
    let (r1, r2) = (Probe::new(), Probe::new());
    for (probe, key) in [(&r1, "k1"), (&r2, "k2")] {
        assert!(!world.wait(probe, [key]).is_complete());
    }
    assert_eq!((world.purgatory.check("k1"), world.purgatory.check("k2")), (0, 0));
    for (probe, key) in [(&r1, "k1"), (&r2, "k2")] {
        probe.set_ready();
        assert_eq!((world.purgatory.check(key), world.purgatory.check(key)), (1, 0));
        assert_eq!(probe.ends(), (0, 1));
    }
    world.assert_empty();
}

#[test]
fn g3_what_can_complete_at_once_never_waits() {
    let world = World::new();
    let probe = Probe::new();
    probe.set_ready();
    let submitted = world.purgatory.submit(Arc::clone(&probe), ["k1"], SECOND).unwrap();
    assert!(matches!(submitted, Submitted::Completed(_)), "{submitted:?}");
    assert!(submitted.is_complete());
    assert!(Arc::ptr_eq(submitted.operation(), &probe));
    assert_eq!((probe.tries(), probe.ends()), (1, (0, 1)));
    world.assert_empty();
}

#[test]
fn g4_the_gauges_count_operations_and_places_on_keys() {
    let world = World::new();
    let keys: [&[&str]; 3] = [&["k1"], &["k1", "k2"], &["k1", "k2", "k3"]];
    for keys in keys {
        let submitted = world.purgatory.submit(Probe::new(), keys.iter().copied(), SECOND).unwrap();
        assert!(!submitted.is_complete());
    }
    assert_eq!(world.gauges(), (3, 6));
    assert_eq!(world.timer.pending(), 3);
}

#[test]
fn g5_an_end_leaves_all_keys_at_once() {
    let world = World::new();
    let [r1, r2, r3] = [(); 3].map(|()| Probe::new());
    world.wait(&r1, ["k1"]);
    let second = world.wait(&r2, ["k1", "k2"]);
    let third = world.wait(&r3, ["k1", "k2", "k3"]);
    assert_eq!(world.gauges(), (3, 6));
    r2.set_ready();
    assert!(second.check());
    assert_eq!(world.gauges(), (2, 4));
    assert!(third.complete());
    assert_eq!(world.gauges(), (1, 1));
    assert_eq!([r1.ends(), r2.ends(), r3.ends()], [(0, 0), (0, 1), (0, 1)]);
    assert_eq!(world.timer.pending(), 1);
}

#[test]
fn g6_a_cancelled_operation_is_off_all_keys_and_never_called_again() {
    let world = World::new();
    let (both, other) = (Probe::new(), Probe::new());
    let waiting = world.wait(&both, ["k1", "k2"]);
    world.wait(&other, ["k2"]);
    let cancelled = world.purgatory.cancel_key("k1");
    assert_eq!(cancelled.len(), 1);
    assert!(Arc::ptr_eq(&cancelled[0], &both));
    assert_eq!((world.gauges(), world.timer.pending()), ((1, 1), 1));

    both.set_ready();
    assert_eq!(world.purgatory.check("k2"), 0);
    assert!(!waiting.check() && !waiting.complete() && !waiting.is_complete());
    world.clock.advance(SECOND);
    assert_eq!((both.ends(), both.tries()), ((0, 0), 2));
    assert_eq!(other.ends(), (1, 1), "the other one was not meant");
    world.assert_empty();
}

#[test]
fn g7_an_expiry_is_told_before_the_end_and_only_then() {
    let world = World::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let probe = Probe::new();
    for (place, what) in [(&probe.on_expiry, "expired"), (&probe.on_end, "complete")] {
        let told = Arc::clone(&told);
        hook(place, move || told.lock().unwrap().push(what));
    }
    let waiting = world.wait(&probe, ["k1"]);
    world.clock.advance(SECOND - std::time::Duration::from_nanos(1));
    assert!(!waiting.is_complete(), "early");
    world.clock.advance(SECOND);
    assert_eq!(*told.lock().unwrap(), ["expired", "complete"]);
    assert!(waiting.is_complete() && !waiting.complete() && !waiting.check());
    world.assert_empty();
}

/// The operation ends by force, by its condition and by time. When `on_complete` begins, everything else
/// about the end is done.
#[test]
fn g8_the_end_is_decided_and_the_timeout_cancelled_before_it_is_told() {
    for way in ["force", "check", "time"] {
        let world = Arc::new(World::new());
        let probe = Probe::new();
        let waiting = world.wait(&probe, ["k1", "k2"]);
        let seen = Arc::new(AtomicBool::new(false));
        let inside = (Arc::clone(&world), waiting.clone(), Arc::clone(&seen));
        hook(&probe.on_end, move || {
            let (world, waiting, seen) = &inside;
            assert!(waiting.is_complete());
            assert!(!waiting.complete() && !waiting.check());
            assert_eq!(world.gauges(), (0, 0));
            if way != "time" {
                assert_eq!(world.timer.pending(), 0);
            }
            seen.store(true, Ordering::Relaxed);
        });
        probe.set_ready();
        match way {
            "force" => assert!(waiting.complete()),
            "check" => assert_eq!(world.purgatory.check("k2"), 1),
            _ => drop(world.clock.advance(SECOND)),
        }
        assert!(seen.load(Ordering::Relaxed), "{way}: an assertion in the hook failed");
        assert_eq!(probe.ends(), (usize::from(way == "time"), 1));
    }
}

#[test]
fn g9_keys_are_needed_and_count_once() {
    let world = World::new();
    let probe = Probe::new();
    probe.set_ready();
    let error = world.purgatory.submit(Arc::clone(&probe), [], SECOND).unwrap_err();
    assert_eq!(error.why, SubmitRefusal::NoKeys);
    assert!(error.to_string().contains("without keys"), "{error}");
    assert!(Arc::ptr_eq(&error.operation, &probe));
    assert_eq!((probe.tries(), probe.ends()), (0, (0, 0)));

    let probe = Probe::new();
    let waiting = world.wait(&probe, ["k1", "k2", "k1", "k3", "k1"]);
    assert_eq!(world.gauges(), (1, 3));
    assert!(waiting.complete());
    world.assert_empty();
}

/// The condition becomes true during the first look, when the operation is not on any key yet.
#[test]
fn g10_a_condition_that_comes_true_during_the_submit_is_seen() {
    for turn in 1..=2 {
        let world = Arc::new(World::new());
        let probe = Probe::new();
        let inside = (Arc::clone(&world), Arc::downgrade(&probe));
        hook(&probe.on_try, move || {
            let probe = inside.1.upgrade().unwrap();
            if probe.tries() == turn {
                probe.set_ready();
                // The check finds no operation, or one that another look is trying and that will look again.
                assert_eq!(inside.0.purgatory.check("k1"), 0);
            }
        });
        let submitted = world.purgatory.submit(Arc::clone(&probe), ["k1"], SECOND).unwrap();
        assert!(submitted.is_complete(), "missed during look {turn}");
        assert_eq!((probe.tries(), probe.ends()), (turn + 1, (0, 1)));
        world.assert_empty();
    }
}

#[test]
fn operations_on_a_key_are_tried_in_the_order_of_their_submission() {
    let world = World::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    for number in 0..200 {
        let probe = Probe::new();
        let told = Arc::clone(&told);
        hook(&probe.on_end, move || told.lock().unwrap().push(number));
        world.wait(&probe, ["k1"]);
        probe.set_ready();
    }
    assert_eq!(world.purgatory.check("k1"), 200);
    assert_eq!(*told.lock().unwrap(), (0..200).collect::<Vec<_>>());
}

/// A completion submits the next operation on the same key. The check that completed the first one must not try the second one, and so
/// on for ever.
#[test]
fn a_completion_may_submit_on_the_key_that_is_being_checked() {
    let world = Arc::new(World::new());
    let probe = Probe::new();
    let (inside, next) = (Arc::clone(&world), Probe::new());
    let successor = Arc::clone(&next);
    hook(&probe.on_end, move || {
        inside.wait(&successor, ["k1"]);
        successor.set_ready();
    });
    world.wait(&probe, ["k1"]);
    probe.set_ready();
    assert_eq!(world.purgatory.check("k1"), 1);
    assert_eq!((next.ends(), world.gauges()), ((0, 0), (1, 1)));
    assert_eq!(world.purgatory.check("k1"), 1);
    world.assert_empty();
}

/// An operation that has ended is referred to neither by its other key nor by the timer.
#[test]
fn an_operation_that_has_ended_is_kept_by_nobody() {
    for way in ["check", "force", "cancel", "time"] {
        let world = World::new();
        let probe = Probe::new();
        let waiting = world.wait(&probe, ["k1", "k2"]);
        probe.set_ready();
        match way {
            "check" => assert_eq!(world.purgatory.check("k1"), 1),
            "force" => assert!(waiting.complete()),
            "cancel" => assert_eq!(world.purgatory.cancel_key("k1").len(), 1),
            _ => drop(world.clock.advance(SECOND)),
        }
        drop(waiting);
        assert_eq!(Arc::strong_count(&probe), 1, "after {way}");
    }
}
