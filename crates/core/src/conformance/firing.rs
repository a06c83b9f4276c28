//! Checks of what fires, when, and in which order.

use alloc::vec;
use alloc::vec::Vec;

use super::family::{Family, fired, follow};
use super::random::Random;
use crate::{Refusal, RescheduleError, TimerQueue};

/// The sizes of slots and levels in use anywhere, and more: where placement goes wrong.
pub(super) const EDGES: [u64; 10] =
    [1 << 6, 1 << 8, 1 << 10, 1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 32, 1 << 40, 1 << 56];

/// Starts that are not aligned to anything, besides 0.
pub(super) const STARTS: [u64; 5] = [0, 1, 255, 65_535, 1_700_000_000_123];

/// WH1: a deadline at or before now is refused, with the value; now + 1 is accepted.
pub fn wh1_an_elapsed_deadline_is_refused_with_the_value<F: Family>() {
    for start in STARTS {
        let mut queue = F::start(start);
        for deadline in [0, start / 2, start.saturating_sub(1), start] {
            let Err(refused) = queue.insert(deadline, "late") else {
                panic!("deadline {deadline} was accepted at {start}");
            };
            assert_eq!((refused.why, refused.value), (Refusal::Elapsed, "late"));
        }
        assert_eq!(queue.len(), 0);
        assert_eq!(queue.next_wake(), None);
        queue.insert(start + 1, "next").expect("now + 1 is in the future");
        assert_eq!(fired(&mut queue, start + 1), [(start + 1, "next")]);
        let refused = queue.insert(start + 1, "again").map_err(|refused| refused.why);
        assert_eq!(refused, Err(Refusal::Elapsed), "now + 1 has become now");
    }
}

/// WH2: equal deadlines fire in the order in which they were inserted, from near or far, with
/// cancelled ones between.
pub fn wh2_equal_deadlines_fire_in_order_of_insertion<F: Family>() {
    for start in STARTS {
        for edge in EDGES {
            let deadline = start + edge + 3;
            let mut queue = F::start(start);
            let mut expected = vec![];
            let mut id = 0;
            // From far away, then ever nearer, the last from one tick before.
            let approach = [edge + 3, edge, edge / 2 + 1, 300, 256, 255, 64, 2, 1];
            for distance in approach {
                let now = deadline - distance.min(edge + 3);
                assert_eq!(fired(&mut queue, now), []);
                for _ in 0..4 {
                    let before = queue.insert(deadline, id).expect("the deadline is ahead");
                    queue.insert(deadline, id + 1).expect("the deadline is ahead");
                    assert_eq!(queue.cancel(before), Some(id));
                    expected.push((deadline, id + 1));
                    id += 2;
                }
            }
            let list = fired(&mut queue, deadline);
            assert_eq!(list, expected, "start {start}, edge {edge}");
        }
    }
}

/// WH2, for entries that move: among equal deadlines the first inserted is the first to fire, no
/// matter from where and when it came to that deadline.
pub fn wh2_a_rescheduled_entry_keeps_its_place_in_the_order<F: Family>() {
    for start in STARTS {
        for edge in EDGES {
            let meet = start + 2 * edge;
            let mut queue = F::start(start);
            // Deadlines before, at and after the meeting point, and on other levels.
            let homes = [meet + 1, meet, meet - 1, meet + edge, start + edge, meet + 255];
            let mut handles = vec![];
            for id in 0..60 {
                let home = homes[id as usize % homes.len()];
                handles.push(queue.insert(home, id).expect("the deadline is ahead"));
            }
            // The last comes first, some before and some after the others have come near.
            for id in (30..60).rev() {
                queue.reschedule(handles[id], meet).expect("it is pending");
            }
            assert_eq!(fired(&mut queue, start + edge / 2), []);
            for id in (0..30).rev() {
                queue.reschedule(handles[id], meet).expect("it is pending");
            }
            queue.insert(meet, 60).expect("the deadline is ahead");
            assert_eq!(fired(&mut queue, meet - 1), []);
            let expected: Vec<_> = (0..=60).map(|id| (meet, id)).collect();
            assert_eq!(fired(&mut queue, meet), expected, "start {start}, edge {edge}");
        }
    }
}

