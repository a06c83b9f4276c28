//! Tests of [`DatabaseClock`]: the clock of the database is always in the interval.

use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

fn at(seconds: i128) -> i128 {
    seconds * i128::from(SECOND)
}

fn ms(ms: i128) -> i128 {
    ms * i128::from(MS)
}

/// An answer that was on its way for `trip_ns` in all.
fn answer(wall_ns: i128, trip_ns: u64, arrived_ns: u64) -> ClockAnswer {
    ClockAnswer { wall_ns, sent_ns: arrived_ns - trip_ns, arrived_ns }
}

#[test]
fn the_clock_is_between_the_answer_and_the_answer_plus_its_round_trip() {
    let mut clock = DatabaseClock::default();
    assert_eq!(clock.span(0), None);
    clock.note(answer(at(1_000), SECOND, 5 * SECOND));
    let after_1_s = ms(1_000) + 200_000 + ROUNDING_NS;
    assert_eq!(
        clock.span(5 * SECOND),
        Some(WallSpan { from_ns: at(1_000), to_ns: at(1_000) + after_1_s }),
        "200 parts in a million of the round trip"
    );
    assert_eq!(
        clock.span(15 * SECOND),
        Some(WallSpan { from_ns: at(1_010) - ms(2), to_ns: at(1_010) + after_1_s + ms(2) }),
        "200 parts in a million of 10 s"
    );
    assert_eq!(
        clock.span(5 * SECOND + 1),
        Some(WallSpan { from_ns: at(1_000), to_ns: at(1_000) + after_1_s + 2 }),
        "the drift is rounded up"
    );
}

/// The story: answers took 0.8 s. An answer that was behind by more than half a second was taken for a clock that was set back, so the
/// believed time jumped to and fro, and delays ended early.
#[test]
fn a_slow_answer_excludes_nothing() {
    // At 106 s on the boot-time clock, the clock of the database shows 1,001 s.
    for late_ms in [1_u32, 500, 501, 800, 5_000, 60_000] {
        let mut clock = DatabaseClock::default();
        clock.note(answer(at(1_000), MS, 105 * SECOND));
        let known = clock.span(106 * SECOND).expect("there was an answer");
        // The way back takes long: the answer is as much behind as it was late.
        let late = answer(at(1_001) - ms(late_ms.into()), u64::from(late_ms) * MS, 106 * SECOND);
        clock.note(late);
        let now = clock.span(106 * SECOND).expect("there was an answer");
        assert_eq!(now.from_ns, known.from_ns, "{late_ms} ms late");
        assert!(now.to_ns >= at(1_001) && now.to_ns <= known.to_ns, "{late_ms} ms late: {now:?}");
        // The way there takes long.
        clock.note(ClockAnswer { wall_ns: at(1_001), ..late });
        let there = clock.span(106 * SECOND).expect("there was an answer");
        assert_eq!((there.from_ns, there.to_ns), (at(1_001), now.to_ns), "{late_ms} ms late");
    }
}

#[test]
fn one_quick_answer_makes_the_interval_narrow() {
    let mut clock = DatabaseClock::default();
    clock.note(answer(at(1_000), 2 * SECOND, 5 * SECOND));
    assert!(clock.span(6 * SECOND).is_some_and(|span| span.width_ns() > 2 * SECOND));
    clock.note(answer(at(1_002), MS, 6 * SECOND));
    let narrow = clock.span(6 * SECOND).expect("there was an answer");
    assert_eq!(narrow.from_ns, at(1_002));
    assert!(narrow.width_ns() < 2 * MS, "{narrow:?}");
    clock.note(answer(at(1_003) - ms(900), SECOND, 7 * SECOND));
    assert!(clock.span(7 * SECOND).is_some_and(|span| span.width_ns() < 2 * MS), "it stays narrow");
}

#[test]
fn a_clock_that_was_set_is_followed() {
    let mut clock = DatabaseClock::default();
    clock.note(answer(at(1_000), MS, 5 * SECOND));
    // Ten milliseconds are enough, where the answers are quick.
    for (set_ns, told) in [(at(400), "back"), (at(400) - ms(10), "back a little"), (at(1_002), "forward")] {
        let set = answer(set_ns, MS, 6 * SECOND);
        clock.note(set);
        assert_eq!(clock.span(6 * SECOND), Some(span_of(set)), "{told}");
    }
}

