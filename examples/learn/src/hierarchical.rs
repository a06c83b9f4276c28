//! The hierarchical wheel with a fixed number of levels.

use tickwheel_core::TimerQueue;
use tickwheel_core::classic::HierarchicalWheel;

use crate::cost::{by_timers, memory};
use crate::sheet::Sheet;
use crate::simple::fires;
use crate::tasks::{TASKS, Tasks, fired};

const SLOTS: usize = 4;

/// Two levels of four slots: inserts, then each stop of the wheel. The wheel refuses one of the inserts.
#[must_use]
pub fn table() -> String {
    let mut wheel = HierarchicalWheel::with_levels(0, 1, &[SLOTS, SLOTS]);
    let mut tasks = Tasks::default();
    let mut sheet =
        Sheet::new(["step", "now", "level 1: 0", "1", "2", "3", "level 2: 0..3", "4..7", "8..11", "12..15"]);
    let mut show = |step: String, tasks: &Tasks, wheel: &HierarchicalWheel<char>| {
        let cells = tasks.cells(2 * SLOTS, |handle| {
            let placement = wheel.look(handle)?;
            Some((placement.level - 1) * SLOTS + placement.slot)
        });
        sheet.row([step, wheel.now().to_string()].into_iter().chain(cells));
    };
    for task in TASKS.into_iter().chain([('f', 30)]) {
        let step = match tasks.insert(&mut wheel, task) {
            Ok(_) => format!("insert {}{}", task.0, task.1),
            Err(error) => format!("insert {}{}: {:?}", task.0, task.1, error.why),
        };
        show(step, &tasks, &wheel);
    }
    while let Some(wake) = wheel.next_wake() {
        let names = fired(&mut wheel, wake);
        let did = if names.is_empty() { "opens a slot".to_owned() } else { fires(&names) };
        show(format!("time is {wake}: {did}"), &tasks, &wheel);
    }
    sheet.to_string()
}

/// The costs by the number of timers, with levels of 256 slots; then how many times an entry moved.
#[must_use]
pub fn costs(share: usize) -> String {
    let levels = [256, 256, 256];
    let memory = memory(&mut HierarchicalWheel::with_levels(0, 1, &levels), share);
    let sizes = [1_000, 10_000, 100_000, 1_000_000].map(|size| size / share);
    by_timers(&sizes, |_| HierarchicalWheel::with_levels(0, 1, &levels)) + &memory
}
