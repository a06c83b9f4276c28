//! Tasks that are tried again, given up, looked at, redriven and forgotten.

use tickwheel_engine::*;

use crate::world::*;

const DAY_MS: u64 = 86_400_000;

fn tried(max_attempts: u32, backoff: Option<Backoff>) -> Terms {
    let retry = Some(Retry { max_attempts: Some(max_attempts), backoff });
    Terms { retry, ..Terms::default() }
}

fn expiring(after_ms: u64) -> Terms {
    Terms { expire_after_ms: Some(after_ms), ..Terms::default() }
}

fn put(name: &str, terms: Terms) -> Put {
    Put { terms, ..Put::new(&queue("q"), key(name)) }
}

/// scheduled, ready, leased, dead.
fn counts(world: &mut World) -> (u64, u64, u64, u64) {
    let all = world.all_counts();
    let of = |counts: &QueueCounts| (counts.scheduled, counts.ready, counts.leased, counts.dead);
    all.first().map_or((0, 0, 0, 0), of)
}

fn redrive(world: &mut World, id: u64) -> Result<TaskView, RedriveError> {
    let command = Command::Redrive(Redrive { queue: queue("q"), id });
    let Answer::Redrive(result) = world.ask(command) else { panic!("another answer") };
    result
}

fn fail(world: &mut World, reason: Option<&str>) {
    let leased = world.lease(1, 1_000);
    let nack = Nack { reason: reason.map(Into::into), ..Nack::new(&queue("q"), [leased[0].token]) };
    assert_eq!(world.ask(Command::Nack(nack)), Answer::Nack(Ok(vec![TokenAnswer::Nacked])));
}

/// Puts a task that fails once and is dead.
fn dead(world: &mut World, name: &str) -> TaskView {
    world.put(put(name, tried(1, None))).expect("taken");
    fail(world, Some("no money"));
    world.get(name).expect("it is shown")
}

/// The story: a queue was drained, and a redrive of its dead tasks filled it again. A redrive, a run and a lease by the id all make a dead task live.
#[test]
fn a_queue_that_drains_brings_no_dead_task_back() {
    let mut world = World::new();
    let task = dead(&mut world, "a");
    let waits = world.put_in("b", 5_000).task.id;
    crate::flow::change(&mut world, QueueChange::Drain).expect("taken");
    assert_eq!(redrive(&mut world, task.id), Err(RedriveError::Draining));
    let by_id = |world: &mut World, id, act| {
        let by_id = ById { id, act, within: None, if_version: None, worker: None };
        let Answer::ById(result) = world.ask(Command::ById(by_id)) else { panic!("another answer") };
        result
    };
    for act in [Act::Run, Act::Lease { lease_ms: None }] {
        assert_eq!(by_id(&mut world, task.id, act), Err(ByIdError::Draining), "{act:?}");
    }
    assert_eq!(counts(&mut world), (1, 0, 0, 1));
    assert!(by_id(&mut world, waits, Act::Run).is_ok(), "what is live may be run");
    crate::flow::change(&mut world, QueueChange::Resume).expect("taken");
    assert!(redrive(&mut world, task.id).is_ok());
}

#[test]
fn a_task_is_dead_after_as_many_attempts_as_its_policy_allows() {
    let mut world = World::new();
    world.put(put("a", tried(3, None))).expect("taken");
    fail(&mut world, Some("no money"));
    let leased = world.lease(1, 1_000);
    assert_eq!(leased[0].attempt, 2);
    world.pass_ms(1_000);
    let world_now = world.now.wall;
    fail(&mut world, None);
    let task = world.get("a").expect("it is shown");
    assert_eq!((task.state, task.attempt, task.due_at), (State::Dead, 3, ms(0)));
    let dead = task.extra.dead.expect("it is dead");
    assert_eq!((dead.at, dead.why), (world_now, Death::MaxAttempts));
    let failures: Vec<_> =
        task.extra.failures.iter().map(|f| (f.attempt, f.how, f.reason.as_deref())).collect();
    assert_eq!(
        failures,
        [(1, Failed::Nacked, Some("no money")), (2, Failed::LeaseEnded, None), (3, Failed::Nacked, None)]
    );
    assert_eq!(counts(&mut world), (0, 0, 0, 1));
    assert_eq!(world.lease(9, 1_000), []);
    assert_eq!(world.list(None), [], "a list shows what lives");
    assert_eq!(world.list(Some(State::Dead)), [("a".to_owned(), State::Dead)]);
    let mut world = world.crash();
    assert_eq!(world.get("a"), Ok(task), "also after a crash");
    assert_eq!(counts(&mut world), (0, 0, 0, 1));
    assert_eq!(world.lease(9, 1_000), []);
}

