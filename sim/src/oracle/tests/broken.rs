//! Histories that break one named promise.

use super::*;

#[test]
fn p1_an_acknowledged_put_is_gone_after_a_crash() {
    breaks("P1", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        play.crash()?;
        Ok(play.get("a", Answer::NotFound))
    });
    breaks("P1", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        play.crash()?;
        Ok(play.list(vec![]))
    });
    breaks("P1", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        play.crash()?;
        Ok(play.cancel("a", false, Answer::NotFound))
    });
}

#[test]
fn p1_an_acknowledged_change_is_gone_after_a_crash() {
    breaks("P1", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        play.patch("a", DUE + 1, view("a", 1, 6, DUE + 1))?;
        play.crash()?;
        Ok(play.get("a", Answer::Task(view("a", 1, 5, DUE))))
    });
    breaks("P1", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        Ok(play.get("a", Answer::Task(View { payload: 101, ..view("a", 1, 5, DUE) })))
    });
}

#[test]
fn p2_ready_or_delivered_one_millisecond_early() {
    breaks("P2", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        play.pass(9_995);
        Ok(play.lease(1, vec![found("a", 1, DUE, "t1")]))
    });
    breaks("P2", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        play.pass(9_995);
        Ok(play.get("a", Answer::Task(ready("a", 1, 5, DUE))))
    });
    // The wall clock showed the instant before the put, and not after it.
    breaks("P2", |play| {
        play.pass(20_000);
        play.step(-20_000);
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        Ok(play.lease(1, vec![found("a", 1, DUE, "t1")]))
    });
    // After a restart only the due instant decides.
    breaks("P2", |play| {
        play.put("a", WALL, ready("a", 1, 5, WALL))?;
        play.step(-1_000);
        play.crash()?;
        Ok(play.lease(1, vec![found("a", 1, WALL, "t1")]))
    });
}

#[test]
fn p3_something_due_is_left_at_the_end() {
    breaks("P3", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        play.pass(20_000);
        play.list(vec![view("a", 1, 5, DUE)])?;
        Ok(play.oracle.finish())
    });
    breaks("P3", |play| {
        delivered(play)?;
        play.pass(5_000);
        play.list(vec![View { state: State::Leased, attempt: 1, ..view("a", 1, 5, DUE) }])?;
        Ok(play.oracle.finish())
    });
    holds(|play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        play.list(vec![view("a", 1, 5, DUE)])?;
        play.oracle.finish()
    });
}

#[test]
fn p4_an_ack_is_forgotten() {
    breaks("P4", |play| {
        delivered(play)?;
        play.ack("t1", TokenAnswer::Acked)?;
        play.crash()?;
        Ok(play.lease(1, vec![found("a", 1, DUE, "t2")]))
    });
    breaks("P4", |play| {
        delivered(play)?;
        play.ack("t1", TokenAnswer::Acked)?;
        play.crash()?;
        Ok(play.list(vec![ready("a", 1, 5, DUE)]))
    });
}

#[test]
fn p4_a_leased_task_is_leased_again() {
    breaks("P4", |play| {
        delivered(play)?;
        play.pass(993);
        Ok(play.lease(1, vec![again(2, found("a", 1, DUE, "t2"))]))
    });
    breaks("P4", |play| {
        delivered(play)?;
        play.pass(900);
        play.extend("t1", TokenAnswer::Extended)?;
        play.pass(900);
        Ok(play.lease(1, vec![again(2, found("a", 1, DUE, "t2"))]))
    });
}

#[test]
fn p4_an_attempt_is_not_counted() {
    breaks("P4", |play| {
        delivered(play)?;
        play.nack("t1", TokenAnswer::Nacked)?;
        Ok(play.lease(1, vec![found("a", 1, DUE, "t2")]))
    });
    // A call has seen that the lease ran out, so this is durable: a restart must not forget it.
    breaks("P4", |play| {
        delivered(play)?;
        play.pass(1_000);
        play.ack("t1", TokenAnswer::Expired)?;
        play.crash()?;
        Ok(play.lease(1, vec![found("a", 1, DUE, "t2")]))
    });
    breaks("P4", |play| {
        delivered(play)?;
        play.nack("t1", TokenAnswer::Nacked)?;
        Ok(play.get("a", Answer::Task(ready("a", 1, 5, DUE))))
    });
}

