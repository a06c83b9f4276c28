//! Checks of what fires, when, and in which order.

use alloc::vec;
use alloc::vec::Vec;

use super::family::{Family, fired, follow, within};
use super::random::Random;
use crate::{Refusal, RescheduleError, TimerQueue};

/// The sizes of slots and levels in the queues of this crate, and some others. At these distances, errors in choosing a slot are likely.
pub(super) const EDGES: [u64; 10] =
    [1 << 6, 1 << 8, 1 << 10, 1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 32, 1 << 40, 1 << 56];

/// Starting times: 0, and some that are not aligned to any slot.
pub(super) const STARTS: [u64; 5] = [0, 1, 255, 65_535, 1_700_000_000_123];

/// WH1: a deadline at or before now is refused, and the value is given back; now + 1 is accepted.
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

/// WH2: entries with equal deadlines fire in the order in which they were inserted. Some are inserted long before the deadline and some
/// shortly before it, and there are cancelled entries between them.
pub fn wh2_equal_deadlines_fire_in_order_of_insertion<F: Family>() {
    for start in STARTS {
        for edge in EDGES {
            let deadline = start + edge + 3;
            let mut queue = F::start(start);
            let mut expected = vec![];
            let mut id = 0;
            // The first insertions are far before the deadline, the next ones nearer and nearer, and the last is one tick before.
            let approach = [edge + 3, edge, edge / 2 + 1, 300, 256, 255, 64, 2, 1];
            for distance in approach {
                let now = deadline - within::<F>(distance.min(edge + 3));
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

/// WH2, for rescheduled entries. Among equal deadlines, the entry that was inserted first fires first, whatever its earlier deadlines were
/// and whenever it was rescheduled.
pub fn wh2_a_rescheduled_entry_keeps_its_place_in_the_order<F: Family>() {
    for start in STARTS {
        for edge in EDGES {
            let edge = within::<F>(4 * edge) / 4;
            let meet = start + 2 * edge;
            let mut queue = F::start(start);
            // Deadlines before, at and after the common deadline, and on other levels.
            let homes = [meet + 1, meet, meet - 1, meet + edge, start + edge, meet + 255];
            let mut handles = vec![];
            for id in 0..60 {
                let home = homes[id as usize % homes.len()].min(start.saturating_add(F::REACH));
                handles.push(queue.insert(home, id).expect("the deadline is ahead"));
            }
            // The entries are rescheduled in reverse order, some before and some after the deadline has come near.
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

/// WH3: one jump of N ticks, N steps of one tick, random parts, and stops at each `next_wake` fire the same list of entries. The list is
/// sorted by deadline and order of insertion.
pub fn wh3_any_way_of_advancing_fires_the_same_list<F: Family>() {
    // With the second and third start, the span goes beyond the edge of the third level.
    let span = within::<F>(70_000);
    for start in [0, 255, 65_500, (1 << 24) - 35_000, u64::MAX - 1 - span] {
        let scenario = || {
            let mut random = Random::new(start);
            let mut queue = F::start(start);
            let mut handles = vec![];
            for id in 0..2_000_u32 {
                // Half of the entries have deadlines in a few ticks.
                let ahead = match random.below(2) {
                    0 => random.below(span),
                    _ => random.below(10) * (span / 10),
                };
                let deadline = start + 1 + ahead;
                handles.push(queue.insert(deadline.min(start + span), id).expect("it is ahead"));
            }
            for _ in 0..1_000 {
                let handle = &mut handles[random.below(2_000) as usize];
                if random.below(2) == 0 {
                    let deadline = start + 1 + random.below(span);
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
        let end = start + span;

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

/// WH9: an entry with a near deadline that is inserted after one with a far deadline fires first, and never a tick early.
pub fn wh9_near_after_far_fires_first<F: Family>() {
    for start in STARTS {
        for (near, far) in [(600, 10_000), (100, 200)] {
            let far = within::<F>(far);
            let (near, far) = (start + near.min(far / 2), start + far);
            let mut queue = F::start(start);
            queue.insert(far, "far").expect("it is ahead");
            queue.insert(near, "near").expect("it is ahead");
            let wake = queue.next_wake().expect("two are pending");
            assert!(wake <= near, "the wake, {wake}, is that of the far one");
            assert_eq!(fired(&mut queue, near - 1), []);
            assert_eq!(fired(&mut queue, near), [(near, "near")]);
            assert_eq!(fired(&mut queue, far - 1), []);
            assert_eq!(fired(&mut queue, far), [(far, "far")]);
        }
    }
}

/// WH13: a distance that is a power of two, or one less or one more, is exact, from aligned and from other starts.
pub fn wh13_powers_and_their_neighbours_are_exact<F: Family>() {
    for exponent in 1..=56 {
        for distance in [(1_u64 << exponent) - 1, 1 << exponent, (1 << exponent) + 1] {
            if distance > F::REACH {
                continue;
            }
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

/// WH15: deadlines up to `u64::MAX - 1` are accepted and fire, `u64::MAX` is refused, and no arithmetic wraps.
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
            } else if deadline - start > F::REACH {
                assert_eq!(answer, Err(Refusal::TooFar));
            } else {
                let handle = answer.expect("it is ahead");
                let refusal = queue.reschedule(handle, u64::MAX);
                assert_eq!(refusal, Err(RescheduleError::TooFar));
                assert_eq!(queue.deadline(handle), Some(deadline));
            }
        }
        if LAST - start > F::REACH {
            continue;
        }
        if start < LAST - 1 {
            assert_eq!(fired(&mut queue, LAST - 2), []);
            assert_eq!(fired(&mut queue, LAST - 1), [(LAST - 1, LAST - 1)]);
        }
        assert_eq!(queue.next_wake(), Some(LAST));
        assert_eq!(fired(&mut queue, LAST), [(LAST, LAST)]);
        assert_eq!((queue.len(), queue.next_wake()), (0, None));
    }

    // Time may reach the largest tick, and stays there.
    let start = 7.max(LAST - within::<F>(LAST));
    let mut queue = F::start(start);
    queue.insert(LAST, LAST).expect("it is ahead");
    queue.insert(start + 1, start + 1).expect("it is ahead");
    assert_eq!(fired(&mut queue, u64::MAX), [(start + 1, start + 1), (LAST, LAST)]);
    assert_eq!(queue.now(), u64::MAX);
    for deadline in [0, start + 1, LAST] {
        let answer = queue.insert(deadline, deadline).map_err(|refused| refused.why);
        assert_eq!(answer, Err(Refusal::Elapsed));
    }
    assert_eq!(fired(&mut queue, u64::MAX), []);
    assert_eq!(queue.next_wake(), None);
}

/// WH15, for a queue with a limited reach: deadlines within the reach are accepted, and deadlines more than twice as far are refused, at
/// any time. No entry is filed a turn too early.
pub fn wh15_what_is_beyond_the_reach_is_refused<F: Family>() {
    const LAST: u64 = u64::MAX - 1;
    for start in STARTS {
        let mut queue = F::start(start);
        for passed in [0, 1, 2, 100, F::REACH / 2, F::REACH - 1] {
            let now = queue.now() + passed.min(1 << 32);
            assert_eq!(fired(&mut queue, now), []);
            let farthest = now.saturating_add(F::REACH).min(LAST);
            let handle = queue.insert(farthest, "in reach").expect("it is in reach");
            assert_eq!(queue.deadline(handle), Some(farthest));
            if F::REACH < u64::MAX / 4 {
                for deadline in [now + 2 * F::REACH + 1, LAST] {
                    let refused = queue.insert(deadline, "beyond").expect_err("it is beyond");
                    assert_eq!((refused.why, refused.value), (Refusal::TooFar, "beyond"));
                    let refusal = queue.reschedule(handle, deadline);
                    assert_eq!(refusal, Err(RescheduleError::TooFar));
                    assert_eq!((queue.deadline(handle), queue.len()), (Some(farthest), 1));
                }
                assert_eq!(fired(&mut queue, farthest - 1), []);
                assert_eq!(fired(&mut queue, farthest), [(farthest, "in reach")]);
            } else {
                assert_eq!(queue.cancel(handle), Some("in reach"));
            }
        }
    }
}

/// WH16: advancing to an earlier time fires nothing and changes nothing.
pub fn wh16_time_never_runs_backwards<F: Family>() {
    for start in [1_000, 65_536, 1 << 40] {
        let deadline = start + within::<F>(500);
        let now = start + within::<F>(500) / 5;
        let mut queue = F::start(start);
        let handle = queue.insert(deadline, "pending").expect("it is ahead");
        queue.advance(now, &mut |_, _| panic!("nothing is due"));
        for earlier in [0, start - 1, start, now - 1, now] {
            let count = queue.advance(earlier, &mut |_, _| panic!("nothing is due"));
            assert_eq!(count, 0);
            assert_eq!(queue.now(), now, "time moved to {earlier}");
            assert_eq!(queue.deadline(handle), Some(deadline));
            let answer = queue.insert(now, "late").map_err(|refused| refused.why);
            assert_eq!(answer, Err(Refusal::Elapsed));
        }
        assert_eq!(fired(&mut queue, deadline), [(deadline, "pending")]);
    }
}