/// WH3: one jump of N ticks, N steps, random parts, and stops led by `next_wake` fire the same
/// list, entry by entry, and it is sorted by deadline and order of insertion.
pub fn wh3_any_way_of_advancing_fires_the_same_list<F: Family>() {
    // Beyond the third level's edge from the second and third starts.
    const SPAN: u64 = 70_000;
    for start in [0, 255, 65_500, (1 << 24) - 35_000, u64::MAX - 1 - SPAN] {
        let scenario = || {
            let mut random = Random::new(start);
            let mut queue = F::start(start);
            let mut handles = vec![];
            for id in 0..2_000_u32 {
                // Half of them crowd into a few ticks.
                let ahead = match random.below(2) {
                    0 => random.below(SPAN),
                    _ => random.below(10) * (SPAN / 10),
                };
                let deadline = start + 1 + ahead;
                handles.push(queue.insert(deadline.min(start + SPAN), id).expect("it is ahead"));
            }
            for _ in 0..1_000 {
                let handle = &mut handles[random.below(2_000) as usize];
                if random.below(2) == 0 {
                    let deadline = start + 1 + random.below(SPAN);
                    *handle = queue.reschedule(*handle, deadline).unwrap_or(*handle);
                } else {
                    let _stale_or_gone = queue.cancel(*handle);
                }
            }
            let mut expected: Vec<(u64, u32)> =
                (0..2_000).filter_map(|id| Some((queue.deadline(handles[id as usize])?, id))).collect();
            expected.sort_unstable();
            assert_eq!(expected.len(), queue.len());
            (queue, expected)
        };
        let end = start + SPAN;

        let (mut queue, expected) = scenario();
        assert_eq!(fired(&mut queue, end), expected, "one jump from {start}");
        assert_eq!((queue.len(), queue.now()), (0, end));

        let (mut queue, expected) = scenario();
        let mut list = vec![];
        for now in start + 1..=end {
            queue.advance(now, &mut |deadline, id| {
                assert_eq!(deadline, now, "a step of one tick fires that tick");
                list.push((deadline, id));
            });
            assert_eq!(queue.now(), now);
        }
        assert_eq!(list, expected, "steps of one tick from {start}");

        let (mut queue, expected) = scenario();
        let mut random = Random::new(!start);
        let mut list = vec![];
        let mut now = start;
        while now < end {
            let part = match random.below(3) {
                0 => 1 + random.below(3),
                1 => 1 + random.below(300),
                _ => 1 + random.below(5_000),
            };
            now += part.min(end - now);
            list.extend(fired(&mut queue, now));
            assert_eq!(queue.now(), now);
        }
        assert_eq!(list, expected, "random parts from {start}");

        let (mut queue, expected) = scenario();
        let mut list = vec![];
        while let Some((_, due)) = follow(&mut queue) {
            list.extend(due);
        }
        assert_eq!(list, expected, "led by next_wake from {start}");
    }
}

/// WH9: a near deadline that is inserted after a far one fires first, and never a tick early.
pub fn wh9_near_after_far_fires_first<F: Family>() {
    for start in STARTS {
        let mut queue = F::start(start);
        queue.insert(start + 10_000, "far").expect("it is ahead");
        queue.insert(start + 600, "near").expect("it is ahead");
        let wake = queue.next_wake().expect("two are pending");
        assert!(wake <= start + 600, "the wake, {wake}, is that of the far one");
        assert_eq!(fired(&mut queue, start + 599), []);
        assert_eq!(fired(&mut queue, start + 600), [(start + 600, "near")]);
        assert_eq!(fired(&mut queue, start + 9_999), []);
        assert_eq!(fired(&mut queue, start + 10_000), [(start + 10_000, "far")]);

        let mut queue = F::start(start);
        queue.insert(start + 200, "second").expect("it is ahead");
        queue.insert(start + 100, "first").expect("it is ahead");
        assert_eq!(fired(&mut queue, start + 99), []);
        assert_eq!(fired(&mut queue, start + 100), [(start + 100, "first")]);
        assert_eq!(fired(&mut queue, start + 199), []);
        assert_eq!(fired(&mut queue, start + 200), [(start + 200, "second")]);
    }
}

