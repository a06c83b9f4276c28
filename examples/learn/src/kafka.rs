//! Kafka's form of the hierarchical wheel: a queue of buckets, and overflow wheels on demand.

use tickwheel_core::TimerQueue;
use tickwheel_core::classic::HierarchicalWheel;

use crate::cost::{Nanos, Random, grouped, nanos};
use crate::sheet::Sheet;
use crate::tasks::{TASKS, Tasks, fired};

const SLOTS: usize = 4;

/// Levels of four slots, made on demand: inserts, a cancel, then each stop of the wheel.
#[must_use]
pub fn table() -> String {
    let mut wheel = HierarchicalWheel::new(0, 1, SLOTS);
    let mut tasks = Tasks::default();
    let mut sheet = Sheet::new(["step", "levels", "queue of buckets: expiry/level", "f waits on"]);
    let mut show = |step: String, tasks: &Tasks, wheel: &HierarchicalWheel<char>| {
        let buckets: Vec<String> =
            wheel.buckets().map(|(expiry, level)| format!("{expiry}/{level}")).collect();
        let placement = tasks.handle('f').and_then(|handle| wheel.look(handle));
        let waits = placement.map(|at| format!("level {} slot {}", at.level, at.slot)).unwrap_or_default();
        sheet.row([step, wheel.levels().to_string(), buckets.join(" "), waits]);
    };
    for task in TASKS.into_iter().chain([('f', 30)]) {
        tasks.insert(&mut wheel, task).expect("levels are made as far as it takes");
        show(format!("insert {}{}", task.0, task.1), &tasks, &wheel);
    }
    tasks.cancel(&mut wheel, 'e');
    show("cancel e".to_owned(), &tasks, &wheel);
    while let Some(wake) = wheel.next_wake() {
        let names = fired(&mut wheel, wake);
        let did = if names.is_empty() { "files again".to_owned() } else { format!("fires {names}") };
        show(format!("wakes at {wake}: {did}"), &tasks, &wheel);
    }
    sheet.to_string()
}

/// Few timers over a day, in milliseconds: the driver goes tick by tick, or from one bucket of the queue to the next.
#[must_use]
pub fn costs(share: usize) -> String {
    const DAY: u64 = 86_400_000;
    let day = DAY / share as u64;
    let timers: usize = 1_000;
    let filled = || {
        let mut wheel = HierarchicalWheel::new(0, 1, 20);
        let mut random = Random::new();
        for value in 0..timers {
            wheel.insert(random.up_to(day), value).expect("levels are made as far as it takes");
        }
        wheel
    };

    let mut wheel = filled();
    let begun = Nanos::begin();
    for now in 1..=day {
        wheel.advance(now, &mut |_, _| ());
    }
    let by_ticks = begun.each(timers);

    let mut wheel = filled();
    let levels = wheel.levels();
    let mut stops: usize = 0;
    let begun = Nanos::begin();
    while let Some(wake) = wheel.next_wake() {
        wheel.advance(wake, &mut |_, _| ());
        stops += 1;
    }
    let by_buckets = begun.each(timers);

    let mut sheet = Sheet::of_numbers(["the driver goes", "stops", "for each timer"]);
    sheet.row(["tick by tick".to_owned(), grouped(day as usize), nanos(by_ticks)]);
    sheet.row(["bucket by bucket".to_owned(), grouped(stops), nanos(by_buckets)]);
    let moves = wheel.taken_out() as f64 / timers as f64;
    format!(
        "{} timers over {} ticks, {levels} levels of 20 slots\n{sheet}an entry is taken out of a bucket {moves:.1} times\n",
        grouped(timers),
        grouped(day as usize)
    )
}