#[test]
fn a_nack_waits_as_the_policy_says_unless_it_names_a_delay() {
    let mut world = World::new();
    let backoff = Backoff { doubles: true, base_ms: 100, max_ms: 250, jitter_percent: 0 };
    world.put(put("a", tried(9, Some(backoff)))).expect("taken");
    for (wait, attempt) in [(100, 2), (200, 3), (250, 4), (250, 5)] {
        fail(&mut world, None);
        assert_eq!(counts(&mut world), (1, 0, 0, 0), "attempt {attempt} waits");
        world.pass_ms(wait - 1);
        assert_eq!(world.lease(1, 1_000), [], "attempt {attempt} waits {wait} ms");
        world.pass_ms(1);
        assert_eq!(counts(&mut world), (0, 1, 0, 0));
    }
    let leased = world.lease(1, 1_000);
    assert_eq!(world.nack(leased[0].token, Some(5)), TokenAnswer::Nacked);
    world.pass_ms(5);
    let leased = world.lease(1, 1_000);
    assert_eq!(leased[0].attempt, 6);
    // A lease that runs out does not wait.
    world.pass_ms(1_000);
    assert_eq!(world.lease(1, 1_000)[0].attempt, 7);
}

#[test]
fn what_chance_leaves_out_of_a_wait_is_the_same_whenever_it_is_asked() {
    let due = |name: &str| {
        let mut world = World::new();
        let backoff = Backoff { doubles: false, base_ms: 10_000, max_ms: 10_000, jitter_percent: 50 };
        world.put(put(name, tried(9, Some(backoff)))).expect("taken");
        fail(&mut world, None);
        world.get(name).expect("live").due_at
    };
    assert_eq!(due("a"), due("a"), "the machine draws nothing");
    assert!((ms(5_000)..=ms(10_000)).contains(&due("a")));
}

#[test]
fn a_task_that_expires_while_no_worker_has_it_is_dead() {
    let mut world = World::new();
    world.put(put("ready", expiring(500))).expect("taken");
    world.put(put("later", expiring(500)).at(ms(400))).expect("taken");
    world.put(put("leased", expiring(500))).expect("taken");
    world.put_in("other", 0);
    let leased = world.lease(9, 600);
    assert_eq!(keys(&leased), ["ready", "leased", "other"]);
    assert_eq!(world.nack(leased[0].token, None), TokenAnswer::Nacked);
    world.pass_ms(499);
    assert_eq!(counts(&mut world), (0, 2, 2, 0));
    world.pass_ms(1);
    assert_eq!(counts(&mut world), (0, 0, 2, 2), "to the millisecond, without anybody asking");
    assert_eq!(world.get("later").expect("shown").extra.dead.expect("dead").why, Death::Expired);
    // A task that was leased by then may still be finished, but it is not tried again.
    assert_eq!(world.nack(leased[1].token, None), TokenAnswer::Nacked);
    let task = world.get("leased").expect("shown");
    assert_eq!((task.state, task.extra.dead.map(|dead| dead.why)), (State::Dead, Some(Death::Expired)));
    assert_eq!(counts(&mut world), (0, 0, 1, 3));
}

#[test]
fn a_nack_does_not_put_a_task_off_beyond_its_expiry() {
    let mut world = World::new();
    world.put(put("a", expiring(500))).expect("taken");
    let leased = world.lease(1, 1_000);
    assert_eq!(world.nack(leased[0].token, Some(10_000)), TokenAnswer::Nacked);
    assert_eq!(world.get("a").expect("live").due_at, ms(500));
    world.pass_ms(500);
    assert_eq!(world.get("a").expect("shown").state, State::Dead);
}

#[test]
fn expired_while_the_machine_was_down() {
    for horizon_ms in [2, 3_600_000] {
        let mut world = World::with(EngineConfig { horizon_ms, ..EngineConfig::default() });
        world.put(put("a", expiring(60_000)).at(ms(30_000))).expect("taken");
        world.now.wall = ms(100_000);
        let mut world = world.crash();
        world.pass_ms(0);
        assert_eq!(counts(&mut world), (0, 0, 0, 1), "horizon {horizon_ms}");
        assert_eq!(world.lease(1, 1_000), []);
    }
}

