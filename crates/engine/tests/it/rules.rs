//! The engine's rules, one story each.

use tickwheel_engine::*;

use crate::world::*;

#[test]
fn a_task_is_delivered_when_due_and_not_a_millisecond_before() {
    let mut world = World::new();
    let stored = world.put_in("a", 30);
    assert!(stored.created);
    assert_eq!((stored.task.state, stored.task.due_at), (State::Scheduled, ms(30)));
    world.pass_ms(29);
    assert_eq!(world.lease(10, 1_000), []);
    world.pass_ms(1);
    let leased = world.lease(10, 1_000);
    assert_eq!(keys(&leased), ["a"]);
    assert_eq!((leased[0].attempt, leased[0].due_at, leased[0].ready_at), (1, ms(30), ms(30)));
    assert_eq!(leased[0].lease_until, ms(1_030));
    assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked);
    assert_eq!(world.get("a"), Err(GetError::Done));
    assert_eq!(world.counts(), (0, 0, 0));
}

#[test]
fn a_delay_counts_from_inside_the_millisecond_and_rounds_up() {
    let mut world = World::new();
    world.now.wall_sub_ns = 1;
    assert_eq!(world.put_in("a", 30).task.due_at, ms(31));
}

#[test]
fn ready_tasks_go_out_by_due_time_and_then_by_the_order_of_their_puts() {
    let mut world = World::new();
    for (name, delay) in [("late", 9), ("first", 5), ("second", 5), ("early", 1)] {
        world.put_in(name, delay);
    }
    // A reschedule keeps the place of the put, a new put takes a new one.
    world.patch(Patch { due: Some(Due::At(ms(5))), ..Patch::new(&queue("q"), key("late")) }).expect("live");
    world.put_in("first", 5);
    world.pass_ms(5);
    assert_eq!(keys(&world.lease(10, 1_000)), ["early", "late", "second", "first"]);
}

#[test]
fn a_put_replaces_creates_or_refuses_as_its_mode_says() {
    let mut world = World::new();
    let put = |mode| Put { mode, due: Due::After { ms: 50 }, ..Put::new(&queue("q"), key("a")) };
    assert_eq!(world.put(put(PutMode::Replace)), Err(PutError::NotFound));
    let first = world.put(put(PutMode::Create)).expect("free");
    let version = first.task.version;
    assert_eq!(world.put(put(PutMode::Create)), Err(PutError::Live { id: first.task.id, version }));
    let second = world.put(put(PutMode::Replace)).expect("live");
    assert_eq!((second.created, second.task.id), (false, first.task.id));
    assert!(second.task.version > version);
    let third = world.put(put(PutMode::Upsert)).expect("live");
    assert!(!third.created && third.task.version > second.task.version);
    assert_eq!(world.counts(), (1, 0, 0));
}

#[test]
fn if_match_lets_only_the_right_version_through() {
    let mut world = World::new();
    let version = world.put_in("a", 50).task.version;
    let wrong = Some(Seq(version.0 + 1));
    let current = Some(version);
    let put = Put { if_version: wrong, ..Put::new(&queue("q"), key("a")) };
    assert_eq!(world.put(put), Err(PutError::VersionMismatch { current }));
    let patch = Patch { if_version: wrong, ..Patch::new(&queue("q"), key("a")) };
    assert_eq!(world.patch(patch), Err(PatchError::VersionMismatch { current }));
    let cancel = Cancel { if_version: wrong, ..Cancel::new(&queue("q"), key("a")) };
    assert_eq!(world.cancel_by(cancel), Err(CancelError::VersionMismatch { current }));
    let nobody = Put { if_version: wrong, ..Put::new(&queue("q"), key("b")) };
    assert_eq!(world.put(nobody), Err(PutError::VersionMismatch { current: None }));
    let cancel = Cancel { if_version: current, ..Cancel::new(&queue("q"), key("a")) };
    assert_eq!(world.cancel_by(cancel), Ok(Cancelled::Cancelled));
}

#[test]
fn a_version_changes_exactly_when_the_owner_changes_the_task() {
    let mut world = World::new();
    let version = world.put_in("a", 0).task.version;
    let lease = world.lease(1, 10);
    world.extend(lease[0].token, 20);
    world.nack(lease[0].token, Some(5));
    world.pass_ms(5);
    world.lease(1, 10);
    world.pass_ms(10);
    assert_eq!(world.get("a").expect("live").version, version);
    let patched = world.patch(Patch::new(&queue("q"), key("a"))).expect("live");
    assert!(patched.version > version);
    world.cancel("a").expect("live");
    assert!(world.put_in("a", 0).task.version > patched.version, "it grows also after the key's end");
}

