//! The hierarchical wheel: where entries are, when they cascade, and what that costs. C1 to C16.

use tickwheel_core::classic::{HierarchicalWheel, Placement};
use tickwheel_core::{Handle, Refusal, RescheduleError, TimerQueue};

/// Starts at which the first slot of every level begins too, up to level 4.
const ALIGNED: [u64; 4] = [0, 27, 81, 27_000_000_000];

/// The wheel of the worked table: u = 1, n = 3.
fn wheel(start: u64) -> HierarchicalWheel<u64> {
    HierarchicalWheel::new(start, 1, 3)
}

/// Inserts a value that is its own deadline.
fn insert(wheel: &mut HierarchicalWheel<u64>, deadline: u64) -> Handle {
    wheel.insert(deadline, deadline).expect("it is ahead and in reach")
}

/// Inserts a deadline and returns where it is: level, slot, and expiry of the bucket.
fn filed(wheel: &mut HierarchicalWheel<u64>, deadline: u64) -> (usize, usize, u64) {
    let handle = insert(wheel, deadline);
    let Placement { level, slot, bucket_expiry } = wheel.look(handle).expect("it is pending");
    (level, slot, bucket_expiry)
}

fn fired<T>(wheel: &mut HierarchicalWheel<T>, now: u64) -> Vec<(u64, T)> {
    let mut list = vec![];
    let count = wheel.advance(now, &mut |deadline, value| list.push((deadline, value)));
    assert_eq!(count, list.len());
    list
}

#[test]
fn c1_the_first_turn_is_on_level_1_and_makes_no_other() {
    for start in [0, 1, 2, 9, 10, 1_000_003] {
        let mut wheel = wheel(start);
        let refused = wheel.insert(start, start).expect_err("it is now");
        assert_eq!((refused.why, refused.value), (Refusal::Elapsed, start));
        assert_eq!((wheel.len(), wheel.buckets().count()), (0, 0));
        assert_eq!(filed(&mut wheel, start + 2), (1, 2, start + 2));
        assert_eq!(filed(&mut wheel, start + 1), (1, 1, start + 1));
        assert_eq!((wheel.len(), wheel.levels()), (2, 1));
        assert_eq!(wheel.buckets().collect::<Vec<_>>(), [(start + 1, 1), (start + 2, 1)]);
    }
}

#[test]
fn c2_the_second_turn_is_on_level_2_in_buckets_of_three() {
    for c in ALIGNED {
        for order in [[3, 4, 5, 6, 7, 8], [8, 7, 6, 5, 4, 3]] {
            let mut wheel = wheel(c);
            insert(&mut wheel, c + 2);
            assert_eq!(wheel.levels(), 1);
            for ahead in order {
                let slot = ahead / 3;
                assert_eq!(filed(&mut wheel, c + ahead), (2, slot as usize, c + slot * 3));
                assert_eq!(wheel.levels(), 2, "the first of them makes level 2");
            }
            assert_eq!(filed(&mut wheel, c + 9).0, 3);
        }
    }
}

#[test]
fn c2_from_another_start_level_2_begins_before_it() {
    // Level 2 starts at 9, because 10 is rounded down to its tick.
    let mut wheel = wheel(10);
    assert_eq!(filed(&mut wheel, 12), (1, 2, 12));
    assert_eq!(filed(&mut wheel, 13), (2, 1, 12));
    assert_eq!(filed(&mut wheel, 14), (2, 1, 12));
    assert_eq!(filed(&mut wheel, 15), (2, 2, 15));
    assert_eq!(filed(&mut wheel, 17), (2, 2, 15));
    assert_eq!((wheel.clock(1), wheel.clock(2), wheel.clock(3)), (Some(10), Some(9), None));
    // Level 2 reaches up to 17 only, eight ahead.
    assert_eq!(filed(&mut wheel, 18), (3, 1, 18));
    assert_eq!(wheel.clock(3), Some(9));
    for now in 11..=18 {
        let expected: Vec<u64> =
            [12, 13, 14, 15, 17, 18].into_iter().filter(|&deadline| deadline == now).collect();
        let list: Vec<u64> = fired(&mut wheel, now).into_iter().map(|(deadline, _)| deadline).collect();
        assert_eq!(list, expected);
    }
}

