//! Tests of [`WallGuard`]: which wall times it believes.

mod model;

use super::*;

const SECOND: i128 = 1_000_000_000;

fn at(mono_s: u64, boot_s: u64, wall_s: i128) -> Reading {
    let ns = |s: u64| s * 1_000_000_000;
    Reading { mono_ns: ns(mono_s), boot_ns: ns(boot_s), wall_ns: wall_s * SECOND, width_ns: 0 }
}

#[test]
fn ordinary_time_is_believed() {
    let mut guard = WallGuard::new(at(0, 0, 1_000));
    for s in 1..200 {
        assert_eq!(guard.observe(at(s, s, 1_000 + i128::from(s))), (1_000 + i128::from(s)) * SECOND);
    }
    assert_eq!((guard.steps(), guard.offset_ns()), (0, 0));
}

#[test]
fn each_change_is_told_once_and_in_order() {
    use ClockChange::{Believed, Doubted, GoneBack, Stepped};
    let mut guard = WallGuard::new(at(0, 0, 10_000));
    let mut seen = |s: u64, ahead_s: i128| {
        guard.observe(at(s, s, 10_000 + i128::from(s) + ahead_s));
        guard.take_changes().collect::<Vec<_>>()
    };
    assert_eq!(seen(1, 0), []);
    assert_eq!(seen(2, -60), [Stepped { by_ms: -60_000 }]);
    assert_eq!(seen(3, -60), [], "it stays there");
    assert_eq!(seen(4, 3_540), [Doubted { ahead_ms: 3_600_000 }]);
    assert_eq!(seen(5, 3_540), [], "it is still doubted");
    assert_eq!(seen(6, 0), [GoneBack { by_ms: 60_000 }], "back, and a little ahead of what was believed");
    assert_eq!(seen(7, 7_200), [Doubted { ahead_ms: 7_200_000 }]);
    assert_eq!(seen(8, 9_000), [Doubted { ahead_ms: 9_000_000 }], "it stepped again");
    assert_eq!(seen(67, 9_000), []);
    assert_eq!(seen(68, 9_000), [Believed { by_ms: 9_000_000 }]);
    assert_eq!(seen(69, 9_000), []);
    // Nothing takes the changes for a long time. Then the last changes are kept, and the oldest changes are lost.
    for s in 100..200 {
        guard.observe(at(s, s, 20_000 + i128::from(s) - 2 * i128::from(s)));
    }
    assert_eq!(guard.take_changes().count(), CHANGES_MAX);
}

#[test]
fn a_step_back_is_followed_at_once() {
    let mut guard = WallGuard::new(at(0, 0, 10_000));
    assert_eq!(guard.observe(at(1, 1, 6_400)), 6_400 * SECOND);
    assert_eq!(guard.steps(), 1);
    // This return is a step forward of more than five minutes, so it has to stand for a minute. The clock was seen at its first offset only
    // once, so a return to that offset is not believed at once.
    assert_eq!(guard.observe(at(2, 2, 10_002)), 6_401 * SECOND);
    assert_eq!(guard.observe(at(62, 62, 10_062)), 10_062 * SECOND);
}

#[test]
fn a_small_step_forward_is_believed_and_counted() {
    let mut guard = WallGuard::new(at(0, 0, 0));
    assert_eq!(guard.observe(at(1, 1, 301)), 301 * SECOND);
    assert_eq!(guard.steps(), 1);
}

#[test]
fn a_great_step_forward_has_to_stand_for_a_minute() {
    let mut guard = WallGuard::new(at(0, 0, 0));
    assert_eq!(guard.observe(at(1, 1, 302)), SECOND, "5 min and 1 s ahead");
    assert_eq!(guard.offset_ns(), 301 * SECOND);
    assert_eq!(guard.observe(at(60, 60, 361)), 60 * SECOND, "59 s later");
    assert_eq!(guard.observe(at(61, 61, 362)), 362 * SECOND, "60 s later");
    assert_eq!((guard.steps(), guard.offset_ns()), (1, 0));
}

