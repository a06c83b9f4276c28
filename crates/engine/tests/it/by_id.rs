//! Tasks that are known by their ids, workers that give them up or go away, and what is counted of them.

use tickwheel_engine::*;

use crate::world::*;

fn by_id(world: &mut World, id: u64, act: Act) -> Result<Acted, ByIdError> {
    let Answer::ById(result) =
        world.ask(Command::ById(ById { id, act, within: None, if_version: None, worker: None }))
    else {
        panic!("another answer")
    };
    result
}

fn look(world: &mut World, id: u64) -> TaskView {
    match by_id(world, id, Act::Get) {
        Ok(Acted::Task(task)) => *task,
        other => panic!("{other:?}"),
    }
}

fn take(world: &mut World, id: u64) -> Leased {
    match by_id(world, id, Act::Lease { lease_ms: None }) {
        Ok(Acted::Leased(leased)) => *leased,
        other => panic!("{other:?}"),
    }
}

fn nack(world: &mut World, leased: &Leased, nack: Nack) -> TokenAnswer {
    let nack = Nack { queue: leased.queue.clone(), tokens: vec![leased.token], ..nack };
    let Answer::Nack(result) = world.ask(Command::Nack(nack)) else { panic!("another answer") };
    result.expect("answered")[0]
}

fn plain() -> Nack {
    Nack::new(&queue("q"), [])
}

fn dead(world: &mut World, why: Option<Death>) -> Vec<u64> {
    let filter = TaskFilter { why, ..TaskFilter::in_state(State::Dead) };
    let list = List { filter, ..List::new(&queue("q")) };
    let Answer::List(Ok(page)) = world.ask(Command::List(list)) else { panic!("no page") };
    page.tasks.iter().map(|task| task.id).collect()
}

#[test]
fn the_delay_that_a_task_was_given_stays_known_when_it_lives_again() {
    let mut world = World::new();
    let id = world.put_in("a", 700).task.id;
    world.pass_ms(3_000);
    let leased = take(&mut world, id);
    assert_eq!(nack(&mut world, &leased, plain().buried()), TokenAnswer::Nacked);
    world.pass_ms(2_000);
    by_id(&mut world, id, Act::Run).expect("it lives again");
    assert_eq!(look(&mut world, id).extra.tally.delay_ms, Some(700));
}

const YEAR_MS: u64 = 365 * 86_400_000;

#[test]
fn a_task_is_found_by_its_id_in_whatever_queue_it_is() {
    let mut world = World::new();
    let far = world.put_in("far", YEAR_MS).task.id;
    let other = world.put(Put::new(&queue("shop/close"), key("a"))).expect("taken").task.id;
    let mut world = world.crash();
    assert_eq!(look(&mut world, far).key, key("far"));
    assert_eq!(
        (look(&mut world, other).queue, look(&mut world, other).state),
        (queue("shop/close"), State::Ready)
    );
    assert_eq!(by_id(&mut world, 99_999, Act::Get), Err(ByIdError::NotFound));
    for (id, found) in [(other, true), (far, false)] {
        let within = Some("shop/".into());
        let Answer::ById(result) =
            world.ask(Command::ById(ById { id, act: Act::Cancel, within, if_version: None, worker: None }))
        else {
            panic!("another answer")
        };
        assert_eq!(result.is_ok(), found, "{result:?}");
    }
    assert_eq!(by_id(&mut world, other, Act::Get), Err(ByIdError::NotFound));
    assert_eq!(by_id(&mut world, far, Act::Cancel), Ok(Acted::Cancelled));
    assert_eq!(world.get("far"), Err(GetError::NotFound));
}

/// A caller that found a task does nothing to it once it was changed, whether memory or the store has it.
#[test]
fn a_task_in_another_version_is_not_the_one_that_is_meant() {
    let mut world = World::new();
    let id = world.put_in("far", YEAR_MS).task.id;
    let found = look(&mut world, id).version;
    by_id(&mut world, id, Act::Run).expect("run");
    let now = look(&mut world, id).version;
    let cancel = |world: &mut World, version| {
        let by_id = ById { id, act: Act::Cancel, within: None, if_version: Some(version), worker: None };
        let Answer::ById(result) = world.ask(Command::ById(by_id)) else { panic!("another answer") };
        result
    };
    assert_eq!(cancel(&mut world, found), Err(ByIdError::NotFound));
    let mut world = world.crash();
    assert_eq!(cancel(&mut world, found), Err(ByIdError::NotFound));
    assert_eq!(look(&mut world, id).version, now, "it is as it was");
    assert_eq!(cancel(&mut world, now), Ok(Acted::Cancelled));
}