#[test]
fn cancel_has_four_answers() {
    let mut world = World::new();
    assert_eq!(world.cancel("a"), Err(CancelError::NotFound));
    world.put_in("a", 10);
    assert_eq!(world.cancel("a"), Ok(Cancelled::Cancelled));
    assert_eq!(world.cancel("a"), Err(CancelError::NotFound));
    world.put_in("a", 0);
    let lease = world.lease(1, 1_000);
    assert_eq!(world.cancel("a"), Err(CancelError::Leased));
    assert_eq!(world.ack(lease[0].token), TokenAnswer::Acked);
    assert_eq!(world.cancel("a"), Err(CancelError::Done));
}

#[test]
fn a_cancelled_task_is_never_delivered_scheduled_or_ready() {
    let mut world = World::new();
    world.put_in("a", 10);
    world.put_in("b", 0);
    world.cancel("a").expect("scheduled");
    world.cancel("b").expect("ready");
    world.pass_ms(100);
    assert_eq!(world.lease(10, 1_000), []);
}

#[test]
fn a_revoked_lease_says_so_and_its_task_does_not_come_back() {
    let mut world = World::new();
    world.put_in("a", 0);
    let lease = world.lease(1, 1_000);
    let cancel = Cancel::new(&queue("q"), key("a")).revoke();
    assert_eq!(world.cancel_by(cancel), Ok(Cancelled::Revoked));
    world.put_in("a", 0);
    assert_eq!(world.ack(lease[0].token), TokenAnswer::Revoked);
    assert_eq!(world.nack(lease[0].token, None), TokenAnswer::Revoked);
    world = world.crash();
    assert_eq!(world.extend(lease[0].token, 5), TokenAnswer::Revoked, "also after a crash");
    assert_eq!(world.get("a").expect("the new one").attempt, 0);
}

#[test]
fn changing_a_leased_task_takes_a_revoke() {
    let mut world = World::new();
    world.put_in("a", 0);
    let lease = world.lease(1, 1_000);
    let patch = Patch { due: Some(Due::After { ms: 7 }), ..Patch::new(&queue("q"), key("a")) };
    assert_eq!(world.patch(patch.clone()), Err(PatchError::Leased));
    assert_eq!(world.put(Put::new(&queue("q"), key("a"))), Err(PutError::Leased));
    let patched = world.patch(Patch { on_lease: OnLease::Revoke, ..patch }).expect("revoked");
    assert_eq!((patched.state, patched.due_at), (State::Scheduled, ms(7)));
    assert_eq!(world.ack(lease[0].token), TokenAnswer::Revoked);
    world.pass_ms(7);
    assert_eq!(keys(&world.lease(1, 1_000)), ["a"]);
}

#[test]
fn a_rescheduled_task_fires_at_the_new_time_only() {
    let mut world = World::new();
    world.put_in("later", 10);
    world.put_in("sooner", 30);
    world.patch(Patch { due: Some(Due::At(ms(20))), ..Patch::new(&queue("q"), key("later")) }).expect("live");
    world.patch(Patch { due: Some(Due::At(ms(5))), ..Patch::new(&queue("q"), key("sooner")) }).expect("live");
    world.pass_ms(5);
    assert_eq!(keys(&world.lease(9, 1_000)), ["sooner"]);
    world.pass_ms(14);
    assert_eq!(world.lease(9, 1_000), []);
    world.pass_ms(1);
    assert_eq!(keys(&world.lease(9, 1_000)), ["later"]);
    // A ready task goes back to waiting.
    world.put_in("ready", 0);
    world
        .patch(Patch { due: Some(Due::After { ms: 9 }), ..Patch::new(&queue("q"), key("ready")) })
        .expect("live");
    world.pass_ms(8);
    assert_eq!(world.lease(9, 1_000), []);
    world.pass_ms(1);
    assert_eq!(keys(&world.lease(9, 1_000)), ["ready"]);
}

