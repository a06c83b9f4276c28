//! Histories in which every promise is kept.

use super::*;

#[test]
fn a_task_lives_its_whole_life() {
    holds(|play| {
        play.get("a", Answer::NotFound)?;
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        play.counts(1, 0, 0)?;
        play.lease(10, vec![])?;
        play.get("a", Answer::Task(view("a", 1, 5, DUE)))?;
        play.pass(10_000);
        play.lease(10, vec![found("a", 1, DUE, "t1")])?;
        play.counts(0, 0, 1)?;
        play.get("a", Answer::Task(View { state: State::Leased, attempt: 1, ..view("a", 1, 5, DUE) }))?;
        play.cancel("a", false, Answer::Leased)?;
        play.extend("t1", TokenAnswer::Extended)?;
        play.ack("t1", TokenAnswer::Acked)?;
        play.nack("t1", TokenAnswer::Expired)?;
        play.ack("never", TokenAnswer::Expired)?;
        play.cancel("a", false, Answer::Done)?;
        play.get("a", Answer::NotFound)?;
        play.put("a", DUE, ready("a", 2, 9, DUE))?;
        play.cancel("a", false, Answer::Cancelled)?;
        play.cancel("a", false, Answer::NotFound)?;
        play.list(vec![])?;
        play.counts(0, 0, 0)?;
        play.list(vec![])?;
        play.oracle.finish()
    });
}

#[test]
fn modes_and_versions_refuse_without_a_trace() {
    holds(|play| {
        let verb = |mode, if_match| Verb::Put {
            due: Some(Due::At(DUE)),
            payload: 700,
            mode,
            if_match,
            revoke: false,
        };
        play.call(Some("a"), verb(Mode::Replace, None), Answer::NotFound)?;
        play.call(Some("a"), verb(Mode::Upsert, Some(3)), Answer::VersionMismatch)?;
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        play.call(Some("a"), verb(Mode::Create, None), Answer::Live)?;
        play.call(Some("a"), verb(Mode::Create, Some(4)), Answer::VersionMismatch)?;
        play.call(Some("a"), verb(Mode::Upsert, None), Answer::Refused)?;
        play.get("a", Answer::Task(view("a", 1, 5, DUE)))?;
        let task = View { payload: 700, ..view("a", 1, 6, DUE) };
        play.call(
            Some("a"),
            verb(Mode::Replace, Some(5)),
            Answer::Stored { created: false, task: task.clone() },
        )?;
        play.list(vec![task])
    });
}

#[test]
fn a_delay_counts_from_the_receipt() {
    let verb = Verb::Put {
        due: Some(Due::In(500)),
        payload: 100,
        mode: Mode::Create,
        if_match: None,
        revoke: false,
    };
    // The commit takes 2 ms, and the end of the delay is rounded up to the next millisecond.
    for (late_ms, promise) in [(-1, Some("P1")), (0, None), (2, None), (3, None), (4, Some("P1"))] {
        let mut play = Play::new();
        let task = view("a", 1, 5, WALL + 500 + late_ms);
        let verdict = play.call(Some("a"), verb.clone(), Answer::Stored { created: true, task });
        assert_eq!(verdict.err().map(|violation| violation.promise), promise, "{late_ms} ms");
    }
}

#[test]
fn expiry_and_nack_count_an_attempt() {
    holds(|play| {
        delivered(play)?;
        play.pass(998);
        play.lease(1, vec![again(2, found("a", 1, DUE, "t2"))])?;
        play.ack("t1", TokenAnswer::Expired)?;
        play.nack("t2", TokenAnswer::Nacked)?;
        play.lease(1, vec![again(3, found("a", 1, DUE, "t3"))])?;
        let verb = Verb::Nack {
            tokens: vec!["t3".to_owned()],
            delay_ms: Some(5_000),
            at_least_ms: None,
            how: How::Returned,
        };
        play.call(None, verb, Answer::Tokens(vec![TokenAnswer::Nacked]))?;
        let due = play.wall + 5_000;
        play.get("a", Answer::Task(View { attempt: 3, ..view("a", 1, 5, due - 1) }))?;
        play.pass(5_000);
        play.lease(1, vec![again(4, found("a", 1, due - 1, "t4"))])?;
        play.ack("t4", TokenAnswer::Acked)
    });
}