#[test]
fn a_task_can_be_made_due_before_its_time_and_that_is_kept() {
    let mut world = World::new();
    let id = world.put_in("a", YEAR_MS).task.id;
    let before = look(&mut world, id);
    assert_eq!((before.state, before.due_at), (State::Scheduled, ms(YEAR_MS as i64)));
    world.pass_ms(5);
    let Ok(Acted::Task(task)) = by_id(&mut world, id, Act::Run) else { panic!("not run") };
    assert_eq!((task.state, task.due_at, task.extra.tally.redrives), (State::Ready, ms(5), 1));
    assert!(task.version > before.version, "its owner changed it");
    assert_eq!(task.extra.tally.delay_ms, Some(YEAR_MS), "it is known what had been asked for");
    assert_eq!(by_id(&mut world, id, Act::Run), Err(ByIdError::Ready));
    let mut world = world.crash();
    assert_eq!(look(&mut world, id).due_at, ms(5));
    let leased = world.lease(1, 1_000);
    assert_eq!(leased[0].id, id);
    assert_eq!(by_id(&mut world, id, Act::Run), Err(ByIdError::Leased));
    assert_eq!(by_id(&mut world, id, Act::Cancel), Err(ByIdError::Leased));
}

#[test]
fn a_worker_may_take_this_very_task_whatever_holds_its_queue_up() {
    let mut world = World::new();
    let settings = QueueSettings { max_in_flight: Some(1), ..QueueSettings::default() };
    for change in [QueueChange::Settings(settings), QueueChange::Pause { ms: None }] {
        world.ask(Command::ChangeQueue(ChangeQueue { queue: queue("q"), change }));
    }
    let put = Put { ttr_ms: Some(7_000), ..Put::new(&queue("q"), key("ready")) };
    let ready = world.put(put).expect("taken").task.id;
    let far = world.put_in("far", YEAR_MS).task;
    assert_eq!(take(&mut world, ready).lease_until, ms(7_000), "as its producer chose");
    assert_eq!(by_id(&mut world, ready, Act::Lease { lease_ms: None }), Err(ByIdError::Leased));
    let leased = take(&mut world, far.id);
    assert_eq!((leased.due_at, leased.lease_until), (ms(0), ms(30_000)));
    assert_eq!(world.counts(), (0, 0, 2));
    // To take it was no change of its owner; and it is ready, not scheduled, from now on.
    assert_eq!(look(&mut world, far.id).version, far.version);
    assert_eq!(nack(&mut world, &leased, Nack { delay_ms: Some(0), ..plain() }), TokenAnswer::Nacked);
    assert_eq!(
        (look(&mut world, far.id).state, look(&mut world, far.id).extra.tally.redrives),
        (State::Ready, 0)
    );
}

#[test]
fn what_a_worker_gave_up_is_kept_in_order_and_for_ever() {
    let mut world = World::new();
    let ids: Vec<u64> = (0..4).map(|n| world.put_in(&format!("t{n}"), 0).task.id).collect();
    let leased = world.lease(4, 60_000);
    for at in [2, 0, 3] {
        let buried = Nack { priority: Some(9), ..plain().buried() };
        assert_eq!(nack(&mut world, &leased[at], buried), TokenAnswer::Nacked);
    }
    assert_eq!(world.ack(leased[0].token), TokenAnswer::Expired);
    let in_order = [ids[2], ids[0], ids[3]];
    assert_eq!(dead(&mut world, Some(Death::Buried)), in_order, "all in one millisecond");
    assert_eq!(dead(&mut world, None), in_order);
    assert_eq!(dead(&mut world, Some(Death::Expired)), []);
    let task = look(&mut world, ids[2]);
    assert_eq!(task.extra.dead.map(|dead| dead.why), Some(Death::Buried));
    assert_eq!((task.extra.failures[0].how, task.priority, task.extra.tally.burials), (Failed::Buried, 9, 1));

    let mut world = world.crash();
    world.pass_ms(300 * YEAR_MS);
    assert_eq!(dead(&mut world, None), in_order);
    let Ok(Acted::Task(task)) = by_id(&mut world, ids[0], Act::Run) else { panic!("it lives again") };
    assert_eq!((task.state, task.priority, task.extra.tally.redrives), (State::Ready, 9, 1));
    assert_eq!(take(&mut world, ids[3]).attempt, 1, "a worker may take one that was given up");
    assert_eq!(by_id(&mut world, ids[2], Act::Cancel), Ok(Acted::Cancelled));
    assert_eq!(dead(&mut world, None), []);
}