#[test]
fn a_lease_that_runs_out_gives_the_task_back_in_its_place_and_counts() {
    let mut world = World::new();
    world.put_in("a", 0);
    world.put_in("b", 1);
    world.pass_ms(1);
    let first = world.lease(1, 10);
    world.pass_ms(9);
    assert_eq!(world.counts(), (0, 1, 1));
    world.pass_ms(1);
    assert_eq!(world.counts(), (0, 2, 0));
    assert_eq!(world.ack(first[0].token), TokenAnswer::Expired);
    let again = world.lease(2, 10);
    assert_eq!(keys(&again), ["a", "b"]);
    assert_eq!((again[0].attempt, again[1].attempt), (2, 1));
    assert_eq!(world.ack(again[0].token), TokenAnswer::Acked);
    assert_eq!(world.nack(again[0].token, None), TokenAnswer::Expired, "an ended lease's token");
}

#[test]
fn a_lease_never_ends_early_though_it_began_inside_a_millisecond() {
    let mut world = World::new();
    world.put_in("a", 0);
    world.now.mono_ns += 999_999;
    let lease = world.lease(1, 10);
    world.now.mono_ns += 9_999_999;
    world.input(Input::Wake);
    assert_eq!(world.counts(), (0, 0, 1), "9.999999 ms have passed");
    world.now.mono_ns += 2;
    world.input(Input::Wake);
    assert_eq!(world.counts(), (0, 1, 0));
    assert_eq!(world.ack(lease[0].token), TokenAnswer::Expired);
}

#[test]
fn extend_and_nack_do_what_they_say() {
    let mut world = World::new();
    world.put_in("a", 0);
    let lease = world.lease(1, 10);
    world.pass_ms(9);
    assert_eq!(world.extend(lease[0].token, 10), TokenAnswer::Extended);
    world.pass_ms(9);
    assert_eq!(world.counts(), (0, 0, 1));
    assert_eq!(world.nack(lease[0].token, None), TokenAnswer::Nacked);
    let again = world.lease(1, 10);
    assert_eq!((again[0].attempt, again[0].due_at), (2, ms(0)));
    assert_eq!(world.nack(again[0].token, Some(5)), TokenAnswer::Nacked);
    assert_eq!(world.get("a").expect("live").due_at, ms(23));
    assert_eq!(world.counts(), (1, 0, 0));
    world.pass_ms(5);
    assert_eq!(world.lease(1, 10)[0].attempt, 3);
}

#[test]
fn a_token_of_another_queue_or_never_issued_is_expired() {
    let mut world = World::new();
    world.put_in("a", 0);
    let token = world.lease(1, 10)[0].token;
    let other = Ack::new(&queue("other"), [token]);
    assert_eq!(world.ask(Command::Ack(other)), Answer::Ack(Ok(vec![TokenAnswer::Expired])));
    let forged = Token::parse(&"A".repeat(32)).expect("well formed");
    assert_eq!(world.ack(forged), TokenAnswer::Expired);
    assert_eq!(world.ack(token), TokenAnswer::Acked);
}

#[test]
fn after_a_crash_an_old_token_acks_until_another_worker_gets_the_task() {
    let mut world = World::new();
    world.put_in("a", 0);
    world.put_in("b", 0);
    let old = world.lease(2, 1_000_000);
    world = world.crash();
    assert_eq!(world.counts(), (0, 2, 0), "leased tasks are ready again at once");
    assert_eq!(world.ack(old[0].token), TokenAnswer::Acked);
    // Another worker gets b. Even two crashes later the old token is void, and the new one is not.
    let new = world.lease(1, 1_000_000);
    assert_eq!((keys(&new), new[0].attempt), (vec!["b"], 1));
    world = world.crash();
    assert_eq!(world.ack(old[1].token), TokenAnswer::Expired);
    assert_eq!(world.extend(new[0].token, 10), TokenAnswer::Extended, "leased again under that token");
    assert_eq!(world.counts(), (0, 0, 1));
    world.pass_ms(10);
    assert_eq!(world.lease(1, 10)[0].attempt, 2);
}

#[test]
fn after_a_crash_a_change_by_the_owner_voids_the_old_token() {
    let mut world = World::new();
    world.put_in("a", 0);
    let old = world.lease(1, 1_000_000);
    world = world.crash();
    world.patch(Patch::new(&queue("q"), key("a")).payload("new")).expect("live");
    assert_eq!(world.ack(old[0].token), TokenAnswer::Expired);
    assert_eq!(world.lease(1, 10)[0].body.payload, b"new");
}

#[test]
fn attempts_survive_a_crash_once_the_lease_has_ended() {
    let mut world = World::new();
    world.put_in("a", 0);
    world.lease(1, 10);
    world.pass_ms(10);
    world = world.crash();
    assert_eq!(world.lease(1, 10)[0].attempt, 2);
}

