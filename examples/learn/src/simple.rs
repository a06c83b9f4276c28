//! The simple wheel.

use tickwheel_core::TimerQueue;
use tickwheel_core::classic::SimpleWheel;

use crate::cost::{by_timers, memory};
use crate::sheet::Sheet;
use crate::tasks::{TASKS, Tasks, fired};

const SLOTS: usize = 8;

/// A wheel of eight slots: five inserts, then ticks. The wheel refuses one of the inserts.
#[must_use]
pub fn table() -> String {
    let mut wheel = SimpleWheel::new(0, SLOTS);
    let mut tasks = Tasks::default();
    let slots: Vec<String> =
        (0..SLOTS).map(|slot| if slot == 0 { "slot 0".to_owned() } else { slot.to_string() }).collect();
    let mut sheet = Sheet::new(["step", "now"].into_iter().chain(slots.iter().map(String::as_str)));
    let mut show = |step: String, tasks: &Tasks, wheel: &SimpleWheel<char>| {
        let mut cells = tasks.cells(SLOTS, |handle| wheel.slot(handle));
        // The slot of now has fired, and stays empty while the hand is on it.
        cells[wheel.now() as usize % SLOTS].insert_str(0, "hand");
        sheet.row([step, wheel.now().to_string()].into_iter().chain(cells));
    };
    let mut refused = None;
    for task in TASKS {
        let step = match tasks.insert(&mut wheel, task) {
            Ok(_) => format!("insert {}{}", task.0, task.1),
            Err(error) => {
                refused = Some(task);
                format!("insert {}{}: {:?}", task.0, task.1, error.why)
            }
        };
        show(step, &tasks, &wheel);
    }
    tasks.cancel(&mut wheel, 'c');
    show("cancel c5".to_owned(), &tasks, &wheel);
    for _ in 0..2 {
        let now = wheel.now() + 1;
        show(format!("tick: {}", fires(&fired(&mut wheel, now))), &tasks, &wheel);
    }
    if let Some(task) = refused {
        tasks.insert(&mut wheel, task).expect("the wheel reaches it now");
        show(format!("insert {}{}", task.0, task.1), &tasks, &wheel);
    }
    for now in [7, 8, 9] {
        show(format!("time is {now}: {}", fires(&fired(&mut wheel, now))), &tasks, &wheel);
    }
    sheet.to_string()
}

/// The effect of a tick, as text.
pub(crate) fn fires(names: &str) -> String {
    if names.is_empty() { "nothing".to_owned() } else { format!("fires {names}") }
}

/// The costs by the number of timers, in a wheel that has a slot for each tick.
#[must_use]
pub fn costs(share: usize) -> String {
    let memory = memory(&mut SimpleWheel::new(0, 1_000_001), share);
    let sizes = [1_000, 10_000, 100_000, 1_000_000].map(|size| size / share);
    by_timers(&sizes, |timers| SimpleWheel::new(0, timers + 1)) + &memory
}
