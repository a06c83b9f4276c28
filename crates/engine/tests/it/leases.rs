//! How long a lease lasts: never shorter than its worker was told, and no longer over a stop and a start.

use tickwheel_engine::*;

use crate::world::*;

/// The parts of a millisecond that the clocks may show (ns).
const PARTS: [u32; 7] = [0, 1, 460_000, 500_000, 540_000, 999_998, 999_999];

/// A world with a ready task, and with clocks that show these parts of their milliseconds (ns).
fn begun(mono_sub_ns: u32, wall_sub_ns: u32) -> World {
    let mut world = World::new();
    world.now = Now { mono_ns: 7_000_000 + u64::from(mono_sub_ns), wall_sub_ns, ..world.now };
    world.put_in("a", 0);
    world.pass_ms(1);
    world
}

fn wall_ns(now: Now) -> i128 {
    i128::from(now.wall.as_ms()) * 1_000_000 + i128::from(now.wall_sub_ns)
}

/// Both clocks go on until the wall clock shows this many nanoseconds before the instant.
fn pass_until(world: &mut World, at: Timestamp, before_ns: i128) {
    let by_ns = i128::from(at.as_ms()) * 1_000_000 - before_ns - wall_ns(world.now);
    let wall_ns = wall_ns(world.now) + by_ns;
    world.now = Now {
        mono_ns: world.now.mono_ns + u64::try_from(by_ns).expect("time does not go back"),
        wall: Timestamp::from_ms(i64::try_from(wall_ns / 1_000_000).expect("in range")).expect("after 1970"),
        wall_sub_ns: u32::try_from(wall_ns % 1_000_000).expect("less than a millisecond"),
        wall_width_ns: 0,
        held_ms: 0,
    };
    world.input(Input::Wake);
}

/// No other worker gets the task before this instant, which its worker was told. Less than a millisecond later the next worker gets it.
fn lasts_until(mut world: World, told: Timestamp, what: &str) {
    let begin = world.now;
    pass_until(&mut world, told, 1);
    let early = world.lease(1, 1_000);
    assert!(early.is_empty(), "{what} from {begin:?} until {told:?} was handed on 1 ns before");
    pass_until(&mut world, told, -999_999);
    assert_eq!(keys(&world.lease(1, 1_000)), ["a"], "{what} from {begin:?} until {told:?} is over by now");
}

/// A lease was told to end at an instant of the wall clock and was kept by the monotonic clock, both rounded up for themselves. So it was
/// handed on up to a millisecond before its worker expected.
#[test]
fn a_lease_is_kept_until_its_worker_was_told() {
    for mono_sub_ns in PARTS {
        for wall_sub_ns in PARTS {
            let mut world = begun(mono_sub_ns, wall_sub_ns);
            let told = world.lease(1, 30)[0].lease_until;
            assert!(wall_ns(world.now) + 30_000_000 <= i128::from(told.as_ms()) * 1_000_000);
            lasts_until(world, told, "a lease");
        }
    }
}

#[test]
fn an_extended_lease_is_kept_until_the_list_shows() {
    for mono_sub_ns in PARTS {
        for wall_sub_ns in PARTS {
            let mut world = begun(mono_sub_ns, wall_sub_ns);
            let token = world.lease(1, 30)[0].token;
            world.pass_ms(7);
            assert_eq!(world.extend(token, 20), TokenAnswer::Extended);
            let told = world.get("a").expect("it is there").leased_until.expect("it is leased");
            lasts_until(world, told, "an extended lease");
        }
    }
}

/// The instant that was told is written down by a stop; the clocks of the next life show other parts of their milliseconds.
#[test]
fn a_lease_outlives_a_stop_until_its_worker_was_told() {
    for mono_sub_ns in PARTS {
        for wall_sub_ns in PARTS {
            let mut world = begun(0, wall_sub_ns);
            let told = world.lease(1, 30)[0].lease_until;
            world.now.mono_ns += u64::from(mono_sub_ns);
            let mut world = world.stop();
            world.pass_ms(1);
            let shown = world.get("a").expect("it is there").leased_until;
            assert_eq!(shown, Some(told), "what was told stays");
            lasts_until(world, told, "a lease of an earlier life");
        }
    }
}

/// The clock is set back by this many milliseconds between a stop and the start.
fn stop_and_set_back(mut world: World, back_ms: i64) -> World {
    world.input(Input::Stop);
    world.now.wall = Timestamp::from_ms(world.now.wall.as_ms() - back_ms).expect("after 1970");
    world.crash()
}

/// A world at 2 h by the wall clock, with a ready task.
fn late() -> World {
    let mut world = begun(0, 0);
    world.pass_ms(7_200_000);
    world
}

/// The story: the clock was set back by an hour between a stop and the start, and no worker got the task for an hour after its worker had died.
#[test]
fn a_lease_is_no_longer_though_the_clock_was_set_back_between_a_stop_and_the_start() {
    for back_ms in [1, 500, 3_600_000] {
        let mut world = late();
        world.lease(1, 30_000);
        world.pass_ms(10_000);
        let mut world = stop_and_set_back(world, back_ms);
        let shown = world.get("a").expect("it is there").leased_until;
        assert_eq!(shown, world.now.wall.plus_ms(20_000), "set back by {back_ms} ms: what is shown is true");
        world.pass_ms(19_999);
        assert!(world.lease(1, 1_000).is_empty(), "set back by {back_ms} ms: the worker has its time");
        world.pass_ms(1);
        assert_eq!(keys(&world.lease(1, 1_000)), ["a"], "set back by {back_ms} ms");
    }
}

/// Each stop writes down what is left by then.
#[test]
fn a_lease_is_no_longer_over_many_stops_though_the_clock_is_set_back_at_each() {
    let mut world = late();
    world.lease(1, 30_000);
    for _ in 0..5 {
        world.pass_ms(5_000);
        world = stop_and_set_back(world, 600_000);
    }
    world.pass_ms(4_999);
    assert!(world.lease(1, 1_000).is_empty(), "it lasts for 30 s");
    world.pass_ms(1);
    assert_eq!(keys(&world.lease(1, 1_000)), ["a"]);
}

/// Five instants are rounded up to the millisecond: the end by each clock as the lease begins, what is left as it is written down, and again the end
/// by each clock at the start.
#[test]
fn a_lease_after_a_step_back_is_never_shorter_and_less_than_five_milliseconds_longer() {
    for mono_sub_ns in PARTS {
        for wall_sub_ns in PARTS {
            let mut world = begun(mono_sub_ns, wall_sub_ns);
            world.pass_ms(7_200_000);
            let begin_ns = world.now.mono_ns;
            world.lease(1, 30);
            world.now.mono_ns += u64::from(mono_sub_ns);
            let mut world = stop_and_set_back(world, 3_600_000);
            let what = format!("{mono_sub_ns} ns and {wall_sub_ns} ns");
            world.now.mono_ns = begin_ns + 30_000_000 - 1;
            assert!(world.lease(1, 1_000).is_empty(), "{what}: handed on before its end");
            world.now.mono_ns = begin_ns + 35_000_000;
            assert_eq!(keys(&world.lease(1, 1_000)), ["a"], "{what}: it is over by now");
        }
    }
}
