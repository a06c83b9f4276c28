//! The picture of the wheel.

use tickwheel_engine::*;

use crate::world::*;

fn wheel(world: &mut World) -> WheelView {
    let Answer::Wheel(Ok(wheel)) = world.ask(Command::Wheel(GetWheel)) else { panic!("another answer") };
    *wheel
}

fn occupied(wheel: &WheelView) -> [u32; 4] {
    wheel.rings.map(|ring| ring.occupied.iter().map(|word| word.count_ones()).sum())
}

#[test]
fn a_task_is_in_the_wheel_until_it_is_due() {
    let mut world = World::new();
    assert_eq!((wheel(&mut world).tasks, occupied(&wheel(&mut world))), (0, [0; 4]));
    for (id, delay_ms) in [("a", 1_000), ("b", 2_000), ("c", 3_000)] {
        world.put_in(id, delay_ms);
    }
    let seen = wheel(&mut world);
    assert_eq!(seen.rings.map(|ring| ring.slot_ticks), [1, 1 << 8, 1 << 16, 1 << 24]);
    assert_eq!((seen.tasks, occupied(&seen).iter().sum::<u32>()), (3, 3));
    world.cancel("b").expect("cancelled");
    assert_eq!(wheel(&mut world).tasks, 2);
    world.pass_ms(1_000);
    let later = wheel(&mut world);
    assert_eq!((later.tasks, occupied(&later).iter().sum::<u32>()), (1, 1));
    assert_eq!(later.now.ms_since(seen.now), 1_000);
    let mut world = world.crash();
    assert_eq!(wheel(&mut world).tasks, 1, "a start loads what is near");
    world.pass_ms(2_000);
    assert_eq!((wheel(&mut world).tasks, occupied(&wheel(&mut world))), (0, [0; 4]));
}

#[test]
fn the_wheel_is_shown_after_the_store_has_failed() {
    let mut world = World::new();
    world.put_in("a", 1_000);
    world.fail_commits = true;
    world.send(Command::Put(Put::new(&queue("q"), key("b"))));
    assert!(wheel(&mut world).tasks >= 1);
}
