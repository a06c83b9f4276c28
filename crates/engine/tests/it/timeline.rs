//! One task with many instants: a price plan.

use tickwheel_engine::*;

use crate::world::*;

fn moment(at_ms: i64, payload: &str) -> Moment {
    Moment { at: ms(at_ms), payload: payload.into(), content_type: "text/plain".into() }
}

fn plan(moments: &[(i64, &str)]) -> Put {
    let timeline = moments.iter().map(|(at, payload)| moment(*at, payload)).collect();
    Put { body: Body { timeline, ..Body::default() }, ..Put::new(&queue("q"), key("price:7")) }
}

fn payload(leased: &Leased) -> &str {
    std::str::from_utf8(leased.body.payload_at(leased.step).0).expect("text")
}

#[test]
fn instants_fire_in_turn_and_the_next_waits_for_the_ack() {
    let mut world = World::new();
    let stored = world.put(plan(&[(10, "9"), (20, "7"), (1_000, "12")])).expect("taken");
    assert_eq!((stored.task.state, stored.task.due_at), (State::Scheduled, ms(10)));
    world.pass_ms(25);
    let first = world.lease(9, 1_000);
    assert_eq!((first.len(), payload(&first[0]), first[0].due_at), (1, "9", ms(10)));
    assert_eq!(world.ack(first[0].token), TokenAnswer::Acked);
    assert_eq!(
        world.ack(first[0].token),
        TokenAnswer::Acked,
        "that instant is done, and its answer may be lost"
    );
    assert_eq!(world.nack(first[0].token, None), TokenAnswer::Expired);
    // The second is overdue by now.
    let second = world.lease(9, 1_000);
    assert_eq!((payload(&second[0]), second[0].due_at, second[0].id), ("7", ms(20), first[0].id));
    let mut world = world.crash();
    assert_eq!(world.ack(second[0].token), TokenAnswer::Acked, "also over a crash");
    let task = world.get("price:7").expect("live");
    assert_eq!((task.state, task.due_at, task.step()), (State::Scheduled, ms(1_000), 2));
    assert_eq!(task.version, stored.task.version, "only its owner makes a version");
    world.pass_ms(975);
    let third = world.lease(9, 1_000);
    assert_eq!(payload(&third[0]), "12");
    assert_eq!(world.ack(third[0].token), TokenAnswer::Acked);
    assert_eq!(world.get("price:7"), Err(GetError::Done));
    assert_eq!(world.counts(), (0, 0, 0));
}

#[test]
fn the_ack_of_an_instant_is_remembered_until_the_next_is_acked() {
    let mut world = World::new();
    world.put(plan(&[(0, "a"), (10, "b"), (20, "c"), (1_000, "d")])).expect("taken");
    let first = world.lease(1, 5);
    world.pass_ms(5);
    let again = world.lease(1, 1_000);
    assert_eq!(world.ack(again[0].token), TokenAnswer::Acked);
    assert_eq!(world.ack(first[0].token), TokenAnswer::Expired, "that lease ran out");
    let mut world = world.crash();
    assert_eq!(world.ack(again[0].token), TokenAnswer::Acked);
    // Also when a worker has the next, or when it was changed or put anew.
    world.pass_ms(10);
    let second = world.lease(1, 1_000);
    assert_eq!(world.ack(again[0].token), TokenAnswer::Acked);
    assert_eq!(world.get("price:7").expect("live").state, State::Leased);
    assert_eq!(world.ack(second[0].token), TokenAnswer::Acked);
    assert_eq!(world.ack(again[0].token), TokenAnswer::Expired, "one is remembered");
    world.patch(Patch { priority: Some(1), ..Patch::new(&queue("q"), key("price:7")) }).expect("live");
    assert_eq!(world.ack(second[0].token), TokenAnswer::Acked);
    world.put(plan(&[(30, "x"), (40, "y")])).expect("live");
    let mut world = world.stop();
    assert_eq!(world.ack(second[0].token), TokenAnswer::Acked);
    assert_eq!(world.get("price:7").expect("live").step(), 0, "it does not move the new one on");
}