#[test]
fn c3_the_third_turn_is_on_level_3_and_27_makes_level_4() {
    for c in ALIGNED {
        let mut wheel = wheel(c);
        for ahead in (9..27).rev() {
            let slot = ahead / 9;
            assert_eq!(filed(&mut wheel, c + ahead), (3, slot as usize, c + slot * 9));
        }
        assert_eq!(wheel.levels(), 3);
        assert_eq!(filed(&mut wheel, c + 27), (4, 1, c + 27));
        assert_eq!(wheel.levels(), 4);
        assert_eq!(filed(&mut wheel, c + 80), (4, 2, c + 54));
        assert_eq!(filed(&mut wheel, c + 81), (5, 1, c + 81 - c % 81));
    }
}

/// C4: an entry is taken out once from each bucket that it has been in, and the last time it fires.
/// For the deadlines 1 to 27 the sum is 55.
#[test]
fn c4_an_ideal_clock_fires_each_on_time_at_the_stated_work() {
    for (last, work) in [(2, 2), (3, 3), (5, 7), (8, 12), (26, 54), (27, 55), (28, 57)] {
        for c in [0, 81, 81_000] {
            for reversed in [false, true] {
                let mut wheel = wheel(c);
                assert!(wheel.insert(c, c).is_err());
                for ahead in 1..=last {
                    insert(&mut wheel, c + if reversed { last + 1 - ahead } else { ahead });
                }
                for now in c + 1..=c + last {
                    assert_eq!(fired(&mut wheel, now), [(now, now)]);
                }
                assert_eq!(wheel.taken_out(), work, "1 to {last} from {c}");
            }
        }
    }
    // In one jump the work is the same, and there are 27 buckets, one for each tick.
    let mut one_jump = wheel(0);
    let mut stops = 0;
    let mut led = wheel(0);
    for deadline in 1..=27 {
        insert(&mut one_jump, deadline);
        insert(&mut led, deadline);
    }
    assert_eq!(fired(&mut one_jump, 1_000).len(), 27);
    while let Some(wake) = led.next_wake() {
        assert_eq!(fired(&mut led, wake).len(), 1);
        stops += 1;
    }
    assert_eq!((one_jump.taken_out(), led.taken_out(), stops), (55, 55, 27));
}

#[test]
fn c5_one_tick_later_slot_0_of_level_1_is_three_ahead() {
    for c in ALIGNED {
        let mut wheel = wheel(c);
        insert(&mut wheel, c + 26);
        assert_eq!(fired(&mut wheel, c + 1), []);
        assert_eq!(filed(&mut wheel, c + 3), (1, 0, c + 3));
        assert_eq!(filed(&mut wheel, c + 4), (2, 1, c + 3));
        assert_eq!(fired(&mut wheel, c + 2), []);
        assert_eq!(filed(&mut wheel, c + 4), (1, 1, c + 4));
        assert_eq!([1, 2, 3].map(|level| wheel.clock(level)), [Some(c + 2), Some(c), Some(c)]);
        assert_eq!(wheel.levels(), 3);
        // The entry of level 2 moves down when its bucket starts.
        assert_eq!(fired(&mut wheel, c + 3), [(c + 3, c + 3)]);
        assert_eq!([1, 2, 3].map(|level| wheel.clock(level)), [Some(c + 3), Some(c + 3), Some(c)]);
        assert_eq!(fired(&mut wheel, c + 4).len(), 2);
    }
}

#[test]
fn c6_turns_are_powers_of_the_size() {
    let mut twenty = HierarchicalWheel::new(0, 1, 20);
    assert_eq!(filed(&mut twenty, 200), (2, 10, 200));
    for (u, n) in [(1, 20), (1, 3), (1, 2), (5, 20), (7, 256)] {
        let mut turn = u * n as u64;
        for level in 1..=6 {
            let mut wheel = HierarchicalWheel::new(0, u, n);
            assert_eq!(filed(&mut wheel, turn - u).0, level, "the last of the turn {turn}");
            assert_eq!(wheel.levels(), level);
            assert_eq!(filed(&mut wheel, turn), (level + 1, 1, turn));
            turn *= n as u64;
        }
    }
    let turns: Vec<u64> = (1..=6).map(|level| 20_u64.pow(level)).collect();
    assert_eq!(turns, [20, 400, 8_000, 160_000, 3_200_000, 64_000_000]);
}