#[test]
fn a_patch_keeps_what_it_does_not_name() {
    holds(|play| {
        delivered(play)?;
        play.nack("t1", TokenAnswer::Nacked)?;
        let later = DUE + 60_000;
        play.patch("a", later, View { attempt: 1, ..view("a", 1, 6, later) })?;
        play.lease(1, vec![])?;
        play.pass(60_000);
        play.lease(1, vec![again(2, found("a", 1, later, "t2"))])?;
        play.ack("t2", TokenAnswer::Acked)
    });
}

#[test]
fn revoke_is_final() {
    holds(|play| {
        delivered(play)?;
        play.cancel("a", true, Answer::Revoked)?;
        play.ack("t1", TokenAnswer::Revoked)?;
        play.crash()?;
        play.ack("t1", TokenAnswer::Revoked)?;
        play.get("a", Answer::NotFound)?;
        play.put("a", DUE, ready("a", 2, 7, DUE))?;
        play.lease(1, vec![found("a", 2, DUE, "t2")])?;
        let verb = Verb::Put { due: None, payload: 200, mode: Mode::Upsert, if_match: Some(7), revoke: true };
        let task = ready("a", 2, 8, play.wall);
        play.call(Some("a"), verb, Answer::Stored { created: false, task })?;
        play.nack("t2", TokenAnswer::Revoked)
    });
}

#[test]
fn a_crash_gives_leases_back_and_an_old_token_still_works() {
    holds(|play| {
        delivered(play)?;
        play.crash()?;
        play.get("a", Answer::Task(ready("a", 1, 5, DUE)))?;
        play.extend("t1", TokenAnswer::Extended)?;
        play.lease(1, vec![])?;
        play.ack("t1", TokenAnswer::Acked)?;
        play.crash()?;
        play.list(vec![])
    });
    holds(|play| {
        delivered(play)?;
        play.crash()?;
        play.lease(1, vec![found("a", 1, DUE, "t2")])?;
        play.ack("t1", TokenAnswer::Expired)?;
        play.ack("t2", TokenAnswer::Acked)
    });
    holds(|play| {
        delivered(play)?;
        play.crash()?;
        play.patch("a", DUE + 1, View { state: State::Ready, ..view("a", 1, 6, DUE + 1) })?;
        play.ack("t1", TokenAnswer::Expired)
    });
}

#[test]
fn leases_live_through_a_graceful_stop_by_the_wall_clock() {
    holds(|play| {
        delivered(play)?;
        play.restart(200)?;
        play.lease(1, vec![])?;
        play.ack("t1", TokenAnswer::Acked)
    });
    holds(|play| {
        delivered(play)?;
        play.restart(1_000)?;
        play.lease(1, vec![again(2, found("a", 1, DUE, "t2"))])
    });
    breaks("P4", |play| {
        delivered(play)?;
        play.restart(200)?;
        Ok(play.lease(1, vec![again(2, found("a", 1, DUE, "t2"))]))
    });
    breaks("P4", |play| {
        delivered(play)?;
        play.restart(200)?;
        Ok(play.ack("t1", TokenAnswer::Expired))
    });
    // The server died while it stopped: the lease is written down or it is not.
    for found in [vec![], vec![found("a", 1, DUE, "t2")]] {
        holds(|play| {
            delivered(play)?;
            play.oracle.stopping();
            play.crash()?;
            play.lease(1, found)
        });
    }
}

#[test]
fn a_wall_step_back_leaves_ready_what_is_ready() {
    holds(|play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        play.pass(10_000);
        play.get("a", Answer::Task(ready("a", 1, 5, DUE)))?;
        play.step(-3_600_000);
        play.get("a", Answer::Task(ready("a", 1, 5, DUE)))?;
        play.lease(1, vec![found("a", 1, DUE, "t1")])
    });
    holds(|play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        play.pass(10_000);
        play.get("a", Answer::Task(ready("a", 1, 5, DUE)))?;
        play.step(-3_600_000);
        play.crash()?;
        play.get("a", Answer::Task(view("a", 1, 5, DUE)))
    });
}

