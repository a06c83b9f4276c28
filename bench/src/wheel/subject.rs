//! [`Subject`]: the seam behind which every implementation stands.

/// What left a queue: how many, and the sum of their values, so that nobody can be fast by forgetting some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fired {
    pub(crate) count: u64,
    pub(crate) sum: u64,
}

impl Fired {
    /// One more.
    pub(crate) fn one(&mut self, value: u64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(value);
    }
}

impl std::ops::AddAssign for Fired {
    fn add_assign(&mut self, more: Self) {
        self.count += more.count;
        self.sum = self.sum.wrapping_add(more.sum);
    }
}

/// Values with a deadline that can be put in and taken out again: all that a workload without time needs.
///
/// Every workload is generic over the implementation, so each of them gets its own copy of the loop and no call is virtual.
/// Values are never used twice. None is told beforehand how many there will be.
pub(crate) trait Store: Sized {
    /// The claim on a value. Some of them may not be copied.
    type Handle;

    /// An empty one, at tick 0.
    fn new() -> Self;

    /// Stores a value until its deadline, which is after now.
    fn insert(&mut self, deadline: u64, value: u64) -> Self::Handle;

    /// Takes a pending value out.
    fn cancel(&mut self, handle: Self::Handle) -> u64;

    /// Cancels, and then inserts into the same variable. Returns the value that was cancelled.
    fn replace(&mut self, handle: &mut Self::Handle, deadline: u64, value: u64) -> u64;

    /// Gives up the claim; the value stays. After the value has fired it only tidies up.
    fn release(&mut self, handle: Self::Handle);
}

/// A queue of timers, driven in ticks of one millisecond.
pub(crate) trait Subject: Store {
    /// Whether the sums of fired values can be compared.
    const KNOWS_VALUES: bool = true;

    /// Moves a pending timer; by cancelling and inserting it where the implementation has no better way.
    fn reschedule(&mut self, handle: &mut Self::Handle, deadline: u64);

    /// Lets time pass until `now` and fires what is due.
    fn advance(&mut self, now: u64) -> Fired;

    /// Lets time pass until something fires, the way its users would wait for it. Something is pending.
    fn next(&mut self) -> Jump;

    /// Memory on the heap, where the implementation can tell.
    fn heap_bytes(&self) -> Option<u64> {
        None
    }
}

/// What happened on the way to the next timer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jump {
    pub(crate) fired: Fired,
    /// How often a thread would have slept and woken on the way.
    pub(crate) stops: u64,
}

/// [`Subject::next`] for those who can be asked when to come back.
pub(crate) fn by_next_wake<S: Subject>(subject: &mut S, next_wake: impl Fn(&mut S) -> Option<u64>) -> Jump {
    let (mut stops, mut last) = (0, 0);
    loop {
        let wake = next_wake(subject).expect("something is pending");
        assert!(wake > last, "woken at {last} for nothing, and to be woken at {wake} again");
        last = wake;
        stops += 1;
        let fired = subject.advance(wake);
        if fired.count > 0 {
            return Jump { fired, stops };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::delay_queue::Delays;
    use super::super::hashed::Hashed;
    use super::super::heap::LazyHeap;
    use super::super::nexus::Nexus;
    use super::super::ours::Ours;
    use super::super::sleep::Sleeps;
    use super::super::tree::Tree;
    use super::*;
    use crate::random::Random;

    /// How many timers fired in each tick, among them 500 in one, which is more than tokio's budget for one poll. Some were
    /// cancelled and some moved before.
    fn fired_by_tick<S: Subject>() -> Vec<u64> {
        const TICKS: u64 = 700;
        let mut subject = S::new();
        let mut random = Random::new(7);
        let mut handles: Vec<S::Handle> = (0..500).map(|value| subject.insert(300, value)).collect();
        handles.extend((500..2_500).map(|value| subject.insert(1 + random.below(TICKS), value)));
        for value in 2_500..4_000 {
            let (index, delay) = random.two_below(handles.len() as u64, TICKS);
            match value % 3 {
                0 => drop(subject.cancel(handles.swap_remove(index as usize))),
                1 => drop(subject.replace(&mut handles[index as usize], 1 + delay, value)),
                _ => subject.reschedule(&mut handles[index as usize], 1 + delay),
            }
        }
        let fired = (1..=TICKS).map(|tick| subject.advance(tick).count).collect();
        handles.into_iter().for_each(|handle| subject.release(handle));
        fired
    }

    #[test]
    fn everybody_fires_the_same_in_every_tick() {
        let expected = fired_by_tick::<Tree>();
        assert_eq!(expected.iter().sum::<u64>(), 2_000);
        assert!(expected[299] > 250, "{expected:?}");
        let others = [
            ("wheel", fired_by_tick::<Ours>()),
            ("lazy-heap", fired_by_tick::<LazyHeap>()),
            ("nexus-timer", fired_by_tick::<Nexus>()),
            ("hhwt", fired_by_tick::<Hashed>()),
            ("tokio-delay-queue", fired_by_tick::<Delays>()),
            ("tokio-sleep", fired_by_tick::<Sleeps>()),
        ];
        for (name, fired) in others {
            assert!(fired == expected, "{name} fires {fired:?} instead of {expected:?}");
        }
    }
}