#[test]
fn a_dead_task_lives_again_only_if_no_task_has_its_key() {
    let mut world = World::new();
    let first = world.put_in("a", 0).task.id;
    let leased = world.lease(1, 60_000);
    nack(&mut world, &leased[0], plain().buried());
    let second = world.put_in("a", YEAR_MS).task.id;
    let mut world = world.crash();
    for act in [Act::Run, Act::Lease { lease_ms: None }] {
        let refused = by_id(&mut world, first, act);
        assert!(matches!(refused, Err(ByIdError::Live { id, .. }) if id == second), "{refused:?}");
    }
    assert_eq!(look(&mut world, first).state, State::Dead);
    by_id(&mut world, second, Act::Cancel).expect("cancelled");
    assert_eq!(take(&mut world, first).key, key("a"));
    assert_eq!(world.get("a").expect("there").id, first);
}

#[test]
fn a_worker_that_goes_away_has_tried_and_a_policy_counts_that() {
    let mut world = World::new();
    let backoff = Backoff { doubles: false, base_ms: 5_000, max_ms: 5_000, jitter_percent: 0 };
    let retry = Some(Retry { max_attempts: Some(2), backoff: Some(backoff) });
    let terms = Terms { retry, ..Terms::default() };
    let id = world.put(Put { terms, ..Put::new(&queue("q"), key("a")) }).expect("taken").task.id;
    let gone = Nack { how: NackHow::Gone, delay_ms: Some(9_000), ..plain() };
    let leased = world.lease(1, 60_000);
    assert_eq!(nack(&mut world, &leased[0], gone.clone()), TokenAnswer::Nacked);
    let task = look(&mut world, id);
    assert_eq!((task.state, task.attempt, task.extra.failures[0].how), (State::Ready, 1, Failed::Gone));
    let counted = Tally { leases: 1, ..Tally::default() };
    assert_eq!(task.extra.tally, counted, "neither given back nor run out");
    let leased = world.lease(1, 60_000);
    nack(&mut world, &leased[0], gone);
    assert_eq!(look(&mut world, id).extra.dead.map(|dead| dead.why), Some(Death::MaxAttempts));
}

#[test]
fn a_task_keeps_its_place_unless_it_is_given_another_priority_or_a_delay() {
    let mut world = World::new();
    let ids: Vec<u64> = (0..3).map(|n| world.put_in(&format!("t{n}"), 0).task.id).collect();
    world.pass_ms(50);
    let at_once = |priority| Nack { delay_ms: Some(0), priority, ..plain() };
    let leased = world.lease(1, 60_000);
    nack(&mut world, &leased[0], at_once(None));
    assert_eq!(world.lease(1, 60_000)[0].id, ids[0], "its old place");
    let leased = take(&mut world, ids[2]);
    nack(&mut world, &leased, at_once(Some(5)));
    let mut world = world.crash();
    let leased = world.lease(1, 60_000);
    assert_eq!((leased[0].id, leased[0].priority), (ids[2], 5));
    nack(&mut world, &leased[0], Nack { delay_ms: Some(3_000), priority: Some(0), ..plain() });
    let task = look(&mut world, ids[2]);
    assert_eq!((task.state, task.priority, task.extra.tally.delay_ms), (State::Scheduled, 0, Some(3_000)));
    let counts = Tally { leases: 2, nacks: 2, delay_ms: Some(3_000), ..Tally::default() };
    assert_eq!(task.extra.tally, counts);
}

