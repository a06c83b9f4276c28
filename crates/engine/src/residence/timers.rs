//! [`Timers`]: when the tasks that memory holds whole are due.

use std::collections::BTreeSet;

use tickwheel_core::{Handle, TimerQueue, Wheel};

use super::Residence;
use super::entries::At;
use crate::slot::Slot;
use crate::time::{Now, Timestamp};
use crate::wheel::WheelView;

/// Tasks by `due_at` (ms). A wheel only goes forward. If the wall clock steps back, a task may be due after now though the wheel has passed
/// its due time: such a task stands in a set.
#[derive(Debug)]
pub(super) struct Timers {
    wheel: Wheel<Slot>,
    rewound: BTreeSet<(Timestamp, Slot)>,
}

impl Timers {
    pub(super) fn new(now: Now) -> Self {
        Self { wheel: Wheel::new(now.wall.as_tick()), rewound: BTreeSet::new() }
    }

    fn start(&mut self, due_at: Timestamp, slot: Slot) -> At {
        match self.wheel.insert(due_at.as_tick(), slot) {
            Ok(handle) => At::Waiting(handle),
            // The wheel has passed the due time, but the wall clock has not: it stepped back.
            Err(_) => {
                self.rewound.insert((due_at, slot));
                At::Rewound
            }
        }
    }

    /// When the first task is due.
    pub(super) fn next(&self) -> Option<Timestamp> {
        let due = self.wheel.next_wake().map(|tick| {
            i64::try_from(tick).ok().and_then(Timestamp::from_ms).expect("the wheel holds timestamps only")
        });
        let rewound = self.rewound.first().map(|&(due_at, _)| due_at);
        due.into_iter().chain(rewound).min()
    }
}

impl Residence {
    /// Starts to wait for the due time of an entry that stands nowhere. The due time is in the future. The entry waits in the wheel, or
    /// nowhere if it is due beyond what memory keeps.
    pub(crate) fn start_timer(&mut self, slot: Slot, now: Now) {
        let due_at = self.get(slot).task.due_at;
        let at = if due_at > self.keep_until(now) { At::Far } else { self.timers.start(due_at, slot) };
        self.get_mut(slot).at = at;
    }

    /// Ends the wait of an entry that stood in the wheel.
    pub(crate) fn cancel_timer(&mut self, handle: Handle, slot: Slot) {
        let found = self.timers.wheel.cancel(handle);
        assert_eq!(found, Some(slot), "a waiting task is in the wheel");
    }

    /// Cancels the timer of an entry that the wheel had passed.
    pub(crate) fn cancel_rewound(&mut self, slot: Slot) {
        let due_at = self.get(slot).task.due_at;
        self.timers.rewound.remove(&(due_at, slot));
    }

    /// Takes the entries that are due by now. They stand nowhere from then on.
    pub(crate) fn pop_due(&mut self, now: Now) -> Vec<Slot> {
        let Timers { wheel, rewound } = &mut self.timers;
        let mut due: Vec<Slot> = Vec::new();
        wheel.advance_with(now.wall.as_tick(), |_, slot| due.push(slot));
        while let Some((_, slot)) = rewound.first().filter(|(due_at, _)| *due_at <= now.wall).copied() {
            rewound.pop_first();
            due.push(slot);
        }
        for &slot in &due {
            self.get_mut(slot).at = At::Far;
        }
        due
    }

    /// A picture of the wheel.
    pub(crate) fn view_of_wheel(&self, now: Now) -> WheelView {
        let wheel = &self.timers.wheel;
        WheelView { now: now.wall, tasks: wheel.len() as u64, rings: wheel.rings() }
    }

    /// The latest time that the wheel has seen.
    pub(crate) fn latest_seen(&self) -> Option<Timestamp> {
        Timestamp::from_ms(i64::try_from(self.timers.wheel.now()).unwrap_or(i64::MAX))
    }
}