#[test]
fn an_unanswered_put_may_have_happened_or_not_and_then_stays_so() {
    for (answer, happened) in [(Answer::NotFound, false), (Answer::Task(view("a", 1, 5, DUE)), true)] {
        holds(|play| {
            let id = play.send(Some("a"), put(DUE, 100));
            play.oracle.lost(id)?;
            play.crash()?;
            play.get("a", answer.clone())?;
            play.counts(usize::from(happened), 0, 0)?;
            play.get("a", answer.clone())
        });
        breaks(if happened { "P1" } else { "P6" }, |play| {
            let id = play.send(Some("a"), put(DUE, 100));
            play.oracle.lost(id)?;
            play.crash()?;
            play.get("a", answer.clone())?;
            let other = if happened { Answer::NotFound } else { Answer::Task(view("a", 1, 5, DUE)) };
            Ok(play.get("a", other))
        });
    }
}

#[test]
fn a_lost_call_may_take_effect_late_until_it_is_settled() {
    let story = |settled| {
        move |play: &mut Play| {
            let id = play.send(Some("a"), put(DUE, 100));
            play.oracle.answered(id, Answer::Unknown)?;
            play.get("a", Answer::NotFound)?;
            if settled {
                play.oracle.settled(id)?;
                play.get("a", Answer::NotFound)?;
            }
            Ok(play.get("a", Answer::Task(view("a", 1, 5, DUE))))
        }
    };
    holds(|play| story(false)(play)?);
    breaks("P6", story(true));
}

#[test]
fn calls_side_by_side_may_take_effect_in_either_order() {
    // The put that began second took effect first, and its answer comes last.
    for first in [1, 2] {
        holds(|play| {
            let one = play.send(Some("a"), put(DUE, 100));
            let two = play.send(Some("a"), put(DUE, 200));
            play.pass(1);
            let version = |call: u64| if call == first { 5 } else { 6 };
            let task = |call: u64| View { payload: call * 100, ..view("a", 1, version(call), DUE) };
            play.oracle.answered(one, Answer::Stored { created: first == 1, task: task(1) })?;
            play.oracle.answered(two, Answer::Stored { created: first == 2, task: task(2) })?;
            play.get("a", Answer::Task(task(3 - first)))
        });
    }
    breaks("P6", |play| {
        let one = play.send(Some("a"), put(DUE, 100));
        let two = play.send(Some("a"), put(DUE, 100));
        play.oracle.answered(one, Answer::Stored { created: true, task: view("a", 1, 5, DUE) })?;
        let task = View { payload: 100, ..view("a", 2, 6, DUE) };
        Ok(play.oracle.answered(two, Answer::Stored { created: false, task }))
    });
}

#[test]
fn a_delivery_may_overtake_the_answer_to_its_put() {
    holds(|play| {
        let id = play.send(Some("a"), put(WALL, 100));
        play.lease(1, vec![found("a", 1, WALL, "t1")])?;
        let acked = play.send(None, Verb::Ack { tokens: vec!["t1".to_owned()] });
        play.oracle.answered(id, Answer::Stored { created: true, task: ready("a", 1, 5, WALL) })?;
        play.oracle.answered(acked, Answer::Tokens(vec![TokenAnswer::Acked]))?;
        play.cancel("a", false, Answer::Done)
    });
}

#[test]
fn a_cancel_and_a_lease_side_by_side_agree() {
    let story = |said: Answer, found: Vec<Delivery>| {
        move |play: &mut Play| {
            play.put("a", WALL, ready("a", 1, 5, WALL))?;
            let cancel = play.send(Some("a"), Verb::Cancel { if_match: None, revoke: false });
            play.lease(1, found)?;
            Ok(play.oracle.answered(cancel, said))
        }
    };
    holds(|play| story(Answer::Cancelled, vec![])(play)?);
    holds(|play| story(Answer::Leased, vec![found("a", 1, WALL, "t1")])(play)?);
    breaks("P5", story(Answer::Cancelled, vec![found("a", 1, WALL, "t1")]));
    breaks("P5", story(Answer::Leased, vec![]));
}

