//! The hashed wheel: slots, rounds and ticks. C17 to C21.

use tickwheel_core::classic::{HashedPlacement, HashedWheel};
use tickwheel_core::{Refusal, TimerQueue};

const SLOTS: [usize; 7] = [1, 2, 3, 5, 8, 100, 512];

fn fired<T>(wheel: &mut HashedWheel<T>, now: u64) -> Vec<(u64, T)> {
    let mut list = vec![];
    let count = wheel.advance(now, &mut |deadline, value| list.push((deadline, value)));
    assert_eq!(count, list.len());
    list
}

/// C17: let `i` be the tick that is visited next. The entry of tick k is in slot k mod n and has
/// (k - i) / n rounds. Each visit of its slot takes one round off.
#[test]
fn c17_slot_and_rounds_follow_from_the_tick() {
    for (start, tick) in [(0, 1), (17, 1), (0, 10), (1_000, 10)] {
        for slots in SLOTS {
            let n = slots as u64;
            let mut wheel = HashedWheel::with_tick(start, tick, slots);
            let ticks = [1, 2, n - 1, n, n + 1, 2 * n - 1, 2 * n, 2 * n + 1, 3 * n, 10 * n + 1];
            let handles: Vec<_> = ticks
                .into_iter()
                .filter(|&k| k > 0)
                .map(|k| (k, wheel.insert(start + k * tick, k).expect("it is ahead")))
                .collect();
            for i in 1..=3 * n + 1 {
                for &(k, handle) in &handles {
                    let rounds = k.checked_sub(i).map(|ahead| ahead / n);
                    let placement = rounds.map(|rounds| HashedPlacement { slot: (k % n) as usize, rounds });
                    assert_eq!(wheel.look(handle), placement, "tick {k} of {slots} slots before {i}");
                }
                fired(&mut wheel, start + i * tick);
            }
        }
    }
}

/// C18: deadlines exactly one, two and three turns ahead, and their neighbours, fire each in its
/// own turn. A round too many or too few would be a whole turn.
#[test]
fn c18_whole_turns_ahead_fire_in_their_own_turn() {
    for slots in SLOTS {
        let n = slots as u64;
        for start in [0, 1, n - 1, n, n + 1, 1_000_003] {
            let mut wheel = HashedWheel::new(start, slots);
            let mut expected = vec![];
            for turns in 1..=3 {
                for ahead in [(turns * n).saturating_sub(1), turns * n, turns * n + 1] {
                    if ahead > 0 {
                        wheel.insert(start + ahead, ahead).expect("it is ahead");
                        expected.push((start + ahead, ahead));
                    }
                }
            }
            expected.sort_by_key(|&(deadline, _)| deadline);
            let mut list = vec![];
            for now in start + 1..=start + 3 * n + 1 {
                for (deadline, ahead) in fired(&mut wheel, now) {
                    assert_eq!((deadline, now), (start + ahead, start + ahead), "{slots} slots");
                    list.push((deadline, ahead));
                }
            }
            assert_eq!(list, expected);
        }
    }
}

#[test]
fn c19_any_positive_number_of_slots_will_do() {
    for slots in 1..100 {
        let mut wheel = HashedWheel::new(5, slots);
        for ahead in 1..=200 {
            let handle = wheel.insert(5 + ahead, ahead).expect("it is ahead");
            // The wheel has the requested number of slots, which is not a power of two.
            assert_eq!(wheel.look(handle).expect("it is pending").slot as u64, ahead % slots as u64);
        }
        let expected: Vec<(u64, u64)> = (1..=200).map(|ahead| (5 + ahead, ahead)).collect();
        assert_eq!(fired(&mut wheel, 205), expected);
    }
}

#[test]
#[should_panic(expected = "at least one slot")]
fn c19_no_slots_are_refused() {
    let _refused = HashedWheel::<()>::new(0, 0);
}

#[test]
#[should_panic(expected = "tick of a hashed wheel is at least 1")]
fn c19_a_tick_of_0_is_refused() {
    let _refused = HashedWheel::<()>::with_tick(0, 0, 8);
}

/// C20: an entry is late by less than a tick and never early. It is on time if the tick is 1 or the
/// deadline is a multiple of it.
#[test]
fn c20_lateness_is_less_than_a_tick_and_never_negative() {
    for tick in [1, 2, 10, 1_000] {
        for start in [0, 1, 999, 12_345] {
            let mut wheel = HashedWheel::with_tick(start, tick, 8);
            for deadline in start + 1..start + 2_500 {
                let handle = wheel.insert(deadline, deadline).expect("it is ahead");
                let rounded = wheel.deadline(handle).expect("it is pending");
                assert!(rounded >= deadline && rounded - deadline < tick && rounded.is_multiple_of(tick));
            }
            for now in start + 1..start + 2_500 + tick {
                for (rounded, deadline) in fired(&mut wheel, now) {
                    assert_eq!(rounded, now, "not a tick later than it could");
                    let lateness = now - deadline;
                    assert!(lateness < tick && (lateness == 0) == deadline.is_multiple_of(tick));
                }
            }
            assert_eq!(wheel.len(), 0);
        }
    }
    // A deadline that is rounded up beyond the end of time is refused.
    let mut wheel = HashedWheel::with_tick(0, 10, 8);
    let refused = wheel.insert(u64::MAX - 1, "late").expect_err("there is no such multiple");
    assert_eq!((refused.why, refused.value), (Refusal::TooFar, "late"));
}

/// C21: one jump over any number of turns fires in the order of deadlines. A loop over billions of
/// ticks would take too long.
#[test]
fn c21_a_jump_over_many_turns_fires_in_order_of_deadline() {
    for slots in SLOTS {
        for far in [100, 1 << 20, 1 << 40, u64::MAX - 1] {
            let mut wheel = HashedWheel::new(0, slots);
            let mut expected = vec![];
            // The deadlines go from far to near, with three entries for each.
            for (id, part) in (1..=300).zip((1..=100).rev().cycle()) {
                let deadline = far / 100 * part;
                wheel.insert(deadline, id).expect("it is ahead");
                expected.push((deadline, id));
            }
            expected.sort_unstable();
            assert_eq!(wheel.next_wake(), Some(far / 100));
            assert_eq!(fired(&mut wheel, far / 100 * 50), expected[..150]);
            assert_eq!(fired(&mut wheel, u64::MAX), expected[150..]);
            assert_eq!(wheel.now(), u64::MAX);
        }
    }
}

/// One entry a thousand turns ahead causes one wake, and not one for each visit of its slot.
#[test]
fn the_wake_passes_over_rounds() {
    let mut wheel = HashedWheel::new(0, 8);
    wheel.insert(8_003, "far").unwrap();
    assert_eq!(wheel.next_wake(), Some(8_003));
    wheel.insert(16_002, "farther, in an earlier slot").unwrap();
    assert_eq!(wheel.next_wake(), Some(8_003));
    let near = wheel.insert(7, "near, in a later slot").unwrap();
    assert_eq!(wheel.next_wake(), Some(7));
    wheel.cancel(near).unwrap();
    assert_eq!(wheel.next_wake(), Some(8_003));
    assert_eq!(fired(&mut wheel, 8_003), [(8_003, "far")]);
    assert_eq!(wheel.next_wake(), Some(16_002));
}
