//! The wheel with rounds.

use tickwheel_core::TimerQueue;
use tickwheel_core::classic::HashedWheel;

use crate::cost::{by_timers, grouped, growing, least, memory, row};
use crate::sheet::Sheet;
use crate::simple::fires;
use crate::tasks::{TASKS, Tasks, fired};

const SLOTS: usize = 4;

/// A wheel of four slots: five inserts, then ticks. Behind a task stand the rounds that it has to wait.
#[must_use]
pub fn table() -> String {
    let mut wheel = HashedWheel::new(0, SLOTS);
    let mut tasks = Tasks::default();
    let mut sheet = Sheet::new(["step", "now", "slot 0", "1", "2", "3", "passes over"]);
    let mut show = |step: String, tasks: &Tasks, wheel: &HashedWheel<char>, ticked: bool| {
        let cells = tasks.cells_with(SLOTS, |handle| {
            let placement = wheel.look(handle)?;
            Some((placement.slot, format!(":{}", placement.rounds)))
        });
        let visited = cells[wheel.now() as usize % SLOTS].clone();
        let passed = if ticked { visited } else { String::new() };
        sheet.row([step, wheel.now().to_string()].into_iter().chain(cells).chain([passed]));
    };
    for task in TASKS {
        tasks.insert(&mut wheel, task).expect("a wheel with rounds takes any deadline");
        show(format!("insert {}{}", task.0, task.1), &tasks, &wheel, false);
    }
    while wheel.len() > 0 {
        let now = wheel.now() + 1;
        show(format!("tick: {}", fires(&fired(&mut wheel, now))), &tasks, &wheel, true);
    }
    sheet.to_string()
}

/// The costs by the number of timers in 512 slots, which is Netty's default; then by the number of slots.
#[must_use]
pub fn costs(share: usize) -> String {
    let memory = memory(&mut HashedWheel::new(0, 512), share);
    let sizes = [1_000, 10_000, 100_000].map(|size| size / share);
    let by_timers = by_timers(&sizes, |_| HashedWheel::new(0, 512));
    let timers = sizes[2];
    let mut sheet = growing("slots");
    let mut first = None;
    for slots in [512, 8_192, 131_072] {
        let costs = least(|| HashedWheel::new(0, slots), timers);
        row(&mut sheet, grouped(slots), costs, *first.get_or_insert(costs));
    }
    format!("512 slots\n{by_timers}{} timers\n{sheet}{memory}", grouped(timers))
}