#[test]
fn what_would_expire_before_it_is_due_is_refused() {
    let mut world = World::new();
    let early = put("a", expiring(500)).at(ms(500));
    let refused = PutError::ExpiresFirst { expire_at: ms(500), due_at: ms(500) };
    assert_eq!(world.put(early), Err(refused));
    assert_eq!(
        world.put(put("a", expiring(0))),
        Err(PutError::ExpiresFirst { expire_at: ms(0), due_at: ms(0) })
    );
    world.put(put("a", expiring(500)).at(ms(499))).expect("taken");
    let patch = || Patch::new(&queue("q"), key("a"));
    let refused = PatchError::ExpiresFirst { expire_at: ms(500), due_at: ms(600) };
    assert_eq!(world.patch(patch().at(ms(600))), Err(refused));
    let longer = Patch { expire_after_ms: Some(Some(700)), ..patch().at(ms(600)) };
    assert_eq!(world.patch(longer).expect("taken").extra.expire_at, Some(ms(700)));
    let never = Patch { expire_after_ms: Some(None), ..patch() };
    assert_eq!(world.patch(never).expect("taken").extra.expire_at, None);
    world.pass_ms(700);
    assert_eq!(counts(&mut world), (0, 1, 0, 0));
}

#[test]
fn the_key_of_a_dead_task_is_free() {
    let mut world = World::new();
    let first = dead(&mut world, "a");
    let patch = Patch { due: Some(Due::Now), ..Patch::new(&queue("q"), key("a")) };
    assert_eq!(world.patch(patch), Err(PatchError::Dead));
    let replace = Put { mode: PutMode::Replace, ..Put::new(&queue("q"), key("a")) };
    assert_eq!(world.put(replace), Err(PutError::NotFound));
    let create = Put { mode: PutMode::Create, ..put("a", tried(1, None)) };
    let second = world.put(create).expect("the key is free");
    assert!(second.created && second.task.id != first.id);
    assert_eq!(world.get("a").expect("live").id, second.task.id);
    // The older one is found by its id alone; a redrive onto a live key is refused.
    let version = second.task.version;
    assert_eq!(redrive(&mut world, first.id), Err(RedriveError::Live { id: second.task.id, version }));
    assert_eq!(world.list(Some(State::Dead)).len(), 1);
    fail(&mut world, None);
    assert_eq!(counts(&mut world), (0, 0, 0, 2));
    let mut world = world.crash();
    assert_eq!(world.get("a").expect("shown").id, second.task.id, "the key leads to the last");
    // The older one takes the key again, and the younger is found by its id.
    assert_eq!(redrive(&mut world, first.id).expect("the key is free").state, State::Ready);
    assert_eq!(world.get("a").expect("live").id, first.id);
    let mut world = world.crash();
    assert_eq!(world.get("a").expect("live").id, first.id);
    assert_eq!(counts(&mut world), (0, 1, 0, 1));
    assert!(matches!(redrive(&mut world, second.task.id), Err(RedriveError::Live { .. })));
}

#[test]
fn a_redriven_task_begins_anew_and_keeps_its_story() {
    let mut world = World::new();
    let before = dead(&mut world, "a");
    world.pass_ms(5_000);
    let after = redrive(&mut world, before.id).expect("it is dead");
    assert_eq!((after.id, after.state, after.due_at, after.attempt), (before.id, State::Ready, ms(5_000), 0));
    assert!(after.version > before.version && after.extra.dead.is_none());
    assert_eq!(after.extra.failures, before.extra.failures);
    assert_eq!(redrive(&mut world, before.id), Err(RedriveError::NotFound), "it is not dead any more");
    let leased = world.lease(1, 1_000);
    assert_eq!(leased[0].attempt, 1);
    assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked);
    assert_eq!(redrive(&mut world, before.id), Err(RedriveError::NotFound));
    assert_eq!(redrive(&mut world, 99), Err(RedriveError::NotFound));
}

#[test]
fn an_expired_task_that_is_redriven_expires_no_more() {
    let mut world = World::new();
    world.put(put("a", expiring(10))).expect("taken");
    world.pass_ms(10);
    let id = world.get("a").expect("shown").id;
    assert_eq!(redrive(&mut world, id).expect("dead").extra.expire_at, None);
    world.pass_ms(100_000);
    assert_eq!(counts(&mut world), (0, 1, 0, 0));
}