#[test]
fn a_lost_lease_may_hold_a_task() {
    holds(|play| {
        play.put("a", WALL, ready("a", 1, 5, WALL))?;
        let lease = play.send(None, Verb::Lease { max: 1, lease_ms: 1_000 });
        play.oracle.lost(lease)?;
        play.oracle.settled(lease)?;
        play.get("a", Answer::Task(View { state: State::Leased, attempt: 1, ..view("a", 1, 5, WALL) }))?;
        play.cancel("a", false, Answer::Leased)?;
        play.pass(1_000);
        play.lease(1, vec![again(2, found("a", 1, WALL, "t1"))])
    });
}

#[test]
fn a_key_made_by_the_server_is_recognised() {
    let verb = || Verb::Put { due: None, payload: 700, mode: Mode::Upsert, if_match: None, revoke: false };
    let task = || View { payload: 700, ..ready("7", 7, 5, WALL) };
    holds(|play| {
        let id = play.send(None, verb());
        play.oracle.answered(id, Answer::Stored { created: true, task: task() })?;
        play.get("7", Answer::Task(task()))
    });
    // The answer to the put is lost, or comes after the delivery.
    for lost in [true, false] {
        holds(|play| {
            let id = play.send(None, verb());
            if lost {
                play.oracle.lost(id)?;
                play.crash()?;
                play.counts(0, 1, 0)?;
            }
            play.lease(1, vec![found("7", 7, WALL, "t1")])?;
            if !lost {
                play.oracle.answered(id, Answer::Stored { created: true, task: task() })?;
            }
            play.ack("t1", TokenAnswer::Acked)
        });
    }
    breaks("P6", |play| Ok(play.lease(1, vec![found("7", 7, WALL, "t1")])));
    breaks("P6", |play| Ok(play.list(vec![task()])));
}

#[test]
fn a_lease_may_end_at_its_last_millisecond() {
    holds(|play| {
        play.put("a", WALL, ready("a", 1, 5, WALL))?;
        let lease = play.send(None, Verb::Lease { max: 1, lease_ms: 1_000 });
        let one = Delivery { lease_until: play.wall + 1_000, ..found("a", 1, WALL, "t1") };
        play.oracle.answered(lease, Answer::Delivered(vec![one]))?;
        play.pass(1_000);
        let again = play.send(None, Verb::Lease { max: 1, lease_ms: 1_000 });
        let one = Delivery { attempt: 2, lease_until: play.wall + 1_000, ..found("a", 1, WALL, "t2") };
        play.oracle.answered(again, Answer::Delivered(vec![one]))
    });
}

#[test]
fn a_written_lease_may_end_by_a_step_of_the_wall_clock() {
    holds(|play| {
        delivered(play)?;
        play.restart(200)?;
        play.step(1_000);
        play.lease(1, vec![again(2, found("a", 1, DUE, "t2"))])
    });
    // An extension is not written down: a crash may bring back the end that the stop wrote down.
    holds(|play| {
        delivered(play)?;
        play.restart(200)?;
        play.extend("t1", TokenAnswer::Extended)?;
        play.pass(900);
        play.crash()?;
        play.lease(1, vec![again(2, found("a", 1, DUE, "t2"))])
    });
}

/// Stops the server, and sets the wall clock back by an hour before the next start.
fn stop_and_set_back(play: &mut Play) -> Result<(), Violation> {
    play.oracle.stopping();
    play.oracle.stopped()?;
    play.step(-3_600_000);
    play.oracle.recovered();
    Ok(())
}

/// A lease of 1 s, of which 98 ms are left after two stops.
fn held_over_two_stops(play: &mut Play) -> Result<(), Violation> {
    delivered(play)?;
    play.pass(400);
    stop_and_set_back(play)?;
    play.pass(500);
    stop_and_set_back(play)
}