/// The example that some texts get wrong: at clock 1 the turn is 1 to 20, and 21 is not in it.
#[test]
fn c7_a_level_covers_less_than_a_turn_after_its_clock() {
    let mut twenty = HierarchicalWheel::new(0, 1, 20);
    assert_eq!(fired(&mut twenty, 1), []);
    assert_eq!(filed(&mut twenty, 20), (1, 0, 20));
    assert_eq!(filed(&mut twenty, 21), (2, 1, 20));

    for (u, n) in [(1, 3), (1, 20), (10, 3), (7, 5)] {
        let turn = u * n as u64;
        for now in 0..3 * turn {
            let mut wheel = HierarchicalWheel::new(0, u, n);
            assert_eq!(fired(&mut wheel, now), []);
            let clock = wheel.clock(1).expect("level 1 is always there");
            assert_eq!(clock, now / u * u);
            assert_eq!(filed(&mut wheel, clock + u).0, 1);
            assert_eq!(filed(&mut wheel, clock + turn - u).0, 1);
            assert_eq!(wheel.levels(), 1);
            // If the tick is more than 1, the last deadline before the end of the turn is rounded
            // up to this end.
            let (level, ..) = filed(&mut wheel, clock + turn - 1);
            assert_eq!(level, if u == 1 { 1 } else { 2 });
            assert_eq!(filed(&mut wheel, clock + turn).0, 2);
        }
    }
}

#[test]
fn c8_a_bucket_is_queued_once_and_again_when_it_is_used_again() {
    let mut wheel = wheel(0);
    let mut handles = vec![];
    for turn in 0..4 {
        // The bucket is in slot 1 of level 2, which begins three ticks after each turn of level 2.
        let expiry = turn * 9 + 3;
        for (count, deadline) in (1..).zip([expiry + 1, expiry, expiry + 2, expiry]) {
            handles.push(insert(&mut wheel, deadline));
            assert_eq!(wheel.len(), count);
            let placement = Placement { level: 2, slot: 1, bucket_expiry: expiry };
            assert!(handles.iter().all(|&handle| wheel.look(handle).is_none_or(|p| p == placement)));
            assert_eq!(wheel.buckets().collect::<Vec<_>>(), [(expiry, 2)], "queued once");
        }
        // A bucket that a cancel empties leaves the queue. It comes back with the next entry.
        let alone = insert(&mut wheel, expiry + 3);
        assert_eq!(wheel.buckets().count(), 2);
        assert!(wheel.cancel(alone).is_some());
        assert_eq!(wheel.buckets().collect::<Vec<_>>(), [(expiry, 2)]);

        assert_eq!(fired(&mut wheel, expiry).len(), 2);
        assert_eq!(wheel.buckets().collect::<Vec<_>>(), [(expiry + 1, 1), (expiry + 2, 1)]);
        assert_eq!(fired(&mut wheel, turn * 9 + 9).len(), 2);
        assert_eq!(wheel.buckets().count(), 0);
    }
}

#[test]
fn c9_one_advance_drains_every_bucket_that_is_due() {
    for start in [0, 1, 10, 26] {
        let mut wheel = wheel(start);
        let deadlines: Vec<u64> = (1..=200).map(|ahead| start + ahead).collect();
        for &deadline in deadlines.iter().rev() {
            insert(&mut wheel, deadline);
        }
        let expected: Vec<(u64, u64)> = deadlines.iter().map(|&deadline| (deadline, deadline)).collect();
        assert_eq!(fired(&mut wheel, start + 150), expected[..150]);
        assert_eq!(wheel.len(), 50);
        assert!(wheel.buckets().all(|(expiry, _)| expiry > start + 150));
        assert_eq!(fired(&mut wheel, u64::MAX), expected[150..]);
    }
}