#[test]
fn a_failed_instant_is_tried_again_and_the_next_begins_anew() {
    let mut world = World::new();
    world.put(plan(&[(0, "a"), (10, "b")])).expect("taken");
    let leased = world.lease(1, 1_000);
    assert_eq!(world.nack(leased[0].token, None), TokenAnswer::Nacked);
    let again = world.lease(1, 1_000);
    assert_eq!((payload(&again[0]), again[0].attempt), ("a", 2));
    assert_eq!(world.ack(again[0].token), TokenAnswer::Acked);
    world.pass_ms(10);
    let next = world.lease(1, 1_000);
    assert_eq!((payload(&next[0]), next[0].attempt), ("b", 1));
    assert_eq!(world.get("price:7").expect("live").extra.failures, []);
}

#[test]
fn a_timeline_that_expired_in_a_workers_hands_goes_no_further() {
    for next in [20, 10_000] {
        let mut world = World::new();
        let terms = Terms { expire_after_ms: Some(100), ..Terms::default() };
        world.put(Put { terms, ..plan(&[(0, "a"), (next, "b")]) }).expect("taken");
        let leased = world.lease(1, 60_000);
        world.pass_ms(150);
        let wait = Lease {
            queues: [queue("q")].into(),
            max: 1,
            lease_ms: Some(1_000),
            wait: true,
            worker: None,
            for_target: false,
        };
        let waiting = world.send(Command::Lease(wait));
        assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked, "what somebody has may be finished");
        assert_eq!(world.get("price:7").expect("kept for people").state, State::Dead, "next at {next}");
        world.pass_ms(20_000);
        assert_eq!(world.answer(waiting), None, "nobody gets it, also who waited");
    }
}

#[test]
fn a_timeline_is_replaced_as_a_whole() {
    let mut world = World::new();
    world.put(plan(&[(0, "a"), (10, "b")])).expect("taken");
    let leased = world.lease(1, 1_000);
    assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked);
    let patch = || Patch::new(&queue("q"), key("price:7"));
    assert_eq!(world.patch(patch().at(ms(5))), Err(PatchError::Timeline));
    assert_eq!(world.patch(patch().payload("x")), Err(PatchError::Timeline));
    world.patch(Patch { priority: Some(1), ..patch() }).expect("its terms may be changed");
    let other = vec![moment(30, "c"), moment(40, "d")];
    let task = world.patch(Patch { timeline: Some(other), ..patch() }).expect("live");
    assert_eq!((task.due_at, task.step()), (ms(30), 0));
    // A put without a timeline makes it a task like any other.
    let task = world.put(Put::new(&queue("q"), key("price:7"))).expect("live").task;
    assert_eq!((task.step(), task.body.timeline.len()), (0, 0));
    let leased = world.lease(1, 1_000);
    assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked);
    assert_eq!(world.get("price:7"), Err(GetError::Done));
}

#[test]
fn a_cancel_ends_all_instants() {
    let mut world = World::new();
    world.put(plan(&[(10, "a"), (20, "b")])).expect("taken");
    assert_eq!(world.cancel("price:7"), Ok(Cancelled::Cancelled));
    world.pass_ms(100);
    assert_eq!(world.lease(9, 1_000), []);
}

#[test]
fn instants_that_do_not_rise_or_are_too_far_are_refused() {
    let mut world = World::new();
    assert_eq!(world.put(plan(&[(10, "a"), (10, "b")])), Err(PutError::NotRising { index: 1 }));
    assert_eq!(world.put(plan(&[(0, "a"), (5, "b"), (4, "c")])), Err(PutError::NotRising { index: 2 }));
    let far = 101 * 366 * 86_400_000;
    assert!(matches!(world.put(plan(&[(0, "a"), (far, "b")])), Err(PutError::TooFar { .. })));
    assert_eq!(world.counts(), (0, 0, 0));
}

#[test]
fn far_instants_wait_in_the_store() {
    let mut world = World::with(EngineConfig { horizon_ms: 2, ..EngineConfig::default() });
    world.put(plan(&[(0, "a"), (50_000, "b")])).expect("taken");
    let leased = world.lease(1, 1_000);
    assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked);
    assert_eq!(world.engine.tasks_in_memory(), 0);
    world.pass_ms(49_999);
    assert_eq!(world.counts(), (1, 0, 0));
    world.pass_ms(1);
    assert_eq!(payload(&world.lease(1, 1_000)[0]), "b");
}
