//! The laws of rounding hold for all numbers.

use std::num::NonZeroU64;

use proptest::prelude::*;
use tickwheel_core::ticks::{deadline_ticks, nanos_of_tick, ticks_down, ticks_up};
use tickwheel_core::{Refusal, TimerQueue, Wheel};

fn nanos() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..10_000_000_u64,
        (0..64_u32, any::<u64>()).prop_map(|(bits, nanos)| nanos >> bits),
        (0..100_u64).prop_map(|before| u64::MAX - before),
    ]
}

fn tick_nanos() -> impl Strategy<Value = NonZeroU64> {
    prop_oneof![Just(1), Just(1_000), Just(1_000_000), 1..=u64::MAX, 1..100_u64]
        .prop_map(|nanos| NonZeroU64::new(nanos).expect("not 0"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// An entry fires at the first reading whose tick is at least the tick of the deadline. It is
    /// never early. A driver that wakes at the start of that tick is late by less than one tick.
    #[test]
    fn lateness_is_never_negative_and_less_than_a_tick(
        deadline in nanos(),
        reading in nanos(),
        tick in tick_nanos(),
    ) {
        let due = ticks_up(deadline, tick);
        if ticks_down(reading, tick) >= due {
            prop_assert!(reading >= deadline, "fired at {reading} ns, due at {deadline} ns");
        }
        let wake = nanos_of_tick(due, tick);
        prop_assert!(wake >= deadline);
        if wake < u64::MAX {
            prop_assert!(ticks_down(wake, tick) >= due, "awake at {wake} ns for nothing");
            prop_assert!(wake - deadline < tick.get());
        }
    }

    #[test]
    fn a_delay_is_kept_in_full_or_refused(
        now in nanos(),
        delay in nanos(),
        later in nanos(),
        tick in tick_nanos(),
    ) {
        let due = deadline_ticks(now, delay, tick);
        if let Some(deadline) = now.checked_add(delay) {
            prop_assert_eq!(due, ticks_up(deadline, tick));
            if later >= now && ticks_down(later, tick) >= due {
                prop_assert!(later - now >= delay, "{delay} ns were over after {} ns", later - now);
            }
        } else {
            let mut wheel = Wheel::new(ticks_down(now, tick));
            let refused = wheel.insert(due, ()).map_err(|refused| refused.why);
            prop_assert_eq!(refused, Err(Refusal::TooFar), "a sum beyond 64 bits was accepted");
        }
    }

    /// The same law, tested with a wheel and a driver that reads the clock at any time.
    #[test]
    fn a_wheel_that_is_driven_by_readings_is_never_early(
        deadlines in prop::collection::vec(1..50_000_000_u64, 1..50),
        mut readings in prop::collection::vec(0..60_000_000_u64, 1..50),
        tick in prop_oneof![Just(1_u64), Just(1_000), Just(1_000_000), 1..5_000_000_u64],
    ) {
        let tick = NonZeroU64::new(tick).expect("not 0");
        let mut wheel = Wheel::new(0);
        for &deadline in &deadlines {
            wheel.insert(ticks_up(deadline, tick), deadline).expect("it is ahead");
        }
        readings.sort_unstable();
        for reading in readings {
            wheel.advance_with(ticks_down(reading, tick), |_, deadline| {
                assert!(reading >= deadline, "fired at {reading} ns, due at {deadline} ns");
            });
        }
        // A driver that wakes at the start of the requested tick is late by less than a tick.
        while let Some(wake) = wheel.next_wake() {
            let reading = nanos_of_tick(wake, tick);
            let fired = wheel.advance_with(ticks_down(reading, tick), |_, deadline| {
                assert!(reading >= deadline, "fired at {reading} ns, due at {deadline} ns");
            });
            assert!(fired > 0, "awake at {reading} ns for nothing");
        }
    }
}

/// An earlier version of this property demanded too much: a delay beyond 64 bits of nanoseconds,
/// kept in full by a clock at its last nanosecond. That is impossible. The property that holds is
/// that no queue accepts such a delay.
#[test]
fn a_delay_beyond_the_end_of_time_is_refused_and_not_shortened() {
    let nano = NonZeroU64::MIN;
    let due = deadline_ticks(90, u64::MAX, nano);
    assert_eq!(due, u64::MAX);
    let mut wheel = Wheel::new(90);
    assert_eq!(wheel.insert(due, ()).map_err(|refused| refused.why), Err(Refusal::TooFar));
}