#[test]
fn the_clock_of_another_machine_counts_although_it_is_a_little_behind() {
    let mut clock = DatabaseClock::default();
    clock.note(answer(at(1_000), SECOND, 5 * SECOND));
    let other = answer(at(1_001) - ms(400), 2 * SECOND, 6 * SECOND);
    clock.begin(other);
    assert_eq!(clock.span(6 * SECOND), Some(span_of(other)));
}

/// One heartbeat of the model: the time before it, how long the question and the answer are on their way (true ns), and the pace of the boot-time
/// clock meanwhile (parts in a million).
#[derive(Clone, Debug)]
struct Heartbeat {
    before_ns: u64,
    there_ns: u64,
    back_ns: u64,
    fast_ppm: i128,
    /// The clock of the database is set by this much before the question is sent (ns); 0: it is not set.
    set_ns: i128,
}

fn heartbeat() -> impl Strategy<Value = Heartbeat> {
    let way = || prop_oneof![4 => 0..2 * MS, 1 => 0..5 * SECOND];
    let before = prop_oneof![4 => 0..2 * SECOND, 1 => 0..600 * SECOND];
    // A step is longer than the longest round trip and the drift of the longest pause, so an answer shows it.
    let set = prop_oneof![8 => Just(0), 1 => at(20)..at(4_000), 1 => at(-4_000)..at(-20)];
    // One part less than what is allowed for, because the pace of the one clock by the other is rounded.
    (before, way(), way(), -199..=199_i128, set).prop_map(
        |(before_ns, there_ns, back_ns, fast_ppm, set_ns)| Heartbeat {
            before_ns,
            there_ns,
            back_ns,
            fast_ppm,
            set_ns,
        },
    )
}

/// The true clock of the database, and the boot-time clock of this machine.
struct Model {
    wall_ns: i128,
    boot_ns: i128,
    fast_ppm: i128,
}

impl Model {
    fn pass(&mut self, ns: u64) {
        let ns = i128::from(ns);
        self.wall_ns += ns;
        self.boot_ns += ns + ns * self.fast_ppm / 1_000_000;
    }

    fn boot_ns(&self) -> u64 {
        u64::try_from(self.boot_ns).expect("it is after the boot")
    }

    fn holds(&self, clock: &DatabaseClock) -> Result<(), TestCaseError> {
        let span = clock.span(self.boot_ns()).expect("there was an answer");
        prop_assert!(
            (span.from_ns..=span.to_ns).contains(&self.wall_ns),
            "{} is not in {span:?}",
            self.wall_ns
        );
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// The clock of the database is in the interval at every moment, from an answer on that was asked for after the clock was set.
    #[test]
    fn the_clock_is_always_in_the_interval(beats in prop::collection::vec(heartbeat(), 1..40)) {
        let mut model = Model { wall_ns: at(1_000_000), boot_ns: at(1_000), fast_ppm: 0 };
        let mut clock = DatabaseClock::default();
        let mut is_known = false;
        for beat in beats {
            model.fast_ppm = beat.fast_ppm;
            for _ in 0..3 {
                model.pass(beat.before_ns / 3);
                if is_known {
                    model.holds(&clock)?;
                }
            }
            model.wall_ns += beat.set_ns;
            is_known &= beat.set_ns == 0;
            let sent_ns = model.boot_ns();
            model.pass(beat.there_ns);
            let wall_ns = model.wall_ns / 1_000 * 1_000;
            model.pass(beat.back_ns);
            if is_known {
                model.holds(&clock)?;
            }
            let before = clock.span(model.boot_ns()).filter(|_| is_known);
            clock.note(ClockAnswer { wall_ns, sent_ns, arrived_ns: model.boot_ns() });
            is_known = true;
            model.holds(&clock)?;
            let width_ns = clock.span(model.boot_ns()).expect("there was an answer").width_ns();
            let trip_ns = model.boot_ns() - sent_ns;
            prop_assert!(width_ns <= trip_ns + trip_ns / 4_000 + 2_000, "never wider than the last answer");
            if let Some(before) = before {
                prop_assert!(width_ns <= before.width_ns(), "an answer never makes it wider");
            }
        }
    }
}