#[test]
fn a_step_that_goes_on_stepping_is_not_believed() {
    let mut guard = WallGuard::new(at(0, 0, 0));
    for round in 1..=10_u64 {
        let wall = i128::from(round) * 1_000_000;
        assert_eq!(guard.observe(at(round * 30, round * 30, wall)), i128::from(round) * 30 * SECOND);
    }
}

#[test]
fn a_doubted_step_that_goes_away_leaves_nothing() {
    let mut guard = WallGuard::new(at(0, 0, 0));
    guard.observe(at(1, 1, 3_601));
    assert_eq!(guard.observe(at(2, 2, 2)), 2 * SECOND);
    assert_eq!(guard.offset_ns(), 0);
}

/// The story: the clock stepped back for a moment. Its return was a step forward of an hour and was doubted, so the server was a minute
/// late.
#[test]
fn a_glitch_is_over_when_it_is_over() {
    let mut guard = WallGuard::new(at(0, 0, 100_000));
    let mut now = 0;
    let mut believed = |offset_s: i128| {
        now += 1;
        guard.observe(at(now, now, 100_000 + i128::from(now) + offset_s))
            - (100_000 + i128::from(now)) * SECOND
    };
    for _ in 0..30 {
        assert_eq!(believed(0), 0);
    }
    // The clock steps back and returns several times: by different lengths, and with further steps before the return.
    for glitch in
        [vec![-3_600], vec![-3_600; 29], vec![-60, -7_200, -3_600], vec![-301, -86_400, -400, -90_000]]
    {
        for offset_s in glitch {
            assert!(believed(offset_s) < 0, "a step back is followed");
        }
        for _ in 0..3 {
            assert_eq!(believed(0), 0, "it is back where it was");
        }
    }
}

#[test]
fn a_return_may_be_behind_but_not_ahead_of_what_was_believed() {
    for (offset_s, is_believed) in [
        (0, true),
        (1, false),
        (60, false),
        (3_600, false),
        (-1, true),
        (-299, true),
        (-301, false),
        (-1_800, false),
    ] {
        let mut guard = WallGuard::new(at(0, 0, 100_000));
        guard.observe(at(60, 60, 100_060));
        guard.observe(at(61, 61, 100_061 - 3_600));
        let shown = 100_062 + offset_s;
        let believed = if is_believed { shown } else { 100_062 - 3_600 };
        assert_eq!(guard.observe(at(62, 62, shown)), believed * SECOND, "back at {offset_s} s");
    }
}

/// The clock of a computer was ten minutes ahead at the start, and was then set right. If the wrong time was believed for a short time
/// only, a return to it is believed for as short a time only.
#[test]
fn what_was_believed_for_a_short_time_is_forgotten_as_soon() {
    for (wrong_s, right_s, is_believed) in
        [(20, 19, true), (20, 22, false), (20, 3_000, false), (7_000, 3_500, true), (7_000, 3_700, false)]
    {
        let mut guard = WallGuard::new(at(0, 0, 100_600));
        guard.observe(at(wrong_s, wrong_s, 100_600 + i128::from(wrong_s)));
        guard.observe(at(wrong_s + 1, wrong_s + 1, 100_001 + i128::from(wrong_s)));
        let then = wrong_s + right_s;
        let believed = guard.observe(at(then, then, 100_600 + i128::from(then)));
        let ahead = (believed - (100_000 + i128::from(then)) * SECOND) / SECOND;
        assert_eq!(ahead, if is_believed { 600 } else { 0 }, "{wrong_s} s wrong, {right_s} s right");
    }
}

#[test]
fn a_machine_may_sleep_in_a_glitch() {
    let mut guard = WallGuard::new(at(0, 0, 100_000));
    guard.observe(at(2_000, 2_000, 102_000));
    guard.observe(at(2_001, 2_001, 102_001 - 3_600));
    assert_eq!(guard.observe(at(2_002, 3_002, 103_002 - 3_600)), (103_002 - 3_600) * SECOND);
    assert_eq!(guard.observe(at(2_003, 3_003, 103_003)), 103_003 * SECOND);
}

