//! Histories that are right, and histories that break one named promise.

use super::*;

/// The wall clock at the start of each story.
const WALL: i64 = 1_500_000_000_000;

/// A server of one queue `q`, played by the test: it says what each answer is.
struct Play {
    oracle: Oracle,
    mono: u64,
    wall: i64,
    calls: u64,
}

impl Play {
    fn new() -> Self {
        Play { oracle: Oracle::new(0, WALL), mono: 0, wall: WALL, calls: 0 }
    }

    /// Both clocks go on.
    fn pass(&mut self, ms: u64) {
        self.mono += ms;
        self.step(ms as i64);
    }

    /// The wall clock alone jumps.
    fn step(&mut self, ms: i64) {
        self.wall += ms;
        self.oracle.time(self.mono, self.wall);
    }

    fn send(&mut self, key: Option<&str>, verb: Verb) -> CallId {
        self.calls += 1;
        let id = CallId(self.calls);
        self.oracle.called(id, Call { queue: "q".to_owned(), key: key.map(str::to_owned), verb });
        id
    }

    /// A call and its answer; the commit takes 2 ms.
    fn call(&mut self, key: Option<&str>, verb: Verb, answer: Answer) -> Result<(), Violation> {
        let id = self.send(key, verb);
        self.pass(2);
        self.oracle.answered(id, answer)
    }

    fn put(&mut self, key: &str, due: i64, task: View) -> Result<(), Violation> {
        self.call(Some(key), put(due, task.payload), Answer::Stored { created: true, task })
    }

    fn get(&mut self, key: &str, answer: Answer) -> Result<(), Violation> {
        self.call(Some(key), Verb::Get, answer)
    }

    fn cancel(&mut self, key: &str, revoke: bool, answer: Answer) -> Result<(), Violation> {
        self.call(Some(key), Verb::Cancel { if_match: None, revoke }, answer)
    }

    fn patch(&mut self, key: &str, due: i64, task: View) -> Result<(), Violation> {
        let verb = Verb::Patch { due: Some(Due::At(due)), payload: None, if_match: None, revoke: false };
        self.call(Some(key), verb, Answer::Stored { created: false, task })
    }

    /// A lease of 1 s; the server grants it as the call comes in.
    fn lease(&mut self, max: usize, mut found: Vec<Delivery>) -> Result<(), Violation> {
        found.iter_mut().for_each(|one| one.lease_until = self.wall + 1_000);
        self.call(None, Verb::Lease { max, lease_ms: 1_000 }, Answer::Delivered(found))
    }

    fn tokens(
        &mut self,
        verb: fn(Vec<String>) -> Verb,
        token: &str,
        said: TokenAnswer,
    ) -> Result<(), Violation> {
        self.call(None, verb(vec![token.to_owned()]), Answer::Tokens(vec![said]))
    }

    fn ack(&mut self, token: &str, said: TokenAnswer) -> Result<(), Violation> {
        self.tokens(|tokens| Verb::Ack { tokens }, token, said)
    }

    fn nack(&mut self, token: &str, said: TokenAnswer) -> Result<(), Violation> {
        self.tokens(|tokens| Verb::Nack { tokens, delay_ms: None }, token, said)
    }

    fn extend(&mut self, token: &str, said: TokenAnswer) -> Result<(), Violation> {
        self.tokens(|tokens| Verb::Extend { tokens, lease_ms: 1_000 }, token, said)
    }

    fn list(&mut self, views: Vec<View>) -> Result<(), Violation> {
        self.call(None, Verb::List, Answer::Listed(views))
    }

    fn counts(&mut self, scheduled: usize, ready: usize, leased: usize) -> Result<(), Violation> {
        self.call(None, Verb::Counts, Answer::Counted { scheduled, ready, leased, dead: 0 })
    }

    fn crash(&mut self) -> Result<(), Violation> {
        self.oracle.crashed()?;
        self.pass(50);
        self.oracle.recovered();
        Ok(())
    }

    fn restart(&mut self, down_ms: u64) -> Result<(), Violation> {
        self.oracle.stopping();
        self.oracle.stopped()?;
        self.pass(down_ms);
        self.oracle.recovered();
        Ok(())
    }
}

fn put(due: i64, payload: u64) -> Verb {
    Verb::Put { due: Some(Due::At(due)), payload, mode: Mode::Upsert, if_match: None, revoke: false }
}

/// A scheduled task that was never leased; its payload is 100 times its id.
fn view(key: &str, id: u64, version: u64, due_at: i64) -> View {
    View { key: key.to_owned(), id, version, state: State::Scheduled, due_at, payload: id * 100, attempt: 0 }
}

