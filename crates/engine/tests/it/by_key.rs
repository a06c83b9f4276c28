//! A task runs before its time, or is taken from its worker, by its key.

use tickwheel_engine::*;

use crate::world::*;

const YEAR_MS: u64 = 365 * 86_400_000;

#[test]
fn a_task_that_waits_runs_now_and_keeps_all_else() {
    let mut world = World::new();
    let group = Group::new("g").ok();
    let terms = Terms { priority: 7, group, expire_after_ms: Some(2 * YEAR_MS), ..Terms::default() };
    let put = Put { terms, ..Put::new(&queue("q"), key("a")) }.payload("x");
    let far = Due::After { ms: YEAR_MS };
    let before = world.put(Put { due: far, ..put }).expect("taken").task;
    // Far ahead: the store alone has it by now.
    let mut world = world.crash();
    world.pass_ms(5);
    let task = world.by_key("a", KeyAct::Run).expect("it waits");
    assert_eq!((task.state, task.due_at), (State::Ready, ms(5)));
    assert!(task.version > before.version, "its owner changed it");
    assert_eq!(
        (task.priority, &task.extra.group, task.extra.expire_at),
        (7, &before.extra.group, before.extra.expire_at)
    );
    assert_eq!(
        (task.body.payload.as_slice(), task.put_at, task.put_seq),
        (&b"x"[..], before.put_at, before.put_seq)
    );
    assert_eq!((task.extra.tally.redrives, task.extra.tally.delay_ms), (1, Some(YEAR_MS)));
    assert_eq!(world.by_key("a", KeyAct::Run), Ok(task), "one that is ready is shown as it stands");
    let mut world = world.crash();
    assert_eq!(world.get("a").map(|task| (task.state, task.due_at)), Ok((State::Ready, ms(5))));
}

/// The moment that waits runs now. The later moments come when they are due.
#[test]
fn a_task_with_a_timeline_runs_at_its_present_moment() {
    let mut world = World::new();
    let moment = |at_ms, payload: &str| Moment {
        at: ms(at_ms),
        payload: payload.into(),
        content_type: "text/plain".into(),
    };
    let timeline = vec![moment(0, "a"), moment(1_000, "b"), moment(9_000, "c")];
    let body = Body { timeline, ..Body::default() };
    world.put(Put { body, ..Put::new(&queue("q"), key("plan")) }).expect("taken");
    let first = world.lease(1, 60_000);
    assert_eq!(world.ack(first[0].token), TokenAnswer::Acked);
    world.pass_ms(5);
    let task = world.by_key("plan", KeyAct::Run).expect("it waits");
    assert_eq!((task.state, task.due_at, task.step(), task.body.timeline.len()), (State::Ready, ms(5), 1, 3));
    let second = world.lease(1, 60_000);
    assert_eq!(second[0].body.payload_at(second[0].step).0, b"b");
    assert_eq!(world.ack(second[0].token), TokenAnswer::Acked);
    let task = world.get("plan").expect("it has a moment left");
    assert_eq!((task.state, task.due_at, task.step()), (State::Scheduled, ms(9_000), 2));
}

/// A task that waits for its next attempt keeps the attempts that it has had.
#[test]
fn a_task_that_waits_after_a_failure_runs_now_and_its_attempts_stay() {
    let mut world = World::new();
    world.put_in("a", 0);
    let leased = world.lease(1, 60_000);
    assert_eq!(world.nack(leased[0].token, Some(YEAR_MS)), TokenAnswer::Nacked);
    let task = world.by_key("a", KeyAct::Run).expect("it waits");
    assert_eq!((task.state, task.attempt, task.extra.failures.len()), (State::Ready, 1, 1));
    assert_eq!(world.lease(1, 60_000)[0].attempt, 2);
    assert_eq!(world.by_key("a", KeyAct::Run), Err(ByKeyError::Leased));
}

