//! The simple wheel: one turn, and the deadlines beyond it. C22.

use tickwheel_core::classic::SimpleWheel;
use tickwheel_core::{Refusal, RescheduleError, TimerQueue};

fn fired<T>(wheel: &mut SimpleWheel<T>, now: u64) -> Vec<(u64, T)> {
    let mut list = vec![];
    let count = wheel.advance(now, &mut |deadline, value| list.push((deadline, value)));
    assert_eq!(count, list.len());
    list
}

#[test]
fn c22_a_turn_ahead_is_refused_and_one_less_accepted() {
    for slots in [2, 3, 64, 100] {
        let n = slots as u64;
        for start in [0, 1, n - 1, n, 1_000_003, u64::MAX - 1 - 4 * n] {
            let mut wheel = SimpleWheel::new(start, slots);
            // At every turn of the hand.
            for now in start..start + 2 * n {
                assert_eq!(fired(&mut wheel, now), []);
                let last = wheel.insert(now + n - 1, "last").expect("it is in this turn");
                for deadline in [now + n, now + n + 1, now + 2 * n, u64::MAX - 1] {
                    let refused = wheel.insert(deadline, "beyond").expect_err("it is in another turn");
                    assert_eq!((refused.why, refused.value), (Refusal::TooFar, "beyond"));
                    assert_eq!(wheel.reschedule(last, deadline), Err(RescheduleError::TooFar));
                }
                assert_eq!((wheel.len(), wheel.deadline(last)), (1, Some(now + n - 1)));
                assert_eq!(wheel.slot(last), Some((now + n - 1 - start) as usize % slots));
                assert_eq!(wheel.next_wake(), Some(now + n - 1));
                assert_eq!(wheel.cancel(last), Some("last"));
            }
        }
    }
}

#[test]
fn c22_a_full_turn_fires_in_order_tick_by_tick() {
    for slots in [2, 3, 64, 100] {
        let n = slots as u64;
        let mut wheel = SimpleWheel::new(7, slots);
        for now in 7..7 + 3 * n {
            // Each tick gets one entry that is inserted one tick before it, and one that is
            // inserted a turn before it.
            for ahead in 1..n {
                wheel.insert(now + ahead, now).expect("it is in this turn");
            }
            let due = fired(&mut wheel, now + 1);
            let first = (now + 2).saturating_sub(n).max(7);
            let expected: Vec<(u64, u64)> = (first..=now).map(|inserted| (now + 1, inserted)).collect();
            assert_eq!(due, expected, "{slots} slots");
        }
    }
}

#[test]
fn c22_a_wheel_of_one_slot_refuses_everything() {
    let mut wheel = SimpleWheel::new(5, 1);
    for (deadline, why) in [(5, Refusal::Elapsed), (6, Refusal::TooFar), (7, Refusal::TooFar)] {
        assert_eq!(wheel.insert(deadline, ()).expect_err("it has one slot").why, why);
    }
    assert_eq!((wheel.len(), wheel.next_wake()), (0, None));
    assert_eq!(fired(&mut wheel, u64::MAX), []);
}

#[test]
#[should_panic(expected = "at least one slot")]
fn c22_no_slots_are_refused() {
    let _refused = SimpleWheel::<()>::new(0, 0);
}
