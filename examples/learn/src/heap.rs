//! The binary heap.

use tickwheel_core::TimerQueue;
use tickwheel_core::classic::HeapQueue;

use crate::cost::{by_timers, memory};
use crate::sheet::Sheet;
use crate::tasks::{TASKS, Tasks, fired};

/// Inserts five tasks, cancels one and fires two; shows the array of the heap.
#[must_use]
pub fn table() -> String {
    let mut heap = HeapQueue::new(0);
    let mut tasks = Tasks::default();
    let mut sheet = Sheet::new(["step", "index 0", "1", "2", "3", "4"]);
    let mut show = |step: String, tasks: &Tasks, heap: &HeapQueue<char>| {
        let cells = tasks.cells(TASKS.len(), |handle| heap.index(handle));
        sheet.row([step].into_iter().chain(cells));
    };
    for task in TASKS {
        tasks.insert(&mut heap, task).expect("a heap takes any deadline");
        show(format!("insert {}{}", task.0, task.1), &tasks, &heap);
    }
    tasks.cancel(&mut heap, 'd');
    show("cancel d".to_owned(), &tasks, &heap);
    while let Some(wake) = heap.next_wake() {
        let names = fired(&mut heap, wake);
        show(format!("time is {wake}: fires {names}"), &tasks, &heap);
    }
    sheet.to_string()
}

/// The costs by the number of timers.
#[must_use]
pub fn costs(share: usize) -> String {
    let memory = memory(&mut HeapQueue::new(0), share);
    let sizes = [1_000, 10_000, 100_000, 1_000_000].map(|size| size / share);
    by_timers(&sizes, |_| HeapQueue::new(0)) + &memory
}
