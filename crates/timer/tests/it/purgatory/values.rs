//! Operations that wait for values.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, ThreadId};
use std::time::Duration;

use tickwheel::{Job, ManualClock, Operation, Purgatory, Submitted, Timer};

const PATIENCE: Duration = Duration::from_millis(500);

fn timer() -> Timer {
    Timer::builder().clock(ManualClock::new()).executor(Job::run).build().expect("a timer")
}

/// Adds two values that other threads set.
struct Sum {
    values: [Arc<OnceLock<u32>>; 2],
    result: Mutex<Vec<(u32, ThreadId)>>,
}

impl Operation for Sum {
    fn try_complete(&self) -> bool {
        self.values.iter().all(|value| value.get().is_some())
    }

    fn on_complete(&self) {
        let sum = self.values.iter().filter_map(|value| value.get()).sum();
        self.result.lock().expect("no poison").push((sum, thread::current().id()));
    }
}

#[test]
fn g14_two_values_are_awaited_and_added_once() {
    let purgatory: Purgatory<usize, Sum> = Purgatory::new(&timer());
    let submit = |values| {
        let sum = Sum { values, result: Mutex::default() };
        purgatory.submit(Arc::new(sum), [0, 1], PATIENCE).unwrap()
    };
    let result = |submitted: &Submitted<Sum>| submitted.operation().result.lock().unwrap().clone();

    let both = submit([10, 11].map(|value| Arc::new(OnceLock::from(value))));
    assert!(matches!(both, Submitted::Completed(_)), "{both:?}");
    assert_eq!(result(&both), [(21, thread::current().id())]);

    let values = [(); 2].map(|()| Arc::new(OnceLock::new()));
    let later = submit(values.clone());
    for (index, value, expected) in [(0, 20, None), (1, 21, Some(41))] {
        let bring = || {
            values[index].set(value).unwrap();
            assert_eq!(purgatory.check(&index), usize::from(expected.is_some()));
            thread::current().id()
        };
        let bringer = thread::scope(|scope| scope.spawn(bring).join().unwrap());
        let told = expected.map(|sum| (sum, bringer));
        assert_eq!(result(&later), told.into_iter().collect::<Vec<_>>());
    }
    assert_eq!((purgatory.check(&0), purgatory.check(&1), purgatory.delayed()), (0, 0, 0));
}

/// Waits until a level is reached.
struct Reached {
    level: Arc<AtomicI64>,
    awaited: i64,
}

impl Operation for Reached {
    fn try_complete(&self) -> bool {
        self.level.load(Ordering::Relaxed) >= self.awaited
    }

    fn on_complete(&self) {}
}

#[test]
fn g15_a_level_that_rises_completes_those_it_has_reached() {
    let purgatory: Purgatory<(), Reached> = Purgatory::new(&timer());
    let level = Arc::new(AtomicI64::new(0));
    let waiting = [3, 1, 5].map(|awaited| {
        let reached = Reached { level: Arc::clone(&level), awaited };
        purgatory.submit(Arc::new(reached), [()], PATIENCE).unwrap()
    });
    for (reached, complete) in [
        (1, [false, true, false]),
        (2, [false, true, false]),
        (3, [true, true, false]),
        (4, [true, true, false]),
        (5, [true, true, true]),
    ] {
        level.store(reached, Ordering::Relaxed);
        let before = purgatory.delayed();
        let completed = purgatory.check(&());
        assert_eq!(waiting.each_ref().map(Submitted::is_complete), complete, "level {reached}");
        let left = complete.iter().filter(|complete| !**complete).count();
        assert_eq!((purgatory.delayed(), completed), (left, before - left), "level {reached}");
    }
    assert_eq!(purgatory.watched(), 0);
}
