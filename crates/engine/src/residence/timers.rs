//! [`Timers`]: the due times of the tasks that are whole in memory and wait until they are due.

use std::collections::BTreeSet;

use tickwheel_core::{Handle, TimerQueue, Wheel};

use super::Residence;
use super::entries::At;
use crate::calls::WheelView;
use crate::residence::Slot;
use crate::time::{Now, Timestamp};

/// The waiting tasks by `due_at` (ms). A wheel only goes forward. If the wall clock steps back, a task may be due after now though the
/// wheel has passed its due time. Such a task is in the rewound set.
#[derive(Debug)]
pub(super) struct Timers {
    wheel: Wheel<Slot>,
    rewound: BTreeSet<(Timestamp, Slot)>,
}

impl Timers {
    pub(super) fn new(now: Now) -> Self {
        Self { wheel: Wheel::new(now.falls_due().as_tick()), rewound: BTreeSet::new() }
    }

    fn start(&mut self, due_at: Timestamp, slot: Slot) -> At {
        match self.wheel.insert(due_at.as_tick(), slot) {
            Ok(handle) => At::Waiting(handle),
            // The wheel has passed the due time, but the wall clock has not: the wall clock stepped back.
            Err(_) => {
                self.rewound.insert((due_at, slot));
                At::Rewound
            }
        }
    }

    /// Returns the earliest instant at which the wheel has work or a task of the rewound set is due; `None`: no task waits.
    pub(super) fn next(&self) -> Option<Timestamp> {
        let due = self.wheel.next_wake().map(|tick| {
            i64::try_from(tick).ok().and_then(Timestamp::from_ms).expect("the wheel holds timestamps only")
        });
        let rewound = self.rewound.first().map(|&(due_at, _)| due_at);
        due.into_iter().chain(rewound).min()
    }
}

impl Residence {
    /// Starts the wait of an entry that is in no index and is due in the future. The entry goes into the wheel, or into the rewound set if
    /// the wheel has passed the due time. An entry that is due after `keep_until` goes into no index.
    pub(crate) fn start_timer(&mut self, slot: Slot, now: Now) {
        let due_at = self.get(slot).task.due_at;
        let at = if due_at > self.keep_until(now) { At::Far } else { self.timers.start(due_at, slot) };
        self.get_mut(slot).at = at;
    }

    /// Takes an entry out of the wheel.
    pub(crate) fn cancel_timer(&mut self, handle: Handle, slot: Slot) {
        let found = self.timers.wheel.cancel(handle);
        assert_eq!(found, Some(slot), "a waiting task is in the wheel");
    }

    /// Takes an entry out of the rewound set.
    pub(crate) fn cancel_rewound(&mut self, slot: Slot) {
        let due_at = self.get(slot).task.due_at;
        self.timers.rewound.remove(&(due_at, slot));
    }

    /// Takes all entries that are due by now out of the wheel and the rewound set. The entries are in no index then.
    pub(crate) fn pop_due(&mut self, now: Now) -> Vec<Slot> {
        let Timers { wheel, rewound } = &mut self.timers;
        let mut due: Vec<Slot> = Vec::new();
        wheel.advance_with(now.falls_due().as_tick(), |_, slot| due.push(slot));
        while let Some((_, slot)) = rewound.first().filter(|(due_at, _)| *due_at <= now.falls_due()).copied()
        {
            rewound.pop_first();
            due.push(slot);
        }
        for &slot in &due {
            self.get_mut(slot).at = At::Far;
        }
        due
    }

    /// Returns the number of tasks in the wheel and the contents of its rings.
    pub(crate) fn view_of_wheel(&self, now: Now) -> WheelView {
        let wheel = &self.timers.wheel;
        WheelView { now: now.wall, tasks: wheel.len() as u64, rings: wheel.rings() }
    }

    /// Returns the latest wall time to which the wheel has advanced. The wall clock may have stepped back since.
    pub(crate) fn latest_seen(&self) -> Option<Timestamp> {
        Timestamp::from_ms(i64::try_from(self.timers.wheel.now()).unwrap_or(i64::MAX))
    }
}
