//! A wall clock that is known as an interval: what is due goes by its lower end, and what counts from now by its upper end.

use std::sync::Arc;

use tickwheel_engine::{
    Answer, Cadence, Command, Due, EngineConfig, Input, Nack, Patch, Put, PutMode, PutSchedule, Schedule,
    ScheduleName, Terms, TokenAnswer,
};

use crate::world::{World, key, ms, queue};

const WIDTH_MS: u64 = 800;

/// The believed clock shows 0 ms. The true clock may show up to 800 ms.
fn wide() -> World {
    let mut world = World::new();
    world.now.wall_width_ns = WIDTH_MS * 1_000_000;
    world
}

fn put(delay_ms: u64) -> Put {
    Put { due: Due::After { ms: delay_ms }, ..Put::new(&queue("q"), key("a")) }
}

/// The story: answers of the database took 0.8 s, and a task with a delay of 3 s was due 0.8 s early, because the delay counted from the
/// instant in the answer.
#[test]
fn a_delay_is_over_whatever_the_clock_shows_within_its_interval() {
    let mut world = wide();
    assert_eq!(world.put(put(3_000)).expect("taken").task.due_at, ms(3_800));
    world.pass_ms(100);
    let patch = Patch { due: Some(Due::After { ms: 3_000 }), ..Patch::new(&queue("q"), key("a")) };
    assert_eq!(world.patch(patch).expect("live").due_at, ms(3_900));
    // The interval becomes narrow. The due time stays, and is met by the lower end.
    world.now.wall_width_ns = 0;
    world.pass_ms(3_799);
    assert!(world.lease(1, 1_000).is_empty());
    world.pass_ms(1);
    assert_eq!(world.lease(1, 1_000).len(), 1);
}

#[test]
fn a_task_without_a_delay_is_ready_at_once() {
    let mut world = wide();
    let stored = world.put(Put::new(&queue("q"), key("a"))).expect("taken");
    assert_eq!((stored.task.due_at, stored.task.put_at), (ms(0), ms(0)));
    assert_eq!(world.lease(1, 1_000).len(), 1);
}

#[test]
fn a_debounce_counts_its_delay_and_its_longest_wait_from_the_upper_end() {
    let mut world = wide();
    let mode = PutMode::Debounce { max_wait_ms: Some(2_000) };
    let debounce = || Put { mode, ..put(1_000) };
    assert_eq!(world.put(debounce()).expect("taken").task.due_at, ms(1_800));
    world.pass_ms(900);
    assert_eq!(world.put(debounce()).expect("taken").task.due_at, ms(2_700));
    world.pass_ms(800);
    assert_eq!(world.put(debounce()).expect("taken").task.due_at, ms(2_800), "2 s after the first put");
}

/// A delay of exactly the limit is not refused, and an expiry right after the delay is not before it.
#[test]
fn limits_and_expiries_count_from_the_same_end_as_delays() {
    let mut world = World::with(EngineConfig { farthest_ms: 5_000, ..EngineConfig::default() });
    world.now.wall_width_ns = WIDTH_MS * 1_000_000;
    let terms = Terms { expire_after_ms: Some(5_001), ..Terms::default() };
    let task = world.put(Put { terms, ..put(5_000) }).expect("neither too far nor expired first").task;
    assert_eq!((task.due_at, task.extra.expire_at), (ms(5_800), Some(ms(5_801))));
    let patch = Patch { expire_after_ms: Some(Some(6_000)), ..Patch::new(&queue("q"), key("a")) };
    assert_eq!(world.patch(patch).expect("live").extra.expire_at, Some(ms(6_800)));
    // A back-off of exactly the limit is taken, too.
    world.put(put(0)).expect("taken");
    world.pass_ms(800);
    let leased = world.lease(1, 1_000);
    let nack = Nack { at_least_ms: Some(5_000), ..Nack::new(&queue("q"), [leased[0].token]) };
    world.ask(Command::Nack(nack));
    assert_eq!(world.get("a").expect("live").due_at, ms(800 + 5_800));
}

