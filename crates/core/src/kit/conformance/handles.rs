//! Checks of handles: cancel and reschedule.

use alloc::vec;

use super::family::{Family, fired, within};
use super::firing::STARTS;
use super::random::Random;
use crate::{RescheduleError, TimerQueue};

/// WH6: cancel returns the value once. After the cancel, after firing, and after another entry took the place, the handle finds nothing.
pub fn wh6_a_handle_works_once<F: Family>() {
    for start in STARTS {
        let mut queue = F::start(start);
        let cancelled = queue.insert(start + 10, 1).expect("it is ahead");
        assert_eq!(queue.cancel(cancelled), Some(1));
        assert_eq!(queue.cancel(cancelled), None);
        let due = queue.insert(start + 10, 2).expect("it is ahead");
        assert_eq!(fired(&mut queue, start + 10), [(start + 10, 2)]);

        // Many entries use the same few places, one after the other.
        let mut stale = vec![cancelled, due];
        for round in 0..1_000 {
            let deadline = start + within::<F>(1_000);
            let handle = queue.insert(deadline, round).expect("it is ahead");
            for &old in stale.iter().rev().take(20).chain(&stale[..2]) {
                assert_ne!(handle, old, "a handle was given out twice");
                assert_eq!(queue.cancel(old), None, "{old:?} found the entry of {handle:?}");
                assert_eq!(queue.deadline(old), None);
                let answer = queue.reschedule(old, start + 2_000);
                assert_eq!(answer, Err(RescheduleError::Stale));
            }
            assert_eq!(queue.deadline(handle), Some(deadline));
            assert_eq!(queue.len(), 1);
            assert_eq!(queue.cancel(handle), Some(round));
            stale.push(handle);
        }
        assert_eq!(queue.len(), 0);
    }
}

/// WH7: an entry that is rescheduled many times, to later, earlier and equal ticks, fires once, at its last deadline, and `len` does not
/// change.
pub fn wh7_a_rescheduled_entry_fires_once_at_its_last_deadline<F: Family>() {
    for start in STARTS {
        let mut queue = F::start(start);
        let staying = start + within::<F>(500);
        let last = start + within::<F>(500) * 4 / 5;
        let mut handle = queue.insert(staying, "moving").expect("it is ahead");
        queue.insert(staying, "staying").expect("it is ahead");
        let way = [501, 501, 499, 65_537, 1 << 41, 256, 255, 257, 64, 1, 1, 70_000, last - start];
        for ahead in way.map(within::<F>) {
            handle = queue.reschedule(handle, start + ahead).expect("it is pending");
            assert_eq!(queue.deadline(handle), Some(start + ahead));
            assert_eq!(queue.len(), 2);
        }
        assert_eq!(fired(&mut queue, last - 1), []);
        assert_eq!(fired(&mut queue, last), [(last, "moving")]);
        assert_eq!(queue.reschedule(handle, staying), Err(RescheduleError::Stale));
        assert_eq!(fired(&mut queue, staying), [(staying, "staying")]);
        assert_eq!(fired(&mut queue, start + (1 << 42)), []);

        // Many entries are rescheduled in the same way, while time passes.
        let mut random = Random::new(start);
        let base = queue.now();
        let span = within::<F>(100_000);
        let passed = 1_000.min(span / 2);
        let mut queue = F::start(base);
        let mut handles = vec![];
        for id in 0..200_usize {
            handles.push(queue.insert(base + span, id).expect("it is ahead"));
        }
        for now in base + 1..base + passed {
            assert_eq!(fired(&mut queue, now), []);
            for _ in 0..10 {
                let id = random.below(200) as usize;
                let deadline = base + passed + random.below(span - passed);
                handles[id] = queue.reschedule(handles[id], deadline).expect("it is pending");
            }
            assert_eq!(queue.len(), 200);
        }
        let mut expected = vec![];
        for (id, &handle) in handles.iter().enumerate() {
            expected.push((queue.deadline(handle).expect("it is pending"), id));
        }
        expected.sort_unstable();
        assert_eq!(fired(&mut queue, base + span), expected);
    }
}