#[test]
fn after_a_graceful_stop_leases_go_on_in_the_next_life_and_only_there() {
    let mut world = World::new();
    world.put_in("a", 0);
    let lease = world.lease(1, 100);
    world.pass_ms(40);
    world = world.stop();
    assert_eq!(world.counts(), (0, 0, 1));
    world.pass_ms(59);
    assert_eq!(world.counts(), (0, 0, 1));
    world = world.stop();
    assert_eq!(world.counts(), (0, 0, 1), "the stop was in the life before");
    world = world.crash();
    assert_eq!(world.counts(), (0, 1, 0), "after a crash nobody knows whether it still ran");
    assert_eq!(world.ack(lease[0].token), TokenAnswer::Acked);
}

#[test]
fn a_lease_that_ended_while_the_machine_was_down_counts() {
    let mut world = World::new();
    world.put_in("a", 0);
    world.lease(1, 100);
    world.input(Input::Stop);
    world.now.wall = ms(100);
    world.now.mono_ns += 100_000_000;
    world = world.crash();
    world.pass_ms(1);
    assert_eq!(world.lease(1, 10)[0].attempt, 2);
}

#[test]
fn an_answer_waits_for_the_commit_that_covers_what_it_saw() {
    let mut world = World::new();
    world.hold_commits = true;
    let put = world.send(Command::Put(Put::new(&queue("q"), key("a"))));
    let get = world.send(Command::Get(Get::new(&queue("q"), key("a"))));
    let lease = world.send(Command::Lease(Lease::new(&queue("q"))));
    let queues = world.send(Command::Queues(ListQueues::default()));
    for call in [put, get, lease, queues] {
        assert_eq!(world.answer(call), None, "{call:?} was answered before the commit");
    }
    world.release();
    assert!(matches!(world.answer(put), Some(Answer::Put(Ok(_)))));
    assert!(matches!(world.answer(get), Some(Answer::Get(Ok(_)))));
    assert!(matches!(world.answer(lease), Some(Answer::Lease(Ok(leased))) if leased.len() == 1));
    assert!(matches!(world.answer(queues), Some(Answer::Queues(Ok(_)))));
}

#[test]
fn after_a_failed_commit_nothing_is_changed_and_what_was_under_way_is_unknown() {
    let mut world = World::new();
    world.put_in("safe", 50);
    world.put_in("due", 0);
    let waiting = world.send(Command::Lease(Lease {
        queues: [queue("empty")].into(),
        max: 1,
        lease_ms: Some(10),
        wait: true,
        worker: None,
        for_target: false,
    }));
    world.fail_commits = true;
    let failed = world.put(Put::new(&queue("q"), key("lost")));
    assert!(matches!(failed, Err(PutError::Unavailable(Unavailable::Indeterminate { .. }))), "{failed:?}");
    assert!(matches!(world.answer(waiting), Some(Answer::Lease(Err(Unavailable::ReadOnly { .. })))));
    let refused = world.put(Put::new(&queue("q"), key("next")));
    assert!(matches!(refused, Err(PutError::Unavailable(Unavailable::ReadOnly { .. }))), "{refused:?}");
    let refused = world.cancel("safe");
    assert!(matches!(refused, Err(CancelError::Unavailable(Unavailable::ReadOnly { .. }))), "{refused:?}");
    assert_eq!(world.get("gone"), Err(GetError::NotFound));
    assert_eq!(world.get("safe").expect("still readable").state, State::Scheduled);
    assert!(matches!(world.get("lost"), Err(GetError::Unavailable(Unavailable::Indeterminate { .. }))));
    assert_eq!(world.list(None), [("due".to_owned(), State::Ready), ("safe".to_owned(), State::Scheduled)]);
    world.pass_ms(100);
    assert!(world.engine.is_idle());
}

#[test]
fn a_list_beside_a_failed_store_shows_no_task_whose_last_change_may_be_lost() {
    let mut world = World::new();
    world.put_in("a", 0);
    world.lease(1, 10);
    // The lease runs out, and the commit that says so fails.
    world.fail_commits = true;
    world.pass_ms(10);
    let list = world.ask(Command::List(List::new(&queue("q"))));
    assert!(matches!(list, Answer::List(Err(Unavailable::Indeterminate { .. }))), "{list:?}");
    assert!(matches!(world.get("a"), Err(GetError::Unavailable(Unavailable::Indeterminate { .. }))));
}