#[test]
fn a_task_that_is_taken_from_its_worker_is_ready_at_once() {
    let mut world = World::new();
    let put = world.put_in("a", 0).task;
    let old = world.lease(1, 60_000);
    world.pass_ms(7);
    let shown = world.get("a").expect("live");
    assert_eq!(
        world.by_key_in("a", KeyAct::Release, Some(Seq(put.version.0 + 1))),
        Err(ByKeyError::VersionMismatch { current: put.version })
    );
    let task = world.by_key_in("a", KeyAct::Release, Some(shown.version)).expect("a worker has it");
    assert_eq!((task.state, task.due_at, task.attempt), (State::Ready, put.due_at, 1), "the attempt counts");
    assert!(task.version > shown.version, "who releases what was seen does not take the next lease");
    let failure = &task.extra.failures[0];
    assert_eq!((failure.how, failure.attempt, failure.at), (Failed::Revoked, 1, ms(7)));
    for answer in [world.ack(old[0].token), world.nack(old[0].token, None), world.extend(old[0].token, 9)] {
        assert_eq!(answer, TokenAnswer::Revoked);
    }
    assert_eq!(world.by_key("a", KeyAct::Release), Err(ByKeyError::NotLeased));
    let mut world = world.crash();
    assert_eq!(world.ack(old[0].token), TokenAnswer::Revoked, "also over a crash");
    let new = world.lease(1, 60_000);
    assert_eq!((new[0].key.as_str(), new[0].attempt), ("a", 2));
    assert_eq!(world.ack(new[0].token), TokenAnswer::Acked);
}

/// A waiting call gets the task in the same turn, and a limit counts the place as free.
#[test]
fn a_released_task_goes_to_the_next_worker() {
    let mut world = World::new();
    let settings = QueueSettings { max_in_flight: Some(1), ..QueueSettings::default() };
    let change = QueueChange::Settings(settings);
    world.ask(Command::ChangeQueue(ChangeQueue { queue: queue("q"), change }));
    world.put_in("a", 0);
    world.lease(1, 60_000);
    let waits = world.send(Command::Lease(Lease { wait: true, ..Lease::new(&queue("q")) }));
    world.by_key("a", KeyAct::Release).expect("a worker has it");
    let Some(Answer::Lease(Ok(leased))) = world.answer(waits) else { panic!("it got nothing") };
    assert_eq!((leased[0].key.as_str(), leased[0].attempt), ("a", 2));
}

/// The owner wants another try: the retry policy does not end the task, but the next failure does.
#[test]
fn a_release_does_not_use_the_last_attempt_up() {
    let mut world = World::new();
    let terms = Terms { retry: Some(Retry { max_attempts: Some(1), backoff: None }), ..Terms::default() };
    world.put(Put { terms, ..Put::new(&queue("q"), key("a")) }).expect("taken");
    world.lease(1, 60_000);
    assert_eq!(world.by_key("a", KeyAct::Release).map(|task| task.state), Ok(State::Ready));
    let leased = world.lease(1, 60_000);
    assert_eq!(world.nack(leased[0].token, None), TokenAnswer::Nacked);
    assert_eq!(world.get("a").map(|task| task.state), Ok(State::Dead));
}

/// An expiry that passed while a worker had the task takes effect as soon as no worker has it.
#[test]
fn a_released_task_that_has_expired_is_dead() {
    let mut world = World::new();
    let terms = Terms { expire_after_ms: Some(50), ..Terms::default() };
    world.put(Put { terms, ..Put::new(&queue("q"), key("a")) }).expect("taken");
    world.lease(1, 60_000);
    world.pass_ms(100);
    let task = world.by_key("a", KeyAct::Release).expect("a worker has it");
    assert_eq!(task.extra.dead.map(|dead| dead.why), Some(Death::Expired));
}

#[test]
fn where_no_live_task_has_the_key_nothing_is_done() {
    let mut world = World::new();
    let both = [KeyAct::Run, KeyAct::Release];
    assert_eq!(
        both.map(|act| world.by_key("a", act)),
        [Err(ByKeyError::NotFound), Err(ByKeyError::NotFound)]
    );
    world.put_in("a", 0);
    let leased = world.lease(1, 60_000);
    assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked);
    assert_eq!(both.map(|act| world.by_key("a", act)), [Err(ByKeyError::Done), Err(ByKeyError::Done)]);
    world.put_in("b", 0);
    let leased = world.lease(1, 60_000);
    let bury = Nack { tokens: vec![leased[0].token], ..Nack::new(&queue("q"), []).buried() };
    world.ask(Command::Nack(bury));
    assert_eq!(both.map(|act| world.by_key("b", act)), [Err(ByKeyError::Dead), Err(ByKeyError::NotLeased)]);
    let mut world = world.crash();
    assert_eq!(both.map(|act| world.by_key("b", act)), [Err(ByKeyError::Dead), Err(ByKeyError::NotLeased)]);
}