#[test]
fn c10_less_than_a_tick_changes_nothing_and_clocks_never_go_back() {
    for start in [0, 7, 30, 95] {
        let mut wheel = HierarchicalWheel::new(start, 10, 3);
        for ahead in [1, 35, 120] {
            insert(&mut wheel, start + ahead);
        }
        let clock = wheel.clock(1).expect("level 1 is always there");
        let before: Vec<_> = wheel.buckets().collect();
        for now in start..clock + 10 {
            assert_eq!(fired(&mut wheel, now), []);
            assert_eq!(wheel.now(), now);
            assert_eq!(wheel.buckets().collect::<Vec<_>>(), before);
            assert_eq!((wheel.clock(1), wheel.taken_out()), (Some(clock), 0));
        }
        let mut clocks = vec![0; wheel.levels()];
        let mut tick = 10;
        assert_eq!(fired(&mut wheel, clock + 10).len(), 1);
        for now in (clock + 10..clock + 200).chain([0, clock]) {
            wheel.advance(now, &mut |_, _| ());
            for (level, last) in (1..).zip(&mut clocks) {
                let clock = wheel.clock(level).expect("it was made");
                assert!(clock >= *last && clock.is_multiple_of(tick) && wheel.now() - clock < tick);
                *last = clock;
                tick *= 3;
            }
            tick = 10;
        }
    }
    assert_eq!(wheel(0).clock(0), None);
    assert_eq!(wheel(0).clock(2), None);
}

#[test]
fn c11_the_count_is_of_what_fired_not_of_what_moved_down() {
    let mut wheel = wheel(0);
    for deadline in [4, 5, 10, 13] {
        insert(&mut wheel, deadline);
    }
    for (now, count, taken_out) in
        [(2, 0, 0), (3, 0, 2), (4, 1, 3), (8, 1, 4), (9, 0, 6), (12, 1, 8), (13, 1, 9)]
    {
        assert_eq!(wheel.advance(now, &mut |_, _| ()), count, "advance to {now}");
        assert_eq!(wheel.taken_out(), taken_out, "advance to {now}");
    }
}

#[test]
fn c12_a_deadline_is_rounded_up_to_the_tick() {
    let mut wheel = HierarchicalWheel::new(0, 10, 3);
    let deadlines = [5, 9, 10, 15, 19, 35, 95, 1, 11, 20, 21];
    for deadline in deadlines {
        let handle = insert(&mut wheel, deadline);
        assert_eq!(wheel.deadline(handle), Some(deadline.div_ceil(10) * 10));
    }
    let mut list = vec![];
    for now in 1..=100 {
        for (deadline, asked) in fired(&mut wheel, now) {
            assert_eq!(deadline, now, "what fires tells its rounded deadline");
            assert!(now >= asked && now - asked < 10, "{asked} at {now}");
            list.push((asked, now));
        }
    }
    let expected = [
        (5, 10),
        (9, 10),
        (10, 10),
        (1, 10), // in order of insertion: it is the same deadline now
        (15, 20),
        (19, 20),
        (11, 20),
        (20, 20),
        (21, 30),
        (35, 40),
        (95, 100),
    ];
    assert_eq!(list, expected);

    // The start is inside a tick. Whether a deadline has elapsed is decided by the requested
    // deadline, before rounding.
    let mut wheel = HierarchicalWheel::new(7, 10, 3);
    for (deadline, why) in [(5, Refusal::Elapsed), (7, Refusal::Elapsed), (u64::MAX - 1, Refusal::TooFar)] {
        let refused = wheel.insert(deadline, deadline).expect_err("rounded, it is no deadline");
        assert_eq!(refused.why, why);
    }
    let handle = insert(&mut wheel, 8);
    assert_eq!(wheel.next_wake(), Some(10));
    assert_eq!(wheel.reschedule(handle, 7), Err(RescheduleError::Elapsed));
    assert_eq!(wheel.reschedule(handle, u64::MAX - 1), Err(RescheduleError::TooFar));
    let handle = wheel.reschedule(handle, 11).expect("it is pending");
    assert_eq!(wheel.deadline(handle), Some(20));
    assert_eq!(fired(&mut wheel, 19), []);
    assert_eq!(fired(&mut wheel, 20), [(20, 8)]);
}