#[test]
fn a_cancel_ends_a_dead_task_and_time_forgets_it() {
    let mut world = World::new();
    dead(&mut world, "a");
    assert_eq!(world.cancel("a"), Ok(Cancelled::Cancelled));
    assert_eq!((world.cancel("a"), counts(&mut world)), (Err(CancelError::NotFound), (0, 0, 0, 0)));
    for budget in [512, 256 << 20] {
        let mut world = World::with(EngineConfig { near_bytes_max: budget, ..EngineConfig::default() });
        for n in 0..20 {
            dead(&mut world, &format!("k{n}"));
        }
        world.pass_ms(30 * DAY_MS - 1);
        assert_eq!(counts(&mut world), (0, 0, 0, 20), "budget {budget}");
        world.pass_ms(1);
        assert_eq!(counts(&mut world), (0, 0, 0, 0), "budget {budget}");
        assert_eq!(world.get("k3"), Err(GetError::NotFound));
        assert_eq!(world.list(Some(State::Dead)), []);
    }
}

#[test]
fn tokens_of_a_dead_task_are_expired() {
    let mut world = World::new();
    world.put(put("a", tried(1, None))).expect("taken");
    let leased = world.lease(1, 1_000);
    assert_eq!(world.nack(leased[0].token, None), TokenAnswer::Nacked);
    assert_eq!(world.ack(leased[0].token), TokenAnswer::Expired);
    let mut world = world.crash();
    assert_eq!(world.ack(leased[0].token), TokenAnswer::Expired);
    assert_eq!(counts(&mut world), (0, 0, 0, 1));
}

/// The story: a redrive by id took a live far task into memory, where nothing looked after it, and it never fired.
#[test]
fn a_redrive_of_what_is_not_dead_leaves_it_where_it_is() {
    let mut world = World::with(EngineConfig { horizon_ms: 2, ..EngineConfig::default() });
    let id = world.put_in("far", 60_000).task.id;
    assert_eq!(world.engine.tasks_in_memory(), 0);
    for of in ["q", "other"] {
        let command = Command::Redrive(Redrive { queue: queue(of), id });
        assert_eq!(world.ask(command), Answer::Redrive(Err(RedriveError::NotFound)));
        assert_eq!(world.engine.tasks_in_memory(), 0, "asked of queue {of}");
    }
    let buried = dead(&mut world, "dead");
    let command = Command::Redrive(Redrive { queue: queue("other"), id: buried.id });
    assert_eq!(world.ask(command), Answer::Redrive(Err(RedriveError::NotFound)));
    assert_eq!(world.engine.tasks_in_memory(), 0);
    world.pass_ms(60_000);
    assert_eq!(keys(&world.lease(9, 1_000)), ["far"]);
    world.pass_ms(30 * DAY_MS);
    assert_eq!(counts(&mut world).3, 0, "the dead one is forgotten");
}

/// The story: the store had failed, and a dead stub whose time had come was fetched again and again for ever.
#[test]
fn a_failed_store_forgets_no_task_and_the_engine_still_stops() {
    for budget in [512, 256 << 20] {
        let mut world = World::with(EngineConfig { near_bytes_max: budget, ..EngineConfig::default() });
        for n in 0..9 {
            world.put(put(&format!("k{n}"), tried(1, None)).payload(vec![b'x'; 5_000])).expect("taken");
            fail(&mut world, None);
        }
        world.pass_ms(30 * DAY_MS - 5_000);
        assert_eq!(counts(&mut world), (0, 0, 0, 9));
        world.fail_commits = true;
        world.send(Command::Put(Put::new(&queue("q"), key("last straw"))));
        world.pass_ms(5_000);
        world.pass_ms(60_000);
        world.input(Input::Stop);
        assert!(world.stopped, "budget {budget}");
    }
}

/// The story: a redrive failed to be written down, and the one behind it, whose look at the store ended after that, was told that there is
/// no such dead task.
#[test]
fn a_redrive_that_failed_to_be_written_down_is_unknown_to_the_next() {
    let mut world = World::new();
    let id = world.put(put("a", tried(1, None))).expect("taken").task.id;
    fail(&mut world, None);
    let mut world = world.crash();
    world.hold_reads = true;
    let redrive = || Command::Redrive(Redrive { queue: queue("q"), id });
    let calls = [world.send(redrive()), world.send(redrive())];
    assert_eq!(world.reads_held(), 2);
    world.fail_commits = true;
    world.release_last_read();
    world.hold_reads = false;
    world.release();
    for call in calls {
        let answer = world.answer(call);
        assert!(matches!(answer, Some(Answer::Redrive(Err(RedriveError::Unavailable(_))))), "{answer:?}");
    }
}

