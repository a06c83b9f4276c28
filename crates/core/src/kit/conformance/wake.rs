//! Checks of `next_wake`, and of idle time.

use alloc::vec;
use alloc::vec::Vec;

use super::family::{Family, fired, follow, within};
use super::firing::STARTS;
use super::random::Random;
use crate::{Handle, TimerQueue};

/// The largest number of stops per deadline for a queue with inexact wakes: more than any wheel has levels, and few enough to detect a
/// queue that wakes at each tick.
const STOPS_PER_DEADLINE: usize = 64;

/// WH4: `next_wake` is always after now and never after the nearest deadline. Stops at each `next_wake` reach every deadline on time in a
/// bounded number of stops.
pub fn wh4_next_wake_is_after_now_and_never_late<F: Family>() {
    for start in STARTS {
        let mut random = Random::new(start);
        let mut queue = F::start(start);
        let mut handles: Vec<Handle> = vec![];
        let mut changes = 0;
        for _ in 0..3_000 {
            let pick = handles.get_mut(random.below(100) as usize);
            let ahead = 1 + (random.next() >> (24 + random.below(40)));
            let deadline = queue.now() + within::<F>(ahead);
            match (random.below(8), pick) {
                (0, Some(handle)) => {
                    let _stale_or_gone = queue.cancel(*handle);
                    changes += 1;
                }
                (1 | 2, Some(handle)) => {
                    *handle = queue.reschedule(*handle, deadline).unwrap_or(*handle);
                    changes += 1;
                }
                (3, _) => {
                    let now = queue.now() + random.below(2_000);
                    fired(&mut queue, now);
                }
                _ => handles.push(queue.insert(deadline, ()).expect("it is ahead")),
            }
            handles.retain(|&handle| queue.deadline(handle).is_some());
            assert_eq!(handles.len(), queue.len());
            let nearest = handles.iter().filter_map(|&handle| queue.deadline(handle)).min();
            let wake = queue.next_wake();
            assert_eq!(wake.is_some(), nearest.is_some());
            assert!(wake <= nearest, "the wake, {wake:?}, is late for {nearest:?}");
            assert!(wake.is_none_or(|wake| wake > queue.now()), "the wake, {wake:?}, is past");
        }
        let pending = queue.len();
        let mut stops = 0;
        while let Some((wake, due)) = follow(&mut queue) {
            for (deadline, ()) in due {
                assert_eq!(deadline, wake, "a deadline was passed on the way");
            }
            stops += 1;
        }
        assert_eq!(queue.len(), 0);
        let limit = pending * STOPS_PER_DEADLINE + changes;
        assert!(stops <= limit, "{stops} stops for {pending} deadlines, {changes} changes");
    }
}

/// WH5: a queue with an exact `next_wake` needs one stop for each deadline: 1,000 entries over 30 days (in ticks of a millisecond) take at
/// most 1,000 stops.
pub fn wh5_next_wake_is_exact<F: Family>() {
    const MONTH: u64 = 30 * 24 * 3_600_000;
    for start in STARTS {
        let mut random = Random::new(start);
        let mut queue = F::start(start);
        let mut deadlines = vec![];
        for _ in 0..1_000 {
            let deadline = start + 1 + random.below(within::<F>(MONTH));
            queue.insert(deadline, ()).expect("it is ahead");
            deadlines.push(deadline);
        }
        deadlines.sort_unstable();
        deadlines.dedup();
        let mut stops = vec![];
        while let Some((wake, _)) = follow(&mut queue) {
            stops.push(wake);
        }
        if F::EXACT_WAKE {
            assert_eq!(stops, deadlines);
        } else {
            assert!(stops.len() <= deadlines.len() * STOPS_PER_DEADLINE);
        }
        assert_eq!(queue.len(), 0);
    }
}

/// WH12: after the last entry was cancelled or fired, there is no wake.
pub fn wh12_without_entries_there_is_no_wake<F: Family>() {
    for start in STARTS {
        for ahead in [1, 64, 256, 65_536, 1 << 40].map(within::<F>) {
            let mut queue = F::start(start);
            assert_eq!(queue.next_wake(), None);
            let first = queue.insert(start + ahead, 1).expect("it is ahead");
            let second = queue.insert(start + ahead, 2).expect("it is ahead");
            assert_eq!(queue.cancel(first), Some(1));
            assert!(queue.next_wake().is_some());
            assert_eq!(queue.cancel(second), Some(2));
            assert_eq!(queue.next_wake(), None);
            queue.insert(start + ahead, 3).expect("it is ahead");
            assert_eq!(fired(&mut queue, start + ahead), [(start + ahead, 3)]);
            assert_eq!(queue.next_wake(), None);
        }
    }
}

/// WH14: after idle time of any length, an entry for now + 1 fires at now + 1 with one stop, and entries that were pending during the idle
/// time are unchanged.
pub fn wh14_idle_time_changes_nothing<F: Family>() {
    for start in STARTS {
        for exponent in 0..=45 {
            let far = start + within::<F>(1 << 50);
            let now = start + (1 << exponent);
            if now + 1 < far {
                let mut queue = F::start(start);
                let witness = queue.insert(far, "far").expect("it is ahead");
                assert_eq!(fired(&mut queue, now), []);
                queue.insert(now + 1, "next").expect("it is ahead");
                assert_eq!(queue.next_wake(), Some(now + 1));
                assert_eq!(fired(&mut queue, now + 1), [(now + 1, "next")]);
                assert_eq!(queue.deadline(witness), Some(far));
                assert_eq!(fired(&mut queue, far - 1), []);
                assert_eq!(fired(&mut queue, far), [(far, "far")]);
            }

            let mut queue = F::start(start);
            assert_eq!(fired(&mut queue, now), []);
            queue.insert(now + 1, "next").expect("it is ahead");
            assert_eq!(queue.next_wake(), Some(now + 1));
            assert_eq!(fired(&mut queue, now + 1), [(now + 1, "next")]);
            assert_eq!(queue.next_wake(), None);
        }
    }
}