#[test]
fn a_lease_does_not_run_out_once_that_cannot_be_written_down() {
    let mut world = World::new();
    world.put_in("a", 0);
    world.lease(1, 10);
    world.input(Input::StoreFailed { why: "the checkpoint met a bad block".to_owned() });
    world.pass_ms(10);
    assert_eq!(world.get("a").expect("still readable").state, State::Leased);
    assert_eq!(world.list(None), [("a".to_owned(), State::Leased)]);
    assert_eq!(world.counts(), (0, 0, 1));
    assert_eq!(world.engine.next_wake(), NextWake::default(), "and nothing wakes for it");
}

#[test]
fn a_waiting_lease_gets_what_becomes_ready_in_the_order_asked() {
    let mut world = World::new();
    let wait = Lease {
        queues: [queue("q")].into(),
        max: 1,
        lease_ms: Some(1_000),
        wait: true,
        worker: None,
        for_target: false,
    };
    let first = world.send(Command::Lease(wait.clone()));
    let second = world.send(Command::Lease(wait.clone()));
    let third = world.send(Command::Lease(wait));
    world.put_in("a", 5);
    world.put_in("b", 5);
    assert_eq!(world.answer(first), None);
    world.pass_ms(5);
    for (call, name) in [(first, "a"), (second, "b")] {
        let Some(Answer::Lease(Ok(leased))) = world.answer(call) else { panic!("{call:?} still waits") };
        assert_eq!(keys(&leased), [name]);
    }
    assert_eq!(world.answer(third), None);
    world.input(Input::EndWait { call: third });
    assert_eq!(world.answer(third), Some(Answer::Lease(Ok(vec![]))));
    world.input(Input::EndWait { call: third });
    world.put_in("c", 0);
    assert_eq!(keys(&world.lease(1, 10)), ["c"], "an ended wait takes nothing");
}

#[test]
fn a_delivery_that_reached_no_worker_does_not_count() {
    let mut world = World::new();
    world.put_in("a", 0);
    let lease = world.lease(1, 1_000);
    world.input(Input::Undelivered { tokens: vec![lease[0].token] });
    assert_eq!(world.counts(), (0, 1, 0));
    let again = world.lease(1, 1_000);
    assert_eq!(again[0].attempt, 1);
    assert_eq!(world.ack(lease[0].token), TokenAnswer::Expired);
}

#[test]
fn ready_stays_ready_when_the_wall_clock_steps_back() {
    let mut world = World::new();
    world.put_in("a", 10);
    world.pass_ms(10);
    world.step_wall_ms(-1_000_000);
    assert_eq!(world.counts(), (0, 1, 0));
    let lease = world.lease(1, 10);
    world.pass_ms(10);
    assert_eq!(world.counts(), (0, 1, 0), "also after its lease ran out");
    assert_eq!(world.ack(lease[0].token), TokenAnswer::Expired);
}

#[test]
fn a_task_put_after_a_step_back_waits_for_its_own_instant() {
    let mut world = World::new();
    world.pass_ms(1_000_000);
    world.step_wall_ms(-500_000);
    let stored = world.put_in("a", 1_000);
    assert_eq!(stored.task.due_at, ms(501_000));
    assert_eq!(world.engine.next_wake().wall, Some(ms(501_000)));
    world.pass_ms(999);
    assert_eq!(world.lease(1, 10), []);
    world.pass_ms(1);
    assert_eq!(keys(&world.lease(1, 100_000)), ["a"]);
    world.put_in("b", 1_000);
    world.cancel("b").expect("rewound tasks can be cancelled");
    world.pass_ms(2_000);
    assert_eq!(world.lease(1, 10), []);
}

fn small_horizon() -> EngineConfig {
    EngineConfig { horizon_ms: 100, scan_max: 3, ..EngineConfig::default() }
}

#[test]
fn far_tasks_leave_memory_and_come_back_in_time() {
    let mut world = World::with(small_horizon());
    for n in 0..20 {
        world.put_in(&format!("k{n:02}"), 1_000 + n * 7);
    }
    assert_eq!(world.engine.tasks_in_memory(), 0);
    assert_eq!(world.counts(), (20, 0, 0));
    let mut fired = Vec::new();
    while world.counts() != (0, 0, 0) {
        let wake = world.engine.next_wake().wall.expect("there is something to wait for");
        assert!(wake > world.now.wall);
        world.pass_ms(wake.ms_since(world.now.wall));
        for leased in world.lease(100, 1_000) {
            assert_eq!(leased.ready_at, leased.due_at, "{} is late", leased.key);
            assert_eq!(world.ack(leased.token), TokenAnswer::Acked);
            fired.push(leased.key.as_str().to_owned());
        }
    }
    assert_eq!(fired, (0..20).map(|n| format!("k{n:02}")).collect::<Vec<_>>());
}

