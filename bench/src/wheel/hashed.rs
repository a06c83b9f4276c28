//! A peer: `hierarchical_hash_wheel_timer`, four wheels of 256 slots and a hash map for cancelling.

use std::rc::Rc;
use std::time::Duration;

use hierarchical_hash_wheel_timer::wheels::Skip;
use hierarchical_hash_wheel_timer::wheels::cancellable::{CancellableTimerEntry, QuadWheelWithOverflow};

use super::subject::{Fired, Jump, Store, Subject, by_next_wake};

/// The smallest entry it takes: our values are never used twice, so the value is the identity too.
#[derive(Debug)]
struct Entry(u64);

impl CancellableTimerEntry for Entry {
    type Id = u64;

    fn id(&self) -> &u64 {
        &self.0
    }
}

/// The cancellable wheel with its default hash function. It does not know the time, so we count for it.
pub(crate) struct Hashed {
    wheel: QuadWheelWithOverflow<Entry>,
    now: u64,
}

impl Hashed {
    #[inline]
    fn tick(&mut self, fired: &mut Fired) {
        self.now += 1;
        for entry in self.wheel.tick() {
            fired.one(entry.0);
        }
    }
}

impl Store for Hashed {
    type Handle = u64;

    fn new() -> Self {
        Self { wheel: QuadWheelWithOverflow::new(), now: 0 }
    }

    #[inline]
    fn insert(&mut self, deadline: u64, value: u64) -> u64 {
        let delay = Duration::from_millis(deadline - self.now);
        self.wheel.insert_ref_with_delay(Rc::new(Entry(value)), delay).expect("the deadline is after now");
        value
    }

    #[inline]
    fn cancel(&mut self, id: u64) -> u64 {
        self.wheel.cancel(&id).expect("it is pending");
        id
    }

    #[inline]
    fn replace(&mut self, id: &mut u64, deadline: u64, value: u64) -> u64 {
        let cancelled = self.cancel(*id);
        *id = self.insert(deadline, value);
        cancelled
    }

    #[inline]
    fn release(&mut self, _: u64) {}
}

impl Subject for Hashed {
    /// It has no such thing.
    #[inline]
    fn reschedule(&mut self, id: &mut u64, deadline: u64) {
        let value = self.cancel(*id);
        *id = self.insert(deadline, value);
    }

    #[inline]
    fn advance(&mut self, now: u64) -> Fired {
        let mut fired = Fired::default();
        while self.now < now {
            let left = now - self.now;
            // Asking whether a single tick may be skipped would cost as much as the tick.
            let skip = match if left > 1 { self.wheel.can_skip() } else { Skip::None } {
                Skip::None => 0,
                Skip::Millis(ticks) => left.min(u64::from(ticks)),
                Skip::Empty => left.min(u64::from(u32::MAX)),
            };
            self.wheel.skip(skip as u32);
            self.now += skip;
            if self.now < now {
                self.tick(&mut fired);
            }
        }
        fired
    }

    fn next(&mut self) -> Jump {
        by_next_wake(self, |this| match this.wheel.can_skip() {
            Skip::Empty => None,
            Skip::Millis(ticks) => Some(this.now + u64::from(ticks) + 1),
            Skip::None => Some(this.now + 1),
        })
    }
}