#[test]
fn what_has_expired_is_dead_from_the_first_look_after_a_start() {
    for budget in [512, 256 << 20] {
        let config = EngineConfig { near_bytes_max: budget, ..EngineConfig::default() };
        let mut world = World::with(config);
        for n in 0..9 {
            let put = put(&format!("k{n}"), expiring(60_000)).at(ms(30_000));
            world.put(put.payload(vec![b'x'; 5_000])).expect("taken");
        }
        world.now.wall = ms(100_000);
        let mut world = world.crash();
        assert_eq!(counts(&mut world), (0, 0, 0, 9), "budget {budget}");
        assert_eq!(world.list(Some(State::Ready)), []);
        assert_eq!(world.get("k3").expect("shown").state, State::Dead);
        let create = Put { mode: PutMode::Create, ..Put::new(&queue("q"), key("k4")) };
        assert!(world.put(create).expect("the key is free").created);
        assert_eq!(keys(&world.lease(9, 1_000)), ["k4"]);
    }
}

/// The story: an expiry that passed while its task was leased was not watched any more when the clock stepped back.
#[test]
fn an_expiry_counts_again_after_a_step_back_of_the_clock() {
    let mut world = World::new();
    world.put(put("a", expiring(500))).expect("taken");
    let leased = world.lease(1, 10_000);
    world.pass_ms(600);
    world.step_wall_ms(-400);
    assert_eq!(world.nack(leased[0].token, None), TokenAnswer::Nacked);
    assert_eq!(counts(&mut world), (0, 1, 0, 0));
    world.pass_ms(300);
    assert_eq!(counts(&mut world), (0, 0, 0, 1));
}

#[test]
fn the_end_of_a_task_that_lost_its_key_says_nothing_of_the_key() {
    let mut world = World::new();
    let history = Some(Retention { keep_ms: 90 * DAY_MS, keys: 10 });
    let change = QueueChange::Settings(QueueSettings { history, ..QueueSettings::default() });
    world.ask(Command::ChangeQueue(ChangeQueue { queue: queue("q"), change }));
    dead(&mut world, "a");
    world.put_in("a", 0);
    let leased = world.lease(1, 1_000);
    assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked);
    assert_eq!(world.get("a"), Err(GetError::Done));
    world.pass_ms(30 * DAY_MS);
    assert_eq!(counts(&mut world), (0, 0, 0, 0));
    assert_eq!(world.get("a"), Err(GetError::Done));
}

#[test]
fn the_due_time_of_a_dead_task_is_the_one_it_had() {
    let mut world = World::new();
    let backoff = Backoff { doubles: false, base_ms: 9_000, max_ms: 9_000, jitter_percent: 0 };
    world.put(put("a", tried(1, Some(backoff)))).expect("taken");
    fail(&mut world, None);
    assert_eq!(world.get("a").expect("shown").due_at, ms(0));
}

#[test]
fn a_task_that_its_target_will_never_take_is_dead_at_once_for_that_reason() {
    let table = [
        (Undeliverable::Refused, Death::Refused),
        (Undeliverable::Template, Death::Template),
        (Undeliverable::TooLarge, Death::TooLarge),
    ];
    for (why, death) in table {
        let mut world = World::new();
        world.put(put("a", tried(9, None))).expect("taken");
        let leased = world.lease(1, 1_000);
        let nack = Nack {
            delay_ms: Some(5_000),
            priority: Some(3),
            reason: Some("http 422".into()),
            ..Nack::new(&queue("q"), [leased[0].token]).undeliverable(why)
        };
        let at = world.now.wall;
        assert_eq!(world.ask(Command::Nack(nack)), Answer::Nack(Ok(vec![TokenAnswer::Nacked])));
        let mut world = world.crash();
        let task = world.get("a").expect("it is shown");
        let dead = task.extra.dead.expect("it is dead");
        assert_eq!((task.state, task.attempt, task.priority), (State::Dead, 1, 3));
        assert_eq!((dead.why, dead.at, dead.due_at), (death, at, task.put_at));
        let failure = &task.extra.failures[0];
        assert_eq!((failure.how, failure.reason.as_deref()), (Failed::Undeliverable, Some("http 422")));
        let Tally { leases, nacks, burials, expiries, .. } = task.extra.tally;
        assert_eq!((leases, nacks, burials, expiries), (1, 0, 0, 0));
        let list = List {
            filter: TaskFilter { state: Some(State::Dead), why: Some(death), ..TaskFilter::default() },
            ..List::new(&queue("q"))
        };
        let Answer::List(Ok(page)) = world.ask(Command::List(list)) else { panic!("another answer") };
        assert_eq!(page.tasks.len(), 1);
        redrive(&mut world, task.id).expect("live again");
        assert_eq!(world.lease(1, 1_000)[0].attempt, 1);
    }
}