#[test]
fn p4_an_old_token_works() {
    breaks("P4", |play| {
        delivered(play)?;
        play.pass(1_000);
        play.lease(1, vec![again(2, found("a", 1, DUE, "t2"))])?;
        Ok(play.ack("t1", TokenAnswer::Acked))
    });
    breaks("P4", |play| {
        delivered(play)?;
        play.crash()?;
        play.lease(1, vec![found("a", 1, DUE, "t2")])?;
        Ok(play.nack("t1", TokenAnswer::Nacked))
    });
    breaks("P4", |play| {
        delivered(play)?;
        play.crash()?;
        play.lease(1, vec![found("a", 1, DUE, "t2")])?;
        play.crash()?;
        Ok(play.ack("t1", TokenAnswer::Acked))
    });
    breaks("P4", |play| {
        delivered(play)?;
        play.crash()?;
        play.patch("a", DUE + 1, ready("a", 1, 6, DUE + 1))?;
        Ok(play.ack("t1", TokenAnswer::Acked))
    });
    breaks("P4", |play| {
        delivered(play)?;
        play.ack("t1", TokenAnswer::Acked)?;
        Ok(play.extend("t1", TokenAnswer::Extended))
    });
    breaks("P4", |play| Ok(play.ack("never", TokenAnswer::Acked)));
}

#[test]
fn p4_a_good_token_is_refused() {
    breaks("P4", |play| {
        delivered(play)?;
        play.pass(990);
        Ok(play.ack("t1", TokenAnswer::Expired))
    });
    breaks("P4", |play| {
        delivered(play)?;
        play.crash()?;
        Ok(play.ack("t1", TokenAnswer::Expired))
    });
}

#[test]
fn p4_the_lease_answer_itself_is_wrong() {
    breaks("P4", |play| {
        delivered(play)?;
        play.nack("t1", TokenAnswer::Nacked)?;
        Ok(play.lease(1, vec![again(2, found("a", 1, DUE, "t1"))]))
    });
    breaks("P4", |play| {
        play.put("a", WALL, ready("a", 1, 5, WALL))?;
        let one = Delivery { lease_until: play.wall + 999, ..found("a", 1, WALL, "t1") };
        Ok(play.call(None, Verb::Lease { max: 1, lease_ms: 1_000 }, Answer::Delivered(vec![one])))
    });
    breaks("P4", |play| {
        play.put("a", WALL, ready("a", 1, 5, WALL))?;
        play.put("b", WALL, ready("b", 2, 6, WALL))?;
        Ok(play.lease(1, vec![found("a", 1, WALL, "t1"), found("b", 2, WALL, "t2")]))
    });
}

/// The two clocks stand at different fractions of a millisecond. So the lease is over by one clock, but not by the
/// clock whose end the worker was told.
#[test]
fn p4_a_lease_is_handed_on_before_its_worker_was_told() {
    let story = |play: &mut Play, passed_ns: u64| {
        let at = |ns: u64| (ns, i128::from(WALL) * 1_000_000 + 700_000 + i128::from(ns));
        let time = |play: &mut Play, ns| {
            let (mono_ns, wall_ns) = at(ns);
            play.oracle.time_ns(mono_ns, wall_ns);
        };
        time(play, 0);
        let put = play.send(Some("a"), put(WALL, 100));
        play.oracle.answered(put, Answer::Stored { created: true, task: ready("a", 1, 5, WALL) })?;
        let lease = Verb::Lease { max: 1, lease_ms: 1_000 };
        let first = play.send(None, lease.clone());
        let one = Delivery { lease_until: WALL + 1_001, ..found("a", 1, WALL, "t1") };
        play.oracle.answered(first, Answer::Delivered(vec![one]))?;
        time(play, passed_ns);
        let then = play.send(None, lease);
        let one = Delivery { attempt: 2, lease_until: WALL + 2_001, ..found("a", 1, WALL, "t2") };
        Ok(play.oracle.answered(then, Answer::Delivered(vec![one])))
    };
    breaks("P4", |play| story(play, 1_000_000_000));
    breaks("P4", |play| story(play, 1_000_299_999));
    holds(|play| story(play, 1_000_300_000)?);
}

/// The wall clock was slower for a time, so it has not yet reached the end that the worker was told. Leases run by the
/// monotonic clock.
#[test]
fn a_lease_ends_though_the_wall_clock_is_behind() {
    holds(|play| {
        play.put("a", WALL, ready("a", 1, 5, WALL))?;
        play.lease(1, vec![found("a", 1, WALL, "t1")])?;
        play.pass(500);
        play.step(-1);
        play.pass(500);
        play.lease(1, vec![again(2, found("a", 1, WALL, "t2"))])
    });
}