#[test]
fn a_retry_waits_at_least_as_long_as_was_asked_for() {
    let mut world = wide();
    world.put(Put::new(&queue("q"), key("a"))).expect("taken");
    let leased = world.lease(1, 10_000);
    assert_eq!(world.nack(leased[0].token, Some(500)), TokenAnswer::Nacked);
    assert_eq!(world.get("a").expect("live").due_at, ms(1_300));
}

/// A lease may only be longer than was asked for: it lasts until the lower end has reached what the worker was told.
#[test]
fn a_lease_lasts_until_the_clock_shows_what_the_worker_was_told() {
    let mut world = wide();
    world.put(Put::new(&queue("q"), key("a"))).expect("taken");
    let leased = world.lease(1, 1_000);
    assert_eq!(leased[0].lease_until, ms(1_800));
    world.pass_ms(1_000);
    assert_eq!(world.extend(leased[0].token, 1_000), TokenAnswer::Extended);
    world.pass_ms(1_799);
    assert!(world.lease(1, 1_000).is_empty());
    world.pass_ms(1);
    assert_eq!(world.lease(1, 1_000).len(), 1, "the lease has ended");
}

#[test]
fn a_lease_that_is_written_down_at_a_stop_ends_when_the_worker_was_told() {
    let mut world = wide();
    world.put(Put::new(&queue("q"), key("a"))).expect("taken");
    world.lease(1, 1_000);
    let mut world = world.stop();
    world.pass_ms(1_799);
    assert!(world.lease(1, 1_000).is_empty());
    world.pass_ms(1);
    assert_eq!(world.lease(1, 1_000).len(), 1);
}

/// The clock was set back while the lease lasted, so what is written down counts from now. The rest of the lease counts from the lower end, as
/// its begin does: it would last longer by the width otherwise.
#[test]
fn a_lease_that_is_written_down_after_a_step_back_lasts_as_long_as_without_the_stop() {
    let mut world = wide();
    world.step_wall_ms(60_000);
    world.put(Put::new(&queue("q"), key("a"))).expect("taken");
    assert_eq!(world.lease(1, 10_000)[0].lease_until, ms(70_800));
    world.pass_ms(1_000);
    world.step_wall_ms(-30_000);
    let mut world = world.stop();
    world.pass_ms(9_799);
    assert!(world.lease(1, 1_000).is_empty());
    world.pass_ms(1);
    assert_eq!(world.lease(1, 1_000).len(), 1, "10.8 s have passed since the lease");
}

/// The rest of a lease counts from the lower end in the next life, too: the upper end would make it longer by the width.
#[test]
fn a_lease_lasts_as_long_as_without_the_stop_though_the_clock_was_set_back_before_the_start() {
    let mut world = wide();
    world.step_wall_ms(60_000);
    world.put(Put::new(&queue("q"), key("a"))).expect("taken");
    world.lease(1, 10_000);
    world.pass_ms(1_000);
    world.input(Input::Stop);
    world.now.wall = ms(31_000);
    let mut world = world.crash();
    world.pass_ms(9_799);
    assert!(world.lease(1, 1_000).is_empty());
    world.pass_ms(1);
    assert_eq!(world.lease(1, 1_000).len(), 1, "10.8 s have passed since the lease");
}

#[test]
fn schedules_count_an_interval_or_a_delay_from_the_upper_end() {
    let mut world = wide();
    for (name, cadence) in
        [("every", Cadence::Every { ms: 3_000 }), ("delay", Cadence::FixedDelay { ms: 3_000 })]
    {
        let name = ScheduleName::new(name).expect("a good name");
        let put = PutSchedule::new(&queue("q"), name, Arc::new(Schedule::new(cadence)));
        let Answer::PutSchedule(Ok(stored)) = world.ask(Command::PutSchedule(put)) else { panic!("not put") };
        assert_eq!(stored.schedule.record.next, Some(ms(3_800)));
    }
}