#[test]
fn a_written_lease_is_no_longer_though_the_wall_clock_was_set_back() {
    holds(|play| {
        held_over_two_stops(play)?;
        play.pass(98);
        play.lease(1, vec![again(2, found("a", 1, DUE, "t2"))])
    });
    breaks("P7", |play| {
        held_over_two_stops(play)?;
        play.pass(80);
        Ok(play.lease(1, vec![again(2, found("a", 1, DUE, "t2"))]))
    });
    // The server sleeps beyond the end. Each reading is rounded down, and each end is rounded up.
    let mut play = Play::new();
    held_over_two_stops(&mut play).expect("all is right");
    assert_eq!(play.oracle.lets_a_lease_outlast(Some(play.mono + 98)), None);
    assert_eq!(play.oracle.lets_a_lease_outlast(Some(play.mono + 110)), Some(("q", "a")));
    assert_eq!(play.oracle.lets_a_lease_outlast(None), Some(("q", "a")));
    play.pass(98);
    assert_eq!(play.oracle.lets_a_lease_outlast(None), None, "it may be over");
}

#[test]
fn a_server_may_forget_a_token_that_two_restarts_passed() {
    for said in [TokenAnswer::Acked, TokenAnswer::Expired] {
        holds(|play| {
            delivered(play)?;
            play.crash()?;
            play.crash()?;
            play.ack("t1", said)
        });
    }
}

#[test]
fn a_second_ack_must_be_told_what_the_first_was() {
    holds(|play| {
        delivered(play)?;
        play.ack("t1", TokenAnswer::Acked)?;
        play.ack("t1", TokenAnswer::Acked)?;
        play.crash()?;
        play.put("a", DUE, ready("a", 2, 7, DUE))?;
        play.ack("t1", TokenAnswer::Acked)?;
        play.nack("t1", TokenAnswer::Expired)
    });
    breaks("P4", |play| {
        delivered(play)?;
        play.ack("t1", TokenAnswer::Acked)?;
        Ok(play.ack("t1", TokenAnswer::Expired))
    });
    // Another worker got the task after the lease ran out.
    breaks("P4", |play| {
        delivered(play)?;
        play.pass(1_000);
        play.lease(1, vec![again(2, found("a", 1, DUE, "t2"))])?;
        play.ack("t2", TokenAnswer::Acked)?;
        Ok(play.ack("t1", TokenAnswer::Acked))
    });
}

#[test]
fn only_the_latest_revoked_lease_must_be_remembered() {
    for said in [TokenAnswer::Revoked, TokenAnswer::Expired] {
        // The key has a new task.
        holds(|play| {
            delivered(play)?;
            play.cancel("a", true, Answer::Revoked)?;
            play.put("a", DUE, ready("a", 2, 7, DUE))?;
            play.ack("t1", said)
        });
        // A later lease of the same task was revoked.
        holds(|play| {
            delivered(play)?;
            let verb =
                |payload| Verb::Patch { due: None, payload: Some(payload), if_match: None, revoke: true };
            let task = View { payload: 7, attempt: 1, ..ready("a", 1, 6, DUE) };
            play.call(Some("a"), verb(7), Answer::Stored { created: false, task })?;
            let one = Delivery { payload: 7, ..again(2, found("a", 1, DUE, "t2")) };
            play.lease(1, vec![one])?;
            let task = View { payload: 8, attempt: 2, ..ready("a", 1, 8, DUE) };
            play.call(Some("a"), verb(8), Answer::Stored { created: false, task })?;
            play.ack("t2", TokenAnswer::Revoked)?;
            play.ack("t1", said)
        });
        // A crash had ended the lease before the owner took the task back.
        holds(|play| {
            delivered(play)?;
            play.crash()?;
            play.cancel("a", true, Answer::Cancelled)?;
            play.ack("t1", said)
        });
        // The task died, and an older dead task has the key again.
        holds(|play| {
            let bury = |play: &mut Play, token: &str| {
                let (tokens, how) = (vec![token.to_owned()], How::Buried);
                let verb = Verb::Nack { tokens, delay_ms: None, at_least_ms: None, how };
                play.call(None, verb, Answer::Tokens(vec![TokenAnswer::Nacked]))
            };
            delivered(play)?;
            bury(play, "t1")?;
            play.put("a", DUE, ready("a", 2, 7, DUE))?;
            play.lease(1, vec![found("a", 2, DUE, "t2")])?;
            let verb = Verb::Patch { due: None, payload: Some(7), if_match: None, revoke: true };
            let task = View { payload: 7, attempt: 1, ..ready("a", 2, 8, DUE) };
            play.call(Some("a"), verb, Answer::Stored { created: false, task })?;
            play.lease(1, vec![Delivery { payload: 7, ..again(2, found("a", 2, DUE, "t3")) }])?;
            bury(play, "t3")?;
            let task = ready("a", 1, 9, play.wall);
            play.call(Some("a"), Verb::Redrive { id: 1 }, Answer::Stored { created: false, task })?;
            play.ack("t2", said)
        });
    }
}