#[test]
fn p4_a_ready_task_is_kept_back() {
    breaks("P4", |play| {
        play.put("a", WALL, ready("a", 1, 5, WALL))?;
        Ok(play.lease(1, vec![]))
    });
    // An old lease call that is settled takes no more task.
    breaks("P4", |play| {
        let lease = play.send(None, Verb::Lease { max: 1, lease_ms: 1_000 });
        play.oracle.lost(lease)?;
        play.oracle.settled(lease)?;
        play.put("a", WALL, ready("a", 1, 5, WALL))?;
        Ok(play.lease(1, vec![]))
    });
    // Another lease call that is open may have taken the task, so the missing task proves nothing yet.
    holds(|play| {
        play.put("a", WALL, ready("a", 1, 5, WALL))?;
        let beside = play.send(None, Verb::Lease { max: 1, lease_ms: 1_000 });
        let until = play.wall + 1_000;
        play.lease(1, vec![])?;
        let one = Delivery { lease_until: until, ..found("a", 1, WALL, "t1") };
        play.oracle.answered(beside, Answer::Delivered(vec![one]))
    });
}

#[test]
fn p5_a_cancel_is_forgotten() {
    breaks("P5", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        play.cancel("a", false, Answer::Cancelled)?;
        play.crash()?;
        Ok(play.get("a", Answer::Task(view("a", 1, 5, DUE))))
    });
    breaks("P5", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        play.cancel("a", false, Answer::Cancelled)?;
        play.pass(20_000);
        Ok(play.lease(1, vec![found("a", 1, DUE, "t1")]))
    });
}

#[test]
fn p5_a_cancel_answer_is_untrue() {
    breaks("P5", |play| {
        delivered(play)?;
        Ok(play.cancel("a", false, Answer::Cancelled))
    });
    breaks("P5", |play| {
        delivered(play)?;
        play.ack("t1", TokenAnswer::Acked)?;
        Ok(play.cancel("a", false, Answer::NotFound))
    });
    breaks("P5", |play| {
        delivered(play)?;
        play.cancel("a", true, Answer::Revoked)?;
        Ok(play.ack("t1", TokenAnswer::Acked))
    });
    breaks("P5", |play| {
        delivered(play)?;
        play.cancel("a", true, Answer::Revoked)?;
        play.crash()?;
        Ok(play.ack("t1", TokenAnswer::Expired))
    });
}

#[test]
fn p5_the_old_instant_fires_after_a_reschedule() {
    breaks("P5", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        play.patch("a", DUE + 60_000, view("a", 1, 6, DUE + 60_000))?;
        play.pass(10_000);
        Ok(play.lease(1, vec![found("a", 1, DUE, "t1")]))
    });
    // The answer shows the new due instant, but the task was delivered at the old one.
    breaks("P5", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        play.patch("a", DUE + 60_000, view("a", 1, 6, DUE + 60_000))?;
        play.pass(10_000);
        Ok(play.lease(1, vec![found("a", 1, DUE + 60_000, "t1")]))
    });
    // The task fires at both instants.
    breaks("P4", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        play.patch("a", DUE + 60_000, view("a", 1, 6, DUE + 60_000))?;
        play.pass(70_000);
        play.lease(1, vec![found("a", 1, DUE + 60_000, "t1")])?;
        play.ack("t1", TokenAnswer::Acked)?;
        Ok(play.lease(1, vec![found("a", 1, DUE + 60_000, "t2")]))
    });
}

#[test]
fn p6_two_tasks_on_one_key() {
    breaks("P6", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        let verb = Verb::Put {
            due: Some(Due::At(DUE)),
            payload: 200,
            mode: Mode::Create,
            if_match: None,
            revoke: false,
        };
        Ok(play.call(Some("a"), verb, Answer::Stored { created: true, task: view("a", 2, 6, DUE) }))
    });
    breaks("P6", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        Ok(play.list(vec![view("a", 1, 5, DUE), view("a", 2, 6, DUE)]))
    });
    breaks("P6", |play| {
        play.put("a", WALL, ready("a", 1, 5, WALL))?;
        Ok(play.lease(2, vec![found("a", 1, WALL, "t1"), found("a", 2, WALL, "t2")]))
    });
    // A retry after an unanswered put made a second task.
    breaks("P6", |play| {
        let id = play.send(Some("a"), put(DUE, 100));
        play.oracle.lost(id)?;
        play.crash()?;
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        Ok(play.get("a", Answer::Task(View { payload: 100, ..view("a", 2, 6, DUE) })))
    });
}