#[test]
fn a_far_task_is_found_changed_and_cancelled_by_its_key() {
    let mut world = World::with(small_horizon());
    let stored = world.put_in("a", 10_000);
    world.put_in("b", 20_000);
    assert_eq!(world.get("a").expect("far"), stored.task);
    assert!(matches!(
        world.put(Put { mode: PutMode::Create, ..Put::new(&queue("q"), key("a")) }),
        Err(PutError::Live { .. })
    ));
    assert_eq!(world.engine.tasks_in_memory(), 0);
    world
        .patch(Patch { due: Some(Due::After { ms: 50 }), ..Patch::new(&queue("q"), key("a")) })
        .expect("far");
    world.cancel("b").expect("far");
    assert_eq!(world.engine.tasks_in_memory(), 1);
    world.pass_ms(50);
    assert_eq!(keys(&world.lease(9, 10)), ["a"]);
    world.pass_ms(50_000);
    assert_eq!(keys(&world.lease(9, 10)), ["a"]);
}

#[test]
fn a_near_task_moved_far_does_not_fire_at_its_old_time() {
    let mut world = World::with(small_horizon());
    world.put_in("a", 50);
    world
        .patch(Patch { due: Some(Due::After { ms: 5_000 }), ..Patch::new(&queue("q"), key("a")) })
        .expect("live");
    world.pass_ms(4_999);
    assert_eq!(world.lease(1, 10), []);
    world.pass_ms(1);
    assert_eq!(keys(&world.lease(1, 10)), ["a"]);
}

#[test]
fn a_list_pages_through_near_and_far_tasks_with_their_states() {
    let mut world = World::with(small_horizon());
    for (name, delay) in [("far", 5_000), ("near", 50), ("ready", 0), ("leased", 0)] {
        world.put_in(name, delay);
    }
    let moved = Patch { due: Some(Due::After { ms: 9_000 }), ..Patch::new(&queue("q"), key("ready")) };
    let leased = world.lease(1, 1_000);
    assert_eq!(keys(&leased), ["ready"]);
    let state = |name: &str, state| (name.to_owned(), state);
    assert_eq!(
        world.list(None),
        [
            state("ready", State::Leased),
            state("leased", State::Ready),
            state("near", State::Scheduled),
            state("far", State::Scheduled)
        ]
    );
    assert_eq!(world.list(Some(State::Leased)), [state("ready", State::Leased)]);
    assert_eq!(world.list(Some(State::Ready)), [state("leased", State::Ready)]);
    assert_eq!(world.list(Some(State::Scheduled)).len(), 2);
    world.nack(leased[0].token, None);
    world.patch(moved).expect("live");
    assert_eq!(world.list(None).last(), Some(&state("ready", State::Scheduled)));
}

#[test]
fn ids_rise_and_are_never_used_twice_not_even_after_a_crash() {
    let mut world = World::new();
    let first = world.put_in("a", 10).task.id;
    assert_eq!(first, 1);
    let second = world.put_in("b", 10).task.id;
    assert_eq!(second, 2);
    world = world.crash();
    assert!(world.put_in("c", 10).task.id > second);
}

#[test]
fn a_put_without_key_gets_its_id_as_key_and_steps_around_a_taken_one() {
    let mut world = World::new();
    world.put_in("2", 10);
    let stored = world.put(Put::without_key(&queue("q"))).expect("taken");
    assert_eq!((stored.created, stored.task.key.as_str()), (true, "3"), "2 is somebody's key");
    assert_eq!(stored.task.id, 3);
}

#[test]
fn too_far_ahead_is_refused_and_leaves_no_trace() {
    let mut world = World::new();
    let limit_ms = EngineConfig::default().farthest_ms;
    let put = |due| Put { due, ..Put::new(&queue("q"), key("a")) };
    for due in [Due::After { ms: limit_ms + 2 }, Due::After { ms: u64::MAX }, Due::At(Timestamp::MAX)] {
        assert_eq!(world.put(put(due)), Err(PutError::TooFar { limit_ms }));
    }
    assert_eq!(world.get("a"), Err(GetError::NotFound));
    world.put(put(Due::After { ms: limit_ms })).expect("exactly the limit");
    let patch = Patch { due: Some(Due::At(Timestamp::MAX)), ..Patch::new(&queue("q"), key("a")) };
    assert_eq!(world.patch(patch), Err(PatchError::TooFar { limit_ms }));
}