#[test]
fn c13_equal_deadlines_from_different_levels_fire_in_order_of_insertion() {
    for start in [0, 1, 5, 26, 1_000] {
        for distance in [9, 10, 13, 26, 27, 30, 100] {
            let meet = start + distance;
            let mut wheel = wheel(start);
            let mut levels = vec![];
            for now in start..meet {
                assert_eq!(fired(&mut wheel, now), []);
                let handle = wheel.insert(meet, now).expect("it is ahead");
                levels.push(wheel.look(handle).expect("it is pending").level);
            }
            assert!(levels[0] >= 3 && levels[levels.len() - 1] == 1, "{levels:?}");
            let expected: Vec<(u64, u64)> = (start..meet).map(|id| (meet, id)).collect();
            assert_eq!(fired(&mut wheel, meet), expected);
        }
    }
    // Buckets of three levels that start at the same time. The first entry was inserted on the
    // coarsest level.
    let mut wheel = wheel(0);
    let mut handles = vec![];
    for (id, now) in [0, 3, 7].into_iter().enumerate() {
        assert_eq!(fired(&mut wheel, now), []);
        handles.push(wheel.insert(9, id as u64).expect("it is ahead"));
    }
    assert_eq!(wheel.buckets().collect::<Vec<_>>(), [(9, 1), (9, 2), (9, 3)]);
    // The first entry comes to level 1 after the last one, and still fires before it.
    wheel.reschedule(handles[0], 8).expect("it is pending");
    wheel.reschedule(handles[0], 9).expect("it is pending");
    assert_eq!(wheel.buckets().collect::<Vec<_>>(), [(9, 1), (9, 2)]);
    assert_eq!(fired(&mut wheel, 8), []);
    assert_eq!(fired(&mut wheel, 9), [(9, 0), (9, 1), (9, 2)]);
}

#[test]
fn c14_levels_end_where_a_turn_no_longer_fits() {
    const LAST: u64 = u64::MAX - 1;
    for (u, n, levels) in [(1, 2, 64), (1, 3, 41), (1, 256, 8), (1, 65_536, 4), (1 << 63, 2, 1), (3, 2, 63)] {
        for start in [0, 1, u64::MAX / 2, LAST - 1_000, LAST - 2] {
            let mut wheel = HierarchicalWheel::new(start, u, n);
            let last = LAST / u * u;
            if last <= start {
                continue;
            }
            let handle = insert(&mut wheel, last);
            let placement = wheel.look(handle).expect("it is pending");
            assert!(placement.bucket_expiry <= last && placement.slot < n, "{placement:?}");
            assert!(wheel.levels() <= levels, "{} levels of {n}", wheel.levels());
            if start == 0 {
                assert_eq!(wheel.levels(), levels);
            }
            assert_eq!(fired(&mut wheel, last - 1), []);
            assert_eq!(fired(&mut wheel, last), [(last, last)]);
        }
    }
    // There may be more given levels than time needs.
    let mut wheel = HierarchicalWheel::with_levels(0, 1 << 40, &[1 << 10; 5]);
    let last = LAST >> 40 << 40;
    assert_eq!(filed(&mut wheel, last).0, 3);
    assert_eq!(wheel.clock(5), Some(0));
    assert_eq!(fired(&mut wheel, u64::MAX), [(last, last)]);
}

#[test]
fn c15_an_idle_past_makes_no_level_and_no_cascade() {
    for exponent in 0..63 {
        let mut wheel = wheel(0);
        assert_eq!(fired(&mut wheel, 1 << exponent), []);
        assert_eq!(wheel.now(), 1 << exponent);
        assert_eq!(wheel.clock(1), Some(1 << exponent));
        assert_eq!(filed(&mut wheel, (1 << exponent) + 2).0, 1);
        assert_eq!(wheel.next_wake(), Some((1 << exponent) + 2));
        assert_eq!(fired(&mut wheel, (1 << exponent) + 2).len(), 1);
        assert_eq!((wheel.levels(), wheel.taken_out()), (1, 1));
    }
    // Also while something far is pending.
    let mut wheel = wheel(0);
    insert(&mut wheel, 1 << 50);
    let levels = wheel.levels();
    assert_eq!(fired(&mut wheel, (1 << 30) + 1), []);
    let taken_out = wheel.taken_out();
    assert_eq!(filed(&mut wheel, (1 << 30) + 3), (1, ((1 << 30) + 3) % 3, (1 << 30) + 3));
    assert_eq!(fired(&mut wheel, (1 << 30) + 3).len(), 1);
    assert_eq!((wheel.levels(), wheel.taken_out()), (levels, taken_out + 1));
}