/// A buried task is kept for ever; a task that a target refused is forgotten, as one whose attempts are used up.
#[test]
fn a_task_that_its_target_refused_is_forgotten_in_the_end() {
    let mut world = World::new();
    world.put_in("a", 0);
    let leased = world.lease(1, 1_000);
    let nack = Nack::new(&queue("q"), [leased[0].token]).undeliverable(Undeliverable::Refused);
    world.ask(Command::Nack(nack));
    world.pass_ms(EngineConfig::default().dead_ms - 1);
    assert_eq!(world.get("a").expect("it is shown").state, State::Dead);
    world.pass_ms(1);
    assert_eq!(world.get("a"), Err(GetError::NotFound));
}

#[test]
fn a_nack_with_a_floor_waits_as_the_policy_says_but_at_least_so_much() {
    let waits = |base_ms| Some(Backoff { doubles: false, base_ms, max_ms: 10_000, jitter_percent: 0 });
    // The back-off of the policy, the delay and the floor of the nack; then the wait, or `None` if the task is ready at once.
    let table = [
        (waits(700), None, None, Some(700)),
        (waits(700), None, Some(500), Some(700)),
        (waits(700), None, Some(900), Some(900)),
        (waits(700), Some(200), Some(900), Some(200)),
        (waits(700), Some(0), Some(900), None),
        (None, None, Some(900), Some(900)),
        (None, None, Some(0), None),
        (None, None, None, None),
    ];
    for (backoff, delay_ms, at_least_ms, expected) in table {
        let mut world = World::new();
        world.put(put("a", tried(9, backoff))).expect("taken");
        let leased = world.lease(1, 1_000);
        let nack = Nack { delay_ms, at_least_ms, ..Nack::new(&queue("q"), [leased[0].token]) };
        assert_eq!(world.ask(Command::Nack(nack)), Answer::Nack(Ok(vec![TokenAnswer::Nacked])));
        let task = world.get("a").expect("it is shown");
        let waited = (task.state == State::Scheduled).then(|| task.due_at.ms_since(ms(0)));
        assert_eq!(waited, expected, "{backoff:?} {delay_ms:?} {at_least_ms:?}");
        assert_eq!(task.extra.tally.delay_ms, Some(expected.unwrap_or(0)));
    }
}

#[test]
fn a_floor_beyond_the_farthest_due_time_is_refused_and_one_beyond_the_expiry_is_cut() {
    let mut world = World::new();
    world.put(put("a", expiring(5_000))).expect("taken");
    let leased = world.lease(1, 1_000);
    let nack =
        |at_least_ms| Nack { at_least_ms: Some(at_least_ms), ..Nack::new(&queue("q"), [leased[0].token]) };
    let limit_ms = EngineConfig::default().farthest_ms;
    for ms in [limit_ms + 2, u64::MAX] {
        let refused = Answer::Nack(Err(NackError::TooFar { limit_ms }));
        assert_eq!(world.ask(Command::Nack(nack(ms))), refused);
    }
    let gone = Nack { how: NackHow::Gone, ..nack(u64::MAX) };
    assert_eq!(world.get("a").expect("it is shown").state, State::Leased);
    assert_eq!(world.ask(Command::Nack(nack(limit_ms))), Answer::Nack(Ok(vec![TokenAnswer::Nacked])));
    assert_eq!(world.get("a").expect("it is shown").due_at, ms(5_000));
    assert_eq!(world.ask(Command::Nack(gone)), Answer::Nack(Ok(vec![TokenAnswer::Expired])), "it is ignored");
}
