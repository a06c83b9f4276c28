//! Debounced puts: how long a row of them may delay its task.

use tickwheel_engine::*;

use crate::world::*;

#[test]
fn a_debounced_put_waits_no_longer_than_its_row_allows() {
    let mut world = World::new();
    let put = |delay_ms, max_wait_ms| Put {
        due: Due::After { ms: delay_ms },
        mode: PutMode::Debounce { max_wait_ms },
        ..Put::new(&queue("q"), key("a"))
    };
    let first = world.put(put(10, Some(25))).expect("taken");
    assert_eq!((first.created, first.task.due_at), (true, ms(10)));
    for (at, due) in [(8, 18), (16, 25), (24, 25)] {
        world.pass_ms(8);
        let stored = world.put(put(10, Some(25))).expect("taken");
        assert_eq!((stored.created, stored.task.due_at), (false, ms(due)), "put at {at}");
    }
    // This put does not say how long the task may wait.
    assert_eq!(world.put(put(10, None)).expect("taken").task.due_at, ms(34));
    // The row of puts goes on, also over a crash: the instant 5 ms after its first put has long passed.
    let mut world = world.crash();
    let late = world.put(put(10, Some(5))).expect("taken");
    assert_eq!((late.task.state, late.task.due_at), (State::Ready, ms(5)));
    // A put of another mode ends the row; the next debounced one counts from it.
    world.put_in("a", 100);
    world.pass_ms(2);
    assert_eq!(world.put(put(10, Some(5))).expect("taken").task.due_at, ms(29));
}

/// The story: the first of the debounced puts asked for 10 minutes and at most 5, and was due after 10. The limit held only for the puts after it.
#[test]
fn the_first_debounced_put_is_limited_too() {
    let mut world = World::new();
    let debounce = |due, max_wait_ms| Put {
        due,
        mode: PutMode::Debounce { max_wait_ms },
        ..Put::new(&queue("q"), key("a"))
    };
    world.pass_ms(7);
    for (due, max_wait_ms, due_at) in [
        (Due::After { ms: 600 }, Some(300), 307),
        (Due::At(ms(900)), Some(300), 307),
        (Due::After { ms: 200 }, Some(300), 207),
        (Due::After { ms: 600 }, None, 607),
        (Due::After { ms: 600 }, Some(0), 7),
    ] {
        let stored = world.put(debounce(due, max_wait_ms)).expect("taken");
        assert_eq!((stored.created, stored.task.due_at), (true, ms(due_at)), "{due:?}, {max_wait_ms:?}");
        world.cancel("a").expect("live");
    }
}

/// The story: a debounced put replaced a task by a timeline. The limit of the row was over, so the first instant of the timeline came too early.
#[test]
fn a_debounced_timeline_comes_at_its_instants() {
    let mut world = World::new();
    let mode = PutMode::Debounce { max_wait_ms: Some(50) };
    let moment = |at_ms| Moment { at: ms(at_ms), payload: "x".into(), content_type: "text/plain".into() };
    let plan = |first_ms| {
        let body = Body { timeline: vec![moment(first_ms), moment(9_000)], ..Body::default() };
        Put { body, mode, ..Put::new(&queue("q"), key("a")) }
    };
    assert_eq!(world.put(plan(1_000)).expect("taken").task.due_at, ms(1_000), "the first put of the row");
    world.pass_ms(70);
    assert_eq!(world.put(plan(2_000)).expect("taken").task.due_at, ms(2_000), "a later one");
    // The row goes on, and its limit holds for a put without a timeline.
    let stored = world.put(Put { due: Due::After { ms: 10 }, mode, ..Put::new(&queue("q"), key("a")) });
    assert_eq!(stored.expect("taken").task.due_at, ms(50));
}

/// The story: a debounced task died, and was redriven a day later. The next put was due at once, since the row of puts had begun a day before. A task
/// that its owner ran before its time was the same.
#[test]
fn a_redrive_or_a_run_ends_the_row_of_debounced_puts() {
    for is_dead in [true, false] {
        let mut world = World::new();
        let put = |delay_ms| Put {
            due: Due::After { ms: delay_ms },
            mode: PutMode::Debounce { max_wait_ms: Some(100) },
            terms: Terms { retry: Some(Retry { max_attempts: Some(1), backoff: None }), ..Terms::default() },
            ..Put::new(&queue("q"), key("a"))
        };
        let first = world.put(put(if is_dead { 0 } else { 100 })).expect("taken").task;
        if is_dead {
            let leased = world.lease(1, 1_000);
            world.nack(leased[0].token, None);
            assert_eq!(world.get("a").expect("kept").state, State::Dead);
            world.pass_ms(1_000);
            let redrive = Redrive { queue: queue("q"), id: first.id };
            assert!(matches!(world.ask(Command::Redrive(redrive)), Answer::Redrive(Ok(_))));
        } else {
            world.pass_ms(90);
            world.by_key("a", KeyAct::Run).expect("it waits");
        }
        let mut world = world.crash();
        let begun = world.now.wall;
        let after = |ms| begun.saturating_plus_ms(ms);
        let live = world.get("a").expect("live");
        assert_eq!((live.state, live.put_at), (State::Ready, ms(0)), "the view shows the put");
        let stored = world.put(put(60)).expect("taken");
        assert_eq!((stored.created, stored.task.due_at), (false, after(60)), "dead: {is_dead}");
        world.pass_ms(50);
        assert_eq!(world.put(put(60)).expect("taken").task.due_at, after(100), "dead: {is_dead}: a new row");
    }
}