#[test]
fn c16_len_counts_what_is_pending_on_all_levels() {
    let mut wheel = wheel(0);
    let handles: Vec<Handle> = (1..=100).map(|deadline| insert(&mut wheel, deadline)).collect();
    assert_eq!((wheel.len(), wheel.levels()), (100, 5));
    assert!(wheel.cancel(handles[99]).is_some());
    assert!(wheel.cancel(handles[0]).is_some());
    assert!(wheel.cancel(handles[0]).is_none());
    assert_eq!(wheel.len(), 98);
    wheel.reschedule(handles[1], 99).expect("it is pending");
    assert_eq!(wheel.len(), 98);
    assert_eq!(fired(&mut wheel, 50).len(), 48);
    assert_eq!(wheel.len(), 50);
    assert_eq!(fired(&mut wheel, 100).len(), 50);
    assert_eq!((wheel.len(), wheel.next_wake(), wheel.buckets().count()), (0, None, 0));
}

/// A calendar of 60 seconds, 60 minutes, 24 hours and 30 days. The deadlines that it covers depend
/// on the time of day. A deadline that it does not cover is refused, and not filed a turn early.
#[test]
fn given_levels_refuse_what_is_beyond_the_last_turn() {
    const DAY: u64 = 24 * 60 * 60;
    for start in [0, 1, DAY - 1, DAY, 19_000 * DAY + 12_345] {
        let mut calendar = HierarchicalWheel::with_levels(start, 1, &[60, 60, 24, 30]);
        assert_eq!(calendar.levels(), 4);
        let end = start / DAY * DAY + 30 * DAY;
        let (level, slot, bucket_expiry) = filed(&mut calendar, end - 1);
        assert_eq!((level, slot, bucket_expiry), (4, 29, end - DAY));
        let handle = insert(&mut calendar, start + 1);
        for deadline in [end, end + 1, end + 30 * DAY, u64::MAX - 1, u64::MAX] {
            let refused = calendar.insert(deadline, deadline).expect_err("it is beyond the last turn");
            assert_eq!((refused.why, refused.value), (Refusal::TooFar, deadline));
            assert_eq!(calendar.reschedule(handle, deadline), Err(RescheduleError::TooFar));
            assert_eq!(calendar.deadline(handle), Some(start + 1));
        }
        assert_eq!((calendar.levels(), calendar.len()), (4, 2));
        // At midnight one more day is covered.
        assert_eq!(fired(&mut calendar, end - 29 * DAY - 1).len(), usize::from(start + 1 < end - 29 * DAY));
        assert!(calendar.insert(end, end).is_err());
        calendar.advance(end - 29 * DAY, &mut |_, _| ());
        assert_eq!(filed(&mut calendar, end), (4, 0, end));
    }
}

/// A bucket is taken out at its start and not at its end, so no entry in it is late.
#[test]
fn a_bucket_is_taken_out_at_its_start() {
    let mut wheel = HierarchicalWheel::new(0, 1, 20);
    for deadline in 200..220 {
        assert_eq!(filed(&mut wheel, deadline), (2, 10, 200));
    }
    assert_eq!(wheel.next_wake(), Some(200));
    for now in 200..220 {
        assert_eq!(fired(&mut wheel, now), [(now, now)]);
        assert_eq!(wheel.next_wake(), (now < 219).then_some(now + 1));
    }
    assert_eq!(wheel.taken_out(), 1 + 19 * 2);
}

/// A clock that is driven by `next_wake` stops once for each level that an entry is on.
#[test]
fn an_entry_costs_one_stop_for_each_level() {
    for (start, deadline, stops) in [(0, 26, vec![18, 24, 26]), (0, 27, vec![27]), (10, 17, vec![15, 17])] {
        let mut wheel = wheel(start);
        insert(&mut wheel, deadline);
        let mut followed = vec![];
        while let Some(wake) = wheel.next_wake() {
            followed.push(wake);
            wheel.advance(wake, &mut |_, _| ());
        }
        assert_eq!(followed, stops);
    }
}
