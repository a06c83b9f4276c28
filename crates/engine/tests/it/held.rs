//! A start that found the wall clock far ahead of what was written down: nothing that fell due since is done until the clock has stood.

use std::sync::Arc;

use tickwheel_engine::*;

use crate::world::*;

const HOUR: u64 = 3_600_000;

/// A start after two hours, or after none with a wrong clock.
fn started_again(mut world: World) -> World {
    world.now.wall = world.now.wall.plus_ms(2 * HOUR).expect("in range");
    world.now.held_ms = 2 * HOUR;
    world.crash()
}

/// The clock has stood, and is believed.
fn believe(world: &mut World) {
    world.now.held_ms = 0;
    world.input(Input::Wake);
}

/// The story: a machine booted with a clock that was two hours ahead, and everything due within two hours fired.
#[test]
fn what_fell_due_since_the_last_time_in_the_data_waits() {
    for near_bytes_max in [256 << 20, 512] {
        let mut world = World::with(EngineConfig { near_bytes_max, ..EngineConfig::default() });
        world.put_in("before", 1_000);
        world.pass_ms(1_000);
        world.put_in("between", HOUR);
        world.put_in("soon", 30_000);
        world.put_in("after", 2 * HOUR + 5_000);
        let mut world = started_again(world);
        assert_eq!(keys(&world.lease(9, 1_000_000)), ["before"], "it was due when the last time was written");
        let scheduled = |name: &str| (name.to_owned(), State::Scheduled);
        let all = ["soon", "between", "after"].map(scheduled);
        assert_eq!(world.list(Some(State::Scheduled)), all);
        assert_eq!(world.counts(), (3, 0, 1));
        world.pass_ms(29_999);
        assert!(world.lease(9, 1_000).is_empty());
        world.pass_ms(1);
        assert_eq!(keys(&world.lease(9, 1_000_000)), ["soon"], "30 s have passed by each clock");
        believe(&mut world);
        assert_eq!(keys(&world.lease(9, 1_000_000)), ["between", "after"]);
    }
}

/// A hold that ends because the clock was corrected leaves the tasks where they were.
#[test]
fn a_clock_that_is_corrected_makes_nothing_early() {
    let mut world = World::new();
    world.put_in("a", HOUR);
    let mut world = started_again(world);
    world.now.held_ms = 0;
    world.step_wall_ms(-2 * HOUR as i64);
    world.pass_ms(HOUR - 1);
    assert!(world.lease(1, 1_000).is_empty());
    world.pass_ms(1);
    assert_eq!(keys(&world.lease(1, 1_000)), ["a"]);
}

/// The story: a start that held back wrote the clock that it doubted down, so the next start saw nothing to doubt.
#[test]
fn a_second_start_knows_the_same_last_time() {
    let mut world = World::new();
    world.put_in("a", HOUR);
    let mut world = started_again(world);
    world.put_in("b", 0);
    world.pass_ms(1_000);
    world.put_in("c", 0);
    let world = world.crash();
    assert_eq!(world.last_wall, ms(1_000));
}

/// A task that a worker has done is not put again once the clock is right.
#[test]
fn no_end_is_forgotten() {
    let mut world = World::with(EngineConfig { history_ms: HOUR, ..EngineConfig::default() });
    world.put_in("done", 0);
    let leased = world.lease(1, 1_000);
    assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked);
    let once = || Put { mode: PutMode::Once, ..Put::new(&queue("q"), key("done")) };
    let mut world = started_again(world);
    assert_eq!(world.put(once()), Err(PutError::Done));
    believe(&mut world);
    assert!(world.put(once()).expect("forgotten").created);
}

#[test]
fn a_schedule_loses_no_instant_and_its_jitter_is_kept() {
    let mut world = World::new();
    let name = ScheduleName::new("s").expect("a name");
    let schedule = Schedule { jitter_ms: 600_000, ..Schedule::new(Cadence::Every { ms: 40_000 }) };
    let put = PutSchedule::new(&queue("q"), name.clone(), Arc::new(schedule));
    let Answer::PutSchedule(Ok(_)) = world.ask(Command::PutSchedule(put)) else { panic!("refused") };
    let mut world = started_again(world);
    world.pass_ms(40_000);
    let found = world.list(None);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].1, State::Scheduled, "it is due up to ten minutes later");
    // The queue takes no task now. Only the instants that have come are left out.
    let drain = ChangeQueue { queue: queue("q"), change: QueueChange::Drain };
    let Answer::ChangeQueue(Ok(())) = world.ask(Command::ChangeQueue(drain)) else { panic!("refused") };
    world.pass_ms(40_000);
    let get = GetSchedule { queue: queue("q"), name };
    let Answer::GetSchedule(Ok(view)) = world.ask(Command::GetSchedule(get)) else { panic!("gone") };
    assert_eq!((view.record.skipped, view.record.next), (1, Some(ms(120_000))));
}