#[test]
fn p6_an_id_or_a_version_is_used_again() {
    breaks("P6", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        Ok(play.put("b", DUE, view("b", 1, 6, DUE)))
    });
    breaks("P6", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        play.cancel("a", false, Answer::Cancelled)?;
        Ok(play.put("a", DUE, view("a", 1, 6, DUE)))
    });
    breaks("P6", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        play.cancel("a", false, Answer::Cancelled)?;
        Ok(play.put("a", DUE, view("a", 2, 5, DUE)))
    });
    breaks("P6", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        Ok(play.get("a", Answer::Task(view("a", 1, 6, DUE))))
    });
}

#[test]
fn p8_a_refused_call_leaves_a_trace() {
    breaks("P8", |play| {
        play.call(Some("a"), put(DUE, 100), Answer::Refused)?;
        Ok(play.get("a", Answer::Task(view("a", 1, 5, DUE))))
    });
    breaks("P6", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        let verb = Verb::Patch { due: None, payload: Some(9), if_match: Some(4), revoke: false };
        Ok(play.call(Some("a"), verb, Answer::Stored { created: false, task: view("a", 1, 6, DUE) }))
    });
}

#[test]
fn p7_ready_does_not_stay_ready() {
    breaks("P7", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        play.pass(10_000);
        play.get("a", Answer::Task(ready("a", 1, 5, DUE)))?;
        play.step(-3_600_000);
        Ok(play.get("a", Answer::Task(view("a", 1, 5, DUE))))
    });
}

#[test]
fn order_is_due_then_put() {
    let three = |play: &mut Play| {
        play.put("late", WALL - 1, ready("late", 1, 5, WALL - 1))?;
        play.put("first", WALL - 9, ready("first", 2, 6, WALL - 9))?;
        play.put("second", WALL - 9, ready("second", 3, 7, WALL - 9))
    };
    let (late, first, second) = (
        found("late", 1, WALL - 1, "t1"),
        found("first", 2, WALL - 9, "t2"),
        found("second", 3, WALL - 9, "t3"),
    );
    let right = vec![first.clone(), second.clone(), late.clone()];
    for max in 1..=3 {
        holds(|play| {
            three(play)?;
            play.lease(max, right[..max].to_vec())
        });
    }
    for wrong in [
        vec![late.clone(), first.clone()],
        vec![second.clone(), first.clone()],
        vec![late],
        vec![second.clone()],
    ] {
        breaks("order", |play| {
            three(play)?;
            Ok(play.lease(wrong.len(), wrong))
        });
    }
    // A put of a live key moves the task behind the others of its instant. A patch does not move it.
    holds(|play| {
        three(play)?;
        let verb = Verb::Patch { due: None, payload: Some(200), if_match: None, revoke: false };
        let task = ready("first", 2, 8, WALL - 9);
        play.call(Some("first"), verb, Answer::Stored { created: false, task })?;
        play.lease(3, right)
    });
    breaks("order", |play| {
        three(play)?;
        let task = ready("first", 2, 8, WALL - 9);
        play.call(Some("first"), put(WALL - 9, 200), Answer::Stored { created: false, task })?;
        Ok(play.lease(2, vec![first, second]))
    });
}

#[test]
fn counts_must_add_up() {
    for (scheduled, ready_ones, leased, wanted) in [
        (1, 1, 1, None),
        (2, 0, 1, Some("counts")),
        (1, 1, 0, Some("counts")),
        (1, 2, 1, Some("counts")),
        // The counts look like those of a task that is ready before its time.
        (0, 2, 1, Some("P2")),
        (1, 0, 2, Some("counts")),
    ] {
        let mut play = Play::new();
        delivered(&mut play).expect("a right history");
        play.put("b", WALL, ready("b", 2, 6, WALL)).expect("a right history");
        play.put("c", DUE + 99_999, view("c", 3, 7, DUE + 99_999)).expect("a right history");
        let verdict = play.counts(scheduled, ready_ones, leased);
        let promise = verdict.err().map(|violation| violation.promise);
        assert_eq!(promise, wanted, "{scheduled} {ready_ones} {leased}");
    }
}

#[test]
fn a_violation_tells_the_story_of_its_key() {
    let mut play = Play::new();
    play.put("other", DUE, view("other", 9, 4, DUE)).expect("a right history");
    delivered(&mut play).expect("a right history");
    play.crash().expect("a right history");
    let violation = play.get("a", Answer::NotFound).expect_err("the task is lost");
    assert!(violation.what.contains("key a:"), "{violation:#?}");
    let words = ["call 2 Put", "call 2 of", "call 3 of", "Crash", "recovered", "call 4 Get", "call 4 of"];
    assert_eq!(violation.story.len(), words.len(), "{violation:#?}");
    for (line, word) in violation.story.iter().zip(words) {
        assert!(line.contains(word), "{word:?} in {line:?}");
    }
}