#[test]
fn a_stopping_machine_ends_the_waits_and_takes_no_more_calls() {
    let mut world = World::new();
    let waiting = world.send(Command::Lease(Lease {
        queues: [queue("q")].into(),
        max: 1,
        lease_ms: Some(10),
        wait: true,
        worker: None,
        for_target: false,
    }));
    world.input(Input::Stop);
    assert_eq!(world.answer(waiting), Some(Answer::Lease(Ok(vec![]))));
    assert!(world.stopped);
    let refused = world.put(Put::new(&queue("q"), key("a")));
    assert_eq!(refused, Err(PutError::Unavailable(Unavailable::Closed)));
}

#[test]
fn idle_time_costs_nothing() {
    let mut world = World::with(small_horizon());
    assert_eq!(world.engine.next_wake(), NextWake::default());
    world.put_in("far", 1_000_000_000);
    let wake = world.engine.next_wake().wall.expect("it has to be loaded");
    assert_eq!(wake, ms(1_000_000_000 - 50), "half a horizon ahead, and nothing before");
}

#[test]
fn a_cancel_that_failed_to_be_written_down_is_unknown_to_a_get() {
    let mut world = World::new();
    world.put_in("a", 50);
    world.fail_commits = true;
    let failed = world.cancel("a");
    assert!(matches!(failed, Err(CancelError::Unavailable(Unavailable::Indeterminate { .. }))), "{failed:?}");
    let unsure = world.get("a");
    assert!(matches!(unsure, Err(GetError::Unavailable(Unavailable::Indeterminate { .. }))), "{unsure:?}");
}

#[test]
fn a_lease_written_down_goes_on_though_the_wall_clock_shows_a_time_before_its_task_is_due() {
    let mut world = World::with(small_horizon());
    world.pass_ms(1_000_000);
    world.put_in("a", 0);
    let lease = world.lease(1, 100);
    world.step_wall_ms(-900_000);
    world = world.stop();
    assert_eq!(world.counts(), (0, 0, 1));
    assert_eq!(world.ack(lease[0].token), TokenAnswer::Acked);
}

/// The simulator's find: the task came again after as much time as the clock was set back by.
#[test]
fn a_lease_written_down_is_as_long_as_it_was_though_the_wall_clock_was_set_back() {
    let mut world = World::with(small_horizon());
    world.pass_ms(1_000_000);
    world.put_in("a", 0);
    world.lease(1, 100);
    world.step_wall_ms(-900_000);
    world = world.stop();
    world.pass_ms(50);
    assert_eq!(world.lease(1, 100).len(), 0, "half of the lease is left");
    world.pass_ms(52);
    assert_eq!(world.lease(1, 100).len(), 1);
}

#[test]
fn a_revoked_lease_counts_as_an_attempt() {
    let mut world = World::new();
    world.put_in("a", 0);
    world.lease(1, 1_000);
    let patch = Patch { on_lease: OnLease::Revoke, ..Patch::new(&queue("q"), key("a")) };
    assert_eq!(world.patch(patch).expect("revoked").attempt, 1);
    assert_eq!(world.lease(1, 1_000)[0].attempt, 2);
}

#[test]
fn a_hundred_thousand_taken_numbers_are_no_trouble_for_a_put_without_key() {
    let mut world = World::new();
    world.hold_commits = true;
    for n in 100_001..=200_000 {
        world.send(Command::Put(Put {
            due: Due::After { ms: 9 },
            ..Put::new(&queue("q"), key(&n.to_string()))
        }));
    }
    world.release();
    let stored = world.put(Put::without_key(&queue("q"))).expect("taken");
    assert_eq!((stored.created, stored.task.key.as_str()), (true, "200001"));
}

#[test]
fn taken_numbers_that_are_far_are_stepped_around_too() {
    let mut world = World::with(small_horizon());
    for n in 4..=6 {
        world
            .put(Put { due: Due::After { ms: 90_000 }, ..Put::new(&queue("q"), key(&n.to_string())) })
            .expect("taken");
    }
    assert_eq!(world.put(Put::without_key(&queue("q"))).expect("taken").task.key.as_str(), "7");
}

