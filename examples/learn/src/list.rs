//! The sorted list.

use tickwheel_core::TimerQueue;
use tickwheel_core::classic::SortedList;

use crate::cost::{Nanos, by_timers, grouped, memory, nanos};
use crate::sheet::Sheet;
use crate::tasks::{TASKS, Tasks, fired};

/// Inserts five tasks, cancels one and fires two. A task is its name and its deadline.
#[must_use]
pub fn table() -> String {
    let mut list = SortedList::new(0);
    let mut tasks = Tasks::default();
    let mut sheet = Sheet::new(["step", "walks past", "the list, front first"]);
    for task in TASKS {
        let handle = tasks.insert(&mut list, task).expect("a list takes any deadline");
        // The search for the position began at the end.
        let position = list.position(handle).expect("it is pending");
        let mut behind = tasks.cells(list.len(), |handle| list.position(handle)).split_off(position + 1);
        behind.reverse();
        sheet.row([format!("insert {}{}", task.0, task.1), behind.join(" "), shown(&tasks, &list)]);
    }
    tasks.cancel(&mut list, 'c');
    sheet.row(["cancel c".to_owned(), String::new(), shown(&tasks, &list)]);
    let names = fired(&mut list, 2);
    sheet.row([format!("time is 2: fires {names}"), String::new(), shown(&tasks, &list)]);
    sheet.to_string()
}

fn shown(tasks: &Tasks, list: &SortedList<char>) -> String {
    tasks.cells(list.len(), |handle| list.position(handle)).join(" ")
}

/// The costs with random delays, and with delays of one length.
#[must_use]
pub fn costs(share: usize) -> String {
    let memory = memory(&mut SortedList::new(0), share);
    let sizes = [1_000 / share, 4_000 / share, 16_000 / share];
    let random = by_timers(&sizes, |_| SortedList::new(0));
    let timers = sizes[2];
    let mut list = SortedList::new(0);
    let begun = Nanos::begin();
    for value in 0..timers as u64 {
        list.advance(value, &mut |_, _| ());
        list.insert(value + 30_000, value).expect("a list takes any deadline");
    }
    let equal = nanos(begun.each(timers));
    format!("{random}delays of one length, {} timers: insert {equal}\n{memory}", grouped(timers))
}