#[test]
#[should_panic(expected = "is not open")]
fn a_second_answer_is_a_fault_of_the_driver() {
    let mut play = Play::new();
    let id = play.send(Some("a"), Verb::Get);
    play.oracle.answered(id, Answer::NotFound).expect("a right history");
    let _ = play.oracle.answered(id, Answer::NotFound);
}

#[test]
fn p4_a_crash_leaves_a_task_leased() {
    breaks("P4", |play| {
        delivered(play)?;
        play.crash()?;
        Ok(play.get("a", Answer::Task(View { state: State::Leased, attempt: 1, ..view("a", 1, 5, DUE) })))
    });
}

// An open call delays the verdict. The order in which calls began and ended must still count.

#[test]
fn p5_a_cancelled_task_is_seen_by_a_later_call() {
    breaks("P5", |play| {
        let beside = play.send(Some("a"), Verb::Get);
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        play.cancel("a", false, Answer::Cancelled)?;
        play.get("a", Answer::Task(view("a", 1, 5, DUE)))?;
        Ok(play.oracle.answered(beside, Answer::NotFound))
    });
}

#[test]
fn p6_a_task_is_seen_before_its_put() {
    breaks("P6", |play| {
        let beside = play.send(Some("a"), Verb::Get);
        play.get("a", Answer::Task(view("a", 1, 5, DUE)))?;
        let id = play.send(Some("a"), put(DUE, 100));
        play.oracle.lost(id)?;
        Ok(play.oracle.answered(beside, Answer::NotFound))
    });
}

#[test]
fn counts_a_queue_is_forgotten_that_has_a_task_or_kept_that_has_none() {
    let not_empty = |live, dead, schedules| Answer::NotEmpty { live, dead, schedules };
    breaks("counts", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        Ok(play.call(None, Verb::Delete, Answer::Laid))
    });
    breaks("counts", |play| Ok(play.call(None, Verb::Delete, not_empty(1, 0, 0))));
    breaks("counts", |play| Ok(play.call(None, Verb::Delete, not_empty(0, 1, 0))));
    breaks("counts", |play| Ok(play.call(None, Verb::Delete, not_empty(0, 0, 0))));
    breaks("counts", |play| Ok(play.call(None, Verb::Delete, not_empty(0, 0, 1))));
    breaks("counts", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        Ok(play.call(None, Verb::Delete, not_empty(2, 0, 0)))
    });
}

#[test]
fn limits_what_was_laid_down_outlasts_its_queue() {
    breaks("limits", |play| {
        play.call(None, Verb::Drain, Answer::Laid)?;
        play.call(None, Verb::Delete, Answer::Laid)?;
        Ok(play.call(Some("a"), put(DUE, 100), Answer::Draining))
    });
}

#[test]
fn limits_a_task_is_added_where_none_may_be() {
    breaks("limits", |play| {
        play.call(None, Verb::Drain, Answer::Laid)?;
        Ok(play.put("a", DUE, view("a", 1, 5, DUE)))
    });
    breaks("limits", |play| {
        play.call(None, Verb::Drain, Answer::Laid)?;
        play.crash()?;
        Ok(play.put("a", DUE, view("a", 1, 5, DUE)))
    });
    breaks("limits", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        let backlog = Limits { max_backlog: Some(1), ..Limits::default() };
        play.call(None, Verb::Settle(backlog), Answer::Laid)?;
        Ok(play.put("b", DUE, view("b", 2, 6, DUE)))
    });
    // A redrive adds live work, too.
    breaks("limits", |play| {
        play.put("a", WALL, ready("a", 1, 5, WALL))?;
        play.lease(1, vec![found("a", 1, WALL, "t1")])?;
        let bury =
            Verb::Nack { tokens: vec!["t1".into()], delay_ms: None, at_least_ms: None, how: How::Buried };
        play.call(None, bury, Answer::Tokens(vec![TokenAnswer::Nacked]))?;
        play.call(None, Verb::Drain, Answer::Laid)?;
        let task = ready("a", 1, 7, play.wall);
        Ok(play.call(Some("a"), Verb::Redrive { id: 1 }, Answer::Stored { created: false, task }))
    });
    breaks("limits", |play| Ok(play.call(Some("a"), put(DUE, 100), Answer::Draining)));
    breaks("limits", |play| Ok(play.call(Some("a"), put(DUE, 100), Answer::BacklogFull)));
}