#[test]
fn a_lease_of_no_task_delays_no_other_lease() {
    let mut world = World::new();
    let none = Lease {
        queues: [queue("q")].into(),
        max: 0,
        lease_ms: Some(10),
        wait: true,
        worker: None,
        for_target: false,
    };
    assert_eq!(world.ask(Command::Lease(none)), Answer::Lease(Ok(vec![])));
    let one = world.send(Command::Lease(Lease {
        queues: [queue("q")].into(),
        max: 1,
        lease_ms: Some(10),
        wait: true,
        worker: None,
        for_target: false,
    }));
    world.put_in("a", 0);
    assert!(matches!(world.answer(one), Some(Answer::Lease(Ok(leased))) if leased.len() == 1));
}

#[test]
fn a_store_that_fails_by_itself_makes_the_machine_read_only() {
    let mut world = World::new();
    world.put_in("a", 50);
    world.input(Input::StoreFailed { why: "the checkpoint met a bad block".to_owned() });
    let refused = world.cancel("a");
    assert!(matches!(refused, Err(CancelError::Unavailable(Unavailable::ReadOnly { .. }))), "{refused:?}");
    assert_eq!(world.get("a").expect("still readable").state, State::Scheduled);
}

/// A caller that got no answer puts again, with the version that it knew before the first put.
#[test]
fn a_put_once_returns_a_task_of_the_key_whatever_version_it_asks_for() {
    let mut world = World::new();
    let once = |if_version| Put { mode: PutMode::Once, if_version, ..Put::new(&queue("q"), key("k")) };
    let other = Some(Seq(77));
    assert_eq!(world.put(once(other)), Err(PutError::VersionMismatch { current: None }), "none is there");
    let first = world.put(once(None)).expect("made").task;
    assert_ne!(Some(first.version), other);
    let found = world.put(once(other)).expect("shown");
    assert_eq!((found.created, found.task.version), (false, first.version));
    let leased = world.lease(1, 1_000);
    world.ack(leased[0].token);
    assert_eq!(world.put(once(other)), Err(PutError::Done));
}

#[test]
fn a_put_that_is_asked_again_makes_one_task() {
    let mut world = World::new();
    let once = || Put { mode: PutMode::Once, ..Put::new(&queue("q"), key("k")) };
    let first = world.put(once()).expect("made");
    assert!(first.created);
    let again = world.put(once().payload(b"other".to_vec())).expect("shown");
    assert!(!again.created);
    assert_eq!(
        (again.task.version, again.task.body.payload.len()),
        (first.task.version, 0),
        "it is left alone"
    );
    let leased = world.lease(1, 1_000);
    assert_eq!(world.put(once()).map(|stored| stored.task.state), Ok(State::Leased));
    assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked);
    assert_eq!(world.put(once()), Err(PutError::Done));
    let mut world = world.crash();
    assert_eq!(world.put(once()), Err(PutError::Done), "also from the store");
    world.put_in("k", 0);
    world.cancel("k").expect("live");
    assert!(world.put(once()).expect("made").created, "the last one was cancelled");
}

/// The put had its turn 40 ms after it was asked for. Its times count from the asking, and the task is late by what the engine took.
#[test]
fn a_put_is_counted_from_when_it_was_asked_for() {
    let mut world = World::new();
    world.pass_ms(1_000);
    let terms = Terms { expire_after_ms: Some(100), ..Terms::default() };
    let put =
        Put { due: Due::At(ms(965)), asked_at: Some(ms(960)), terms, ..Put::new(&queue("q"), key("a")) };
    let task = world.put(put.clone()).expect("taken").task;
    assert_eq!((task.put_at, task.due_at, task.extra.expire_at), (ms(960), ms(965), Some(ms(1_060))));
    let Answer::Stats(Ok(stats)) = world.ask(Command::Stats(GetStats(ListQueues::default()))) else {
        panic!("another answer")
    };
    assert_eq!((stats.fired_total, stats.lateness_sum_ms), (1, 35));
    // A put is not asked for after its turn: a later `asked_at` counts as now.
    let later = Put { asked_at: Some(ms(5_000)), key: Some(key("b")), ..put };
    assert_eq!(world.put(later).expect("taken").task.put_at, ms(1_000));
}

#[test]
fn lateness_is_what_the_machine_adds_and_not_what_the_owner_wished() {
    let mut world = World::new();
    let past = Put::new(&queue("q"), key("past")).at(ms(-3_600_000));
    world.put(past).expect("taken");
    world.put_in("soon", 1_000);
    world.pass_ms(1_007);
    let Answer::Stats(Ok(stats)) = world.ask(Command::Stats(GetStats(ListQueues::default()))) else {
        panic!("no stats")
    };
    assert_eq!((stats.fired_total, stats.lateness_sum_ms), (2, 7));
}