fn ready(key: &str, id: u64, version: u64, due_at: i64) -> View {
    View { state: State::Ready, ..view(key, id, version, due_at) }
}

/// Its first delivery; `lease_until` is filled in by `Play::lease`.
fn found(key: &str, id: u64, due_at: i64, token: &str) -> Delivery {
    let (key, token) = (key.to_owned(), token.to_owned());
    Delivery { key, id, due_at, payload: id * 100, attempt: 1, token, lease_until: 0 }
}

fn again(attempt: u32, one: Delivery) -> Delivery {
    Delivery { attempt, ..one }
}

#[track_caller]
fn holds(story: impl FnOnce(&mut Play) -> Result<(), Violation>) {
    let mut play = Play::new();
    if let Err(violation) = story(&mut play) {
        panic!("{violation:#?}");
    }
    assert_eq!(play.oracle.given_up(), 0);
}

/// The last step, and only that, breaks `promise`.
#[track_caller]
fn breaks(promise: &str, story: impl FnOnce(&mut Play) -> Result<Result<(), Violation>, Violation>) {
    let mut play = Play::new();
    match story(&mut play) {
        Err(violation) => panic!("too soon: {violation:#?}"),
        Ok(Ok(())) => panic!("{promise} was broken, and the oracle saw nothing"),
        Ok(Err(violation)) => assert_eq!(violation.promise, promise, "{violation:#?}"),
    }
}

const DUE: i64 = WALL + 10_000;

/// A task `a` (id 1, version 5), due and delivered with token `t1`.
fn delivered(play: &mut Play) -> Result<(), Violation> {
    play.put("a", DUE, view("a", 1, 5, DUE))?;
    play.pass(10_000);
    play.lease(1, vec![found("a", 1, DUE, "t1")])
}

// Right histories.

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
        play.ack("t1", TokenAnswer::Expired)?;
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
    for (late_ms, promise) in [(-1, Some("P1")), (0, None), (2, None), (3, Some("P1"))] {
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
        let verb = Verb::Nack { tokens: vec!["t3".to_owned()], delay_ms: Some(5_000) };
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
    // Died while it stopped: the lease is written down or it is not.
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
    // Its answer is lost, or comes after the delivery.
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

// Wrong histories.

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
    // The wall clock had shown the instant only before the put.
    breaks("P2", |play| {
        play.pass(20_000);
        play.step(-20_000);
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        Ok(play.lease(1, vec![found("a", 1, DUE, "t1")]))
    });
    // After a restart the instant alone decides.
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
    // Seen as expired, so durable; a restart must not forget it.
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
        Ok(play.ack("t1", TokenAnswer::Acked))
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

#[test]
fn p4_a_ready_task_is_kept_back() {
    breaks("P4", |play| {
        play.put("a", WALL, ready("a", 1, 5, WALL))?;
        Ok(play.lease(1, vec![]))
    });
    // Another lease call beside it may have taken the task, so this one proves nothing yet.
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
    // The instant in the answer is the new one, but the moment is the old one.
    breaks("P2", |play| {
        play.put("a", DUE, view("a", 1, 5, DUE))?;
        play.patch("a", DUE + 60_000, view("a", 1, 6, DUE + 60_000))?;
        play.pass(10_000);
        Ok(play.lease(1, vec![found("a", 1, DUE + 60_000, "t1")]))
    });
    // It fires at both.
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
    // A retry after an unanswered put made a second one.
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
fn p6_a_refused_call_leaves_a_trace() {
    breaks("P6", |play| {
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
    for wrong in
        [vec![late.clone(), first.clone()], vec![second.clone(), first.clone()], vec![late], vec![second]]
    {
        breaks("order", |play| {
            three(play)?;
            Ok(play.lease(wrong.len(), wrong))
        });
    }
    // A put anew goes to the end of its instant; a patch keeps the place.
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
    for (scheduled, ready_ones, leased, right) in [
        (1, 1, 1, true),
        (2, 0, 1, false),
        (1, 1, 0, false),
        (1, 2, 1, false),
        (0, 2, 1, false),
        (1, 0, 2, false),
    ] {
        let mut play = Play::new();
        delivered(&mut play).expect("a right history");
        play.put("b", WALL, ready("b", 2, 6, WALL)).expect("a right history");
        play.put("c", DUE + 99_999, view("c", 3, 7, DUE + 99_999)).expect("a right history");
        let verdict = play.counts(scheduled, ready_ones, leased);
        let promise = verdict.err().map(|violation| violation.promise);
        assert_eq!(promise, (!right).then_some("counts"), "{scheduled} {ready_ones} {leased}");
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