/// WH8: a refused reschedule (stale, elapsed, too far) changes nothing.
pub fn wh8_a_refused_reschedule_changes_nothing<F: Family>() {
    for start in STARTS {
        let deadline = start + within::<F>(300);
        let mut queue = F::start(start);
        let gone = queue.insert(start + 1, 0).expect("it is ahead");
        let first = queue.insert(deadline, 1).expect("it is ahead");
        let second = queue.insert(deadline, 2).expect("it is ahead");
        assert_eq!(fired(&mut queue, start + 10), [(start + 1, 0)]);
        let refusals = [
            (first, u64::MAX, RescheduleError::TooFar),
            (first, start + 10, RescheduleError::Elapsed),
            (first, start, RescheduleError::Elapsed),
            (second, 0, RescheduleError::Elapsed),
            (gone, deadline, RescheduleError::Stale),
            (gone, u64::MAX, RescheduleError::Stale),
            (gone, 0, RescheduleError::Stale),
        ];
        for (handle, to, why) in refusals {
            assert_eq!(queue.reschedule(handle, to), Err(why), "to {to}");
            assert_eq!(queue.deadline(first), Some(deadline));
            assert_eq!(queue.deadline(second), Some(deadline));
            assert_eq!((queue.len(), queue.now()), (2, start + 10));
        }
        assert_eq!(fired(&mut queue, deadline - 1), []);
        assert_eq!(fired(&mut queue, deadline), [(deadline, 1), (deadline, 2)]);
    }
}

/// WH10: of two entries on a boundary one fires or is cancelled; the handle of the other one still works.
pub fn wh10_neighbours_on_a_boundary_are_independent<F: Family>() {
    for boundary in [64, 256, 65_536, 1 << 24, 1 << 32] {
        // The boundary is as far away as the queue reaches.
        let distance = within::<F>(boundary + 1);
        let mut queue = F::start(boundary + 1 - distance);
        let first = queue.insert(boundary, 1).expect("it is ahead");
        let second = queue.insert(boundary, 2).expect("it is ahead");
        let third = queue.insert(boundary + 1, 3).expect("it is ahead");
        assert_eq!(fired(&mut queue, boundary - 1), []);
        assert_eq!(queue.cancel(second), Some(2));
        assert_eq!(queue.deadline(first), Some(boundary));
        assert_eq!(fired(&mut queue, boundary), [(boundary, 1)]);
        assert_eq!(queue.cancel(first), None);
        assert_eq!(queue.cancel(third), Some(3));
        assert_eq!((queue.len(), queue.next_wake()), (0, None));

        // From a time at which the boundary itself, one slot more and one tick more are in reach.
        assert_eq!(fired(&mut queue, 2 * boundary + 1 - distance), []);
        let first = queue.insert(2 * boundary, 4).expect("it is ahead");
        let second = queue.insert(2 * boundary + 1, 5).expect("it is ahead");
        assert_eq!(fired(&mut queue, 2 * boundary), [(2 * boundary, 4)]);
        assert_eq!(queue.cancel(first), None);
        assert_eq!(queue.cancel(second), Some(5));
        assert_eq!(queue.len(), 0);
    }
}

/// WH11: of two entries one is moved, to a later tick or to a tick before the other; the other one stays on time.
pub fn wh11_moving_one_entry_leaves_the_other_on_time<F: Family>() {
    for start in STARTS {
        for (near, far) in [(10, 20), (100, 400), (300, 70_000), (70_000, 1 << 33)] {
            if 2 * far > F::REACH {
                continue;
            }
            let mut queue = F::start(start);
            let first = queue.insert(start + near, 1).expect("it is ahead");
            queue.insert(start + far, 2).expect("it is ahead");
            let later = start + 2 * far;
            queue.reschedule(first, later).expect("it is pending");
            assert_eq!(fired(&mut queue, start + far - 1), []);
            assert_eq!(fired(&mut queue, start + far), [(start + far, 2)]);
            assert_eq!(fired(&mut queue, later - 1), []);
            assert_eq!(fired(&mut queue, later), [(later, 1)]);

            let mut queue = F::start(start);
            queue.insert(start + near, 1).expect("it is ahead");
            let second = queue.insert(start + far, 2).expect("it is ahead");
            let before = start + near / 2;
            queue.reschedule(second, before).expect("it is pending");
            let wake = queue.next_wake().expect("two are pending");
            assert!(wake <= before, "the wake, {wake}, is after the moved one, {before}");
            assert_eq!(fired(&mut queue, before - 1), []);
            assert_eq!(fired(&mut queue, before), [(before, 2)]);
            assert_eq!(fired(&mut queue, start + near), [(start + near, 1)]);
        }
    }
}