/// WH13: a distance that is a power of two, one less and one more is exact, from aligned and odd
/// starts.
pub fn wh13_powers_and_their_neighbours_are_exact<F: Family>() {
    for exponent in 1..=56 {
        for distance in [(1_u64 << exponent) - 1, 1 << exponent, (1 << exponent) + 1] {
            let aligned = 1_u64 << exponent;
            for start in [0, 1, 63, 255, 257, 65_535, aligned - 1, aligned, aligned + 1] {
                let deadline = start + distance;
                let mut queue = F::start(start);
                queue.insert(deadline, ()).expect("it is ahead");
                assert_eq!(fired(&mut queue, deadline - 1), [], "{start} + {distance} is early");
                assert_eq!(queue.len(), 1);
                assert_eq!(
                    fired(&mut queue, deadline),
                    [(deadline, ())],
                    "{start} + {distance} did not fire"
                );
            }
        }
    }
}

/// WH15: deadlines up to `u64::MAX - 1` are stored and fire, `u64::MAX` is refused, nothing wraps.
pub fn wh15_the_far_end_of_time_is_reached<F: Family>() {
    const LAST: u64 = u64::MAX - 1;
    for start in [0, 1, 1 << 40, u64::MAX / 2, LAST - 70_000, LAST - 256, LAST - 1] {
        let mut queue = F::start(start);
        for deadline in [u64::MAX, LAST, LAST - 1] {
            let answer = queue.insert(deadline, deadline).map_err(|refused| {
                assert_eq!(refused.value, deadline);
                refused.why
            });
            if deadline == u64::MAX {
                assert_eq!(answer, Err(Refusal::TooFar));
            } else if deadline <= start {
                assert_eq!(answer, Err(Refusal::Elapsed));
            } else {
                let handle = answer.expect("it is ahead");
                let refusal = queue.reschedule(handle, u64::MAX);
                assert_eq!(refusal, Err(RescheduleError::TooFar));
                assert_eq!(queue.deadline(handle), Some(deadline));
            }
        }
        if start < LAST - 1 {
            assert_eq!(fired(&mut queue, LAST - 2), []);
            assert_eq!(fired(&mut queue, LAST - 1), [(LAST - 1, LAST - 1)]);
        }
        assert_eq!(queue.next_wake(), Some(LAST));
        assert_eq!(fired(&mut queue, LAST), [(LAST, LAST)]);
        assert_eq!((queue.len(), queue.next_wake()), (0, None));
    }

    // Time may reach the very end, and stays there.
    let mut queue = F::start(7);
    queue.insert(LAST, LAST).expect("it is ahead");
    queue.insert(8, 8).expect("it is ahead");
    assert_eq!(fired(&mut queue, u64::MAX), [(8, 8), (LAST, LAST)]);
    assert_eq!(queue.now(), u64::MAX);
    for deadline in [0, 8, LAST] {
        let answer = queue.insert(deadline, deadline).map_err(|refused| refused.why);
        assert_eq!(answer, Err(Refusal::Elapsed));
    }
    assert_eq!(fired(&mut queue, u64::MAX), []);
    assert_eq!(queue.next_wake(), None);
}

/// WH16: advancing to an earlier time fires nothing and changes nothing.
pub fn wh16_time_never_runs_backwards<F: Family>() {
    for start in [1_000, 65_536, 1 << 40] {
        let mut queue = F::start(start);
        let handle = queue.insert(start + 500, "pending").expect("it is ahead");
        queue.advance(start + 100, &mut |_, _| panic!("nothing is due"));
        for earlier in [0, start - 1, start, start + 99, start + 100] {
            let count = queue.advance(earlier, &mut |_, _| panic!("nothing is due"));
            assert_eq!(count, 0);
            assert_eq!(queue.now(), start + 100, "time moved to {earlier}");
            assert_eq!(queue.deadline(handle), Some(start + 500));
            let answer = queue.insert(start + 100, "late").map_err(|refused| refused.why);
            assert_eq!(answer, Err(Refusal::Elapsed));
        }
        assert_eq!(fired(&mut queue, start + 500), [(start + 500, "pending")]);
    }
}
