//! Near memory keeps to its budget, and callers notice nothing of it but the time that it takes.

use std::sync::Arc;

use tickwheel_engine::*;

use crate::world::*;

const KIB: u64 = 1 << 10;

fn budget(near_bytes_max: u64) -> EngineConfig {
    EngineConfig { near_bytes_max, ..EngineConfig::default() }
}

fn put_body(world: &mut World, name: &str, delay_ms: u64, bytes: usize) {
    let body = Body::bytes(vec![b'x'; bytes]);
    let put = Put { due: Due::After { ms: delay_ms }, body, ..Put::new(&queue("q"), key(name)) };
    world.put(put).expect("taken");
}

#[test]
fn a_crowd_due_at_one_instant_is_ready_in_that_instant_though_memory_holds_a_fraction() {
    let mut world = World::with(budget(64 * KIB));
    for n in 0..3_000 {
        world.put_in(&format!("k{n:04}"), 60_000);
        assert!(world.engine.near_bytes() <= 64 * KIB, "{} bytes at {n}", world.engine.near_bytes());
    }
    assert!(world.engine.stubs_in_memory() + (world.engine.tasks_in_memory() as u64) < 1_500);
    let wake = world.engine.next_wake().wall.expect("they have to be loaded");
    assert!(wake < ms(60_000) && wake > ms(50_000), "a little ahead: {wake}");
    world.pass_ms(wake.ms_since(ms(0)));
    assert_eq!(world.engine.stubs_in_memory() + world.engine.tasks_in_memory() as u64, 3_000);
    world.pass_ms(59_999 - wake.ms_since(ms(0)));
    assert_eq!(world.counts(), (3_000, 0, 0));
    world.pass_ms(1);
    assert_eq!(world.counts(), (0, 3_000, 0));
    let bytes = world.engine.near_bytes();
    assert!(bytes <= 64 * 3_000 + 64 * KIB, "{bytes} bytes for a backlog of stubs");
    for n in 0..3_000 {
        let leased = world.lease(1, 1_000);
        assert_eq!(keys(&leased), [format!("k{n:04}")]);
        assert_eq!(leased[0].ready_at, leased[0].due_at);
        assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked);
    }
    assert_eq!(world.counts(), (0, 0, 0));
    assert_eq!(world.engine.near_bytes(), 0, "what is over leaves nothing");
}

#[test]
fn a_horizon_that_shrank_grows_again_as_memory_drains() {
    let mut world = World::with(budget(16 * KIB));
    for n in 0..400 {
        world.put_in(&format!("k{n:03}"), 1_000 + n * 1_000);
    }
    let at_first = world.engine.next_wake();
    for n in 0..200 {
        world.cancel(&format!("k{n:03}")).expect("live");
    }
    assert!(world.engine.near_bytes() > 4 * KIB, "what lies farther has been loaded");
    assert!(world.engine.near_bytes() <= 16 * KIB);
    let mut fired = Vec::new();
    while world.counts() != (0, 0, 0) {
        let wake = world.engine.next_wake().wall.expect("there is something to wait for");
        world.pass_ms(wake.ms_since(world.now.wall));
        for leased in world.lease(100, 1_000) {
            assert_eq!(leased.ready_at, leased.due_at, "{} is late", leased.key);
            world.ack(leased.token);
            fired.push(leased.key.as_str().to_owned());
        }
    }
    assert_eq!(fired, (200..400).map(|n| format!("k{n:03}")).collect::<Vec<_>>(), "after {at_first:?}");
}

#[test]
fn a_big_body_does_not_stay_while_its_task_waits() {
    let mut world = World::new();
    put_body(&mut world, "small", 1_000, 4_096);
    put_body(&mut world, "big", 1_000, 4_097);
    assert_eq!((world.engine.tasks_in_memory(), world.engine.stubs_in_memory()), (1, 1));
    assert!(world.engine.near_bytes() < 6_000);
    assert_eq!(world.get("big").expect("live").body.payload.len(), 4_097);
    assert_eq!(world.engine.stubs_in_memory(), 1, "and is not there because somebody looked");
    world.pass_ms(1_000);
    assert_eq!(world.counts(), (0, 2, 0));
    let leased = world.lease(2, 1_000);
    assert_eq!(keys(&leased), ["small", "big"]);
    assert_eq!(leased[1].body.payload.len(), 4_097);
}