/// After a glitch, a doubted step has to stand for a whole minute again. The line before the step is still remembered.
#[test]
fn a_glitch_while_a_step_is_doubted() {
    let mut guard = WallGuard::new(at(0, 0, 0));
    guard.observe(at(30, 30, 30));
    assert_eq!(guard.observe(at(31, 31, 3_631)), 31 * SECOND);
    assert_eq!(guard.observe(at(60, 60, 3_660)), 60 * SECOND);
    assert_eq!(guard.observe(at(61, 61, -9_939)), -9_939 * SECOND, "a step back is followed");
    assert_eq!(guard.observe(at(62, 62, 3_662)), -9_938 * SECOND, "so much was never believed");
    assert_eq!(guard.observe(at(63, 63, 63)), 63 * SECOND, "this was");
    assert_eq!(guard.observe(at(64, 64, 3_664)), 64 * SECOND);
    assert_eq!(guard.observe(at(123, 123, 3_723)), 123 * SECOND);
    assert_eq!(guard.observe(at(124, 124, 3_724)), 3_724 * SECOND);
}

/// A clock that stands still falls behind little by little. Its return is believed at once, however often the guard reads the clocks.
#[test]
fn a_clock_that_stood_still_returns() {
    for looks_ms in [1, 100, 499, 501, 1_000] {
        let ms = |ms: u64, wall_ms: u64| Reading {
            mono_ns: ms * 1_000_000,
            boot_ns: ms * 1_000_000,
            wall_ns: i128::from(wall_ms) * 1_000_000,
            width_ns: 0,
        };
        let mut guard = WallGuard::new(ms(0, 0));
        guard.observe(ms(600_000, 600_000));
        let mut now = 600_000;
        while now < 1_000_000 {
            now += looks_ms;
            assert_eq!(guard.observe(ms(now, 600_000)), 600_000_000_000);
        }
        now += looks_ms;
        assert_eq!(guard.observe(ms(now, now)), i128::from(now) * 1_000_000, "looked at every {looks_ms} ms");
    }
}

/// The story: answers of the database took 0.8 s, and its clock was right. A narrow interval after a wide one was told as a step, and so was a
/// wide one after a narrow one.
#[test]
fn an_interval_that_becomes_narrow_or_wide_is_no_step() {
    let ms = |ms: u64| ms * 1_000_000;
    let mut guard = WallGuard::new(at(0, 0, 100_000));
    // The clock is always in the interval. How far its ends are away changes with the answers.
    for (s, before_ms, after_ms) in
        [(1, 800, 0), (2, 0, 0), (3, 5_000, 800), (4, 0, 5_000), (5, 1, 1), (6, 600_000, 0), (7, 0, 3)]
    {
        let exact = at(s, s, 100_000 + i128::from(s));
        let wall_ns = exact.wall_ns - i128::from(ms(before_ms));
        let reading = Reading { wall_ns, width_ns: ms(before_ms + after_ms), ..exact };
        assert_eq!(guard.observe(reading), wall_ns, "the lower end is believed");
        assert_eq!(guard.width_ns(), ms(before_ms + after_ms));
        assert_eq!(guard.take_changes().count(), 0, "{reading:?}");
    }
    assert_eq!(guard.steps(), 0);
}