/// A caller who names an instant goes by the right clock. The server does not know yet whether its own is right.
#[test]
fn an_instant_that_a_caller_names_is_held_back() {
    let mut world = started_again(World::new());
    let put = Put { due: Due::At(ms(HOUR as i64)), ..Put::new(&queue("q"), key("named")) };
    world.put(put).expect("taken");
    assert_eq!(world.counts(), (1, 0, 0));
    believe(&mut world);
    assert_eq!(world.counts(), (0, 1, 0));
}

#[test]
fn what_a_caller_asks_for_now_is_done_now() {
    let mut world = World::new();
    world.put_in("hastened", HOUR);
    world.put_in("patched", HOUR);
    world.put_in("content", HOUR);
    let mut world = started_again(world);
    world.put_in("now", 0);
    let stored = world.put_in("delayed", 600_000);
    assert_eq!(stored.task.due_at, ms(2 * HOUR as i64 + 600_000), "a delay counts from the clock");
    world.by_key("hastened", KeyAct::Run).expect("scheduled");
    world.patch(Patch { due: Some(Due::Now), ..Patch::new(&queue("q"), key("patched")) }).expect("scheduled");
    // Another priority is no word about the time.
    world.patch(Patch { priority: Some(3), ..Patch::new(&queue("q"), key("content")) }).expect("scheduled");
    let leased = world.lease(9, 1_000_000);
    let mut found = keys(&leased);
    found.sort_unstable();
    assert_eq!(found, ["hastened", "now", "patched"]);
    believe(&mut world);
    assert_eq!(keys(&world.lease(9, 1_000_000)), ["content"]);
    world.pass_ms(600_000);
    assert_eq!(keys(&world.lease(9, 1_000_000)), ["delayed"]);
}

/// A task that is given up, or forgotten, does not come back when the clock is corrected.
#[test]
fn nothing_expires_and_nothing_is_forgotten() {
    let mut world = World::with(EngineConfig { dead_ms: HOUR, ..EngineConfig::default() });
    let expires = |ms| Terms { expire_after_ms: Some(ms), ..Terms::default() };
    world.put(Put { terms: expires(1_000), ..Put::new(&queue("q"), key("dead")) }).expect("taken");
    world.pass_ms(1_000);
    world.put(Put { terms: expires(HOUR), ..Put::new(&queue("q"), key("ready")) }).expect("taken");
    let mut world = started_again(world);
    assert_eq!(world.get("dead").expect("kept").state, State::Dead);
    let leased = world.lease(1, 1_000);
    assert_eq!(keys(&leased), ["ready"]);
    world.pass_ms(1_000);
    assert_eq!(world.get("ready").expect("live").state, State::Ready, "the lease ended");
    believe(&mut world);
    assert_eq!(world.get("ready").expect("kept").state, State::Dead);
    assert!(world.get("dead").is_err());
}

#[test]
fn schedules_and_pauses_go_on_from_the_last_time_in_the_data() {
    let mut world = World::new();
    let name = ScheduleName::new("s").expect("a name");
    let schedule =
        Arc::new(Schedule { catch_up: CatchUp::Skip, ..Schedule::new(Cadence::Every { ms: 40_000 }) });
    let put = PutSchedule::new(&queue("q"), name.clone(), schedule);
    let Answer::PutSchedule(Ok(_)) = world.ask(Command::PutSchedule(put)) else { panic!("refused") };
    let pause = ChangeQueue { queue: queue("paused"), change: QueueChange::Pause { ms: Some(HOUR) } };
    let Answer::ChangeQueue(Ok(())) = world.ask(Command::ChangeQueue(pause)) else { panic!("refused") };
    let mut world = started_again(world);
    let is_paused = |world: &mut World| world.all_counts().iter().any(|counts| counts.paused);
    assert!(is_paused(&mut world) && world.lease(9, 1_000).is_empty());
    let record = |world: &mut World| {
        let get = GetSchedule { queue: queue("q"), name: name.clone() };
        let Answer::GetSchedule(Ok(view)) = world.ask(Command::GetSchedule(get)) else { panic!("gone") };
        view.record
    };
    assert_eq!(record(&mut world).next, Some(ms(40_000)), "the next instant is not missed");
    world.pass_ms(40_000);
    assert_eq!(world.lease(9, 1_000_000).len(), 1);
    assert_eq!((record(&mut world).next, record(&mut world).skipped), (Some(ms(80_000)), 0));
    believe(&mut world);
    assert!(!is_paused(&mut world));
    assert!(record(&mut world).skipped > 170, "the hours were missed, and the schedule leaves them out");
}
