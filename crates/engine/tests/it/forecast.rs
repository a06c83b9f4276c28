//! Forecasts: what falls due when, as the store counts it.

use tickwheel_engine::*;

use crate::world::*;

fn ask(of: Option<&str>, width_ms: u64, buckets: usize) -> Command {
    Command::Forecast(Forecast { queue: of.map(queue), from: None, grid: Grid::Even { width_ms, buckets } })
}

fn counts(answer: Option<Answer>) -> Vec<u64> {
    let Some(Answer::Forecast(Ok(view))) = answer else { panic!("no forecast: {answer:?}") };
    view.counts
}

#[test]
fn it_counts_what_is_to_come_and_what_is_durable() {
    let mut world = World::new();
    for (name, delay_ms) in [("now", 0), ("a", 1), ("b", 999), ("c", 1_000), ("d", 5_000)] {
        world.put_in(name, delay_ms);
    }
    let call = world.send(ask(Some("q"), 1_000, 3));
    assert_eq!(counts(world.answer(call)), [2, 1, 0]);
    let call = world.send(ask(Some("p"), 1_000, 3));
    assert_eq!(counts(world.answer(call)), [0, 0, 0]);
    // The forecast counts the tasks that were put before it, and so it waits until these are durable.
    world.hold_commits = true;
    world.send(Command::Put(Put { due: Due::After { ms: 10 }, ..Put::new(&queue("q"), key("e")) }));
    let call = world.send(ask(None, 1_000, 3));
    assert_eq!(world.answer(call), None);
    world.release();
    assert_eq!(counts(world.answer(call)), [3, 1, 0]);
    // Buckets stand side by side from 1970 on, and time goes on inside of one.
    world.pass_ms(400);
    let call = world.send(ask(None, 1_000, 1));
    let Some(Answer::Forecast(Ok(view))) = world.answer(call) else { panic!("no forecast") };
    assert_eq!((view.from, view.counts), (ms(0), vec![1]));
}

#[test]
fn it_begins_where_it_is_asked_to_and_has_buckets_of_any_length() {
    let mut world = World::new();
    for (name, delay_ms) in [("now", 0), ("a", 1), ("b", 999), ("c", 1_000), ("d", 5_000)] {
        world.put_in(name, delay_ms);
    }
    let mut seen = |from: Option<i64>, grid: Grid| {
        let call = world.send(Command::Forecast(Forecast { queue: None, from: from.map(ms), grid }));
        let Some(Answer::Forecast(Ok(view))) = world.answer(call) else { panic!("no forecast") };
        (view.from, view.counts)
    };
    let ends = |ends: &[u64]| Grid::Ends(ends.into());
    assert_eq!(seen(None, ends(&[1, 1_000, 5_001])), (ms(0), vec![0, 2, 2]));
    assert_eq!(seen(Some(999), ends(&[1, 2])), (ms(999), vec![1, 1]));
    assert_eq!(
        seen(Some(1_500), Grid::Even { width_ms: 1_000, buckets: 5 }),
        (ms(1_000), vec![1, 0, 0, 0, 1])
    );
    world.pass_ms(1_000);
    let call = world.send(Command::Forecast(Forecast {
        queue: None,
        from: Some(ms(0)),
        grid: ends(&[2_000, 9_000]),
    }));
    assert_eq!(counts(world.answer(call)), [0, 1], "what is due by now does not count");
    let many: Vec<u64> = (1..=20_000).collect();
    let call = world.send(Command::Forecast(Forecast { queue: None, from: None, grid: ends(&many) }));
    assert_eq!(counts(world.answer(call)).len(), FORECAST_BUCKETS_MAX);
}

#[test]
fn it_has_no_more_buckets_than_it_may_and_none_without_width() {
    let mut world = World::new();
    let call = world.send(ask(None, 0, usize::MAX));
    assert_eq!(counts(world.answer(call)).len(), FORECAST_BUCKETS_MAX);
}

#[test]
fn a_store_that_cannot_count_is_told_of() {
    let mut world = World::new();
    world.put_in("a", 10);
    world.fail_reads = Some(|request| matches!(request, Request::Count(_)));
    let call = world.send(ask(None, 1_000, 3));
    let answer = world.answer(call);
    assert!(matches!(answer, Some(Answer::Forecast(Err(Unavailable::ReadOnly { .. })))), "{answer:?}");
    assert!(world.engine.is_idle(), "nothing is left waiting");
}