#[test]
fn stubs_can_be_changed_moved_and_cancelled_by_key() {
    let mut world = World::with(budget(512));
    for name in ["a", "b", "c", "d", "e"] {
        world.put_in(name, 0);
    }
    assert_eq!(world.engine.tasks_in_memory(), 0);
    world.patch(Patch::new(&queue("q"), key("b")).payload("new")).expect("live");
    let later = Some(Due::After { ms: 50 });
    world.patch(Patch { due: later, ..Patch::new(&queue("q"), key("a")) }).expect("live");
    world.cancel("c").expect("live");
    world.put_in("d", 0);
    assert_eq!(world.counts(), (1, 3, 0));
    let leased = world.lease(9, 10);
    assert_eq!(keys(&leased), ["b", "e", "d"], "a new put has a new place, a patched body its old one");
    assert_eq!(leased[0].body.payload, b"new");
    world.nack(leased[0].token, Some(5));
    world.pass_ms(10);
    assert_eq!(keys(&world.lease(9, 100)), ["e", "d", "b"]);
    world.pass_ms(40);
    assert_eq!(keys(&world.lease(9, 100)), ["a"]);
}

#[test]
fn leases_wait_for_the_records_of_the_first_in_the_order_they_asked() {
    let mut world = World::with(budget(512));
    for n in 0..5 {
        world.put_in(&format!("k{n}"), 0);
    }
    world.hold_reads = true;
    let lease = |max, wait| {
        Command::Lease(Lease {
            queues: [queue("q")].into(),
            max,
            lease_ms: Some(1_000),
            wait,
            worker: None,
            for_target: false,
        })
    };
    let first = world.send(lease(2, false));
    let second = world.send(lease(1, true));
    let third = world.send(lease(9, false));
    let fourth = world.send(lease(1, false));
    world.input(Input::EndWait { call: second });
    for call in [first, second, third, fourth] {
        assert_eq!(world.answer(call), None, "{call:?} was answered before the records were there");
    }
    world.release();
    let mut taken = |call| {
        let Some(Answer::Lease(Ok(leased))) = world.answer(call) else { panic!("{call:?} is not answered") };
        keys(&leased).iter().map(|&key| key.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(taken(first), ["k0", "k1"]);
    assert_eq!(taken(second), ["k2"]);
    assert_eq!(taken(third), ["k3", "k4"]);
    assert_eq!(taken(fourth), [""; 0]);
}

/// Calls come in the order of the threads that send them, which is not always that of their numbers.
#[test]
fn a_lease_that_comes_late_and_stands_in_front_is_served_by_what_is_there() {
    let mut world = World::with(budget(1026));
    for name in ["a", "b", "c", "d"] {
        world.put_in(name, 0);
    }
    assert_eq!(keys(&world.lease(1, 10)), ["a"]);
    world.pass_ms(10);
    assert_eq!((world.engine.tasks_in_memory(), world.engine.stubs_in_memory()), (1, 3), "a is there whole");
    let lease = |max| {
        Command::Lease(Lease {
            queues: [queue("q")].into(),
            max,
            lease_ms: Some(1_000),
            wait: false,
            worker: None,
            for_target: false,
        })
    };
    let (first, second) = (CallId(1_000), CallId(1_001));
    let mut out = Vec::new();
    world.engine.step(world.now, Input::Call { call: second, command: lease(9) }, &mut out);
    assert!(out.is_empty(), "it waits for the records of the others: {out:?}");
    world.input(Input::Call { call: first, command: lease(1) });
    let mut taken = |call| match world.answer(call) {
        Some(Answer::Lease(Ok(leased))) => keys(&leased).join(" "),
        other => panic!("{call:?}: {other:?}"),
    };
    assert_eq!((taken(first), taken(second)), ("a".to_owned(), "b c d".to_owned()));
}

#[test]
fn a_lease_that_waits_for_a_record_when_the_machine_stops_is_not_told_that_nothing_is_ready() {
    let mut world = World::with(budget(512));
    world.put_in("a", 0);
    world.hold_reads = true;
    let lease = world.send(Command::Lease(Lease::new(&queue("q"))));
    let nothing = world.send(Command::Lease(Lease { wait: true, ..Lease::new(&queue("empty")) }));
    world.input(Input::Stop);
    world.release();
    assert_eq!(world.answer(lease), Some(Answer::Lease(Err(Unavailable::Closed))));
    assert_eq!(world.answer(nothing), Some(Answer::Lease(Ok(vec![]))));
    assert!(world.stopped);
}

/// A life after a crash, and two leases of the one before, whose tasks have to be looked up.
fn leased_in_the_life_before() -> (World, Vec<Leased>) {
    let mut world = World::with(budget(512));
    for name in ["a", "b"] {
        world.put_in(name, 0);
    }
    let leased = world.lease(2, 1_000);
    world = world.crash();
    assert_eq!(world.engine.stubs_in_memory(), 2, "the records have to be looked up");
    (world, leased)
}

#[test]
fn a_lease_extended_by_a_look_up_that_comes_back_after_the_stop_is_written_down_too() {
    let (mut world, leased) = leased_in_the_life_before();
    world.hold_reads = true;
    let calls: Vec<_> = leased
        .iter()
        .map(|one| {
            let tokens = vec![one.token];
            world.send(Command::Extend(Extend { queue: queue("q"), tokens, lease_ms: Some(5_000) }))
        })
        .collect();
    world.input(Input::Stop);
    world.release();
    for call in calls {
        assert_eq!(world.answer(call), Some(Answer::Extend(Ok(vec![TokenAnswer::Extended]))));
    }
    assert!(world.stopped);
    world = world.crash();
    assert_eq!(world.counts(), (0, 0, 2), "both leases go on");
}

#[test]
fn the_next_records_are_fetched_ahead_of_the_next_leases() {
    let mut world = World::with(budget(512 * KIB));
    for n in 0..3_000 {
        world.put_in(&format!("k{n:04}"), 1_000);
    }
    world.pass_ms(1_000);
    assert!(world.engine.stubs_in_memory() > 2_000);
    let mut waited = 0;
    for n in 0..3_000 {
        world.hold_reads = true;
        let call = world.send(Command::Lease(Lease::new(&queue("q"))));
        let at_once = world.answer(call);
        world.release();
        waited += usize::from(at_once.is_none());
        let answer = at_once.or_else(|| world.answer(call));
        let Some(Answer::Lease(Ok(leased))) = answer else { panic!("not granted") };
        assert_eq!(keys(&leased), [format!("k{n:04}")]);
        world.ack(leased[0].token);
    }
    assert!(waited < 10, "{waited} leases waited for a record");
}

#[test]
fn a_lease_after_a_leap_of_the_clock_waits_until_it_is_known_what_is_due() {
    let mut world = World::with(EngineConfig { horizon_ms: 1_000, ..budget(64 * KIB) });
    world.put_in("far", 10_000);
    world.put_in("near", 20_000);
    world.hold_reads = true;
    world.pass_ms(50_000);
    let leased = world.send(Command::Lease(Lease::new(&queue("q")).max(9)));
    let counts = world.send(Command::Queues(ListQueues::default()));
    assert_eq!((world.answer(leased), world.answer(counts)), (None, None));
    world.release();
    let Some(Answer::Lease(Ok(leased))) = world.answer(leased) else { panic!("not granted") };
    assert_eq!(keys(&leased), ["far", "near"]);
    assert!(world.answer(counts).is_some());
}

#[test]
fn a_task_written_while_its_stub_is_fetched_is_neither_lost_nor_doubled() {
    for change in ["patch", "cancel", "put", "move"] {
        let mut world = World::with(budget(512));
        for name in ["a", "b"] {
            world.put_in(name, 0);
        }
        world.hold_reads = true;
        let lease = world.send(Command::Lease(Lease::new(&queue("q"))));
        let _ = match change {
            "patch" => world.send(Command::Patch(Patch::new(&queue("q"), key("a")))),
            "cancel" => world.send(Command::Cancel(Cancel::new(&queue("q"), key("a")))),
            "put" => world.send(Command::Put(Put::new(&queue("q"), key("a")))),
            _ => {
                let due = Some(Due::After { ms: 100 });
                world.send(Command::Patch(Patch { due, ..Patch::new(&queue("q"), key("a")) }))
            }
        };
        // The look-up by key is answered first.
        world.release_last_read();
        world.release();
        let Some(Answer::Lease(Ok(leased))) = world.answer(lease) else { panic!("{change}: not granted") };
        let expected = if change == "patch" { "a" } else { "b" };
        assert_eq!(keys(&leased), [expected], "after {change}");
        let (scheduled, ready, held) = world.counts();
        let rest = match change {
            "cancel" => (0, 0, 1),
            "move" => (1, 0, 1),
            _ => (0, 1, 1),
        };
        assert_eq!((scheduled, ready, held), rest, "after {change}");
    }
}

/// A bug that was found: a stub that expired while it waited for the next instant of its timeline was counted as one of the
/// ready tasks, until its record said that it is dead.
#[test]
fn a_stub_that_expires_is_counted_dead_and_nowhere_else() {
    for (next_ms, runs, before) in [(60_000, false, (1, 1)), (60_000, true, (0, 2)), (20, false, (0, 2))] {
        let mut world = World::with(budget(512));
        let moment = |due_ms| Moment {
            at: ms(due_ms),
            payload: b"price".to_vec(),
            content_type: Arc::from("text/plain"),
        };
        let body = Body { timeline: vec![moment(0), moment(next_ms)], ..Body::default() };
        let terms = Terms { expire_after_ms: Some(5_000), ..Terms::default() };
        world.put(Put { body, terms, ..Put::new(&queue("q"), key("steps")) }).expect("taken");
        let leased = world.lease(1, 1_000);
        assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked);
        if runs {
            let id = leased[0].id;
            let run = ById { id, act: Act::Run, within: None, if_version: None, worker: None };
            assert!(matches!(world.ask(Command::ById(run)), Answer::ById(Ok(Acted::Task(_)))));
        }
        world.put_in("ready", 0);
        world.pass_ms(4_999);
        let counts = |world: &mut World| {
            let of = world.all_counts().remove(0);
            ((of.scheduled, of.ready), of.dead)
        };
        assert_eq!(counts(&mut world), (before, 0));
        assert_eq!(world.engine.tasks_in_memory(), 0, "both are stubs");
        world.hold_reads = true;
        world.pass_ms(1);
        assert_eq!(counts(&mut world), ((0, 1), 1), "next at {next_ms}");
        // Its next instant comes before its record does.
        world.pass_ms(60_000);
        assert_eq!(counts(&mut world), ((0, 1), 1), "next at {next_ms}");
        world.hold_reads = false;
        world.release();
        assert_eq!(counts(&mut world), ((0, 1), 1), "next at {next_ms}");
    }
}

/// The story: a stub had expired, and its record did not say so yet. `ready` left it out, but `urgent` and `oldest_due` told of it.
#[test]
fn a_stub_that_expires_is_neither_urgent_nor_the_oldest() {
    let mut world = World::with(budget(512));
    let terms = |priority, expire_after_ms| Terms { priority, expire_after_ms, ..Terms::default() };
    for (name, due_ms, terms) in [
        ("expires", 0, terms(1, Some(5_000))),
        ("too", 1, terms(PRIORITY_DEFAULT, Some(5_000))),
        ("urgent", 20, terms(2, None)),
        ("plain", 10, terms(PRIORITY_DEFAULT, None)),
    ] {
        let due = Due::After { ms: due_ms };
        world.put(Put { terms, due, ..Put::new(&queue("q"), key(name)) }).expect("taken");
    }
    world.pass_ms(4_999);
    assert_eq!(world.engine.tasks_in_memory(), 0, "all are stubs");
    let counts = |world: &mut World| {
        let of = world.all_counts().remove(0);
        (of.ready, of.dead, of.urgent, of.oldest_due)
    };
    assert_eq!(counts(&mut world), (4, 0, 2, Some(ms(0))));
    world.hold_reads = true;
    world.pass_ms(1);
    assert_eq!(counts(&mut world), (2, 2, 1, Some(ms(10))));
    let Answer::Queue(Ok(view)) = world.ask(Command::Queue(GetQueue(queue("q")))) else { panic!("no view") };
    assert_eq!(view.first_ready, Some(3), "a lease gets `urgent` first");
    world.hold_reads = false;
    world.release();
    assert_eq!(counts(&mut world), (2, 2, 1, Some(ms(10))));
}

/// The story: a scan of the near tasks failed. A task behind its place was due and was never loaded, so a list of scheduled tasks began behind it, and
/// no other list by state had it.
#[test]
fn a_task_that_was_never_loaded_is_in_the_list_of_its_state() {
    let mut world = World::with(EngineConfig { horizon_ms: 1_000, ..budget(1 << 20) });
    world.put_in("far", 5_000);
    world.put_in("later", 9_000_000);
    world.fail_reads = Some(|request| matches!(request, Request::ScanDue { .. }));
    world.pass_ms(6_000);
    assert!(world.engine.failure().is_some());
    let states = [State::Scheduled, State::Ready, State::Leased].map(|state| {
        let list = List { filter: TaskFilter::in_state(state), ..List::new(&queue("q")) };
        let Answer::List(Ok(page)) = world.ask(Command::List(list)) else { panic!("no page") };
        page.tasks.iter().map(|task| task.key.as_str().to_owned()).collect::<Vec<_>>()
    });
    assert_eq!(states, [vec!["far".to_owned(), "later".to_owned()], vec![], vec![]]);
}

#[test]
fn a_task_changed_while_an_older_page_is_on_its_way_is_not_taken_for_what_it_was() {
    let mut world = World::with(budget(512));
    world.put_in("a", 0);
    world.put_in("b", 0);
    world.hold_reads = true;
    let list = world.send(Command::List(List::new(&queue("q"))));
    let due = Some(Due::After { ms: 100 });
    world.send(Command::Patch(Patch { due, ..Patch::new(&queue("q"), key("a")) }));
    world.release_last_read();
    world.release();
    let Some(Answer::List(Ok(page))) = world.answer(list) else { panic!("no page") };
    let shown: Vec<_> = page.tasks.iter().map(|task| (task.key.as_str(), task.state)).collect();
    assert_eq!(shown, [("a", State::Scheduled), ("b", State::Ready)]);
    assert_eq!(world.engine.tasks_in_memory(), 0, "afterwards it leaves as well");
}

#[test]
fn a_task_moved_away_while_it_is_loaded_does_not_fire_at_its_old_time() {
    for (far_ms, near_bytes_max) in [(100_000, 512), (100_000, 1 << 20), (900, 512)] {
        let mut world = World::with(EngineConfig { horizon_ms: 1_000, ..budget(near_bytes_max) });
        for name in ["a", "b"] {
            world.put_in(name, 5_000);
        }
        world.hold_reads = true;
        world.pass_ms(4_950);
        let due = Some(Due::After { ms: far_ms });
        world.send(Command::Patch(Patch { due, ..Patch::new(&queue("q"), key("a")) }));
        world.release_last_read();
        world.release();
        assert_eq!(world.counts(), (2, 0, 0));
        world.pass_ms(50);
        assert_eq!(keys(&world.lease(9, 10_000_000)), ["b"]);
        world.pass_ms(far_ms - 51);
        assert_eq!(world.lease(9, 10_000_000), []);
        world.pass_ms(1);
        assert_eq!(keys(&world.lease(9, 10_000_000)), ["a"], "moved by {far_ms} with {near_bytes_max}");
    }
}

fn is_look_up(request: &Request) -> bool {
    matches!(request, Request::GetMany(_))
}

fn is_list(request: &Request) -> bool {
    matches!(request, Request::ScanFilter { .. })
}

fn is_scan(request: &Request) -> bool {
    matches!(request, Request::ScanDue { .. })
}

#[test]
fn a_read_that_fails_makes_the_machine_read_only_and_leaves_no_call_waiting() {
    let mut world = World::with(budget(512));
    world.put_in("a", 0);
    world.put_in("b", 0);
    let token = world.lease(1, 1_000)[0].token;
    world = world.crash();
    world.fail_reads = Some(is_look_up);
    let wait = Lease { wait: true, ..Lease::new(&queue("empty")) };
    let waiting = world.send(Command::Lease(wait));
    let read_only = |why: &Unavailable| matches!(why, Unavailable::ReadOnly { .. });
    let get = world.get("a");
    assert!(matches!(&get, Err(GetError::Unavailable(why)) if read_only(why)), "{get:?}");
    assert!(matches!(world.answer(waiting), Some(Answer::Lease(Err(why))) if read_only(&why)));
    let refused = world.ask(Command::Ack(Ack::new(&queue("q"), [token])));
    assert!(matches!(&refused, Answer::Ack(Err(why)) if read_only(why)), "{refused:?}");
    assert!(matches!(world.ask(Command::Lease(Lease::new(&queue("q")))), Answer::Lease(Err(_))));
    assert!(world.engine.is_idle());
    world.fail_reads = None;
    assert_eq!(world.list(None).len(), 2, "lists go on");
    assert_eq!(world.get("a").expect("look-ups go on").state, State::Ready);
}

#[test]
fn every_kind_of_call_that_waits_for_a_failing_look_up_is_answered() {
    let mut world = World::with(EngineConfig { horizon_ms: 100, ..budget(512) });
    world.put_in("a", 0);
    let token = world.lease(1, 1_000)[0].token;
    world = world.crash();
    world.hold_reads = true;
    let (of, name) = (queue("q"), key("far"));
    let calls = [
        Command::Put(Put::new(&of, name.clone())),
        Command::Get(Get::new(&of, name.clone())),
        Command::Patch(Patch::new(&of, name.clone())),
        Command::Cancel(Cancel::new(&of, name)),
        Command::Ack(Ack::new(&of, [token])),
        Command::Lease(Lease::new(&of)),
    ]
    .map(|command| world.send(command));
    world.fail_held();
    for call in calls {
        let answer = format!("{:?}", world.answer(call).expect("it is answered"));
        assert!(answer.contains("ReadOnly") || answer.contains("Indeterminate"), "{answer}");
    }
    assert!(world.engine.is_idle());
}

#[test]
fn a_failed_read_waits_for_the_commit_in_flight_whose_outcome_is_told_as_it_is() {
    let mut world = World::new();
    world.hold_commits = true;
    let put = world.send(Command::Put(Put::new(&queue("q"), key("a"))));
    world.fail_reads = Some(is_look_up);
    let get = world.send(Command::Get(Get::new(&queue("q"), key("other"))));
    let refused = world.send(Command::Put(Put::new(&queue("q"), key("b"))));
    assert_eq!(world.answer(put), None);
    world.release();
    assert!(matches!(world.answer(put), Some(Answer::Put(Ok(_)))), "it was durable");
    assert!(matches!(world.answer(get), Some(Answer::Get(Err(GetError::Unavailable(_))))));
    assert!(matches!(world.answer(refused), Some(Answer::Put(Err(PutError::Unavailable(_))))));
    assert!(world.engine.failure().is_some());
}

#[test]
fn counts_are_refused_once_it_cannot_be_read_what_falls_due() {
    let mut world = World::with(EngineConfig { horizon_ms: 100, ..EngineConfig::default() });
    world.put_in("a", 0);
    world.put_in("far", 10_000);
    world.fail_reads = Some(|request| matches!(request, Request::ScanDue { .. }));
    world.pass_ms(9_960);
    world.fail_reads = None;
    assert_eq!(world.counts(), (1, 1, 0), "nothing more is due yet");
    world.pass_ms(100);
    let counts = world.ask(Command::Queues(ListQueues::default()));
    assert!(matches!(counts, Answer::Queues(Err(Unavailable::ReadOnly { .. }))), "{counts:?}");
    let Answer::Stats(Ok(stats)) = world.ask(Command::Stats(GetStats(ListQueues::default()))) else {
        panic!("figures are always there")
    };
    assert!(stats.read_only);
}

#[test]
fn a_token_whose_look_up_fails_beside_a_commit_is_not_called_expired() {
    let (mut world, leased) = leased_in_the_life_before();
    world.hold_commits = true;
    let put = world.send(Command::Put(Put::new(&queue("q"), key("c"))));
    world.hold_reads = true;
    let ack = world.send(Command::Ack(Ack::new(&queue("q"), [leased[1].token])));
    world.fail_held();
    world.release();
    assert!(matches!(world.answer(put), Some(Answer::Put(Ok(_)))), "its commit was on its way and is done");
    let answer = world.answer(ack);
    assert!(matches!(answer, Some(Answer::Ack(Err(Unavailable::Indeterminate { .. })))), "{answer:?}");
}

#[test]
fn a_failed_list_and_a_failed_scan_make_the_machine_read_only() {
    let mut world = World::new();
    world.put_in("a", 50);
    world.fail_reads = Some(is_list);
    let list = world.ask(Command::List(List::new(&queue("q"))));
    assert!(matches!(list, Answer::List(Err(Unavailable::ReadOnly { .. }))), "{list:?}");
    assert!(world.engine.failure().is_some());

    let mut world = World::with(EngineConfig { horizon_ms: 100, ..EngineConfig::default() });
    world.put_in("a", 5_000);
    world.fail_reads = Some(is_scan);
    world.pass_ms(5_000);
    assert!(world.engine.failure().is_some());
    assert!(world.engine.is_idle());
    assert!(matches!(world.ask(Command::Lease(Lease::new(&queue("q")))), Answer::Lease(Err(_))));
    assert_eq!(world.get("a").expect("still readable").state, State::Ready);
    assert!(matches!(
        world.ask(Command::Queues(ListQueues::default())),
        Answer::Queues(Err(Unavailable::ReadOnly { .. }))
    ));
}

/// The story: the clock leapt, a list called a task ready that was not in memory yet, and the clock stepped back before it was: ready had
/// not stayed ready.
#[test]
fn a_list_calls_nothing_ready_that_memory_has_not_made_ready() {
    let mut world = World::with(EngineConfig { horizon_ms: 2, ..EngineConfig::default() });
    world.put_in("far", 60_000);
    assert_eq!(world.engine.tasks_in_memory(), 0);
    world.hold_reads = true;
    world.step_wall_ms(60_000);
    let list = world.send(Command::List(List::new(&queue("q"))));
    world.release_last_read();
    assert_eq!(world.answer(list), None, "it is not known yet what is due");
    world.release();
    let Some(Answer::List(Ok(page))) = world.answer(list) else { panic!("not listed") };
    assert_eq!(page.tasks[0].state, State::Ready);
    world.step_wall_ms(-60_000);
    assert_eq!((world.list(None), world.counts()), (vec![("far".to_owned(), State::Ready)], (0, 1, 0)));
}