#[test]
fn a_lease_is_as_long_as_its_worker_its_task_or_its_queue_says() {
    let mut world = World::new();
    let settings = QueueSettings { default_lease_ms: Some(9_000), ..QueueSettings::default() };
    let change = QueueChange::Settings(settings);
    world.ask(Command::ChangeQueue(ChangeQueue { queue: queue("q"), change }));
    world.put(Put { ttr_ms: Some(1_000), ..Put::new(&queue("q"), key("a")) }).expect("taken");
    world.put_in("b", 0);
    let mut world = world.crash();
    let asked = |world: &mut World, lease_ms, max| {
        let lease = Lease { lease_ms, ..Lease::new(&queue("q")).max(max) };
        let Answer::Lease(result) = world.ask(Command::Lease(lease)) else { panic!("another answer") };
        result.expect("granted")
    };
    let until = |leased: &[Leased]| leased.iter().map(|one| one.lease_until).collect::<Vec<_>>();
    let leased = asked(&mut world, None, 2);
    assert_eq!(until(&leased), [ms(1_000), ms(9_000)]);
    let extend = Extend { lease_ms: None, ..Extend::new(&queue("q"), [leased[0].token], Default::default()) };
    world.pass_ms(900);
    world.ask(Command::Extend(extend));
    assert_eq!(look(&mut world, leased[0].id).leased_until, Some(ms(1_900)));
    world.pass_ms(1_000);
    let task = look(&mut world, leased[0].id);
    assert_eq!((task.state, task.extra.tally.expiries, task.leased_until), (State::Ready, 1, None));
    assert_eq!(until(&asked(&mut world, Some(50), 1)), [ms(1_950)]);
}

/// The server makes keys out of numbers, and so may any client.
#[test]
fn a_number_that_is_an_owners_key_is_given_to_no_other_task() {
    let mut world = World::new();
    world.put_in("3", YEAR_MS);
    world.put_in("4500", YEAR_MS);
    let fresh = |world: &mut World| world.put(Put::without_key(&queue("q"))).expect("taken").task;
    let keys: Vec<String> = (0..2).map(|_| fresh(&mut world).key.as_str().to_owned()).collect();
    assert_eq!(keys, ["4", "5"], "3 is somebody's");
    let mut world = world.crash();
    for _ in 0..500 {
        let task = fresh(&mut world);
        assert!(task.id != 4_500 && task.key.as_str() == task.id.to_string(), "{task:?}");
    }
    assert_eq!(world.get("4500").expect("there").due_at, ms(YEAR_MS as i64), "it is as it was");
}

/// Order numbers serve as keys, and no id ever gets as high as they are. So a put without a key looks nothing up, also after a crash.
#[test]
fn a_number_that_no_id_gets_to_costs_those_without_a_key_nothing() {
    let mut world = World::new();
    for key in ["20261123000017", "7", "007", "+8", "1"] {
        world.put_in(key, YEAR_MS);
    }
    let first = world.put(Put::without_key(&queue("q"))).expect("taken").task.id;
    assert!(first < 7, "{first}");
    let mut world = world.crash();
    world.hold_reads = true;
    for _ in 0..100 {
        let task = world.put(Put::without_key(&queue("q"))).expect("taken").task;
        assert_eq!(task.key.as_str(), task.id.to_string());
    }
    assert_eq!(world.reads_held(), 0);
}

/// The story: a cancelled task was handed out. One reply answered two looks at it, and the first of them let the entry go that knew better
/// than the reply.
#[test]
fn two_looks_in_one_reply_see_the_same() {
    let mut world = World::new();
    let id = world.put_in("a", YEAR_MS).task.id;
    let act = |act| Command::ById(ById { id, act, within: None, if_version: None, worker: None });
    let lease = || act(Act::Lease { lease_ms: None });
    world.hold_reads = true;
    let leases = world.send_together([lease(), lease()]);
    assert_eq!(world.reads_held(), 1, "both are asked for together");
    let cancel = world.send(act(Act::Cancel));
    world.release_last_read();
    assert!(matches!(world.answer(cancel), Some(Answer::ById(Ok(Acted::Cancelled)))));
    world.release();
    for lease in leases {
        let answer = world.answer(lease);
        assert!(matches!(answer, Some(Answer::ById(Err(ByIdError::NotFound)))), "{answer:?}");
    }
}