#[test]
fn a_lost_lease_may_take_a_task_that_is_put_later() {
    holds(|play| {
        let lease = play.send(None, Verb::Lease { max: 1, lease_ms: 1_000 });
        play.oracle.lost(lease)?;
        play.put("a", WALL, ready("a", 1, 5, WALL))?;
        play.lease(1, vec![])?;
        play.get("a", Answer::Task(View { state: State::Leased, attempt: 1, ..view("a", 1, 5, WALL) }))
    });
    // The lost lease took the task of a put before the put was answered. The lease was also settled
    // before that.
    holds(|play| {
        let made = Verb::Put { due: None, payload: 700, mode: Mode::Upsert, if_match: None, revoke: false };
        let id = play.send(None, made);
        let lease = play.send(None, Verb::Lease { max: 1, lease_ms: 1_000 });
        play.oracle.lost(lease)?;
        play.oracle.settled(lease)?;
        let task = View { payload: 700, ..ready("7", 7, 5, WALL) };
        play.oracle.answered(id, Answer::Stored { created: true, task: task.clone() })?;
        play.get("7", Answer::Task(View { state: State::Leased, attempt: 1, ..task }))
    });
}

#[test]
fn a_queue_is_forgotten_with_what_was_laid_down_once_it_is_empty() {
    holds(|play| {
        play.call(None, Verb::Drain, Answer::Laid)?;
        play.call(None, Verb::Delete, Answer::Laid)?;
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        let one = Answer::NotEmpty { live: 1, dead: 0, schedules: 0 };
        play.call(None, Verb::Delete, one)?;
        // The put may have taken effect before or after the delete; the order is unknown.
        let put = play.send(Some("b"), put(DUE, 200));
        play.call(None, Verb::Delete, Answer::NotEmpty { live: 2, dead: 0, schedules: 0 })?;
        play.oracle.answered(put, Answer::Stored { created: true, task: view("b", 2, 8, DUE) })?;
        play.cancel("a", false, Answer::Cancelled)?;
        play.cancel("b", false, Answer::Cancelled)?;
        play.call(None, Verb::Pause(Pause::On), Answer::Laid)?;
        play.call(None, Verb::Delete, Answer::Laid)?;
        play.crash()?;
        play.put("c", DUE, view("c", 3, 19, DUE))
    });
}

#[test]
fn a_drained_queue_and_a_full_one_refuse_what_is_new() {
    holds(|play| {
        let backlog = Limits { max_backlog: Some(1), ..Limits::default() };
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        play.call(None, Verb::Settle(backlog), Answer::Laid)?;
        play.call(Some("b"), put(DUE, 200), Answer::BacklogFull)?;
        play.cancel("a", false, Answer::Cancelled)?;
        play.put("b", DUE, view("b", 2, 6, DUE))?;
        play.call(None, Verb::Settle(Limits::default()), Answer::Laid)?;
        play.call(None, Verb::Drain, Answer::Laid)?;
        play.call(Some("c"), put(DUE, 300), Answer::Draining)?;
        play.crash()?;
        play.call(Some("c"), put(DUE, 300), Answer::Draining)?;
        play.call(None, Verb::Pause(Pause::Off), Answer::Laid)?;
        play.put("c", DUE, view("c", 3, 9, DUE))
    });
}