/// A step of a clock that is known as an interval counts from the nearer ends.
#[test]
fn an_interval_apart_from_the_expected_one_is_a_step() {
    use ClockChange::{Doubted, GoneBack, Stepped};
    let wide = |s: u64, ahead_s: i128| Reading {
        width_ns: 2 * SECOND as u64,
        ..at(s, s, 100_000 + i128::from(s) + ahead_s)
    };
    let mut guard = WallGuard::new(wide(0, 0));
    let mut seen = |reading: Reading| {
        let believed_ns = guard.observe(reading) - (100_000 * SECOND + i128::from(reading.boot_ns));
        (guard.take_changes().collect::<Vec<_>>(), believed_ns / SECOND)
    };
    assert_eq!(seen(wide(100, 2)), (vec![], 2), "the intervals have an instant in common");
    assert_eq!(seen(wide(101, 0)), (vec![], 0));
    assert_eq!(seen(wide(102, 5)), (vec![Stepped { by_ms: 3_000 }], 5));
    assert_eq!(seen(wide(103, 0)), (vec![Stepped { by_ms: -3_000 }], 0), "a step back is followed");
    assert_eq!(
        seen(wide(104, 302)),
        (vec![Stepped { by_ms: 300_000 }], 302),
        "not more than the guard allows"
    );
    assert_eq!(seen(wide(105, 0)), (vec![Stepped { by_ms: -300_000 }], 0));
    assert_eq!(seen(wide(106, 303)), (vec![Doubted { ahead_ms: 301_000 }], 0));
    assert_eq!(seen(wide(107, 0)), (vec![GoneBack { by_ms: 0 }], 0));
    // A glitch of ten minutes. The clock returns to where it was, and is known exactly now.
    assert_eq!(seen(wide(108, -600)), (vec![Stepped { by_ms: -598_000 }], -600));
    assert_eq!(seen(at(109, 109, 100_111)), (vec![Stepped { by_ms: 600_000 }], 2), "it may have been there");
}

#[test]
fn a_suspend_is_no_step() {
    let mut guard = WallGuard::new(at(0, 0, 0));
    assert_eq!(guard.observe(at(1, 7_200, 7_200)), 7_200 * SECOND);
    assert_eq!(guard.steps(), 0);
}

#[test]
fn splitting_never_rounds_up() {
    assert_eq!(split(1_999_999).0.as_ms(), 1);
    assert_eq!(split(1_999_999).1, 999_999);
    assert_eq!(split(-5), (Timestamp::EPOCH, 0));
}

/// The note of a process that was written 50 s after the boot, when the wall clock showed 10,000 s.
const NOTED: Written = Written::SameBoot { boot_ns: 50_000_000_000, wall_ns: 10_000 * SECOND, held_ns: 0 };

/// The story: the clock was two hours ahead, and the running server doubted that. It was killed and started again, and fired everything an hour early.
#[test]
fn a_start_on_the_same_boot_doubts_as_the_process_before() {
    let mut guard = WallGuard::going_on(at(7, 150, 17_300), NOTED);
    let changes: Vec<_> = guard.take_changes().collect();
    assert_eq!(changes, [ClockChange::Doubted { ahead_ms: 7_200_000 }]);
    assert_eq!((guard.observe(at(8, 151, 17_301)), guard.width_ns()), (10_101 * SECOND, 0));
    assert_eq!(guard.to_write(), (151_000_000_000, 10_101 * SECOND, 0), "a further start doubts, too");
    assert_eq!(guard.observe(at(66, 209, 17_359)), 10_159 * SECOND);
    assert_eq!(guard.observe(at(67, 210, 17_360)), 17_360 * SECOND, "it has stood for a minute");
    // The clock is corrected before that.
    let mut guard = WallGuard::going_on(at(7, 150, 17_300), NOTED);
    assert_eq!(guard.observe(at(8, 151, 10_101)), 10_101 * SECOND);
    assert_eq!(guard.take_changes().last(), Some(ClockChange::GoneBack { by_ms: 0 }));
}

#[test]
fn a_start_on_the_same_boot_follows_all_other_clocks() {
    for (wall_s, change) in [
        (10_100, None),
        (10_400, None),
        (9_800, None),
        (6_500, Some(ClockChange::Stepped { by_ms: -3_600_000 })),
    ] {
        let mut guard = WallGuard::going_on(at(7, 150, wall_s), NOTED);
        assert_eq!(guard.observe(at(7, 150, wall_s)), wall_s * SECOND, "{wall_s}");
        assert_eq!(guard.take_changes().next(), change, "{wall_s}");
    }
}

/// A process of an earlier boot wrote down 10,000 s.
const BEFORE: Written = Written::OtherBoot { wall_ns: 10_000 * SECOND };

/// The seconds by which what falls due is behind the believed clock.
fn held_s(guard: &WallGuard) -> u64 {
    guard.held_ns() / SECOND as u64
}

