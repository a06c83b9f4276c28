//! The purgatory: operations that wait on keys, for an event or a timeout.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tickwheel::{Job, ManualClock, Operation, Purgatory, Timer};

use crate::cost::{Nanos, grouped, nanos};
use crate::sheet::Sheet;

/// The partitions that are replicated, and what ended since the last look.
#[derive(Default)]
struct World {
    replicated: BTreeSet<u32>,
    ended: Vec<String>,
}

/// A write that is answered when all its partitions are replicated.
struct Write {
    name: &'static str,
    partitions: Vec<u32>,
    world: Arc<Mutex<World>>,
}

impl Write {
    fn world<R>(&self, look: impl FnOnce(&mut World) -> R) -> R {
        look(&mut self.world.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Operation for Write {
    fn try_complete(&self) -> bool {
        self.world(|world| self.partitions.iter().all(|partition| world.replicated.contains(partition)))
    }

    fn on_complete(&self) {
        self.world(|world| world.ended.push(format!("{} answered", self.name)));
    }

    fn on_expire(&self) {
        self.world(|world| world.ended.push(format!("{} timed out", self.name)));
    }
}

/// Three writes on three partitions: two are completed by events, one by its timeout of 30 s. A fourth one never waits.
#[must_use]
pub fn table() -> String {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build().expect("a timer");
    let purgatory = Purgatory::new(&timer);
    let world = Arc::new(Mutex::new(World::default()));
    let mut sheet = Sheet::new(["step", "waiting", "watched", "timers", "ends"]);
    let mut show = |step: &str| {
        let ended = std::mem::take(&mut world.lock().unwrap_or_else(PoisonError::into_inner).ended);
        let counts =
            [purgatory.delayed(), purgatory.watched(), timer.pending()].map(|count| count.to_string());
        sheet.row([step.to_owned()].into_iter().chain(counts).chain([ended.join(", ")]));
    };
    let submit = |name: &'static str, partitions: &[u32]| {
        let write = Arc::new(Write { name, partitions: partitions.to_vec(), world: Arc::clone(&world) });
        purgatory.submit(write, partitions.iter().copied(), Duration::from_secs(30)).expect("it is taken");
    };
    let replicate = |partition| {
        world.lock().unwrap_or_else(PoisonError::into_inner).replicated.insert(partition);
        purgatory.check(&partition);
    };
    submit("r1", &[1]);
    show("submit r1 on 1");
    submit("r2", &[1, 2]);
    show("submit r2 on 1, 2");
    submit("r3", &[1, 2, 3]);
    show("submit r3 on 1, 2, 3");
    replicate(2);
    show("2 is replicated, check 2");
    replicate(1);
    show("1 is replicated, check 1");
    submit("r4", &[1, 2]);
    show("submit r4 on 1, 2");
    clock.advance(Duration::from_secs(30));
    show("30 s later");
    sheet.to_string()
}

/// An operation that never completes by itself.
struct Never;

impl Operation for Never {
    fn try_complete(&self) -> bool {
        false
    }

    fn on_complete(&self) {}
}

/// Submits operations that wait on two keys each, and completes them; each key has one operation, or all of them.
#[must_use]
pub fn costs(share: usize) -> String {
    let operations = 100_000 / share;
    let timer = Timer::builder().clock(ManualClock::new()).build().expect("a timer");
    let purgatory = Purgatory::new(&timer);
    let begun = Nanos::begin();
    let waiting: Vec<_> = (0..operations)
        .filter_map(|number| {
            let keys = [2 * number, 2 * number + 1];
            purgatory.submit(Arc::new(Never), keys, Duration::from_secs(30)).ok()
        })
        .collect();
    let submit = begun.each(operations);
    let begun = Nanos::begin();
    for number in 0..operations {
        purgatory.check(&(2 * number));
    }
    let check = begun.each(operations);
    let begun = Nanos::begin();
    for submitted in &waiting {
        if let tickwheel::Submitted::Waiting(waiting) = submitted {
            waiting.complete();
        }
    }
    let complete = begun.each(operations);
    assert_eq!(
        (purgatory.delayed(), purgatory.watched(), timer.pending()),
        (0, 0, 0),
        "nothing is left behind"
    );

    let crowd = 1_000;
    for _ in 0..crowd {
        purgatory.submit(Arc::new(Never), [0, 1], Duration::from_secs(30)).expect("it is taken");
    }
    let begun = Nanos::begin();
    let checks = 1_000 / share;
    for _ in 0..checks {
        purgatory.check(&0);
    }
    let crowded = begun.each(checks);

    let mut sheet = Sheet::of_numbers(["of an operation on two keys", "for each call"]);
    sheet.row(["submit, and set the timeout".to_owned(), nanos(submit)]);
    sheet.row(["check a key with one operation".to_owned(), nanos(check)]);
    sheet.row([format!("check a key with {} operations", grouped(crowd)), nanos(crowded)]);
    sheet.row(["complete, and cancel the timeout".to_owned(), nanos(complete)]);
    format!("{} operations\n{sheet}", grouped(operations))
}