/// Nothing tells a clock that was set wrong from a machine that was off. So the clock is believed, and what falls due is held back for a minute.
#[test]
fn a_start_on_another_boot_holds_back_what_fell_due_if_its_clock_is_far_ahead() {
    let ahead_of = Timestamp::from_ms(10_000_000).expect("after 1970");
    for (wall_s, told) in [
        (40_000, Some(ClockChange::AheadAtStart { ahead_ms: 30_000_000, written: ahead_of })),
        (10_300, None),
        (9_000, None),
        (1, None),
    ] {
        let held = if told.is_some() { 30_000 } else { 0 };
        let mut guard = WallGuard::going_on(at(7, 7, wall_s), BEFORE);
        let offset = guard.offset_ns() / SECOND;
        assert_eq!((held_s(&guard), offset), (held, held.into()), "from the first reading");
        assert_eq!((guard.observe(at(7, 7, wall_s)), guard.steps()), (wall_s * SECOND, 0));
        assert_eq!(guard.take_changes().next(), told, "{wall_s}");
        assert_eq!(guard.ahead_at_start_ns(), (wall_s - 10_000) * SECOND);
        assert_eq!(guard.to_write(), (7_000_000_000, wall_s * SECOND, held * SECOND as u64));
        assert_eq!(guard.observe(at(66, 66, wall_s + 59)), (wall_s + 59) * SECOND);
        assert_eq!(held_s(&guard), held);
        guard.observe(at(67, 67, wall_s + 60));
        assert_eq!((held_s(&guard), guard.offset_ns()), (0, 0), "it has stood for a minute");
        let believed = told.map(|_| ClockChange::Believed { by_ms: 30_000_000 });
        assert_eq!(guard.take_changes().next(), believed);
    }
}

#[test]
fn a_hold_ends_when_the_clock_is_corrected_and_begins_anew_when_it_steps() {
    let mut guard = WallGuard::going_on(at(0, 0, 17_200), BEFORE);
    guard.observe(at(50, 50, 17_250));
    // The clock is set, but is still far ahead.
    guard.observe(at(51, 51, 13_651));
    assert_eq!(held_s(&guard), 3_600);
    guard.observe(at(110, 110, 13_710));
    assert_eq!(held_s(&guard), 3_600);
    guard.take_changes().for_each(drop);
    guard.observe(at(110, 110, 10_130));
    let changes: Vec<_> = guard.take_changes().collect();
    assert_eq!(
        changes,
        [ClockChange::Stepped { by_ms: -3_580_000 }, ClockChange::GoneBack { by_ms: 20_000 }]
    );
    assert_eq!(held_s(&guard), 0);
}

/// A step forward is doubted as ever. What falls due is held back until neither the step nor the start is doubted.
#[test]
fn a_step_forward_during_a_hold_is_doubted_and_holds_on() {
    let mut guard = WallGuard::going_on(at(0, 0, 17_200), BEFORE);
    guard.observe(at(30, 30, 99_999));
    assert_eq!((guard.observe(at(89, 89, 99_999 + 59)), held_s(&guard)), (17_289 * SECOND, 7_200));
    guard.observe(at(90, 90, 99_999 + 60));
    assert_eq!(guard.to_write().1, (99_999 + 60) * SECOND, "the step has stood for a minute");
    assert_eq!(held_s(&guard), 0);
}

#[test]
fn a_further_start_on_the_same_boot_holds_back_the_same() {
    let mut guard = WallGuard::going_on(at(0, 100, 17_200), BEFORE);
    guard.observe(at(30, 130, 17_230));
    let (boot_ns, wall_ns, held_ns) = guard.to_write();
    let mut guard = WallGuard::going_on(at(5, 140, 17_240), Written::SameBoot { boot_ns, wall_ns, held_ns });
    assert_eq!((guard.take_changes().count(), held_s(&guard)), (0, 7_200));
    guard.observe(at(64, 199, 17_299));
    assert_eq!(held_s(&guard), 7_200);
    guard.observe(at(65, 200, 17_300));
    assert_eq!(held_s(&guard), 0);
}
